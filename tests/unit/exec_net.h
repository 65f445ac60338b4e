/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks for tests of the executor: built in code, run by a plan, compared. */
#ifndef OCT_TESTS_EXEC_NET_H
#define OCT_TESTS_EXEC_NET_H

#include "tests/test.h"

#include "base/rng.h"
#include "graph/op.h"
#include "op/op.h"

/* A constant of random values in [-1, 1). */
static inline oct_value *weights(fixture *f, oct_rng *rng, int32_t rank, const int64_t *dims)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *t = NULL;
    oct_value *v;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (int64_t i = 0; i < oct_type_len(&type); i++)
        ((float *)t->data)[i] = (float)(oct_rng_f64(rng) * 2 - 1);
    v = oct_value_const(f->g, NULL, t);
    assert_non_null(v);
    return v;
}

/* A node with attributes still to be set: finish with infer(). */
static inline oct_node *node(fixture *f, const oct_op *op, oct_value *x, oct_value *y, oct_value *z)
{
    oct_value *const in[] = {x, y, z};
    oct_node *n = oct_emit_node(&f->b, op, in, z ? 3 : y ? 2 : 1, 1);

    assert_non_null(n);
    return n;
}

static inline oct_value *infer(fixture *f, oct_node *n)
{
    assert_ok(f->ctx, oct_node_infer(n));
    return n->out[0];
}

static inline oct_value *emit(fixture *f, const oct_op *op, oct_value *x, oct_value *y)
{
    oct_value *v = oct_emit(&f->b, op, x, y, NULL);

    if (!v) fail_msg("%s: %s", op->name, oct_ctx_error(f->ctx));
    return v;
}

typedef struct conv_case {
    int64_t c_in, c_out, kernel, stride, dilation, pad, group;
} conv_case;

static inline oct_value *conv(fixture *f, oct_rng *rng, oct_value *x, const conv_case *c)
{
    const int rank = x->type.rank;
    int64_t w[OCT_MAX_RANK] = {c->c_out, c->c_in / c->group};
    int64_t stride[3], dilation[3], pads[6];
    oct_node *n;

    for (int i = 0; i < rank - 2; i++) {
        w[2 + i] = c->kernel;
        stride[i] = c->stride;
        dilation[i] = c->dilation;
        pads[i] = c->pad;
        pads[rank - 2 + i] = c->pad;
    }
    n = node(f, &oct_op_conv, x, weights(f, rng, rank, w), weights(f, rng, 1, &c->c_out));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", stride, rank - 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "dilations", dilation, rank - 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", pads, 2 * (rank - 2)));
    assert_ok(f->ctx, oct_node_set_int(n, "group", c->group));
    return infer(f, n);
}

/* Fills all inputs with the same random numbers for the same seed. */
static inline void fill_inputs(fixture *f, oct_run *r, const oct_plan *p, uint64_t seed)
{
    oct_rng rng;

    oct_rng_init(&rng, seed);
    for (int32_t i = 0; i < oct_plan_n_inputs(p); i++) {
        void *data = NULL;
        size_t size = 0;

        assert_ok(f->ctx, oct_run_input(r, oct_plan_input_name(p, i), &data, &size));
        for (size_t k = 0; k < size / sizeof(float); k++)
            ((float *)data)[k] = (float)(oct_rng_f64(&rng) * 4 - 2);
    }
}

/* Runs the graph and copies its outputs; the caller owns them. */
static inline void run_graph(fixture *f, const oct_plan_options *o, oct_tensor **outs)
{
    oct_plan *p = NULL;
    oct_run *r = NULL;

    assert_ok(f->ctx, oct_plan_new(f->g, o, &p));
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    fill_inputs(f, r, p, 7);
    assert_ok(f->ctx, oct_run_execute(r));
    for (int32_t i = 0; i < oct_plan_n_outputs(p); i++) {
        const oct_tensor *t = NULL;

        assert_ok(f->ctx, oct_run_output(r, i, &t));
        assert_ok(f->ctx, oct_tensor_copy(f->ctx, t, &outs[i]));
    }
    oct_run_free(r);
    oct_plan_free(p);
}

/* Within tol of the largest magnitude. */
static inline void assert_same(const char *what, const oct_tensor *a, const oct_tensor *b,
                               double tol)
{
    double top = 1e-6;

    assert_true(oct_type_equal(&a->type, &b->type));
    for (int64_t i = 0; i < oct_tensor_len(b); i++)
        top = fmax(top, fabs(oct_tensor_get_f64(b, i)));
    for (int64_t i = 0; i < oct_tensor_len(a); i++) {
        const double x = oct_tensor_get_f64(a, i), y = oct_tensor_get_f64(b, i);

        if (!(fabs(x - y) <= tol * top))
            fail_msg("%s: element %lld is %.9g, want %.9g", what, (long long)i, x, y);
    }
}

enum { N_SETS = 3 };

/* With the i-th instruction set, best first, and i + 1 threads. */
static inline void run_set(fixture *f, int i, oct_tensor **outs)
{
    static const char *const sets[N_SETS] = {"AVX512_CORE", "AVX2", "SSE41"};
    oct_plan_options o;

    oct_plan_options_init(&o);
    o.n_threads = i + 1;
    setenv("ONEDNN_MAX_CPU_ISA", sets[i], 1);
    run_graph(f, &o, outs);
    unsetenv("ONEDNN_MAX_CPU_ISA");
}

/* The plan's kernels against plain ones, with every instruction set. */
static inline void assert_kernels_agree(fixture *f, const char *what)
{
    enum { MAX_OUT = 8 };
    oct_tensor *want[MAX_OUT] = {NULL};
    oct_plan_options plain;

    oct_plan_options_init(&plain);
    plain.plain = 1;
    assert_true(f->g->n_outputs <= MAX_OUT);
    run_graph(f, &plain, want);
    for (int i = 0; i < N_SETS; i++) {
        oct_tensor *got[MAX_OUT] = {NULL};

        run_set(f, i, got);
        for (int32_t k = 0; k < f->g->n_outputs; k++) {
            assert_same(what, got[k], want[k], 2e-5);
            oct_tensor_unref(got[k]);
        }
    }
    for (int32_t k = 0; k < f->g->n_outputs; k++)
        oct_tensor_unref(want[k]);
}

/* A fresh graph in the same fixture, for tables of cases. */
static inline void restart(fixture *f)
{
    oct_graph_free(f->g);
    f->g = NULL;
    assert_ok(f->ctx, oct_graph_new(f->ctx, "test", &f->g));
    f->b = (oct_builder){.g = f->g};
}

static inline oct_value *picture(fixture *f, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return graph_input(f, "x", OCT_DTYPE_F32, 4, (const int64_t[]){n, c, h, w});
}

static inline oct_value *reshape(fixture *f, oct_value *x, int64_t rank, const int64_t *dims)
{
    return emit(f, &oct_op_reshape, x, oct_ints(&f->b, dims, rank));
}

static inline oct_value *transpose(fixture *f, oct_value *x, int64_t rank, const int64_t *perm)
{
    oct_node *n = node(f, &oct_op_transpose, x, NULL, NULL);

    assert_ok(f->ctx, oct_node_set_ints(n, "perm", perm, rank));
    return infer(f, n);
}

/* Four sides of a box for each pixel, each the mean of a distribution over bins. */
static inline oct_value *means(fixture *f, oct_rng *rng, oct_value *x, int64_t bins, bool by_pixel)
{
    const int64_t n = x->type.dim[0], pixels = oct_type_span(&x->type, 2, x->type.rank);
    oct_node *soft;

    x = reshape(f, x, 4, (const int64_t[]){n, 4, bins, pixels});
    x = transpose(f, x, 4,
                  by_pixel ? (const int64_t[]){0, 2, 3, 1} : (const int64_t[]){0, 2, 1, 3});
    soft = node(f, &oct_op_softmax, x, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_int(soft, "axis", 1));
    return emit(f, &oct_op_conv, infer(f, soft),
                weights(f, rng, 4, (const int64_t[]){1, bins, 1, 1}));
}

static inline oct_value *cast(fixture *f, oct_value *x, oct_dtype to)
{
    oct_node *n = node(f, &oct_op_cast, x, NULL, NULL);

    assert_ok(f->ctx, oct_node_set_int(n, "to", to));
    return infer(f, n);
}

/* Channels of two halves in turns, as ShuffleNet mixes them. */
static inline oct_value *shuffle(fixture *f, oct_value *x)
{
    const int64_t *d = x->type.dim;

    x = reshape(f, x, 5, (int64_t[]){d[0], 2, d[1] / 2, d[2], d[3]});
    x = transpose(f, x, 5, (int64_t[]){0, 2, 1, 3, 4});
    return reshape(f, x, 4, (int64_t[]){d[0], d[1], d[2], d[3]});
}

static inline oct_value *max_pool(fixture *f, oct_value *x)
{
    oct_node *n = node(f, &oct_op_max_pool, x, NULL, NULL);

    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){3, 3}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){1, 1, 1, 1}, 4));
    return infer(f, n);
}

/* Steps of the plan for this graph whose label is `op`, and whose kernel's name begins so; NULL:
 * any. Options may be NULL. */
static inline int count_plan(fixture *f, const oct_plan_options *o, const char *op,
                             const char *kernel)
{
    oct_plan *p = NULL;
    int n = 0;

    assert_ok(f->ctx, oct_plan_new(f->g, o, &p));
    for (int32_t i = 0; i < oct_plan_n_steps(p); i++) {
        oct_step_info info = {.struct_size = sizeof(info)};

        oct_plan_step(p, i, &info);
        n += (!op || strcmp(info.op, op) == 0) &&
             (!kernel || strncmp(info.kernel, kernel, strlen(kernel)) == 0);
    }
    oct_plan_free(p);
    return n;
}

static inline int count_steps(fixture *f, const oct_plan_options *o, const char *op)
{
    return count_plan(f, o, op, NULL);
}

static inline int count_kernels(fixture *f, const oct_plan_options *o, const char *kernel)
{
    return count_plan(f, o, NULL, kernel);
}

#endif
