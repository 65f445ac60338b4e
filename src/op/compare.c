/* SPDX-License-Identifier: Apache-2.0 */
/* Equal, Greater, GreaterOrEqual, Less, LessOrEqual; IsNaN and IsInf. */
#include <math.h>

#include "op/elementwise.h"

static oct_status compare_of(const oct_infer *q, unsigned set)
{
    for (int i = 0; i < q->node->n_in; i++)
        OCT_TRY(oct_infer_check(q, i, set));
    return oct_shape_compare(q);
}

static oct_status shape_equal(const oct_infer *q)
{
    return compare_of(q, OCT_SET_NUMERIC | OCT_SET_BOOL);
}

static oct_status shape_order(const oct_infer *q)
{
    return compare_of(q, OCT_SET_NUMERIC);
}

#define ROW(sym, onnx, since_, shape_, expr, more_flags)                                           \
    OCT_BINARY_BOOLS(sym, expr)                                                                    \
                                                                                                   \
    static oct_status ref_##sym(const oct_args *a)                                                 \
    {                                                                                              \
        static const oct_binary f = {sym##_f32, sym##_f64, sym##_i64, sym##_u64, true};            \
                                                                                                   \
        return oct_binary_run(a, &f, NULL);                                                        \
    }                                                                                              \
                                                                                                   \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .since = since_,                                                                           \
        .min_in = 2,                                                                               \
        .max_in = 2,                                                                               \
        .shape = shape_,                                                                           \
        .ref = ref_##sym,                                                                          \
        .flow = OCT_FLOW_TIE,                                                                      \
        .flags = OCT_OP_ELEMENTWISE | (more_flags),                                                \
    }

ROW(equal, "Equal", 7, shape_equal, x == y, OCT_OP_COMMUTES);
ROW(greater, "Greater", 7, shape_order, x > y, 0);
ROW(greater_or_equal, "GreaterOrEqual", 12, shape_order, x >= y, 0);
ROW(less, "Less", 7, shape_order, x < y, 0);
ROW(less_or_equal, "LessOrEqual", 12, shape_order, x <= y, 0);

/* --- tests of one number --- */

#define F8_SET                                                                                     \
    (OCT_SET(OCT_DTYPE_F8E4M3FN) | OCT_SET(OCT_DTYPE_F8E4M3FNUZ) | OCT_SET(OCT_DTYPE_F8E5M2) |     \
     OCT_SET(OCT_DTYPE_F8E5M2FNUZ))

static oct_status shape_test(const oct_infer *q)
{
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT | F8_SET));
    OCT_TRY(oct_shape_same(q));
    q->out[0].dtype = OCT_DTYPE_BOOL;
    return OCT_OK;
}

OCT_UNARY_FN(isnan_f32, float, bool, isnan(x))
OCT_UNARY_FN(isnan_f64, double, bool, isnan(x))

static oct_status ref_isnan(const oct_args *a)
{
    static const oct_unary f = {.f32 = isnan_f32, .f64 = isnan_f64, .to_bool = true};

    return oct_unary_run(a, &f, NULL);
}

const oct_op oct_op_is_nan = {
    .name = "IsNaN",
    .since = 9,
    .min_in = 1,
    .max_in = 1,
    .shape = shape_test,
    .ref = ref_isnan,
    .flow = OCT_FLOW_PASS,
    .flags = OCT_OP_ELEMENTWISE,
};

enum { DETECT_NEGATIVE, DETECT_POSITIVE };

#define IS_INF                                                                                     \
    (isinf(x) && (x < 0 ? oct_int(p, DETECT_NEGATIVE) != 0 : oct_int(p, DETECT_POSITIVE) != 0))

OCT_UNARY_FN(isinf_f32, float, bool, IS_INF)
OCT_UNARY_FN(isinf_f64, double, bool, IS_INF)

static oct_status ref_isinf(const oct_args *a)
{
    static const oct_unary f = {.f32 = isinf_f32, .f64 = isinf_f64, .to_bool = true};

    return oct_unary_run(a, &f, a->node);
}

static const oct_attr_def isinf_attrs[] = {
    [DETECT_NEGATIVE] = {"detect_negative", OCT_ATTR_INT, .def.i = 1},
    [DETECT_POSITIVE] = {"detect_positive", OCT_ATTR_INT, .def.i = 1},
    {0},
};

const oct_op oct_op_is_inf = {
    .name = "IsInf",
    .since = 10,
    .min_in = 1,
    .max_in = 1,
    .attrs = isinf_attrs,
    .shape = shape_test,
    .ref = ref_isinf,
    .flow = OCT_FLOW_PASS,
    .flags = OCT_OP_ELEMENTWISE,
};
