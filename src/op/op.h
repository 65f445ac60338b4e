/* SPDX-License-Identifier: Apache-2.0 */
/* All rows, the table of them, and what several rows share: shape functions, broadcasting, loops.
 */
#ifndef OCT_OP_OP_H
#define OCT_OP_OP_H

#include "graph/op.h"

#define OCT_OPSET_INTERNAL 25 /* rows have the meaning they have in this opset */

#define OCT_OP(sym) extern const oct_op oct_op_##sym;
#include "op/ops.def"
#undef OCT_OP

/* The row of an operator, or NULL. */
const oct_op *oct_op_find(const char *domain, const char *name);

/* Row i of the table, sorted by file order; NULL beyond its end. */
const oct_op *oct_op_at(int i);

/* Axes of a node's constant f32 weight, by its row; false: it has none. */
bool oct_weight_axes_of(const oct_node *n, oct_weight_axes *out);

/* Numbers in a layer's float weights: those that have axes, the matrices of a recurrent layer, the
 * table that a Gather looks up in; 0: it has none. */
int64_t oct_weight_count(const oct_node *n);
bool oct_node_is_recurrent(const oct_node *n);

/* --- shape functions shared by rows (op/shape.c) --- */

oct_status oct_shape_same(const oct_infer *q);      /* out 0 = in 0 */
oct_status oct_shape_broadcast(const oct_infer *q); /* all inputs broadcast; dtype of in 0 */
oct_status oct_shape_compare(const oct_infer *q);   /* all inputs broadcast; bool */

/* Errors with the node's name. */
#define oct_infer_fail(q, ...) oct_node_fail((q)->node, __VA_ARGS__)

/* NumPy broadcasting of two types' shapes into *out (rank, dims only). Unknown dims allowed. */
oct_status oct_broadcast(const oct_node *n, const oct_type *a, const oct_type *b, oct_type *out);

/* Axis in [-rank, rank) to [0, rank); fails naming the node. */
oct_status oct_axis(const oct_node *n, int64_t axis, int32_t rank, int32_t *out);

/* Operand i, or NULL if it is not given. */
static inline const oct_type *oct_infer_in(const oct_infer *q, int i)
{
    return i < q->node->n_in ? q->in[i] : NULL;
}

static inline const oct_tensor *oct_infer_data(const oct_infer *q, int i)
{
    return i < q->node->n_in && q->in[i] ? q->data[i] : NULL;
}

static inline oct_tensor *oct_args_in(const oct_args *a, int i)
{
    return i < a->node->n_in ? a->in[i] : NULL;
}

/* Result i, or NULL if it is not wanted. */
static inline oct_tensor *oct_args_out(const oct_args *a, int i)
{
    return i < a->node->n_out ? a->out[i] : NULL;
}

/* The type of operand i, which must be given. */
oct_status oct_infer_need(const oct_infer *q, int i, const oct_type **out);

/* Sets of element types, as bits. */
#define OCT_SET(t) (1u << (t))
enum {
    OCT_SET_FLOAT = OCT_SET(OCT_DTYPE_F16) | OCT_SET(OCT_DTYPE_F32) | OCT_SET(OCT_DTYPE_F64) |
                    OCT_SET(OCT_DTYPE_BF16),
    OCT_SET_UINT = OCT_SET(OCT_DTYPE_U8) | OCT_SET(OCT_DTYPE_U16) | OCT_SET(OCT_DTYPE_U32) |
                   OCT_SET(OCT_DTYPE_U64),
    OCT_SET_SINT = OCT_SET(OCT_DTYPE_I8) | OCT_SET(OCT_DTYPE_I16) | OCT_SET(OCT_DTYPE_I32) |
                   OCT_SET(OCT_DTYPE_I64),
    OCT_SET_INT = OCT_SET_UINT | OCT_SET_SINT,
    OCT_SET_NUMERIC = OCT_SET_FLOAT | OCT_SET_INT,
    OCT_SET_BOOL = OCT_SET(OCT_DTYPE_BOOL),
};

/* OCT_ERR_TYPE unless operand i is absent, of unknown type, or of one in the set. */
oct_status oct_infer_check(const oct_infer *q, int i, unsigned set);

/* An element type given as a number in an attribute; fails unless octet computes with it. */
oct_status oct_dtype_attr(const oct_node *n, int64_t v, oct_dtype *out);

/* A type with these dims; fails if they are no shape. */
oct_status oct_type_of_dims(const oct_node *n, oct_dtype dtype, const int64_t *dim, int64_t rank,
                            oct_type *out);

/* A small integer operand as an array in *out (room for max). *n = -1: not constant. */
oct_status oct_infer_ints(const oct_infer *q, int i, int64_t *out, int max, int *n);

/* --- attributes by index into the row's attrs --- */

static inline int64_t oct_int(const oct_node *n, int attr)
{
    return n->attr[attr].i;
}

static inline float oct_f32(const oct_node *n, int attr)
{
    return n->attr[attr].f;
}

static inline bool oct_has(const oct_node *n, int attr)
{
    return n->attr[attr].kind != OCT_ATTR_NONE;
}

#endif
