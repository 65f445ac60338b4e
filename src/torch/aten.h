/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translating ATen operators into nodes of octet's graph: one row for each operator (aten.def), and
 * what the translating functions share. All of it is sticky: after the first failure nothing more
 * is emitted, and the reader reports it with the node's name.
 */
#ifndef OCT_TORCH_ATEN_H
#define OCT_TORCH_ATEN_H

#include "op/op.h"
#include "torch/program.h"
#include "torch/weights.h"

typedef struct oct_torch oct_torch;
typedef struct oct_aten oct_aten;

/* An operator. */
typedef struct oct_aten_row {
    const char *target;
    void (*emit)(oct_aten *a);
    const oct_op *unary; /* what it is, if it is no more than that; then emit is NULL */
    /* Its result is a view of "self" (or the first of "tensors"): the value of that operand after
     * the view was overwritten with `y`. NULL: not a view. */
    oct_value *(*write)(oct_aten *a, oct_value *whole, oct_value *y);
} oct_aten_row;

const oct_aten_row *oct_aten_find(const char *target); /* NULL: octet does not know it */

/* The same; of an operator in place, the one it is otherwise like: relu_ is relu. */
const oct_aten_row *oct_aten_row_of(const char *target);

/* Row i, sorted by target; NULL beyond the end. */
const oct_aten_row *oct_aten_at(size_t i);

/* A name of the program: a tensor or a symbolic number. */
typedef struct oct_slot {
    const char *name;
    const oct_meta *meta; /* what the file says; NULL: nothing */
    const oct_spec *spec; /* a weight that nobody has read yet */
    oct_value *v;         /* tensor, or (symbolic number) int64[1] */
    bool is_sym, is_known;
    int64_t number; /* is_known */
    /* Views: after one of them or the whole is written in place, the others are made again. */
    struct oct_slot *parent; /* what it is a view of; NULL: it has its own data */
    const oct_call_node *view;
    int32_t view_out; /* which result of that node */
    int32_t depth;    /* views between it and its root */
    int64_t version;  /* of its root, when v was made; of a root: writes so far */
} oct_slot;

/* A program being translated. */
struct oct_torch {
    oct_ctx *ctx;
    oct_program *p;
    oct_weights weights;
    oct_graph *g;
    oct_builder b;
    oct_arena *arena;                /* while reading */
    oct_map slots;                   /* name -> oct_slot */
    oct_map node_names, value_names; /* -> int64_t, the last suffix given out */
};

/* One call of a row. */
struct oct_aten {
    oct_torch *t;
    oct_builder *b;
    const oct_call_node *n;
    const oct_meta *meta; /* of result 0; never NULL, but its type may be unknown */
    oct_value **out;      /* n_out results, NULL at first */
    int32_t n_out;
    bool is_copy;     /* set by a row of views: this time the result has its own data */
    oct_value *whole; /* stands for the viewed operand while a view is made again; else NULL */
};

/* --- slots (slots.c) --- */

oct_slot *oct_torch_slot(oct_torch *t, const char *name); /* NULL with the error set */
oct_value *oct_torch_read(oct_torch *t, oct_slot *s);     /* its value now */
oct_status oct_torch_call(oct_torch *t, const oct_call_node *n, const oct_aten_row *row);
oct_status oct_torch_define(oct_torch *t, const char *name, oct_slot **out);

/* A name nobody has yet: "BASE", "BASE_1" .. */
const char *oct_torch_unique(oct_torch *t, oct_map *names, const char *base);

/* --- arguments (arguments.c) --- by name; a missing one means the operator's default */

const oct_arg *oct_aten_arg(const oct_aten *a, const char *name); /* NULL: missing or None */
bool oct_aten_has(const oct_aten *a, const char *name);
oct_value *oct_aten_tensor(oct_aten *a, const char *name); /* fails if it is missing */
oct_value *oct_aten_optional(oct_aten *a, const char *name);
int64_t oct_aten_int(oct_aten *a, const char *name, int64_t def);
double oct_aten_f64(oct_aten *a, const char *name, double def);
bool oct_aten_bool(oct_aten *a, const char *name, bool def);
const char *oct_aten_text(oct_aten *a, const char *name, const char *def);

/* Known integers of a list (or one number): at most OCT_MAX_RANK. Returns how many; 0: missing. */
int oct_aten_ints(oct_aten *a, const char *name, int64_t out[OCT_MAX_RANK]);

/* For each of `rank` spatial axes: a list of one counts for all of them, a missing one is `def`. */
void oct_aten_spatial(oct_aten *a, const char *name, int rank, int64_t def,
                      int64_t out[OCT_MAX_RANK]);

/* Tensors of a list; in the arena. NULL elements were None. */
oct_value **oct_aten_tensors(oct_aten *a, const char *name, int32_t *n);

/* A list of sizes as an int64 vector, symbolic ones computed; known[i] (may be NULL) are those that
 * are numbers, else -2. */
oct_value *oct_aten_sizes(oct_aten *a, const char *name, int64_t *known, int *n);

/* A number, which may be symbolic: int64[1]. */
oct_value *oct_aten_number(oct_aten *a, const oct_arg *arg);

/* A tensor or number as a tensor of this type. */
oct_value *oct_aten_operand(oct_aten *a, const char *name, oct_dtype dtype);

/* The element type in which operators compute with operands of these names. */
oct_dtype oct_aten_common(oct_aten *a, const char *x, const char *y);

int32_t oct_aten_axis(oct_aten *a, int64_t axis, int32_t rank); /* fails if there is none such */
void oct_aten_fail(oct_aten *a, oct_status st, const char *fmt, ...) OCT_PRINTF(3, 4);

/* --- emitting (emit.c) --- */

oct_node *oct_aten_node(oct_aten *a, const oct_op *op, oct_value *const *in, int32_t n_in,
                        int32_t n_out);
oct_value *oct_aten_emit(oct_aten *a, const oct_op *op, oct_value *x, oct_value *y, oct_value *z);
oct_value *oct_aten_done(oct_aten *a, oct_node *n); /* after its attributes are set: result 0 */

#define ATEN1(sym, x)       oct_aten_emit(a, &oct_op_##sym, x, NULL, NULL)
#define ATEN2(sym, x, y)    oct_aten_emit(a, &oct_op_##sym, x, y, NULL)
#define ATEN3(sym, x, y, z) oct_aten_emit(a, &oct_op_##sym, x, y, z)

int32_t oct_aten_rank(oct_aten *a, const oct_value *v); /* fails if it is not known */
int64_t oct_aten_dim(const oct_value *v, int32_t axis); /* -1: not known */

oct_value *oct_aten_ints_of(oct_aten *a, int n, ...); /* int64 vector of n int64_t */
oct_value *oct_aten_cast(oct_aten *a, oct_value *v, oct_dtype to);
oct_value *oct_aten_scalar(oct_aten *a, oct_dtype dtype, double v);
oct_value *oct_aten_reshape(oct_aten *a, oct_value *v, const int64_t *dims, int n); /* no 0 */
oct_value *oct_aten_transpose(oct_aten *a, oct_value *v, const int64_t *perm, int n);
oct_value *oct_aten_swap(oct_aten *a, oct_value *v, int32_t x, int32_t y);
oct_value *oct_aten_slice(oct_aten *a, oct_value *v, int64_t axis, int64_t begin, int64_t end);
oct_value *oct_aten_squeeze(oct_aten *a, oct_value *v, int64_t axis);
oct_value *oct_aten_unsqueeze(oct_aten *a, oct_value *v, int64_t axis);
oct_value *oct_aten_concat(oct_aten *a, oct_value *const *v, int32_t n, int64_t axis);
oct_value *oct_aten_softmax(oct_aten *a, const oct_op *op, oct_value *v, int64_t axis);
oct_value *oct_aten_reduce(oct_aten *a, const oct_op *op, oct_value *v, const int64_t *axes, int n,
                           bool keep);
oct_value *oct_aten_shape_of(oct_aten *a, oct_value *v);
oct_value *oct_aten_size_of(oct_aten *a, oct_value *v, int32_t axis); /* int64[1] */
oct_value *oct_aten_filled(oct_aten *a, oct_value *shape, oct_dtype dtype, double v);

/* In front of the classes of modules in the doc of a node: "torch.nn: ResNet > Conv2d". */
#define OCT_TORCH_DOC "torch.nn: "

/* --- functions of rows, and of their views --- */

// clang-format off
#define OCT_ATEN(target, emit)                void oct_aten_##emit(oct_aten *a);
#define OCT_ATEN_VIEW(target, emit, write)    void oct_aten_##emit(oct_aten *a); \
    oct_value *oct_aten_write_##write(oct_aten *a, oct_value *whole, oct_value *y);
#define OCT_ATEN_UNARY(target, op)
#include "torch/aten.def"
#undef OCT_ATEN
#undef OCT_ATEN_VIEW
#undef OCT_ATEN_UNARY
// clang-format on

#endif
