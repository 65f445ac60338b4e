/* SPDX-License-Identifier: Apache-2.0 */
/* Granularity of QuantizeLinear and DequantizeLinear: checks, and where scales are found. */
#include "op/quant_grid.h"

/* Scales for blocks: the shape of the elements, the axis shortened by the block size. */
static oct_status check_blocks(const oct_node *n, const oct_type *x, const oct_type *s,
                               int64_t block)
{
    char text[2][OCT_TYPE_TEXT_SIZE];
    int32_t axis;
    bool fits = x->rank == s->rank;

    OCT_TRY(oct_axis(n, oct_int(n, OCT_GRID_AXIS), x->rank, &axis));
    for (int i = 0; i < x->rank && fits; i++) {
        const int64_t d = x->dim[i] < 0    ? -1
                          : i != axis      ? x->dim[i]
                          : x->dim[i] == 0 ? 0
                                           : (x->dim[i] - 1) / block + 1;

        fits = d < 0 || s->dim[i] < 0 || d == s->dim[i];
    }
    if (!fits)
        return oct_node_fail(n, OCT_ERR_SHAPE, "scales %s do not fit %s in blocks of %lld",
                             oct_type_text(s, text[0]), oct_type_text(x, text[1]),
                             (long long)block);
    return OCT_OK;
}

static bool is_single(const oct_type *s)
{
    return s->rank == 0 || (s->rank == 1 && s->dim[0] == 1);
}

/* Fails only on what is known to be wrong. */
static oct_status check_shapes(const oct_node *n, const oct_type *x, const oct_type *s)
{
    const int64_t block = oct_int(n, OCT_GRID_BLOCK_SIZE);
    int32_t axis;

    if (block < 0) return oct_node_fail(n, OCT_ERR_ARG, "block_size is %lld", (long long)block);
    if (x->rank < 0 || s->rank < 0 || is_single(s)) return OCT_OK;
    if (block > 0) return check_blocks(n, x, s, block);
    if (s->rank != 1)
        return oct_node_fail(n, OCT_ERR_SHAPE, "scales of rank %d without a block_size", s->rank);
    OCT_TRY(oct_axis(n, oct_int(n, OCT_GRID_AXIS), x->rank, &axis));
    if (s->dim[0] >= 0 && x->dim[axis] >= 0 && s->dim[0] != x->dim[axis])
        return oct_node_fail(n, OCT_ERR_SHAPE, "%lld scales for %lld elements along axis %d",
                             (long long)s->dim[0], (long long)x->dim[axis], axis);
    return OCT_OK;
}

oct_status oct_quant_grid_check(const oct_infer *q)
{
    const oct_type *x, *s, *z = oct_infer_in(q, 2);

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &s));
    OCT_TRY(check_shapes(q->node, x, s));
    if (!z || z->rank < 0 || s->rank < 0 || (is_single(z) && is_single(s))) return OCT_OK;
    for (int i = 0; i < s->rank; i++)
        if (z->rank != s->rank || (z->dim[i] >= 0 && s->dim[i] >= 0 && z->dim[i] != s->dim[i]))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "scales and zero points differ in shape");
    return OCT_OK;
}

oct_status oct_quant_grid_init(oct_quant_grid *g, const oct_args *a)
{
    const oct_type *x = &a->in[0]->type, *s = &a->in[1]->type;
    int32_t axis;

    *g = (oct_quant_grid){.n = 1, .inner = oct_type_len(x), .is_single = is_single(s)};
    if (g->is_single) return OCT_OK;
    OCT_TRY(oct_axis(a->node, oct_int(a->node, OCT_GRID_AXIS), x->rank, &axis));
    g->n = x->dim[axis];
    g->inner = oct_type_span(x, axis + 1, x->rank);
    g->block = oct_int(a->node, OCT_GRID_BLOCK_SIZE);
    if (g->block > 0) g->n_blocks = s->dim[axis];
    return OCT_OK;
}
