/* SPDX-License-Identifier: Apache-2.0 */
/* ReverseSequence: the first so many steps of each batch entry in reverse order. */
#include "op/grad/rules.h"
#include "op/move.h"

enum { BATCH_AXIS, TIME_AXIS };

static oct_status read_axes(const oct_node *n, int32_t rank, int64_t *batch, int64_t *time)
{
    *batch = oct_int(n, BATCH_AXIS);
    *time = oct_int(n, TIME_AXIS);
    if (rank < 2 || *batch < 0 || *batch > 1 || *time != 1 - *batch)
        return oct_node_fail(n, OCT_ERR_SHAPE, "batch_axis %lld and time_axis %lld, rank %d",
                             (long long)*batch, (long long)*time, (int)rank);
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *len;
    int64_t batch, time;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &len));
    OCT_TRY(oct_infer_movable(q, 0));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_INT));
    q->out[0] = *x;
    if (x->rank < 0) return OCT_OK;
    OCT_TRY(read_axes(q->node, x->rank, &batch, &time));
    if (len->rank >= 0 && (len->rank != 1 || (len->dim[0] >= 0 && x->dim[batch] >= 0 &&
                                              len->dim[0] != x->dim[batch])))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "sequence_lens must hold one entry per batch");
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type;
    int64_t batch, time, stride[OCT_MAX_RANK];

    OCT_TRY(read_axes(a->node, x->rank, &batch, &time));
    oct_strides(x, stride);
    const int64_t piece = stride[1];
    for (int64_t b = 0; b < x->dim[batch]; b++) {
        const int64_t len = oct_tensor_get_i64(a->in[1], b);

        if (len < 0 || len > x->dim[time])
            return oct_node_fail(a->node, OCT_ERR_SHAPE, "sequence %lld has length %lld of %lld",
                                 (long long)b, (long long)len, (long long)x->dim[time]);
        for (int64_t t = 0; t < x->dim[time]; t++) {
            const int64_t from = t < len ? len - 1 - t : t;

            oct_move_copy(x->dtype, a->in[0]->data, b * stride[batch] + from * stride[time],
                          a->out[0]->data, b * stride[batch] + t * stride[time], piece);
        }
    }
    return OCT_OK;
}

/* It is its own inverse. */
static oct_status grad(const oct_grad_args *a)
{
    oct_node *n = oct_emit_node(a->b, &oct_op_reverse_sequence,
                                (oct_value *[]){a->dy[0], a->node->in[1]}, 2, 1);

    oct_emit_attrs_of(a->b, n, a->node);
    a->dx[0] = oct_emitted(a->b, n);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [BATCH_AXIS] = {"batch_axis", OCT_ATTR_INT, .def = {.i = 1}},
    [TIME_AXIS] = {"time_axis", OCT_ATTR_INT, .def = {.i = 0}},
    {0},
};

const oct_op oct_op_reverse_sequence = {
    .name = "ReverseSequence",
    .since = 10,
    .min_in = 2,
    .max_in = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
};
