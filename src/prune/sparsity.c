/* SPDX-License-Identifier: Apache-2.0 */
/* Which weights become zero: see sparsity.h. */
#include "prune/sparsity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/regex.h"
#include "op/axes.h"

/* --- finding --- */

typedef struct names {
    oct_regex *keep, *only; /* NULL: no such */
} names;

static bool takes_part(const names *p, const oct_sparse *s, const oct_node *n,
                       const oct_sparse_layer *l)
{
    if (p->keep && oct_regex_matches(p->keep, n->name)) return false;
    if (p->only && !oct_regex_matches(p->only, n->name)) return false;
    return !s->of || (l->in_axis >= 0 && l->value->type.dim[l->in_axis] % s->of == 0);
}

/* Constants that a layer multiplies with, in float32. */
static bool has_weights(const oct_node *n, oct_sparse_layer *out)
{
    oct_weight_axes axes;
    oct_value *v = n->n_in > 1 ? n->in[1] : NULL;

    if (!n->op->weights.axes || !v || !v->data || v->data->type.dtype != OCT_DTYPE_F32)
        return false;
    if (!n->op->weights.axes(n, &v->data->type, &axes)) return false;
    *out = (oct_sparse_layer){.value = v, .in_axis = axes.in, .len = oct_tensor_len(v->data)};
    return out->len > 0;
}

static oct_status add_layer(oct_sparse *s, const oct_sparse_layer *found)
{
    oct_sparse_layer *l = &s->layers[s->n++];

    *l = *found;
    s->len += l->len;
    if (!(l->keep = oct_arena_alloc(s->arena, (size_t)l->len))) return OCT_ERR_MEMORY;
    memset(l->keep, 1, (size_t)l->len);
    return OCT_OK;
}

static oct_status find(oct_sparse *s, oct_graph *g, const names *p)
{
    bool *is_seen = oct_arena_array(s->arena, (size_t)g->root->n_value_ids + 1, sizeof(*is_seen));
    int32_t n_nodes = 0;

    for (const oct_node *n = g->first; n; n = n->next)
        n_nodes++;
    s->layers = oct_arena_array(s->arena, (size_t)n_nodes + 1, sizeof(*s->layers));
    if (!is_seen || !s->layers) return OCT_ERR_MEMORY;
    for (const oct_node *n = g->first; n; n = n->next) {
        oct_sparse_layer l;

        if (!has_weights(n, &l) || is_seen[l.value->id]) continue;
        is_seen[l.value->id] = true;
        if (takes_part(p, s, n, &l))
            OCT_TRY(add_layer(s, &l));
        else
            s->n_skipped++;
    }
    return OCT_OK;
}

/* "2:4" */
static bool read_pattern(const char *level, int32_t *n, int32_t *m)
{
    char *end = NULL;
    const long a = level ? strtol(level, &end, 10) : 0;
    const long b = end && *end == ':' ? strtol(end + 1, &end, 10) : 0;

    if (a < 1 || b <= a || b > 64 || *end) return false;
    *n = (int32_t)a;
    *m = (int32_t)b;
    return true;
}

oct_status oct_sparse_find(oct_graph *g, const oct_sparsity_options *o, oct_sparse **out)
{
    oct_sparse *s = oct_calloc(g->ctx, 1, sizeof(*s));
    names p = {0};
    oct_status st = OCT_OK;

    if (!s) return OCT_ERR_MEMORY;
    s->ctx = g->ctx;
    s->is_local = o->local != 0;
    (void)read_pattern(o->level, &s->zeros_of, &s->of);
    if (!(s->arena = oct_arena_new(g->ctx))) st = OCT_ERR_MEMORY;
    if (!st && o->keep) st = oct_regex_new(g->ctx, o->keep, false, &p.keep);
    if (!st && o->only) st = oct_regex_new(g->ctx, o->only, false, &p.only);
    if (!st) st = find(s, g, &p);
    if (!st && !s->n)
        st = oct_fail(g->ctx, OCT_ERR_UNSUPPORTED,
                      "no layer has weights to set to zero: they must be float32 constants%s",
                      s->of ? ", with input channels in multiples of the pattern" : "");
    oct_regex_free(p.keep);
    oct_regex_free(p.only);
    if (st)
        oct_sparse_free(s);
    else
        *out = s;
    return st;
}

void oct_sparse_free(oct_sparse *s)
{
    if (!s) return;
    oct_arena_free(s->arena);
    oct_free(s->ctx, s);
}

/* --- choosing --- */

static int by_size(const void *pa, const void *pb)
{
    const float a = *(const float *)pa, b = *(const float *)pb;

    return (a > b) - (a < b);
}

/* What a weight is compared by: its size, in units of its layer's norm. */
static float unit_of(const oct_sparse_layer *l, bool is_local)
{
    const float *w = l->value->data->data;
    double sum = 0;

    if (is_local) return 1;
    for (int64_t i = 0; i < l->len; i++)
        sum += (double)w[i] * (double)w[i];
    return sum > 0 ? (float)(1 / sqrt(sum)) : 1;
}

/* The smallest `n_gone` of the scores of `n` layers, in one list, become zero; of equals the first.
 */
static void drop(oct_sparse_layer *layers, int32_t n, bool is_local, float *score, int64_t n_gone)
{
    int64_t at = 0, equal;
    float limit;

    for (int32_t k = 0; k < n; k++) {
        const float *w = layers[k].value->data->data, unit = unit_of(&layers[k], is_local);

        memset(layers[k].keep, 1, (size_t)layers[k].len);
        for (int64_t i = 0; i < layers[k].len; i++)
            score[at++] = fabsf(w[i]) * unit;
    }
    if (n_gone < 1) return;
    qsort(score, (size_t)at, sizeof(*score), by_size);
    limit = score[n_gone - 1];
    for (equal = n_gone; equal > 0 && !(score[equal - 1] < limit);)
        equal--;
    equal = n_gone - equal; /* so many that have just this score go */
    for (int32_t k = 0; k < n; k++) {
        const float *w = layers[k].value->data->data, unit = unit_of(&layers[k], is_local);

        for (int64_t i = 0; i < layers[k].len; i++) {
            const float x = fabsf(w[i]) * unit;

            if (x < limit || (!(x > limit) && equal-- > 0)) layers[k].keep[i] = 0;
        }
    }
}

/* Of each m weights in a row along the input channels, the n smallest. */
static void drop_pattern(oct_sparse_layer *l, int32_t n, int32_t m)
{
    const oct_lanes a = oct_lanes_of(&l->value->data->type, l->in_axis);
    const float *w = l->value->data->data;

    memset(l->keep, 1, (size_t)l->len);
    for (int64_t g = 0; g < a.outer * (a.n / m); g++)
        for (int64_t i = 0; i < a.inner; i++) {
            const int64_t first = g * m * a.inner + i;

            for (int32_t k = 0; k < n; k++) {
                int64_t least = -1;

                for (int32_t j = 0; j < m; j++) {
                    const int64_t e = first + j * a.inner;

                    if (l->keep[e] && (least < 0 || fabsf(w[e]) < fabsf(w[least]))) least = e;
                }
                l->keep[least] = 0;
            }
        }
}

oct_status oct_sparse_choose(oct_sparse *s, double level)
{
    float *score;

    for (int32_t i = 0; s->of && i < s->n; i++)
        drop_pattern(&s->layers[i], s->zeros_of, s->of);
    if (s->of) return OCT_OK;
    if (!(score = oct_calloc(s->ctx, (size_t)s->len, sizeof(*score)))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; s->is_local && i < s->n; i++)
        drop(&s->layers[i], 1, true, score, (int64_t)((double)s->layers[i].len * level));
    if (!s->is_local) drop(s->layers, s->n, false, score, (int64_t)((double)s->len * level));
    oct_free(s->ctx, score);
    return OCT_OK;
}

void oct_sparse_choose_zeros(oct_sparse *s)
{
    for (int32_t k = 0; k < s->n; k++) {
        const float *w = s->layers[k].value->data->data;

        for (int64_t i = 0; i < s->layers[k].len; i++)
            s->layers[k].keep[i] = w[i] != 0.0f;
    }
}

void oct_sparse_choose_none(oct_sparse *s)
{
    for (int32_t k = 0; k < s->n; k++)
        memset(s->layers[k].keep, 1, (size_t)s->layers[k].len);
}

void oct_sparse_apply(const oct_sparse_layer *l, float *weights)
{
    for (int64_t i = 0; i < l->len; i++)
        if (!l->keep[i]) weights[i] = 0.0f;
}

/* --- options --- */

static oct_status check_levels(oct_ctx *ctx, const char *levels)
{
    long last = -1;

    for (const char *p = levels; *p;) {
        char *end = NULL;
        const long epoch = strtol(p, &end, 10);
        const double share = *end == ':' ? strtod(end + 1, &end) : -1;

        if (end == p || epoch <= last || !(share >= 0 && share < 1) || (*end && *end != ','))
            return oct_fail(ctx, OCT_ERR_ARG,
                            "levels of sparsity are EPOCH:SHARE,.. in order, as 0:0.3,40:0.5, not "
                            "'%.80s'",
                            levels);
        last = epoch;
        p = *end ? end + 1 : end;
    }
    return OCT_OK;
}

static oct_status check_training(oct_ctx *ctx, const oct_sparsity_options *o)
{
    const char *name;

    if (o->steps < 1 || !(o->initial >= 0 && o->initial < 1) || !(o->power > 0))
        return oct_fail(ctx, OCT_ERR_ARG, "epochs, initial share or power of sparsity are wrong");
    for (int32_t i = 0; (name = oct_sparsity_schedule_name(i)); i++)
        if (!strcmp(name, o->schedule)) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_ARG,
                    "schedule of sparsity '%.40s' is not known: polynomial, exponential, baseline",
                    o->schedule);
}

oct_status oct_sparsity_check(oct_ctx *ctx, const oct_sparsity_options *o, bool is_trained,
                              double *level)
{
    char *end = NULL;
    int32_t n, m;

    *level = 0;
    if (is_trained) OCT_TRY(check_training(ctx, o));
    if (is_trained && (o->zeros || o->levels))
        return o->levels ? check_levels(ctx, o->levels) : OCT_OK;
    if (read_pattern(o->level, &n, &m)) return OCT_OK;
    *level = o->level ? strtod(o->level, &end) : 0;
    if (!o->level || end == o->level || *end || !(*level > 0 && *level < 1))
        return oct_fail(ctx, OCT_ERR_ARG,
                        "sparsity is a share between 0 and 1, as 0.5, or a pattern, as 2:4, not "
                        "'%.40s'",
                        o->level ? o->level : "");
    return OCT_OK;
}
