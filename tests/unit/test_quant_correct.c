/* SPDX-License-Identifier: Apache-2.0 */
/* Corrections: the float network computes the same, and what they are to make better is better. */
#include "tests/unit/quant_job.h"

#include "quant/correct/correct.h"
#include "quant/lower/lower.h"
#include "quant/solve/solve.h"

/* --- what the tests share --- */

static void output(fixture *f, oct_value *v)
{
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
}

/* Makes the filters of a layer (its rows) of different size: channel c by 4^(c mod 5). */
static void skew(const oct_value *y)
{
    oct_tensor *t = y->producer->in[1]->data;
    const int64_t n = t->type.dim[0], inner = oct_tensor_len(t) / n;

    for (int64_t i = 0; i < oct_tensor_len(t); i++)
        ((float *)t->data)[i] *= powf(4, (float)(i / inner % 5) - 3);
}

/* The largest weight of filter r. */
static double size_of(const oct_value *y, int64_t r)
{
    const oct_tensor *t = y->producer->in[1]->data;
    const int64_t inner = oct_tensor_len(t) / t->type.dim[0];
    double top = 0;

    for (int64_t i = 0; i < inner; i++)
        top = fmax(top, fabs((double)((const float *)t->data)[r * inner + i]));
    return top;
}

/* The largest filter of a layer over the smallest. */
static double spread(const oct_value *y)
{
    double most = 0, least = INFINITY;

    for (int64_t r = 0; r < y->type.dim[1]; r++) {
        most = fmax(most, size_of(y, r));
        least = fmin(least, size_of(y, r));
    }
    return most / least;
}

/* Runs `change` on the graph; its output must stay. */
typedef void (*change_fn)(files *t, void *user);

static void stays(files *t, change_fn change, void *user)
{
    oct_tensor *before = NULL, *after = NULL;

    run_graph(t->f, NULL, &before);
    change(t, user);
    assert_ok(t->ctx, oct_graph_verify(t->f->g));
    run_graph(t->f, NULL, &after);
    assert_same("after the correction", after, before, 1e-4);
    oct_tensor_unref(before);
    oct_tensor_unref(after);
}

/* --- equalization --- */

static void equalize(files *t, void *user)
{
    assert_ok(t->ctx, oct_equalize(t->f->g, user));
}

static oct_value *prelu(fixture *f, oct_rng *rng, oct_value *x)
{
    return emit(f, &oct_op_p_relu, x, weights(f, rng, 3, (int64_t[]){x->type.dim[1], 1, 1}));
}

static void equalizes_chains(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y[4];
    double before;
    int32_t n = 0;
    oct_rng rng;

    oct_rng_init(&rng, 1);
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 8, 8});
    y[0] = conv(f, &rng, x, &(conv_case){4, 8, 3, 1, 1, 1, 1});
    y[1] = conv(f, &rng, emit(f, &oct_op_relu, y[0], NULL), &(conv_case){8, 8, 3, 1, 1, 1, 8});
    y[2] =
        conv(f, &rng, emit(f, &oct_op_leaky_relu, y[1], NULL), &(conv_case){8, 12, 1, 1, 1, 0, 2});
    y[3] = conv(f, &rng, prelu(f, &rng, y[2]), &(conv_case){12, 4, 3, 2, 1, 1, 1});
    output(f, y[3]);
    skew(y[0]);
    before = spread(y[0]);
    stays(t, equalize, &n);
    assert_int_equal(n, 3);
    assert_true(spread(y[0]) < before / 8);
    for (int64_t c = 0; c < 8; c++) /* a channel is as large in front of the second as behind */
        assert_true(fabs(log(size_of(y[0], c) / size_of(y[1], c))) < 0.01);
}

static void leaves_other_neighbours_alone(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *a, *b, *c;
    int32_t n = -1;
    oct_rng rng;

    oct_rng_init(&rng, 1);
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 8, 8});
    a = conv(f, &rng, x, &(conv_case){4, 4, 3, 1, 1, 1, 1});
    b = conv(f, &rng, emit(f, &oct_op_sigmoid, a, NULL), &(conv_case){4, 4, 3, 1, 1, 1, 1});
    c = conv(f, &rng, b, &(conv_case){4, 4, 3, 1, 1, 1, 1}); /* b has two readers */
    output(f, emit(f, &oct_op_add, b, c));
    skew(a);
    stays(t, equalize, &n);
    assert_int_equal(n, 0);
}

/* --- measured corrections --- */

typedef struct setting {
    oct_dataset *d;
    double alpha;
    int32_t n;
} setting;

static void measured(files *t, void *user)
{
    const oct_feed_options o = {0};
    setting *s = user;
    oct_graph *bound = NULL;
    oct_feed *f = NULL;

    assert_ok(t->ctx, oct_feed_new(t->f->g, s->d, &o, &bound, &f));
    if (s->alpha > 0)
        assert_ok(t->ctx, oct_smooth(t->f->g, bound, f, s->alpha, &s->n));
    else
        assert_ok(t->ctx, oct_align(t->f->g, bound, f, &s->n));
    oct_feed_free(f);
    oct_graph_free(bound);
}

/* Middle and width of each channel, over what run_graph() feeds: of the second output. */
static void assert_aligned(files *t)
{
    oct_tensor *out[2] = {NULL, NULL};
    double narrow = INFINITY, wide = 0;

    run_graph(t->f, NULL, out);
    for (int64_t c = 0; c < 6; c++) {
        double low = INFINITY, high = -INFINITY;

        for (int64_t i = 0; i < 100; i++) {
            low = fmin(low, oct_tensor_get_f64(out[1], c * 100 + i));
            high = fmax(high, oct_tensor_get_f64(out[1], c * 100 + i));
        }
        assert_true(fabs(low + high) < (high - low) / 2);
        narrow = fmin(narrow, high - low);
        wide = fmax(wide, high - low);
    }
    assert_true(wide < 4 * narrow);
    oct_tensor_unref(out[0]);
    oct_tensor_unref(out[1]);
}

static void aligns_channels(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *a, *b;
    setting s = {0};
    oct_rng rng;

    oct_rng_init(&rng, 1);
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 10, 10});
    a = conv(f, &rng, x, &(conv_case){4, 6, 3, 1, 1, 1, 1});
    b = conv(f, &rng, a, &(conv_case){6, 5, 3, 1, 1, 0, 1});
    output(f, b);
    skew(a);
    for (int i = 0; i < 6; i++)
        ((float *)a->producer->in[2]->data->data)[i] = (float)(i * 20 - 50);
    s.d = items(t, x, 2);
    stays(t, measured, &s);
    assert_int_equal(s.n, 1);
    output(f, a);
    assert_aligned(t);
    oct_dataset_close(s.d);
}

static void does_not_align_across_padding(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *a;
    setting s = {.n = -1};
    oct_rng rng;

    oct_rng_init(&rng, 1);
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 8, 8});
    a = conv(f, &rng, x, &(conv_case){4, 6, 3, 1, 1, 1, 1});
    output(f, conv(f, &rng, a, &(conv_case){6, 5, 3, 1, 1, 1, 1}));
    s.d = items(t, x, 2);
    stays(t, measured, &s);
    assert_int_equal(s.n, 0);
    oct_dataset_close(s.d);
}

/* --- smoothing --- */

enum { WIDTH = 8 };

static oct_value *product(fixture *f, oct_rng *rng, oct_value *x, int64_t n)
{
    oct_value *y = emit(f, &oct_op_mat_mul, x,
                        weights(f, rng, 2, (int64_t[]){x->type.dim[x->type.rank - 1], n}));

    return emit(f, &oct_op_add, y, weights(f, rng, 1, &n));
}

/* LayerNormalization with one channel a hundred times the others. */
static oct_value *norm(fixture *f, oct_rng *rng, oct_value *x)
{
    oct_value *scale = weights(f, rng, 1, (int64_t[]){WIDTH});
    oct_value *bias = weights(f, rng, 1, (int64_t[]){WIDTH});

    ((float *)scale->data->data)[3] = 100;
    return infer(f, node(f, &oct_op_layer_normalization, x, scale, bias));
}

/* Attention and two products behind it; returns the normalised input of the first. */
static oct_value *block(fixture *f, oct_rng *rng, oct_value *x)
{
    oct_value *h = norm(f, rng, x), *q = product(f, rng, h, WIDTH), *k = product(f, rng, h, WIDTH);
    oct_value *v = product(f, rng, h, WIDTH), *s;
    oct_node *turn = node(f, &oct_op_transpose, k, NULL, NULL);

    assert_ok(f->ctx, oct_node_set_ints(turn, "perm", (int64_t[]){0, 2, 1}, 3));
    s = emit(f, &oct_op_softmax, emit(f, &oct_op_mat_mul, q, infer(f, turn)), NULL);
    s = emit(f, &oct_op_add, x, product(f, rng, emit(f, &oct_op_mat_mul, s, v), WIDTH));
    q = emit(f, &oct_op_relu, product(f, rng, norm(f, rng, s), 2 * WIDTH), NULL);
    output(f, emit(f, &oct_op_add, s, product(f, rng, q, WIDTH)));
    return h;
}

static int32_t count(const oct_graph *g, const oct_op *op)
{
    int32_t n = 0;

    for (const oct_node *k = g->first; k; k = k->next)
        n += oct_node_is(k, op);
    return n;
}

static double ratio_of_channels(const oct_tensor *scale)
{
    const float *x = scale->data;
    double most = 0;

    for (int i = 0; i < WIDTH; i++)
        most = fmax(most, i == 3 ? 0 : fabs((double)x[i]));
    return fabs((double)x[3]) / most;
}

static void smooths_a_transformer(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    setting s = {.alpha = 0.95};
    oct_value *x, *h;
    oct_rng rng;

    oct_rng_init(&rng, 1);
    x = graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){1, 5, WIDTH});
    h = block(f, &rng, x);
    s.d = items(t, x, 2);
    assert_true(ratio_of_channels(h->producer->in[1]->data) > 100);
    stays(t, measured, &s);
    assert_int_equal(s.n, 4);
    assert_true(ratio_of_channels(h->producer->in[1]->data) < 10);
    /* Behind softmax(..) * v nothing can take the division. */
    assert_int_equal(count(f->g, &oct_op_mul), 1);
    oct_dataset_close(s.d);
}

/* A value that others read too keeps its size; so does an input. */
static void smooths_beside_other_readers(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    setting s = {.alpha = 0.5};
    oct_value *x, *y;
    oct_node *gemm;
    oct_rng rng;

    oct_rng_init(&rng, 1);
    x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){5, WIDTH});
    y = product(f, &rng, x, WIDTH);
    gemm = node(f, &oct_op_gemm, y, weights(f, &rng, 2, (int64_t[]){WIDTH, WIDTH}),
                weights(f, &rng, 1, (int64_t[]){WIDTH}));
    assert_ok(f->ctx, oct_node_set_int(gemm, "transB", 1));
    output(f, emit(f, &oct_op_add, y, infer(f, gemm)));
    s.d = items(t, x, 2);
    stays(t, measured, &s);
    assert_int_equal(s.n, 2);
    assert_int_equal(count(f->g, &oct_op_mul), 2);
    oct_dataset_close(s.d);
}

/* --- shifts --- */

enum { N_SAMPLES = 400 };

typedef struct channel {
    float exact[N_SAMPLES], now[N_SAMPLES], scratch[N_SAMPLES];
} channel;

/* Values around `center` that lack about `missing`. */
static void fill(channel *c, int begin, int end, double center, double missing)
{
    oct_rng rng;

    oct_rng_init(&rng, (uint64_t)begin + 1);
    for (int i = begin; i < end; i++) {
        c->exact[i] = (float)(center + oct_rng_f64(&rng));
        c->now[i] = (float)((double)c->exact[i] - missing + 0.2 * (oct_rng_f64(&rng) - 0.5));
    }
}

static double shift(channel *c, oct_act_kind kind)
{
    const oct_following_act b = {.act = {.kind = kind, .a = 1}};

    return (double)oct_best_shift(&b, c->exact, c->now, N_SAMPLES, N_SAMPLES / 2, c->scratch);
}

static void takes_what_is_missing(void **state)
{
    channel c;

    (void)state;
    fill(&c, 0, N_SAMPLES, 1, 0.5);
    assert_float_equal(shift(&c, OCT_ACT_NONE), 0.5, 0.02);
    assert_float_equal(shift(&c, OCT_ACT_SWISH), 0.5, 0.02);
    fill(&c, 0, N_SAMPLES, -30, 0.5); /* nothing passes */
    assert_float_equal(shift(&c, OCT_ACT_RELU), 0, 0);
}

static void does_not_follow_outliers(void **state)
{
    channel c;

    (void)state;
    fill(&c, 0, N_SAMPLES, 1, 0.5);
    for (int i = 0; i < N_SAMPLES; i += 20)
        c.now[i] = c.exact[i] - 50; /* the mean is 3 */
    assert_float_equal(shift(&c, OCT_ACT_NONE), 0.5, 0.06);
}

/* Errors on the flat side of an activation are no reason to move what is on the other. */
static void counts_what_passes_the_activation(void **state)
{
    channel c;

    (void)state;
    fill(&c, 0, N_SAMPLES, -12, 1);
    for (int i = 0; i < N_SAMPLES; i += 4)
        fill(&c, i, i + 1, 2, 0.25);
    assert_true(shift(&c, OCT_ACT_NONE) > 0.7);
    assert_float_equal(shift(&c, OCT_ACT_SWISH), 0.25, 0.06);
}

static void leaves_channels_that_disagree(void **state)
{
    channel c;

    (void)state;
    fill(&c, 0, N_SAMPLES / 2, 1, 1);
    fill(&c, N_SAMPLES / 2, N_SAMPLES, 1, -0.5);
    assert_float_equal(shift(&c, OCT_ACT_NONE), 0, 0);
}

/* --- all of a network --- */

/* Squared error at the output with weights of 3 bits, and that of the channels' means. */
typedef struct output_error {
    double all, of_means;
} output_error;

static output_error compare(const oct_tensor *want, const oct_tensor *got)
{
    const int64_t channels = want->type.dim[1], pixels = oct_type_span(&want->type, 2, 4);
    output_error sum = {0, 0};

    for (int64_t c = 0; c < channels; c++) {
        double mean = 0;

        for (int64_t i = c * pixels; i < (c + 1) * pixels; i++) {
            const double e = oct_tensor_get_f64(want, i) - oct_tensor_get_f64(got, i);

            mean += e / (double)pixels;
            sum.all += e * e;
        }
        sum.of_means += mean * mean;
    }
    return sum;
}

static output_error error_with(files *t, const oct_dataset *d, const char *correction)
{
    const oct_quant_override coarse = {.pattern = ".*", .weight_bits = 3};
    oct_graph *exact = t->f->g;
    oct_quantize_options o;
    oct_quantized *q = NULL;
    oct_tensor *want = NULL, *got = NULL;
    output_error e;

    oct_quantize_options_init(&o);
    o.overrides = &coarse;
    o.n_overrides = 1;
    o.tail = "off";
    o.bias_correction = correction;
    assert_ok(t->ctx, oct_quantize(exact, d, &o, &q));
    run_graph(t->f, NULL, &want);
    assert_ok(t->ctx, oct_graph_clone(oct_quantized_graph(q), &t->f->g));
    run_graph(t->f, NULL, &got);
    e = compare(want, got);
    oct_graph_free(t->f->g);
    t->f->g = exact;
    oct_tensor_unref(want);
    oct_tensor_unref(got);
    oct_quantized_free(q);
    return e;
}

/* What rounded weights do to the mean of a channel, its bias takes back; also by default. */
static void takes_back_the_shift_of_means(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y;
    oct_dataset *d;
    double none, fast, full, usual;
    oct_rng rng;

    oct_rng_init(&rng, 9);
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 32, 32});
    y = conv(f, &rng, x, &(conv_case){4, 8, 1, 1, 1, 0, 1});
    y = conv(f, &rng, emit(f, &oct_op_sigmoid, y, NULL), &(conv_case){8, 8, 1, 1, 1, 0, 1});
    output(f, y);
    d = items(t, x, 2);
    none = error_with(t, d, "none").of_means;
    fast = error_with(t, d, "fast").of_means;
    full = error_with(t, d, "full").of_means;
    usual = error_with(t, d, NULL).of_means;
    if (!(fast < none / 20 && full < none / 20 && usual == fast))
        fail_msg("errors of means: none %g, fast %g, full %g, usual %g", none, fast, full, usual);
    oct_dataset_close(d);
}

static void corrects_layer_by_layer(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y;
    oct_dataset *d;
    double none, fast, full;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    y = x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 12, 12});
    for (int i = 0; i < 4; i++) {
        y = conv(f, &rng, y, &(conv_case){i ? 8 : 4, 8, 3, 1, 1, 1, 1});
        y = emit(f, &oct_op_relu, y, NULL);
    }
    output(f, y);
    d = items(t, x, 2);
    none = error_with(t, d, "none").all;
    fast = error_with(t, d, "fast").all;
    full = error_with(t, d, "full").all;
    assert_true(fast < none);
    assert_true(full < fast);
    assert_true(full == error_with(t, d, "full").all);
    oct_dataset_close(d);
}

/* --- memory --- */

static char net_path[96], items_path[96]; /* for a callback without a user's pointer */

static oct_status quantize_all_ways(oct_ctx *ctx)
{
    oct_quantize_options o;
    oct_dataset *d = NULL;
    oct_graph *g = NULL;
    oct_quantized *q = NULL;
    oct_status st;

    oct_quantize_options_init(&o);
    o.tail = "off";
    o.bias_correction = "full";
    o.equalize = o.align_channels = 1;
    o.smooth_quant = 0.5;
    o.activation_ranges = o.channel_ranges = "minmax";
    o.weight_ranges = "max";
    oct_ctx_set_threads(ctx, 1);
    st = oct_onnx_load(ctx, net_path, &g);
    if (!st) st = open_dataset(ctx, items_path, NULL, false, &d);
    if (!st) st = oct_quantize(g, d, &o, &q);
    oct_quantized_free(q);
    oct_dataset_close(d);
    oct_graph_free(g);
    return st;
}

/* Whatever allocation fails: a status, and nothing left behind. What only makes a network faster
 * may go on without. */
static void fail_some_allocations(void)
{
    for (int n = 1;; n++) {
        failing f;
        oct_ctx *ctx = failing_ctx(&f);
        oct_status st;

        f.fail_at = n;
        st = quantize_all_ways(ctx);
        assert_true(st == OCT_OK || st == OCT_ERR_MEMORY);
        assert_int_equal(atomic_load(&ctx->mem_used), 0);
        oct_ctx_free(ctx);
        assert_int_equal(f.n_live, 0);
        if (f.n_asked < n) return;
    }
}

static void survives_want_of_memory(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x, *y;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 2, 4, 4});
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){2, 2, 1, 1, 1, 0, 1}), NULL);
    y = conv(f, &rng, y, &(conv_case){2, 2, 1, 1, 1, 0, 1});
    y = conv(f, &rng, y, &(conv_case){2, 2, 1, 1, 1, 0, 1});
    output(f, emit(f, &oct_op_mat_mul, y, weights(f, &rng, 2, (int64_t[]){4, 2})));
    oct_dataset_close(items(t, x, 1));
    (void)snprintf(net_path, sizeof(net_path), "%s", below(t, "net.onnx"));
    (void)snprintf(items_path, sizeof(items_path), "%s", below(t, "items"));
    assert_ok(t->ctx, oct_onnx_save(f->g, net_path, NULL));
    fail_some_allocations();
}

static void checks_settings(void **state)
{
    files *t = *state;
    oct_quantize_options o;
    oct_corrections done;

    oct_quantize_options_init(&o);
    o.model_type = "convolver";
    assert_fails(t->ctx, oct_correct_graph(t->f->g, NULL, &o, &done), OCT_ERR_ARG, "transformer");
    o.model_type = NULL;
    o.smooth_quant = 1.5;
    assert_fails(t->ctx, oct_correct_graph(t->f->g, NULL, &o, &done), OCT_ERR_ARG, "from 0 to 1");
    o.smooth_quant = 0;
    assert_ok(t->ctx, oct_correct_graph(t->f->g, NULL, &o, &done));
    assert_int_equal(done.equalized, -1);
    o.equalize = 1;
    assert_ok(t->ctx, oct_correct_graph(t->f->g, NULL, &o, &done));
    assert_int_equal(done.equalized, 0); /* nothing to do: its qmap can still be saved */
    assert_false(oct_corrections_any(&done));
}

/* --- sums over bins --- */

static void centre(files *t, void *user)
{
    (void)user;
    assert_ok(t->ctx, oct_centre_bins(t->f->g));
}

/* Distances 0 .. 7 times a half, with a bias or without, behind a Softmax over the bins. */
static void counts_bins_from_the_middle(void **state)
{
    const conv_case k = {8, 1, 1, 1, 1, 0, 1};
    files *t = *state;

    for (int has_bias = 0; has_bias < 2; has_bias++) {
        oct_value *p, *y;
        const float *w, *b;
        oct_rng rng;

        restart(t->f);
        oct_rng_init(&rng, 9);
        p = emit(t->f, &oct_op_softmax, picture(t->f, 1, 8, 4, 25), NULL);
        assert_ok(t->ctx, oct_node_set_int(p->producer, "axis", 1));
        y = conv(t->f, &rng, p, &k);
        if (!has_bias) assert_ok(t->ctx, oct_node_set_input(y->producer, 2, NULL));
        for (int i = 0; i < 8; i++)
            ((float *)y->producer->in[1]->data->data)[i] = .5f * (float)i;
        output(t->f, y);
        stays(t, centre, NULL);
        w = y->producer->in[1]->data->data;
        b = y->producer->in[2]->data->data;
        for (int i = 0; i < 8; i++)
            assert_true(w[i] == -w[7 - i]);
        assert_true(w[7] == 1.75f);
        if (!has_bias) assert_true(b[0] == 1.75f);
    }
}

/* Calibration sees 8 bins that hardly vary, but where an object is one of them may be 1. */
static void knows_the_range_of_distributions(void **state)
{
    const conv_case features = {3, 8, 3, 1, 1, 1, 1}, sum = {8, 1, 1, 1, 1, 0, 1};
    files *t = *state;
    oct_quantized *q = NULL;
    oct_quantize_options o;
    const oct_tensor *scale;
    const oct_node *quantize;
    oct_value *x, *y;
    oct_dataset *d;
    oct_rng rng;

    oct_rng_init(&rng, 9);
    x = picture(t->f, 1, 3, 8, 8);
    y = conv(t->f, &rng, x, &features);
    for (int64_t i = 0; i < oct_tensor_len(y->producer->in[1]->data); i++)
        ((float *)y->producer->in[1]->data->data)[i] *= 0.04f;
    y = emit(t->f, &oct_op_softmax, y, NULL);
    assert_ok(t->ctx, oct_node_set_int(y->producer, "axis", 1));
    y = conv(t->f, &rng, y, &sum);
    y->producer->name = "sum";
    output(t->f, y);
    d = items(t, x, 2);
    oct_quantize_options_init(&o);
    o.target = "openvino";
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    quantize = oct_graph_find_node(oct_quantized_graph(q), "sum")->in[0]->producer->in[0]->producer;
    assert_true(oct_node_is(quantize, &oct_op_quantize_linear));
    scale = oct_node_const(quantize, 1);
    assert_true(fabs(oct_tensor_get_f64(scale, 0) - 1.0 / 255) < 1e-8);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(knows_the_range_of_distributions, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(counts_bins_from_the_middle, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(equalizes_chains, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(leaves_other_neighbours_alone, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(aligns_channels, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(does_not_align_across_padding, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(smooths_a_transformer, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(smooths_beside_other_readers, setup_files, teardown_files),
        cmocka_unit_test(takes_what_is_missing),
        cmocka_unit_test(does_not_follow_outliers),
        cmocka_unit_test(counts_what_passes_the_activation),
        cmocka_unit_test(leaves_channels_that_disagree),
        cmocka_unit_test_setup_teardown(takes_back_the_shift_of_means, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(corrects_layer_by_layer, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(survives_want_of_memory, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(checks_settings, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
