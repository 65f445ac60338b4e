/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax along any axis, in any layout. */
#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/op.h"

#define GRAIN 8192 /* elements */

/* In memory order: outer x len x inner. */
typedef struct state {
    const oct_simd *simd;
    int64_t outer, len, inner;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    if (!s->node || s->node->op != &oct_op_softmax || !oct_step_is_f32(p, s)) return false;
    if (!oct_step_is_bare(s) || p->slots[s->in[0]].data || p->slots[s->in[0]].type.rank < 1)
        return false;
    *layout = OCT_LAYOUT_ANY;
    return true;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_slot *y = &p->slots[s->out[0]];
    const oct_attr *a = oct_node_attr(s->node, "axis");
    const int rank = y->type.rank;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    int32_t axis = 0;

    if (!st) return OCT_ERR_MEMORY;
    OCT_TRY(oct_axis(s->node, a ? a->i : -1, rank, &axis));
    *st = (state){.simd = oct_simd_get(), .outer = 1, .inner = 1, .len = y->type.dim[axis]};
    for (int d = 0; d < rank; d++) {
        bool before = d < axis;

        if (d == axis) continue;
        if (y->layout == OCT_LAYOUT_CLAST) /* channels are the innermost axis */
            before = axis == 1 || (d != 1 && d < axis);
        *(before ? &st->outer : &st->inner) *= y->type.dim[d];
    }
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const float *x;
    float *y;
} job;

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const int64_t block = st->len * st->inner;

    for (int64_t i = begin; i < end; i++)
        st->simd->softmax(j->x + i * block, j->y + i * block, st->len, st->inner, st->inner);
}

/* One outer index: columns are distributed over threads. */
static void columns(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    j->st->simd->softmax(j->x + begin, j->y + begin, j->st->len, j->st->inner, end - begin);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int64_t block = st->len * st->inner;
    job j = {st, b->in[0], b->out[0]};

    if (block == 0) return OCT_OK;
    if (st->outer == 1 && st->inner > 1)
        oct_parallel_for(b->n_threads, st->inner, OCT_MAX(16, GRAIN / st->len), columns, &j);
    else
        oct_parallel_for(b->n_threads, st->outer, OCT_MAX(1, GRAIN / block), rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_softmax = {
    .name = "softmax",
    .flags = OCT_KERNEL_IN_PLACE,
    .accepts = accepts,
    .make = make,
    .run = run,
};
