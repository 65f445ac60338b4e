/* SPDX-License-Identifier: Apache-2.0 */
/* Settings in other tools' words that reach a quantization: estimators, overflow_fix, TensorRT's
 * calibration cache. */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

#include <jansson.h>

#include "quant/observe/observer.h"
#include "quant/qmap.h"

static void estimators_have_words(void **state)
{
    static const struct {
        const char *text, *why; /* NULL: fine */
    } cases[] = {{"quantile:mean:0.001:6", NULL},
                 {"min", NULL},
                 {"abs_max:median_no_outliers", NULL},
                 {"middle", "the statistic is"},
                 {"min:sometimes", "pictures are put together by"},
                 {"min:min:x", "STATISTIC:AGGREGATOR"},
                 {"min:min:0.1:2:3", "STATISTIC:AGGREGATOR"},
                 {"min:min:nan", "STATISTIC:AGGREGATOR"},
                 {"", "the statistic is"}};
    oct_ctx *ctx = oct_ctx_new(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        oct_estimator_end e = {OCT_STAT_MAX, OCT_GATHER_MAX, 0.5, 0.25};

        if (cases[i].why)
            assert_fails(ctx, oct_estimator_end_parse(ctx, cases[i].text, &e), OCT_ERR_ARG,
                         cases[i].why);
        else
            assert_ok(ctx, oct_estimator_end_parse(ctx, cases[i].text, &e));
        if (i == 0) {
            assert_int_equal(e.stat, OCT_STAT_QUANTILE);
            assert_int_equal(e.gather, OCT_GATHER_MEAN);
            assert_true(e.quantile_outlier_prob == 0.001 && e.clipping_value == 6);
        }
        if (i == 1) assert_true(e.gather == OCT_GATHER_MAX && e.clipping_value == 0.25);
    }
    oct_ctx_free(ctx);
}

/* Two layers behind x. */
static oct_value *two_layers(fixture *f)
{
    oct_value *x = picture(f, 1, 4, 8, 8), *y;
    oct_rng rng;

    oct_rng_init(&rng, 8);
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){4, 8, 3, 1, 1, 1, 1}), NULL);
    output(f, conv(f, &rng, y, &(conv_case){8, 4, 1, 1, 1, 0, 1}));
    return x;
}

static oct_quantized *quantized(files *t, const oct_dataset *d, const oct_quantize_options *o)
{
    oct_quantized *q = NULL;

    assert_ok(t->ctx, oct_quantize(t->f->g, d, o, &q));
    return q;
}

/* The largest value that the codes of the network's input stand for. */
static double input_range(files *t, const oct_dataset *d, const char *high)
{
    oct_quantize_options o;
    oct_scale_list *all = NULL;
    oct_scale_info s = {.struct_size = sizeof(s)};
    oct_quantized *q;
    double range;

    oct_quantize_options_init(&o);
    o.target = "openvino";
    o.tail = "off";
    o.range_high = high;
    q = quantized(t, d, &o);
    assert_ok(t->ctx, oct_graph_scales(oct_quantized_graph(q), NULL, &all));
    for (int32_t i = 0; oct_scale_list_at(all, i, &s); i++)
        if (!strcmp(s.value, t->f->g->inputs[0]->name)) break;
    assert_string_equal(s.value, t->f->g->inputs[0]->name);
    range = s.high;
    oct_scale_list_free(all);
    oct_quantized_free(q);
    return range;
}

static void estimators_reach_calibration(void **state)
{
    files *t = *state;
    const oct_value *x = two_layers(t->f);
    oct_dataset *d = items(t, x, 2);
    oct_quantize_options o;
    oct_quantized *q = NULL;

    assert_true(input_range(t, d, "max:max") > 1.9);
    assert_true(input_range(t, d, "max:max:0:1.25") < 1.3);
    assert_true(input_range(t, d, "quantile:mean:0.2") < 1.5);
    oct_quantize_options_init(&o);
    o.range_low = "least";
    assert_fails(t->ctx, oct_quantize(t->f->g, d, &o, &q), OCT_ERR_ARG, "range 'least'");
    o.range_low = NULL;
    o.overflow_fix = "often";
    assert_fails(t->ctx, oct_quantize(t->f->g, d, &o, &q), OCT_ERR_ARG, "overflow_fix");
    oct_dataset_close(d);
}

/* The largest weight code of each of the two layers. */
static void codes_on_device(files *t, const oct_dataset *d, const char *target, const char *fix,
                            const char *device, double most[2])
{
    oct_quantize_options o;
    oct_quantized *q;
    int k = 0;

    oct_quantize_options_init(&o);
    o.target = target;
    o.tail = "off";
    o.weight_ranges = "max";
    o.overflow_fix = fix;
    o.target_device = device;
    q = quantized(t, d, &o);
    for (const oct_node *n = oct_quantized_graph(q)->first; n; n = n->next) {
        const oct_tensor *codes;

        if (!oct_node_is(n, &oct_op_conv)) continue;
        if (!n->in[1]->producer)
            fail_msg("%s, %s: weights are float", target, fix ? fix : "no fix");
        codes = n->in[1]->producer->in[0]->data;
        assert_true(k < 2);
        most[k] = 0;
        for (int64_t i = 0; i < oct_tensor_len(codes); i++)
            most[k] = fmax(most[k], fabs(oct_tensor_get_f64(codes, i)));
        k++;
    }
    assert_int_equal(k, 2);
    oct_quantized_free(q);
}

static void largest_codes(files *t, const oct_dataset *d, const char *target, const char *fix,
                          double most[2])
{
    codes_on_device(t, d, target, fix, NULL, most);
}

static void overflow_is_fixed_where_it_happens(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, two_layers(t->f), 2);
    double most[2];

    largest_codes(t, d, "openvino", "disable", most);
    assert_true(most[0] > 120 && most[1] > 120);
    largest_codes(t, d, "openvino", NULL, most); /* a file comes to any CPU */
    assert_true(most[0] <= 64 && most[1] > 120);
    largest_codes(t, d, "openvino", "enable", most);
    assert_true(most[0] <= 64 && most[1] <= 64 && most[0] > 60);
    largest_codes(t, d, "openvino", "first_layer_only", most);
    assert_true(most[0] <= 64 && most[1] > 120);
    largest_codes(t, d, "tensorrt", "enable", most);
    assert_true(most[0] > 120 && most[1] > 120);
    codes_on_device(t, d, "openvino", NULL, "GPU", most);
    assert_true(most[0] > 120 && most[1] > 120);
    oct_dataset_close(d);
}

static float cached_scale(FILE *f, const char *name)
{
    char line[256];
    const size_t len = strlen(name);

    rewind(f);
    while (fgets(line, sizeof(line), f))
        if (!strncmp(line, name, len) && !strncmp(line + len, ": ", 2)) {
            const uint32_t bits = (uint32_t)strtoul(line + len + 2, NULL, 16);
            float scale;

            memcpy(&scale, &bits, sizeof(scale));
            return scale;
        }
    fail_msg("no line of '%s'", name);
    return 0;
}

static void tensorrt_gets_its_cache(void **state)
{
    files *t = *state;
    const oct_value *x = two_layers(t->f);
    oct_dataset *d = items(t, x, 2);
    json_t *j;
    oct_quantize_options o;
    oct_quantized *q;
    char line[64];
    float scale;
    FILE *f;

    oct_quantize_options_init(&o);
    o.target = "tensorrt";
    o.tail = "off";
    o.activation_ranges = "minmax";
    q = quantized(t, d, &o);
    assert_ok(t->ctx, oct_quantized_save_tensorrt(q, below(t, "cache"), 0));
    assert_ok(t->ctx, oct_quantized_save_tensorrt(q, below(t, "cache.json"), 1));
    f = fopen(below(t, "cache"), "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    assert_string_equal(line, "TRT-8601-EntropyCalibration2\n");
    scale = cached_scale(f, x->name);
    assert_true(scale * 127 > 1.9f && scale * 127 < 2.01f);
    assert_false(fclose(f));
    j = json_load_file(below(t, "cache.json"), 0, NULL);
    assert_non_null(j);
    assert_true(
        fabs(json_real_value(json_object_get(json_object_get(j, "act_quant_info"), x->name)) -
             (double)(scale * 127)) < 1e-5);
    json_decref(j);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimators_have_words),
        cmocka_unit_test_setup_teardown(estimators_reach_calibration, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(overflow_is_fixed_where_it_happens, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(tensorrt_gets_its_cache, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
