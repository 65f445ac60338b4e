/* SPDX-License-Identifier: Apache-2.0 */
/* Bits and truth: And, Or, Xor, Not of bools; the same of integers, and BitShift. */
#include <string.h>

#include "op/elementwise.h"

static oct_status shape_of(const oct_infer *q, unsigned set)
{
    for (int i = 0; i < q->node->n_in; i++)
        OCT_TRY(oct_infer_check(q, i, set));
    return oct_shape_broadcast(q); /* of one operand: the same */
}

static oct_status shape_bool(const oct_infer *q)
{
    return shape_of(q, OCT_SET_BOOL);
}

static oct_status shape_int(const oct_infer *q)
{
    return shape_of(q, OCT_SET_INT);
}

#define BINARY_ROW(sym, onnx, since_, shape_, expr)                                                \
    OCT_BINARY_FN(sym, int64_t, int64_t, expr)                                                     \
                                                                                                   \
    static oct_status ref_##sym(const oct_args *a)                                                 \
    {                                                                                              \
        static const oct_binary f = {.i64 = sym};                                                  \
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
        .flags = OCT_OP_ELEMENTWISE | OCT_OP_COMMUTES,                                             \
    }

#define UNARY_ROW(sym, onnx, since_, shape_, expr)                                                 \
    OCT_UNARY_FN(sym, int64_t, int64_t, expr)                                                      \
                                                                                                   \
    static oct_status ref_##sym(const oct_args *a)                                                 \
    {                                                                                              \
        static const oct_unary f = {.i64 = sym};                                                   \
                                                                                                   \
        return oct_unary_run(a, &f, NULL);                                                         \
    }                                                                                              \
                                                                                                   \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .since = since_,                                                                           \
        .min_in = 1,                                                                               \
        .max_in = 1,                                                                               \
        .shape = shape_,                                                                           \
        .ref = ref_##sym,                                                                          \
        .flow = OCT_FLOW_PASS,                                                                     \
        .flags = OCT_OP_ELEMENTWISE,                                                               \
    }

BINARY_ROW(and, "And", 7, shape_bool, x &y);
BINARY_ROW(or, "Or", 7, shape_bool, x | y);
BINARY_ROW(xor, "Xor", 7, shape_bool, x ^ y);
UNARY_ROW(not, "Not", 7, shape_bool, !x);
BINARY_ROW(bitwise_and, "BitwiseAnd", 18, shape_int, x &y);
BINARY_ROW(bitwise_or, "BitwiseOr", 18, shape_int, x | y);
BINARY_ROW(bitwise_xor, "BitwiseXor", 18, shape_int, x ^ y);
UNARY_ROW(bitwise_not, "BitwiseNot", 18, shape_int, ~x);

/* --- BitShift --- by at least the width of the type: nothing is left */

enum { DIRECTION };

OCT_BINARY_FN(shift_left, uint64_t, uint64_t, y < 64 ? x << y : 0)
OCT_BINARY_FN(shift_right, uint64_t, uint64_t, y < 64 ? x >> y : 0)

static bool is_left(const oct_node *n)
{
    return strcmp(n->attr[DIRECTION].s, "LEFT") == 0;
}

static oct_status shape_shift(const oct_infer *q)
{
    const char *direction;

    if (!oct_has(q->node, DIRECTION))
        return oct_infer_fail(q, OCT_ERR_FORMAT, "the attribute direction is missing");
    direction = q->node->attr[DIRECTION].s;
    if (!is_left(q->node) && strcmp(direction, "RIGHT") != 0)
        return oct_infer_fail(q, OCT_ERR_FORMAT, "direction is '%.40s', not LEFT or RIGHT",
                              direction);
    return shape_of(q, OCT_SET_UINT);
}

static oct_status ref_shift(const oct_args *a)
{
    static const oct_binary left = {.i64 = shift_left}, right = {.i64 = shift_right};

    return oct_binary_run(a, is_left(a->node) ? &left : &right, NULL);
}

static const oct_attr_def shift_attrs[] = {
    [DIRECTION] = {"direction", OCT_ATTR_STRING, .no_default = true, .required = true},
    {0},
};

const oct_op oct_op_bit_shift = {
    .name = "BitShift",
    .since = 11,
    .min_in = 2,
    .max_in = 2,
    .attrs = shift_attrs,
    .shape = shape_shift,
    .ref = ref_shift,
    .flow = OCT_FLOW_TIE,
    .flags = OCT_OP_ELEMENTWISE,
};
