/* SPDX-License-Identifier: Apache-2.0 */
/* A recipe: read, changed word by word, and handed out as options. */
#include <string.h>

#include "base/file.h"
#include "data/files.h"
#include "data/python.h"
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

/* Applies a file that was read: own words, or another tool's. */
static oct_status apply_tree(oct_recipe *r, const char *name, const oct_tree *tree, bool is_python)
{
    const oct_recipe_source source = {name, false};
    oct_tree *own = NULL;

    OCT_TRY(oct_foreign_read(r, &source, tree, is_python, &own));
    return oct_recipe_apply(r, &source, own ? own : tree);
}

static oct_status load_bytes(oct_recipe *r, const char *name, const void *data, size_t size,
                             const oct_python_options *python)
{
    oct_tree *tree = NULL;

    if (oct_has_extension(name, ".py") || oct_python_is(data, size)) {
        OCT_TRY(oct_python_read(r->arena, name, data, size, python, &tree));
        return apply_tree(r, name, tree, true);
    }
    OCT_TRY(oct_tree_read(r->arena, name, data, size, &tree));
    return tree ? apply_tree(r, name, tree, false) : OCT_OK;
}

/* MMDetection's command line may give it. */
static const char *const unset_names[] = {"work_dir", NULL};

oct_status oct_recipe_load_memory(oct_recipe *r, const char *name, const void *data, size_t size)
{
    OCT_ENTER(r->ctx);
    const oct_python_options python = {.unset = unset_names};

    return load_bytes(r, name, data, size, &python);
}

/* Files of bases stay open until all was read. */
typedef struct bases {
    oct_recipe *r;
    oct_file **v;
    size_t n, cap;
} bases;

/* A path of `_base_`, from the folder of the file that has it. */
static oct_status open_base(void *user, const char *from, const char *path, const char **name,
                            const void **data, size_t *size)
{
    bases *b = user;
    const char *slash = strrchr(from, '/');
    oct_file *f = NULL;

    *name = *path == '/' || !slash
                ? oct_arena_strdup(b->r->arena, path)
                : oct_arena_printf(b->r->arena, "%.*s/%s", (int)(slash - from), from, path);
    if (!*name) return OCT_ERR_MEMORY;
    OCT_TRY(oct_grow(b->r->ctx, &b->v, &b->cap, b->n + 1, sizeof(*b->v)));
    OCT_TRY(oct_file_map(b->r->ctx, *name, &f));
    b->v[b->n++] = f;
    *data = oct_file_data(f);
    *size = oct_file_size(f);
    return OCT_OK;
}

oct_status oct_recipe_load(oct_recipe *r, const char *path)
{
    OCT_ENTER(r->ctx);
    bases b = {.r = r};
    const oct_python_options python = {unset_names, open_base, &b};
    oct_file *f = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(r->ctx, path, &f));
    st = load_bytes(r, path, oct_file_data(f), oct_file_size(f), &python);
    oct_file_unref(f);
    for (size_t i = 0; i < b.n; i++)
        oct_file_unref(b.v[i]);
    oct_free(r->ctx, b.v);
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

void oct_recipe_get_sparsity(const oct_recipe *r, oct_sparsity_options *o)
{
    copy_set(r, offsetof(oct_recipe_values, sparsity), sizeof(r->values.sparsity), o,
             o->struct_size);
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
