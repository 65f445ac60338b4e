/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole jobs that run out of memory: load, simplify, plan, run, quantize, save. Whichever
 * allocation fails, the status says so, there is a reason, nothing is left behind, and files that
 * were there stay as they are.
 */
#include "tests/unit/pass_net.h"

#include <dirent.h>
#include <sys/stat.h>

static char folder[64], model[96], data[96], saved[96];

static oct_value *loop_of(fixture *f, oct_value *x);

/* Branches to merge, normalisations to fold, an activation to find, a pool, a product. */
static void build_detector(fixture *f)
{
    oct_value *x = image(f, 3, 8), *v, *a, *b;
    oct_node *n;

    v = UN(relu, batch_norm(f, conv(f, x, (conv_spec){.c_out = 4, .kernel = 3, .stride = 2})));
    a = batch_norm(f, conv(f, v, (conv_spec){.c_out = 4, .kernel = 3}));
    b = conv(f, v, (conv_spec){.c_out = 4, .kernel = 1, .has_bias = true});
    v = BIN(add, BIN(add, a, b), v);
    v = BIN(mul, v, UN(sigmoid, v));
    n = node(f, &oct_op_max_pool, &v, 1);
    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){2, 2}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){2, 2}, 2));
    v = emit(f, &oct_op_reshape, infer(f, n), INTS(f, 1, -1), NULL);
    v = BIN(mat_mul, v, constant(f, 2, (int64_t[]){16, 5}, -1, 1));
    output(f, UN(softmax, BIN(add, v, vec(f, 5, -1, 1))));
}

/* What has shapes that depend on data, or a body: computed by plain kernels at run time. */
static void build_dynamic(fixture *f)
{
    oct_value *x = image(f, 2, 3), *v = UN(relu, x);

    output(f, UN(non_zero, v));
    output(f, loop_of(f, UN(neg, v)));
}

static oct_value *loop_of(fixture *f, oct_value *x)
{
    const oct_type count = oct_type_make(OCT_DTYPE_I64, 0, NULL);
    const oct_type flag = oct_type_make(OCT_DTYPE_BOOL, 0, NULL);
    oct_graph *body = NULL;
    oct_builder b = {0};
    oct_value *in[3], *trips = oct_ints(&f->b, (int64_t[]){3}, 1), *y;
    oct_node *n;

    assert_ok(f->ctx, oct_graph_new_sub(f->g, "body", &body));
    b.g = body;
    in[0] = oct_value_new(body, "i", &count);
    in[1] = oct_value_new(body, "go", &flag);
    in[2] = oct_value_new(body, "carried", &x->type);
    for (int i = 0; i < 3; i++)
        assert_ok(f->ctx, oct_graph_add_input(body, in[i]));
    assert_ok(f->ctx,
              oct_graph_add_output(body, oct_emit(&b, &oct_op_identity, in[1], NULL, NULL)));
    y = oct_emit(&b, &oct_op_add, in[2], x, NULL); /* captured */
    assert_ok(f->ctx, oct_graph_add_output(body, y));
    assert_ok(f->ctx, oct_graph_add_output(body, oct_emit(&b, &oct_op_abs, y, NULL, NULL)));
    assert_ok(f->ctx, b.status);
    n = oct_emit_node(&f->b, &oct_op_loop, (oct_value *[]){trips, NULL, x}, 3, 2);
    assert_non_null(n);
    assert_ok(f->ctx, oct_node_set_attr(n, "body", &(oct_attr){.kind = OCT_ATTR_GRAPH, .g = body}));
    assert_ok(f->ctx, oct_node_infer(n));
    return n->out[1];
}

/* The network of `build` as a file, and pictures to calibrate with. */
static void write_files(void (*build)(fixture *f))
{
    fixture *f = NULL;

    oct_rng_init(&rng, 1);
    make_folder(folder);
    snprintf(model, sizeof(model), "%s/model.onnx", folder);
    snprintf(data, sizeof(data), "%s/data", folder);
    snprintf(saved, sizeof(saved), "%s/saved.onnx", folder);
    assert_int_equal(mkdir(data, 0700), 0);
    assert_int_equal(setup((void **)&f), 0);
    build(f);
    assert_ok(f->ctx, oct_onnx_save(f->g, model, NULL));
    for (int i = 0; i < 2; i++) {
        oct_value *v = constant(f, 4, (int64_t[]){1, 3, 8, 8}, -1, 1);
        char path[128];

        snprintf(path, sizeof(path), "%s/%d.npy", data, i);
        assert_ok(f->ctx, oct_tensor_save_npy(f->ctx, v->data, path));
    }
    assert_int_equal(teardown((void **)&f), 0);
}

static oct_status run_once(oct_ctx *ctx, const oct_graph *g)
{
    const oct_tensor *t = NULL;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    oct_status st = oct_plan_new(g, NULL, &p);

    if (!st) st = oct_run_new(ctx, p, &r);
    if (!st) st = oct_run_execute(r);
    for (int32_t i = 0; !st && i < oct_plan_n_outputs(p); i++)
        st = oct_run_output(r, i, &t);
    oct_run_free(r);
    oct_plan_free(p);
    return st;
}

static oct_status float_job(oct_ctx *ctx)
{
    oct_graph *g = NULL;
    oct_status st = oct_onnx_load(ctx, model, &g);

    if (!st) st = run_once(ctx, g);
    if (!st) st = oct_graph_simplify(g, NULL);
    if (!st) st = oct_onnx_save(g, saved, NULL);
    oct_graph_free(g);
    return st;
}

static oct_status int8_job(oct_ctx *ctx)
{
    oct_dataset_options options;
    oct_dataset *d = NULL;
    oct_graph *g = NULL;
    oct_quantized *q = NULL;
    oct_status st = oct_onnx_load(ctx, model, &g);

    oct_dataset_options_init(&options);
    options.images = data;
    if (!st) st = oct_dataset_open(ctx, &options, &d);
    if (!st) st = oct_quantize(g, d, NULL, &q);
    if (!st) st = run_once(ctx, oct_quantized_graph(q));
    if (!st) st = oct_onnx_save(oct_quantized_graph(q), saved, NULL);
    oct_quantized_free(q);
    oct_dataset_close(d);
    oct_graph_free(g);
    return st;
}

static int n_entries(void)
{
    DIR *d = opendir(folder);
    int n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

/* Every allocation fails once. */
static void starve(oct_status (*job)(oct_ctx *ctx), const char *name)
{
    int n_failed = 0;

    for (int n = 1;; n++) {
        failing f;
        oct_ctx *ctx = failing_ctx(&f);
        oct_status st;

        oct_ctx_set_threads(ctx, 1);
        f.fail_at = n;
        st = job(ctx);
        if (st && f.n_asked < n) fail_msg("%s: fails by itself: %s", name, oct_ctx_error(ctx));
        if (st && st != OCT_ERR_MEMORY)
            fail_msg("%s: allocation %d: status %d: %s", name, n, st, oct_ctx_error(ctx));
        if (st && !strstr(ctx->error, "memory")) /* its own text, not what stands in for none */
            fail_msg("%s: allocation %d: reason is '%s'", name, n, ctx->error);
        if (atomic_load(&ctx->mem_used) || f.n_live != 1)
            fail_msg("%s: allocation %d: %d blocks are left", name, n, (int)f.n_live - 1);
        oct_ctx_free(ctx);
        n_failed += st != OCT_OK;
        if (st) assert_true(n_entries() <= 3); /* no temporary file stays */
        if (f.n_asked < n) break;
        assert_true(n < 10000000);
    }
    print_message("%s: %d failures\n", name, n_failed);
    assert_true(n_failed > 100);
    remove_folder(folder);
}

static void float_jobs_without_memory(void **state)
{
    (void)state;
    write_files(build_detector);
    starve(float_job, "float job");
}

static void dynamic_jobs_without_memory(void **state)
{
    (void)state;
    write_files(build_dynamic);
    starve(float_job, "dynamic job");
}

static void int8_jobs_without_memory(void **state)
{
    (void)state;
    write_files(build_detector);
    starve(int8_job, "int8 job");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_jobs_without_memory),
        cmocka_unit_test(dynamic_jobs_without_memory),
        cmocka_unit_test(int8_jobs_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
