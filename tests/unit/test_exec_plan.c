/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and runs: no allocation while running, same bytes, hooks, streams, run-time shapes. */
#include <pthread.h>
#include <stdatomic.h>

#include "unit/exec_net.h"

#include "exec/kernel.h"

/* An allocator that can be told to refuse. */
typedef struct gate {
    atomic_bool closed;
    atomic_int refused;
} gate;

static void *gate_alloc(void *user, size_t size)
{
    gate *g = user;

    if (atomic_load(&g->closed)) {
        atomic_fetch_add(&g->refused, 1);
        return NULL;
    }
    return aligned_alloc(64, (size + 63) / 64 * 64);
}

static void gate_free(void *user, void *p)
{
    (void)user;
    free(p);
}

static oct_value *named_picture(fixture *f, const char *name)
{
    return graph_input(f, name, OCT_DTYPE_F32, 4, (const int64_t[]){1, 3, 32, 32});
}

/* A small detector-like network: stem, split, concat, pooling, upsampling, two heads. */
static void build_net(fixture *f)
{
    oct_rng rng;
    oct_value *x, *y, *in[2], *resized[4] = {NULL};
    oct_node *n;

    oct_rng_init(&rng, 42);
    x = conv(f, &rng, named_picture(f, "x"), &(conv_case){3, 16, 3, 2, 1, 1, 1});
    x = emit(f, &oct_op_swish, x, NULL);
    y = conv(f, &rng, x, &(conv_case){16, 16, 3, 2, 1, 1, 16});
    y = emit(f, &oct_op_relu, conv(f, &rng, y, &(conv_case){16, 24, 1, 1, 1, 0, 1}), NULL);
    resized[0] = y;
    resized[3] = oct_ints(&f->b, (const int64_t[]){1, 24, 16, 16}, 4);
    n = oct_emit_node(&f->b, &oct_op_resize, resized, 4, 1);
    assert_non_null(n);
    in[0] = infer(f, n);
    in[1] = x;
    n = oct_emit_node(&f->b, &oct_op_concat, in, 2, 1);
    assert_non_null(n);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    x = infer(f, n);
    y = conv(f, &rng, x, &(conv_case){40, 8, 3, 1, 1, 1, 1});
    y->name = "boxes";
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    y = emit(f, &oct_op_sigmoid, conv(f, &rng, x, &(conv_case){40, 5, 1, 1, 1, 0, 1}), NULL);
    y = emit(f, &oct_op_reshape, y, oct_ints(&f->b, (const int64_t[]){1, 5, 256}, 3));
    n = node(f, &oct_op_softmax, y, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    y = infer(f, n);
    y->name = "scores";
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
}

static void running_allocates_nothing(void **state)
{
    fixture *f = *state;
    gate g = {false, 0};
    oct_ctx *ctx = oct_ctx_new(&(oct_allocator){gate_alloc, gate_free, &g});
    fixture own = {.ctx = ctx};
    oct_plan *p = NULL;
    oct_run *r = NULL;

    (void)f;
    assert_non_null(ctx);
    assert_ok(ctx, oct_graph_new(ctx, "net", &own.g));
    own.b.g = own.g;
    build_net(&own);
    assert_ok(ctx, oct_plan_new(own.g, NULL, &p));
    assert_ok(ctx, oct_run_new(ctx, p, &r));
    fill_inputs(&own, r, p, 1);
    atomic_store(&g.closed, true);
    for (int i = 0; i < 3; i++)
        assert_ok(ctx, oct_run_execute(r));
    atomic_store(&g.closed, false);
    assert_int_equal(atomic_load(&g.refused), 0);
    oct_run_free(r);
    oct_plan_free(p);
    oct_graph_free(own.g);
    oct_ctx_free(ctx);
}

static void ten_runs_give_the_same_bytes(void **state)
{
    fixture *f = *state;
    oct_tensor *first[2] = {NULL};

    build_net(f);
    run_graph(f, NULL, first);
    for (int i = 0; i < 10; i++) {
        oct_plan_options o;
        oct_tensor *again[2] = {NULL};

        oct_plan_options_init(&o);
        o.n_threads = 1 + i % 3; /* octet's own kernels do not depend on the number of threads */
        run_graph(f, &o, again);
        for (int k = 0; k < 2; k++) {
            assert_true(oct_tensor_equal(first[k], again[k]));
            oct_tensor_unref(again[k]);
        }
    }
    oct_tensor_unref(first[0]);
    oct_tensor_unref(first[1]);
}

static void activations_share_memory(void **state)
{
    fixture *f = *state;
    oct_plan *p = NULL;
    oct_plan_options o;
    size_t shared, plain;

    build_net(f);
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    shared = oct_plan_activation_size(p);
    oct_plan_free(p);
    oct_plan_options_init(&o);
    o.plain = 1;
    assert_ok(f->ctx, oct_plan_new(f->g, &o, &p));
    plain = oct_plan_activation_size(p);
    oct_plan_free(p);
    assert_true(shared < plain); /* nothing is stored between a convolution and its activation */
    assert_true(plain < 400000); /* the sum of all values is more than that */
}

typedef struct stream {
    const oct_plan *p;
    uint64_t seed;
    float first;
    pthread_t thread;
    oct_status st;
} stream;

static void *run_stream(void *arg)
{
    stream *s = arg;
    oct_ctx *ctx = oct_ctx_new(NULL);
    fixture own = {.ctx = ctx};
    oct_run *r = NULL;
    const oct_tensor *t = NULL;

    s->st = oct_run_new(ctx, s->p, &r);
    for (int i = 0; i < 5 && !s->st; i++) {
        fill_inputs(&own, r, s->p, s->seed);
        s->st = oct_run_execute(r);
    }
    if (!s->st) s->st = oct_run_output(r, 0, &t);
    if (!s->st) s->first = ((const float *)oct_tensor_data(t))[100];
    oct_run_free(r);
    oct_ctx_free(ctx);
    return NULL;
}

static void streams_share_a_plan(void **state)
{
    fixture *f = *state;
    stream s[4] = {{0}};
    oct_plan *p = NULL;
    oct_plan_options o;

    build_net(f);
    oct_plan_options_init(&o);
    o.n_threads = 1;
    assert_ok(f->ctx, oct_plan_new(f->g, &o, &p));
    for (int i = 0; i < 4; i++) {
        s[i].p = p;
        s[i].seed = (uint64_t)(i % 2);
        assert_int_equal(pthread_create(&s[i].thread, NULL, run_stream, &s[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(s[i].thread, NULL);
        assert_int_equal(s[i].st, OCT_OK);
    }
    assert_true(s[0].first == s[2].first && s[1].first == s[3].first);
    assert_true(s[0].first != s[1].first);
    oct_plan_free(p);
}

typedef struct seen {
    int n;
    bool boxes;
} seen;

static oct_status look(void *user, const char *name, const oct_tensor *t)
{
    seen *s = user;

    s->n++;
    if (strcmp(name, "boxes") == 0) s->boxes = oct_tensor_len(t) == 8 * 16 * 16;
    return OCT_OK;
}

static oct_status refuse(void *user, const char *name, const oct_tensor *t)
{
    (void)user, (void)name, (void)t;
    return OCT_ERR_CANCELLED;
}

static void hooks_see_what_they_asked_for(void **state)
{
    fixture *f = *state;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    oct_plan_options o;
    seen s = {0};

    build_net(f);
    oct_plan_options_init(&o);
    o.keep = "^boxes$";
    assert_ok(f->ctx, oct_plan_new(f->g, &o, &p));
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    oct_run_set_value_hook(r, look, &s);
    assert_ok(f->ctx, oct_run_execute(r));
    assert_true(s.boxes);
    oct_run_set_value_hook(r, refuse, NULL);
    assert_int_equal(oct_run_execute(r), OCT_ERR_CANCELLED);
    oct_run_free(r);
    oct_plan_free(p);

    o.keep = NULL;
    o.keep_all = 1;
    s = (seen){0};
    assert_ok(f->ctx, oct_plan_new(f->g, &o, &p));
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    oct_run_set_value_hook(r, look, &s);
    assert_ok(f->ctx, oct_run_execute(r));
    assert_int_equal(s.n, f->g->n_nodes); /* every value of the file, nothing fused away */
    oct_run_free(r);
    oct_plan_free(p);

    o.keep = "(";
    assert_fails(f->ctx, oct_plan_new(f->g, &o, &p), OCT_ERR_ARG, "pattern");
}

/* NonZero in the middle: the part behind it runs with shapes found at run time. */
static void shapes_known_only_at_run_time(void **state)
{
    fixture *f = *state;
    oct_rng rng;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    const oct_tensor *t = NULL;
    oct_value *x, *y;

    oct_rng_init(&rng, 1);
    x = emit(f, &oct_op_relu,
             conv(f, &rng, named_picture(f, "x"), &(conv_case){3, 4, 3, 2, 1, 1, 1}), NULL);
    y = emit(f, &oct_op_non_zero, x, NULL);
    y = emit(f, &oct_op_add, y, oct_ints(&f->b, (const int64_t[]){1}, 1));
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    for (uint64_t seed = 0; seed < 3; seed++) {
        int64_t positive = 0;

        fill_inputs(f, r, p, seed);
        assert_ok(f->ctx, oct_run_execute(r));
        assert_ok(f->ctx, oct_run_output(r, 1, &t));
        for (int64_t i = 0; i < oct_tensor_len(t); i++)
            positive += ((const float *)oct_tensor_data(t))[i] != 0;
        assert_ok(f->ctx, oct_run_output(r, 0, &t));
        assert_int_equal(oct_tensor_rank(t), 2);
        assert_int_equal(oct_tensor_dims(t)[1], positive);
        assert_true(positive > 0);
    }
    oct_run_free(r);
    oct_plan_free(p);
}

static void outputs_that_are_inputs_or_constants(void **state)
{
    fixture *f = *state;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    const oct_tensor *t = NULL;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (const int64_t[]){3});

    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
    assert_ok(f->ctx, oct_graph_add_output(f->g, input(f, 2, (const float[]){5, 6})));
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    fill_inputs(f, r, p, 1);
    assert_ok(f->ctx, oct_run_execute(r));
    assert_ok(f->ctx, oct_run_output(r, 1, &t));
    assert_true(((const float *)oct_tensor_data(t))[1] == 6);
    assert_ok(f->ctx, oct_run_output(r, 0, &t));
    assert_int_equal(oct_tensor_len(t), 3);
    assert_fails(f->ctx, oct_run_output(r, 2, &t), OCT_ERR_ARG, "no output 2");
    oct_run_free(r);
    oct_plan_free(p);
}

/* y = conv(x) + 0.5 * x, with the product in front of the convolution: one step does it all. */
static void a_scaled_residual_has_no_step_of_its_own(void **state)
{
    fixture *f = *state;
    const conv_case c = {4, 4, 3, 1, 1, 1, 1};
    oct_rng rng = {3};
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 6, 6});
    oct_value *half = emit(f, &oct_op_mul, x, input(f, 1, (float[]){0.5f}));
    oct_value *y = emit(f, &oct_op_add, conv(f, &rng, x, &c), half);
    oct_plan_options o;
    oct_tensor *fast = NULL, *plain = NULL;
    oct_plan *p = NULL;

    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    for (int32_t i = 0; i < oct_plan_n_steps(p); i++) {
        oct_step_info info = {.struct_size = sizeof(info)};

        oct_plan_step(p, i, &info);
        assert_string_not_equal(info.op, "Mul");
    }
    oct_plan_free(p);
    oct_plan_options_init(&o);
    run_graph(f, &o, &fast);
    o.plain = 1;
    run_graph(f, &o, &plain);
    assert_same("scaled residual", fast, plain, 1e-5);
    oct_tensor_unref(fast);
    oct_tensor_unref(plain);
}

static void wrong_inputs_are_told(void **state)
{
    fixture *f = *state;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    oct_tensor *t = NULL;

    build_net(f);
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    assert_ok(f->ctx, oct_tensor_scalar_f32(f->ctx, 1, &t));
    assert_fails(f->ctx, oct_run_set_input(r, "y", t), OCT_ERR_ARG, "no input 'y'");
    assert_fails(f->ctx, oct_run_set_input(r, "x", t), OCT_ERR_SHAPE, "float32[1x3x32x32]");
    oct_tensor_unref(t);
    oct_run_free(r);
    oct_plan_free(p);
}

static void unknown_operators_are_named(void **state)
{
    fixture *f = *state;
    oct_plan *p = NULL;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (const int64_t[]){3}), *y;
    const oct_op *op = oct_op_opaque(f->g, "my.domain", "Fancy");
    oct_node *n;

    assert_non_null(op);
    y = oct_value_new(f->g, "y", NULL);
    n = oct_node_new(f->g, NULL, "odd", op, &x, 1, &y, 1);
    assert_non_null(n);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    assert_fails(f->ctx, oct_plan_new(f->g, NULL, &p), OCT_ERR_UNSUPPORTED,
                 "node 'odd' (Fancy): octet cannot run this operator of domain my.domain");
}

static void leaves(fixture *f, oct_value *v)
{
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
}

static oct_value *constant_one(fixture *f)
{
    const int64_t dims[2] = {1, 1};
    oct_tensor *t = tensor_of(f->ctx, OCT_DTYPE_F32, 2, dims, (const double[]){1});

    return oct_value_const(f->g, NULL, t);
}

/* Reshape of what only a run knows: 4 elements do not become that many. */
static void reshape_by_data(fixture *f)
{
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (const int64_t[]){4}), *n, *sizes;
    oct_node *to;

    n = emit(f, &oct_op_reduce_sum, x, NULL);
    to = node(f, &oct_op_cast, n, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_int(to, "to", OCT_DTYPE_I64));
    sizes = reshape(f, infer(f, to), 1, (const int64_t[]){1});
    leaves(f, emit(f, &oct_op_reshape, x, sizes));
}

/* An index outside, in a plain kernel whose shapes are known. */
static void gather_outside(fixture *f)
{
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (const int64_t[]){4});
    oct_node *to = node(f, &oct_op_cast, x, NULL, NULL);

    assert_ok(f->ctx, oct_node_set_int(to, "to", OCT_DTYPE_I64));
    leaves(f, emit(f, &oct_op_gather, x, infer(f, to)));
}

/* A plan may be shared: why a run failed is told to the run's context, and only there. */
static void a_run_keeps_its_own_reason(void **state)
{
    static void (*const nets[])(fixture *) = {reshape_by_data, gather_outside};
    static const char *const want[] = {"(Reshape)", "(Gather)"};

    for (size_t i = 0; i < OCT_COUNT(nets); i++) {
        fixture *f = *state;
        oct_ctx *own = oct_ctx_new(NULL);
        oct_plan *p = NULL;
        oct_run *r = NULL;
        void *data = NULL;

        assert_non_null(own);
        restart(f);
        nets[i](f);
        assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
        (void)oct_fail(f->ctx, OCT_ERR_ARG, "untouched");
        assert_ok(own, oct_run_new(own, p, &r));
        assert_ok(own, oct_run_input(r, "x", &data, NULL));
        for (int k = 0; k < 4; k++)
            ((float *)data)[k] = 100;
        assert_int_not_equal(oct_run_execute(r), OCT_OK);
        if (!strstr(oct_ctx_error(own), want[i]) || !strstr(oct_ctx_error(own), "node '"))
            fail_msg("the reason is \"%s\"", oct_ctx_error(own));
        assert_string_equal(oct_ctx_error(f->ctx), "untouched");
        oct_run_free(r);
        assert_int_equal(atomic_load(&own->mem_used), 0);
        oct_ctx_free(own);
        oct_plan_free(p);
    }
}

/* A node without results has nothing to run; hooks on everything must not make it run. */
static void nodes_without_results_are_left_out(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (const int64_t[]){4});
    oct_tensor *out[1] = {NULL};

    assert_non_null(oct_node_new(f->g, NULL, "idle", &oct_op_elu, &x, 1, NULL, 0));
    leaves(f, emit(f, &oct_op_relu, x, NULL));
    for (int i = 0; i < 4; i++) {
        oct_plan_options o;

        oct_plan_options_init(&o);
        o.keep_all = i % 2;
        o.plain = i / 2;
        run_graph(f, &o, out);
        assert_int_equal(oct_tensor_len(out[0]), 4);
        oct_tensor_unref(out[0]);
    }
}

/* oneDNN counts in 32 bits: larger tensors are left to other kernels, or to their limits. */
static void sizes_beyond_onednn(void **state)
{
    static const oct_op *const ops[] = {&oct_op_global_average_pool, &oct_op_mat_mul};
    static const int64_t dims[][4] = {{1, (int64_t)1 << 33, 1, 1}, {1, 1, (int64_t)1 << 33, 1}};
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(ops); i++) {
        oct_plan *p = NULL;
        oct_value *x;

        restart(f);
        x = graph_input(f, "x", OCT_DTYPE_F32, 4, dims[i]);
        leaves(f, emit(f, ops[i], x, i ? constant_one(f) : NULL));
        assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
        for (int32_t k = 0; k < oct_plan_n_steps(p); k++) {
            oct_step_info info = {.struct_size = sizeof(info)};

            oct_plan_step(p, k, &info);
            assert_true(info.is_plain || info.is_reorder);
        }
        oct_plan_free(p);
    }
}

/* Twice the nodes may take twice the work, not four times as much. */
static int64_t work_of_chain(fixture *f, int n, int kind)
{
    static const oct_op *const acts[] = {&oct_op_sigmoid, &oct_op_tanh, &oct_op_softplus};
    oct_value *x, *first;
    oct_plan *p = NULL;
    int64_t work;

    restart(f);
    x = first = picture(f, 1, 4, 3, 3);
    for (int i = 0; i < n; i++) {
        oct_value *y = emit(f, acts[i % 3], x, NULL);

        if (kind == 1 && i % 2) y = emit(f, &oct_op_add, y, x);            /* short skips */
        if (kind == 2 && i % 100 == 0) y = emit(f, &oct_op_add, y, first); /* a long life */
        if (kind == 3 && i % 4 == 0) {                                     /* parts and wholes */
            oct_node *cut = oct_emit_node(&f->b, &oct_op_split, &y, 1, 2), *joined;

            assert_ok(f->ctx, oct_node_set_int(cut, "axis", 1));
            assert_ok(f->ctx, oct_node_set_int(cut, "num_outputs", 2));
            infer(f, cut);
            joined = oct_emit_node(&f->b, &oct_op_concat, (oct_value *[]){cut->out[1], cut->out[0]},
                                   2, 1);
            assert_ok(f->ctx, oct_node_set_int(joined, "axis", 1));
            y = infer(f, joined);
        }
        x = y;
    }
    leaves(f, x);
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    work = p->work;
    oct_plan_free(p);
    return work;
}

static void planning_takes_as_long_as_the_network_is(void **state)
{
    for (int kind = 0; kind < 4; kind++) {
        const int64_t work = work_of_chain(*state, 20000, kind);

        if (work > 20000 * 200)
            fail_msg("kind %d: 20,000 nodes take %lld visits", kind, (long long)work);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(running_allocates_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(ten_runs_give_the_same_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(activations_share_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(streams_share_a_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(hooks_see_what_they_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(shapes_known_only_at_run_time, setup, teardown),
        cmocka_unit_test_setup_teardown(outputs_that_are_inputs_or_constants, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scaled_residual_has_no_step_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_inputs_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_operators_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_keeps_its_own_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_without_results_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_beyond_onednn, setup, teardown),
        cmocka_unit_test_setup_teardown(planning_takes_as_long_as_the_network_is, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
