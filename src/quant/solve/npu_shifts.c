/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits scales to an NPU. It requantizes by shifting, and its shifters have a limited width
 * (npu/limits.c). Where the best exponents do not fit, mostly the finer of two scales gets coarser:
 * that loses bits which the shift would lose anyway.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quant/npu/limits.h"
#include "quant/solve/solve.h"

enum {
    MOST_ROUNDS = 64, /* a change may break a limit elsewhere; real networks need two or three */
    MOST_CHANGES = 64 /* at one node and channel: a Concat moves its operands one by one */
};

typedef struct fitting {
    oct_qmap *m;
    oct_arena *a;
    float **scale;               /* by point: its scales, changed; NULL: as they are in the qmap */
    const oct_npu_limit **limit; /* by point: the last limit that moved it */
    const oct_node **node;       /* by point: and where */
    bool is_of_channels;         /* hardware with an exponent for each channel */
    bool is_changed;
} fitting;

static oct_status set_exponent(fitting *f, const oct_qpoint *p, int64_t k, int e)
{
    float **changed = &f->scale[p - f->m->points];

    if (!*changed) {
        *changed = oct_arena_array(f->a, (size_t)p->n, sizeof(float));
        if (!*changed) return OCT_ERR_MEMORY;
        memcpy(*changed, p->scale, (size_t)p->n * sizeof(float));
    }
    (*changed)[p->n > 1 ? k % p->n : 0] = ldexpf(1.0f, -e);
    f->is_changed = true;
    return OCT_OK;
}

static oct_status fit(fitting *f, const oct_npu_limit *l, const oct_npu_site *s, int64_t k)
{
    oct_npu_breach b;

    for (int i = 0; i < MOST_CHANGES && oct_npu_breaks(l, s, k, &b) && b.point; i++) {
        OCT_TRY(set_exponent(f, b.point, k, b.to));
        f->limit[b.point - f->m->points] = l;
        f->node[b.point - f->m->points] = s->node;
    }
    return OCT_OK;
}

static oct_status fit_node(fitting *f, const oct_node *n)
{
    const oct_npu_limit *l;
    oct_npu_site s;

    oct_npu_site_of_node(f->m, f->scale, n, &s);
    for (int i = 0; (l = oct_npu_limit_at(i)); i++) {
        if (l->is_of_tensor || (f->is_of_channels && !l->is_of_channels) || !l->applies(&s))
            continue;
        for (int64_t k = 0; k < oct_npu_site_channels(&s); k++)
            OCT_TRY(fit(f, l, &s, k));
    }
    return OCT_OK;
}

/* The channel that moved most. */
static void describe(const fitting *f, int32_t i, oct_npu_move *out)
{
    const oct_qpoint *p = &f->m->points[i];

    *out = (oct_npu_move){.point = i, .limit = f->limit[i]->name, .node = f->node[i]};
    for (int64_t k = 0; k < p->n; k++) {
        const int from = -ilogbf(p->scale[k]), to = -ilogbf(f->scale[i][k]);

        if (k > 0 && abs(to - from) <= abs(out->to - out->from)) continue;
        out->from = from;
        out->to = to;
    }
}

static oct_status finish(fitting *f, oct_arena *a, oct_npu_moves *moves)
{
    oct_npu_moves list = {
        .at = oct_arena_array(a ? a : f->a, (size_t)f->m->n_points + 1, sizeof(*list.at))};

    if (!list.at) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < f->m->n_points; i++) {
        const oct_qpoint *p = &f->m->points[i];
        char by[64];

        if (!f->scale[i]) continue;
        describe(f, i, &list.at[list.n]);
        list.n += list.at[list.n].from != list.at[list.n].to;
        (void)snprintf(by, sizeof(by), "NPU %s", f->limit[i]->name);
        OCT_TRY(oct_qpoint_set(f->m, i, f->scale[i], p->zero, p->n, by));
    }
    if (moves) *moves = list;
    return OCT_OK;
}

static oct_status fit_all(fitting *f, oct_arena *a, oct_npu_moves *moves)
{
    f->is_changed = true;
    for (int round = 0; round < MOST_ROUNDS && f->is_changed; round++) {
        f->is_changed = false;
        for (const oct_node *n = f->m->g->first; n; n = n->next)
            OCT_TRY(fit_node(f, n));
    }
    return finish(f, a, moves);
}

oct_status oct_npu_fit(oct_qmap *m, oct_arena *a, oct_npu_moves *moves)
{
    fitting f = {.m = m, .is_of_channels = m->target->weight.axis != OCT_QSPEC_PER_TENSOR};
    const size_t n = (size_t)m->n_points + 1;
    oct_status st = OCT_ERR_MEMORY;

    if (moves) *moves = (oct_npu_moves){0};
    if (m->target->bias != OCT_BIAS_POW2) return OCT_OK;
    if (!(f.a = oct_arena_new(m->ctx))) return st;
    f.scale = oct_arena_array(f.a, n, sizeof(*f.scale));
    f.limit = oct_arena_array(f.a, n, sizeof(*f.limit));
    f.node = oct_arena_array(f.a, n, sizeof(*f.node));
    if (f.scale && f.limit && f.node) st = fit_all(&f, a, moves);
    oct_arena_free(f.a);
    return st;
}
