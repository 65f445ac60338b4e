/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions stay float where a runtime wants one scale right behind each of them. */
#include "tests/unit/place_net.h"

#include "quant/decide.h"
#include "quant/solve.h"

/* x -> a -> SiLU -> b (depthwise) -> SiLU -> c -> Exp */
typedef struct net {
    placed p;
    oct_calibration *c;
    oct_value *x, *a, *s, *b, *t, *last;
} net;

static void build(net *n, fixture *f, const char *target)
{
    start(&n->p, f, target);
    n->x = image(&n->p, 8);
    n->a = layer(&n->p, "a", n->x, 4);
    n->s = silu(&n->p, n->a);
    n->b = layer(&n->p, "b", n->s, 0);
    n->t = silu(&n->p, n->b);
    n->last = layer(&n->p, "c", n->t, 4);
    output(&n->p, emit(f, &oct_op_exp, n->last, NULL));
    place(&n->p);
    assert_ok(f->ctx, oct_calibration_new(f->g, &n->c));
}

/* Every channel has this variance; every point this scale. */
static void see(net *n, double variance, float scale)
{
    const int32_t zero = 128;

    assert_ok(n->p.f->ctx, oct_decide_watch(n->p.m, n->p.t, n->c));
    n->c->images = 1;
    for (int32_t i = 0; i < n->c->n; i++)
        for (int64_t k = 0; k < n->c->watch[i].channels; k++)
            n->c->watch[i].square[k] = variance;
    for (int32_t i = 0; i < n->p.m->n_points; i++)
        if (n->p.m->points[i].role == OCT_QROLE_ACT)
            assert_ok(n->p.f->ctx, oct_qpoint_set(n->p.m, i, &scale, &zero, 1));
}

static void set_variance(const net *n, const oct_value *v, int64_t channel, double variance)
{
    oct_calibration_of(n->c, v)->square[channel] = variance;
}

/* By harm alone: all of this would be faster in float. */
static void decide(net *n)
{
    oct_target t = *n->p.t;

    t.costs = NULL;
    assert_ok(n->p.f->ctx, oct_decide(n->p.m, &t, n->c));
}

static void close_net(net *n)
{
    oct_calibration_free(n->c);
    finish(&n->p);
}

static bool is_off(const net *n, const oct_value *v)
{
    return at(&n->p, v) && at(&n->p, v)->state == OCT_QSTATE_OFF;
}

static void fine_steps_are_harmless(void **state)
{
    net n;

    build(&n, *state, "ort");
    see(&n, 0.25, 0.02f);
    decide(&n);
    assert_null(reason(&n.p, n.a));
    assert_null(reason(&n.p, n.b));
    assert_true(is_active(&n.p, n.a) && is_active(&n.p, n.s) && is_active(&n.p, n.b));
    close_net(&n);
}

/* Dense convolutions gain much in integers, depthwise ones lose; borders cost what they cost. */
static void decide_by(net *n, double border)
{
    oct_cost_row costs[OCT_COST_COUNT] = {0};
    oct_target t = *n->p.t;

    costs[OCT_COST_CONV].floating.fixed = 1000;
    costs[OCT_COST_DEPTHWISE].integer.fixed = costs[OCT_COST_DEPTHWISE_ODD].integer.fixed = 900;
    costs[OCT_COST_BORDER].integer.fixed = costs[OCT_COST_BORDER].floating.fixed = border;
    t.costs = costs;
    assert_ok(n->p.f->ctx, oct_decide(n->p.m, &t, n->c));
}

static void layers_are_float_where_that_is_faster(void **state)
{
    net n;

    build(&n, *state, "ort");
    see(&n, 0.25, 0.02f);
    decide_by(&n, 100);
    assert_null(reason(&n.p, n.a));
    assert_true(is_active(&n.p, n.a));
    assert_non_null(strstr(reason(&n.p, n.b), "faster"));
    assert_true(is_off(&n, n.b));
    close_net(&n);
}

static void a_network_that_cannot_gain_is_quantized_all_the_same(void **state)
{
    net n;

    build(&n, *state, "ort");
    see(&n, 0.25, 0.02f);
    decide_by(&n, 800);
    assert_null(reason(&n.p, n.a));
    assert_null(reason(&n.p, n.b));
    close_net(&n);
}

/* What the last steps read is never rounded: it costs next to nothing. */
static void the_last_layer_is_float(void **state)
{
    net n;

    build(&n, *state, "ort");
    see(&n, 0.25, 0.02f);
    assert_true(is_active(&n.p, n.last));
    decide(&n);
    assert_non_null(reason(&n.p, n.last));
    assert_true(is_off(&n, n.last));
    assert_int_equal(n.p.m->points[oct_qmap_at(n.p.m, n.last->producer, 1)].state, OCT_QSTATE_OFF);
    assert_true(is_off(&n, n.t)); /* nobody but it read this */
    close_net(&n);
}

static void a_channel_that_would_be_lost_keeps_its_layer_float(void **state)
{
    net n;
    int32_t input;

    build(&n, *state, "ort");
    see(&n, 0.25, 0.02f);
    set_variance(&n, n.a, 2, 4e-4);
    decide(&n);
    assert_non_null(strstr(reason(&n.p, n.a), "in front of SiLU"));
    assert_true(is_off(&n, n.a) && is_off(&n, n.s->producer->in[1]));
    assert_true(is_active(&n.p, n.s)); /* b still reads integers */
    assert_null(reason(&n.p, n.b));
    input = oct_qmap_at(n.p.m, n.a->producer, 0);
    assert_ptr_equal(n.p.m->points[input].node, n.a->producer); /* reads the picture as it is */
    assert_int_equal(n.p.m->points[input].state, OCT_QSTATE_OFF);
    assert_true(is_off(&n, n.x));
    close_net(&n);
}

/* A constant carries nothing that could be lost. */
static void dead_channels_do_not_count(void **state)
{
    net n;

    build(&n, *state, "ort");
    see(&n, 0.25, 0.02f);
    set_variance(&n, n.a, 2, 0);
    decide(&n);
    assert_null(reason(&n.p, n.a));
    close_net(&n);
}

/* The input of b is too coarse for what b computes, though what follows b is not. */
static void decide_with_coarse_input(net *n, fixture *f, const char *target)
{
    const float coarse = 1.0f;
    const int32_t zero = 128;

    build(n, f, target);
    see(n, 0.25, 0.02f);
    assert_ok(f->ctx, oct_qpoint_set(n->p.m, n->p.m->of_value[n->s->id], &coarse, &zero, 1));
    decide(n);
}

static void coarse_inputs_keep_depthwise_layers_float(void **state)
{
    net n;

    decide_with_coarse_input(&n, *state, "ort");
    assert_null(reason(&n.p, n.a));
    assert_non_null(reason(&n.p, n.b));
    assert_true(is_off(&n, n.b));
    assert_true(is_off(&n, n.s)); /* a's own integers stay: */
    assert_true(is_active(&n.p, n.a));
    close_net(&n);
}

/* The same for runtimes that want no point behind a layer: only what comes in counts. */
static void coarse_inputs_count_where_results_do_not(void **state)
{
    net n;

    decide_with_coarse_input(&n, *state, "tensorrt");
    assert_null(reason(&n.p, n.a));
    assert_non_null(strstr(reason(&n.p, n.b), "too coarse"));
    assert_null(reason(&n.p, n.last));
    assert_true(is_off(&n, n.s) && is_active(&n.p, n.t));
    close_net(&n);
}

/* Pictures of three channels are faster in float. */
static void the_first_layer_of_a_picture_is_float(void **state)
{
    net n;

    start(&n.p, *state, "ort");
    n.a = layer(&n.p, "a", image(&n.p, 3), 4);
    n.b = layer(&n.p, "b", emit(n.p.f, &oct_op_relu, n.a, NULL), 4);
    output(&n.p, layer(&n.p, "c", emit(n.p.f, &oct_op_relu, n.b, NULL), 4));
    place(&n.p);
    assert_ok(n.p.f->ctx, oct_calibration_new(n.p.f->g, &n.c));
    see(&n, 0.25, 0.02f);
    decide(&n);
    assert_non_null(reason(&n.p, n.a));
    close_net(&n);
}

static void other_targets_are_left_alone(void **state)
{
    net n;

    build(&n, *state, "octet");
    assert_ok(n.p.f->ctx, oct_decide_watch(n.p.m, n.p.t, n.c));
    assert_int_equal(n.c->n, 0);
    decide(&n);
    assert_true(is_active(&n.p, n.s));
    close_net(&n);
}

/* SiLU maps all that is far below zero to nearly nothing: a range need not reach there. */
static void ranges_are_chosen_for_what_follows(void **state)
{
    enum { N = 4000 };
    fixture *f = *state;
    const oct_qspec spec = {.bits = 8, .axis = OCT_QSPEC_PER_TENSOR};
    float data[N], low[2], high[2];
    net n;

    for (int i = 0; i < N; i++)
        data[i] = -40.0f + 50.0f * (float)i / N;
    build(&n, f, "ort");
    for (int k = 0; k < 2; k++) {
        oct_observer_options o;
        oct_observer *seen = NULL;

        oct_observer_options_init(&o);
        o.kind = "mse";
        if (k) assert_ok(f->ctx, oct_decide_observer(n.p.m, n.p.m->of_value[n.a->id], &o));
        assert_ok(f->ctx, oct_observer_new(f->ctx, &o, 1, &seen));
        oct_observer_see(seen, &(oct_sight){.data = data, .pixels = N, .channels = 1, .pitch = 1});
        assert_ok(f->ctx, oct_observer_solve(seen, &spec, &low[k], &high[k]));
        oct_observer_free(seen);
    }
    assert_true(low[0] < -35 && high[0] > 8);
    assert_true(low[1] > -15 && low[1] < -4);
    assert_true(high[1] > 9 && high[1] < 11);
    close_net(&n);
}

/* What SiLU makes is held up to 10: its operand's codes do not go on to 60. */
static void ranges_end_where_results_do(void **state)
{
    enum { N = 4000 };
    fixture *f = *state;
    oct_quantize_options o;
    const oct_qpoint *p;
    float low, high;
    net n;

    oct_quantize_options_init(&o);
    build(&n, f, "ort");
    assert_ok(f->ctx, oct_solve_watch(n.p.m, n.p.t, &o, n.c));
    for (int32_t i = 0; i < n.c->n; i++) {
        const oct_watch *w = &n.c->watch[i];
        float data[N];

        for (int k = 0; k < N; k++)
            data[k] = (w->value == n.a ? 60.0f : 10.0f) * (float)(k + 1) / N;
        if (w->range)
            oct_observer_see(w->range,
                             &(oct_sight){.data = data, .pixels = N, .channels = 1, .pitch = 1});
    }
    assert_ok(f->ctx, oct_solve_activations(n.p.m, n.c));
    p = at(&n.p, n.a);
    oct_qspec_range(&p->spec, p->scale[0], p->zero[0], &low, &high);
    assert_true(high > 9 && high < 11);
    close_net(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fine_steps_are_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_are_float_where_that_is_faster, setup, teardown),
        cmocka_unit_test_setup_teardown(a_network_that_cannot_gain_is_quantized_all_the_same, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_last_layer_is_float, setup, teardown),
        cmocka_unit_test_setup_teardown(a_channel_that_would_be_lost_keeps_its_layer_float, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(dead_channels_do_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(coarse_inputs_keep_depthwise_layers_float, setup, teardown),
        cmocka_unit_test_setup_teardown(coarse_inputs_count_where_results_do_not, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_layer_of_a_picture_is_float, setup, teardown),
        cmocka_unit_test_setup_teardown(other_targets_are_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_are_chosen_for_what_follows, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_end_where_results_do, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
