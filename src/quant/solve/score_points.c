/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logits of scores. Where results of layers are quantized, those of a head's last layer go to the
 * Sigmoid of the float tail, mostly through Concat, Reshape and Split. Logits of the background
 * reach far below zero, where all scores are 0: the range is that of the least error after the
 * Sigmoid.
 */
#include "op/op.h"
#include "quant/place/place.h"
#include "quant/solve/solve.h"

/* Which points a Sigmoid reads, and which anything else does. */
typedef struct readers {
    uint8_t *by_sigmoid, *by_others;
} readers;

static void mark(void *arg, int32_t point, const oct_node *reader)
{
    readers *r = arg;

    (oct_node_is(reader, &oct_op_sigmoid) ? r->by_sigmoid : r->by_others)[point] = 1;
}

oct_status oct_score_points(const oct_qmap *m, oct_arena *a, uint8_t **out)
{
    const size_t n = (size_t)m->n_points + 1;
    readers r = {oct_arena_alloc(a, n), oct_arena_alloc(a, n)};

    if (!r.by_sigmoid || !r.by_others) return OCT_ERR_MEMORY;
    *out = r.by_sigmoid;
    if (!(m->target->flags & OCT_TARGET_LAYER_RESULTS)) return OCT_OK;
    OCT_TRY(oct_place_readers(m, a, mark, &r));
    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qpoint *p = &m->points[i];

        if (r.by_others[i] || p->state != OCT_QSTATE_ACTIVE || p->role != OCT_QROLE_ACT)
            r.by_sigmoid[i] = 0;
    }
    return OCT_OK;
}
