/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions stay float where a runtime wants one scale right behind each of them. */
#include "tests/unit/place_net.h"

#include "quant/fallback/fallback.h"
#include "quant/solve/solve.h"

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

    assert_ok(n->p.f->ctx, oct_fallback_watch(n->p.m, n->p.t, n->c));
    n->c->images = 1;
    for (int32_t i = 0; i < n->c->n; i++)
        for (int64_t k = 0; k < n->c->watch[i].channels; k++)
            n->c->watch[i].square[k] = variance;
    for (int32_t i = 0; i < n->p.m->n_points; i++)
        if (n->p.m->points[i].role == OCT_QROLE_ACT)
            assert_ok(n->p.f->ctx, oct_qpoint_set(n->p.m, i, &scale, &zero, 1, "test"));
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
    assert_ok(n->p.f->ctx, oct_fallback(n->p.m, &t, n->c));
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
    assert_ok(n->p.f->ctx, oct_fallback(n->p.m, &t, n->c));
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

/* Only what is moved to an output is called one. */
static void outputs_are_called_so(void **state)
{
    net n = {.c = NULL};

    start(&n.p, *state, "ort");
    n.x = image(&n.p, 8);
    n.a = layer(&n.p, "a", n.x, 8);
    n.last = layer(&n.p, "last", n.a, 8);
    n.b = layer(&n.p, "b", n.a, 8);
    output(&n.p, reshape(n.p.f, n.last, 2, (int64_t[]){1, 512}));
    output(&n.p, emit(n.p.f, &oct_op_exp, n.b, NULL));
    place(&n.p);
    assert_ok(n.p.f->ctx, oct_calibration_new(n.p.f->g, &n.c));
    see(&n, 0.25, 0.02f);
    decide(&n);
    assert_string_equal(reason(&n.p, n.last),
                        "kept in float: outputs of the network are not rounded");
    assert_string_equal(reason(&n.p, n.b), "kept in float: nothing reads its result as integers");
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
    assert_non_null(strstr(reason(&n.p, n.a), "before SiLU"));
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
    assert_ok(f->ctx,
              oct_qpoint_set(n->p.m, n->p.m->of_value[n->s->id], &coarse, &zero, 1, "test"));
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
    assert_ok(n.p.f->ctx, oct_fallback_watch(n.p.m, n.p.t, n.c));
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
        if (k) assert_ok(f->ctx, oct_preact_observer(n.p.m, n.p.m->of_value[n.a->id], &o));
        assert_ok(f->ctx, oct_observer_new(f->ctx, &o, 1, &seen));
        oct_observer_see(seen,
                         &(oct_value_view){.data = data, .pixels = N, .channels = 1, .pitch = 1});
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
            oct_observer_see(
                w->range, &(oct_value_view){.data = data, .pixels = N, .channels = 1, .pitch = 1});
    }
    assert_ok(f->ctx, oct_solve_activations(n.p.m, n.c));
    p = at(&n.p, n.a);
    oct_qspec_range(&p->spec, p->scale[0], p->zero[0], &low, &high);
    assert_true(high > 9 && high < 11);
    close_net(&n);
}

/* --- a Concat with a scale of its own --- */

typedef struct joined {
    net n;
    oct_value *coarse, *fine, *both, *other;
} joined;

static void set_scale(const net *n, const oct_value *v, float scale)
{
    assert_ok(n->p.f->ctx,
              oct_qpoint_set(n->p.m, n->p.m->of_value[v->id], &scale, &(int32_t){128}, 1, "test"));
}

/* Both together -> a layer; the fine one -> another layer */
static void build_joined(joined *k, fixture *f, float coarse, float fine, float both)
{
    placed *p = &k->n.p;
    oct_value *x;

    start(p, f, "ort");
    x = image(p, 8);
    k->coarse = emit(f, &oct_op_relu, layer(p, "a", x, 8), NULL);
    k->fine = emit(f, &oct_op_relu, layer(p, "b", x, 8), NULL);
    k->both = join(p, k->coarse, k->fine, 1);
    k->other = layer(p, "other", k->fine, 8);
    output(p, layer(p, "d", emit(f, &oct_op_relu, layer(p, "c", k->both, 8), NULL), 8));
    output(p, layer(p, "e", emit(f, &oct_op_relu, k->other, NULL), 8));
    place(p);
    assert_ok(f->ctx, oct_calibration_new(f->g, &k->n.c));
    see(&k->n, 25, 0.01f);
    set_scale(&k->n, k->coarse, coarse);
    set_scale(&k->n, k->fine, fine);
    set_scale(&k->n, k->both, both);
}

static float scale_of(const joined *k, const oct_value *v)
{
    const int32_t at_ = k->n.p.m->of_value[v->id];

    return oct_qmap_root(k->n.p.m, at_)->scale[0];
}

static void what_is_joined_gets_one_scale(void **state)
{
    joined k;

    build_joined(&k, *state, 0.02f, 0.015f, 0.02f);
    decide(&k.n);
    assert_true(is_active(&k.n.p, k.both));
    assert_true(scale_of(&k, k.fine) == 0.02f && scale_of(&k, k.both) == 0.02f);
    close_net(&k.n);
}

/* The result takes the step of an operand that is coarser. */
static void results_are_as_coarse_as_their_operands(void **state)
{
    joined k;

    build_joined(&k, *state, 0.02f, 0.015f, 0.018f);
    decide(&k.n);
    assert_true(scale_of(&k, k.coarse) == 0.02f && scale_of(&k, k.both) == 0.02f);
    assert_true(scale_of(&k, k.fine) == 0.02f);
    close_net(&k.n);
}

/* Another layer reads the fine one; it may lose a channel with larger steps. */
static void who_else_reads_has_a_say(void **state)
{
    for (int loses = 0; loses < 2; loses++) {
        joined k;

        restart(*state);
        build_joined(&k, *state, 0.1f, 0.01f, 0.1f);
        if (loses) set_variance(&k.n, k.other, 3, 0.5);
        decide(&k.n);
        assert_true(is_active(&k.n.p, k.both) && !reason(&k.n.p, k.other));
        assert_true(scale_of(&k, k.fine) == (loses ? 0.01f : 0.1f));
        close_net(&k.n);
    }
}

/* --- a preset --- */

/* Without zero points: codes have a sign where numbers do. */
static void signs_follow_what_was_seen(void **state)
{
    enum { N = 1000 };
    fixture *f = *state;
    const oct_qpoint *p;
    placed net_;
    oct_calibration *c = NULL;
    oct_value *x, *y;

    start(&net_, f, "octet");
    net_.o.preset = "performance";
    x = image(&net_, 8);
    y = emit(f, &oct_op_relu, layer(&net_, "a", x, 8), NULL);
    output(&net_, emit(f, &oct_op_exp, layer(&net_, "b", y, 8), NULL));
    place(&net_);
    assert_ok(f->ctx, oct_calibration_new(f->g, &c));
    assert_ok(f->ctx, oct_solve_watch(net_.m, net_.t, &net_.o, c));
    for (int32_t i = 0; i < c->n; i++) {
        float data[N];

        for (int k = 0; k < N; k++)
            data[k] = (float)(c->watch[i].value == x ? 2 * k - N : k) / N;
        if (c->watch[i].range)
            oct_observer_see(
                c->watch[i].range,
                &(oct_value_view){.data = data, .pixels = N / 8, .channels = 8, .pitch = 8});
    }
    assert_ok(f->ctx, oct_solve_activations(net_.m, c));
    p = at(&net_, x);
    assert_true(p->spec.is_signed && p->spec.is_symmetric && p->zero[0] == 0);
    p = at(&net_, y);
    assert_true(!p->spec.is_signed && p->zero[0] == 0);
    oct_calibration_free(c);
    finish(&net_);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fine_steps_are_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_are_float_where_that_is_faster, setup, teardown),
        cmocka_unit_test_setup_teardown(a_network_that_cannot_gain_is_quantized_all_the_same, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_last_layer_is_float, setup, teardown),
        cmocka_unit_test_setup_teardown(outputs_are_called_so, setup, teardown),
        cmocka_unit_test_setup_teardown(a_channel_that_would_be_lost_keeps_its_layer_float, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(dead_channels_do_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(coarse_inputs_keep_depthwise_layers_float, setup, teardown),
        cmocka_unit_test_setup_teardown(coarse_inputs_count_where_results_do_not, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_layer_of_a_picture_is_float, setup, teardown),
        cmocka_unit_test_setup_teardown(other_targets_are_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_are_chosen_for_what_follows, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_end_where_results_do, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_joined_gets_one_scale, setup, teardown),
        cmocka_unit_test_setup_teardown(results_are_as_coarse_as_their_operands, setup, teardown),
        cmocka_unit_test_setup_teardown(who_else_reads_has_a_say, setup, teardown),
        cmocka_unit_test_setup_teardown(signs_follow_what_was_seen, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
