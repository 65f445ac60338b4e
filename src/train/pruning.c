/* SPDX-License-Identifier: Apache-2.0 */
/* Masks that grow from epoch to epoch: see pruning.h. */
#include "train/pruning.h"

#include <string.h>

#include "base/map.h"
#include "op/axes.h"
#include "prune/groups.h"
#include "prune/schedule.h"

struct oct_pruning {
    oct_ctx *ctx;
    oct_graph *g; /* a copy, whose constants follow the weights */
    oct_channels *c;
    oct_prune_groups groups;
    oct_prune_options o;
    const oct_prune_schedule *schedule;
    double initial, target;
    int32_t steps, start;
    int32_t *param; /* of each cut; -1: not looked for yet, -2: it is none */
};

/* --- making --- */

static double *target_of(oct_prune_options *o)
{
    return o->flops_target > 0    ? &o->flops_target
           : o->params_target > 0 ? &o->params_target
                                  : &o->channels;
}

static oct_status check(oct_ctx *ctx, const oct_train_pruning *o, const oct_prune_options *prune)
{
    OCT_TRY(oct_prune_check(ctx, prune));
    if (prune->time_target > 0 || prune->zeros)
        return oct_fail(ctx, OCT_ERR_ARG,
                        "pruning while training needs a target of flops, params or channels");
    if (o->schedule && !oct_prune_schedule_find(o->schedule))
        return oct_fail(ctx, OCT_ERR_ARG,
                        "schedule of pruning '%s' is not known: exponential, "
                        "exponential_with_bias, baseline",
                        o->schedule);
    if (o->steps < 0 || o->start < 0 || !(o->initial >= 0 && o->initial < 1))
        return oct_fail(ctx, OCT_ERR_ARG, "epochs and share to start with must not be negative");
    return OCT_OK;
}

/* Constants of the copy get memory of their own, which weights are copied to. */
static oct_status own_constants(oct_pruning *p)
{
    for (int32_t i = 0; i < p->c->n_cuts; i++) {
        oct_value *v = p->c->cuts[i].value;
        oct_tensor *t = NULL;

        p->param[i] = -1;
        OCT_TRY(oct_tensor_copy(p->ctx, v->data, &t));
        oct_tensor_unref(v->data);
        v->data = t;
    }
    return OCT_OK;
}

static bool is_taylor(const oct_pruning *p)
{
    return strcmp(p->o.importance, "taylor") == 0;
}

static oct_status build(oct_pruning *p, const oct_graph *g, const oct_train_pruning *o)
{
    const char *name = o->schedule ? o->schedule : oct_prune_schedule_name(0);

    OCT_TRY(check(p->ctx, o, &p->o));
    OCT_TRY(oct_prune_prepare(g, &p->g));
    OCT_TRY(oct_channels_find(p->g, &p->c));
    OCT_TRY(oct_prune_groups_find(p->c, &p->groups));
    OCT_TRY(oct_prune_groups_protect(&p->groups, &p->o));
    p->schedule = oct_prune_schedule_find(name);
    p->target = *target_of(&p->o);
    p->initial = o->initial < p->target ? o->initial : p->target;
    p->steps = OCT_MAX(o->steps, 1);
    p->start = o->start;
    p->o.keep = p->o.only = NULL; /* the caller's */
    p->o.importance = oct_arena_strdup(p->c->arena, p->o.importance);
    p->param = oct_arena_array(p->c->arena, (size_t)p->c->n_cuts + 1, sizeof(*p->param));
    if (!p->o.importance || !p->param) return OCT_ERR_MEMORY;
    OCT_TRY(own_constants(p));
    /* A target that cannot be met is told now, not after the last epoch. */
    OCT_TRY(oct_prune_score(&p->groups, is_taylor(p) ? "l2" : p->o.importance, NULL));
    return oct_prune_choose(&p->groups, &p->o);
}

oct_status oct_pruning_new(const oct_graph *g, const oct_train_pruning *options, oct_pruning **out)
{
    oct_train_pruning o = {.struct_size = sizeof(o)};
    oct_pruning *p = oct_calloc(g->ctx, 1, sizeof(*p));
    oct_status st;

    *out = NULL;
    if (!p) return OCT_ERR_MEMORY;
    p->ctx = g->ctx;
    memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    oct_prune_options_init(&p->o);
    if (o.prune) memcpy(&p->o, o.prune, OCT_MIN(o.prune->struct_size, sizeof(p->o)));
    st = build(p, g, &o);
    if (st)
        oct_pruning_free(p);
    else
        *out = p;
    return st;
}

void oct_pruning_free(oct_pruning *p)
{
    if (!p) return;
    oct_channels_free(p->c);
    oct_graph_free(p->g);
    oct_free(p->ctx, p);
}

/* --- epochs --- */

/* Parameters are found by the names of the constants they were. */
static oct_status find_params(oct_pruning *p, const oct_params *params)
{
    oct_map map;
    oct_status st = OCT_OK;

    if (p->c->n_cuts < 1 || p->param[0] != -1) return OCT_OK;
    oct_map_init(&map, p->ctx);
    for (int32_t i = 0; i < params->n && !st; i++)
        st = oct_map_put(&map, params->v[i].name, &params->v[i]);
    for (int32_t i = 0; i < p->c->n_cuts && !st; i++) {
        const oct_value *v = p->c->cuts[i].value;
        const oct_param *found = oct_map_get(&map, v->name);

        p->param[i] =
            found && found->len == oct_tensor_len(v->data) && v->data->type.dtype == OCT_DTYPE_F32
                ? (int32_t)(found - params->v)
                : -2;
    }
    oct_map_fini(&map);
    return st;
}

static void read_weights(const oct_pruning *p, const oct_params *params, const float *weights)
{
    for (int32_t i = 0; i < p->c->n_cuts; i++) {
        const oct_param *v = p->param[i] >= 0 ? &params->v[p->param[i]] : NULL;

        if (v)
            memcpy(p->c->cuts[i].value->data->data, weights + v->offset,
                   (size_t)v->len * sizeof(float));
    }
}

/* What goes in this epoch. */
static double level_of(const oct_pruning *p, int64_t epoch)
{
    const int32_t e = (int32_t)OCT_MIN(epoch - p->start, INT32_MAX);

    return e < 0 ? 0 : oct_prune_schedule_level(p->schedule, p->initial, p->target, p->steps, e);
}

static bool is_decided(const oct_pruning *p, int64_t epoch, bool is_begun)
{
    return is_begun || epoch - p->start >= p->steps;
}

bool oct_pruning_wants_gradients(const oct_pruning *p, int64_t epoch, bool is_begun)
{
    return is_taylor(p) && !is_decided(p, epoch, is_begun) && level_of(p, epoch) > 0;
}

oct_status oct_pruning_epoch(oct_pruning *p, const oct_params *params, const float *weights,
                             const oct_prune_gradients *gradients, int64_t epoch, bool is_begun)
{
    const double level = level_of(p, epoch);

    OCT_TRY(find_params(p, params));
    read_weights(p, params, weights);
    if (is_decided(p, epoch, is_begun)) return oct_prune_choose_zeros(&p->groups);
    if (level <= 0) {
        for (int32_t i = 0; i < p->c->n_units; i++)
            p->groups.keep[i] = true;
        return OCT_OK;
    }
    *target_of(&p->o) = level;
    OCT_TRY(oct_prune_score(&p->groups, p->o.importance, gradients));
    return oct_prune_choose(&p->groups, &p->o);
}

bool oct_pruning_is_done(const oct_pruning *p, int64_t epochs)
{
    return epochs >= (int64_t)p->start + p->steps;
}

void oct_pruning_apply(const oct_pruning *p, const oct_params *params, float *weights)
{
    for (int32_t i = 0; i < p->c->n_cuts; i++) {
        const oct_cut *k = &p->c->cuts[i];
        oct_lanes l;
        float *w;

        if (k->axis < 0 || k->is_again || k->role == OCT_CUT_FACTOR || p->param[i] < 0) continue;
        l = oct_lanes_of(&k->value->type, k->axis);
        w = weights + params->v[p->param[i]].offset;
        for (int64_t j = 0; j < k->n; j++) {
            if (k->unit[j] < 0 || p->groups.keep[k->unit[j]]) continue;
            for (int64_t o = 0; o < l.outer; o++)
                memset(w + (o * l.n + j) * l.inner, 0, (size_t)l.inner * sizeof(float));
        }
    }
}
