/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of passes share: building networks, and holding every pass of the table to its promise
 * on them. */
#ifndef OCT_TESTS_PASS_NET_H
#define OCT_TESTS_PASS_NET_H

#include "tests/alloc.h"

#include "base/rng.h"
#include "op/op.h"
#include "pass/pass.h"

/* --- building --- */

static oct_rng rng;

static inline oct_value *constant(fixture *f, int32_t rank, const int64_t *dims, double lo,
                                  double hi)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *t = NULL;
    oct_value *v;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (int64_t i = 0, n = oct_type_len(&type); i < n; i++)
        ((float *)t->data)[i] = (float)(lo + (hi - lo) * oct_rng_f64(&rng));
    v = oct_value_const(f->g, NULL, t);
    assert_non_null(v);
    return v;
}

static inline oct_value *vec(fixture *f, int64_t n, double lo, double hi)
{
    return constant(f, 1, &n, lo, hi);
}

static inline oct_value *num(fixture *f, float v)
{
    return oct_scalar(&f->b, v);
}

static inline oct_value *ints(fixture *f, int64_t n, const int64_t *v)
{
    return oct_ints(&f->b, v, n);
}

#define INTS(f, ...)                                                                               \
    ints(f, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static inline oct_value *image(fixture *f, int64_t c, int64_t hw)
{
    return graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, c, hw, hw});
}

static inline oct_value *emit(fixture *f, const oct_op *op, oct_value *x, oct_value *y,
                              oct_value *z)
{
    oct_value *v = oct_emit(&f->b, op, x, y, z);

    if (!v) fail_msg("%s: %s", op->name, oct_ctx_error(f->ctx));
    return v;
}

#define UN(op, x)     emit(f, &oct_op_##op, x, NULL, NULL)
#define BIN(op, x, y) emit(f, &oct_op_##op, x, y, NULL)

static inline oct_value *infer(fixture *f, oct_node *n)
{
    assert_non_null(n);
    assert_ok(f->ctx, oct_node_infer(n));
    return n->out[0];
}

static inline oct_node *node(fixture *f, const oct_op *op, oct_value *const *in, int32_t n_in)
{
    oct_node *n = oct_emit_node(&f->b, op, in, n_in, 1);

    assert_non_null(n);
    return n;
}

typedef struct conv_spec {
    int64_t c_out, kernel, stride, group;
    bool has_bias;
} conv_spec;

static inline oct_value *conv(fixture *f, oct_value *x, conv_spec s)
{
    const int64_t c_in = x->type.dim[1], pad = s.kernel / 2;
    const int64_t group = s.group ? s.group : 1, stride = s.stride ? s.stride : 1;
    oct_value *w =
        constant(f, 4, (int64_t[]){s.c_out, c_in / group, s.kernel, s.kernel}, -0.4, 0.4);
    oct_node *n =
        node(f, &oct_op_conv, (oct_value *[]){x, w, s.has_bias ? vec(f, s.c_out, -1, 1) : NULL},
             s.has_bias ? 3 : 2);

    assert_ok(f->ctx, oct_node_set_int(n, "group", group));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){pad, pad, pad, pad}, 4));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){stride, stride}, 2));
    return infer(f, n);
}

static inline oct_value *batch_norm(fixture *f, oct_value *x)
{
    const int64_t c = x->type.dim[1];
    oct_value *const in[] = {x, vec(f, c, 0.5, 1.5), vec(f, c, -1, 1), vec(f, c, -1, 1),
                             vec(f, c, 0.2, 2)};

    return infer(f, node(f, &oct_op_batch_normalization, in, 5));
}

static inline void output(fixture *f, oct_value *v)
{
    assert_ok(f->ctx, f->b.status);
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
}

/* --- comparing --- */

static inline int count(const oct_graph *g, const oct_op *op)
{
    int k = 0;

    for (const oct_node *n = g->first; n; n = n->next)
        k += oct_node_is(n, op);
    return k;
}

typedef struct results {
    int32_t n;
    oct_tensor *out[8];
} results;

/* What open dims of inputs are when a network is evaluated; a test may set others. */
static int64_t open_dims[OCT_MAX_RANK] = {2, 2, 2, 2, 2, 2, 2, 2};

static inline results evaluate(const oct_graph *g)
{
    oct_tensor *in[4] = {NULL};
    results r = {.n = g->n_outputs};
    oct_rng data;

    assert_true(g->n_inputs <= 4 && g->n_outputs <= 8);
    oct_rng_init(&data, 7);
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const oct_type *t = &g->inputs[i]->type;
        oct_type bound = *t;

        for (int k = 0; k < bound.rank; k++)
            if (bound.dim[k] < 0) bound.dim[k] = open_dims[k];
        assert_ok(g->ctx, oct_tensor_make(g->ctx, &bound, &in[i]));
        for (int64_t k = 0, n = oct_type_len(&bound); k < n; k++) {
            const double e = 4 * oct_rng_f64(&data) - 2;

            oct_store_f64(t->dtype, in[i]->data, k, 1, &e);
        }
    }
    assert_ok(g->ctx, oct_graph_eval(g, in, r.out, NULL));
    for (int32_t i = 0; i < g->n_inputs; i++)
        oct_tensor_unref(in[i]);
    return r;
}

static inline void forget(results *r)
{
    for (int32_t i = 0; i < r->n; i++)
        oct_tensor_unref(r->out[i]);
}

static inline void compare(const results *a, const results *b, oct_pass_exactness promise,
                           const char *what)
{
    assert_int_equal(a->n, b->n);
    for (int32_t i = 0; i < a->n; i++) {
        const int64_t len = oct_tensor_len(a->out[i]);
        double largest = 0, error = 0;

        if (!oct_type_equal(&a->out[i]->type, &b->out[i]->type)) fail_msg("%s: other type", what);
        if (promise == OCT_PASS_BIT_EXACT && !oct_tensor_equal(a->out[i], b->out[i]))
            fail_msg("%s: output %d has other bits", what, (int)i);
        for (int64_t k = 0; k < len; k++) {
            const double x = oct_tensor_get_f64(a->out[i], k), y = oct_tensor_get_f64(b->out[i], k);

            largest = fmax(largest, fabs(x));
            error = fmax(error, x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y));
        }
        if (!(error <= 1e-5 * largest)) fail_msg("%s: off by %g of %g", what, error, largest);
    }
}

/* One pass, or (p == NULL) a pipeline, on a copy of the graph; returns the copy. */
static inline oct_graph *apply(const oct_graph *g, const oct_pass *p, const char *pipeline,
                               const results *want, const char *graph_name)
{
    oct_graph *copy = NULL;
    char what[128];
    int n_changed = 0;
    results got;

    snprintf(what, sizeof(what), "%s on %s", p ? p->name : pipeline, graph_name);
    assert_ok(g->ctx, oct_graph_clone(g, &copy));
    if (p)
        assert_ok(g->ctx, oct_pass_run(p, copy, &n_changed));
    else
        assert_ok(g->ctx, oct_pipeline_run(copy, pipeline, NULL, NULL));
    assert_ok(g->ctx, oct_graph_verify(copy));
    got = evaluate(copy);
    compare(want, &got, p ? p->promise : OCT_PASS_CLOSE, what);
    forget(&got);
    n_changed = 0;
    if (p) assert_ok(g->ctx, oct_pass_run(p, copy, &n_changed));
    if (n_changed) fail_msg("%s: a second run changes %d more", what, n_changed);
    return copy;
}

/* Every pass, then both pipelines; returns the graph after "simplify". */
static inline oct_graph *hold_to_promises(fixture *f, const char *name)
{
    results want;
    oct_graph *simple;

    assert_ok(f->ctx, oct_graph_verify(f->g));
    want = evaluate(f->g);
    for (int i = 0; oct_pass_at(i); i++)
        oct_graph_free(apply(f->g, oct_pass_at(i), NULL, &want, name));
    oct_graph_free(apply(f->g, NULL, "execute", &want, name));
    simple = apply(f->g, NULL, "simplify", &want, name);
    forget(&want);
    return simple;
}

#endif
