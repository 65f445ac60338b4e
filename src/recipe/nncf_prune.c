/* SPDX-License-Identifier: Apache-2.0 */
/* NNCF's filter_pruning, magnitude_sparsity and accuracy_aware_training, with NNCF's defaults. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "recipe/recipe.h"

/* --- what the algorithms share --- */

/* A key of theirs, and where its value goes. */
typedef struct rule {
    const char *key, *path; /* path NULL: read elsewhere */
    const char *usual;      /* NNCF's default, where octet's is another; NULL: octet's */
    const char *left_out;   /* why it has no meaning here; NULL: it has */
} rule;

static oct_status apply(oct_adapter *a, const oct_tree *map, const rule *rules, const char *what)
{
    for (const oct_tree *t = map && map->kind == OCT_TREE_MAP ? map->first : NULL; t; t = t->next) {
        const oct_tree at = {.line = t->key_line, .column = t->key_column};
        const rule *r = rules;
        char name[160];

        while (r->key && strcmp(r->key, t->key) != 0)
            r++;
        if (!r->key)
            return oct_recipe_fail(a->r, a->source, &at, "'%s' has no key '%.80s'", what, t->key);
        (void)snprintf(name, sizeof(name), "%s.%.80s", what, t->key);
        if (oct_tree_is_null(t)) continue;
        if (r->left_out) OCT_TRY(oct_adapter_left_out(a, name, r->left_out));
        if (!r->path || r->left_out) continue;
        OCT_TRY(oct_adapter_set(a, t, r->path, oct_tree_text(t)));
        OCT_TRY(oct_adapter_done(a, name, t, r->path));
    }
    for (; rules->key; rules++)
        if (rules->usual && oct_tree_is_null(oct_tree_get(map, rules->key)))
            OCT_TRY(oct_adapter_set(a, map ? map : a->out, rules->path, rules->usual));
    return OCT_OK;
}

/* Names as a pattern: "{re}X" is X, others are parts of a name between slashes or dots. */
static void put_scope(oct_str *b, const char *text)
{
    char path[512];

    if (b->len) oct_str_puts(b, "|");
    if (!strncmp(text, "{re}", 4)) {
        oct_str_printf(b, "(?:%s)", text + 4);
        return;
    }
    oct_scope_module_path(text, path, sizeof(path));
    oct_str_puts(b, "(?:^|[/.])");
    for (const char *p = strchr(text, '/') && *path ? path : text; *p; p++)
        if (*p == '/' || *p == '.')
            oct_str_puts(b, "[/.]");
        else
            oct_str_printf(b, strchr("\\^$|?*+()[]{}", *p) ? "\\%c" : "%c", *p);
    oct_str_puts(b, "(?:[/.]|$)");
}

static oct_status put_scopes(oct_adapter *a, oct_str *b, const oct_tree *t)
{
    const bool is_list = t && t->kind == OCT_TREE_LIST;

    if (oct_tree_is_null(t)) return OCT_OK;
    for (const oct_tree *e = is_list ? t->first : t; e; e = is_list ? e->next : NULL) {
        if (e->kind != OCT_TREE_SCALAR || !*e->text)
            return oct_recipe_fail(a->r, a->source, e, "'%s' wants names", t->key);
        put_scope(b, e->text);
    }
    return OCT_OK;
}

/* Scopes of the algorithm and of the whole config, as one pattern at `path`. */
static oct_status read_scopes(oct_adapter *a, const oct_tree *algorithm, const oct_tree *config,
                              const char *key, const char *path)
{
    const oct_tree *own = oct_tree_get(algorithm, key), *all = oct_tree_get(config, key);
    oct_status st;
    oct_str b;

    oct_str_init(&b, a->r->ctx);
    st = put_scopes(a, &b, own);
    if (!st) st = put_scopes(a, &b, all);
    if (!st && b.failed) st = OCT_ERR_MEMORY;
    if (!st && b.len) {
        st = oct_adapter_set(a, own ? own : all, path, b.s);
        if (!st) st = oct_adapter_done(a, key, NULL, path);
    }
    oct_str_fini(&b);
    return st;
}

/* --- filter_pruning --- */

static const rule pruning_keys[] = {
    {"algorithm", NULL, NULL, NULL},
    {"params", NULL, NULL, NULL},
    {"initializer", NULL, NULL, NULL},
    {"ignored_scopes", NULL, NULL, NULL},
    {"target_scopes", NULL, NULL, NULL},
    {"pruning_init", "prune.initial", NULL, NULL},
    {"compression_lr_multiplier", NULL, NULL, "pruning learns nothing of its own"},
    {0},
};

static const rule pruning_params[] = {
    {"pruning_target", NULL, NULL, NULL},
    {"pruning_flops_target", NULL, NULL, NULL},
    {"filter_importance", NULL, NULL, NULL},
    {"pruning_steps", "prune.epochs", "100", NULL},
    {"num_init_steps", "prune.start", NULL, NULL},
    {"schedule", "prune.schedule", "exponential", NULL},
    {"all_weights", "prune.global", NULL, NULL},
    {"prune_first_conv", NULL, NULL, NULL},
    {"prune_downsample_convs", NULL, NULL, NULL},
    {"prune_batch_norms", NULL, NULL, NULL},
    {"interlayer_ranking_type", NULL, NULL, NULL},
    {"legr_params", NULL, NULL, "of learned_ranking"},
    {"save_ranking_coeffs_path", NULL, NULL, "of learned_ranking"},
    {"load_ranking_coeffs_path", NULL, NULL, "of learned_ranking"},
    {0},
};

static oct_status read_target(oct_adapter *a, const oct_tree *q, const oct_tree *params)
{
    const oct_tree *flops = oct_tree_get(params, "pruning_flops_target");
    const oct_tree *channels = oct_tree_get(params, "pruning_target");

    if (!oct_tree_is_null(flops)) {
        if (!oct_tree_is_null(channels))
            return oct_recipe_fail(a->r, a->source, flops,
                                   "either 'pruning_target' or 'pruning_flops_target', not both");
        OCT_TRY(oct_adapter_set(a, flops, "prune.flops_target", oct_tree_text(flops)));
        return oct_adapter_done(a, "pruning_flops_target", flops, "prune.flops_target");
    }
    if (oct_tree_is_null(channels)) return oct_adapter_set(a, q, "prune.channels", "0.5");
    OCT_TRY(oct_adapter_set(a, channels, "prune.channels", oct_tree_text(channels)));
    return oct_adapter_done(a, "pruning_target", channels, "prune.channels");
}

static oct_status read_importance(oct_adapter *a, const oct_tree *q, const oct_tree *params)
{
    const oct_tree *t = oct_tree_get(params, "filter_importance");
    const char *text = oct_tree_text(t);

    if (oct_tree_is_null(t)) return oct_adapter_set(a, q, "prune.importance", "l2");
    OCT_TRY(oct_adapter_set(a, t, "prune.importance",
                            !strcmp(text, "L1")   ? "l1"
                            : !strcmp(text, "L2") ? "l2"
                                                  : text));
    return oct_adapter_done(a, "filter_importance", t, "prune.importance");
}

/* true and false of theirs, the other way round here. */
static oct_status read_kept(oct_adapter *a, const oct_tree *q, const oct_tree *params,
                            const char *key, const char *path)
{
    const oct_tree *t = oct_tree_get(params, key);
    const bool goes = !strcasecmp(oct_tree_text(t), "true");

    if (!oct_tree_is_null(t) && !goes && strcasecmp(oct_tree_text(t), "false") != 0)
        return oct_recipe_fail(a->r, a->source, t, "'%s' is true or false", key);
    return oct_adapter_set(a, t ? t : q, path, goes ? "false" : "true");
}

static oct_status refuse_others(oct_adapter *a, const oct_tree *params)
{
    const oct_tree *rank = oct_tree_get(params, "interlayer_ranking_type");
    const oct_tree *norms = oct_tree_get(params, "prune_batch_norms");

    if (!oct_tree_is_null(rank) && strcmp(oct_tree_text(rank), "unweighted_ranking") != 0)
        return oct_recipe_fail(a->r, a->source, rank,
                               "octet has no interlayer_ranking_type '%.60s', but "
                               "unweighted_ranking; with 'all_weights' layers compete",
                               oct_tree_text(rank));
    if (!oct_tree_is_null(norms) && strcasecmp(oct_tree_text(norms), "true") != 0)
        return oct_recipe_fail(a->r, a->source, norms,
                               "prune_batch_norms cannot be false: a channel that is cut out of "
                               "the network has no norm");
    return OCT_OK;
}

oct_status oct_nncf_pruning(oct_adapter *a, const oct_tree *q, const oct_tree *config)
{
    const oct_tree *params = oct_tree_get(q, "params");

    if (!oct_tree_is_null(params) && params->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, params, "'params' wants keys with values");
    OCT_TRY(oct_adapter_append(a, q, "compress", "prune"));
    OCT_TRY(refuse_others(a, params));
    OCT_TRY(apply(a, q, pruning_keys, "filter_pruning"));
    OCT_TRY(apply(a, params, pruning_params, "params"));
    OCT_TRY(read_target(a, q, params));
    OCT_TRY(read_importance(a, q, params));
    OCT_TRY(read_kept(a, q, params, "prune_first_conv", "prune.keep_first"));
    OCT_TRY(read_kept(a, q, params, "prune_downsample_convs", "prune.keep_strided"));
    OCT_TRY(read_scopes(a, q, config, "ignored_scopes", "prune.keep"));
    OCT_TRY(read_scopes(a, q, config, "target_scopes", "prune.only"));
    return oct_nncf_adaptation(a, oct_tree_get(q, "initializer"), config);
}

/* --- magnitude_sparsity, const_sparsity --- */

static const rule sparsity_keys[] = {
    {"algorithm", NULL, NULL, NULL},
    {"params", NULL, NULL, NULL},
    {"initializer", NULL, NULL, NULL},
    {"ignored_scopes", NULL, NULL, NULL},
    {"target_scopes", NULL, NULL, NULL},
    {"sparsity_init", "sparsity.initial", NULL, NULL},
    {"compression_lr_multiplier", NULL, NULL, "sparsity learns nothing of its own"},
    {0},
};

static const rule sparsity_params[] = {
    {"schedule", NULL, NULL, NULL},
    {"sparsity_target", "sparsity.level", NULL, NULL},
    {"sparsity_target_epoch", "sparsity.epochs", NULL, NULL},
    {"sparsity_freeze_epoch", NULL, NULL, "the share does not change after its last epoch"},
    {"power", "sparsity.power", NULL, NULL},
    {"concave", NULL, NULL, NULL},
    {"multistep_steps", NULL, NULL, NULL},
    {"multistep_sparsity_levels", NULL, NULL, NULL},
    {"sparsity_level_setting_mode", NULL, NULL, NULL},
    {"weight_importance", NULL, NULL, NULL},
    {"update_per_optimizer_step", NULL, NULL, NULL},
    {"steps_per_epoch", NULL, NULL, "the share grows from epoch to epoch"},
    {"patience", NULL, NULL, "of the schedule adaptive"},
    {0},
};

/* NNCF's level k holds from step k - 1 on: [.3, .5], [40] is .3 from 0, .5 from 40. */
static oct_status read_multistep(oct_adapter *a, const oct_tree *q, const oct_tree *params)
{
    const oct_tree *steps = oct_tree_get(params, "multistep_steps");
    const oct_tree *levels = oct_tree_get(params, "multistep_sparsity_levels");
    const oct_tree *step = steps && steps->kind == OCT_TREE_LIST ? steps->first : NULL;
    const oct_tree *at = levels ? levels : q;
    char text[96];

    if (!levels) { /* NNCF's defaults */
        OCT_TRY(oct_adapter_append(a, q, "sparsity.levels", "0:0.1"));
        return oct_adapter_append(a, q, "sparsity.levels", "90:0.5");
    }
    if (levels->kind != OCT_TREE_LIST || levels->n != (steps ? steps->n : 1) + 1)
        return oct_recipe_fail(a->r, a->source, at,
                               "multistep_sparsity_levels are one more than multistep_steps");
    for (const oct_tree *l = levels->first; l; l = l->next) {
        (void)snprintf(text, sizeof(text), "%.40s:%.40s",
                       l == levels->first ? "0"
                       : step             ? oct_tree_text(step)
                                          : "90",
                       oct_tree_text(l));
        if (l != levels->first && step) step = step->next;
        OCT_TRY(oct_adapter_append(a, l, "sparsity.levels", text));
    }
    return oct_adapter_done(a, "multistep_sparsity_levels", NULL, "sparsity.levels");
}

static oct_status one_of(oct_adapter *a, const oct_tree *params, const char *key,
                         const char *allowed, const char *other)
{
    const oct_tree *t = oct_tree_get(params, key);

    if (oct_tree_is_null(t) || !strcasecmp(oct_tree_text(t), allowed) ||
        (other && !strcasecmp(oct_tree_text(t), other)))
        return OCT_OK;
    return oct_recipe_fail(a->r, a->source, t, "octet has no %s '%.60s', but %s%s%s", key,
                           oct_tree_text(t), allowed, other ? ", " : "", other ? other : "");
}

static oct_status read_sparsity_schedule(oct_adapter *a, const oct_tree *q, const oct_tree *params)
{
    const oct_tree *t = oct_tree_get(params, "schedule");
    const char *name = oct_tree_is_null(t) ? "polynomial" : oct_tree_text(t);

    if (!strcmp(name, "multistep")) return read_multistep(a, q, params);
    if (strcmp(name, "polynomial") != 0 && strcmp(name, "exponential") != 0)
        return oct_recipe_fail(a->r, a->source, t,
                               "octet has no sparsity schedule '%.60s', but polynomial, "
                               "exponential, multistep",
                               name);
    OCT_TRY(oct_adapter_set(a, t ? t : q, "sparsity.schedule", name));
    if (!oct_tree_get(params, "sparsity_target"))
        OCT_TRY(oct_adapter_set(a, q, "sparsity.level", "0.5"));
    if (!oct_tree_get(params, "sparsity_target_epoch"))
        OCT_TRY(oct_adapter_set(a, q, "sparsity.epochs", "90"));
    return oct_adapter_done(a, "schedule", t, "sparsity.schedule");
}

oct_status oct_nncf_sparsity(oct_adapter *a, const oct_tree *q, const oct_tree *config)
{
    const oct_tree *params = oct_tree_get(q, "params");
    const bool is_const = !strcmp(oct_tree_text(oct_tree_get(q, "algorithm")), "const_sparsity");
    const oct_tree *mode;

    if (!oct_tree_is_null(params) && params->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, params, "'params' wants keys with values");
    OCT_TRY(oct_adapter_append(a, q, "compress", "sparsity"));
    OCT_TRY(apply(a, q, sparsity_keys, oct_tree_text(oct_tree_get(q, "algorithm"))));
    OCT_TRY(read_scopes(a, q, config, "ignored_scopes", "sparsity.keep"));
    OCT_TRY(read_scopes(a, q, config, "target_scopes", "sparsity.only"));
    OCT_TRY(oct_nncf_adaptation(a, oct_tree_get(q, "initializer"), config));
    if (is_const) return oct_adapter_set(a, q, "sparsity.zeros", "true");
    OCT_TRY(apply(a, params, sparsity_params, "params"));
    OCT_TRY(one_of(a, params, "weight_importance", "normed_abs", NULL));
    OCT_TRY(one_of(a, params, "concave", "true", NULL));
    OCT_TRY(one_of(a, params, "update_per_optimizer_step", "false", NULL));
    OCT_TRY(one_of(a, params, "sparsity_level_setting_mode", "global", "local"));
    mode = oct_tree_get(params, "sparsity_level_setting_mode");
    if (!strcmp(oct_tree_text(mode), "local"))
        OCT_TRY(oct_adapter_set(a, mode, "sparsity.local", "true"));
    return read_sparsity_schedule(a, q, params);
}

/* --- accuracy_aware_training --- */

static const rule aware_params[] = {
    {"maximal_relative_accuracy_degradation", "train.max_relative_drop", NULL, NULL},
    {"maximal_absolute_accuracy_degradation", NULL, NULL, NULL},
    {"maximal_total_epochs", "train.epochs", NULL, NULL},
    {"initial_training_phase_epochs", NULL, NULL, "of the mode adaptive_compression_level"},
    {"patience_epochs", NULL, NULL, "of the mode adaptive_compression_level"},
    {"initial_compression_rate_step", NULL, NULL, "of the mode adaptive_compression_level"},
    {"compression_rate_step_reduction_factor", NULL, NULL,
     "of the mode adaptive_compression_level"},
    {"lr_reduction_factor", NULL, NULL, "of the mode adaptive_compression_level"},
    {"minimal_compression_rate_step", NULL, NULL, "of the mode adaptive_compression_level"},
    {"steps_reduction_factor", NULL, NULL, "of the mode adaptive_compression_level"},
    {0},
};

oct_status oct_nncf_accuracy_aware(oct_adapter *a, const oct_tree *t)
{
    const oct_tree *mode = oct_tree_get(t, "mode"), *params = oct_tree_get(t, "params");
    const oct_tree *drop = oct_tree_get(params, "maximal_absolute_accuracy_degradation");

    if (oct_tree_is_null(t)) return OCT_OK;
    if (strcmp(oct_tree_text(mode), "early_exit") != 0)
        return oct_recipe_fail(a->r, a->source, mode ? mode : t,
                               "octet has no accuracy_aware_training in the mode '%.60s', but "
                               "early_exit",
                               oct_tree_text(mode));
    OCT_TRY(apply(a, params, aware_params, "accuracy_aware_training"));
    if (!oct_tree_is_null(drop)) {
        /* NNCF compares metrics in percent. */
        char text[40];

        (void)snprintf(text, sizeof(text), "%.9g", strtod(oct_tree_text(drop), NULL) / 100);
        OCT_TRY(oct_adapter_set(a, drop, "train.max_drop", text));
        OCT_TRY(oct_adapter_done(a, drop->key, drop, "train.max_drop, of 100"));
    } else if (oct_tree_is_null(oct_tree_get(params, "maximal_relative_accuracy_degradation"))) {
        OCT_TRY(oct_adapter_set(a, t, "train.max_relative_drop", "1"));
    }
    return OCT_OK;
}
