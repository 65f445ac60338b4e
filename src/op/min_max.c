/* SPDX-License-Identifier: Apache-2.0 */
/* Min and Max of any number of operands; what is not a number wins. */
#include "op/elementwise.h"

OCT_BINARY_FLOATS(min, x < y || x != x ? x : y)
OCT_BINARY_FN(min_i64, int64_t, int64_t, x < y ? x : y)
OCT_BINARY_FN(min_u64, uint64_t, uint64_t, x < y ? x : y)
OCT_BINARY_FLOATS(max, x > y || x != x ? x : y)
OCT_BINARY_FN(max_i64, int64_t, int64_t, x > y ? x : y)
OCT_BINARY_FN(max_u64, uint64_t, uint64_t, x > y ? x : y)

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
        .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_ACT}},                                           \
        .flow = OCT_FLOW_TIE,                                                                      \
        .flags = OCT_OP_ELEMENTWISE | OCT_OP_COMMUTES,                                             \
    }

ROW(min, "Min");
ROW(max, "Max");
