/* SPDX-License-Identifier: Apache-2.0 */
/* NNCF's config files, as its releases up to 2.19 read them, with the spellings before 1.5 too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipe/recipe.h"

static oct_status need_map(oct_adapter *a, const oct_tree *t, const char *what)
{
    if (oct_tree_is_null(t) || t->kind == OCT_TREE_MAP) return OCT_OK;
    return oct_recipe_fail(a->r, a->source, t, "'%s' wants keys with values", what);
}

static oct_status read_range_type(oct_adapter *a, const oct_tree *range)
{
    static const struct {
        const char *theirs, *ours;
    } types[] = {{"min_max", "minmax"},
                 {"minmax", "minmax"},
                 {"mixed_min_max", "mean_minmax"},
                 {"mean_min_max", "mean_minmax"},
                 {"percentile", "percentile"},
                 {"mean_percentile", "percentile"}};
    const oct_tree *type = oct_tree_get(range, "type"), *params = oct_tree_get(range, "params");
    const oct_tree *high = oct_tree_get(params, "max_percentile");
    char meaning[96];

    if (oct_tree_is_null(type)) return OCT_OK;
    for (size_t i = 0; i < OCT_COUNT(types); i++)
        if (!strcmp(oct_tree_text(type), types[i].theirs)) {
            OCT_TRY(oct_adapter_set(a, type, "ranges.activations", types[i].ours));
            if (high) OCT_TRY(oct_adapter_set(a, high, "ranges.percentile", oct_tree_text(high)));
            (void)snprintf(meaning, sizeof(meaning), "ranges.activations %s%s%.20s", types[i].ours,
                           high ? ", percentile " : "", oct_tree_text(high));
            return oct_adapter_done(a, "initializer.range.type", type, meaning);
        }
    return oct_adapter_left_out(a, "initializer.range.type", "ranges of this type are not there");
}

static oct_status read_range(oct_adapter *a, const oct_tree *range, const oct_tree *config)
{
    const oct_tree *samples = oct_tree_get(range, "num_init_samples");
    const oct_tree *steps = oct_tree_get(range, "num_init_steps");
    char n[32], meaning[96];

    if (oct_tree_is_null(range)) return OCT_OK;
    if (range->kind != OCT_TREE_MAP)
        return oct_adapter_left_out(a, "initializer.range", "a list of several settings");
    if (!oct_tree_is_null(samples)) {
        OCT_TRY(oct_adapter_set(a, samples, "data.subset_size", oct_tree_text(samples)));
        OCT_TRY(
            oct_adapter_done(a, "initializer.range.num_init_samples", samples, "data.subset_size"));
    } else if (!oct_tree_is_null(steps)) {
        const long batches = strtol(oct_tree_text(steps), NULL, 10),
                   batch = oct_nncf_batch(a, config);

        if (batches < 1 || batches > 1000000 || batch > 1000)
            return oct_recipe_fail(a->r, a->source, steps,
                                   "'num_init_steps' wants a number above 0");
        (void)snprintf(n, sizeof(n), "%ld", batches * batch);
        (void)snprintf(meaning, sizeof(meaning), "data.subset_size %s, batches of %ld", n, batch);
        OCT_TRY(oct_adapter_set(a, steps, "data.subset_size", n));
        OCT_TRY(oct_adapter_done(a, "initializer.range.num_init_steps", steps, meaning));
    }
    return read_range_type(a, range);
}

/* Bits of each layer by search: what it finds is not what octet would give. */
static oct_status refuse_precision(oct_adapter *a, const oct_tree *t)
{
    const char *type = oct_tree_text(oct_tree_get(t, "type"));

    return oct_recipe_fail(a->r, a->source, t,
                           "initializer.precision (%.40s): octet does not search for bits; "
                           "'scope_overrides' or octet's 'overrides' set them",
                           *type ? type : "HAWQ, AutoQ");
}

static oct_status read_initializer(oct_adapter *a, const oct_tree *init, const oct_tree *config)
{
    OCT_TRY(need_map(a, init, "initializer"));
    if (!init || init->kind != OCT_TREE_MAP) return OCT_OK;
    OCT_TRY(read_range(a, oct_tree_get(init, "range"), config));
    OCT_TRY(oct_nncf_adaptation(a, init, config));
    for (const oct_tree *t = init->first; t; t = t->next) {
        char what[128];

        if (!strcmp(t->key, "range") || !strcmp(t->key, "batchnorm_adaptation")) continue;
        if (!strcmp(t->key, "precision") && !oct_tree_is_null(t)) return refuse_precision(a, t);
        (void)snprintf(what, sizeof(what), "initializer.%.80s", t->key);
        OCT_TRY(oct_adapter_left_out(a, what, "of no meaning here"));
    }
    return OCT_OK;
}

/* "weights" or "activations": {mode, bits, per_channel, ..} */
static oct_status read_side(oct_adapter *a, const oct_tree *side, bool is_weights)
{
    const char *name = is_weights ? "weights" : "activations";
    char what[128];

    OCT_TRY(need_map(a, side, name));
    for (const oct_tree *t = side && side->kind == OCT_TREE_MAP ? side->first : NULL; t;
         t = t->next) {
        (void)snprintf(what, sizeof(what), "%s.%.80s", name, t->key);
        if (oct_tree_is_null(t)) continue;
        if (!strcmp(t->key, "bits")) {
            const bool is_usual = !strcmp(oct_tree_text(t), "8");

            OCT_TRY(oct_adapter_done(
                a, what, t, is_usual ? "what the target has" : "an override for all layers"));
            if (!is_usual)
                OCT_TRY(oct_adapter_override(a, t, is_weights ? "weight_bits" : "activation_bits",
                                             oct_tree_text(t)));
        } else if (!strcmp(t->key, "mode") && !is_weights) {
            OCT_TRY(oct_adapter_override(a, t, "symmetric",
                                         strcmp(oct_tree_text(t), "symmetric") ? "false" : "true"));
            OCT_TRY(oct_adapter_done(a, what, t, "an override for all layers"));
        } else if (!strcmp(t->key, "per_channel") && is_weights &&
                   !strcmp(oct_tree_text(t), "false")) {
            OCT_TRY(oct_adapter_override(a, t, "per_tensor", "true"));
            OCT_TRY(oct_adapter_done(a, what, t, "an override for all layers"));
        } else {
            OCT_TRY(oct_adapter_left_out(a, what, "the target decides"));
        }
    }
    return OCT_OK;
}

/* What one scope of scope_overrides says of its weights or activations. */
static oct_status read_override(oct_adapter *a, const oct_tree *scope, const char *side)
{
    const bool is_weights = !strcmp(side, "weights");
    const oct_tree *bits = oct_tree_get(scope, "bits"), *mode = oct_tree_get(scope, "mode");
    const oct_tree *channels = oct_tree_get(scope, "per_channel");
    char what[160];
    int n = 0;

    (void)snprintf(what, sizeof(what), "scope_overrides.%s.%.100s", side, scope->key);
    if (scope->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, scope, "'%s' wants keys with values", what);
    if (!oct_tree_is_null(bits) && ++n)
        OCT_TRY(oct_adapter_override_at(a, bits, scope->key,
                                        is_weights ? "weight_bits" : "activation_bits",
                                        oct_tree_text(bits)));
    if (!oct_tree_is_null(mode) && !is_weights && ++n)
        OCT_TRY(
            oct_adapter_override_at(a, mode, scope->key, "symmetric",
                                    strcmp(oct_tree_text(mode), "symmetric") ? "false" : "true"));
    if (is_weights && !strcasecmp(oct_tree_text(channels), "false") && ++n)
        OCT_TRY(oct_adapter_override_at(a, channels, scope->key, "per_tensor", "true"));
    if (!n) return oct_adapter_left_out(a, what, "the target decides");
    return oct_recipe_add_note(a->r, "%s: %d override%s", what, n, n == 1 ? "" : "s");
}

static oct_status read_overrides(oct_adapter *a, const oct_tree *t)
{
    static const char *const sides[] = {"weights", "activations"};

    OCT_TRY(need_map(a, t, "scope_overrides"));
    for (size_t i = 0; i < OCT_COUNT(sides); i++) {
        const oct_tree *side = oct_tree_get(t, sides[i]);

        OCT_TRY(need_map(a, side, sides[i]));
        for (const oct_tree *e = side ? side->first : NULL; e; e = e->next)
            OCT_TRY(read_override(a, e, sides[i]));
    }
    return OCT_OK;
}

oct_status oct_nncf_quantization(oct_adapter *a, const oct_tree *q, const oct_tree *config)
{
    static const oct_adapter_rule rules[] = {
        {"preset", NULL, "preset", NULL, NULL, false},
        {"overflow_fix", NULL, "overflow_fix", NULL, NULL, false},
        {"quantize_inputs", "true", NULL, NULL, "what octet does", true},
        {"quantize_outputs", "false", NULL, NULL, "what octet does", true},
        {"quantize_outputs", NULL, NULL, NULL,
         "outputs stay float; int8_io makes them integer tensors", false},
        {"export_to_onnx_standard_ops", NULL, NULL, NULL,
         "QuantizeLinear and DequantizeLinear are written", true},
        {"params", NULL, NULL, NULL, "a schedule of training", false},
        {0}};
    static const char *const read[] = {"algorithm",
                                       "ignored_scopes",
                                       "target_scopes",
                                       "initializer",
                                       "weights",
                                       "activations",
                                       "compression_lr_multiplier",
                                       "scope_overrides",
                                       NULL};

    OCT_TRY(oct_adapter_scopes(a, oct_tree_get(q, "ignored_scopes"), "ignored_scopes",
                               "ignored_scope"));
    OCT_TRY(oct_adapter_scopes(a, oct_tree_get(q, "target_scopes"), "target_scopes", "only_scope"));
    OCT_TRY(read_initializer(a, oct_tree_get(q, "initializer"), config));
    OCT_TRY(oct_adapter_append(a, q, "compress", "quantize"));
    OCT_TRY(read_side(a, oct_tree_get(q, "weights"), true));
    OCT_TRY(read_side(a, oct_tree_get(q, "activations"), false));
    OCT_TRY(read_overrides(a, oct_tree_get(q, "scope_overrides")));
    if (oct_tree_get(q, "compression_lr_multiplier"))
        OCT_TRY(oct_adapter_left_out(a, "compression_lr_multiplier", "only training needs it"));
    return oct_adapter_rules(a, q, "quantization", rules, read, "the target decides");
}
