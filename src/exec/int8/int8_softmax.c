/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax from codes to codes, along any axis, in any layout. */
#include "base/parallel.h"
#include "exec/int8/int8_kernel.h"
#include "op/op.h"
#include "op/softmax_codes.h"

#define GRAIN 8192 /* elements */

/* In memory order: rows of `len` elements with stride `inner`. */
typedef struct state {
    oct_softmax_codes codes;
    int64_t rows, len, inner;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    if (!s->integer || s->integer->n_chain || s->integer->is_dynamic) return false;
    if (s->node->op != &oct_op_softmax || !oct_step_is_bare(s) || !oct_step_in_u8(p, s, 0))
        return false;
    if (!oct_step_out_is_codes(s) || !oct_step_out_u8_or_f32(p, s)) return false;
    if (s->integer->in[0].n != 1 || s->integer->out.n != 1 || s->integer->out.last) return false;
    *layout = OCT_LAYOUT_ANY;
    return p->slots[s->out[0]].type.rank > 0;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_codes *x = &s->integer->in[0], *y = &s->integer->out;
    const oct_slot *out = &p->slots[s->out[0]];
    const oct_attr *a = oct_node_attr(s->node, "axis");
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    int32_t axis = 0;

    if (!st) return OCT_ERR_MEMORY;
    OCT_TRY(oct_axis(s->node, a ? a->i : -1, out->type.rank, &axis));
    st->len = out->type.dim[axis];
    st->inner = oct_type_span(&out->type, axis + 1, out->type.rank);
    if (out->layout == OCT_LAYOUT_CLAST && axis == 1) st->inner = 1;
    if (out->layout == OCT_LAYOUT_CLAST && axis > 1) st->inner *= out->type.dim[1];
    if (out->layout == OCT_LAYOUT_CLAST && axis == 0)
        st->inner = oct_type_span(&out->type, 1, out->type.rank);
    st->rows = st->len ? oct_type_len(&out->type) / st->len : 0;
    oct_softmax_codes_init(&st->codes, OCT_DTYPE_U8, st->len, oct_codes_scale(x, 0),
                           oct_codes_scale(y, 0), oct_codes_zero(y, 0));
    s->state = st;
    s->impl = "int8 softmax";
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const uint8_t *x;
    uint8_t *y;
} job;

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i++) {
        const int64_t at = i / st->inner * st->len * st->inner + i % st->inner;

        oct_softmax_codes_row(&st->codes, j->x + at, j->y + at, st->len, st->inner);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0]};

    oct_parallel_for(b->n_threads, st->rows, OCT_MAX(1, GRAIN / OCT_MAX(st->len, 1)), rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_softmax = {
    .name = "int8-softmax",
    .flags = OCT_KERNEL_INTEGER | OCT_KERNEL_IN_PLACE,
    .accepts = accepts,
    .make = make,
    .run = run,
};
