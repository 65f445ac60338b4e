/* SPDX-License-Identifier: Apache-2.0 */
/* The table of layers that can be read; those that are operators of ONNX under another name. */
#include <string.h>

#include "op/op.h"
#include "openvino/read.h"

static const struct {
    const char *type;
    oct_from_ir_fn read;
} rows[] = {
#define OCT_IR_LAYER(type, fn) {type, oct_from_ir_##fn},
#include "openvino/read_layers.def"
#undef OCT_IR_LAYER
};

static const struct {
    const char *type;
    const oct_op *op;
    int n_in;
} same[] = {
    {"ReLU", &oct_op_relu, 1},         {"Relu", &oct_op_relu, 1},
    {"Sigmoid", &oct_op_sigmoid, 1},   {"Tanh", &oct_op_tanh, 1},
    {"Exp", &oct_op_exp, 1},           {"Log", &oct_op_log, 1},
    {"Sqrt", &oct_op_sqrt, 1},         {"Erf", &oct_op_erf, 1},
    {"Floor", &oct_op_floor, 1},       {"Ceiling", &oct_op_ceil, 1},
    {"Abs", &oct_op_abs, 1},           {"Negative", &oct_op_neg, 1},
    {"Sign", &oct_op_sign, 1},         {"Sin", &oct_op_sin, 1},
    {"Cos", &oct_op_cos, 1},           {"LogicalNot", &oct_op_not, 1},
    {"SoftPlus", &oct_op_softplus, 1}, {"SoftSign", &oct_op_softsign, 1},
    {"Mish", &oct_op_mish, 1},         {"HSwish", &oct_op_hard_swish, 1},
    {"Subtract", &oct_op_sub, 2},      {"Divide", &oct_op_div, 2},
    {"Power", &oct_op_pow, 2},         {"Maximum", &oct_op_max, 2},
    {"Minimum", &oct_op_min, 2},       {"Equal", &oct_op_equal, 2},
    {"Greater", &oct_op_greater, 2},   {"GreaterEqual", &oct_op_greater_or_equal, 2},
    {"Less", &oct_op_less, 2},         {"LessEqual", &oct_op_less_or_equal, 2},
    {"LogicalAnd", &oct_op_and, 2},    {"LogicalOr", &oct_op_or, 2},
    {"LogicalXor", &oct_op_xor, 2},    {"Select", &oct_op_where, 3},
    {"Identity", &oct_op_identity, 1},
};

static oct_status read_same(oct_from_ir *r, const oct_ir_layer *l)
{
    for (size_t i = 0; i < OCT_COUNT(same); i++) {
        if (strcmp(same[i].type, l->type) != 0) continue;
        if (l->n_in != same[i].n_in)
            return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "%d operands, not %d", (int)l->n_in,
                                    same[i].n_in);
        return oct_from_ir_done(r, l, 0,
                                oct_emit(&r->b, same[i].op, oct_from_ir_in(r, l, 0),
                                         oct_from_ir_in(r, l, 1), oct_from_ir_in(r, l, 2)));
    }
    return OCT_ERR_STATE;
}

oct_from_ir_fn oct_from_ir_find(const char *type)
{
    for (size_t i = 0; i < OCT_COUNT(rows); i++)
        if (strcmp(rows[i].type, type) == 0) return rows[i].read;
    for (size_t i = 0; i < OCT_COUNT(same); i++)
        if (strcmp(same[i].type, type) == 0) return read_same;
    return NULL;
}
