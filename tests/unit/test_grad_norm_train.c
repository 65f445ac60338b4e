/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormTrain and the gradients of BatchNormalization. */
#include "op/act.h"
#include "tests/unit/grad_case.h"

static void frozen_statistics(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(batch_normalization, "2x3x4x5 3 3 3 +3", "epsilon=.001"),
        GRAD_CASE(batch_normalization, "2x3x4x5 3 3 =3 +3", NULL),
        GRAD_CASE(batch_normalization, "4x3 3 3 3 +3", NULL),
        GRAD_CASE(batch_normalization, "2x3x7 =3 3 3 +3", "epsilon=.1"),
        GRAD_CASE(batch_normalization, "1x2x2x3x2 2 2 2 +2", NULL),
        GRAD_CASE(batch_normalization, "5 1 1 1 +1", NULL),
    };

    (void)state;
    check_grads(cases);
}

static void statistics_of_the_batch(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(batch_normalization, "2x3x4x5 3 3 =3 =3", "training_mode=1 epsilon=.001"),
        GRAD_CASE(batch_normalization, "4x3 3 3 =3 =3", "training_mode=1"),
        {&oct_op_batch_normalization, "2x2x5 2 2 =2 =2", "training_mode=1 loss:1", 3, 0, 0},
        {&oct_op_batch_norm_train, "2x3x4x5 3 3 =3 =3", "epsilon=.001 loss:1", 5, 0, 0},
        {&oct_op_batch_norm_train, "4x3 3 3 =3 =3", "loss:1", 5, 0, 0},
        {&oct_op_batch_norm_train, "2x3x5 3 3 =3 =3", "epsilon=.1 loss:1", 5, 0, 0},
        {&oct_op_batch_norm_train, "2x2x2x3x2 2 2 =2 =2", "loss:1", 5, 0, 0},
    };

    (void)state;
    check_grads(cases);
}

static void activations_follow(void **state)
{
    static const oct_act acts[] = {{OCT_ACT_RELU, 0, 0},
                                   {OCT_ACT_CLIP, -.5f, .75f},
                                   {OCT_ACT_LEAKY, .1f, 0},
                                   {OCT_ACT_SWISH, 1, 0},
                                   {OCT_ACT_HARD_SWISH, 0, 0},
                                   {OCT_ACT_SIGMOID, 0, 0},
                                   {OCT_ACT_HARD_SIGMOID, .25f, .5f},
                                   {OCT_ACT_TANH, 0, 0},
                                   {OCT_ACT_GELU, 0, 0},
                                   {OCT_ACT_GELU_TANH, 0, 0},
                                   {OCT_ACT_ELU, .5f, 0},
                                   {OCT_ACT_MISH, 0, 0}};

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(acts); i++) {
        char attrs[96];
        const grad_case c = {&oct_op_batch_norm_train, "2x3x4x3 3 3 =3 =3", attrs, 5, 0, 0};

        (void)snprintf(attrs, sizeof(attrs), "loss:1 act=%d act_a=%g act_b=%g", (int)acts[i].kind,
                       (double)acts[i].a, (double)acts[i].b);
        check_grad(&c, 11);
    }
}

/* Values in f64 are those in f32, but for rounding. */
static void activations_have_the_same_values(void **state)
{
    (void)state;
    for (int kind = 0; kind < OCT_ACT_COUNT; kind++)
        for (float x = -9; x < 9; x += .37f) {
            const oct_act act = {(oct_act_kind)kind, .3f, .8f};
            const double want = (double)oct_act_apply(&act, x);

            assert_true(fabs(oct_act_value(&act, (double)x) - want) < 2e-6 * (1 + fabs(want)));
        }
}

static oct_node *emit_norm(fixture *f, const int64_t *dim, oct_tensor **in)
{
    const int64_t c = dim[1];
    const double ones[] = {1, 1, 1}, zeros[] = {0, 0, 0};
    oct_value *v[5];

    v[0] = graph_input(f, "x", OCT_DTYPE_F32, 4, dim);
    for (int i = 1; i < 5; i++) {
        v[i] = graph_input(f, NULL, OCT_DTYPE_F32, 1, &c);
        if (in) in[i] = tensor_of(f->ctx, OCT_DTYPE_F32, 1, &c, i == 1 || i == 4 ? ones : zeros);
    }
    return oct_emit_node(&f->b, &oct_op_batch_norm_train, v, 5, 5);
}

/* PyTorch: x = 0..7 as [2,1,2,2], eps 1e-3, momentum .03 of the new value. */
static void check_values_of_pytorch(void **state)
{
    static const double x[] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const double y[] = {-1.52737977, -1.09098555, -.65459133};
    const int64_t dim[] = {2, 1, 2, 2};
    fixture *f = *state;
    oct_tensor *in[5], *out[5] = {0};
    oct_node *n = emit_norm(f, dim, in);

    in[0] = tensor_of(f->ctx, OCT_DTYPE_F32, 4, dim, x);
    oct_emit_f32(&f->b, n, "epsilon", 1e-3f);
    oct_emit_f32(&f->b, n, "momentum", .97f);
    assert_non_null(oct_emitted(&f->b, n));
    for (int i = 0; i < 5; i++)
        assert_ok(f->ctx, oct_graph_add_output(f->g, n->out[i]));
    assert_ok(f->ctx, oct_graph_eval(f->g, in, out, NULL));
    for (int i = 0; i < 3; i++)
        assert_true(fabs(oct_tensor_get_f64(out[0], i) - y[i]) < 1e-6);
    assert_true(fabs(oct_tensor_get_f64(out[1], 0) - .105) < 1e-6);
    assert_true(fabs(oct_tensor_get_f64(out[2], 0) - 1.15) < 1e-6);
    assert_true(fabs(oct_tensor_get_f64(out[3], 0) - 3.5) < 1e-6);
    assert_true(fabs(oct_tensor_get_f64(out[4], 0) - 1 / sqrt(5.251)) < 1e-6);
    for (int i = 0; i < 5; i++) {
        oct_tensor_unref(in[i]);
        oct_tensor_unref(out[i]);
    }
}

static void one_element_has_no_variance(void **state)
{
    fixture *f = *state;

    assert_fails(f->ctx, oct_node_infer(emit_norm(f, (int64_t[]){1, 3, 1, 1}, NULL)), OCT_ERR_SHAPE,
                 "variance is not defined");
    assert_ok(f->ctx, oct_node_infer(emit_norm(f, (int64_t[]){2, 3, 1, 1}, NULL)));
}

/* Dozens of thousands of elements for each channel, far from zero: f32 against f64. */
static void larger_shapes(void **state)
{
    static const grad_case c = {&oct_op_batch_norm_train,
                                "4x4x80x80 4 4 =4 =4",
                                "loss:1 epsilon=.001 act=4 act_a=1",
                                5,
                                5,
                                9};
    oct_tensor *got[GRAD_MAX_IN + 1] = {0};
    grad_test t = {.f = *state, .c = &c, .dtype = OCT_DTYPE_F64};

    grad_build(&t, 5, got);
    grad_compare_f32(&c, 5, got);
    grad_free(&t, got);
}

static void statistics_are_not_differentiated(void **state)
{
    fixture *f = *state;
    oct_node *n = emit_norm(f, (int64_t[]){2, 1, 2, 2}, NULL);
    oct_value *loss, *dx;

    assert_non_null(oct_emitted(&f->b, n));
    loss = oct_emit(&f->b, &oct_op_mul, n->out[3], n->out[4], NULL);
    assert_fails(f->ctx, oct_grad(f->g, loss, &n->in[0], 1, &dx), OCT_ERR_UNSUPPORTED,
                 "statistics");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frozen_statistics, setup, teardown),
        cmocka_unit_test_setup_teardown(statistics_of_the_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(activations_follow, setup, teardown),
        cmocka_unit_test_setup_teardown(activations_have_the_same_values, setup, teardown),
        cmocka_unit_test_setup_teardown(check_values_of_pytorch, setup, teardown),
        cmocka_unit_test_setup_teardown(one_element_has_no_variance, setup, teardown),
        cmocka_unit_test_setup_teardown(larger_shapes, setup, teardown),
        cmocka_unit_test_setup_teardown(statistics_are_not_differentiated, setup, teardown),
    };

    return run_test_group(tests);
}
