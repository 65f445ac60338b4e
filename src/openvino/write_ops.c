/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators that have a form in IR; those whose form is the same under another name.
 */
#include "op/op.h"
#include "openvino/write.h"

typedef struct row {
    const oct_op *op;
    oct_to_ir_fn write;
} row;

static const row rows[] = {
#define OCT_IR_OP(sym, fn) {&oct_op_##sym, oct_to_ir_##fn},
#include "openvino/write_ops.def"
#undef OCT_IR_OP
};

/* Operators of one or two operands that differ in nothing but the name. */
static const struct {
    const oct_op *op;
    const char *type, *version;
    int n_in;
} same[] = {
    {&oct_op_relu, "ReLU", "opset1", 1},
    {&oct_op_sigmoid, "Sigmoid", "opset1", 1},
    {&oct_op_tanh, "Tanh", "opset1", 1},
    {&oct_op_exp, "Exp", "opset1", 1},
    {&oct_op_log, "Log", "opset1", 1},
    {&oct_op_sqrt, "Sqrt", "opset1", 1},
    {&oct_op_erf, "Erf", "opset1", 1},
    {&oct_op_floor, "Floor", "opset1", 1},
    {&oct_op_ceil, "Ceiling", "opset1", 1},
    {&oct_op_abs, "Abs", "opset1", 1},
    {&oct_op_neg, "Negative", "opset1", 1},
    {&oct_op_sign, "Sign", "opset1", 1},
    {&oct_op_sin, "Sin", "opset1", 1},
    {&oct_op_cos, "Cos", "opset1", 1},
    {&oct_op_not, "LogicalNot", "opset1", 1},
    {&oct_op_softplus, "SoftPlus", "opset4", 1},
    {&oct_op_softsign, "SoftSign", "opset9", 1},
    {&oct_op_mish, "Mish", "opset4", 1},
    {&oct_op_hard_swish, "HSwish", "opset4", 1},
    {&oct_op_add, "Add", "opset1", 2},
    {&oct_op_sub, "Subtract", "opset1", 2},
    {&oct_op_mul, "Multiply", "opset1", 2},
    {&oct_op_div, "Divide", "opset1", 2},
    {&oct_op_pow, "Power", "opset1", 2},
    {&oct_op_equal, "Equal", "opset1", 2},
    {&oct_op_greater, "Greater", "opset1", 2},
    {&oct_op_greater_or_equal, "GreaterEqual", "opset1", 2},
    {&oct_op_less, "Less", "opset1", 2},
    {&oct_op_less_or_equal, "LessEqual", "opset1", 2},
    {&oct_op_and, "LogicalAnd", "opset1", 2},
    {&oct_op_or, "LogicalOr", "opset1", 2},
    {&oct_op_xor, "LogicalXor", "opset1", 2},
};

static oct_status write_same(oct_to_ir *w, const oct_node *n)
{
    for (size_t i = 0; i < OCT_COUNT(same); i++) {
        if (same[i].op != n->op) continue;
        OCT_TRY(oct_to_ir_same(w, n, same[i].type, same[i].version, same[i].n_in));
        if (same[i].n_in == 2) oct_ir_attr_str(&w->ir, "auto_broadcast", "numpy");
        if (n->op == &oct_op_div) /* integers are cut off, not rounded down */
            oct_ir_attr_bool(&w->ir, "m_pythondiv", false);
    }
    return w->ir.status;
}

oct_to_ir_fn oct_to_ir_find(const oct_op *op)
{
    for (size_t i = 0; i < OCT_COUNT(rows); i++)
        if (rows[i].op == op) return rows[i].write;
    for (size_t i = 0; i < OCT_COUNT(same); i++)
        if (same[i].op == op) return write_same;
    return NULL;
}
