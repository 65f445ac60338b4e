/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of elementwise operators: activations, arithmetic, unary functions. */
#include "op/grad/act_grad.h"
#include "tests/unit/grad_case.h"

static void activations(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(relu, "AxBxC", NULL),
        GRAD_CASE(leaky_relu, "AxB", "alpha=0.2"),
        GRAD_CASE(elu, "AxBxC", "alpha=1.3"),
        GRAD_CASE(selu, "AxBxC", "alpha=1.5 gamma=1.1"),
        GRAD_CASE(celu, "AxBxC", "alpha=0.7"),
        GRAD_CASE(sigmoid, "AxBxC", NULL),
        GRAD_CASE(tanh, "AxBxC", NULL),
        GRAD_CASE(hard_sigmoid, "AxBxC", "alpha=0.4 beta=0.3"),
        GRAD_CASE_IN(hard_swish, "4x6", -5, 5),
        GRAD_CASE(swish, "AxBxC", NULL),
        GRAD_CASE(swish, "AxBxC", "alpha=1.7"),
        GRAD_CASE_IN(mish, "3x5", -6, 6),
        GRAD_CASE_IN(softplus, "3x5", -6, 6),
        GRAD_CASE(softsign, "AxBxC", NULL),
        GRAD_CASE(thresholded_relu, "AxBxC", "alpha=0.6"),
        GRAD_CASE(shrink, "AxBxC", "bias=0.4 lambd=0.7"),
        GRAD_CASE(gelu, "AxBxC", NULL),
        GRAD_CASE(gelu, "AxBxC", "approximate=tanh"),
        GRAD_CASE(ms_gelu, "AxBxC", NULL),
        GRAD_CASE(quick_gelu, "AxBxC", NULL),
        GRAD_CASE(relu, "scalar", NULL),
    };

    (void)state;
    check_grads(cases);
}

static void unary_functions(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(abs, "AxBxC", NULL),      GRAD_CASE(neg, "AxB", NULL),
        GRAD_CASE(sqrt, "+AxB", NULL),      GRAD_CASE(exp, "AxB", NULL),
        GRAD_CASE(log, "+AxB", NULL),       GRAD_CASE(reciprocal, "+AxB", NULL),
        GRAD_CASE(erf, "AxBxC", NULL),      GRAD_CASE(sin, "AxB", NULL),
        GRAD_CASE(cos, "AxB", NULL),        GRAD_CASE_IN(tan, "3x4", -1.2, 1.2),
        GRAD_CASE_IN(asin, "3x4", -.9, .9), GRAD_CASE_IN(acos, "3x4", -.9, .9),
        GRAD_CASE(atan, "AxB", NULL),       GRAD_CASE(sinh, "AxB", NULL),
        GRAD_CASE(cosh, "AxB", NULL),       GRAD_CASE(asinh, "AxB", NULL),
        GRAD_CASE_IN(acosh, "3x4", 1.2, 3), GRAD_CASE_IN(atanh, "3x4", -.9, .9),
        GRAD_CASE(sign, "AxB", NULL),       GRAD_CASE(ceil, "AxB", NULL),
        GRAD_CASE(floor, "AxB", NULL),      GRAD_CASE(round, "AxB", NULL),
        GRAD_CASE(identity, "AxBxC", NULL),
    };

    (void)state;
    check_grads(cases);
}

static void several_operands(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(add, "A~xB~xC~ AxB~xC", NULL),   GRAD_CASE(sub, "B~xC~ AxB~xC", NULL),
        GRAD_CASE(mul, "A~xB~xC~ C~", NULL),       GRAD_CASE(div, "A~xB~ +AxB~", NULL),
        GRAD_CASE(sum, "A~xB~ B~ AxB", NULL),      GRAD_CASE(sum, "AxB", NULL),
        GRAD_CASE(mean, "A~xB~ =AxB~ B", NULL),    GRAD_CASE(max, "A~xB~xC~ B~xC AxB~xC", NULL),
        GRAD_CASE(min, "AxB~ =A~xB scalar", NULL), GRAD_CASE(max, "=A~xB~ AxB =B", NULL),
        GRAD_CASE(mod, "A~xB~ +B~", "fmod=0..1"),  GRAD_CASE(mod, "AxB f:.9", "fmod=1"),
        GRAD_CASE(p_relu, "AxBxC B~xC~", NULL),    GRAD_CASE(p_relu, "AxBxC =Bx1", NULL),
        GRAD_CASE(p_relu, "=AxBxC Bx1", NULL),     GRAD_CASE(where, "bB~xC~ B~xC~ AxB~xC~", NULL),
        GRAD_CASE(where, "bAxB B =AxB", NULL),     GRAD_CASE(pow, "+A~xB +B~", NULL),
        GRAD_CASE(pow, "AxB f:2", NULL),           GRAD_CASE(pow, "AxB f:3", NULL),
        GRAD_CASE(pow, "AxB f:1", NULL),           GRAD_CASE(pow, "AxB f:0", NULL),
        GRAD_CASE(pow, "+AxB f:-.5", NULL),        GRAD_CASE(pow, "AxB i:3", NULL),
        GRAD_CASE(pow, "AxB iB<4", NULL),          GRAD_CASE(pow, "f:0,2 +2", NULL),
        GRAD_CASE(clip, "AxB f:-.7 f:1.1", NULL),  GRAD_CASE(clip, "AxB - f:1.1", NULL),
        GRAD_CASE(clip, "AxB f:.2", NULL),         GRAD_CASE(clip, "AxB", NULL),
    };
    /* Bounds that are trained. */
    static const grad_case bounds[] = {
        {&oct_op_clip, "4x5 scalar +1", NULL, 0, -2, 0},
        {&oct_op_clip, "4x5 +scalar 1", NULL, 0, -2, 0}, /* they cross */
        {&oct_op_clip, "=4x5 scalar +1", NULL, 0, -2, 0},
        {&oct_op_clip, "4x5 - 1", NULL, 0, -2, 2},
        {&oct_op_clip, "4x5 scalar", NULL, 0, -2, 2},
    };

    (void)state;
    check_grads(cases);
    check_grads(bounds);
}

static void reductions(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(reduce_sum, "AxBxC i:1", "keepdims=0..1"),
        GRAD_CASE(reduce_sum, "AxBxC i:0,-1", "keepdims=0..1"),
        GRAD_CASE(reduce_sum, "AxBxC", "keepdims=0..1"),
        GRAD_CASE(reduce_sum, "AxB i:", "noop_with_empty_axes=1"),
        GRAD_CASE(reduce_mean, "AxBxC i:-1,1", "keepdims=0..1"),
        GRAD_CASE(reduce_mean, "AxBxC", "keepdims=0..1"),
        GRAD_CASE(reduce_l1, "AxBxC i:1", "keepdims=0..1"),
        GRAD_CASE(reduce_l1, "AxBxC", "noop_with_empty_axes=1"),
        GRAD_CASE(reduce_l2, "AxBxC i:1,2", "keepdims=0..1"),
        GRAD_CASE(reduce_log_sum, "+AxBxC i:2", "keepdims=0..1"),
        GRAD_CASE(reduce_log_sum_exp, "AxBxC i:0", "keepdims=0..1"),
        GRAD_CASE(reduce_log_sum_exp, "AxBxC", "keepdims=0..1"),
        GRAD_CASE(reduce_max, "AxBxC i:1", "keepdims=0..1"),
        GRAD_CASE(reduce_max, "AxBxC", "keepdims=0..1"),
        GRAD_CASE(reduce_min, "AxBxC i:0,2", "keepdims=0..1"),
        GRAD_CASE(reduce_prod, "AxBxC i:1", "keepdims=0..1"),
        GRAD_CASE(reduce_prod, "AxBxC i:0,2", "keepdims=0..1"),
        GRAD_CASE(reduce_sum_square, "AxBxC i:1", "keepdims=0..1"),
        GRAD_CASE(softmax, "AxBxC", "axis=-3..2"),
        GRAD_CASE(log_softmax, "AxBxC", "axis=-3..2"),
        GRAD_CASE(hardmax, "AxBxC", "axis=-3..2"),
    };

    (void)state;
    check_grads(cases);
}

/* The gradient of sum(op(x)) at these numbers. */
static void check_at(fixture *f, const oct_op *op, int64_t n, const double *x, const double *want)
{
    oct_tensor *t = tensor_of(f->ctx, OCT_DTYPE_F64, 1, &n, x), *got = NULL;
    oct_graph *g = NULL;
    oct_value *v, *y, *dx;
    oct_builder b;
    fixture one = *f;

    assert_ok(f->ctx, oct_graph_new(f->ctx, "at", &g));
    one.g = g;
    b = (oct_builder){.g = g};
    v = graph_input(&one, "x", OCT_DTYPE_F64, 1, &n);
    y = oct_grad_reduce(&b, &oct_op_reduce_sum, oct_emit(&b, op, v, NULL, NULL), (int64_t[]){0}, 1,
                        false);
    assert_ok(f->ctx, b.status);
    assert_ok(f->ctx, oct_grad(g, y, &v, 1, &dx));
    assert_ok(f->ctx, oct_graph_add_output(g, dx));
    assert_ok(f->ctx, oct_graph_eval(g, &t, &got, NULL));
    for (int64_t i = 0; i < n; i++)
        if (fabs(oct_tensor_get_f64(got, i) - want[i]) > 1e-12)
            fail_msg("%s: element %d is %g, want %g", op->name, (int)i, oct_tensor_get_f64(got, i),
                     want[i]);
    oct_tensor_unref(t);
    oct_tensor_unref(got);
    oct_graph_free(g);
}

/* Where differences say nothing: ties, zeros of a product, the norm of nothing. */
static void corners(void **state)
{
    fixture *f = *state;

    check_at(f, &oct_op_reduce_max, 4, (double[]){2, 1, 2, 0}, (double[]){.5, 0, .5, 0});
    check_at(f, &oct_op_reduce_min, 3, (double[]){7, 7, 7}, (double[]){1. / 3, 1. / 3, 1. / 3});
    check_at(f, &oct_op_reduce_prod, 3, (double[]){2, 0, 5}, (double[]){0, 10, 0});
    check_at(f, &oct_op_reduce_prod, 3, (double[]){0, 0, 5}, (double[]){0, 0, 0});
    check_at(f, &oct_op_reduce_l2, 2, (double[]){0, 0}, (double[]){0, 0});
    check_at(f, &oct_op_abs, 2, (double[]){0, -3}, (double[]){0, -1});
    check_at(f, &oct_op_relu, 3, (double[]){0, -3, 2}, (double[]){0, 0, 1});
}

/* The slope of every kind against differences of its value, and at the corners. */
static void slopes(void **state)
{
    static const oct_act kinks[] = {{OCT_ACT_RELU, 0, 0}, {OCT_ACT_HARD_SIGMOID, 1, 0}};

    (void)state;
    for (int k = OCT_ACT_NONE; k < OCT_ACT_COUNT; k++) {
        const oct_act act = {(oct_act_kind)k, .3f, 1.9f};

        for (float x = -4.03f; x < 4; x += .25f) {
            const float h = 1.f / 256;
            const float want = (oct_act_apply(&act, x + h) - oct_act_apply(&act, x - h)) / (2 * h);
            const float got = oct_act_slope_f32(&act, x);

            if (!(fabsf(got - want) < 2e-3f))
                fail_msg("%s at %g: slope %g, want %g", oct_act_name(act.kind), (double)x,
                         (double)got, (double)want);
            assert_true(fabs(oct_act_slope_f64(&act, (double)x) - (double)got) < 1e-5);
        }
    }
    for (size_t i = 0; i < OCT_COUNT(kinks); i++)
        assert_true(oct_act_slope_f32(&kinks[i], 0) == 0);
    assert_true(oct_act_slope_f32(&(oct_act){OCT_ACT_CLIP, 0, 6}, 6) == 1);
    assert_true(oct_act_slope_f32(&(oct_act){OCT_ACT_SWISH, 1, 0}, -200) == 0);
}

/* A float32 value used as float64 by both casts: its gradient is float32 again. */
static void casts(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 0, NULL), *dx;
    oct_value *a = oct_grad_cast(&f->b, x, OCT_DTYPE_F64);
    oct_value *b =
        oct_emit(&f->b, &oct_op_cast_like, x, oct_scalar_of(&f->b, OCT_DTYPE_F64, 0), NULL);
    oct_value *y = oct_emit(&f->b, &oct_op_mul, a, b, NULL);
    oct_tensor *t = tensor_of(f->ctx, OCT_DTYPE_F32, 0, NULL, (double[]){3}), *got = NULL;

    assert_ok(f->ctx, oct_grad(f->g, y, &x, 1, &dx));
    assert_int_equal(dx->type.dtype, OCT_DTYPE_F32);
    assert_ok(f->ctx, oct_graph_add_output(f->g, dx));
    assert_ok(f->ctx, oct_graph_eval(f->g, &t, &got, NULL));
    assert_true(oct_tensor_get_f64(got, 0) == 6);
    oct_tensor_unref(t);
    oct_tensor_unref(got);
}

static void unknown_activation_is_refused(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (int64_t[]){3});
    oct_node *n = oct_emit_node(&f->b, &oct_op_act_grad, (oct_value *[]){x, x}, 2, 1);

    oct_emit_int(&f->b, n, "act", 1000);
    assert_fails(f->ctx, oct_node_infer(n), OCT_ERR_ARG, "activation 1000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(activations, setup, teardown),
        cmocka_unit_test_setup_teardown(unary_functions, setup, teardown),
        cmocka_unit_test_setup_teardown(several_operands, setup, teardown),
        cmocka_unit_test_setup_teardown(reductions, setup, teardown),
        cmocka_unit_test_setup_teardown(corners, setup, teardown),
        cmocka_unit_test_setup_teardown(casts, setup, teardown),
        cmocka_unit_test_setup_teardown(slopes, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_activation_is_refused, setup, teardown),
    };

    return run_test_group(tests);
}
