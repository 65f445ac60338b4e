/* SPDX-License-Identifier: Apache-2.0 */
/* Passes for integer plans: each keeps its promise on a graph with a bit of everything. */
#include "tests/alloc.h"
#include "tests/unit/quant_net.h"

#include "pass/pass.h"

enum { C = 8 };

static oct_value *upsample(fixture *f, oct_value *x)
{
    const int64_t *d = x->type.dim;
    oct_value *in[4] = {x, NULL, NULL,
                        oct_ints(&f->b, (int64_t[]){d[0], d[1], 2 * d[2], 2 * d[3]}, 4)};
    oct_node *n = oct_emit_node(&f->b, &oct_op_resize, in, 4, 1);

    assert_non_null(n);
    assert_ok(f->ctx, oct_node_set_str(n, "mode", "nearest"));
    return infer(f, n);
}

static oct_value *pad(fixture *f, oct_value *x)
{
    return emit(f, &oct_op_pad, x, oct_ints(&f->b, (int64_t[]){0, 0, 1, 1, 0, 0, 1, 1}, 8));
}

static oct_value *number(fixture *f, oct_dtype dtype, int32_t v)
{
    return constant_int(f, dtype, 0, NULL, &v);
}

static oct_value *scale_of(fixture *f, float s)
{
    return constant_f32(f, 0, NULL, &s);
}

/* QuantizeLinear, QLinearConv, QLinearAdd, DequantizeLinear. */
static oct_value *q_operators(fixture *f, oct_value *x)
{
    const float s = 0.02f;
    const int64_t out = 6;
    oct_value *q = quantize(f, x, OCT_DTYPE_U8, &s, &(int32_t){120}, 1, 1), *in[9], *y, *add[8];
    int32_t bias[6] = {10, -20, 30, 0, 5, 6};
    float ws[6] = {.01f, .02f, .01f, .015f, .01f, .02f};
    int32_t wz[6] = {0};
    oct_node *n;

    in[0] = q;
    in[1] = scale_of(f, s);
    in[2] = number(f, OCT_DTYPE_U8, 120);
    in[3] = codes(f, OCT_DTYPE_I8, 4, (int64_t[]){out, C, 1, 1}, 3);
    in[4] = constant_f32(f, 1, &out, ws);
    in[5] = constant_int(f, OCT_DTYPE_I8, 1, &out, wz);
    in[6] = scale_of(f, 0.05f);
    in[7] = number(f, OCT_DTYPE_U8, 128);
    in[8] = constant_int(f, OCT_DTYPE_I32, 1, &out, bias);
    n = oct_emit_node(&f->b, &oct_op_q_linear_conv, in, 9, 1);
    y = infer(f, n);
    add[0] = add[3] = y;
    add[1] = add[4] = in[6];
    add[2] = add[5] = in[7];
    add[6] = scale_of(f, 0.11f);
    add[7] = in[7];
    y = infer(f, oct_emit_node(&f->b, &oct_op_q_linear_add, add, 8, 1));
    return dequantize(f, y, &(float){0.11f}, &(int32_t){128}, 1, 1);
}

/* Signed codes through MaxPool into QLinearConcat, as files with integer operators have them. */
static oct_value *q_moves(fixture *f, oct_value *x)
{
    oct_value *q = quantize(f, x, OCT_DTYPE_I8, &(float){0.02f}, &(int32_t){-7}, 1, 1);
    oct_value *s = scale_of(f, 0.02f), *z = number(f, OCT_DTYPE_I8, -7), *pooled = max_pool(f, q);
    oct_value *in[] = {scale_of(f, 0.03f), number(f, OCT_DTYPE_I8, 11), pooled, s, z, pooled, s, z};
    oct_node *n = oct_emit_node(&f->b, &oct_op_q_linear_concat, in, OCT_COUNT(in), 1);

    assert_non_null(n);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    return dequantize(f, infer(f, n), &(float){0.03f}, &(int32_t){11}, 1, 1);
}

static void build(fixture *f)
{
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, C, 6, 6});
    const qconv_case q = {{C, C, 3, 1, 1, 1, 1}, 0.02f, OCT_DTYPE_I8, 0, NULL};
    float scale[C];
    int32_t zero[C];
    oct_value *part[2], *y;

    for (int i = 0; i < C; i++) {
        scale[i] = 0.01f + 0.003f * (float)i;
        zero[i] = 100 + i;
    }
    part[0] = qdq(f, qconv(f, qdq(f, x, OCT_DTYPE_I8, &(float){0.02f}, &(int32_t){5}, 1, 1), &q),
                  OCT_DTYPE_I8, &(float){0.03f}, &(int32_t){-4}, 1, 1);
    part[1] = qdq(f, x, OCT_DTYPE_U8, scale, zero, C, 1);
    output(f, upsample(f, pad(f, part[0])));
    part[0] = qdq_u8(f, x, 0.03f);
    y = max_pool(f, shuffle(f, concat(f, part, 2, 1)));
    output(f, y);
    output(f, qdq_u8(f, concat(f, (oct_value *[]){part[0], max_pool(f, x)}, 2, 1), 0.03f));
    output(f, q_operators(f, x));
    output(f, q_moves(f, x));
}

/* --- promises --- */

static void evaluate(const oct_graph *g, oct_tensor **outs)
{
    oct_tensor *x = NULL;
    oct_rng rng;

    oct_rng_init(&rng, 4);
    assert_ok(g->ctx, oct_tensor_make(g->ctx, &g->inputs[0]->type, &x));
    for (int64_t i = 0; i < oct_tensor_len(x); i++)
        ((float *)x->data)[i] = (float)(oct_rng_f64(&rng) * 4 - 2);
    assert_ok(g->ctx, oct_graph_eval(g, &x, outs, NULL));
    oct_tensor_unref(x);
}

static int count(const oct_graph *g, const oct_op *op)
{
    int k = 0;

    for (const oct_node *n = g->first; n; n = n->next)
        k += oct_node_is(n, op);
    return k;
}

static void compare(const oct_graph *g, oct_tensor **before, oct_pass_exactness promise,
                    const char *name)
{
    oct_tensor *after[8] = {NULL};

    evaluate(g, after);
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (promise == OCT_PASS_BIT_EXACT)
            assert_same(name, after[i], before[i], 0);
        else
            assert_steps(after[i], before[i], 0.11f, 0.01);
        oct_tensor_unref(after[i]);
    }
}

static void every_pass_keeps_its_promise(void **state)
{
    fixture *f = *state;
    oct_tensor *before[8] = {NULL};
    int n_passes = 0;

    build(f);
    evaluate(f->g, before);
    for (int i = 0; oct_pass_at(i); i++) {
        const oct_pass *p = oct_pass_at(i);
        oct_graph *g = NULL;
        int changed = 0, again = 0;

        if (p->in != OCT_IN_INTEGER_PLANS) continue;
        assert_ok(f->ctx, oct_graph_clone(f->g, &g));
        if (strcmp(p->name, "drop-requantize") == 0) /* only the one before makes work for it */
            assert_ok(f->ctx, oct_pass_run(oct_pass_find("hoist-quantize"), g, &changed));
        changed = 0;
        assert_ok(f->ctx, oct_pass_run(p, g, &changed));
        assert_ok(f->ctx, oct_graph_verify(g));
        if (changed == 0) fail_msg("%s found nothing to do", p->name);
        compare(g, before, p->promise, p->name);
        assert_ok(f->ctx, oct_pass_run(p, g, &again));
        assert_int_equal(again, 0);
        oct_graph_free(g);
        n_passes++;
    }
    assert_int_equal(n_passes, 5);
    for (int i = 0; i < 5; i++)
        oct_tensor_unref(before[i]);
}

/* All of them together, as a plan runs them. */
static void the_pipeline_leaves_codes_between_borders(void **state)
{
    fixture *f = *state;
    oct_tensor *before[8] = {NULL};
    oct_graph *g = NULL;

    build(f);
    evaluate(f->g, before);
    assert_ok(f->ctx, oct_graph_clone(f->g, &g));
    assert_ok(f->ctx, oct_pipeline_run(g, "integer", NULL, NULL));
    assert_ok(f->ctx, oct_graph_verify(g));
    compare(g, before, OCT_PASS_CLOSE, "integer");
    assert_int_equal(count(g, &oct_op_q_linear_conv), 0);
    assert_int_equal(count(g, &oct_op_q_linear_concat), 0);
    for (const oct_node *n = g->first; n; n = n->next) /* what moves data moves bytes */
        if (n->op == &oct_op_concat || n->op == &oct_op_max_pool || n->op == &oct_op_transpose ||
            n->op == &oct_op_resize || n->op == &oct_op_pad)
            assert_int_equal(n->out[0]->type.dtype, OCT_DTYPE_U8);
    for (int i = 0; i < 5; i++)
        oct_tensor_unref(before[i]);
    oct_graph_free(g);
}

/* --- no memory --- */

/* The graph is made beforehand by a context that has memory. */
static const void *file;
static size_t file_size;

static oct_status plan(oct_ctx *ctx)
{
    oct_graph *g = NULL;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    oct_status st = oct_onnx_load_memory(ctx, file, file_size, &g);

    if (!st) st = oct_plan_new(g, NULL, &p);
    if (!st) st = oct_run_new(ctx, p, &r);
    if (!st) st = oct_run_execute(r);
    oct_run_free(r);
    oct_plan_free(p);
    oct_graph_free(g);
    return st;
}

/* A file in memory of what build() makes. */
static void write_file(fixture *f)
{
    char folder[64], path[96];
    void *data;
    FILE *in;
    long size;

    build(f);
    make_folder(folder);
    snprintf(path, sizeof(path), "%s/net.onnx", folder);
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
    assert_non_null(in = fopen(path, "rb"));
    fseek(in, 0, SEEK_END);
    size = ftell(in);
    rewind(in);
    assert_non_null(data = malloc((size_t)size));
    assert_int_equal(fread(data, 1, (size_t)size, in), (size_t)size);
    fclose(in);
    remove_folder(folder);
    file = data;
    file_size = (size_t)size;
}

/* Shape inference does without what it has no memory for; all else must fail, and say so. */
static void every_allocation_may_fail(void **state)
{
    bool done = false;

    write_file(*state);
    for (int n = 1; !done; n += 1 + n / 200) {
        failing f;
        oct_ctx *ctx = failing_ctx(&f);
        oct_status st;

        f.fail_at = n;
        st = plan(ctx);
        done = f.n_asked < n;
        if (st || done) assert_int_equal(st, done ? OCT_OK : OCT_ERR_MEMORY);
        assert_int_equal(atomic_load(&ctx->mem_used), 0);
        oct_ctx_free(ctx);
        assert_int_equal(f.n_live, 0);
    }
    free((void *)(uintptr_t)file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_pass_keeps_its_promise, setup, teardown),
        cmocka_unit_test_setup_teardown(the_pipeline_leaves_codes_between_borders, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
