/* SPDX-License-Identifier: Apache-2.0 */
/* Healing: networks that compute the same in float and are hard to quantize. */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

#include "tests/damage.h"

#define LIMIT 1.7 /* times the noise of the undamaged network */

/* Five layers with Relus, or with SiLUs, through which channels cannot be scaled. */
static oct_value *build(fixture *f, const oct_op *act)
{
    oct_value *x = picture(f, 1, 4, 16, 16), *y = x;
    oct_rng rng;

    oct_rng_init(&rng, 8);
    y = emit(f, act, conv(f, &rng, y, &(conv_case){4, 16, 3, 1, 1, 1, 1}), NULL);
    y = emit(f, act, conv(f, &rng, y, &(conv_case){16, 16, 1, 1, 1, 0, 1}), NULL);
    y = emit(f, act, conv(f, &rng, y, &(conv_case){16, 16, 3, 1, 1, 1, 1}), NULL);
    y = emit(f, act, conv(f, &rng, y, &(conv_case){16, 16, 1, 1, 1, 0, 1}), NULL);
    output(f, conv(f, &rng, y, &(conv_case){16, 8, 1, 1, 1, 0, 1}));
    return x;
}

/* What a quantization came to. */
typedef struct outcome {
    double noise;
    int32_t n_mends;
} outcome;

/* Of a network that computes the same as the fixture's. */
static outcome quantize_it(files *t, const oct_graph *g, const oct_dataset *d, const char *target,
                           const char *heal)
{
    oct_quantize_mend m = {.struct_size = sizeof(m)};
    oct_quantize_options o;
    oct_quantized *q = NULL;
    outcome out = {0};

    oct_quantize_options_init(&o);
    o.target = target;
    o.tail = "off";
    o.heal = heal;
    assert_ok(t->ctx, oct_quantize(g, d, &o, &q));
    out.noise = job_noise(t, q);
    while (oct_quantized_mend(q, out.n_mends, &m)) {
        assert_non_null(m.node);
        assert_non_null(strstr(m.text, m.node));
        out.n_mends++;
    }
    oct_quantized_free(q);
    return out;
}

/* Each damage, and where the default fails without healing: its noise more than doubles. */
static const struct row {
    const char *damage;
    bool hurts_octet, hurts_npu; /* networks with Relus; npu-pow2 */
    bool lasts_on_npu;           /* an NPU cannot help it */
    bool is_short;               /* one for other networks and targets, too */
} rows[] = {
    {"big-channel", true, true, false, true},    {"small-channel", true, true, false, false},
    {"some-big", true, true, false, false},      {"two-clusters", false, true, false, false},
    {"spread", true, true, false, true},         {"all-big", false, false, false, false},
    {"huge-bias", true, true, false, true},      {"unread-outlier", true, true, false, false},
    {"dead-channel", false, true, false, false}, {"constant-channel", true, true, false, false},
    {"cancelling", true, true, true, true},      {"small-residual", false, false, false, false},
};

static void try_damage(files *t, const oct_dataset *d, const struct row *r, const char *target,
                       double whole, bool hurts)
{
    const bool is_npu = strncmp(target, "npu", 3) == 0;
    oct_graph *g = NULL;
    outcome off, on;

    assert_ok(t->ctx, oct_graph_clone(t->f->g, &g));
    assert_ok(t->ctx, damage_apply(g, damage_find(r->damage), 0.3));
    off = quantize_it(t, g, d, target, "off");
    on = quantize_it(t, g, d, target, NULL);
    if (hurts && off.noise < 2 * whole)
        fail_msg("%s, %s: noise %g without healing", r->damage, target, off.noise);
    if (on.noise > LIMIT * whole && !(is_npu && r->lasts_on_npu))
        fail_msg("%s, %s: noise %g with healing, %g undamaged", r->damage, target, on.noise, whole);
    assert_int_equal(off.n_mends, 0);
    oct_graph_free(g);
}

static void try_all(files *t, const oct_op *act, const char *target)
{
    const bool is_relu = act == &oct_op_relu;
    const bool is_octet = strcmp(target, "octet") == 0, is_npu = strcmp(target, "npu-pow2") == 0;
    const oct_value *x = build(t->f, act);
    oct_dataset *d = items(t, x, 2);
    const outcome whole = quantize_it(t, t->f->g, d, target, NULL);

    assert_int_equal(whole.n_mends, 0);
    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        if (!rows[i].is_short && !(is_relu && (is_octet || is_npu))) continue;
        try_damage(t, d, &rows[i], target, whole.noise,
                   is_relu && ((is_octet && rows[i].hurts_octet) || (is_npu && rows[i].hurts_npu)));
    }
    oct_dataset_close(d);
}

static void heals_networks_of_relus(void **state)
{
    try_all(*state, &oct_op_relu, "octet");
}

static void heals_networks_of_silus(void **state)
{
    try_all(*state, &oct_op_swish, "octet");
}

static void heals_for_ort(void **state)
{
    try_all(*state, &oct_op_relu, "ort");
}

static void heals_for_openvino(void **state)
{
    try_all(*state, &oct_op_relu, "openvino");
}

static void heals_for_tensorrt(void **state)
{
    try_all(*state, &oct_op_relu, "tensorrt");
}

static void heals_for_npus(void **state)
{
    try_all(*state, &oct_op_relu, "npu-pow2");
}

static oct_quantized *job(files *t, const oct_graph *g, const oct_dataset *d, const char *heal)
{
    oct_quantize_options o;
    oct_quantized *q = NULL;

    oct_quantize_options_init(&o);
    o.tail = "off";
    o.heal = heal;
    assert_ok(t->ctx, oct_quantize(g, d, &o, &q));
    return q;
}

static void assert_equal_jobs(const oct_quantized *a, const oct_quantized *b)
{
    char why[256] = "";

    if (!oct_graph_equal(oct_quantized_graph(a), oct_quantized_graph(b), why, sizeof(why)))
        fail_msg("%s", why);
}

static void leaves_sound_networks_alone(void **state)
{
    files *t = *state;
    const oct_value *x = build(t->f, &oct_op_swish);
    oct_dataset *d = items(t, x, 2);
    oct_quantize_mend m = {.struct_size = sizeof(m)};
    oct_quantized *off = job(t, t->f->g, d, "off"), *on = job(t, t->f->g, d, "on");

    assert_equal_jobs(off, on);
    assert_int_equal(oct_quantized_mend(on, 0, &m), 0);
    assert_int_equal(oct_quantized_mend(on, -1, &m), 0);
    oct_quantized_free(off);
    oct_quantized_free(on);
    oct_dataset_close(d);
}

/* A network is not given back in float because its only large layer is hard to quantize. */
static void leaves_most_work_to_integers(void **state)
{
    files *t = *state;
    oct_value *x = picture(t->f, 1, 4, 16, 16), *y;
    oct_quantize_layer layer = {.struct_size = sizeof(layer)};
    oct_dataset *d;
    oct_quantized *q;
    oct_rng rng;

    oct_rng_init(&rng, 8);
    y = emit(t->f, &oct_op_relu, conv(t->f, &rng, x, &(conv_case){4, 16, 1, 1, 1, 0, 1}), NULL);
    output(t->f, conv(t->f, &rng, y, &(conv_case){16, 16, 3, 1, 1, 1, 1}));
    d = items(t, x, 2);
    assert_ok(t->ctx, damage_apply(t->f->g, damage_find("cancelling"), 0));
    q = job(t, t->f->g, d, NULL);
    assert_int_equal(oct_quantized_layer(q, 1, &layer), 1);
    assert_null(layer.reason);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* The same twice; and the one layer that weights cannot mend stays float, and says so. */
static void says_what_it_did(void **state)
{
    files *t = *state;
    const oct_value *x = build(t->f, &oct_op_relu);
    oct_dataset *d = items(t, x, 2);
    oct_quantize_mend m = {.struct_size = sizeof(m)};
    oct_quantized *a, *b;

    assert_ok(t->ctx, damage_apply(t->f->g, damage_find("cancelling"), 0.3));
    a = job(t, t->f->g, d, NULL);
    b = job(t, t->f->g, d, NULL);
    assert_equal_jobs(a, b);
    assert_int_equal(oct_quantized_mend(a, 0, &m), 1);
    assert_string_equal(m.kind, "float");
    assert_non_null(strstr(m.text, "stays float: it alone made"));
    assert_true(m.error_share > 0.5 && m.error_share <= 1);
    assert_true(m.work_share > 0 && m.work_share < 1);
    assert_true(m.after < 0.5 * m.before);
    assert_int_equal(oct_quantized_mend(a, 1, &m), 0);
    oct_quantized_free(a);
    oct_quantized_free(b);
    oct_dataset_close(d);
}

static void checks_the_word(void **state)
{
    files *t = *state;
    const oct_value *x = build(t->f, &oct_op_relu);
    oct_dataset *d = items(t, x, 2);
    oct_quantize_options o;
    oct_quantized *q = NULL;

    oct_quantize_options_init(&o);
    o.heal = "maybe";
    assert_fails(t->ctx, oct_quantize(t->f->g, d, &o, &q), OCT_ERR_ARG, "heal");
    oct_dataset_close(d);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_files, teardown_files)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(heals_networks_of_relus),
        TEST(heals_networks_of_silus),
        TEST(heals_for_ort),
        TEST(heals_for_openvino),
        TEST(heals_for_tensorrt),
        TEST(heals_for_npus),
        TEST(leaves_most_work_to_integers),
        TEST(says_what_it_did),
        TEST(leaves_sound_networks_alone),
        TEST(checks_the_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
