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
        cmocka_unit_test_setup_teardown(slopes, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_activation_is_refused, setup, teardown),
    };

    return run_test_group(tests);
}
