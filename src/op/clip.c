/* SPDX-License-Identifier: Apache-2.0 */
/* Clip: y = min(max(x, low), high), either bound optional. */
#include <math.h>

#include "op/act.h"
#include "op/elementwise.h"
#include "op/grad/rules.h"

typedef struct bounds {
    float low_f32, high_f32;
    double low_f64, high_f64;
    int64_t low_i64, high_i64;
    uint64_t low_u64, high_u64;
} bounds;

/* The upper bound last: it wins when the two cross. */
#define CLIP(T)                                                                                    \
    (x < ((const bounds *)p)->low_##T                                                              \
         ? OCT_MIN(((const bounds *)p)->low_##T, ((const bounds *)p)->high_##T)                    \
     : x > ((const bounds *)p)->high_##T ? ((const bounds *)p)->high_##T                           \
                                         : x)

OCT_UNARY_FN(clip_f32, float, float, CLIP(f32))
OCT_UNARY_FN(clip_f64, double, double, CLIP(f64))
OCT_UNARY_FN(clip_i64, int64_t, int64_t, CLIP(i64))
OCT_UNARY_FN(clip_u64, uint64_t, uint64_t, CLIP(u64))

static oct_status check_bound(const oct_infer *q, int i)
{
    const oct_type *x = q->in[0], *b = oct_infer_in(q, i);

    if (!b) return OCT_OK;
    if (b->dtype != x->dtype && b->dtype != OCT_DTYPE_NONE && x->dtype != OCT_DTYPE_NONE)
        return oct_infer_fail(q, OCT_ERR_TYPE, "clips %s to a bound of type %s",
                              oct_dtype_name(x->dtype), oct_dtype_name(b->dtype));
    if (oct_type_is_static(b) && oct_type_len(b) != 1)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the bound in operand %d is not one number", i);
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    OCT_TRY(oct_shape_same_numeric(q));
    OCT_TRY(check_bound(q, 1));
    return check_bound(q, 2);
}

static oct_status ref(const oct_args *a)
{
    static const oct_unary f = {clip_f32, clip_f64, clip_i64, clip_u64, false};
    const oct_tensor *low = oct_args_in(a, 1), *high = oct_args_in(a, 2);
    bounds b = {-INFINITY, INFINITY, -INFINITY, INFINITY, INT64_MIN, INT64_MAX, 0, UINT64_MAX};

    if (low) {
        oct_load_f64(low->type.dtype, low->data, 0, 1, &b.low_f64);
        oct_load_i64(low->type.dtype, low->data, 0, 1, &b.low_i64);
        b.low_f32 = (float)b.low_f64;
        b.low_u64 = (uint64_t)b.low_i64;
    }
    if (high) {
        oct_load_f64(high->type.dtype, high->data, 0, 1, &b.high_f64);
        oct_load_i64(high->type.dtype, high->data, 0, 1, &b.high_i64);
        b.high_f32 = (float)b.high_f64;
        b.high_u64 = (uint64_t)b.high_i64;
    }
    return oct_unary_run(a, &f, &b);
}

/* Limits that are known, and the right way round. */
static bool read_limits(const oct_node *n, oct_act *act)
{
    act->a = -INFINITY;
    act->b = INFINITY;
    for (int i = 1; i < n->n_in; i++) {
        const oct_tensor *t = oct_node_const(n, i);

        if (!n->in[i]) continue;
        if (!t || oct_tensor_len(t) != 1) return false;
        *(i == 1 ? &act->a : &act->b) = (float)oct_tensor_get_f64(t, 0);
    }
    return act->a <= act->b; /* also refuses NaN */
}

/* Bounds that are computed or trained: what they cut off is their gradient. The upper one comes
 * last, and wins where they cross. */
static oct_status grad_bounds(const oct_grad_args *a)
{
    oct_value *x = a->node->in[0], *low = oct_node_in(a->node, 1), *high = oct_node_in(a->node, 2);
    oct_value *zero = oct_grad_number(a, 0, 0), *dy = a->dy[0], *is_cut;

    if (high) {
        is_cut = OCT_EMIT2(greater, low ? OCT_EMIT2(max, x, low) : x, high);
        if (a->wanted[2])
            a->dx[2] = oct_grad_sum_to(a->b, OCT_EMIT3(where, is_cut, dy, zero), high);
        if (a->wanted[0] || (low && a->wanted[1])) dy = OCT_EMIT3(where, is_cut, zero, dy);
    }
    if (low && (a->wanted[0] || a->wanted[1])) {
        is_cut = OCT_EMIT2(less, x, low);
        if (a->wanted[1]) a->dx[1] = oct_grad_sum_to(a->b, OCT_EMIT3(where, is_cut, dy, zero), low);
        if (a->wanted[0]) dy = OCT_EMIT3(where, is_cut, zero, dy);
    }
    if (a->wanted[0]) a->dx[0] = oct_grad_sum_to(a->b, dy, x);
    return OCT_OK;
}

static oct_status grad(const oct_grad_args *a)
{
    oct_act act;

    return read_limits(a->node, &act) ? oct_grad_activation(a) : grad_bounds(a);
}

const oct_op oct_op_clip = {
    .name = "Clip",
    .since = 11,
    .min_in = 1,
    .max_in = 3,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
    .act = OCT_ACT_ROW(CLIP, read_limits),
    .flags = OCT_OP_ELEMENTWISE,
};
