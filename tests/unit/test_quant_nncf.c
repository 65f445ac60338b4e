/* SPDX-License-Identifier: Apache-2.0 */
/* NNCF's own reference files: fq_params.json and the scales of its ONNX models. */
#include "tests/test.h"

#include <jansson.h>

#include "quant/nncf.h"

static const char *shared;

static json_t *load(const char *name)
{
    char path[512];
    json_error_t error;
    json_t *j;

    snprintf(path, sizeof(path), "%s/data/conformance/nncf/%s", shared, name);
    j = json_load_file(path, 0, &error);
    if (!j) fail_msg("%s: %s", path, error.text);
    return j;
}

/* Number i of a list nested to any depth with one number in each part, or the number itself. */
static double number(json_t *j, size_t i)
{
    if (json_is_array(j) && json_array_size(j) > 1) j = json_array_get(j, i);
    while (json_is_array(j))
        j = json_array_get(j, 0);
    assert_true(json_is_number(j));
    return json_number_value(j);
}

/* Smallest and largest of the 120 numbers NNCF's test draws (NumPy's default generator, seed 0,
 * uniform in 0..1, shape 2x3x4x5): of all, and of either channel. */
static const float all_min = 0.00273850025f, all_max = 0.997209907f;
static const float channel_min[] = {0.00273850025f, 0.0147063052f};
static const float channel_max[] = {0.997209907f, 0.995096505f};

static void fq_params_are_equal(void **state)
{
    fixture *f = *state;
    json_t *all = load("cross_fw/test_templates/fq_params/fq_params.json"), *want;
    const char *key;
    int n = 0;

    json_object_foreach(all, key, want)
    {
        const bool per_channel = strstr(key, "per_ch_True") != NULL;
        const oct_nncf_config c = {
            .bits = 8,
            .is_symmetric = strstr(key, "_symmetric_") != NULL,
            .is_signed = strstr(key, "sign_True") != NULL,
            .is_narrow = strstr(key, "narrow_range_True") != NULL,
            .is_half_range = strstr(key, "hf_range_True") != NULL,
        };
        const int64_t n_channels = per_channel ? 2 : 1;
        float low[2], high[2];
        int32_t levels;

        assert_ok(f->ctx, oct_nncf_range(f->ctx, &c, per_channel ? channel_min : &all_min,
                                         per_channel ? channel_max : &all_max, n_channels, low,
                                         high, &levels));
        assert_int_equal(levels, json_integer_value(json_object_get(want, "levels")));
        for (size_t i = 0; i < (size_t)n_channels; i++) {
            assert_true(fabs((double)low[i] - number(json_object_get(want, "input_low"), i)) <
                        1e-5);
            assert_true(fabs((double)high[i] - number(json_object_get(want, "input_high"), i)) <
                        1e-5);
        }
        n++;
    }
    assert_int_equal(n, 18);
    json_decref(all);
}

static json_t *field(json_t *j, const char *quantizer, const char *name)
{
    json_t *v = json_object_get(json_object_get(j, quantizer), name);

    assert_non_null(v);
    return v;
}

/* The same network symmetric (performance) and asymmetric (mixed): the symmetric scale tells the
 * larger end, the asymmetric range tells the end that was not moved. */
static void agree(fixture *f, const char *model, const char *quantizer, size_t n)
{
    char name[256];
    json_t *mixed, *performance;

    snprintf(name, sizeof(name), "onnx/data/reference_scales/%s_mixed.json", model);
    mixed = load(name);
    snprintf(name, sizeof(name), "onnx/data/reference_scales/%s_performance.json", model);
    performance = load(name);
    for (size_t i = 0; i < n; i++) {
        const oct_nncf_config sym = {.bits = 8, .is_symmetric = true}, asym = {.bits = 8};
        const double step = number(field(mixed, quantizer, "scale"), i);
        const double zero = number(field(mixed, quantizer, "zero_point"), i);
        const double far = number(field(performance, quantizer, "scale"), i) * 127;
        const double end[2] = {(-128 - zero) * step, (127 - zero) * step};
        float min, max, low, high, scale, mark = (float)far;
        int32_t levels, z;

        /* Which end is the larger distance from 0 is what the file shows; the other is exact. */
        min = fabs(end[0] + far) < fabs(end[1] - far) ? (float)-far : (float)end[0];
        max = fabs(end[0] + far) < fabs(end[1] - far) ? (float)end[1] : (float)far;
        assert_ok(f->ctx, oct_nncf_range(f->ctx, &asym, &min, &max, 1, &low, &high, &levels));
        oct_nncf_scale(low, high, -128, 127, false, &scale, &z);
        assert_true(fabs((double)scale - step) < 1e-5);
        assert_int_equal(z, (int)zero);
        assert_ok(f->ctx, oct_nncf_range(f->ctx, &sym, &min, &mark, 1, &low, &high, &levels));
        oct_nncf_scale(low, high, -128, 127, false, &scale, &z);
        assert_true(fabs((double)scale - far / 127) < 1e-5);
        assert_int_equal(z, 0);
    }
    json_decref(mixed);
    json_decref(performance);
}

static void scales_of_activations_agree(void **state)
{
    agree(*state, "activation_matmul_model", "QuantizeLinear_X_1", 1);
    agree(*state, "linear_model", "QuantizeLinear_X_1", 1);
    agree(*state, "one_depthwise_convolutional_model", "QuantizeLinear_X_1", 3);
    agree(*state, "reshape_weight_model", "QuantizeLinear_added_x_1", 1);
}

/* With the overflow fix weights use half of the codes: the same range, twice the scale. */
static void scales_of_weights_agree(void **state)
{
    fixture *f = *state;
    json_t *without = load("onnx/data/reference_scales/linear_model_overflow_fix_disable.json");
    json_t *with = load("onnx/data/reference_scales/linear_model_overflow_fix_enable.json");
    float max[32], min[32] = {-1}, low[32], high[32];
    oct_nncf_config c = {.bits = 8, .is_symmetric = true, .is_signed = true, .is_narrow = true};
    int32_t levels;

    for (int half = 0; half < 2; half++) {
        json_t *want = field(half ? with : without, "QuantizeLinear_Conv1_W_1", "scale");

        c.is_half_range = half;
        assert_int_equal(json_array_size(want), 32);
        for (size_t i = 0; i < 32; i++)
            max[i] = (float)(127 * number(field(without, "QuantizeLinear_Conv1_W_1", "scale"), i));
        assert_ok(f->ctx, oct_nncf_range(f->ctx, &c, min, max, 32, low, high, &levels));
        for (size_t i = 0; i < 32; i++) {
            float scale;
            int32_t zero;

            oct_nncf_scale(low[i], high[i], -128, 127, true, &scale, &zero);
            assert_true(fabs((double)scale - number(want, i)) < 1e-5);
            assert_int_equal(zero, 0);
        }
    }
    json_decref(without);
    json_decref(with);
}

static void small_ranges_are_widened(void **state)
{
    fixture *f = *state;
    const oct_nncf_config sym = {.bits = 8, .is_symmetric = true, .is_signed = true};
    oct_nncf_config asym = {.bits = 8};
    const float none[2] = {0, 0}, max[2] = {10, 0};
    float low[2], high[2];
    int32_t levels;

    assert_ok(f->ctx, oct_nncf_range(f->ctx, &sym, none, max, 2, low, high, &levels));
    assert_true(high[0] == 10 && fabsf(high[1] - 0.1f) < 1e-6f);
    assert_ok(f->ctx, oct_nncf_range(f->ctx, &asym, none, none, 1, low, high, &levels));
    assert_true(low[0] < 0 && high[0] > 0 && high[0] - low[0] < 0.002f);
    asym.is_half_range = true;
    assert_fails(f->ctx, oct_nncf_range(f->ctx, &asym, none, none, 1, low, high, &levels),
                 OCT_ERR_ARG, "half");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fq_params_are_equal, setup, teardown),
        cmocka_unit_test_setup_teardown(scales_of_activations_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(scales_of_weights_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(small_ranges_are_widened, setup, teardown),
    };

    shared = shared_dir("test_quant_nncf");
    if (!shared) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
