/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Analysing files of which the weights were moved between layers before they were quantized: they
 * are compared with what they were made from, and what the file says of that is not believed
 * blindly.
 */
#include "tests/unit/quant_job.h"

#include "base/base64.h"
#include "quant/correct/channel_factors.h"

enum { SIDE = 12, CHANNELS = 8 };

/* --- networks --- */

static void output(fixture *f, oct_value *v)
{
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
}

/* Makes the numbers of a layer's weight very different in size, by their channel. */
static void skew(const oct_value *y, int64_t inner)
{
    oct_tensor *w = y->producer->in[1]->data;

    for (int64_t i = 0; i < oct_tensor_len(w); i++)
        ((float *)w->data)[i] *= i / inner % 2 ? 10.0f : 0.1f;
}

static oct_value *pictures(fixture *f)
{
    return graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, SIDE, SIDE});
}

/* Convolutions with Relu between them: what equalizing is for. */
static oct_value *make_chain(fixture *f)
{
    oct_value *x = pictures(f), *y;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    y = conv(f, &rng, x, &(conv_case){3, CHANNELS, 3, 1, 1, 1, 1});
    skew(y, 27);
    y = emit(f, &oct_op_relu, y, NULL);
    y = conv(f, &rng, y, &(conv_case){CHANNELS, CHANNELS, 3, 1, 1, 1, 1});
    y = emit(f, &oct_op_relu, y, NULL);
    output(f, conv(f, &rng, y, &(conv_case){CHANNELS, 4, 3, 1, 1, 1, 1}));
    return x;
}

/* Convolutions with nothing between them and no padding: what aligning is for. */
static oct_value *make_pairs(fixture *f)
{
    oct_value *x = pictures(f), *y;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    y = conv(f, &rng, x, &(conv_case){3, CHANNELS, 3, 1, 1, 1, 1});
    skew(y, 27);
    for (int i = 0; i < CHANNELS; i++)
        ((float *)y->producer->in[2]->data->data)[i] = (float)(i * 20 - 70);
    y = conv(f, &rng, y, &(conv_case){CHANNELS, CHANNELS, 3, 1, 1, 0, 1});
    output(f, conv(f, &rng, y, &(conv_case){CHANNELS, 4, 1, 1, 1, 0, 1}));
    return x;
}

static oct_value *product(fixture *f, oct_rng *rng, oct_value *x, int64_t n)
{
    const int64_t in = x->type.dim[x->type.rank - 1];
    oct_value *y = emit(f, &oct_op_mat_mul, x, weights(f, rng, 2, (int64_t[]){in, n}));

    skew(y, 1); /* columns: the channels of what the next product reads */
    return emit(f, &oct_op_add, y, weights(f, rng, 1, &n));
}

/* Products: what is in front of the first gets a Mul, the others' division goes into weights. */
static oct_value *make_products(fixture *f)
{
    oct_value *x = pictures(f), *y;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    y = emit(f, &oct_op_relu, product(f, &rng, x, 2 * CHANNELS), NULL);
    output(f, product(f, &rng, product(f, &rng, y, CHANNELS), 4));
    return x;
}

/* --- errors --- */

typedef struct worst {
    double noise, weights; /* of any layer */
} worst;

static worst analyzed(files *t, const oct_graph *q, const oct_dataset *d)
{
    oct_analyzed_layer l = {.struct_size = sizeof(l)};
    oct_analysis *a = NULL;
    worst w = {0, 0};

    assert_ok(t->ctx, oct_analyze(t->f->g, q, d, NULL, &a));
    for (int32_t i = 0; oct_analysis_layer(a, i, &l); i++) {
        w.noise = fmax(w.noise, fmax(l.alone.noise, l.all.noise));
        w.weights = fmax(w.weights, l.weight_noise);
    }
    oct_analysis_free(a);
    return w;
}

static void options_of(oct_quantize_options *o)
{
    oct_quantize_options_init(o);
    o->tail = "off";
}

/* Layers have errors of the order that they have without the correction of these options. */
static void assert_is_no_error(files *t, const oct_dataset *d, const oct_quantize_options *with)
{
    oct_quantize_options plain;
    worst w[2];

    options_of(&plain);
    for (int k = 0; k < 2; k++) {
        oct_quantized *q = NULL;

        assert_ok(t->ctx, oct_quantize(t->f->g, d, k ? with : &plain, &q));
        w[k] = analyzed(t, oct_quantized_graph(q), d);
        oct_quantized_free(q);
    }
    assert_true(w[0].noise > 0 && w[0].weights > 0);
    if (!(w[1].noise < 10 * w[0].noise && w[1].weights < 10 * w[0].weights))
        fail_msg("noise %g and %g, of weights %g and %g", w[0].noise, w[1].noise, w[0].weights,
                 w[1].weights);
}

static void equalizing_is_no_error(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, make_chain(t->f), 2);
    oct_quantize_options o;

    options_of(&o);
    o.equalize = 1;
    assert_is_no_error(t, d, &o);
    oct_dataset_close(d);
}

static void aligning_is_no_error(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, make_pairs(t->f), 2);
    oct_quantize_options o;

    options_of(&o);
    o.align_channels = 1;
    assert_is_no_error(t, d, &o);
    o.equalize = 1; /* both move the same weights */
    assert_is_no_error(t, d, &o);
    oct_dataset_close(d);
}

static void smoothing_is_no_error(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, make_products(t->f), 2);
    oct_quantize_options o;

    options_of(&o);
    o.smooth_quant = 0.5;
    assert_is_no_error(t, d, &o);
    o.smooth_quant = 0;
    o.model_type = "transformer";
    assert_is_no_error(t, d, &o);
    oct_dataset_close(d);
}

/* --- what files say --- */

static void count_warnings(void *user, oct_log_level level, const char *msg)
{
    if (level == OCT_LOG_WARN && strstr(msg, "moved weights between layers")) ++*(int *)user;
}

/* Analyses q with this text under the key; returns how often there was a warning. */
static int warnings_with(files *t, const oct_graph *q, const oct_dataset *d, const char *key,
                         const char *text)
{
    oct_graph *g = NULL;
    int n = 0;

    assert_ok(t->ctx, oct_graph_clone(q, &g));
    assert_ok(t->ctx, oct_graph_set_metadata(g, key, text));
    oct_ctx_set_log(t->ctx, count_warnings, &n);
    (void)analyzed(t, g, d);
    oct_ctx_set_log(t->ctx, NULL, NULL);
    oct_graph_free(g);
    return n;
}

/* {"name":"base64 of n times x"} */
static const char *entry(files *t, const char *name, int n, float x)
{
    float v[64];
    oct_str s;
    const char *text;

    for (int i = 0; i < n; i++)
        v[i] = x;
    oct_str_init(&s, t->ctx);
    oct_str_printf(&s, "{\"%s\":\"", name);
    oct_base64_put(&s, v, (size_t)n * sizeof(float));
    oct_str_puts(&s, "\"}");
    assert_false(s.failed);
    text = oct_arena_strdup(t->f->g->arena, s.s);
    oct_str_fini(&s);
    return text;
}

/* Texts that are nothing: the analysis goes on without them, and says so. */
static void assert_bad_is_told(files *t, const oct_graph *q, const oct_dataset *d, const char *key,
                               const char *name, int n)
{
    const char *const bad[] = {
        NULL,
        "",
        "[]",
        "{",
        "{\"x\":1}",
        "{\"x\":[]}",
        "{\"x\":\"\"}",
        "{\"x\":\"AAA\"}",
        "{\"x\":\"AAAA\"}",
        "{\"x\":\"????\"}",
        "{\"\":\"AACAPw==\"}",
        "{\"x\":\"AACAPw==\",\"x\":\"AACAPw==\"}",
        entry(t, name, n - 1, 1),
        entry(t, name, n + 1, 1),
        entry(t, name, n, 0),
        entry(t, name, n, -1),
        entry(t, name, n, 1e9f),
        entry(t, name, n, NAN),
        entry(t, name, n, INFINITY),
        entry(t, "no such value", n, 1),
        entry(t, t->f->g->outputs[0]->name, n, 1),
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (warnings_with(t, q, d, key, bad[i]) != 1) fail_msg("%s: no warning", bad[i]);
}

/* A text that is longer than any that octet writes is not read. */
static void assert_long_is_told(files *t, const oct_graph *q, const oct_dataset *d, const char *key)
{
    const size_t n = OCT_MOVED_MOST_BYTES + 1;
    char *text = malloc(n + 1);

    assert_non_null(text);
    memset(text, ' ', n);
    text[0] = '{';
    text[n - 1] = '}';
    text[n] = 0;
    assert_int_equal(warnings_with(t, q, d, key, text), 1);
    text[n - 2] = '}';
    text[n - 1] = 0;
    assert_int_equal(warnings_with(t, q, d, key, text), 0);
    free(text);
}

static void what_smoothing_says_is_checked(void **state)
{
    files *t = *state;
    oct_value *x = make_products(t->f);
    oct_dataset *d = items(t, x, 2);
    oct_quantize_options o;
    oct_quantized *q = NULL;
    const oct_graph *g;

    options_of(&o);
    o.smooth_quant = 0.5;
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    g = oct_quantized_graph(q);
    assert_non_null(oct_graph_metadata(g, OCT_MOVED_SMOOTH));
    assert_null(oct_graph_metadata(g, OCT_MOVED_ALIGN));
    assert_bad_is_told(t, g, d, OCT_MOVED_SMOOTH, x->name, SIDE);
    assert_long_is_told(t, g, d, OCT_MOVED_SMOOTH);
    assert_int_equal(warnings_with(t, g, d, OCT_MOVED_SMOOTH, entry(t, x->name, SIDE, 1)), 0);
    oct_quantized_free(q);

    /* It is of this file, not of one before. */
    assert_ok(t->ctx, oct_graph_set_metadata(t->f->g, OCT_MOVED_SMOOTH, "{}"));
    options_of(&o);
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    assert_null(oct_graph_metadata(oct_quantized_graph(q), OCT_MOVED_SMOOTH));
    oct_quantized_free(q);
    oct_dataset_close(d);
}

static void what_aligning_says_is_checked(void **state)
{
    files *t = *state;
    oct_value *x = make_pairs(t->f);
    oct_dataset *d = items(t, x, 2);
    const char *name = x->users[0]->out[0]->name;
    oct_quantize_options o;
    oct_quantized *q = NULL;

    options_of(&o);
    o.align_channels = 1;
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    assert_non_null(oct_graph_metadata(oct_quantized_graph(q), OCT_MOVED_ALIGN));
    assert_bad_is_told(t, oct_quantized_graph(q), d, OCT_MOVED_ALIGN, name, 2 * CHANNELS);
    assert_int_equal(warnings_with(t, oct_quantized_graph(q), d, OCT_MOVED_ALIGN,
                                   entry(t, name, 2 * CHANNELS, 1)),
                     0);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* What would make a file much larger is left out. */
static void too_much_is_not_written(void **state)
{
    enum { MANY = OCT_MOVED_MOST_BYTES / 16 * 3 };
    files *t = *state;
    double *x = malloc((MANY + 16) * sizeof(*x));
    oct_channel_factors m = {.value = "x", .x = {x}, .channels = MANY + 16};

    assert_non_null(x);
    for (int i = 0; i < MANY + 16; i++)
        x[i] = i;
    assert_ok(t->ctx, oct_channel_factors_write(t->f->g, OCT_MOVED_SMOOTH, &m, 1));
    assert_null(oct_graph_metadata(t->f->g, OCT_MOVED_SMOOTH));
    m.value = "\xff\xfe"; /* names of files are any bytes */
    m.channels = 4;
    assert_ok(t->ctx, oct_channel_factors_write(t->f->g, OCT_MOVED_SMOOTH, &m, 1));
    assert_null(oct_graph_metadata(t->f->g, OCT_MOVED_SMOOTH));
    m.value = "x";
    m.channels = MANY - 16;
    assert_ok(t->ctx, oct_channel_factors_write(t->f->g, OCT_MOVED_SMOOTH, &m, 1));
    assert_in_range(strlen(oct_graph_metadata(t->f->g, OCT_MOVED_SMOOTH)), OCT_MOVED_MOST_BYTES / 2,
                    OCT_MOVED_MOST_BYTES);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equalizing_is_no_error, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(aligning_is_no_error, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(smoothing_is_no_error, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(what_smoothing_says_is_checked, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(what_aligning_says_is_checked, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(too_much_is_not_written, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
