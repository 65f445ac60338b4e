/* SPDX-License-Identifier: Apache-2.0 */
/* Other tools' files: recognised by their keys, translated into octet's words, with notes. */
#include <stdio.h>
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

oct_status oct_adapter_override(oct_adapter *a, const oct_tree *at, const char *key,
                                const char *value)
{
    oct_arena *arena = a->r->arena;
    oct_tree *map = oct_tree_new(arena, OCT_TREE_MAP, at), *all = oct_tree_scalar(arena, at, ".*");
    oct_tree *t = oct_tree_scalar(arena, at, value), *list = NULL;

    if (!map || !all || !t) return OCT_ERR_MEMORY;
    oct_tree_add(map, "pattern", all);
    oct_tree_add(map, key, t);
    OCT_TRY(list_of(a, at, "overrides", &list));
    if (list) oct_tree_add(list, NULL, map);
    return OCT_OK;
}

/* "Model/Heads[heads]/Head[head1]/Conv[pred]/conv2d_0" to "heads.head1.pred"; "" if it is none. */
static void module_path(const char *scope, char *out, size_t size)
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

oct_status oct_adapter_scope(oct_adapter *a, const oct_tree *at, const char *scope,
                             const char *text)
{
    char path[64], name[512];
    const bool is_marked = !strncmp(text, "{re}", 4);

    if (is_marked) text += 4;
    if (is_marked || strpbrk(text, "+*?^$|(\\")) {
        /* Theirs are found anywhere in a name, ours from its start. */
        (void)snprintf(path, sizeof(path), "%s.patterns", scope);
        if (snprintf(name, sizeof(name), *text == '^' ? "%s" : ".*(?:%s)", text) >=
            (int)sizeof(name))
            return oct_recipe_fail(a->r, a->source, at, "the pattern is too long");
        return oct_adapter_append(a, at, path, name);
    }
    (void)snprintf(path, sizeof(path), "%s.names", scope);
    module_path(text, name, sizeof(name));
    return oct_adapter_append(a, at, path, strchr(text, '/') && *name ? name : text);
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

static bool is_own_key(const char *key)
{
    const size_t len = strlen(key);

    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++) {
        const char *path = oct_recipe_fields[i].path;

        if (len && !strncmp(path, key, len) && (path[len] == '\0' || path[len] == '.')) return true;
    }
    return false;
}

/* Takes over octet's own words; what neither tool knows is named and left out. */
static oct_status split_keys(oct_adapter *a, const oct_tree *map, const char *const *known)
{
    for (const oct_tree *t = map->first; t; t = t->next) {
        oct_tree *copy;
        int i = 0;

        while (known[i] && strcmp(known[i], t->key) != 0)
            i++;
        if (known[i]) continue;
        if (!is_own_key(t->key)) {
            OCT_TRY(oct_adapter_left_out(a, t->key, "not about quantization after training"));
            continue;
        }
        if (!(copy = oct_arena_alloc(a->r->arena, sizeof(*copy)))) return OCT_ERR_MEMORY;
        *copy = *t;
        copy->next = NULL;
        oct_tree_add(a->out, t->key, copy);
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

oct_status oct_foreign_read(oct_recipe *r, const oct_recipe_source *s, const oct_tree *map,
                            oct_tree **out)
{
    static const char *const nncf[] = {"nncf_config",
                                       "compression",
                                       "input_info",
                                       "log_dir",
                                       "disable_shape_matching",
                                       "accuracy_aware_training",
                                       "batch_size",
                                       "nncf_compress_postprocessing",
                                       NULL};
    static const char *const gradients[] = {"selective_quantizer_params",
                                            "calib_params",
                                            "quantization_params",
                                            "ptq_only",
                                            "qat_params",
                                            "training_hyperparams",
                                            NULL};
    const oct_tree *config = oct_tree_get(map, "nncf_config");
    const oct_tree *params = oct_tree_get(map, "quantization_params");
    oct_adapter a = {r, s, NULL};

    if (!config) config = map;
    if (!params) params = map;
    if (oct_tree_get(config, "compression")) {
        OCT_TRY(start(&a, map, nncf, "a config of NNCF"));
        OCT_TRY(oct_nncf_read(&a, map));
    } else if (oct_tree_get(params, "selective_quantizer_params") ||
               oct_tree_get(params, "calib_params") || oct_tree_get(params, "qat_params")) {
        OCT_TRY(start(&a, map, gradients, "quantization parameters of SuperGradients"));
        OCT_TRY(oct_super_gradients_read(&a, map, params));
    }
    *out = a.out;
    return OCT_OK;
}
