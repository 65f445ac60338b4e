/* SPDX-License-Identifier: Apache-2.0 */
/* PRelu: y = x < 0 ? slope * x : x, the slope broadcasting to x. */
#include "op/elementwise.h"
#include "op/grad/rules.h"

OCT_BINARY_FLOATS(prelu, x < 0 ? y * x : x)
OCT_BINARY_FN(prelu_i64, int64_t, int64_t, x < 0 ? (uint64_t)x * (uint64_t)y : (uint64_t)x)
OCT_BINARY_FN(prelu_u64, uint64_t, uint64_t, ((void)y, x))

static oct_status shape(const oct_infer *q)
{
    char text[OCT_TYPE_TEXT_SIZE];
    const oct_type *x;
    oct_type both;
    bool fits;

    OCT_TRY(oct_shape_broadcast_numeric(q));
    both = q->out[0];
    x = q->in[0];
    fits = both.rank < 0 || both.rank == x->rank;
    for (int i = 0; i < both.rank && fits; i++)
        fits = x->dim[i] < 0 || both.dim[i] < 0 || x->dim[i] == both.dim[i];
    if (!fits)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the slope does not broadcast to %s",
                              oct_type_text(x, text));
    q->out[0] = oct_type_make(both.dtype, x->rank, x->dim);
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    static const oct_binary f = {prelu_f32, prelu_f64, prelu_i64, prelu_u64, false};

    return oct_binary_run(a, &f, NULL);
}

static oct_status grad(const oct_grad_args *a)
{
    oct_value *x = a->node->in[0], *slope = a->node->in[1], *dy = a->dy[0];
    oct_value *zero = oct_grad_number(a, 0, 0), *is_below = OCT_EMIT2(less, x, zero);

    if (a->wanted[0]) a->dx[0] = OCT_EMIT3(where, is_below, OCT_EMIT2(mul, dy, slope), dy);
    if (a->wanted[1])
        a->dx[1] =
            oct_grad_sum_to(a->b, OCT_EMIT3(where, is_below, OCT_EMIT2(mul, dy, x), zero), slope);
    return OCT_OK;
}

const oct_op oct_op_p_relu = {
    .name = "PRelu",
    .since = 7,
    .min_in = 2,
    .max_in = 2,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_TIE,
    .flags = OCT_OP_ELEMENTWISE,
};
