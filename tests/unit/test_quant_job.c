/* SPDX-License-Identifier: Apache-2.0 */
/* Whole quantizations of small networks that were once refused, or quantized wrongly. */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

#include <pthread.h>
#include <time.h>

#include "feed/feed.h"
#include "pass/pass.h"

/* Quantizes the fixture's graph; the noise of its first output must be below `most`. */
static void quantizes(files *t, const oct_dataset *d, const char *target, double most)
{
    oct_quantize_options o;
    oct_quantized *q = NULL;
    double noise;

    oct_quantize_options_init(&o);
    o.target = target;
    o.tail = "off";
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    noise = job_noise(t, q);
    if (!(noise < most)) fail_msg("target %s: noise %g, want %g", target, noise, most);
    oct_quantized_free(q);
}

static const char *const targets[] = {"octet", "ort", "openvino", "tensorrt", "npu-pow2"};

enum { N_TARGETS = sizeof(targets) / sizeof(*targets) };

/* --- one weight, several readers --- */

static oct_value *softmax(fixture *f, oct_value *x, int64_t axis)
{
    oct_node *n = node(f, &oct_op_softmax, x, NULL, NULL);

    assert_ok(f->ctx, oct_node_set_int(n, "axis", axis));
    return infer(f, n);
}

/* Distances to the sides of a box, at two levels, by one projection (YOLO-NAS has such heads): the
 * factors that are folded into the projection differ from level to level. */
static void projects_levels_by_one_weight(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y, *w, *part[2];
    oct_dataset *d;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    x = picture(f, 1, 3, 8, 8);
    w = weights(f, &rng, 4, (int64_t[]){1, 8, 1, 1});
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){3, 8, 3, 1, 1, 1, 1}), NULL);
    for (int i = 0; i < 2; i++) {
        const int64_t side = i ? 4 : 8;

        y = emit(f, &oct_op_relu, conv(f, &rng, y, &(conv_case){8, 8, 3, i + 1, 1, 1, 1}), NULL);
        part[i] = conv(f, &rng, y, &(conv_case){8, 32, 1, 1, 1, 0, 1});
        part[i] = reshape(f, part[i], 4, (int64_t[]){1, 4, 8, side * side});
        part[i] = softmax(f, transpose(f, part[i], 4, (int64_t[]){0, 2, 1, 3}), 1);
        part[i] = emit(f, &oct_op_conv, part[i], w);
        output(f, part[i]);
    }
    d = items(t, x, 2);
    for (int i = 0; i < N_TARGETS; i++)
        quantizes(t, d, targets[i], 0.02);
    oct_dataset_close(d);
}

/* Heads that are applied to several levels, as YOLO-FastestV2's: all their weights are shared, and
 * sigmoid and softmax follow. */
static void shares_heads_between_levels(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y, *w[3], *out[3];
    oct_dataset *d;
    oct_rng rng;

    oct_rng_init(&rng, 6);
    x = picture(f, 1, 3, 16, 16);
    w[0] = weights(f, &rng, 4, (int64_t[]){12, 8, 1, 1});
    w[1] = weights(f, &rng, 4, (int64_t[]){3, 8, 1, 1});
    w[2] = weights(f, &rng, 4, (int64_t[]){5, 8, 1, 1});
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){3, 8, 3, 1, 1, 1, 1}), NULL);
    for (int i = 0; i < 2; i++) {
        y = emit(f, &oct_op_relu, conv(f, &rng, y, &(conv_case){8, 8, 3, 2, 1, 1, 8}), NULL);
        for (int k = 0; k < 3; k++)
            out[k] = emit(f, &oct_op_conv, y, w[k]);
        out[0] = emit(f, &oct_op_sigmoid, out[0], NULL);
        out[1] = emit(f, &oct_op_sigmoid, out[1], NULL);
        out[2] = softmax(f, out[2], 1);
        output(f, transpose(f, concat(f, out, 3, 1), 4, (int64_t[]){0, 2, 3, 1}));
    }
    d = items(t, x, 2);
    for (int i = 0; i < N_TARGETS; i++)
        quantizes(t, d, targets[i], 0.02);
    oct_dataset_close(d);
}

/* --- layers without an integer form --- */

/* An LSTM of four units that reads eight: 128 + 64 weights beside the 216 of the convolution. */
static void recurrent_weights_count_as_float(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_quantize_summary s = {.struct_size = sizeof(s)};
    oct_quantize_layer last = {.struct_size = sizeof(last)};
    oct_quantized *q = NULL;
    oct_dataset *d;
    oct_value *x, *y;
    oct_node *n;
    oct_rng rng;

    oct_rng_init(&rng, 8);
    x = picture(f, 1, 3, 8, 8);
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){3, 8, 3, 1, 1, 1, 1}), NULL);
    y = reshape(f, y, 3, (int64_t[]){64, 1, 8});
    n = node(f, &oct_op_lstm, y, weights(f, &rng, 3, (int64_t[]){1, 16, 8}),
             weights(f, &rng, 3, (int64_t[]){1, 16, 4}));
    assert_ok(f->ctx, oct_node_set_int(n, "hidden_size", 4));
    output(f, infer(f, n));
    d = items(t, x, 2);
    assert_ok(t->ctx, oct_quantize(f->g, d, NULL, &q));
    oct_quantized_summary(q, &s);
    assert_int_equal(s.layers_total, 2);
    assert_int_equal(s.layers_quantized, 1);
    assert_true(fabs(s.weights_quantized_share - 216.0 / (216 + 128 + 64)) < 1e-9);
    assert_true(oct_quantized_layer(q, 1, &last));
    assert_string_equal(last.op, "LSTM");
    assert_non_null(strstr(last.reason, "recurrent"));
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* --- weights that are still float --- */

/* DequantizeLinear of codes becomes QuantizeLinear and DequantizeLinear of floats, as training with
 * quantization exports weights. Returns how many. */
static int unround_weights(fixture *f)
{
    int n_changed = 0;

    for (oct_node *n = f->g->first; n; n = n->next) {
        oct_value *const codes = oct_node_is(n, &oct_op_dequantize_linear) ? n->in[0] : NULL;
        oct_tensor *t = NULL, *data[3] = {NULL};
        oct_value *y = NULL, *in[3] = {NULL, n->in[1], oct_node_in(n, 2)};
        oct_type zero_type;
        oct_node *q;

        if (!codes || !codes->data || codes->type.dtype == OCT_DTYPE_I32) continue;
        for (int32_t i = 0; i < n->n_in; i++)
            data[i] = n->in[i] ? n->in[i]->data : NULL;
        assert_ok(f->ctx, oct_node_eval(n, data, &t, NULL));
        assert_non_null(in[0] = oct_value_const(f->g, NULL, t));
        if (!in[2]) { /* it says the type */
            zero_type = in[1]->type;
            zero_type.dtype = codes->type.dtype;
            t = NULL;
            assert_ok(f->ctx, oct_tensor_make(f->ctx, &zero_type, &t));
            assert_non_null(in[2] = oct_value_const(f->g, NULL, t));
        }
        assert_non_null(y = oct_value_new(f->g, NULL, NULL));
        assert_non_null(q = oct_node_new(f->g, n, NULL, &oct_op_quantize_linear, in, 3, &y, 1));
        assert_ok(f->ctx, oct_node_set_int(q, "axis", oct_node_attr(n, "axis")->i));
        assert_ok(f->ctx, oct_node_infer(q));
        assert_ok(f->ctx, oct_node_set_input(n, 0, y));
        n_changed++;
    }
    return n_changed;
}

static size_t constant_bytes(const oct_graph *g)
{
    size_t n = 0;

    for (int32_t i = 0; i < g->n_value_ids; i++)
        if (g->values[i] && g->values[i]->data && g->values[i]->n_users)
            n += g->values[i]->data->size;
    return n;
}

/* The same numbers from the same kernels as with integer weights; 'simplify' writes codes. */
static void float_weights_become_codes(files *t, const oct_dataset *d, const char *target)
{
    fixture *f = t->f;
    oct_graph *exact = f->g;
    oct_tensor *want = NULL, *got = NULL;
    oct_quantize_options o;
    oct_quantized *q = NULL;
    int kernels, n;
    size_t bytes;

    oct_quantize_options_init(&o);
    o.target = target;
    o.tail = "off";
    assert_ok(t->ctx, oct_quantize(exact, d, &o, &q));
    assert_ok(t->ctx, oct_graph_clone(oct_quantized_graph(q), &f->g));
    bytes = constant_bytes(f->g);
    kernels = count_kernels(f, NULL, "int8");
    assert_true(kernels >= 2);
    run_graph(f, NULL, &want);
    n = unround_weights(f);
    assert_true(n >= 2);
    assert_true(constant_bytes(f->g) > 2 * bytes);
    assert_int_equal(count_kernels(f, NULL, "int8"), kernels);
    run_graph(f, NULL, &got);
    assert_same(target, got, want, 0);
    assert_ok(t->ctx, oct_pipeline_run(f->g, "simplify", NULL, NULL));
    assert_true(constant_bytes(f->g) < bytes + 200);
    oct_tensor_unref(got);
    oct_tensor_unref(want);
    oct_quantized_free(q);
    oct_graph_free(f->g);
    f->g = exact;
}

static void quantizes_float_weights(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y;
    oct_dataset *d;
    oct_rng rng;

    oct_rng_init(&rng, 8);
    x = picture(f, 1, 16, 12, 12);
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){16, 32, 3, 1, 1, 1, 1}), NULL);
    y = emit(f, &oct_op_relu, conv(f, &rng, y, &(conv_case){32, 32, 1, 1, 1, 0, 1}), NULL);
    output(f, conv(f, &rng, y, &(conv_case){32, 8, 1, 1, 1, 0, 1}));
    d = items(t, x, 2);
    for (int i = 0; i < N_TARGETS; i++)
        float_weights_become_codes(t, d, targets[i]);
    oct_dataset_close(d);
}

/* --- float16 --- */

/* All that is float32 in the fixture's graph becomes float16, as exports with half=True have it. */
static void halve(fixture *f)
{
    for (int32_t i = 0; i < f->g->n_value_ids; i++) {
        oct_value *v = f->g->values[i];
        oct_tensor *t = NULL;
        oct_type type;

        if (!v || v->type.dtype != OCT_DTYPE_F32) continue;
        type = v->type;
        type.dtype = v->type.dtype = OCT_DTYPE_F16;
        if (!v->data) continue;
        assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
        for (int64_t k = 0; k < oct_tensor_len(t); k++) {
            const double x = oct_tensor_get_f64(v->data, k);

            oct_store_f64(OCT_DTYPE_F16, t->data, k, 1, &x);
        }
        oct_tensor_unref(v->data);
        v->data = t;
    }
    assert_ok(f->ctx, oct_graph_infer(f->g));
}

/* Runs a graph on one item of the data; its first output. */
static oct_tensor *run_on(files *t, const oct_graph *g, const oct_dataset *d)
{
    oct_tensor *x = NULL, *y = NULL;
    const oct_tensor *out = NULL;
    oct_plan *p = NULL;
    oct_run *r = NULL;

    assert_ok(t->ctx, oct_plan_new(g, NULL, &p));
    assert_ok(t->ctx, oct_run_new(t->ctx, p, &r));
    assert_ok(t->ctx, oct_dataset_tensor(d, 0, "x", &x));
    assert_ok(t->ctx, oct_run_set_input(r, "x", x));
    assert_ok(t->ctx, oct_run_execute(r));
    assert_ok(t->ctx, oct_run_output(r, 0, &out));
    assert_ok(t->ctx, oct_tensor_copy(t->ctx, out, &y));
    oct_tensor_unref(x);
    oct_run_free(r);
    oct_plan_free(p);
    return y;
}

static void quantizes_float16(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y;
    oct_tensor *want, *got;
    oct_quantize_options o;
    oct_quantized *q = NULL;
    oct_quant_info info = {.struct_size = sizeof(info)};
    oct_dataset *d;
    oct_rng rng;

    oct_rng_init(&rng, 8);
    x = picture(f, 1, 4, 8, 8);
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){4, 8, 3, 1, 1, 1, 1}), NULL);
    output(f, conv(f, &rng, y, &(conv_case){8, 8, 3, 1, 1, 1, 1}));
    halve(f);
    d = items(t, x, 2);
    oct_quantize_options_init(&o);
    o.tail = "off";
    assert_ok(t->ctx, oct_quantize(f->g, d, &o, &q));
    oct_graph_quant_info(oct_quantized_graph(q), &info);
    assert_int_equal(info.layers_quantized, 2);
    want = run_on(t, f->g, d);
    got = run_on(t, oct_quantized_graph(q), d);
    assert_int_equal(got->type.dtype, OCT_DTYPE_F16); /* as in the file */
    assert_string_equal(oct_quantized_graph(q)->outputs[0]->name, f->g->outputs[0]->name);
    assert_same("quantized float16", got, want, 0.05);
    oct_tensor_unref(want);
    oct_tensor_unref(got);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* --- biases of NPUs --- */

/* Codes of all biases of a file; fails on one beyond 16 bits or a scale that is no power of two. */
static int check_biases(const oct_graph *g)
{
    int n_biases = 0;

    for (const oct_node *n = g->first; n; n = n->next) {
        const oct_node *dq;

        if (!oct_node_is(n, &oct_op_conv)) continue;
        assert_non_null(oct_node_in(n, 2));
        dq = n->in[2]->producer;
        assert_true(oct_node_is(dq, &oct_op_dequantize_linear));
        for (int64_t i = 0; i < oct_tensor_len(dq->in[0]->data); i++)
            assert_in_range((int64_t)oct_tensor_get_f64(dq->in[0]->data, i) + 32768, 1, 65535);
        for (int64_t i = 0; i < oct_tensor_len(dq->in[1]->data); i++) {
            int e;

            assert_true(frexp(oct_tensor_get_f64(dq->in[1]->data, i), &e) == 0.5);
        }
        n_biases++;
    }
    return n_biases;
}

/* Biases far larger than what is summed, some of them put there by correction. */
static void biases_of_npus_have_16_bits(void **state)
{
    static const char *const npus[] = {"npu-pow2", "npu-pow2-pc"};
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y;
    oct_dataset *d;
    oct_rng rng;

    oct_rng_init(&rng, 8);
    x = picture(f, 1, 4, 8, 8);
    y = conv(f, &rng, x, &(conv_case){4, 8, 3, 1, 1, 1, 1});
    for (int i = 0; i < 8; i++)
        ((float *)y->producer->in[2]->data->data)[i] = i == 3 ? 900.0f : (float)i;
    y = emit(f, &oct_op_relu, y, NULL);
    y = emit(f, &oct_op_conv, y, weights(f, &rng, 4, (int64_t[]){8, 8, 3, 3}));
    output(f, conv(f, &rng, emit(f, &oct_op_relu, y, NULL), &(conv_case){8, 4, 1, 1, 1, 0, 1}));
    d = items(t, x, 2);
    for (int i = 0; i < 2; i++) {
        oct_quantize_options o;
        oct_quantized *q = NULL;

        oct_quantize_options_init(&o);
        o.target = npus[i];
        o.tail = "off";
        assert_ok(t->ctx, oct_quantize(f->g, d, &o, &q));
        assert_int_equal(check_biases(oct_quantized_graph(q)), 3);
        oct_quantized_free(q);
    }
    oct_dataset_close(d);
}

/* --- division --- */

/* A variance, the small number that keeps it from zero, a root and a division, as normalisation is
 * written by hand; a product reads the variance too. Rounded to codes, small ones would be 0. */
static void does_not_divide_by_zero(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y, *d, *v, *square;
    oct_node *n;
    oct_dataset *data;
    oct_rng rng;

    oct_rng_init(&rng, 4);
    x = picture(f, 1, 4, 8, 8);
    y = conv(f, &rng, x, &(conv_case){4, 8, 3, 1, 1, 1, 1});
    for (int64_t i = 0; i < 4 * 9 * 4; i++) /* half of the channels hardly vary */
        ((float *)y->producer->in[1]->data->data)[i] *= 1e-3f;
    n = node(f, &oct_op_reduce_mean, y, oct_ints(&f->b, (int64_t[]){2, 3}, 2), NULL);
    d = emit(f, &oct_op_sub, y, infer(f, n));
    square = emit(f, &oct_op_mul, d, d);
    n = node(f, &oct_op_reduce_mean, square, oct_ints(&f->b, (int64_t[]){2, 3}, 2), NULL);
    v = emit(f, &oct_op_add, infer(f, n), oct_scalar(&f->b, 1e-5f));
    output(f, emit(f, &oct_op_div, d, emit(f, &oct_op_sqrt, v, NULL)));
    output(f, emit(f, &oct_op_conv, v, weights(f, &rng, 4, (int64_t[]){4, 8, 1, 1})));
    data = items(t, x, 2);
    for (int i = 0; i < N_TARGETS; i++)
        quantizes(t, data, targets[i], 2);
    oct_dataset_close(data);
}

/* --- pictures --- */

/* Keras's epsilon tells how pixels are scaled, and is folded away: the file says it instead. */
static void tells_how_pictures_are_made(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x = picture(f, 1, 3, 16, 16), *in[5];
    oct_preprocess before, after;
    oct_quantized *q = NULL;
    char words[2][256];
    oct_dataset *d = NULL;
    oct_node *n;
    oct_rng rng;

    oct_rng_init(&rng, 4);
    in[0] = conv(f, &rng, x, &(conv_case){3, 8, 3, 2, 1, 1, 1});
    for (int i = 1; i < 5; i++)
        in[i] = input(f, 8, (const float[]){1, 1, 1, 1, 1, 1, 1, 1});
    n = oct_emit_node(&f->b, &oct_op_batch_normalization, in, 5, 1);
    assert_ok(f->ctx, oct_node_set_f32(n, "epsilon", 1e-3f));
    x = emit(f, &oct_op_relu, infer(f, n), NULL);
    x = conv(f, &rng, x, &(conv_case){8, 10, 1, 1, 1, 0, 1});
    n = node(f, &oct_op_flatten, emit(f, &oct_op_global_average_pool, x, NULL), NULL, NULL);
    output(f, infer(f, n));
    put_folder(t, "seen");
    for (int i = 0; i < N_ITEMS; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "seen/%d.png", i);
        put_picture(t, name, 16, 16);
    }
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "seen"), NULL, false, &d));
    assert_ok(t->ctx, oct_graph_preprocess(f->g, NULL, NULL, &before));
    assert_true(before.scale == 127.5f);
    assert_ok(t->ctx, oct_quantize(f->g, d, NULL, &q));
    assert_ok(t->ctx, oct_graph_preprocess(oct_quantized_graph(q), NULL, NULL, &after));
    assert_string_equal(oct_preprocess_text(&after, words[0], sizeof(words[0])),
                        oct_preprocess_text(&before, words[1], sizeof(words[1])));
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* --- failures --- */

typedef struct race {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool has_failed; /* item 1 */
} race;

/* Item 0 fails late, when item 1 has failed long ago. */
static oct_status fail_in_turn(void *user, int32_t worker, oct_ctx *ctx, oct_run *r, int64_t index)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    race *x = user;

    (void)worker;
    (void)r;
    (void)pthread_mutex_lock(&x->lock);
    x->has_failed |= index > 0;
    (void)pthread_cond_signal(&x->moved);
    while (!x->has_failed)
        (void)pthread_cond_wait(&x->moved, &x->lock);
    (void)pthread_mutex_unlock(&x->lock);
    if (index == 0) (void)nanosleep(&pause, NULL);
    return oct_fail(ctx, OCT_ERR_FORMAT, "item %lld is bad", (long long)index);
}

static void tells_the_first_failure(void **state)
{
    race x = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    const oct_feed_job job = {.n_workers = 2, .one = fail_in_turn, .user = &x};
    const oct_feed_options o = {0};
    files *t = *state;
    oct_graph *bound = NULL;
    oct_plan *plan = NULL;
    oct_feed *f = NULL;
    oct_dataset *d;
    oct_value *in;

    in = picture(t->f, 1, 4, 8, 8);
    output(t->f, emit(t->f, &oct_op_relu, in, NULL));
    d = items(t, in, 2);
    assert_ok(t->ctx, oct_feed_new(t->f->g, d, &o, &bound, &f));
    assert_ok(t->ctx, oct_plan_new(bound, NULL, &plan));
    assert_fails(t->ctx, oct_feed_each(f, plan, &job), OCT_ERR_FORMAT, "item 0 is bad");
    oct_plan_free(plan);
    oct_feed_free(f);
    oct_graph_free(bound);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(projects_levels_by_one_weight, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(shares_heads_between_levels, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(recurrent_weights_count_as_float, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(quantizes_float_weights, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(quantizes_float16, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(biases_of_npus_have_16_bits, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(does_not_divide_by_zero, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(tells_how_pictures_are_made, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(tells_the_first_failure, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
