/* SPDX-License-Identifier: Apache-2.0 */
/* ConstantOfShape: one value everywhere, in a shape that the operand holds. */
#include "op/move.h"
#include "op/work.h"

enum { VALUE };

static oct_status shape(const oct_infer *q)
{
    const oct_attr *value = &q->node->attr[VALUE];
    const oct_type *x;
    oct_dtype t = OCT_DTYPE_F32;
    int64_t dim[OCT_MAX_RANK];
    int n;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET(OCT_DTYPE_I64)));
    if (value->kind == OCT_ATTR_TENSOR) {
        if (oct_tensor_len(value->t) != 1)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "the value is not one element");
        OCT_TRY(oct_dtype_attr(q->node, value->t->type.dtype, &t));
    }
    if (x->rank > 1) return oct_infer_fail(q, OCT_ERR_SHAPE, "the shape is not a list");
    q->out[0] = oct_type_unknown(t);
    OCT_TRY(oct_infer_ints(q, 0, dim, OCT_MAX_RANK, &n));
    if (n >= 0) return oct_type_of_dims(q->node, t, dim, n, &q->out[0]);
    if (x->rank == 1 && x->dim[0] > OCT_MAX_RANK)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "rank %lld is above %d", (long long)x->dim[0],
                              OCT_MAX_RANK);
    if (x->rank == 1 && x->dim[0] >= 0) {
        q->out[0].rank = (int32_t)x->dim[0];
        for (int i = 0; i < q->out[0].rank; i++)
            q->out[0].dim[i] = -1;
    }
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_attr *value = &a->node->attr[VALUE];
    const uint8_t zero[16] = {0};
    oct_tensor *y = a->out[0];

    OCT_TRY(oct_args_check(a)); /* the shape is data */
    oct_move_fill(y->type.dtype, value->kind == OCT_ATTR_TENSOR ? value->t->data : zero, 0, y->data,
                  oct_tensor_len(y), a->n_threads);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {[VALUE] = {"value", OCT_ATTR_TENSOR, .no_default = true}, {0}};

const oct_op oct_op_constant_of_shape = {
    .name = "ConstantOfShape",
    .since = 9,
    .min_in = 1,
    .max_in = 1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
};
