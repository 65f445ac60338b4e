/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph to IR: what the rows of operators share. */
#ifndef OCT_OPENVINO_WRITE_H
#define OCT_OPENVINO_WRITE_H

#include "graph/op.h"
#include "openvino/ir.h"

typedef struct oct_to_ir {
    oct_ir ir;
    const oct_graph *g;
    oct_ir_at *at; /* by value id: the output that has it; layer -1: not written (yet) */
    bool half;
} oct_to_ir;

typedef oct_status (*oct_to_ir_fn)(oct_to_ir *w, const oct_node *n);

/* Where operand i comes from: constants are added when they are first read. */
oct_ir_at oct_to_ir_in(oct_to_ir *w, const oct_node *n, int32_t i);
oct_ir_at oct_to_ir_value(oct_to_ir *w, const oct_value *v);

/* A constant of its own, as float16 if that was asked for; takes the reference to t. */
oct_ir_at oct_to_ir_const(oct_to_ir *w, const char *name, oct_tensor *t);

/* Result i of the node is there. */
oct_status oct_to_ir_done(oct_to_ir *w, const oct_node *n, int32_t i, oct_ir_at at);

/* A layer named as the node, with its operands and results as they are; it may get attributes. */
oct_status oct_to_ir_same(oct_to_ir *w, const oct_node *n, const char *type, const char *version,
                          int32_t n_in);

/* A layer with one result of this type, made for the node under the name NODE/suffix. */
oct_ir_at oct_to_ir_emit(oct_to_ir *w, const oct_node *n, const char *suffix, const char *type,
                         const char *version, const oct_ir_at *in, int32_t n_in,
                         const oct_type *out);

/* Elementwise, with broadcasting. */
oct_ir_at oct_to_ir_binary(oct_to_ir *w, const oct_node *n, const char *suffix, const char *type,
                           oct_ir_at a, oct_ir_at b, const oct_type *out);

/* A constant list of integers, made for the node under the name NODE/suffix. */
oct_ir_at oct_to_ir_ints(oct_to_ir *w, const oct_node *n, const char *suffix, const int64_t *v,
                         int64_t len);

/* A constant, or what dequantizes constant codes, under another shape; else a Reshape. */
oct_ir_at oct_to_ir_reshaped(oct_to_ir *w, const oct_node *n, const oct_value *v,
                             const oct_type *to);

/* Attribute i.. by name. */
int64_t oct_to_ir_int(const oct_node *n, const char *name, int64_t otherwise);
double oct_to_ir_f64(const oct_node *n, const char *name, double otherwise);
const char *oct_to_ir_str(oct_to_ir *w, const oct_node *n, const char *name, const char *otherwise);

/* Turns QLinear operators into Q/DQ and folds what is constant, where that has to be
 * (write_prepare.c). */
oct_status oct_to_ir_prepare(oct_graph *g);

/* Spells DynamicQuantizeLinear, ConvInteger and MatMulInteger out (write_dynamic.c). */
oct_status oct_to_ir_spell_dynamic(oct_graph *g);

/* The row of an operator; NULL: IR has no form of it that octet knows (write_ops.c). */
oct_to_ir_fn oct_to_ir_find(const oct_op *op);

#define OCT_IR_OP(sym, fn) oct_status oct_to_ir_##fn(oct_to_ir *w, const oct_node *n);
#include "openvino/write_ops.def"
#undef OCT_IR_OP

#endif
