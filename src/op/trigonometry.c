/* SPDX-License-Identifier: Apache-2.0 */
/* Sin, Cos, Tan, their hyperbolic sisters and the inverses of all six. */
#include <tgmath.h>

#include "op/elementwise.h"

#define ROW(sym, onnx, since_)                                                                     \
    OCT_UNARY_FLOATS(sym, sym(x))                                                                  \
                                                                                                   \
    static oct_status ref_##sym(const oct_args *a)                                                 \
    {                                                                                              \
        static const oct_unary f = {.f32 = sym##_f32, .f64 = sym##_f64};                           \
                                                                                                   \
        return oct_unary_run(a, &f, NULL);                                                         \
    }                                                                                              \
                                                                                                   \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .since = since_,                                                                           \
        .min_in = 1,                                                                               \
        .max_in = 1,                                                                               \
        .shape = oct_shape_same_float,                                                             \
        .ref = ref_##sym,                                                                          \
        .flow = OCT_FLOW_PASS,                                                                     \
        .flags = OCT_OP_ELEMENTWISE,                                                               \
    }

ROW(sin, "Sin", 7);
ROW(cos, "Cos", 7);
ROW(tan, "Tan", 7);
ROW(asin, "Asin", 7);
ROW(acos, "Acos", 7);
ROW(atan, "Atan", 7);
ROW(sinh, "Sinh", 9);
ROW(cosh, "Cosh", 9);
ROW(asinh, "Asinh", 9);
ROW(acosh, "Acosh", 9);
ROW(atanh, "Atanh", 9);
