/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of NPUs: each row is broken once, found, and mended where an exponent can do it; files
 * that octet makes for npu-pow2 break none. */
#include <math.h>

#include "quant/lower/lower.h"
#include "quant/npu/limits.h"
#include "quant/solve/solve.h"
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

/* --- one broken row --- */

enum { A, B, Y, W, C, N_POINTS }; /* operands, result, weight, bias */
enum { NONE = -99 };              /* not quantized */

/* A node with the exponents of what is around it; `after`: once fitted (NONE: cannot be). */
typedef struct row_case {
    const char *limit;
    const oct_op *op;
    int before[N_POINTS], after[N_POINTS];
    int bits, zero, n; /* of operand A: 8, 0, 1 if 0 */
    float odd;         /* factor on its scale; 0: 1 */
} row_case;

#define FITS                                                                                       \
    {                                                                                              \
        NONE, NONE, NONE, NONE, NONE                                                               \
    }

static const row_case cases[] = {
    {"codes", &oct_op_relu, {4, NONE, NONE, NONE, NONE}, FITS, .bits = 16},
    {"power of two", &oct_op_relu, {4, NONE, NONE, NONE, NONE}, FITS, .odd = 1.25f},
    {"zero point", &oct_op_relu, {4, NONE, NONE, NONE, NONE}, FITS, .zero = 3},
    {"one scale", &oct_op_relu, {4, NONE, NONE, NONE, NONE}, FITS, .n = 3},
    {"input", &oct_op_conv, {NONE, NONE, 4, 5, 9}, FITS},
    {"result", &oct_op_conv, {4, NONE, NONE, 5, 9}, FITS},
    {"bias", &oct_op_conv, {4, NONE, 4, 5, NONE}, FITS},
    {"concat", &oct_op_concat, {4, 6, 5, NONE, NONE}, {4, 4, 4, NONE, NONE}},
    {"concat", &oct_op_concat, {4, NONE, 4, NONE, NONE}, FITS},
    {"pool", &oct_op_max_pool, {4, NONE, 5, NONE, NONE}, {4, NONE, 4, NONE, NONE}},
    {"pool", &oct_op_global_average_pool, {6, NONE, 5, NONE, NONE}, {5, NONE, 5, NONE, NONE}},
    {"move", &oct_op_slice, {4, NONE, 5, NONE, NONE}, {4, NONE, 4, NONE, NONE}},
    {"sum operands", &oct_op_add, {2, 12, 3, NONE, NONE}, {2, 9, 3, NONE, NONE}},
    {"sum operands", &oct_op_sub, {12, 2, 3, NONE, NONE}, {9, 2, 3, NONE, NONE}},
    {"sum result", &oct_op_add, {1, 1, 12, NONE, NONE}, {1, 1, 8, NONE, NONE}},
    {"sum result", &oct_op_add, {28, 28, 0, NONE, NONE}, {28, 28, 3, NONE, NONE}},
    {"product", &oct_op_mul, {2, 2, 6, NONE, NONE}, {2, 2, 4, NONE, NONE}},
    {"product", &oct_op_mul, {20, 20, 4, NONE, NONE}, {20, 20, 8, NONE, NONE}},
    {"shift cut", &oct_op_conv, {2, NONE, 9, 3, 5}, {2, NONE, 5, 3, 5}},
    {"shift cut", &oct_op_conv, {8, NONE, 4, 14, 15}, {8, NONE, 4, 12, 15}},
    {"shift bias", &oct_op_conv, {5, NONE, 8, 15, 2}, {5, NONE, 8, 12, 2}},
    {"shift bias", &oct_op_conv, {4, NONE, 4, 4, 40}, {4, NONE, 4, 4, 20}},
    {"hard sigmoid input",
     &oct_op_hard_sigmoid,
     {17, NONE, 8, NONE, NONE},
     {15, NONE, 8, NONE, NONE}},
    {"hard sigmoid result",
     &oct_op_hard_sigmoid,
     {4, NONE, 5, NONE, NONE},
     {4, NONE, 7, NONE, NONE}},
    {"hard sigmoid shift",
     &oct_op_hard_sigmoid,
     {2, NONE, 18, NONE, NONE},
     {2, NONE, 16, NONE, NONE}},
    {"leaky slope", &oct_op_leaky_relu, {4, NONE, 4, NONE, NONE}, FITS},
    {"mean", &oct_op_global_average_pool, {4, NONE, 4, NONE, NONE}, FITS},
};

static int32_t add(oct_qmap *m, const oct_value *v, const oct_node *reader, int32_t operand,
                   oct_qrole role, int e, const row_case *k)
{
    oct_qpoint p = {.value = v,
                    .node = reader,
                    .operand = operand,
                    .role = role,
                    .spec = {.bits = k && k->bits ? k->bits : 8,
                             .is_signed = true,
                             .is_symmetric = true,
                             .is_pow2 = true,
                             .axis = k && k->n > 1 ? 1 : OCT_QSPEC_PER_TENSOR},
                    .dominator = -1};
    const int n = k && k->n ? k->n : 1;
    float scale[4];
    int32_t zero[4] = {k ? k->zero : 0}, i;

    if (e == NONE) return -1;
    for (int c = 0; c < n; c++)
        scale[c] = ldexpf(1.0f, -e) * (k && k->odd > 0 ? k->odd : 1);
    assert_ok(m->ctx, oct_qmap_add(m, &p, &i));
    assert_ok(m->ctx, oct_qpoint_set(m, i, scale, zero, n, "test"));
    return i;
}

static oct_value *make_node(fixture *f, const row_case *k, oct_value *a, oct_value *b)
{
    oct_rng rng;
    oct_value *y;

    oct_rng_init(&rng, 1);
    if (k->op == &oct_op_conv) return conv(f, &rng, a, &(conv_case){3, 2, 1, 1, 1, 1, 1});
    if (k->op == &oct_op_concat) return concat(f, (oct_value *[]){a, b}, 2, 1);
    if (k->op == &oct_op_max_pool) return max_pool(f, a);
    if (k->op == &oct_op_slice) {
        oct_node *n = node(f, k->op, a, oct_ints(&f->b, (int64_t[]){0}, 1),
                           oct_ints(&f->b, (int64_t[]){1}, 1));

        return infer(f, n);
    }
    y = emit(f, k->op, a, b && k->before[B] != NONE ? b : NULL);
    if (k->op == &oct_op_leaky_relu)
        assert_ok(f->ctx, oct_node_set_f32(y->producer, "alpha", 0.1f));
    return y;
}

/* How often a row of that name is broken in the whole map, by tensors and nodes. */
static int count_broken(const oct_qmap *m, const char *name)
{
    const oct_npu_limit *l;
    oct_npu_breach b;
    oct_npu_site s;
    int n = 0;

    for (int i = 0; (l = oct_npu_limit_at(i)); i++) {
        if (name && strcmp(l->name, name) != 0) continue;
        for (int32_t p = 0; p < m->n_points && l->is_of_tensor; p++) {
            oct_npu_site_of_point(m, p, &s);
            n += l->applies(&s) && oct_npu_breaks(l, &s, 0, &b);
        }
        for (const oct_node *k = m->g->first; k && !l->is_of_tensor; k = k->next) {
            oct_npu_site_of_node(m, NULL, k, &s);
            n += l->applies(&s) && oct_npu_breaks(l, &s, 0, &b);
        }
    }
    return n;
}

static void try_case(const row_case *k)
{
    static const int64_t dims[] = {1, 3, 3, 3};
    const bool can_fit = k->after[A] != NONE || k->after[Y] != NONE;
    fixture *f = NULL;
    oct_value *in[2], *y;
    int32_t point[N_POINTS];
    oct_qmap *m = NULL;
    oct_node *n;

    assert_int_equal(setup((void **)&f), 0);
    in[0] = graph_input(f, "a", OCT_DTYPE_F32, 4, dims);
    in[1] = graph_input(f, "b", OCT_DTYPE_F32, 4, dims);
    y = make_node(f, k, in[0], in[1]);
    n = y->producer;
    assert_ok(f->ctx, oct_qmap_new(f->g, oct_target_named("npu-pow2"), &m));
    point[A] = add(m, in[0], NULL, 0, OCT_QROLE_ACT, k->before[A], k);
    point[B] = add(m, in[1], NULL, 0, OCT_QROLE_ACT, k->before[B], NULL);
    point[Y] = add(m, y, NULL, 0, OCT_QROLE_ACT, k->before[Y], NULL);
    point[W] =
        k->before[W] == NONE ? -1 : add(m, n->in[1], n, 1, OCT_QROLE_WEIGHT, k->before[W], NULL);
    point[C] =
        k->before[C] == NONE ? -1 : add(m, n->in[2], n, 2, OCT_QROLE_BIAS, k->before[C], NULL);
    if (count_broken(m, k->limit) != 1) fail_msg("%s (%s) is not found", k->limit, k->op->name);
    assert_ok(f->ctx, oct_npu_shifts(m));
    if (count_broken(m, k->limit) != !can_fit) fail_msg("%s is not as fitted", k->limit);
    if (can_fit && strcmp(k->limit, "pool")) assert_int_equal(count_broken(m, NULL), 0);
    for (int i = 0; can_fit && i < N_POINTS; i++)
        if (point[i] >= 0 && m->points[point[i]].scale[0] != ldexpf(1.0f, -k->after[i]))
            fail_msg("%s (%s): point %d is %g", k->limit, k->op->name, i,
                     (double)m->points[point[i]].scale[0]);
    oct_qmap_free(m);
    assert_int_equal(teardown((void **)&f), 0);
}

static void each_row_is_found_and_mended(void **state)
{
    (void)state;
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        try_case(&cases[i]);
}

/* Those that need more than one node have a test below. */
static void each_row_has_a_case(void **state)
{
    static const char *const elsewhere[] = {"swish", "wide bias"};
    const oct_npu_limit *l;

    (void)state;
    for (int i = 0; (l = oct_npu_limit_at(i)); i++) {
        bool has = false;

        for (size_t k = 0; k < OCT_COUNT(cases); k++)
            has |= strcmp(cases[k].limit, l->name) == 0;
        for (size_t k = 0; k < OCT_COUNT(elsewhere); k++)
            has |= strcmp(elsewhere[k], l->name) == 0;
        if (!has) fail_msg("nothing breaks the limit '%s'", l->name);
    }
}

static void factors_of_swish_and_wide_biases(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 3, 3});
    oct_value *s = emit(f, &oct_op_hard_sigmoid, x, NULL), *y = emit(f, &oct_op_mul, x, s), *z;
    oct_qmap *m = NULL;
    oct_node *n;
    int32_t k;
    oct_rng rng;

    oct_rng_init(&rng, 1);
    z = conv(f, &rng, y, &(conv_case){3, 2, 1, 1, 1, 1, 1});
    n = z->producer;
    ((float *)n->in[2]->data->data)[0] = 1000; /* needs more than 16 bits at its scale */
    assert_ok(f->ctx, oct_qmap_new(f->g, oct_target_named("npu-pow2"), &m));
    add(m, x, NULL, 0, OCT_QROLE_ACT, 14, NULL);
    add(m, s, NULL, 0, OCT_QROLE_ACT, 8, NULL);
    k = add(m, y, NULL, 0, OCT_QROLE_ACT, 5, NULL);
    add(m, z, NULL, 0, OCT_QROLE_ACT, 4, NULL);
    add(m, n->in[1], n, 1, OCT_QROLE_WEIGHT, 6, NULL);
    add(m, n->in[2], n, 2, OCT_QROLE_BIAS, 14, &(row_case){.bits = 32});
    assert_int_equal(count_broken(m, "swish"), 1);
    assert_int_equal(count_broken(m, "product"), 0);
    assert_int_equal(count_broken(m, "wide bias"), 1);
    assert_ok(f->ctx, oct_npu_shifts(m));
    assert_int_equal(count_broken(m, NULL), 0);
    assert_true(m->points[k].scale[0] == ldexpf(1, -7));
    oct_qmap_free(m);
}

/* --- whole files --- */

/* Pools, sums with a factor, products, Concat, LeakyRelu, sizes that shift badly, outputs of layers
 * and of other nodes. */
static oct_value *make_net(fixture *f)
{
    oct_value *x = picture(f, 1, 3, 12, 12), *a, *b, *c;
    const float factor = 0.54f;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    a = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){3, 16, 3, 1, 1, 1, 1}), NULL);
    b = emit(f, &oct_op_mul, a, constant_f32(f, 1, (int64_t[]){1}, &factor));
    c = emit(f, &oct_op_leaky_relu, conv(f, &rng, a, &(conv_case){16, 16, 3, 1, 1, 1, 1}), NULL);
    assert_ok(f->ctx, oct_node_set_f32(c->producer, "alpha", 0.1f));
    a = emit(f, &oct_op_add, b, c);
    a = concat(f, (oct_value *[]){a, max_pool(f, a), c}, 3, 1);
    a = conv(f, &rng, a, &(conv_case){48, 16, 1, 1, 1, 0, 1});
    b = emit(f, &oct_op_global_average_pool, a, NULL);
    b = emit(f, &oct_op_hard_sigmoid, conv(f, &rng, b, &(conv_case){16, 16, 1, 1, 1, 0, 1}), NULL);
    a = emit(f, &oct_op_mul, a, b);
    output(f, conv(f, &rng, a, &(conv_case){16, 8, 3, 1, 1, 1, 1}));
    output(f, emit(f, &oct_op_softmax, conv(f, &rng, a, &(conv_case){16, 8, 1, 1, 1, 0, 1}), NULL));
    return x;
}

static int32_t n_broken(files *t, const oct_graph *g, const char *what)
{
    oct_limit_info info = {.struct_size = sizeof(info)};
    oct_limit_list *l = NULL;
    int32_t n = 0;

    assert_ok(t->ctx, oct_graph_npu_check(g, &l));
    for (; oct_limit_list_at(l, n, &info); n++)
        if (what)
            print_message("%s: %s of %s is %d, not %d..%d: %s\n", what, info.limit, info.what,
                          (int)info.value, (int)info.low, (int)info.high, info.right);
    oct_limit_list_free(l);
    return n;
}

static oct_dtype bias_type(const oct_graph *g)
{
    for (const oct_node *n = g->first; n; n = n->next)
        if (oct_node_is(n, &oct_op_conv)) return n->in[2]->producer->in[0]->type.dtype;
    return OCT_DTYPE_F32;
}

static void files_of_octet_keep_all_limits(void **state)
{
    static const struct {
        const char *target;
        int32_t bias_bits, int8_io;
        oct_dtype bias;
    } tries[] = {{"npu-pow2", 0, 0, OCT_DTYPE_I8},
                 {"npu-pow2", 8, 1, OCT_DTYPE_I8},
                 {"npu-pow2", 16, 0, OCT_DTYPE_I32},
                 {"npu-pow2", 32, 0, OCT_DTYPE_I32},
                 {"npu-pow2-pc", 0, 0, OCT_DTYPE_I32}};
    files *t = *state;
    oct_dataset *d = items(t, make_net(t->f), 2);

    for (size_t i = 0; i < OCT_COUNT(tries); i++) {
        oct_quantize_options o;
        oct_quantized *q = NULL;
        oct_graph *again = NULL;

        oct_quantize_options_init(&o);
        o.target = tries[i].target;
        o.bias_bits = tries[i].bias_bits;
        o.int8_io = tries[i].int8_io;
        assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
        assert_ok(t->ctx, oct_onnx_save(oct_quantized_graph(q), below(t, "q.onnx"), NULL));
        assert_ok(t->ctx, oct_onnx_load(t->ctx, below(t, "q.onnx"), &again));
        assert_int_equal(n_broken(t, again, tries[i].target), 0);
        assert_int_equal(bias_type(again), tries[i].bias);
        if (!tries[i].int8_io) assert_true(job_noise(t, q) < 0.05);
        oct_graph_free(again);
        oct_quantized_free(q);
    }
    oct_dataset_close(d);
}

/* A qmap file, simulated, is the file: also outputs, means and biases. */
static void the_qmap_gives_the_same_network(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, make_net(t->f), 2);
    oct_quantize_options o;
    oct_quantized *q = NULL;
    oct_graph *exact = t->f->g;
    oct_tensor *a[8] = {NULL}, *b[8] = {NULL};

    oct_quantize_options_init(&o);
    o.target = "npu-pow2";
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    assert_ok(t->ctx, oct_quantized_save_qmap(q, below(t, "q.json")));
    assert_ok(t->ctx, oct_graph_clone(oct_quantized_graph(q), &t->f->g));
    run_graph(t->f, NULL, a);
    oct_graph_free(t->f->g);
    assert_ok(t->ctx, oct_qmap_apply(exact, below(t, "q.json"), &t->f->g));
    run_graph(t->f, NULL, b);
    oct_graph_free(t->f->g);
    t->f->g = exact;
    for (int i = 0; i < 2; i++)
        assert_same("output", a[i], b[i], 0);
    for (int i = 0; i < 8; i++) {
        oct_tensor_unref(a[i]);
        oct_tensor_unref(b[i]);
    }
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* Any scale of the file that is changed breaks something. */
static void planted_faults_are_found(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, make_net(t->f), 2);
    oct_quantize_options o;
    oct_quantized *q = NULL;
    int n_tried = 0;

    oct_quantize_options_init(&o);
    o.target = "npu-pow2";
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    for (int32_t i = 0; i < oct_quantized_graph(q)->n_value_ids; i++) {
        const oct_value *v = oct_quantized_graph(q)->values[i];
        oct_graph *copy = NULL;
        oct_tensor *scale = NULL;

        if (!v || !v->data || v->n_users < 1 || v->users[0]->n_in < 2) continue;
        if (v->users[0]->in[1] != v || v->type.dtype != OCT_DTYPE_F32) continue;
        if (!strstr(v->users[0]->op->name, "QuantizeLinear") &&
            !strstr(v->users[0]->op->name, "DequantizeLinear"))
            continue;
        assert_ok(t->ctx, oct_graph_clone(oct_quantized_graph(q), &copy));
        assert_ok(t->ctx, oct_tensor_copy(t->ctx, v->data, &scale));
        ((float *)scale->data)[0] *= 1.1f;
        oct_tensor_unref(copy->values[i]->data);
        copy->values[i]->data = scale;
        if (n_broken(t, copy, NULL) == 0) fail_msg("nothing is wrong with '%s'", v->name);
        oct_graph_free(copy);
        n_tried++;
    }
    assert_true(n_tried > 20);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

static void other_networks_are_told_apart(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, make_net(t->f), 2);
    oct_limit_list *l = NULL;
    oct_quantize_options o;
    oct_quantized *q = NULL;

    assert_fails(t->ctx, oct_graph_npu_check(t->f->g, &l), OCT_ERR_ARG, "nothing to check");
    assert_null(l);
    assert_ok(t->ctx, oct_quantize(t->f->g, d, NULL, &q));
    assert_true(n_broken(t, oct_quantized_graph(q), NULL) > 10);
    oct_quantized_free(q);
    oct_quantize_options_init(&o);
    o.bias_bits = 8;
    assert_fails(t->ctx, oct_quantize(t->f->g, d, &o, &q), OCT_ERR_ARG, "target octet are 32 bits");
    o.target = "npu-pow2";
    o.bias_bits = 12;
    assert_fails(t->ctx, oct_quantize(t->f->g, d, &o, &q), OCT_ERR_ARG, "neither 8, 16 nor 32");
    oct_dataset_close(d);
}

/* --- biases and means --- */

static double squared(const oct_qspec *s, float scale, const float *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        const double e = (double)b[i] - (double)scale * oct_qspec_code(s, scale, 0, b[i]);

        sum += e * e;
    }
    return sum;
}

static void biases_have_the_scale_of_the_least_error(void **state)
{
    const oct_qspec s = {.bits = 8,
                         .is_signed = true,
                         .is_symmetric = true,
                         .is_pow2 = true,
                         .axis = OCT_QSPEC_PER_TENSOR};
    float b[300], unit = 0x1p-12f;
    oct_scales out = {&unit, 1};
    oct_rng rng;

    (void)state;
    oct_rng_init(&rng, 4);
    for (int i = 0; i < 300; i++)
        b[i] = (float)(oct_rng_f64(&rng) * 2 - 1);
    b[7] = 1.01f; /* just beyond 127 steps of 2^-7: to clip it costs less than to double the step */
    oct_bias_scales(&s, b, 300, &out);
    assert_true(unit == 0x1p-7f);
    for (int e = -12; e < 3; e++)
        assert_true(squared(&s, unit, b, 300) <= squared(&s, ldexpf(1, e), b, 300));
    for (int i = 0; i < 300; i++)
        b[i] *= 1e9f;
    unit = 0x1p-12f;
    oct_bias_scales(&s, b, 300, &out);
    assert_true(unit == 8); /* shifted by 15 at most */
}

static void means_are_sums_times_a_fraction(void **state)
{
    static const struct {
        int64_t side;
        double factor;
    } sizes[] = {{2, 1},           {3, 63.0 / 64},     {4, 1},
                 {5, 250.0 / 256}, {7, 1029.0 / 1024}, {14, 4116.0 / 4096}};
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
        const int64_t dims[] = {1, 2, sizes[i].side, sizes[i].side};
        oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, dims);
        const oct_value *y = emit(f, &oct_op_global_average_pool, x, NULL);

        assert_true(fabs(oct_npu_mean_factor(y->producer) - sizes[i].factor) < 1e-12);
        restart(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_found_and_mended),
        cmocka_unit_test(each_row_has_a_case),
        cmocka_unit_test(biases_have_the_scale_of_the_least_error),
        cmocka_unit_test_setup_teardown(factors_of_swish_and_wide_biases, setup, teardown),
        cmocka_unit_test_setup_teardown(means_are_sums_times_a_fraction, setup, teardown),
        cmocka_unit_test_setup_teardown(files_of_octet_keep_all_limits, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(the_qmap_gives_the_same_network, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(planted_faults_are_found, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(other_networks_are_told_apart, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
