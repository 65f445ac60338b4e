/* SPDX-License-Identifier: Apache-2.0 */
/* Other tools' files: recognised by their keys, translated into octet's words, with notes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/recipe.h"

oct_status oct_recipe_add_note(oct_recipe *r, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    OCT_TRY(oct_grow(r->ctx, &r->notes, &r->cap_notes, r->n_notes + 1, sizeof(*r->notes)));
    r->notes[r->n_notes] = oct_arena_strdup(r->arena, text);
    if (!r->notes[r->n_notes]) return OCT_ERR_MEMORY;
    r->n_notes++;
    return OCT_OK;
}

/* --- what adapters use --- */

/*
 * The map "group" of the result, made where it is not there, and the key behind it. NULL for a
 * group that the file itself gives as something else: applying it will say so.
 */
static oct_status group_of(oct_adapter *a, const oct_tree *at, const char *path, oct_tree **group,
                           const char **key)
{
    oct_arena *arena = a->r->arena;
    const char *dot = strchr(path, '.');
    oct_tree *made;
    char *name;

    if (!(*key = oct_arena_strdup(arena, dot ? dot + 1 : path))) return OCT_ERR_MEMORY;
    *group = a->out;
    if (!dot) return OCT_OK;
    if (!(name = oct_arena_strndup(arena, path, (size_t)(dot - path)))) return OCT_ERR_MEMORY;
    if ((*group = oct_tree_get(a->out, name))) {
        if ((*group)->kind != OCT_TREE_MAP) *group = NULL;
        return OCT_OK;
    }
    if (!(made = oct_tree_new(arena, OCT_TREE_MAP, at))) return OCT_ERR_MEMORY;
    oct_tree_add(a->out, name, made);
    *group = made;
    return OCT_OK;
}

/* The list "group.key" of the result; NULL as above. */
static oct_status list_of(oct_adapter *a, const oct_tree *at, const char *path, oct_tree **list)
{
    const char *key = NULL;
    oct_tree *group = NULL, *made;

    *list = NULL;
    OCT_TRY(group_of(a, at, path, &group, &key));
    if (!group) return OCT_OK;
    if ((made = oct_tree_get(group, key))) {
        if (made->kind == OCT_TREE_LIST) *list = made;
        return OCT_OK;
    }
    if (!(made = oct_tree_new(a->r->arena, OCT_TREE_LIST, at))) return OCT_ERR_MEMORY;
    oct_tree_add(group, key, made);
    *list = made;
    return OCT_OK;
}

oct_status oct_adapter_set(oct_adapter *a, const oct_tree *at, const char *path, const char *text)
{
    oct_tree *group = NULL, *t = oct_tree_scalar(a->r->arena, at, text);
    const char *key = NULL;

    if (!t) return OCT_ERR_MEMORY;
    OCT_TRY(group_of(a, at, path, &group, &key));
    /* octet's own words come first */
    if (group && !oct_tree_get(group, key)) oct_tree_add(group, key, t);
    return OCT_OK;
}

oct_status oct_adapter_append(oct_adapter *a, const oct_tree *at, const char *path,
                              const char *text)
{
    oct_tree *list = NULL, *t = oct_tree_scalar(a->r->arena, at, text);

    if (!t) return OCT_ERR_MEMORY;
    t->is_plain = false;
    OCT_TRY(list_of(a, at, path, &list));
    if (list) oct_tree_add(list, NULL, t);
    return OCT_OK;
}

/* "Model/Heads[heads]/Head[head1]/Conv[pred]/conv2d_0" to "heads.head1.pred"; "" if it is none. */
void oct_scope_module_path(const char *scope, char *out, size_t size)
{
    size_t at = 0;

    *out = '\0';
    for (const char *open; (open = strchr(scope, '[')) != NULL;) {
        const size_t len = strcspn(open + 1, "]");

        if (open[1 + len] != ']' || at + len + 2 > size) {
            *out = '\0';
            return;
        }
        at += (size_t)snprintf(out + at, size - at, "%s%.*s", at ? "." : "", (int)len, open + 1);
        scope = open + 1 + len;
    }
}

/* A name as others write it: what it is here, "names" or "patterns", and in octet's spelling. */
static oct_status scope_entry(oct_adapter *a, const oct_tree *at, const char *text,
                              bool *is_pattern, char out[512])
{
    char path[512];
    const bool is_marked = !strncmp(text, "{re}", 4);

    if (is_marked) text += 4;
    *is_pattern = is_marked || strpbrk(text, "+*?^$|(\\");
    if (*is_pattern) {
        /* Theirs are found anywhere in a name, ours from its start. */
        if (snprintf(out, 512, *text == '^' ? "%s" : ".*(?:%s)", text) >= 512)
            return oct_recipe_fail(a->r, a->source, at, "the pattern is too long");
        return OCT_OK;
    }
    oct_scope_module_path(text, path, sizeof(path));
    if (snprintf(out, 512, "%s", strchr(text, '/') && *path ? path : text) >= 512)
        return oct_recipe_fail(a->r, a->source, at, "the name is too long");
    return OCT_OK;
}

oct_status oct_adapter_scope(oct_adapter *a, const oct_tree *at, const char *scope,
                             const char *text)
{
    char path[64], name[512];
    bool is_pattern = false;

    OCT_TRY(scope_entry(a, at, text, &is_pattern, name));
    (void)snprintf(path, sizeof(path), "%s.%s", scope, is_pattern ? "patterns" : "names");
    return oct_adapter_append(a, at, path, name);
}

static oct_status add_override(oct_adapter *a, const oct_tree *at, const char *kind,
                               const char *name, const char *key, const char *value)
{
    oct_arena *arena = a->r->arena;
    oct_tree *map = oct_tree_new(arena, OCT_TREE_MAP, at), *list = NULL;
    oct_tree *which = oct_tree_scalar(arena, at, oct_arena_strdup(arena, name));
    oct_tree *t = oct_tree_scalar(arena, at, value);

    if (!map || !which || !which->text || !t) return OCT_ERR_MEMORY;
    which->is_plain = false;
    oct_tree_add(map, kind, which);
    oct_tree_add(map, key, t);
    OCT_TRY(list_of(a, at, "overrides", &list));
    if (list) oct_tree_add(list, NULL, map);
    return OCT_OK;
}

oct_status oct_adapter_override(oct_adapter *a, const oct_tree *at, const char *key,
                                const char *value)
{
    return add_override(a, at, "pattern", ".*", key, value);
}

oct_status oct_adapter_override_at(oct_adapter *a, const oct_tree *at, const char *name,
                                   const char *key, const char *value)
{
    bool is_pattern = false;
    char entry[512];

    OCT_TRY(scope_entry(a, at, name, &is_pattern, entry));
    return add_override(a, at, is_pattern ? "pattern" : "name", entry, key, value);
}

oct_status oct_adapter_done(oct_adapter *a, const char *what, const oct_tree *value,
                            const char *meaning)
{
    if (value && value->kind == OCT_TREE_SCALAR)
        return oct_recipe_add_note(a->r, "%s %.60s: %s", what, value->text, meaning);
    return oct_recipe_add_note(a->r, "%s: %s", what, meaning);
}

oct_status oct_adapter_left_out(oct_adapter *a, const char *what, const char *why)
{
    return oct_recipe_add_note(a->r, "left out: %.200s (%s)", what, why);
}

/* --- recognising --- */

bool oct_recipe_has_key(const char *key)
{
    const size_t len = strlen(key);

    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++) {
        const char *path = oct_recipe_fields[i].path;

        if (len && !strncmp(path, key, len) && (path[len] == '\0' || path[len] == '.')) return true;
    }
    return false;
}

static oct_status copy_key(oct_adapter *a, const oct_tree *t)
{
    oct_tree *copy = oct_arena_alloc(a->r->arena, sizeof(*copy));

    if (!copy) return OCT_ERR_MEMORY;
    *copy = *t;
    copy->next = NULL;
    oct_tree_add(a->out, t->key, copy);
    return OCT_OK;
}

/* Takes over octet's own words; what neither tool knows is named and left out. */
static oct_status split_keys(oct_adapter *a, const oct_tree *map, const char *const *known)
{
    for (const oct_tree *t = map->first; t; t = t->next) {
        int i = 0;

        while (known[i] && strcmp(known[i], t->key) != 0)
            i++;
        if (known[i]) continue;
        if (!oct_recipe_has_key(t->key)) {
            OCT_TRY(oct_adapter_left_out(a, t->key, "of no meaning here"));
            continue;
        }
        OCT_TRY(copy_key(a, t));
    }
    return OCT_OK;
}

static oct_status start(oct_adapter *a, const oct_tree *map, const char *const *known,
                        const char *what)
{
    if (!(a->out = oct_tree_new(a->r->arena, OCT_TREE_MAP, map))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_recipe_add_note(a->r, "%s: read as %s", a->source->name, what));
    return split_keys(a, map, known);
}

/* Takes over octet's own words; the adapter's rules name the others. */
static oct_status start_with_own(oct_adapter *a, const oct_tree *map, const char *what)
{
    if (!(a->out = oct_tree_new(a->r->arena, OCT_TREE_MAP, map))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_recipe_add_note(a->r, "%s: read as %s", a->source->name, what));
    for (const oct_tree *t = map->first; t; t = t->next)
        if (oct_recipe_has_key(t->key)) OCT_TRY(copy_key(a, t));
    return OCT_OK;
}

static oct_status read_nncf(oct_adapter *a, const oct_tree *map)
{
    static const char *const known[] = {"nncf_config",
                                        "compression",
                                        "input_info",
                                        "log_dir",
                                        "disable_shape_matching",
                                        "accuracy_aware_training",
                                        "batch_size",
                                        "epochs",
                                        "optimizer",
                                        "nncf_compress_postprocessing",
                                        NULL};

    OCT_TRY(start(a, map, known, "a config of NNCF"));
    return oct_nncf_read(a, map);
}

/* Most of its words are octet's own: what is neither is a mistake, and stays to be told. */
static oct_status read_nncf_arguments(oct_adapter *a, const oct_tree *map)
{
    static const char *const known[] = {
        "subset_size",         "mode",
        "advanced_parameters", "advanced_quantization_parameters",
        "drop_type",           "advanced_accuracy_restorer_parameters"};

    if (!(a->out = oct_tree_new(a->r->arena, OCT_TREE_MAP, map))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_recipe_add_note(a->r, "%s: read as arguments of nncf.quantize", a->source->name));
    for (const oct_tree *t = map->first; t; t = t->next) {
        size_t i = 0;

        while (i < OCT_COUNT(known) && strcmp(known[i], t->key) != 0)
            i++;
        if (i == OCT_COUNT(known)) OCT_TRY(copy_key(a, t));
    }
    return oct_nncf_arguments(a, map);
}

static oct_status read_gradients(oct_adapter *a, const oct_tree *map)
{
    static const char *const known[] = {"selective_quantizer_params",
                                        "calib_params",
                                        "quantization_params",
                                        "ptq_only",
                                        "qat_params",
                                        "training_hyperparams",
                                        "quantizer",
                                        "exporter",
                                        "export_params",
                                        "defaults",
                                        NULL};
    const oct_tree *params = oct_tree_get(map, "quantization_params");

    OCT_TRY(start(a, map, known, "quantization parameters of SuperGradients"));
    return oct_super_gradients_read(a, map, params ? params : map);
}

static oct_status read_ppq(oct_adapter *a, const oct_tree *map)
{
    OCT_TRY(start_with_own(a, map, "settings of PPQ"));
    return oct_ppq_read(a, map);
}

static oct_status read_quark(oct_adapter *a, const oct_tree *map)
{
    OCT_TRY(start_with_own(a, map, "a config of AMD Quark"));
    return oct_quark_read(a, map);
}

/* MMDetection's: names of its own classes, which are no words of octet's. */
static oct_status read_python(oct_adapter *a, const oct_tree *map)
{
    const oct_tree *config = oct_tree_get(map, "nncf_config");
    const oct_tree *all = oct_tree_get(config, "compression");
    const oct_tree *batch = oct_tree_get(oct_tree_get(map, "data"), "samples_per_gpu");

    a->batch = strtol(oct_tree_text(batch), NULL, 10);
    if (!(a->out = oct_tree_new(a->r->arena, OCT_TREE_MAP, map))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_recipe_add_note(a->r, "%s: read as a config of MMDetection", a->source->name));
    if (all && all->kind != OCT_TREE_SCALAR && all->n > 0) OCT_TRY(oct_nncf_read(a, map));
    return oct_mmdetection_read(a, map);
}

/* A file is a tool's if it has one of these keys, alone or under the outer one. */
static const struct {
    const char *outer; /* may be left out */
    const char *keys[6];
    oct_status (*read)(oct_adapter *a, const oct_tree *map);
} tools[] = {
    {"nncf_config", {"compression"}, read_nncf},
    {"quantization_params",
     {"selective_quantizer_params", "calib_params", "qat_params", "quantizer"},
     read_gradients},
    {NULL,
     {"QuantizationSetting", "TARGET_PLATFORM", "quantize_activation_setting", "dispatching_table",
      "ONNX_IMPORT_FILE"},
     read_ppq},
    {NULL, {"global_quant_config", "global_config"}, read_quark},
    {NULL,
     {"advanced_parameters", "advanced_quantization_parameters", "subset_size",
      "advanced_accuracy_restorer_parameters"},
     read_nncf_arguments},
};

oct_status oct_foreign_read(oct_recipe *r, const oct_recipe_source *s, const oct_tree *map,
                            bool is_python, oct_tree **out)
{
    oct_adapter a = {.r = r, .source = s};

    if (is_python) {
        OCT_TRY(read_python(&a, map));
        *out = a.out;
        return OCT_OK;
    }

    for (size_t i = 0; i < OCT_COUNT(tools); i++) {
        const oct_tree *inner = tools[i].outer ? oct_tree_get(map, tools[i].outer) : NULL;

        for (size_t k = 0; k < OCT_COUNT(tools[i].keys) && tools[i].keys[k]; k++) {
            if (!oct_tree_get(inner ? inner : map, tools[i].keys[k])) continue;
            OCT_TRY(tools[i].read(&a, map));
            *out = a.out;
            return OCT_OK;
        }
    }
    *out = NULL;
    return OCT_OK;
}
