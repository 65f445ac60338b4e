/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that were compiled against older headers, whose structs end earlier, or against newer
 * ones, whose structs are longer. Each struct lies in memory of exactly its size.
 */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

#include <stddef.h>

enum { MORE = 24 }; /* bytes that a newer header has at the end of a struct */

/* The compiler is not to know the size: it would warn that the structs of its header are longer. */
static void *memory_of(size_t size)
{
    volatile size_t n = size;
    void *p = malloc(n);

    assert_non_null(p);
    return p;
}

/* --- options --- */

typedef void (*init_fn)(void *o, size_t size);

#define INIT(type)                                                                                 \
    static void init_##type(void *o, size_t size)                                                  \
    {                                                                                              \
        type##_init_sized(o, size);                                                                \
    }
INIT(oct_analyze_options)
INIT(oct_attach_options)
INIT(oct_compare_options)
INIT(oct_control_options)
INIT(oct_dataset_options)
INIT(oct_eval_options)
INIT(oct_half_options)
INIT(oct_image_options)
INIT(oct_loader_options)
INIT(oct_nms_options)
INIT(oct_onnx_options)
INIT(oct_plan_options)
INIT(oct_preprocess)
INIT(oct_prune_options)
INIT(oct_quantize_options)
INIT(oct_report)
INIT(oct_simplify_options)
INIT(oct_source_options)
INIT(oct_synth_options)
INIT(oct_tune_options)
#undef INIT

static const struct {
    const char *name;
    init_fn init;
    size_t size;
} inits[] = {
#define ROW(type)                                                                                  \
    {                                                                                              \
#type, init_##type, sizeof(type)                                                           \
    }
    ROW(oct_analyze_options), ROW(oct_attach_options),   ROW(oct_compare_options),
    ROW(oct_control_options), ROW(oct_dataset_options),  ROW(oct_eval_options),
    ROW(oct_half_options),    ROW(oct_image_options),    ROW(oct_loader_options),
    ROW(oct_nms_options),     ROW(oct_onnx_options),     ROW(oct_plan_options),
    ROW(oct_preprocess),      ROW(oct_prune_options),    ROW(oct_quantize_options),
    ROW(oct_report),          ROW(oct_simplify_options), ROW(oct_source_options),
    ROW(oct_synth_options),   ROW(oct_tune_options),
#undef ROW
};

/* Whatever the size, the struct says it, nothing is written beyond it, and what the library does
 * not know is zero. */
static void initialises_any_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < OCT_COUNT(inits); i++) {
        for (size_t size = sizeof(size_t); size <= inits[i].size + MORE; size += 4) {
            unsigned char *o = memory_of(size + 1);
            size_t says;

            memset(o, 0xa5, size + 1);
            inits[i].init(o, size);
            memcpy(&says, o, sizeof(says));
            if (says != size || o[size] != 0xa5)
                fail_msg("%s of %zu bytes: says %zu, next byte %x", inits[i].name, size, says,
                         o[size]);
            for (size_t k = inits[i].size; k < size; k++)
                if (o[k]) fail_msg("%s of %zu bytes: byte %zu is not 0", inits[i].name, size, k);
            free(o);
        }
    }
}

/* The struct as a program has it that knows only the fields before `end`. */
#define OLDER(type, end) older(offsetof(type, end), init_##type)

static void *older(size_t size, init_fn init)
{
    void *o = memory_of(size);

    init(o, size);
    return o;
}

static void make_net(fixture *f)
{
    oct_value *x = picture(f, 1, 3, 8, 8), *y;
    oct_rng rng;

    oct_rng_init(&rng, 7);
    y = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){3, 8, 3, 1, 1, 1, 1}), NULL);
    output(f, conv(f, &rng, y, &(conv_case){8, 4, 1, 1, 1, 0, 1}));
}

static void runs_with_older_options(void **state)
{
    files *t = *state;
    oct_quantize_options *qo = OLDER(oct_quantize_options, overrides);
    oct_analyze_options *ao = OLDER(oct_analyze_options, plain_loop);
    oct_plan_options *po = OLDER(oct_plan_options, keep);
    oct_onnx_options *wo = OLDER(oct_onnx_options, opset);
    oct_simplify_options *so = OLDER(oct_simplify_options, skip);
    oct_quantized *q = NULL;
    oct_analysis *a = NULL;
    oct_plan *p = NULL;
    oct_dataset *d;

    make_net(t->f);
    d = items(t, t->f->g->inputs[0], 2);
    assert_ok(t->ctx, oct_quantize(t->f->g, d, qo, &q));
    assert_ok(t->ctx, oct_onnx_save(oct_quantized_graph(q), below(t, "q.onnx"), wo));
    assert_ok(t->ctx, oct_plan_new(oct_quantized_graph(q), po, &p));
    assert_ok(t->ctx, oct_analyze(t->f->g, oct_quantized_graph(q), d, ao, &a));
    assert_ok(t->ctx, oct_graph_simplify(t->f->g, so));
    oct_analysis_free(a);
    oct_plan_free(p);
    oct_quantized_free(q);
    oct_dataset_close(d);
    free(qo);
    free(ao);
    free(po);
    free(wo);
    free(so);
}

/* --- results --- */

/* Reads row 0 into a struct that ends before `end`: what is there is right. */
#define READ_OLDER(type, end, call)                                                                \
    do {                                                                                           \
        const size_t size = offsetof(type, end);                                                   \
        type *row = memory_of(size);                                                               \
                                                                                                   \
        row->struct_size = size;                                                                   \
        call;                                                                                      \
        assert_int_equal(row->struct_size, size);                                                  \
        free(row);                                                                                 \
    } while (0)

static void fills_older_results(void **state)
{
    files *t = *state;
    oct_quantized *q = NULL;
    oct_analysis *a = NULL;
    oct_plan *p = NULL;
    oct_dataset *d;

    make_net(t->f);
    d = items(t, t->f->g->inputs[0], 2);
    assert_ok(t->ctx, oct_quantize(t->f->g, d, NULL, &q));
    assert_ok(t->ctx, oct_analyze(t->f->g, oct_quantized_graph(q), d, NULL, &a));
    assert_ok(t->ctx, oct_plan_new(t->f->g, NULL, &p));
    READ_OLDER(oct_quantize_layer, reason, {
        assert_true(oct_quantized_layer(q, 0, row));
        assert_string_equal(row->op, "Conv");
        assert_false(oct_quantized_layer(q, 99, row));
    });
    READ_OLDER(oct_quantize_summary, tail, oct_quantized_summary(q, row));
    READ_OLDER(oct_quant_info, version, oct_graph_quant_info(oct_quantized_graph(q), row));
    READ_OLDER(oct_analyzed_layer, alone, assert_true(oct_analysis_layer(a, 0, row)));
    READ_OLDER(oct_analyzed_point, min, assert_true(oct_analysis_point(a, 0, row)));
    READ_OLDER(oct_step_info, is_integer, oct_plan_step(p, 0, row));
    READ_OLDER(oct_io_info, size, assert_true(oct_plan_input_info(p, 0, row)));
    READ_OLDER(oct_machine_info, cores, oct_machine(row));
    READ_OLDER(oct_recipe_field, help, {
        assert_true(oct_recipe_field_at(0, row));
        assert_string_equal(row->path, "model");
    });
    oct_plan_free(p);
    oct_analysis_free(a);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* --- arrays --- */

/* Elements as long as those of a newer header: the library steps over what it does not know. */
static void steps_over_longer_elements(void **state)
{
    struct longer {
        oct_quant_override o;
        char more[MORE];
    } overrides[2] = {{.o = {.pattern = ".*", .weight_bits = 4}, .more = {1}},
                      {.o = {.pattern = ".*", .weight_bits = 5}, .more = {1}}};
    struct longer_subgraph {
        oct_subgraph s;
        char more[MORE];
    } subgraphs[2];
    files *t = *state;
    oct_quantize_options o;
    oct_quantize_layer layer = {.struct_size = sizeof(layer)};
    oct_quantized *q = NULL;
    const char *ends[2];
    oct_dataset *d;

    make_net(t->f);
    d = items(t, t->f->g->inputs[0], 2);
    ends[0] = t->f->g->first->name;
    ends[1] = t->f->g->last->name;
    memset(subgraphs, 0xa5, sizeof(subgraphs));
    subgraphs[0].s = (oct_subgraph){&ends[1], 1, &ends[1], 1};
    subgraphs[1].s = subgraphs[0].s;
    oct_quantize_options_init(&o);
    o.overrides = &overrides[0].o;
    o.n_overrides = 2;
    o.override_size = sizeof(overrides[0]);
    o.ignored.subgraphs = &subgraphs[0].s;
    o.ignored.n_subgraphs = 2;
    o.ignored.subgraph_size = sizeof(subgraphs[0]);
    o.tail = "off";
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    assert_true(oct_quantized_layer(q, 0, &layer));
    assert_null(layer.reason);
    assert_int_equal(layer.why, OCT_FLOAT_NONE);
    assert_true(oct_quantized_layer(q, 1, &layer));
    assert_non_null(layer.reason);
    assert_int_equal(layer.why, OCT_FLOAT_IGNORED);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* --- what a program may ask --- */

static void knows_its_version(void **state)
{
    char text[32];

    (void)state;
    (void)snprintf(text, sizeof(text), "%d.%d.%d", (int)(oct_version_number() / 10000),
                   (int)(oct_version_number() / 100 % 100), (int)(oct_version_number() % 100));
    assert_string_equal(text, oct_version());
    assert_int_equal(oct_version_number(), OCT_VERSION_NUMBER);
}

static void lists_targets_and_observers(void **state)
{
    int32_t n_targets = 0, n_observers = 0;

    (void)state;
    for (const char *name; (name = oct_target_name(n_targets)); n_targets++)
        assert_non_null(oct_target_help(name));
    for (const char *name; (name = oct_observer_name(n_observers)); n_observers++)
        assert_true(strlen(oct_observer_help(name)) > 10);
    assert_true(n_targets > 4 && n_observers > 5);
    assert_null(oct_target_help("none"));
    assert_null(oct_observer_help("none"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initialises_any_size),
        cmocka_unit_test_setup_teardown(runs_with_older_options, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(fills_older_results, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(steps_over_longer_elements, setup_files, teardown_files),
        cmocka_unit_test(knows_its_version),
        cmocka_unit_test(lists_targets_and_observers),
    };

    return tests_status(cmocka_run_group_tests(tests, NULL, NULL));
}
