/* SPDX-License-Identifier: Apache-2.0 */
/* Analysing small networks: what is measured, what is named, what is refused. */
#include "tests/unit/quant_net.h"

#include "tests/unit/data_files.h"

#include "op/qparams.h"

enum { SIDE = 12, CHANNELS = 8, N_IMAGES = 3 };

/* --- networks and data --- */

static void give_name(oct_value *v, const char *name)
{
    char output[64];

    (void)snprintf(output, sizeof(output), "%s_out", name);
    v->producer->name = oct_arena_strdup(v->graph->arena, name);
    v->name = oct_arena_strdup(v->graph->arena, output);
}

static oct_value *layer(fixture *f, oct_rng *rng, const char *name, oct_value *x, int64_t in,
                        int64_t out)
{
    const conv_case c = {in, out, 3, 1, 1, 1, 1};
    oct_value *v = conv(f, rng, x, &c);

    give_name(v, name);
    v = emit(f, &oct_op_relu, v, NULL);
    return v;
}

/* A block as detectors have them: Split, a layer with a residual, Concat; two outputs. */
static void make_network(fixture *f)
{
    const int64_t dims[] = {1, 3, SIDE, SIDE};
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, dims), *a, *b, *c, *in[3];
    const conv_case last = {CHANNELS, 4, 1, 1, 1, 0, 1};
    oct_rng rng;
    oct_node *split;

    oct_rng_init(&rng, 5);
    a = layer(f, &rng, "/a/Conv", x, 3, CHANNELS);
    split = oct_emit_node(&f->b, &oct_op_split,
                          (oct_value *[]){a, oct_ints(&f->b, (int64_t[]){4, 4}, 2)}, 2, 2);
    assert_non_null(split);
    split->name = "/split";
    assert_ok(f->ctx, oct_node_set_int(split, "axis", 1));
    assert_ok(f->ctx, oct_node_infer(split));
    b = layer(f, &rng, "/b/Conv", split->out[1], 4, 4);
    b = emit(f, &oct_op_add, b, split->out[1]);
    in[0] = split->out[0];
    in[1] = b;
    c = concat(f, in, 2, 1);
    c->producer->name = "/concat";
    c = layer(f, &rng, "/c/Conv", c, CHANNELS, CHANNELS);
    c = conv(f, &rng, c, &last);
    give_name(c, "/head/Conv");
    output(f, c);
    a = conv(f, &rng, a, &last);
    give_name(a, "/side/Conv");
    output(f, a);
}

static oct_dataset *make_data(files *t)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){1, 3, SIDE, SIDE});
    oct_dataset *d = NULL;
    oct_rng rng;

    oct_rng_init(&rng, 9);
    (void)put_folder(t, "data");
    for (int k = 0; k < N_IMAGES; k++) {
        oct_tensor *x = NULL;
        char name[32];

        assert_ok(t->ctx, oct_tensor_make(t->ctx, &type, &x));
        for (int64_t i = 0; i < oct_type_len(&type); i++)
            ((float *)x->data)[i] = (float)(oct_rng_f64(&rng) * 4 - 1);
        (void)snprintf(name, sizeof(name), "data/%d.npy", k);
        assert_ok(t->ctx, oct_tensor_save_npy(t->ctx, x, below(t, name)));
        oct_tensor_unref(x);
    }
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "data"), NULL, false, &d));
    return d;
}

static oct_quantized *quantized(files *t, const oct_dataset *d, const char *target,
                                const oct_quant_override *o, const char *ignored)
{
    oct_quantize_options q;
    oct_quantized *out = NULL;

    oct_quantize_options_init(&q);
    q.target = target;
    q.tail = "off";
    q.overrides = o;
    q.n_overrides = o != NULL;
    q.ignored.names = &ignored;
    q.ignored.n_names = ignored != NULL;
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &q, &out));
    return out;
}

static oct_analysis *analyzed(files *t, const oct_graph *q, const oct_dataset *d, bool plain)
{
    oct_analyze_options o;
    oct_analysis *a = NULL;

    oct_analyze_options_init(&o);
    o.plain_loop = plain;
    assert_ok(t->ctx, oct_analyze(t->f->g, q, d, &o, &a));
    return a;
}

static oct_analyzed_layer layer_named(const oct_analysis *a, const char *name)
{
    oct_analyzed_layer l = {.struct_size = sizeof(l)};

    for (int32_t i = 0; oct_analysis_layer(a, i, &l); i++)
        if (strcmp(l.name, name) == 0) return l;
    fail_msg("there is no layer '%s'", name);
    return l;
}

/* --- layerwise --- */

/* Errors are differences of f32 sums, which fused loops add up in another order. */
static void assert_close(const char *layer, double got, double want)
{
    if (!(fabs(got - want) <= 1e-5 * fabs(want) + 1e-15))
        fail_msg("%s: %.12g, the plain loop has %.12g", layer, got, want);
}

static void assert_same_errors(const oct_analysis *a, const oct_analysis *b)
{
    oct_analyzed_layer x = {.struct_size = sizeof(x)}, y = {.struct_size = sizeof(y)};
    int32_t n = 0, n_wrong = 0;

    for (; oct_analysis_layer(a, n, &x); n++) {
        assert_true(oct_analysis_layer(b, n, &y));
        assert_string_equal(x.name, y.name);
        assert_close(x.name, x.alone.noise, y.alone.noise);
        assert_close(x.name, x.alone.cosine, y.alone.cosine);
        assert_close(x.name, x.alone.mse, y.alone.mse);
        assert_close(x.name, x.alone.kl, y.alone.kl);
        n_wrong += x.alone.noise > 0;
    }
    assert_true(n >= 5 && n_wrong >= 5);
}

static void sharing_work_changes_nothing(void **state)
{
    static const char *const targets[] = {"octet", "openvino", "tensorrt", "npu-pow2"};
    files *t = *state;
    oct_dataset *d = make_data(t);

    make_network(t->f);
    for (size_t i = 0; i < OCT_COUNT(targets); i++) {
        oct_quantized *q = quantized(t, d, targets[i], NULL, NULL);
        oct_analysis *a = analyzed(t, oct_quantized_graph(q), d, false);
        oct_analysis *b = analyzed(t, oct_quantized_graph(q), d, true);

        assert_int_equal(oct_analysis_images(a), N_IMAGES);
        assert_same_errors(a, b);
        oct_analysis_free(a);
        oct_analysis_free(b);
        oct_quantized_free(q);
    }
    oct_dataset_close(d);
}

static void any_number_of_threads_gives_the_same(void **state)
{
    files *t = *state;
    oct_dataset *d = make_data(t);
    oct_quantized *q;
    oct_analysis *a, *b;
    oct_analyzed_layer x = {.struct_size = sizeof(x)}, y = {.struct_size = sizeof(y)};

    make_network(t->f);
    q = quantized(t, d, "octet", NULL, NULL);
    oct_ctx_set_threads(t->ctx, 1);
    a = analyzed(t, oct_quantized_graph(q), d, false);
    oct_ctx_set_threads(t->ctx, 3);
    b = analyzed(t, oct_quantized_graph(q), d, false);
    for (int32_t i = 0; oct_analysis_layer(a, i, &x); i++) {
        assert_true(oct_analysis_layer(b, i, &y));
        assert_true(x.alone.noise == y.alone.noise && x.alone.kl == y.alone.kl);
    }
    oct_analysis_free(a);
    oct_analysis_free(b);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* --- what is named --- */

static void the_bad_layer_comes_first(void **state)
{
    static const oct_quant_override bad = {.name = "/b/Conv", .weight_bits = 2};
    files *t = *state;
    oct_dataset *d = make_data(t);
    oct_advice advice = {.struct_size = sizeof(advice)};
    oct_analyzed_layer l = {.struct_size = sizeof(l)}, b;
    oct_quantized *q;
    oct_analysis *a;

    make_network(t->f);
    q = quantized(t, d, "octet", &bad, NULL);
    a = analyzed(t, oct_quantized_graph(q), d, false);
    b = layer_named(a, "/b/Conv");
    assert_null(b.reason);
    assert_true(b.weight_bits > 0 && b.weight_bits < 8);
    assert_int_equal(b.params, 4 * 4 * 9);
    for (int32_t i = 0; oct_analysis_layer(a, i, &l); i++)
        assert_true(l.alone.noise <= b.alone.noise && l.weight_noise <= b.weight_noise);
    assert_true(oct_analysis_advice(a, 0, &advice));
    assert_string_equal(advice.layer, "/b/Conv");
    assert_string_equal(advice.option, "--ignore-name /b/Conv");
    assert_true(advice.gain > 0.5 && advice.gain <= 1);
    oct_analysis_free(a);
    oct_quantized_free(q);

    /* Followed: that layer is float, and there is little left to complain about. */
    q = quantized(t, d, "octet", &bad, "/b/Conv");
    a = analyzed(t, oct_quantized_graph(q), d, false);
    assert_non_null(layer_named(a, "/b/Conv").reason);
    for (int32_t i = 0; oct_analysis_advice(a, i, &advice); i++)
        if (advice.layer) assert_string_not_equal(advice.layer, "/b/Conv");
    oct_analysis_free(a);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

static void what_stayed_float_has_no_error(void **state)
{
    files *t = *state;
    oct_dataset *d = make_data(t);
    oct_analyzed_layer l = {.struct_size = sizeof(l)};
    oct_quantize_options o;
    const char *side = "/side/Conv", *name = NULL;
    oct_quantized *q = NULL;
    oct_analysis *a;
    oct_error e;
    int n = 0;

    make_network(t->f);
    oct_quantize_options_init(&o);
    o.tail = "off";
    o.only.names = &side;
    o.only.n_names = 1;
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    a = analyzed(t, oct_quantized_graph(q), d, false);
    for (int32_t i = 0; oct_analysis_layer(a, i, &l); i++) {
        const bool is_side = strcmp(l.name, side) == 0;

        assert_true((l.weight_bits > 0) == is_side && (l.weight_noise > 0) == is_side);
        if (is_side)
            assert_true(l.alone.noise > 0 && !l.reason);
        else if (l.params > 0)
            assert_true(l.alone.noise < 0 && l.reason); /* nothing of it is quantized */
        n += l.params > 0;
    }
    assert_int_equal(n, 5);
    assert_true(oct_analysis_output(a, 1, &name, &e) && e.noise > 0);
    oct_analysis_free(a);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* Split and Concat move codes; the layer after them reads integers, not floats. */
static void layers_after_split_and_concat_read_codes(void **state)
{
    files *t = *state;
    oct_dataset *d = make_data(t);
    oct_quantized *q;
    oct_analysis *a;

    make_network(t->f);
    q = quantized(t, d, "octet", NULL, NULL);
    a = analyzed(t, oct_quantized_graph(q), d, false);
    assert_int_equal(layer_named(a, "/a/Conv").input_bits, 8);
    assert_int_equal(layer_named(a, "/b/Conv").input_bits, 8);
    assert_int_equal(layer_named(a, "/c/Conv").input_bits, 8);
    oct_analysis_free(a);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* --- statistics --- */

/* x [1,4] -> Relu -> y, or with codes of 8 bits in front of it. */
/* The number of pictures is open, and a shape is computed from it upstream of a layer. */
static void open_batches_are_matched(void **state)
{
    const int64_t dims[] = {-1, 3, SIDE, SIDE};
    files *t = *state;
    fixture *f = t->f;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, dims), *shape;
    oct_dataset *d = make_data(t);
    oct_quantized *q;
    oct_analysis *a;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    shape = emit(f, &oct_op_shape, x, NULL);
    shape = emit(f, &oct_op_mul, shape, oct_ints(&f->b, (int64_t[]){1, 1, 1, 1}, 4));
    x = emit(f, &oct_op_sin, x, NULL); /* what is expanded is not where the shape is from */
    x = layer(f, &rng, "/a/Conv", emit(f, &oct_op_expand, x, shape), 3, CHANNELS);
    output(f, layer(f, &rng, "/b/Conv", x, CHANNELS, 4));
    q = quantized(t, d, "openvino", NULL, NULL);
    a = analyzed(t, oct_quantized_graph(q), d, false);
    assert_true(layer_named(a, "/a/Conv").alone.noise > 0);
    oct_analysis_free(a);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

static void make_relu(fixture *f, bool is_quantized)
{
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){1, 4}), *y;
    const int32_t zero = 0;
    const float half = 0.5f;

    if (is_quantized) x = qdq(f, x, OCT_DTYPE_I8, &half, &zero, 1, 1);
    y = emit(f, &oct_op_relu, x, NULL);
    give_name(y, "relu");
    output(f, y);
}

static void numbers_at_a_point(void **state)
{
    files *t = *state, other = *t;
    const float x[] = {0, 0.26f, 64, 100};
    const double signal = 0.26f * 0.26f + 64 * 64 + 100 * 100;
    oct_analyzed_point p = {.struct_size = sizeof(p)};
    oct_analyze_options o;
    oct_tensor *data = NULL;
    oct_dataset *d = NULL;
    oct_analysis *a = NULL;
    int64_t total = 0;
    void *f = NULL;

    assert_int_equal(setup(&f), 0);
    other.f = f;
    make_relu(t->f, false);
    make_relu(other.f, true);
    assert_ok(t->ctx, oct_tensor_new(t->ctx, OCT_DTYPE_F32, 2, (int64_t[]){1, 4}, &data));
    memcpy(data->data, x, sizeof(x));
    (void)put_folder(t, "data");
    assert_ok(t->ctx, oct_tensor_save_npy(t->ctx, data, below(t, "data/a.npy")));
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "data"), NULL, false, &d));
    oct_analyze_options_init(&o);
    assert_ok(t->ctx, oct_analyze(t->f->g, other.f->g, d, &o, &a));
    assert_true(oct_analysis_point(a, 0, &p));
    assert_string_equal(p.value, "x");
    assert_string_equal(p.layer, "");
    assert_string_equal(p.type, "int8");
    assert_true(p.min == 0 && p.max == 100 && p.low == -64 && p.high == 63.5 && p.scale == 0.5);
    assert_true(p.clipped == 0.5 && p.levels == 256 && p.used == 3);
    assert_true(fabs(p.noise * signal - (0.24 * 0.24 + 0.5 * 0.5 + 36.5 * 36.5)) < 1e-3);
    for (int32_t i = 0; i < p.n_bins; i++)
        total += p.histogram[i];
    assert_int_equal(total, 4);
    assert_true(p.histogram_low <= 0 && p.histogram_high > 100);
    assert_false(oct_analysis_point(a, 1, &p));
    oct_analysis_free(a);
    oct_dataset_close(d);
    oct_tensor_unref(data);
    assert_int_equal(teardown(&f), 0);
}

/* --- what is refused --- */

static void other_networks_are_refused(void **state)
{
    files *t = *state;
    oct_dataset *d = make_data(t);
    oct_analysis *a = NULL;
    fixture *other;
    void *f = NULL;

    make_network(t->f);
    assert_int_equal(setup(&f), 0);
    other = f;
    make_relu(other, true);
    assert_fails(t->ctx, oct_analyze(t->f->g, other->g, d, NULL, &a), OCT_ERR_SHAPE, "input 'x'");
    assert_int_equal(teardown(&f), 0);

    assert_int_equal(setup(&f), 0);
    other = f;
    make_network(other);
    for (oct_node *n = other->g->first; n; n = n->next) /* the same, with other names */
        n->out[0]->name = oct_arena_printf(other->g->arena, "v%d", n->id);
    output(other, qdq_u8(other, other->g->outputs[0], 1));
    assert_fails(t->ctx, oct_analyze(t->f->g, other->g, d, NULL, &a), OCT_ERR_ARG,
                 "do not belong together");
    assert_null(a);
    assert_int_equal(teardown(&f), 0);
    oct_dataset_close(d);
}

/* The float network comes first, and the second is a quantized one. */
static void the_wrong_order_is_told(void **state)
{
    files *t = *state;
    oct_dataset *d = make_data(t);
    oct_analysis *a = NULL;
    oct_quantized *q;
    const oct_graph *g;

    make_network(t->f);
    q = quantized(t, d, "octet", NULL, NULL);
    g = oct_quantized_graph(q);
    assert_fails(t->ctx, oct_analyze(g, t->f->g, d, NULL, &a), OCT_ERR_ARG, "did you swap them?");
    assert_fails(t->ctx, oct_analyze(t->f->g, t->f->g, d, NULL, &a), OCT_ERR_ARG,
                 "nothing in the second network is quantized");
    assert_fails(t->ctx, oct_analyze(g, g, d, NULL, &a), OCT_ERR_ARG,
                 "both networks are quantized");
    assert_null(a);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

static void broken_scales_are_refused(void **state)
{
    static const float bad[] = {NAN, INFINITY, 0};
    files *t = *state;
    oct_dataset *d = make_data(t);
    oct_quantized *q;

    make_network(t->f);
    q = quantized(t, d, "octet", NULL, NULL);
    for (size_t i = 0; i < OCT_COUNT(bad); i++) {
        oct_graph *g = NULL;
        oct_analysis *a = NULL;
        oct_node *n;

        assert_ok(t->ctx, oct_graph_clone(oct_quantized_graph(q), &g));
        for (n = g->first; n && !oct_node_is_quantize(n); n = n->next) {
        }
        assert_non_null(n);
        *(float *)oct_tensor_mutable(n->in[1]->data) = bad[i];
        assert_true(oct_analyze(t->f->g, g, d, NULL, &a) != OCT_OK);
        assert_non_null(strstr(oct_ctx_error(t->ctx), n->name));
        assert_null(a);
        oct_graph_free(g);
    }
    oct_quantized_free(q);
    oct_dataset_close(d);
}

static void pictures_are_needed(void **state)
{
    files *t = *state;
    oct_dataset *d = make_data(t);
    oct_analyze_options o;
    oct_analysis *a = NULL;
    oct_quantized *q;

    make_network(t->f);
    q = quantized(t, d, "octet", NULL, NULL);
    oct_analyze_options_init(&o);
    o.images = 0;
    assert_fails(t->ctx, oct_analyze(t->f->g, oct_quantized_graph(q), d, &o, &a), OCT_ERR_ARG,
                 "at least one");
    o.images = 1;
    assert_ok(t->ctx, oct_analyze(t->f->g, oct_quantized_graph(q), d, &o, &a));
    assert_int_equal(oct_analysis_images(a), 1);
    oct_analysis_free(a);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* One allocation fails, wherever it is: an error, and nothing is left behind. */
static void want_of_memory_is_an_error(void **state)
{
    files *t = *state;
    oct_status st = OCT_ERR_MEMORY;

    oct_dataset_close(make_data(t));
    for (int n = 1; st; n += 1 + n / 64) {
        failing f;
        fixture own = {.ctx = failing_ctx(&f)};
        files with = {.f = &own, .ctx = own.ctx};
        oct_dataset *d = NULL;
        oct_quantized *q;
        oct_analysis *a = NULL;

        oct_ctx_set_threads(own.ctx, 1);
        assert_ok(own.ctx, oct_graph_new(own.ctx, "test", &own.g));
        own.b.g = own.g;
        make_network(&own);
        assert_ok(own.ctx, open_dataset(own.ctx, below(t, "data"), NULL, false, &d));
        q = quantized(&with, d, "octet", NULL, NULL);
        f.fail_at = f.n_asked + n;
        st = oct_analyze(own.g, oct_quantized_graph(q), d, NULL, &a);
        assert_true(st == OCT_ERR_MEMORY || st == OCT_OK);
        oct_analysis_free(a);
        oct_quantized_free(q);
        oct_dataset_close(d);
        oct_graph_free(own.g);
        assert_int_equal(atomic_load(&own.ctx->mem_used), 0);
        oct_ctx_free(own.ctx);
        assert_int_equal(f.n_live, 0);
        if (!st && f.n_asked >= f.fail_at) st = OCT_ERR_MEMORY; /* it could do without */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sharing_work_changes_nothing, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(any_number_of_threads_gives_the_same, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(the_bad_layer_comes_first, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(layers_after_split_and_concat_read_codes, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(what_stayed_float_has_no_error, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(open_batches_are_matched, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(numbers_at_a_point, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(other_networks_are_refused, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(the_wrong_order_is_told, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(broken_scales_are_refused, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(pictures_are_needed, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(want_of_memory_is_an_error, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
