/* SPDX-License-Identifier: Apache-2.0 */
/* Masks of single weights, from epoch to epoch: see sparsity.h. */
#include "train/sparsity.h"

#include <string.h>

#include "prune/sparsity.h"

struct oct_sparse_training {
    oct_ctx *ctx;
    oct_graph *g; /* a copy, whose constants follow the weights */
    oct_sparse *sparse;
    oct_sparsity_options o; /* strings in the arena of `sparse` */
    double level;
    int32_t *param; /* of each layer; -1: it is not trained */
    bool is_found;
};

static oct_status keep_text(oct_arena *a, const char **text)
{
    if (*text && !(*text = oct_arena_strdup(a, *text))) return OCT_ERR_MEMORY;
    return OCT_OK;
}

/* Constants of the copy get memory of their own, which weights are copied to. */
static oct_status own_constants(oct_sparse *s)
{
    for (int32_t i = 0; i < s->n; i++) {
        oct_value *v = s->layers[i].value;
        oct_tensor *t = NULL;

        OCT_TRY(oct_tensor_copy(s->ctx, v->data, &t));
        oct_tensor_unref(v->data);
        v->data = t;
    }
    return OCT_OK;
}

static oct_status build(oct_sparse_training *s, const oct_graph *g)
{
    oct_arena *a;

    OCT_TRY(oct_sparsity_check(s->ctx, &s->o, true, &s->level));
    OCT_TRY(oct_graph_clone(g, &s->g));
    OCT_TRY(oct_sparse_find(s->g, &s->o, &s->sparse));
    a = s->sparse->arena;
    s->o.keep = s->o.only = NULL; /* the caller's */
    OCT_TRY(keep_text(a, &s->o.level));
    OCT_TRY(keep_text(a, &s->o.schedule));
    OCT_TRY(keep_text(a, &s->o.levels));
    s->param = oct_arena_array(a, (size_t)s->sparse->n + 1, sizeof(*s->param));
    if (!s->param) return OCT_ERR_MEMORY;
    return own_constants(s->sparse);
}

oct_status oct_sparse_training_new(const oct_graph *g, const oct_sparsity_options *o,
                                   oct_sparse_training **out)
{
    oct_sparse_training *s = oct_calloc(g->ctx, 1, sizeof(*s));
    oct_status st;

    if (!s) return OCT_ERR_MEMORY;
    s->ctx = g->ctx;
    oct_sparsity_options_init(&s->o);
    memcpy(&s->o, o, OCT_MIN(o->struct_size, sizeof(s->o)));
    st = build(s, g);
    if (st)
        oct_sparse_training_free(s);
    else
        *out = s;
    return st;
}

void oct_sparse_training_free(oct_sparse_training *s)
{
    if (!s) return;
    oct_sparse_free(s->sparse);
    oct_graph_free(s->g);
    oct_free(s->ctx, s);
}

static void find_params(oct_sparse_training *s, const oct_params *params)
{
    for (int32_t i = 0; i < s->sparse->n && !s->is_found; i++) {
        const int32_t k = oct_params_find(params, s->sparse->layers[i].value->name);

        s->param[i] = k >= 0 && params->v[k].len == s->sparse->layers[i].len ? k : -1;
    }
    s->is_found = true;
}

oct_status oct_sparse_training_epoch(oct_sparse_training *s, const oct_params *params,
                                     const float *weights, int64_t epoch, bool is_begun)
{
    const int32_t e = (int32_t)OCT_MIN(epoch, INT32_MAX);
    const double level = oct_sparsity_at(&s->o, s->level, e);

    find_params(s, params);
    for (int32_t i = 0; i < s->sparse->n; i++)
        if (s->param[i] >= 0)
            memcpy(s->sparse->layers[i].value->data->data, weights + params->v[s->param[i]].offset,
                   (size_t)s->sparse->layers[i].len * sizeof(float));
    /* 0 is no level, but that of the network as it came: nothing is held at zero. */
    if (!s->o.zeros && !s->sparse->of && level <= 0) {
        oct_sparse_choose_none(s->sparse);
        return OCT_OK;
    }
    if (s->o.zeros || is_begun) {
        oct_sparse_choose_zeros(s->sparse);
        return OCT_OK;
    }
    return oct_sparse_choose(s->sparse, level);
}

void oct_sparse_training_apply(const oct_sparse_training *s, const oct_params *params,
                               float *weights)
{
    for (int32_t i = 0; i < s->sparse->n; i++)
        if (s->param[i] >= 0)
            oct_sparse_apply(&s->sparse->layers[i], weights + params->v[s->param[i]].offset);
}
