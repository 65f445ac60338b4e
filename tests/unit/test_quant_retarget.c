/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that are quantized already, made for another target without pictures. */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

#include <math.h>

/* Two branches with SiLU and ReLU, a residual, pooling, Concat; returns the input. */
static oct_value *make_net(fixture *f)
{
    oct_value *x, *y, *part[2];
    oct_rng rng;

    oct_rng_init(&rng, 9);
    x = picture(f, 1, 8, 8, 8);
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){8, 16, 3, 1, 1, 1, 1}), NULL);
    part[0] = conv(f, &rng, y, &(conv_case){16, 16, 3, 1, 1, 1, 1});
    part[0] = emit(f, &oct_op_mul, part[0], emit(f, &oct_op_sigmoid, part[0], NULL));
    part[0] = emit(f, &oct_op_add, part[0], y);
    part[1] = conv(f, &rng, y, &(conv_case){16, 16, 1, 1, 1, 0, 1});
    part[1] = emit(f, &oct_op_relu, part[1], NULL);
    y = concat(f, part, 2, 1);
    y = conv(f, &rng, y, &(conv_case){32, 8, 1, 1, 1, 0, 1});
    output(f, emit(f, &oct_op_relu, y, NULL));
    return x;
}

/* fix NULL: the target's own. */
static oct_quantized *quantized_with(files *t, const oct_dataset *d, const char *target,
                                     const char *fix)
{
    oct_quantize_options o;
    oct_quantized *q = NULL;

    oct_quantize_options_init(&o);
    o.target = target;
    o.overflow_fix = fix;
    o.tail = "off";
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    return q;
}

static oct_quantized *quantized(files *t, const oct_dataset *d, const char *target)
{
    return quantized_with(t, d, target, "disable");
}

static oct_quantize_summary summary_of(const oct_quantized *q)
{
    oct_quantize_summary s = {.struct_size = sizeof(s)};

    oct_quantized_summary(q, &s);
    return s;
}

/* The fixture's graph becomes the quantized one. */
static void take(files *t, oct_quantized *q)
{
    oct_graph *g = NULL;

    assert_ok(t->ctx, oct_graph_clone(oct_quantized_graph(q), &g));
    oct_graph_free(t->f->g);
    t->f->g = g;
    oct_quantized_free(q);
}

/* A file of octet's for ONNX Runtime gives nearly the same answers for other targets, and the very
 * same for its own. */
static void keeps_answers(void **state)
{
    static const char *const targets[] = {"ort", "openvino", "tensorrt", "octet", "npu-pow2"};
    static const double most[] = {0, 1e-3, 1e-2, 1e-2, 2e-2};
    files *t = *state;
    oct_dataset *d = items(t, make_net(t->f), 2);

    take(t, quantized(t, d, "ort"));
    for (size_t i = 0; i < OCT_COUNT(targets); i++) {
        oct_quantized *q = quantized(t, NULL, targets[i]);
        const oct_quantize_summary s = summary_of(q);
        const double noise = job_noise(t, q);

        if (!(noise <= most[i])) fail_msg("target %s: noise %g", targets[i], noise);
        assert_int_equal(s.images, 0);
        assert_true(s.scales_kept >= 0 && s.layers_quantized > 0);
        if (i == 0) assert_true(s.scales_kept > 0 && s.scales_fitted == 0);
        if (i == 4) assert_true(s.scales_fitted > 0);
        oct_quantized_free(q);
    }
    oct_dataset_close(d);
}

/* What the file lacks is calibrated if there are pictures, and float if not. */
static void calibrates_what_is_missing(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, make_net(t->f), 2);
    oct_quantized *bare, *full;

    take(t, quantized(t, d, "octet")); /* no scale between a convolution and its SiLU */
    bare = quantized(t, NULL, "npu-pow2");
    full = quantized(t, d, "npu-pow2");
    assert_int_equal(summary_of(bare).scales_missing, summary_of(full).scales_missing);
    assert_true(summary_of(full).scales_missing > 0);
    assert_true(summary_of(full).layers_quantized >= summary_of(bare).layers_quantized);
    assert_true(job_noise(t, bare) < 0.02 && job_noise(t, full) < 0.02);
    oct_quantized_free(bare);
    oct_quantized_free(full);
    oct_dataset_close(d);
}

/* --- files of others --- */

static const float scales[] = {0.02f, 0.011f};

/* As NNCF writes them: unsigned activations with a zero point, codes of weights with a scale for
 * each channel, float biases. */
static void make_others(fixture *f, int32_t lowest)
{
    const float weight_scale[2] = {0.013f, 0.007f};
    const int32_t zero = 117, none[2] = {0, 0}, results = 3;
    int32_t code[2 * 4 * 1 * 1];
    oct_value *x = picture(f, 1, 4, 6, 6), *w, *y;

    for (int i = 0; i < 8; i++)
        code[i] = i * 31 % 255 - 127;
    code[5] = lowest;
    w = constant_int(f, OCT_DTYPE_I8, 4, (int64_t[]){2, 4, 1, 1}, code);
    y = qdq(f, x, OCT_DTYPE_U8, &scales[0], &zero, 1, 1);
    y = emit(f, &oct_op_conv, y, dequantize(f, w, weight_scale, none, 2, 0));
    output(f, qdq(f, y, OCT_DTYPE_U8, &scales[1], &results, 1, 1));
}

static void find_scale(const oct_graph *g, const char *kind, double low, double high, int zero)
{
    oct_scale_info s = {.struct_size = sizeof(s)};
    oct_scale_list *list = NULL;
    bool found = false;

    assert_ok(g->ctx, oct_graph_scales(g, NULL, &list));
    for (int32_t i = 0; oct_scale_list_at(list, i, &s); i++)
        found |= strcmp(s.kind, kind) == 0 && s.scale_min == low && s.scale_max == high &&
                 s.zero_min == zero;
    oct_scale_list_free(list);
    if (!found) fail_msg("no %s has the scales %g to %g and zero point %d", kind, low, high, zero);
}

static void keeps_scales_of_others(void **state)
{
    static const char *const targets[] = {"ort", "openvino", "octet"};
    files *t = *state;

    make_others(t->f, -128);
    for (size_t i = 0; i < OCT_COUNT(targets); i++) {
        oct_quantized *q = quantized(t, NULL, targets[i]);

        find_scale(oct_quantized_graph(q), "activation", (double)scales[0], (double)scales[0], 117);
        find_scale(oct_quantized_graph(q), "weight", (double)0.007f, (double)0.013f, 0);
        assert_int_equal(summary_of(q).scales_fitted, 0);
        oct_quantized_free(q);
    }
}

/* TensorRT's codes are symmetric: the farther end of the file's range counts. */
static void fits_what_cannot_be_held(void **state)
{
    files *t = *state;
    const double scale = (double)(scales[0] * (255 - 117) / 127.0f);
    oct_quantized *q;

    make_others(t->f, -127);
    q = quantized(t, NULL, "tensorrt");
    find_scale(oct_quantized_graph(q), "weight", (double)0.007f, (double)0.013f, 0);
    find_scale(oct_quantized_graph(q), "activation", (double)(float)scale, (double)(float)scale, 0);
    assert_true(summary_of(q).scales_fitted > 0);
    oct_quantized_free(q);
}

/* The first layer gets weights of 7 bits for CPUs whose sums saturate. */
static void leaves_sums_room(void **state)
{
    files *t = *state;
    oct_quantized *q;

    make_others(t->f, -127);
    q = quantized_with(t, NULL, "openvino", NULL);
    assert_int_equal(summary_of(q).scales_fitted, 1);
    oct_quantized_free(q);
}

/* --- what is refused --- */

static void needs_scales_or_pictures(void **state)
{
    files *t = *state;
    oct_quantize_options o;
    oct_quantized *q = NULL;

    oct_quantize_options_init(&o);
    (void)make_net(t->f);
    assert_int_equal(oct_quantize(t->f->g, NULL, &o, &q), OCT_ERR_ARG);
    assert_non_null(strstr(oct_ctx_error(t->ctx), "pictures to calibrate on are missing"));
}

static void moves_no_weights(void **state)
{
    files *t = *state;
    oct_quantize_options o;
    oct_quantized *q = NULL;

    make_others(t->f, 0);
    oct_quantize_options_init(&o);
    o.equalize = 1;
    assert_int_equal(oct_quantize(t->f->g, NULL, &o, &q), OCT_ERR_ARG);
    assert_non_null(strstr(oct_ctx_error(t->ctx), "need the float network"));
    o.equalize = 0;
    assert_ok(t->ctx, oct_quantize(t->f->g, NULL, &o, &q));
    assert_int_equal(oct_quantized_save_qmap(q, below(t, "qmap.json")), OCT_ERR_UNSUPPORTED);
    oct_quantized_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_answers, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(calibrates_what_is_missing, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(keeps_scales_of_others, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(fits_what_cannot_be_held, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(leaves_sums_room, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(needs_scales_or_pictures, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(moves_no_weights, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
