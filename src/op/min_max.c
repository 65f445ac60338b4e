/* SPDX-License-Identifier: Apache-2.0 */
/* Min and Max of any number of operands; what is not a number wins. */
#include "op/elementwise.h"
#include "op/grad/rules.h"

OCT_BINARY_FLOATS(min, x < y || x != x ? x : y)
OCT_BINARY_FN(min_i64, int64_t, int64_t, x < y ? x : y)
OCT_BINARY_FN(min_u64, uint64_t, uint64_t, x < y ? x : y)
OCT_BINARY_FLOATS(max, x > y || x != x ? x : y)
OCT_BINARY_FN(max_i64, int64_t, int64_t, x > y ? x : y)
OCT_BINARY_FN(max_u64, uint64_t, uint64_t, x > y ? x : y)

/* The gradient goes to the first operand that has the result's value. */
static oct_status grad(const oct_grad_args *a)
{
    oct_value *zero = oct_grad_number(a, 0, 0), *left = a->dy[0];
    int n = a->node->n_in;

    while (n > 0 && !a->wanted[n - 1])
        n--;
    for (int i = 0; i < n; i++) {
        oct_value *x = a->node->in[i], *is_it = OCT_EMIT2(equal, x, a->node->out[0]);

        if (a->wanted[i]) a->dx[i] = oct_grad_sum_to(a->b, OCT_EMIT3(where, is_it, left, zero), x);
        if (i < n - 1) left = OCT_EMIT3(where, is_it, zero, left);
    }
    return OCT_OK;
}

#define ROW(sym, onnx)                                                                             \
    static oct_status ref_##sym(const oct_args *a)                                                 \
    {                                                                                              \
        static const oct_binary f = {sym##_f32, sym##_f64, sym##_i64, sym##_u64, false};           \
                                                                                                   \
        return oct_variadic_run(a, &f, NULL);                                                      \
    }                                                                                              \
                                                                                                   \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .since = 8,                                                                                \
        .min_in = 1,                                                                               \
        .max_in = -1,                                                                              \
        .shape = oct_shape_broadcast_numeric,                                                      \
        .ref = ref_##sym,                                                                          \
        .grad = grad,                                                                              \
        .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_ACT}},                                           \
        .flow = OCT_FLOW_TIE,                                                                      \
        .flags = OCT_OP_ELEMENTWISE | OCT_OP_COMMUTES,                                             \
    }

ROW(min, "Min");
ROW(max, "Max");
