/* SPDX-License-Identifier: Apache-2.0 */
/* Split: one axis cut into parts, of given sizes or equal (the last may be shorter). */
#include "op/channels.h"
#include "op/grad/rules.h"
#include "op/move.h"

enum { AXIS, NUM_OUTPUTS };

/* Equal parts of `len`: the size of part i. */
static int64_t equal_part(int64_t len, int32_t n_parts, int32_t i)
{
    const int64_t part = len / n_parts + (len % n_parts != 0);
    const int64_t rest = part > 0 && i > len / part ? 0 : len - part * i;

    return OCT_MAX(0, OCT_MIN(part, rest));
}

static oct_status check_sizes(const oct_infer *q, const oct_tensor *sizes, int64_t len)
{
    int64_t sum = 0;

    if (!oct_dtype_is_int(sizes->type.dtype) || oct_tensor_len(sizes) != q->node->n_out)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "%lld sizes for %d results",
                              (long long)oct_tensor_len(sizes), (int)q->node->n_out);
    for (int32_t i = 0; i < q->node->n_out; i++) {
        const int64_t part = oct_tensor_get_i64(sizes, i);

        if (part < 0 || !oct_add_i64(sum, part, &sum))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "part %d has size %lld", (int)i,
                                  (long long)part);
    }
    if (len >= 0 && sum != len)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "parts sum to %lld, the axis has %lld",
                              (long long)sum, (long long)len);
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_node *n = q->node;
    const oct_tensor *sizes = oct_infer_data(q, 1);
    const oct_type *x;
    int32_t axis;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_movable(q, 0));
    if (oct_has(n, NUM_OUTPUTS) && !oct_infer_in(q, 1) && oct_int(n, NUM_OUTPUTS) != n->n_out)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "num_outputs is %lld, but there are %d",
                              (long long)oct_int(n, NUM_OUTPUTS), (int)n->n_out);
    for (int32_t i = 0; i < n->n_out; i++)
        q->out[i] = *x;
    if (x->rank < 0) return OCT_OK;
    OCT_TRY(oct_axis(n, oct_int(n, AXIS), x->rank, &axis));
    if (sizes) OCT_TRY(check_sizes(q, sizes, x->dim[axis]));
    for (int32_t i = 0; i < n->n_out; i++) {
        if (sizes)
            q->out[i].dim[axis] = oct_tensor_get_i64(sizes, i);
        else if (oct_infer_in(q, 1) || x->dim[axis] < 0)
            q->out[i].dim[axis] = -1;
        else
            q->out[i].dim[axis] = equal_part(x->dim[axis], n->n_out, i);
    }
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_tensor *x = a->in[0];
    const oct_tensor *sizes = oct_args_in(a, 1);
    int32_t axis;
    int64_t at = 0;

    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), x->type.rank, &axis));
    const int64_t outer = oct_type_span(&x->type, 0, axis);
    const int64_t inner = oct_type_span(&x->type, axis + 1, x->type.rank);
    const int64_t row = x->type.dim[axis] * inner;
    for (int32_t i = 0; i < a->node->n_out; i++) {
        const int64_t part =
            sizes ? oct_tensor_get_i64(sizes, i) : equal_part(x->type.dim[axis], a->node->n_out, i);
        oct_move m;

        if (a->out[i]) {
            if (part < 0 || part > x->type.dim[axis] - at / OCT_MAX(inner, 1) ||
                a->out[i]->type.dim[axis] != part)
                return oct_node_fail(a->node, OCT_ERR_SHAPE, "part %d does not fit", (int)i);
            oct_move_init(&m);
            oct_move_add(&m, outer, row, part * inner);
            oct_move_add(&m, part * inner, 1, 1);
            oct_move_run(&m, x->type.dtype, x->data, at, a->out[i]->data, 0, a->n_threads);
        }
        at += part * inner;
    }
    return OCT_OK;
}

/* The parts' gradients side by side; zeros for a part that is not used. */
static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    oct_value **parts = oct_arena_array(a->b->g->arena, (size_t)n->n_out, sizeof(oct_value *));
    oct_type type = n->in[0]->type;
    oct_node *concat;
    int64_t sizes[64];
    int32_t axis, count = n->n_out;
    int n_sizes;

    if (!parts) return OCT_ERR_MEMORY;
    OCT_TRY(oct_axis(n, oct_int(n, AXIS), type.rank, &axis));
    OCT_TRY(oct_grad_ints(a, 1, sizes, OCT_COUNT(sizes), &n_sizes));
    for (int32_t i = 0; i < count; i++) {
        type.dim[axis] = n_sizes ? sizes[i] : equal_part(n->in[0]->type.dim[axis], count, i);
        parts[i] = a->dy[i] ? a->dy[i] : oct_grad_filled(a->b, &type, 0);
    }
    concat = oct_emit_node(a->b, &oct_op_concat, parts, count, 1);
    oct_emit_int(a->b, concat, "axis", axis);
    a->dx[0] = oct_emitted(a->b, concat);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = 0}},
    [NUM_OUTPUTS] = {"num_outputs", OCT_ATTR_INT, .def = {.i = 0}, .no_default = true},
    {0},
};

const oct_op oct_op_split = {
    .name = "Split",
    .since = 13,
    .min_in = 1,
    .max_in = 2,
    .min_out = 1,
    .max_out = -1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .moves = &oct_moves_axis,
};
