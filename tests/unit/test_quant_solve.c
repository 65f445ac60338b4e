/* SPDX-License-Identifier: Apache-2.0 */
/* Solving: scales between channel and tensor, and signs of codes around such scales. */
#include "quant/solve/solve.h"
#include "tests/unit/exec_net.h"

enum { CHANNELS = 3 };

typedef struct net {
    oct_value *a, *b, *sum;
    oct_qmap *m;
} net;

static const int64_t dims[] = {1, CHANNELS, 2, 2};

/* sum = Relu(x) + Relu(y) */
static void build(fixture *f, net *n)
{
    n->a = emit(f, &oct_op_relu, graph_input(f, "x", OCT_DTYPE_F32, 4, dims), NULL);
    n->b = emit(f, &oct_op_relu, graph_input(f, "y", OCT_DTYPE_F32, 4, dims), NULL);
    n->sum = emit(f, &oct_op_add, n->a, n->b);
    assert_ok(f->ctx, oct_qmap_new(f->g, oct_target_named("octet"), &n->m));
}

static void add_point(net *n, const oct_value *v, bool per_channel, bool symmetric)
{
    static const float scale[CHANNELS] = {0.5f, 1.0f, 2.0f};
    static const int32_t zero[CHANNELS] = {128, 10, 0}, none[CHANNELS] = {0};
    const oct_qpoint p = {.value = v,
                          .role = OCT_QROLE_ACT,
                          .spec = {.bits = 8,
                                   .is_signed = symmetric,
                                   .is_symmetric = symmetric,
                                   .axis = per_channel ? 1 : OCT_QSPEC_PER_TENSOR},
                          .dominator = -1};
    int32_t i;

    assert_ok(n->m->ctx, oct_qmap_add(n->m, &p, &i));
    assert_ok(n->m->ctx, oct_qpoint_set(n->m, i, scale, symmetric ? none : zero,
                                        per_channel ? CHANNELS : 1, "test"));
}

static const oct_qpoint *point(const net *n, const oct_value *v)
{
    return &n->m->points[n->m->of_value[v->id]];
}

/* Same values whatever the sign: zero - lowest code stays. */
static void assert_values_kept(const oct_qpoint *p)
{
    const int32_t lowest = p->spec.is_signed ? -128 : 0;
    const int32_t want[CHANNELS] = {128, p->n > 1 && p->zero[1] != p->zero[0] ? 10 : 128, 0};

    assert_int_equal(p->zero[0] - lowest, want[0]);
    if (p->n > 1) assert_int_equal(p->zero[1] - lowest, want[1]);
}

static void types_differ_around_scales_for_each_channel(void **state)
{
    static const bool cases[][3] = {/* per channel: a, b, sum */
                                    {true, true, true},
                                    {true, true, false},
                                    {true, false, true},
                                    {false, true, false},
                                    {false, false, true}};

    for (size_t c = 0; c < OCT_COUNT(cases); c++) {
        fixture *f = NULL;
        net n;

        (void)state;
        assert_int_equal(setup((void **)&f), 0);
        build(f, &n);
        add_point(&n, n.a, cases[c][0], false);
        add_point(&n, n.b, cases[c][1], false);
        add_point(&n, n.sum, cases[c][2], false);
        assert_ok(f->ctx, oct_ort_signs(n.m));
        assert_false(point(&n, n.a)->spec.is_signed == point(&n, n.b)->spec.is_signed &&
                     point(&n, n.a)->spec.is_signed == point(&n, n.sum)->spec.is_signed);
        /* ONNX Runtime makes signed codes with one scale unsigned: those must not be the odd ones
         */
        for (int i = 0; i < 3; i++) {
            const oct_qpoint *p = point(&n, i == 0 ? n.a : i == 1 ? n.b : n.sum);

            assert_false(p->n == 1 && p->spec.is_signed);
            assert_values_kept(p);
        }
        oct_qmap_free(n.m);
        assert_int_equal(teardown((void **)&f), 0);
    }
}

/* A scale that is repeated for each channel can be read across a Transpose all the same. */
static void repeated_scales_are_one(void **state)
{
    fixture *f = *state;
    const float *scale = NULL;
    const int32_t *zero = NULL;
    oct_value *twice, *turned;
    oct_node *reader;
    bool is_integer = false;
    int64_t count = 0;
    net n;

    build(f, &n);
    twice = emit(f, &oct_op_add, n.sum, n.sum);
    reader = node(f, &oct_op_transpose, twice, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_ints(reader, "perm", (int64_t[]){0, 2, 1, 3}, 4));
    turned = infer(f, reader);
    reader = emit(f, &oct_op_relu, turned, NULL)->producer;
    oct_qmap_free(n.m);
    assert_ok(f->ctx, oct_qmap_new(f->g, oct_target_named("octet"), &n.m));
    add_point(&n, n.a, true, false);
    add_point(&n, n.b, true, false);
    add_point(&n, n.sum, true, false);
    add_point(&n, twice, false, false);
    assert_ok(f->ctx, oct_ort_signs(n.m));
    assert_int_equal(point(&n, twice)->n, CHANNELS);
    assert_ok(f->ctx, oct_place_input_scales(n.m, reader, 0, n.m->arena, &count, &scale, &zero,
                                             &is_integer));
    assert_true(is_integer);
    assert_int_equal(count, 1);
    assert_float_equal(scale[0], 0.5f, 0);
    oct_qmap_free(n.m);
}

static void single_scales_and_symmetric_ones_stay(void **state)
{
    fixture *f = *state;
    net n;

    build(f, &n);
    add_point(&n, n.a, false, false);
    add_point(&n, n.b, false, false);
    add_point(&n, n.sum, true, true);
    assert_ok(f->ctx, oct_ort_signs(n.m));
    assert_false(point(&n, n.a)->spec.is_signed);
    assert_false(point(&n, n.b)->spec.is_signed);
    assert_true(point(&n, n.sum)->spec.is_signed);
    assert_int_equal(point(&n, n.sum)->zero[1], 0);
    oct_qmap_free(n.m);
}

/* The scales of v, whose channels go as far as `far`. */
static const oct_qpoint *solve_as(net *n, const oct_value *v, const float *far,
                                  const oct_qspec *spec)
{
    const bool per_channel = spec->axis != OCT_QSPEC_PER_TENSOR;
    const oct_qpoint p = {
        .value = v, .role = OCT_QROLE_ACT, .channel_share = 0.5f, .spec = *spec, .dominator = -1};
    const oct_value_view sight = {far, 1, CHANNELS, CHANNELS, false};
    oct_observer_options range;
    oct_calibration *c = NULL;

    oct_observer_options_init(&range);
    range.kind = "minmax";
    range.per_channel = per_channel;
    assert_ok(n->m->ctx, oct_qmap_add(n->m, &p, NULL));
    assert_ok(n->m->ctx, oct_calibration_new(n->m->g, &c));
    assert_ok(n->m->ctx, oct_calibration_watch(c, v, &range, false));
    oct_observer_see(c->watch[0].range, &sight);
    assert_ok(n->m->ctx, oct_solve_activations(n->m, c));
    oct_calibration_free(c);
    return point(n, v);
}

/* Powers of two for 8 bits: one for each channel, or one for all. */
static const oct_qpoint *solve_pow2(net *n, const oct_value *v, const float *far, bool per_channel)
{
    const oct_qspec spec = {.bits = 8,
                            .is_signed = true,
                            .is_symmetric = true,
                            .is_pow2 = true,
                            .axis = per_channel ? 1 : OCT_QSPEC_PER_TENSOR};

    return solve_as(n, v, far, &spec);
}

static void exponents_lie_half_way(void **state)
{
    static const float far[CHANNELS] = {100, 12, 1}; /* 2^0, 2^-3 and 2^-6 by themselves */
    const oct_qpoint *p;
    net n;

    build(*state, &n);
    p = solve_pow2(&n, n.a, far, true);
    assert_int_equal(p->n, CHANNELS);
    assert_true(p->scale[0] == 1.0f);
    assert_true(p->scale[1] == 0.25f); /* 1.5: the finer one */
    assert_true(p->scale[2] == 0.125f);
    assert_int_equal(p->zero[2], 0);
    oct_qmap_free(n.m);
}

/* A step of 0.5 has no code near SiLU's lowest value, and larger ones round all that is small to 0:
 * half of the range is worth it. */
static void powers_of_two_keep_the_lobe_of_silu(void **state)
{
    static const struct {
        bool is_silu;
        float high, want;
    } cases[] = {{true, 50, 0.25f},
                 {false, 50, 0.5f},
                 {true, 31, 0.25f},
                 {true, 100, 0.5f},
                 {true, 14, 0.125f}};

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const float seen[CHANNELS] = {-0.25f, 0, cases[i].high};
        fixture *f = NULL;
        oct_value *y;
        net n;

        (void)state;
        assert_int_equal(setup((void **)&f), 0);
        build(f, &n);
        oct_qmap_free(n.m);
        y = emit(f, &oct_op_mul, n.sum, emit(f, &oct_op_sigmoid, n.sum, NULL));
        assert_ok(f->ctx, oct_qmap_new(f->g, oct_target_named("npu-pow2"), &n.m));
        assert_true(solve_pow2(&n, cases[i].is_silu ? y : n.sum, seen, false)->scale[0] ==
                    cases[i].want);
        oct_qmap_free(n.m);
        assert_int_equal(teardown((void **)&f), 0);
    }
}

/* The minimum of x / (1 + e^-x), found by trying. */
static double lowest_of_silu(void)
{
    double low = 0;

    for (int i = -30000; i < 0; i++)
        low = fmin(low, i * 1e-4 / (1 + exp(-i * 1e-4)));
    return low;
}

/* A coarse grid is moved so that the lowest value of SiLU is one of its codes, the zero code; a
 * fine one, and one of another function, stay as they are. */
static void grids_hold_the_lowest_value_of_silu(void **state)
{
    static const struct {
        bool is_silu, moves;
        float high;
    } cases[] = {{true, true, 50}, {true, true, 90}, {true, false, 10}, {false, false, 50}};
    const double low = lowest_of_silu();

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const float seen[CHANNELS] = {(float)low, 0, cases[i].high};
        const oct_qspec u8 = {.bits = 8, .axis = OCT_QSPEC_PER_TENSOR};
        const oct_qpoint *q;
        fixture *f = NULL;
        oct_value *y;
        net n;

        (void)state;
        assert_int_equal(setup((void **)&f), 0);
        build(f, &n);
        oct_qmap_free(n.m);
        y = emit(f, &oct_op_mul, n.sum, emit(f, &oct_op_sigmoid, n.sum, NULL));
        assert_ok(f->ctx, oct_qmap_new(f->g, oct_target_named("octet"), &n.m));
        q = solve_as(&n, cases[i].is_silu ? y : n.sum, seen, &u8);
        if ((fabs(low + (double)q->scale[0] * q->zero[0]) < 2e-5) != cases[i].moves)
            fail_msg("case %d: code 0 is %.6f, the lowest value %.6f", (int)i,
                     -(double)q->scale[0] * q->zero[0], low);
        oct_qmap_free(n.m);
        assert_int_equal(teardown((void **)&f), 0);
    }
}

/* What clipping takes adds up in the layers behind, whatever the steps are. */
static void clipping_counts_more_for_every_target(void **state)
{
    fixture *f = *state;
    oct_quantize_options o;
    net n;

    oct_quantize_options_init(&o);
    build(f, &n);
    add_point(&n, n.a, false, true);
    for (int i = 0; oct_target_at(i); i++) {
        oct_calibration *c = NULL;

        assert_ok(f->ctx, oct_calibration_new(f->g, &c));
        assert_ok(f->ctx, oct_solve_watch(n.m, oct_target_at(i), &o, c));
        assert_string_equal(oct_calibration_of(c, n.a)->range->row->name, "mse_wide");
        oct_calibration_free(c);
    }
    oct_qmap_free(n.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_differ_around_scales_for_each_channel),
        cmocka_unit_test_setup_teardown(single_scales_and_symmetric_ones_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(repeated_scales_are_one, setup, teardown),
        cmocka_unit_test_setup_teardown(exponents_lie_half_way, setup, teardown),
        cmocka_unit_test(powers_of_two_keep_the_lobe_of_silu),
        cmocka_unit_test(grids_hold_the_lowest_value_of_silu),
        cmocka_unit_test_setup_teardown(clipping_counts_more_for_every_target, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
