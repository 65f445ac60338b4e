/* SPDX-License-Identifier: Apache-2.0 */
/* Concat: operands one after the other along one axis. */
#include "op/channels.h"
#include "op/grad/rules.h"
#include "op/move.h"

enum { AXIS };

/* Dims other than the axis must agree; what one operand does not know another may. */
static oct_status join(const oct_infer *q, const oct_type *x, int32_t axis, oct_type *y)
{
    for (int32_t d = 0; d < y->rank; d++) {
        if (d == axis) continue;
        if (y->dim[d] < 0) y->dim[d] = x->dim[d];
        if (x->dim[d] >= 0 && x->dim[d] != y->dim[d])
            return oct_infer_fail(q, OCT_ERR_SHAPE, "operands differ in dim %d: %lld and %lld",
                                  (int)d, (long long)y->dim[d], (long long)x->dim[d]);
    }
    if (x->dim[axis] < 0 || y->dim[axis] < 0) {
        y->dim[axis] = -1;
        return OCT_OK;
    }
    if (!oct_add_i64(y->dim[axis], x->dim[axis], &y->dim[axis]))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the concatenated axis is too long");
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    oct_type y = oct_type_unknown(OCT_DTYPE_NONE);
    int32_t axis = 0;
    bool unknown = false;

    for (int i = 0; i < q->node->n_in; i++) {
        const oct_type *x;

        OCT_TRY(oct_infer_need(q, i, &x));
        OCT_TRY(oct_infer_movable(q, i));
        if (y.dtype == OCT_DTYPE_NONE) y.dtype = x->dtype;
        if (x->dtype != OCT_DTYPE_NONE && x->dtype != y.dtype)
            return oct_infer_fail(q, OCT_ERR_TYPE, "operands are %s and %s",
                                  oct_dtype_name(y.dtype), oct_dtype_name(x->dtype));
        if (x->rank < 0) {
            unknown = true;
            continue;
        }
        if (y.rank < 0) {
            OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), x->rank, &axis));
            y = oct_type_make(y.dtype, x->rank, x->dim);
            continue;
        }
        if (x->rank != y.rank)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "operands have ranks %d and %d", (int)y.rank,
                                  (int)x->rank);
        OCT_TRY(join(q, x, axis, &y));
    }
    if (unknown && y.rank >= 0) y.dim[axis] = -1;
    q->out[0] = y;
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *y = &a->out[0]->type;
    int32_t axis;
    int64_t at = 0;

    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), y->rank, &axis));
    const int64_t outer = oct_type_span(y, 0, axis), row = oct_type_span(y, axis, y->rank);
    for (int i = 0; i < a->node->n_in; i++) {
        const oct_tensor *x = a->in[i];
        const int64_t part = oct_type_span(&x->type, axis, y->rank);
        oct_move m;

        oct_move_init(&m);
        oct_move_add(&m, outer, part, row);
        oct_move_add(&m, part, 1, 1);
        oct_move_run(&m, y->dtype, x->data, 0, a->out[0]->data, at, a->n_threads);
        at += part;
    }
    return OCT_OK;
}

static oct_status grad(const oct_grad_args *a)
{
    int64_t at = 0;
    int32_t axis;

    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), a->node->out[0]->type.rank, &axis));
    for (int i = 0; i < a->node->n_in; i++) {
        const int64_t n = a->node->in[i]->type.dim[axis];

        if (a->wanted[i]) a->dx[i] = oct_grad_part(a->b, a->dy[0], axis, at, at + n);
        at += n;
    }
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = 0}, .required = true},
    {0},
};

const oct_op oct_op_concat = {
    .name = "Concat",
    .since = 7,
    .min_in = 1,
    .max_in = -1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .quant = {.in = {OCT_QROLE_AS_INPUT, OCT_QROLE_AS_INPUT, OCT_QROLE_AS_INPUT, OCT_QROLE_AS_INPUT,
                     OCT_QROLE_AS_INPUT, OCT_QROLE_AS_INPUT, OCT_QROLE_AS_INPUT,
                     OCT_QROLE_AS_INPUT}},
    .flow = OCT_FLOW_CONCAT,
    .moves = &oct_moves_concat,
};
