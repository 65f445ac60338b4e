/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that make, copy or convert data: casts, random numbers, windows, Fourier transforms. */
#include "op_case.h"

static void casts_know_all_numbers(void **state)
{
    fixture *f = *state;
    const double v[] = {1.5, -2.5, 300, 0};
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(4), v);
    oct_node *n = NODE(f, &oct_op_cast, 1, x);

    assert_ok(f->ctx, oct_node_set_int(n, "to", OCT_DTYPE_I64));
    assert_gives(n, DIMS(4), (float[]){1, -2, 300, 0});
    assert_ok(f->ctx, oct_node_set_int(n, "to", OCT_DTYPE_BOOL));
    assert_gives(n, DIMS(4), (float[]){1, 1, 1, 0});
    assert_ok(f->ctx, oct_node_set_int(n, "to", OCT_DTYPE_F16));
    assert_gives(n, DIMS(4), (float[]){1.5f, -2.5f, 300, 0});
    assert_ok(f->ctx, oct_node_set_int(n, "to", OCT_DTYPE_STRING));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "string");
    assert_ok(f->ctx, oct_node_set_int(n, "to", INT64_MAX));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "type");
    assert_gives(NODE(f, &oct_op_cast_like, 1, x, constant(f, OCT_DTYPE_I32, DIMS(1), NULL)),
                 DIMS(4), (float[]){1, -2, 300, 0});
}

static void exponents_round_three_ways(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){3.5, 5});
    oct_node *n = NODE(f, &oct_op_cast, 1, x);

    assert_ok(f->ctx, oct_node_set_int(n, "to", OCT_DTYPE_F8E8M0));
    assert_gives(n, DIMS(2), (float[]){4, 8});
    assert_ok(f->ctx, oct_node_set_str(n, "round_mode", "down"));
    assert_gives(n, DIMS(2), (float[]){2, 4});
    assert_ok(f->ctx, oct_node_set_str(n, "round_mode", "nearest"));
    assert_gives(n, DIMS(2), (float[]){4, 4});
    assert_ok(f->ctx, oct_node_set_str(n, "round_mode", "sideways"));
    assert_refuses(n, OCT_ERR_FORMAT, "sideways");
}

/* Mean and deviation of a result with 1000 elements. */
static void assert_moments(const oct_node *n, double mean, double deviation)
{
    oct_tensor *a = NULL, *b = NULL;
    double sum = 0, squares = 0;

    assert_ok(n->graph->ctx, evaluate(n, &a));
    assert_ok(n->graph->ctx, evaluate(n, &b));
    assert_true(oct_tensor_equal(a, b)); /* the same seed, the same numbers */
    for (int64_t i = 0; i < 1000; i++) {
        const double v = oct_tensor_get_f64(a, i);

        sum += v;
        squares += v * v;
    }
    assert_true(fabs(sum / 1000 - mean) < 0.2 * deviation);
    assert_true(fabs(sqrt(squares / 1000 - sum * sum / 1e6) - deviation) < 0.1 * deviation);
    oct_tensor_unref(a);
    oct_tensor_unref(b);
}

static void random_numbers_are_seeded(void **state)
{
    fixture *f = *state;
    oct_node *n = oct_emit_node(&f->b, &oct_op_random_normal, NULL, 0, 1);
    oct_value *like = constant(f, OCT_DTYPE_F64, DIMS(1000), NULL), *half;
    double p[1000];

    for (int i = 0; i < 1000; i++)
        p[i] = 0.5;
    half = constant(f, OCT_DTYPE_F32, DIMS(1000), p);
    assert_ok(f->ctx, oct_node_set_ints(n, "shape", (int64_t[]){10, 100}, 2));
    assert_ok(f->ctx, oct_node_set_f32(n, "mean", 5));
    assert_moments(n, 5, 1);
    assert_ok(f->ctx, oct_node_set_ints(n, "shape", (int64_t[]){10, -1}, 2));
    assert_refuses(n, OCT_ERR_SHAPE, "dimension 1 is -1");
    n = oct_emit_node(&f->b, &oct_op_random_uniform, NULL, 0, 1);
    assert_ok(f->ctx, oct_node_set_ints(n, "shape", (int64_t[]){1000}, 1));
    assert_moments(n, 0.5, 0.2887);
    assert_moments(NODE(f, &oct_op_random_normal_like, 1, like), 0, 1);
    assert_moments(NODE(f, &oct_op_random_uniform_like, 1, like), 0.5, 0.2887);
    assert_moments(NODE(f, &oct_op_bernoulli, 1, half), 0.5, 0.5);
}

static void classes_are_drawn_by_their_weight(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(1, 3), (double[]){-1000, 1, 1});
    oct_node *n = NODE(f, &oct_op_multinomial, 1, x);

    assert_ok(f->ctx, oct_node_set_int(n, "sample_size", 1000));
    assert_moments(n, 1.5, 0.5);
    assert_ok(f->ctx, oct_node_set_int(n, "sample_size", -1));
    assert_refuses(n, OCT_ERR_SHAPE, "sample_size");
}

static void dropout_drops_only_in_training(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(4), (double[]){1, 2, 3, 4});
    oct_value *ratio = constant(f, OCT_DTYPE_F32, SCALAR, (double[]){0.75});
    oct_value *on = constant(f, OCT_DTYPE_BOOL, SCALAR, (double[]){1});
    oct_node *n = NODE(f, &oct_op_dropout, 2, x, ratio, on);
    oct_tensor *out[2] = {NULL};

    assert_gives(NODE(f, &oct_op_dropout, 1, x, ratio), DIMS(4), (float[]){1, 2, 3, 4});
    assert_ok(f->ctx, oct_node_set_int(n, "seed", 0));
    assert_ok(f->ctx, evaluate(n, out));
    for (int64_t i = 0; i < 4; i++) { /* kept elements grow by 1 / (1 - ratio) */
        const double keep = oct_tensor_get_f64(out[1], i);

        assert_true(oct_tensor_get_f64(out[0], i) == keep * 4 * (double)(i + 1));
    }
    oct_tensor_unref(out[0]);
    oct_tensor_unref(out[1]);
    n = NODE(f, &oct_op_dropout, 1, x, constant(f, OCT_DTYPE_F32, SCALAR, (double[]){1}), on);
    assert_refuses(n, OCT_ERR_ARG, "ratio");
}

static void matrices_of_one_value(void **state)
{
    fixture *f = *state;
    oct_node *eye = NODE(f, &oct_op_eye_like, 1, constant(f, OCT_DTYPE_I32, DIMS(2, 3), NULL));
    oct_node *n = NODE(f, &oct_op_constant_of_shape, 1, INTS(f, 2, 2));
    oct_attr value = {.kind = OCT_ATTR_TENSOR};

    assert_ok(f->ctx, oct_node_set_int(eye, "k", 1));
    assert_gives(eye, DIMS(2, 3), (float[]){0, 1, 0, 0, 0, 1});
    assert_ok(f->ctx, oct_node_set_int(eye, "k", INT64_MIN));
    assert_gives(eye, DIMS(2, 3), (float[]){0, 0, 0, 0, 0, 0});
    assert_gives(n, DIMS(2, 2), (float[]){0, 0, 0, 0});
    assert_ok(f->ctx, oct_tensor_vec_i64(f->ctx, (int64_t[]){7}, 1, &value.t));
    assert_ok(f->ctx, oct_node_set_attr(n, "value", &value));
    oct_tensor_unref(value.t);
    assert_gives(n, DIMS(2, 2), (float[]){7, 7, 7, 7});
    assert_refuses(NODE(f, &oct_op_constant_of_shape, 1, INTS(f, 2, -2)), OCT_ERR_SHAPE, "-2");
    assert_refuses(NODE(f, &oct_op_constant_of_shape, 1, INTS(f, INT64_MAX, INT64_MAX)),
                   OCT_ERR_SHAPE, "too large");
    assert_infers(NODE(f, &oct_op_constant_of_shape, 1, unknown(f, OCT_DTYPE_I64, DIMS(2))),
                  DIMS(-1, -1));
}

static void windows_are_periodic_or_symmetric(void **state)
{
    fixture *f = *state;
    oct_node *n = NODE(f, &oct_op_hann_window, 1, INTS(f, 4));

    assert_gives(n, DIMS(4), (float[]){0, 0.5f, 1, 0.5f});
    assert_ok(f->ctx, oct_node_set_int(n, "periodic", 0));
    assert_gives(n, DIMS(4), (float[]){0, 0.75f, 0.75f, 0});
    assert_gives(NODE(f, &oct_op_hamming_window, 1, INTS(f, 2)), DIMS(2), (float[]){0.0869565f, 1});
    assert_gives(NODE(f, &oct_op_blackman_window, 1, INTS(f, 2)), DIMS(2), (float[]){0, 1});
    assert_refuses(NODE(f, &oct_op_hann_window, 1, INTS(f, -4)), OCT_ERR_SHAPE, "-4");
}

/* Forward and back, for lengths of small factors, primes, and powers of two. */
static void transforms_undo_each_other(void **state)
{
    static const int64_t lengths[] = {1, 2, 7, 8, 12, 67, 100, 134};
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(lengths); i++)
        for (int wide = 0; wide < 2; wide++) {
            const int64_t n = lengths[i];
            const oct_dtype t = wide ? OCT_DTYPE_F64 : OCT_DTYPE_F32;
            oct_value *x = constant(f, t, DIMS(1, n, 2), NULL);
            oct_node *forward = NODE(f, &oct_op_dft, 1, x), *back;
            oct_tensor *y = NULL, *z = NULL;

            assert_ok(f->ctx, evaluate(forward, &y));
            back = NODE(f, &oct_op_dft, 1, oct_value_const(f->g, NULL, y));
            assert_ok(f->ctx, oct_node_set_int(back, "inverse", 1));
            assert_ok(f->ctx, evaluate(back, &z));
            for (int64_t k = 0; k < 2 * n; k++)
                assert_true(fabs(oct_tensor_get_f64(z, k) - (double)k) < (wide ? 1e-9 : 1e-3));
            oct_tensor_unref(z);
        }
}

static void transforms_check_their_operands(void **state)
{
    fixture *f = *state;
    oct_value *real = constant(f, OCT_DTYPE_F32, DIMS(1, 4, 1), (double[]){1, 1, 1, 1});
    oct_value *pair = constant(f, OCT_DTYPE_F32, DIMS(1, 4, 2), NULL);
    oct_node *n = NODE(f, &oct_op_dft, 1, real, NULL, INTS(f, 1));

    assert_ok(f->ctx, oct_node_set_int(n, "onesided", 1));
    assert_gives(n, DIMS(1, 3, 2), (float[]){4, 0, 0, 0, 0, 0});
    assert_gives(NODE(f, &oct_op_dft, 1, real, INTS(f, 2)), DIMS(1, 2, 2), (float[]){2, 0, 0, 0});
    assert_refuses(NODE(f, &oct_op_dft, 1, real, NULL, INTS(f, 2)), OCT_ERR_SHAPE, "last axis");
    assert_refuses(NODE(f, &oct_op_dft, 1, real, INTS(f, 0)), OCT_ERR_SHAPE, "dft_length");
    n = NODE(f, &oct_op_dft, 1, pair);
    assert_ok(f->ctx, oct_node_set_int(n, "onesided", 1));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "onesided");
    assert_gives(NODE(f, &oct_op_stft, 1, real, INTS(f, 2), NULL, INTS(f, 2)), DIMS(1, 2, 2, 2),
                 (float[]){2, 0, 0, 0, 2, 0, 0, 0});
    assert_refuses(NODE(f, &oct_op_stft, 1, real, INTS(f, 2)), OCT_ERR_FORMAT, "window");
    assert_refuses(NODE(f, &oct_op_stft, 1, real, INTS(f, 2), NULL, INTS(f, 9)), OCT_ERR_SHAPE,
                   "frame");
    assert_refuses(NODE(f, &oct_op_stft, 1, real, INTS(f, 0), NULL, INTS(f, 2)), OCT_ERR_SHAPE,
                   "frame_step");
}

static void determinants(void **state)
{
    fixture *f = *state;
    oct_value *x =
        constant(f, OCT_DTYPE_F32, DIMS(3, 2, 2), (double[]){1, 2, 3, 4, 0, 1, 1, 0, 2, 4, 1, 2});

    assert_gives(NODE(f, &oct_op_det, 1, x), DIMS(3), (float[]){-2, -1, 0});
    assert_refuses(NODE(f, &oct_op_det, 1, constant(f, OCT_DTYPE_F32, DIMS(2, 3), NULL)),
                   OCT_ERR_SHAPE, "square");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(casts_know_all_numbers),
        TEST(exponents_round_three_ways),
        TEST(random_numbers_are_seeded),
        TEST(classes_are_drawn_by_their_weight),
        TEST(dropout_drops_only_in_training),
        TEST(matrices_of_one_value),
        TEST(windows_are_periodic_or_symmetric),
        TEST(transforms_undo_each_other),
        TEST(transforms_check_their_operands),
        TEST(determinants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
