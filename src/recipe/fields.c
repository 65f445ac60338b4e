/* SPDX-License-Identifier: Apache-2.0 */
/* The table of fields, and finding a word in it. */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/sized.h"
#include "recipe/recipe.h"

#define VALUE(field)    offsetof(oct_recipe_values, field)
#define OVERRIDE(field) offsetof(oct_quant_override, field)

const oct_field oct_recipe_fields[OCT_RECIPE_N_FIELDS] = {
#define OCT_FIELD(sym, path, option, kind, field, metavar, min, max, def, help)                    \
    [OCT_RECIPE_##                                                                                 \
        sym] = {path, option, OCT_FIELD_##kind, VALUE(field), metavar, min, max, def, help},
#include <octet/recipe.def>
#undef OCT_FIELD
};

const oct_field oct_override_fields[] = {
    {"name", "", OCT_FIELD_TEXT, OVERRIDE(name)},
    {"pattern", "", OCT_FIELD_TEXT, OVERRIDE(pattern)},
    {"weight_bits", "", OCT_FIELD_INT, OVERRIDE(weight_bits), NULL, 2, 16},
    {"activation_bits", "", OCT_FIELD_INT, OVERRIDE(activation_bits), NULL, 2, 16},
    {"symmetric", "", OCT_FIELD_TRISTATE, OVERRIDE(symmetric)},
    {"per_tensor", "", OCT_FIELD_SWITCH, OVERRIDE(per_tensor)},
    {"activation_ranges", "", OCT_FIELD_TEXT, OVERRIDE(activation_ranges), "RANGES"},
    {"weight_ranges", "", OCT_FIELD_CHOICE, OVERRIDE(weight_ranges), "max|mse|percentile"},
    {0},
};

int32_t oct_recipe_field_at(int32_t i, oct_recipe_field *out)
{
    const oct_field *f;
    oct_recipe_field all;

    if (i < 0 || i >= OCT_RECIPE_N_FIELDS) return 0;
    f = &oct_recipe_fields[i];
    all = (oct_recipe_field){sizeof(all), f->path, f->option, f->metavar, f->def, f->help};
    oct_sized_give(out, &all, sizeof(all));
    return 1;
}

/* --- nearest words --- */

void oct_hint_init(oct_hint *h, const char *want)
{
    const size_t len = strlen(want);

    *h = (oct_hint){.want = want, .distance = 2 + (int)OCT_MIN(len / 3, 7)};
}

void oct_hint_try(oct_hint *h, const char *name, size_t len)
{
    char part[64];
    int d;

    if (len >= sizeof(part) || strlen(h->want) > 200) return;
    memcpy(part, name, len);
    part[len] = '\0';
    d = oct_edit_distance(h->want, part, h->distance - 1);
    if (d >= h->distance) return;
    h->distance = d;
    h->best = name;
    (void)snprintf(h->text, sizeof(h->text), "; did you mean '%s'?", part);
}

const char *oct_hint_text(oct_hint *h)
{
    return h->text;
}

/* --- errors --- */

oct_status oct_recipe_fail(oct_recipe *r, const oct_recipe_source *s, const oct_tree *at,
                           const char *fmt, ...)
{
    char why[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (s->is_option) return oct_fail(r->ctx, OCT_ERR_ARG, "option --%s: %s", s->name, why);
    return oct_fail(r->ctx, OCT_ERR_ARG, "%s:%d:%d: %s", s->name, at ? at->line : 1,
                    at ? at->column : 1, why);
}

/* --- walking --- */

/* Is `path` under the group `prefix`? The rest of it, or NULL. */
static const char *under(const char *path, const char *prefix, size_t len)
{
    return strncmp(path, prefix, len) ? NULL : path + len;
}

static oct_status unknown_key(oct_recipe *r, const oct_recipe_source *s, const char *prefix,
                              const oct_tree *entry)
{
    const oct_tree at = {.line = entry->key_line, .column = entry->key_column};
    const size_t len = strlen(prefix);
    oct_hint hint;

    oct_hint_init(&hint, entry->key);
    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++) {
        const char *rest = under(oct_recipe_fields[i].path, prefix, len);

        if (rest) oct_hint_try(&hint, rest, strcspn(rest, "."));
    }
    if (!hint.best) /* in the wrong place? */
        for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++) {
            const char *path = oct_recipe_fields[i].path, *dot = strrchr(path, '.');

            if (!strcmp(dot ? dot + 1 : path, entry->key)) oct_hint_try(&hint, path, strlen(path));
            if (!strcmp(dot ? dot + 1 : path, entry->key) && !hint.best)
                return oct_recipe_fail(r, s, &at, "unknown key '%s%.100s'; '%s' is what there is",
                                       prefix, entry->key, path);
        }
    return oct_recipe_fail(r, s, &at, "unknown key '%s%.100s'%s", prefix, entry->key,
                           oct_hint_text(&hint));
}

/* Pictures and tensors: who says one no longer means the other that somebody else said. */
static oct_status choose_data(oct_recipe *r, const oct_recipe_source *s, int field,
                              const oct_tree *at, oct_origin origin)
{
    const int other = field == OCT_RECIPE_IMAGES ? OCT_RECIPE_DATA : OCT_RECIPE_IMAGES;

    if (r->origin[other] == origin)
        return oct_recipe_fail(r, s, at, "either images or data can be given, not both");
    if (r->origin[other] && other == OCT_RECIPE_IMAGES) {
        r->values.images = NULL;
        r->values.n_images = 0;
    }
    if (r->origin[other] && other == OCT_RECIPE_DATA) r->values.data_file = NULL;
    r->origin[other] = OCT_ORIGIN_NONE;
    return OCT_OK;
}

oct_status oct_recipe_apply_field(oct_recipe *r, const oct_recipe_source *s, int field,
                                  const oct_tree *value)
{
    const oct_field *f = &oct_recipe_fields[field];
    const oct_origin origin = s->is_option ? OCT_ORIGIN_WORD : OCT_ORIGIN_FILE;

    if (field == OCT_RECIPE_FAST_BIAS) field = OCT_RECIPE_BIAS_CORRECTION;
    if (oct_tree_is_null(value) && !s->is_option) return OCT_OK; /* said to be at its default */
    if (f->kind >= OCT_FIELD_LIST && (origin == OCT_ORIGIN_FILE || r->origin[field] != origin)) {
        char *array = (char *)&r->values + f->offset;

        *(const void **)(void *)array = NULL;
        *(int32_t *)(void *)(array + sizeof(void *)) = 0;
    }
    if (field == OCT_RECIPE_IMAGES || field == OCT_RECIPE_DATA)
        OCT_TRY(choose_data(r, s, field, value, origin));
    OCT_TRY(oct_value_read(r, s, f, &r->values, value));
    r->origin[field] = origin;
    return OCT_OK;
}

static oct_status apply_entry(oct_recipe *r, const oct_recipe_source *s, const char *prefix,
                              const oct_tree *entry);

static oct_status apply_group(oct_recipe *r, const oct_recipe_source *s, const char *prefix,
                              const oct_tree *map)
{
    if (oct_tree_is_null(map)) return OCT_OK;
    if (map->kind != OCT_TREE_MAP)
        return *prefix ? oct_recipe_fail(r, s, map, "'%.*s' has keys of its own, as {%s: ..}",
                                         (int)strlen(prefix) - 1, prefix,
                                         !strcmp(prefix, "data.")     ? "images"
                                         : !strcmp(prefix, "ranges.") ? "activations"
                                                                      : "names")
                       : oct_recipe_fail(r, s, map, "a recipe consists of keys with values");
    for (const oct_tree *t = map->first; t; t = t->next)
        OCT_TRY(apply_entry(r, s, prefix, t));
    return OCT_OK;
}

static oct_status apply_entry(oct_recipe *r, const oct_recipe_source *s, const char *prefix,
                              const oct_tree *entry)
{
    const size_t len = strlen(prefix), key_len = strlen(entry->key);
    char group[64];

    for (int i = 0; i < OCT_RECIPE_N_FIELDS && key_len; i++) {
        const char *rest = under(oct_recipe_fields[i].path, prefix, len);

        if (!rest || strncmp(rest, entry->key, key_len)) continue;
        if (rest[key_len] == '\0') return oct_recipe_apply_field(r, s, i, entry);
        if (rest[key_len] == '.') {
            (void)snprintf(group, sizeof(group), "%s%s.", prefix, entry->key);
            return apply_group(r, s, group, entry);
        }
    }
    return unknown_key(r, s, prefix, entry);
}

oct_status oct_recipe_apply(oct_recipe *r, const oct_recipe_source *s, const oct_tree *map)
{
    return apply_group(r, s, "", map);
}
