/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One engine for maps over tensors of any element type, with broadcasting.
 *
 * An operator gives loops for four types only. A tensor of another type is read and written in
 * small pieces through one of them: f16, bf16 and f8 through float, the narrow integers and bool
 * through int64.
 */
#ifndef OCT_OP_ELEMENTWISE_H
#define OCT_OP_ELEMENTWISE_H

#include "op/op.h"

/* --- broadcasting --- */

#define OCT_BCAST_MAX 3

/* Output dims, adjacent ones merged where all operands allow, with the operands' strides. */
typedef struct oct_bcast {
    int n_in, rank; /* rank >= 1 */
    int64_t dim[OCT_MAX_RANK];
    int64_t stride[OCT_BCAST_MAX][OCT_MAX_RANK]; /* in elements; innermost 0 or 1 */
} oct_bcast;

/* All types static, in[k] broadcasting to out. */
void oct_bcast_init(oct_bcast *b, const oct_type *out, int n_in, const oct_type *const *in);

/* n elements of the output from index `at`; operand k's from off[k], with its innermost stride. */
typedef void (*oct_bcast_fn)(void *arg, int64_t at, const int64_t off[], int64_t n);

/* Calls fn for the pieces of rows that make up output elements [begin, end). */
void oct_bcast_walk(const oct_bcast *b, int64_t begin, int64_t end, oct_bcast_fn fn, void *arg);

/* --- maps of one operand --- */

/* `p` is the operator's own: attributes. n elements of x to y. */
typedef void (*oct_unary_fn)(const void *p, const void *x, void *y, int64_t n);

typedef struct oct_unary {
    oct_unary_fn f32, f64, i64; /* NULL: not for such types */
    oct_unary_fn u64;           /* NULL: i64 does it */
    bool to_bool;               /* y is bool; otherwise of x's type */
} oct_unary;

/* Input 0 to output 0. */
oct_status oct_unary_run(const oct_args *a, const oct_unary *f, const void *p);

/* --- maps of two operands --- */

/* sx, sy: 0 or 1; 0 means the same element for all. */
typedef void (*oct_binary_fn)(const void *p, const void *x, int64_t sx, const void *y, int64_t sy,
                              void *z, int64_t n);

typedef struct oct_binary {
    oct_binary_fn f32, f64, i64;
    oct_binary_fn u64; /* NULL: i64 does it */
    bool to_bool;
} oct_binary;

/* Inputs 0 and 1, which broadcast, to output 0. */
oct_status oct_binary_run(const oct_args *a, const oct_binary *f, const void *p);

/* The same with x and y instead of the inputs; x may be the output. */
oct_status oct_binary_apply(const oct_args *a, const oct_binary *f, const void *p,
                            const oct_tensor *x, const oct_tensor *y);

/* out = f(...f(f(in 0, in 1), in 2)...) */
oct_status oct_variadic_run(const oct_args *a, const oct_binary *f, const void *p);

/* --- shape functions that also check element types --- */

oct_status oct_shape_same_float(const oct_infer *q);
oct_status oct_shape_same_numeric(const oct_infer *q);
oct_status oct_shape_broadcast_float(const oct_infer *q);
oct_status oct_shape_broadcast_numeric(const oct_infer *q);

/* Elements that one chunk of a parallel loop over elements has. */
#define OCT_MAP_GRAIN 16384

/* --- loops from expressions --- `x` (and `y`): operands; `p`: as above; `real`: their type */

#define OCT_UNARY_FN(name, T, R, expr)                                                             \
    static void name(const void *p, const void *xs, void *ys, int64_t n_)                          \
    {                                                                                              \
        typedef T real;                                                                            \
        const real *xv = xs;                                                                       \
        R *yv = ys;                                                                                \
                                                                                                   \
        (void)p;                                                                                   \
        for (int64_t i_ = 0; i_ < n_; i_++) {                                                      \
            const real x = xv[i_];                                                                 \
            yv[i_] = (R)(expr);                                                                    \
        }                                                                                          \
    }

/* The same expression for float and double; with <tgmath.h> functions follow the type. */
#define OCT_UNARY_FLOATS(name, expr)                                                               \
    OCT_UNARY_FN(name##_f32, float, real, expr)                                                    \
    OCT_UNARY_FN(name##_f64, double, real, expr)

#define OCT_BINARY_FN(name, T, R, expr)                                                            \
    static void name(const void *p, const void *xs, int64_t sx_, const void *ys, int64_t sy_,      \
                     void *zs, int64_t n_)                                                         \
    {                                                                                              \
        typedef T real;                                                                            \
        const real *xv = xs, *yv = ys;                                                             \
        R *zv = zs;                                                                                \
                                                                                                   \
        (void)p;                                                                                   \
        if (sx_ && sy_) {                                                                          \
            for (int64_t i_ = 0; i_ < n_; i_++) {                                                  \
                const real x = xv[i_], y = yv[i_];                                                 \
                zv[i_] = (R)(expr);                                                                \
            }                                                                                      \
        } else if (sx_) {                                                                          \
            const real y = yv[0];                                                                  \
            for (int64_t i_ = 0; i_ < n_; i_++) {                                                  \
                const real x = xv[i_];                                                             \
                zv[i_] = (R)(expr);                                                                \
            }                                                                                      \
        } else {                                                                                   \
            const real x = xv[0];                                                                  \
            for (int64_t i_ = 0; i_ < n_; i_++) {                                                  \
                const real y = yv[i_ * sy_];                                                       \
                zv[i_] = (R)(expr);                                                                \
            }                                                                                      \
        }                                                                                          \
    }

#define OCT_BINARY_FLOATS(name, expr)                                                              \
    OCT_BINARY_FN(name##_f32, float, real, expr)                                                   \
    OCT_BINARY_FN(name##_f64, double, real, expr)

/* Comparisons: the same expression for all types, to bool. */
#define OCT_BINARY_BOOLS(name, expr)                                                               \
    OCT_BINARY_FN(name##_f32, float, bool, expr)                                                   \
    OCT_BINARY_FN(name##_f64, double, bool, expr)                                                  \
    OCT_BINARY_FN(name##_i64, int64_t, bool, expr)                                                 \
    OCT_BINARY_FN(name##_u64, uint64_t, bool, expr)

#endif
