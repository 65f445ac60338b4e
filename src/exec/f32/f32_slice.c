/* SPDX-License-Identifier: Apache-2.0 */
/* Slice of an NHWC tensor with steps: every second pixel, as focus stems read them. */
#include <string.h>

#include "base/parallel.h"
#include "exec/kernel.h"
#include "op/op.h"

typedef struct state {
    int64_t begin[4], step[4]; /* N C H W */
    int64_t out[4], in_h, in_w;
    size_t elem, in_pitch, out_pitch; /* bytes; pitches from pixel to pixel */
} state;

/* Begin and step of each axis; false: not constant, or a negative step. */
static bool find_bounds(const oct_node *n, state *st)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[0]->type;
    const oct_tensor *starts = oct_node_const(n, 1), *axes = oct_node_const(n, 3);
    const oct_tensor *steps = oct_node_const(n, 4);

    if (!starts || (oct_node_in(n, 3) && !axes) || (oct_node_in(n, 4) && !steps)) return false;
    for (int d = 0; d < 4; d++) {
        st->begin[d] = 0;
        st->step[d] = 1;
        st->out[d] = y->dim[d];
    }
    for (int64_t i = 0; i < oct_tensor_len(starts); i++) {
        int64_t d = axes ? oct_tensor_get_i64(axes, i) : i, at = oct_tensor_get_i64(starts, i);

        if (d < 0) d += 4;
        if (d < 0 || d > 3) return false;
        if (at < 0) at += x->dim[d];
        st->begin[d] = OCT_MIN(OCT_MAX(at, 0), x->dim[d]);
        st->step[d] = steps ? oct_tensor_get_i64(steps, i) : 1;
        if (st->step[d] < 1 || st->step[d] > x->dim[d]) return false;
        if (st->begin[d] + (y->dim[d] - 1) * st->step[d] >= x->dim[d]) return false;
    }
    return st->step[1] == 1;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    const oct_slot *x = s->n_in > 0 ? oct_step_in(p, s, 0) : NULL;
    state st;

    if (!s->node || s->node->op != &oct_op_slice || !x || x->data || x->type.rank != 4)
        return false;
    if (x->layout != OCT_LAYOUT_CLAST || oct_dtype_size(x->type.dtype) == 0) return false;
    if (oct_type_len(&p->slots[s->out[0]].type) < 1 || !find_bounds(s->node, &st)) return false;
    *layout = OCT_LAYOUT_CLAST;
    return true;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *x = &p->slots[s->in[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    if (!find_bounds(s->node, st)) return oct_node_fail(s->node, OCT_ERR_STATE, "has no bounds");
    st->elem = oct_dtype_size(x->dtype);
    st->in_h = x->dim[2];
    st->in_w = x->dim[3];
    st->in_pitch = (size_t)oct_slot_pitch(p, s->in[0]) * st->elem;
    st->out_pitch = (size_t)oct_slot_pitch(p, s->out[0]) * st->elem;
    s->state = st;
    s->impl = "copy of pixels";
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const char *x;
    char *y;
} job;

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const size_t size = (size_t)st->out[1] * st->elem, step = (size_t)st->step[3] * st->in_pitch;

    for (int64_t i = begin; i < end; i++) {
        const int64_t n = st->begin[0] + i / st->out[2] * st->step[0];
        const int64_t h = st->begin[2] + i % st->out[2] * st->step[2];
        const char *x = j->x +
                        (size_t)((n * st->in_h + h) * st->in_w + st->begin[3]) * st->in_pitch +
                        (size_t)st->begin[1] * st->elem;
        char *y = j->y + (size_t)(i * st->out[3]) * st->out_pitch;

        if (size == 3) /* a pixel of codes: too short for memcpy */
            for (int64_t w = 0; w < st->out[3]; w++, x += step, y += st->out_pitch)
                memcpy(y, x, 3);
        else
            for (int64_t w = 0; w < st->out[3]; w++, x += step, y += st->out_pitch)
                memcpy(y, x, size);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0]};

    oct_parallel_for(b->n_threads, st->out[0] * st->out[2],
                     OCT_MAX(1, 16384 / OCT_MAX(1, st->out[3])), rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_slice = {
    .name = "slice",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
