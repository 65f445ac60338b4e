/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum: running sums along an axis, forwards or backwards. */
#include "op/axes.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { EXCLUSIVE, REVERSE };

static oct_status read_axis(const oct_infer *q, int32_t rank, int32_t *axis)
{
    int64_t v = 0;
    int n;

    *axis = -1;
    OCT_TRY(oct_infer_ints(q, 1, &v, 1, &n));
    if (n < 0 || rank < 0) return OCT_OK;
    if (n == 0) return oct_infer_fail(q, OCT_ERR_SHAPE, "axis is empty");
    return oct_axis(q->node, v, rank, axis);
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *axis;
    int32_t d;

    OCT_TRY(oct_shape_same(q));
    OCT_TRY(oct_infer_need(q, 1, &axis));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC));
    return read_axis(q, q->in[0]->rank, &d);
}

/* Integers wrap, so they are added as unsigned. */
#define DEFINE_SUM(T, name)                                                                        \
    static void sum_##name(const oct_lanes *l, bool exclusive, bool reverse, const T *x, T *y)     \
    {                                                                                              \
        for (int64_t o = 0; o < l->outer * l->inner; o++) {                                        \
            const int64_t at = o / l->inner * l->n * l->inner + o % l->inner;                      \
            T sum = 0;                                                                             \
                                                                                                   \
            for (int64_t k = 0; k < l->n; k++) {                                                   \
                const int64_t i = at + (reverse ? l->n - 1 - k : k) * l->inner;                    \
                const T with = sum + x[i];                                                         \
                                                                                                   \
                y[i] = exclusive ? sum : with;                                                     \
                sum = with;                                                                        \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_SUM(float, f32)
DEFINE_SUM(double, f64)
DEFINE_SUM(uint64_t, u64)

static oct_status ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type;
    const oct_work w = oct_work_of(x->dtype);
    const bool exclusive = oct_int(a->node, EXCLUSIVE) != 0, reverse = oct_int(a->node, REVERSE);
    oct_lanes lanes;
    oct_infer q;
    const void *from;
    void *to;
    int32_t axis;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_args_infer(a, &q));
    OCT_TRY(read_axis(&q, x->rank, &axis));
    OCT_TRY(oct_work_in(a, 0, w, &from));
    OCT_TRY(oct_work_out(a, 0, w, &to));
    lanes = oct_lanes_of(x, axis);
    if (w == OCT_WORK_F32) sum_f32(&lanes, exclusive, reverse, from, to);
    if (w == OCT_WORK_F64) sum_f64(&lanes, exclusive, reverse, from, to);
    if (w == OCT_WORK_I64) sum_u64(&lanes, exclusive, reverse, from, to);
    oct_work_done(a, 0, w, to);
    return OCT_OK;
}

/* An element is in the sums after it: running sums in the other direction. */
static oct_status grad(const oct_grad_args *a)
{
    oct_node *n =
        oct_emit_node(a->b, &oct_op_cum_sum, (oct_value *[]){a->dy[0], a->node->in[1]}, 2, 1);

    oct_emit_int(a->b, n, "exclusive", oct_int(a->node, EXCLUSIVE));
    oct_emit_int(a->b, n, "reverse", !oct_int(a->node, REVERSE));
    a->dx[0] = oct_emitted(a->b, n);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [EXCLUSIVE] = {.name = "exclusive", .kind = OCT_ATTR_INT},
    [REVERSE] = {.name = "reverse", .kind = OCT_ATTR_INT},
    {0},
};

const oct_op oct_op_cum_sum = {
    .name = "CumSum",
    .since = 11,
    .min_in = 2,
    .max_in = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .flow = OCT_FLOW_STOP,
};
