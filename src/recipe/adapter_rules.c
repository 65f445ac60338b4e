/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of what another tool's keys become, and how other tools spell names of their own. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipe/recipe.h"

const char *oct_adapter_word(const oct_tree *t)
{
    const char *text = oct_tree_text(t), *dot = strrchr(text, '.');

    /* an enumeration's member, "QuantizationPreset.MIXED", but no number */
    return dot && isalpha((unsigned char)text[0]) && isalpha((unsigned char)dot[1]) ? dot + 1
                                                                                    : text;
}

static bool fits(const oct_adapter_rule *rule, const oct_tree *t)
{
    if (strcmp(rule->key, t->key) != 0) return false;
    return !rule->value || !strcasecmp(rule->value, oct_adapter_word(t));
}

static oct_status apply_rule(oct_adapter *a, const oct_adapter_rule *rule, const oct_tree *t,
                             const char *name)
{
    const char *word = rule->word ? rule->word : oct_adapter_word(t);
    char meaning[128];

    if (!rule->path && rule->is_done) return oct_adapter_done(a, name, t, rule->why);
    if (!rule->path) return oct_adapter_left_out(a, name, rule->why);
    if (t->kind != OCT_TREE_SCALAR)
        return oct_recipe_fail(a->r, a->source, t, "'%s' wants one value", name);
    OCT_TRY(oct_adapter_set(a, t, rule->path, word));
    (void)snprintf(meaning, sizeof(meaning), "%s %.60s", rule->path, word);
    return oct_adapter_done(a, name, t, meaning);
}

static bool is_listed(const char *const *list, const char *key)
{
    for (; list && *list; list++)
        if (!strcmp(*list, key)) return true;
    return false;
}

oct_status oct_adapter_rules(oct_adapter *a, const oct_tree *map, const char *prefix,
                             const oct_adapter_rule *rules, const char *const *others,
                             const char *why)
{
    if (oct_tree_is_null(map)) return OCT_OK;
    if (map->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, map, "'%s' wants keys with values", prefix);
    for (const oct_tree *t = map->first; t; t = t->next) {
        const oct_adapter_rule *rule = rules;
        char name[192];

        if (oct_tree_is_null(t) || is_listed(others, t->key)) continue;
        if (!*prefix && oct_recipe_has_key(t->key)) continue;
        (void)snprintf(name, sizeof(name), "%s%s%.100s", prefix, *prefix ? "." : "", t->key);
        while (rule->key && !fits(rule, t))
            rule++;
        if (rule->key)
            OCT_TRY(apply_rule(a, rule, t, name));
        else
            OCT_TRY(oct_adapter_left_out(a, name, why));
    }
    return OCT_OK;
}

/* --- lists and numbers --- */

oct_status oct_adapter_scopes(oct_adapter *a, const oct_tree *t, const char *what,
                              const char *scope)
{
    int n = 0;

    if (oct_tree_is_null(t)) return OCT_OK;
    for (const oct_tree *e = t->kind == OCT_TREE_LIST ? t->first : t; e;
         e = t->kind == OCT_TREE_LIST ? e->next : NULL, n++) {
        if (e->kind != OCT_TREE_SCALAR)
            return oct_recipe_fail(a->r, a->source, e, "'%s' wants names", what);
        OCT_TRY(oct_adapter_scope(a, e, scope, e->text));
    }
    return oct_recipe_add_note(a->r, "%s: %s, %d entr%s", what, scope, n, n == 1 ? "y" : "ies");
}

oct_status oct_adapter_shape(oct_adapter *a, const oct_tree *t, const char *what)
{
    char text[128] = "";
    size_t at = 0;

    if (oct_tree_is_null(t)) return OCT_OK;
    if (t->kind != OCT_TREE_LIST || !t->first)
        return oct_recipe_fail(a->r, a->source, t, "'%s' wants a list of sizes", what);
    for (const oct_tree *e = t->first; e; e = e->next) {
        const long n = strtol(oct_tree_text(e), NULL, 10);

        if (n < 1 || n > 1000000 || at + 12 > sizeof(text))
            return oct_recipe_fail(a->r, a->source, e, "'%s' wants sizes above 0", what);
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%ld", at ? "x" : "", n);
    }
    OCT_TRY(oct_adapter_set(a, t, "sample_size", text));
    return oct_recipe_add_note(a->r, "%s: sample_size %s, where the network leaves it open", what,
                               text);
}

/* --- platforms --- */

static const struct {
    const char *theirs, *ours; /* NULL: not there */
} platforms[] = {{"TRT_INT8", "tensorrt"}, {"TENSORRT", "tensorrt"},
                 {"TRT", "tensorrt"},      {"OPENVINO_INT8", "openvino"},
                 {"OPENVINO", "openvino"}, {"ONNXRUNTIME", "ort"},
                 {"ONNX", "ort"},          {"ONNXRT", "ort"},
                 {"ORT_OOS_INT8", "ort"},  {"FPGA_INT8", "npu-pow2"},
                 {"101", "tensorrt"},      {"103", "openvino"},
                 {"502", "npu-pow2"}};

const char *oct_platform_target(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(platforms); i++)
        if (!strcasecmp(platforms[i].theirs, name)) return platforms[i].ours;
    return NULL;
}
