/* SPDX-License-Identifier: Apache-2.0 */
/* A recipe: read, changed word by word, and handed out as options. */
#include <string.h>

#include "base/file.h"
#include "data/files.h"
#include "recipe/recipe.h"

/* An array field is a pointer and an int32_t behind it: what the copying below relies on. */
#define FOLLOWS(type, array, n)                                                                    \
    _Static_assert(offsetof(type, n) == offsetof(type, array) + sizeof(void *), #n " stands "      \
                                                                                   "apart")

FOLLOWS(oct_scope, names, n_names);
FOLLOWS(oct_scope, patterns, n_patterns);
FOLLOWS(oct_scope, types, n_types);
FOLLOWS(oct_scope, subgraphs, n_subgraphs);
FOLLOWS(oct_quantize_options, overrides, n_overrides);
FOLLOWS(oct_recipe_job, input_shapes, n_input_shapes);
FOLLOWS(oct_recipe_train_job, images, n_images);
FOLLOWS(oct_train_options, loss_settings, n_loss_settings);
FOLLOWS(oct_train_options, augment_settings, n_augment_settings);

oct_status oct_recipe_new(oct_ctx *ctx, oct_recipe **out)
{
    OCT_ENTER(ctx);
    oct_recipe *r = oct_calloc(ctx, 1, sizeof(*r));

    if (!r) return OCT_ERR_MEMORY;
    r->ctx = ctx;
    if (!(r->arena = oct_arena_new(ctx))) {
        oct_free(ctx, r);
        return OCT_ERR_MEMORY;
    }
    *out = r;
    return OCT_OK;
}

void oct_recipe_free(oct_recipe *r)
{
    if (!r) return;
    oct_arena_free(r->arena);
    oct_free(r->ctx, r->notes);
    oct_free(r->ctx, r);
}

const char *oct_recipe_note(const oct_recipe *r, int32_t i)
{
    return i >= 0 && (size_t)i < r->n_notes ? r->notes[i] : NULL;
}

/* --- reading --- */

oct_status oct_recipe_load_memory(oct_recipe *r, const char *name, const void *data, size_t size)
{
    OCT_ENTER(r->ctx);
    const oct_recipe_source source = {name, false};
    oct_tree *tree = NULL, *own = NULL;

    OCT_TRY(oct_tree_read(r->arena, name, data, size, &tree));
    if (!tree) return OCT_OK;
    OCT_TRY(oct_foreign_read(r, &source, tree, &own));
    return oct_recipe_apply(r, &source, own ? own : tree);
}

oct_status oct_recipe_load(oct_recipe *r, const char *path)
{
    OCT_ENTER(r->ctx);
    oct_file *f = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(r->ctx, path, &f));
    st = oct_recipe_load_memory(r, path, oct_file_data(f), oct_file_size(f));
    oct_file_unref(f);
    return st;
}

oct_status oct_recipe_set(oct_recipe *r, const char *field, const char *value)
{
    OCT_ENTER(r->ctx);
    oct_recipe_source source = {field, true};
    oct_hint hint;

    oct_hint_init(&hint, field);
    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++) {
        const oct_field *f = &oct_recipe_fields[i];
        oct_tree t = {.kind = OCT_TREE_SCALAR, .text = value, .is_plain = true};

        if (!strcmp(f->path, field) || (*f->option && !strcmp(f->option, field))) {
            if (*f->option) source.name = f->option;
            return oct_recipe_apply_field(r, &source, i, &t);
        }
        oct_hint_try(&hint, f->option, strlen(f->option));
        oct_hint_try(&hint, f->path, strlen(f->path));
    }
    return oct_fail(r->ctx, OCT_ERR_ARG, "a recipe has no '%.80s'%s", field, oct_hint_text(&hint));
}

/* --- handing out --- */

static size_t size_of(const oct_field *f)
{
    switch (f->kind) {
    case OCT_FIELD_INT:
    case OCT_FIELD_SWITCH:
    case OCT_FIELD_SWITCH_OFF:
    case OCT_FIELD_TRISTATE:
        return sizeof(int32_t);
    case OCT_FIELD_SEED:
        return sizeof(uint64_t);
    case OCT_FIELD_REAL:
        return sizeof(double);
    case OCT_FIELD_LIST:
    case OCT_FIELD_SUBGRAPHS:
    case OCT_FIELD_OVERRIDES:
        return sizeof(void *) + sizeof(int32_t);
    default:
        return sizeof(char *);
    }
}

/* Copies the fields that are set and lie in the struct at `start` of the values. */
static void copy_set(const oct_recipe *r, size_t start, size_t size, void *out, size_t out_size)
{
    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++) {
        const oct_field *f = &oct_recipe_fields[i];
        const size_t n = size_of(f);

        if (!r->origin[i] || f->offset < start || f->offset - start + n > OCT_MIN(size, out_size))
            continue;
        memcpy((char *)out + (f->offset - start), (const char *)&r->values + f->offset, n);
    }
}

void oct_recipe_get_quantize(const oct_recipe *r, oct_quantize_options *o)
{
    copy_set(r, offsetof(oct_recipe_values, quantize), sizeof(r->values.quantize), o,
             o->struct_size);
    /* Arrays of the recipe have elements as large as this library's. */
    if (r->origin[OCT_RECIPE_IGNORED_SUBGRAPHS]) o->ignored.subgraph_size = sizeof(oct_subgraph);
    if (r->origin[OCT_RECIPE_ONLY_SUBGRAPHS]) o->only.subgraph_size = sizeof(oct_subgraph);
    if (r->origin[OCT_RECIPE_OVERRIDES]) o->override_size = sizeof(oct_quant_override);
}

void oct_recipe_get_train(const oct_recipe *r, oct_train_options *o)
{
    copy_set(r, offsetof(oct_recipe_values, train), sizeof(r->values.train), o, o->struct_size);
    if (r->origin[OCT_RECIPE_FAMILY]) o->family = r->values.quantize.family;
    if (r->origin[OCT_RECIPE_SEED]) o->seed = r->values.quantize.seed;
}

void oct_recipe_get_prune(const oct_recipe *r, oct_prune_options *o)
{
    copy_set(r, offsetof(oct_recipe_values, prune), sizeof(r->values.prune), o, o->struct_size);
}

void oct_recipe_get_pruning(const oct_recipe *r, oct_train_pruning *o)
{
    copy_set(r, offsetof(oct_recipe_values, pruning), sizeof(r->values.pruning), o, o->struct_size);
}

void oct_recipe_get_train_job(const oct_recipe *r, oct_recipe_train_job *job)
{
    oct_recipe_train_job all = r->values.train_job;

    all.struct_size = job->struct_size;
    memcpy(job, &all, OCT_MIN(job->struct_size, sizeof(all)));
}

void oct_recipe_get_job(const oct_recipe *r, oct_recipe_job *job)
{
    oct_recipe_job all = r->values.job;

    if (r->values.annotations && !r->origin[OCT_RECIPE_EVAL]) all.eval = 1;
    all.struct_size = job->struct_size;
    memcpy(job, &all, OCT_MIN(job->struct_size, sizeof(all)));
}

static void set_images(const oct_recipe *r, oct_dataset_options *o)
{
    o->images = r->values.images[0];
    if (o->struct_size < offsetof(oct_dataset_options, n_more_images) + sizeof(o->n_more_images))
        return;
    o->more_images = r->values.images + 1;
    o->n_more_images = r->values.n_images - 1;
}

void oct_recipe_get_data(const oct_recipe *r, oct_dataset_options *o)
{
    copy_set(r, offsetof(oct_recipe_values, data), sizeof(r->values.data), o, o->struct_size);
    if (!r->origin[OCT_RECIPE_SUBSET_SIZE]) o->subset_size = 300; /* as NNCF */
    o->images = r->values.data_file;
    if (r->values.n_images) set_images(r, o);
    o->seed = r->values.quantize.seed;
}

/* A data.yaml says itself where the pictures are. */
static bool has_pictures(const char *annotations)
{
    return annotations &&
           (oct_has_extension(annotations, ".yaml") || oct_has_extension(annotations, ".yml"));
}

void oct_recipe_get_eval_data(const oct_recipe *r, oct_dataset_options *o)
{
    const oct_recipe_values *v = &r->values;

    o->images = v->eval_images ? v->eval_images : v->data_file;
    if (!v->eval_images && has_pictures(v->annotations))
        o->images = NULL; /* its own: val */
    else if (!v->eval_images && v->n_images)
        set_images(r, o);
    o->annotations = v->annotations;
    o->skip_bad = v->data.skip_bad;
    o->limit = v->eval_limit;
}
