/* SPDX-License-Identifier: Apache-2.0 */
/* Scales that are shared because data is moved or joined, and too coarse for some who read it. */
#include "tests/unit/place_net.h"

#include <math.h>

#include "quant/fallback/fallback.h"
#include "quant/solve/solve.h"

#define LOUD  100.0f /* ranges, of 255 steps */
#define QUIET 1.0f

typedef struct net {
    placed p;
    oct_calibration *c;
} net;

static void watch(net *n)
{
    place(&n->p);
    assert_ok(n->p.f->ctx, oct_calibration_new(n->p.f->g, &n->c));
    assert_ok(n->p.f->ctx, oct_solve_watch(n->p.m, n->p.t, &n->p.o, n->c));
    assert_ok(n->p.f->ctx, oct_fallback_watch(n->p.m, n->p.t, n->c));
    n->c->images = 1;
}

/* Numbers from 0 to `top`. */
static void show(const net *n, const oct_value *v, float top)
{
    enum { N = 4096 };
    const oct_watch *w = oct_calibration_of(n->c, v);
    float data[N];

    for (int i = 0; i < N; i++)
        data[i] = top * (float)i / (N - 1);
    assert_non_null(w);
    oct_observer_see(w->range,
                     &(oct_value_view){.data = data, .pixels = N, .channels = 1, .pitch = 1});
}

/* One channel of a layer's result varies as if what it reads had this deviation. */
static void vary_channel(const net *n, const oct_value *y, int64_t channel, double deviation)
{
    const oct_tensor *w = y->producer->in[1]->data;
    const int64_t span = oct_type_span(&w->type, 1, w->type.rank);
    const float *row = (const float *)w->data + channel * span;
    double sum = 0;

    for (int64_t i = 0; i < span; i++)
        sum += (double)row[i] * (double)row[i];
    oct_calibration_of(n->c, y)->square[channel] = sum * deviation * deviation;
}

static void vary(const net *n, const oct_value *y, double deviation)
{
    for (int64_t i = 0; i < y->type.dim[1]; i++)
        vary_channel(n, y, i, deviation);
}

static void decide(net *n)
{
    assert_ok(n->p.f->ctx, oct_solve_activations(n->p.m, n->c));
    assert_ok(n->p.f->ctx, oct_fallback(n->p.m, n->p.t, n->c));
}

static void close_net(net *n)
{
    oct_calibration_free(n->c);
    finish(&n->p);
}

static bool is_off(const net *n, const oct_value *v)
{
    return at(&n->p, v)->state == OCT_QSTATE_OFF;
}

/* The step by which the layer of this result reads, if it alone does so; else 0. */
static float own_step(const net *n, const oct_value *y)
{
    const int32_t k = oct_qmap_at(n->p.m, y->producer, 0);
    const oct_qpoint *p = &n->p.m->points[k];

    return p->node == y->producer && p->state == OCT_QSTATE_ACTIVE ? p->scale[0] : 0;
}

static bool is_near(float a, float b)
{
    return fabsf(a - b) < 0.2f * b;
}

/* --- a MaxPool --- */

typedef struct pooled {
    net n;
    oct_value *a, *source, *pool, *thin, *dense;
} pooled;

/* a -> Relu -> MaxPool -> a depthwise layer, and a dense one */
static void build_pooled(pooled *k, fixture *f, const char *target)
{
    placed *p = &k->n.p;

    start(p, f, target);
    k->a = layer(p, "a", image(p, 3), 4);
    k->source = emit(f, &oct_op_relu, k->a, NULL);
    k->pool = pool(p, k->source);
    k->thin = layer(p, "thin", k->pool, 0);
    k->dense = layer(p, "dense", k->pool, 4);
    output(p, emit(f, &oct_op_exp, k->thin, NULL));
    output(p, emit(f, &oct_op_exp, k->dense, NULL));
    watch(&k->n);
    show(&k->n, k->a->producer->in[0], LOUD);
    show(&k->n, k->source, LOUD);
    vary(&k->n, k->a, LOUD / 10);
    vary(&k->n, k->thin, LOUD / 10);
    vary(&k->n, k->dense, LOUD / 10);
}

static void a_float_layer_behind_a_pool_reads_unrounded(fixture *f, const char *target)
{
    pooled k;

    build_pooled(&k, f, target);
    vary_channel(&k.n, k.thin, 0, QUIET / 10);
    decide(&k.n);
    assert_true(is_off(&k.n, k.source) && is_off(&k.n, k.pool));
    assert_non_null(strstr(at(&k.n.p, k.source)->reason, "too coarse"));
    assert_non_null(strstr(reason(&k.n.p, k.thin), "too coarse"));
    assert_null(reason(&k.n.p, k.dense)); /* stands it, and rounds for itself */
    assert_true(is_near(own_step(&k.n, k.dense), LOUD / 255 * (k.n.p.t->act.is_symmetric ? 2 : 1)));
    close_net(&k.n);
}

static void openvino_rounds_behind_a_pool(void **state)
{
    a_float_layer_behind_a_pool_reads_unrounded(*state, "openvino");
}

static void tensorrt_rounds_behind_a_pool(void **state)
{
    a_float_layer_behind_a_pool_reads_unrounded(*state, "tensorrt");
}

static void a_scale_that_all_stand_is_shared(void **state)
{
    pooled k;

    build_pooled(&k, *state, "openvino");
    decide(&k.n);
    assert_true(is_active(&k.n.p, k.source));
    assert_int_equal(at(&k.n.p, k.pool)->state, OCT_QSTATE_DOMINATED);
    assert_null(reason(&k.n.p, k.thin));
    assert_true(own_step(&k.n, k.dense) == 0);
    close_net(&k.n);
}

/* --- a Concat --- */

typedef struct joined {
    net n;
    oct_value *loud, *quiet, *both, *alone, *sum, *other;
} joined;

/* Both together -> a layer; the quiet one -> a layer, and a sum that a layer reads */
static void build_joined(joined *k, fixture *f)
{
    placed *p = &k->n.p;
    oct_value *x, *a, *b, *c, *behind;

    start(p, f, "openvino");
    x = image(p, 3);
    a = layer(p, "a", x, 4);
    b = layer(p, "b", x, 4);
    c = layer(p, "c", x, 4);
    k->loud = emit(f, &oct_op_relu, a, NULL);
    k->quiet = emit(f, &oct_op_relu, b, NULL);
    k->other = emit(f, &oct_op_relu, c, NULL);
    k->both = layer(p, "both", join(p, k->loud, k->quiet, 1), 4);
    k->alone = layer(p, "alone", k->quiet, 4);
    k->sum = emit(f, &oct_op_add, k->quiet, k->other);
    behind = layer(p, "behind", k->sum, 4);
    output(p, emit(f, &oct_op_exp, k->both, NULL));
    output(p, emit(f, &oct_op_exp, k->alone, NULL));
    output(p, emit(f, &oct_op_exp, behind, NULL));
    watch(&k->n);
    show(&k->n, x, QUIET);
    show(&k->n, k->loud, LOUD);
    show(&k->n, k->quiet, QUIET);
    show(&k->n, k->other, QUIET);
    show(&k->n, k->sum, QUIET);
    for (int i = 0; i < 3; i++)
        vary(&k->n, (oct_value *[]){a, b, c}[i], QUIET);
    vary(&k->n, k->both, LOUD);
    vary(&k->n, k->alone, QUIET);
    vary(&k->n, behind, QUIET);
}

static void layers_have_the_scale_of_what_they_read(void **state)
{
    joined k;

    build_joined(&k, *state);
    decide(&k.n);
    assert_true(is_off(&k.n, k.loud) && is_off(&k.n, k.quiet));
    assert_null(reason(&k.n.p, k.both));
    assert_null(reason(&k.n.p, k.alone)); /* would be float with the scale of both */
    assert_true(is_near(own_step(&k.n, k.both), LOUD / 255));
    assert_true(is_near(own_step(&k.n, k.alone), QUIET / 255));
    close_net(&k.n);
}

/* Rounding its other operand would gain nothing. */
static void sums_of_what_is_not_rounded_are_float(void **state)
{
    joined k;

    build_joined(&k, *state);
    assert_true(is_active(&k.n.p, k.other));
    decide(&k.n);
    assert_non_null(reason(&k.n.p, k.sum));
    assert_true(is_off(&k.n, k.other));
    assert_true(is_active(&k.n.p, k.sum)); /* the layer behind reads integers */
    close_net(&k.n);
}

/* --- scales that are handed on --- */

/* Where readers round for themselves, one that does not any more takes no scale with it. */
static void the_scale_of_a_float_layer_is_handed_on(void **state)
{
    fixture *f = *state;
    oct_value *x, *thin, *dense;
    const oct_qpoint *p;
    net n;

    start(&n.p, f, "tensorrt");
    x = image(&n.p, 4);
    thin = layer(&n.p, "thin", x, 0);
    dense = layer(&n.p, "dense", x, 4);
    output(&n.p, emit(f, &oct_op_exp, x, NULL)); /* wants floats */
    output(&n.p, emit(f, &oct_op_exp, thin, NULL));
    output(&n.p, emit(f, &oct_op_exp, dense, NULL));
    watch(&n);
    show(&n, x, LOUD);
    vary(&n, thin, QUIET / 10);
    vary(&n, dense, LOUD / 10);
    decide(&n);
    assert_non_null(reason(&n.p, thin));
    assert_null(reason(&n.p, dense));
    p = &n.p.m->points[oct_qmap_at(n.p.m, dense->producer, 0)];
    assert_int_equal(oct_qmap_root(n.p.m, (int32_t)(p - n.p.m->points))->state, OCT_QSTATE_ACTIVE);
    assert_true(is_near(own_step(&n, dense), 2 * LOUD / 255));
    close_net(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(openvino_rounds_behind_a_pool, setup, teardown),
        cmocka_unit_test_setup_teardown(tensorrt_rounds_behind_a_pool, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scale_that_all_stand_is_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_have_the_scale_of_what_they_read, setup, teardown),
        cmocka_unit_test_setup_teardown(sums_of_what_is_not_rounded_are_float, setup, teardown),
        cmocka_unit_test_setup_teardown(the_scale_of_a_float_layer_is_handed_on, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
