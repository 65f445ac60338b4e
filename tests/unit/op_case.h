/* SPDX-License-Identifier: Apache-2.0 */
/* One operator on constant operands: for tests of rows. */
#ifndef OCT_TESTS_OP_CASE_H
#define OCT_TESTS_OP_CASE_H

#include "op/op.h"
#include "tests/test.h"

/* Dims in a row, ended by -9: DIMS(2, 3). */
#define DIMS(...) ((const int64_t[]){__VA_ARGS__, -9})
#define SCALAR    ((const int64_t[]){-9})

static inline int32_t rank_of(const int64_t *dims)
{
    int32_t rank = 0;

    while (dims[rank] != -9)
        rank++;
    return rank;
}

/* A constant whose elements are v[], or 0, 1, 2, ... if v is NULL. */
static inline oct_value *constant(fixture *f, oct_dtype t, const int64_t *dims, const double *v)
{
    const oct_type type = oct_type_make(t, rank_of(dims), dims);
    oct_tensor *x = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &x));
    for (int64_t i = 0, n = oct_type_len(&type); i < n; i++) {
        const double e = v ? v[i] : (double)i;
        oct_store_f64(t, x->data, i, 1, &e);
    }
    return oct_value_const(f->g, NULL, x);
}

static inline oct_value *ints(fixture *f, int64_t n, const int64_t *v)
{
    oct_tensor *x = NULL;

    assert_ok(f->ctx, oct_tensor_vec_i64(f->ctx, v, n, &x));
    return oct_value_const(f->g, NULL, x);
}

#define INTS(f, ...)                                                                               \
    ints(f, (int64_t)OCT_COUNT(((const int64_t[]){__VA_ARGS__})), (const int64_t[]){__VA_ARGS__})

/* A value of this type without data: for shape inference. */
static inline oct_value *unknown(fixture *f, oct_dtype t, const int64_t *dims)
{
    const oct_type type = oct_type_make(t, rank_of(dims), dims);

    return oct_value_new(f->g, NULL, &type);
}

/* A node on up to five operands (NULL: absent). */
static inline oct_node *node_of(fixture *f, const oct_op *op, oct_value *const *in, int32_t n_out)
{
    oct_node *n;
    int32_t n_in = 5;

    while (n_in > 0 && !in[n_in - 1])
        n_in--;
    n = oct_emit_node(&f->b, op, in, n_in, n_out);
    assert_non_null(n);
    return n;
}

#define NODE(f, op, n_out, ...) node_of(f, op, (oct_value *const[6]){__VA_ARGS__, NULL}, n_out)

/* Evaluates; the results belong to the caller. */
static inline oct_status evaluate(const oct_node *n, oct_tensor **out)
{
    oct_tensor *in[5] = {NULL};

    for (int32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? n->in[i]->data : NULL;
    return oct_node_eval(n, in, out, NULL);
}

/* The first result has these dims and elements. */
static inline void assert_gives(const oct_node *n, const int64_t *dims, const float *want)
{
    oct_tensor *out[8] = {NULL};

    assert_ok(n->graph->ctx, evaluate(n, out));
    assert_dims(&out[0]->type, rank_of(dims), dims);
    assert_all_close(out[0], want, oct_type_len(&out[0]->type), 1e-5f);
    for (int i = 0; i < 8; i++)
        oct_tensor_unref(out[i]);
}

static inline void assert_refuses(const oct_node *n, oct_status status, const char *text)
{
    oct_tensor *out[8] = {NULL};

    assert_fails(n->graph->ctx, evaluate(n, out), status, text);
    assert_non_null(strstr(oct_ctx_error(n->graph->ctx), n->name));
}

/* Inference alone gives this shape (-1: unknown). */
static inline void assert_infers(oct_node *n, const int64_t *dims)
{
    assert_ok(n->graph->ctx, oct_node_infer(n));
    assert_dims(&n->out[0]->type, rank_of(dims), dims);
}

#endif
