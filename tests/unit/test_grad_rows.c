/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator has a gradient, or stands here with the reason why not. */
#include "op/grad/rules.h"
#include "tests/test.h"

typedef enum reason {
    DISCRETE,     /* results are integers or booleans, or operands are */
    QUANTIZED,    /* works on quantized values; training inserts its own fake quantization */
    FROM_SHAPE,   /* results depend on shapes, attributes and sizes only */
    DATA_SHAPE,   /* the shape of the result depends on the data */
    CONTROL_FLOW, /* has bodies: loops of unknown length */
    RECURRENT,    /* as above, in one operator */
    RANDOM,       /* draws its result */
    SIGNAL,       /* signal processing before the network */
    CACHE,        /* keeps keys and values between runs of inference */
    RARE,         /* has one, which no network needed so far */
} reason;

static const struct {
    const oct_op *op;
    reason why;
} without[] = {
    {&oct_op_and, DISCRETE},
    {&oct_op_arg_max, DISCRETE},
    {&oct_op_arg_min, DISCRETE},
    {&oct_op_bit_shift, DISCRETE},
    {&oct_op_bitwise_and, DISCRETE},
    {&oct_op_bitwise_not, DISCRETE},
    {&oct_op_bitwise_or, DISCRETE},
    {&oct_op_bitwise_xor, DISCRETE},
    {&oct_op_equal, DISCRETE},
    {&oct_op_greater, DISCRETE},
    {&oct_op_greater_or_equal, DISCRETE},
    {&oct_op_is_inf, DISCRETE},
    {&oct_op_is_nan, DISCRETE},
    {&oct_op_less, DISCRETE},
    {&oct_op_less_or_equal, DISCRETE},
    {&oct_op_non_max_suppression, DISCRETE},
    {&oct_op_trt_efficient_nms, DISCRETE},
    {&oct_op_efficient_nms, DISCRETE},
    {&oct_op_not, DISCRETE},
    {&oct_op_one_hot, DISCRETE},
    {&oct_op_or, DISCRETE},
    {&oct_op_xor, DISCRETE},
    {&oct_op_conv_integer, QUANTIZED},
    {&oct_op_dequantize_linear, QUANTIZED},
    {&oct_op_dynamic_quantize_linear, QUANTIZED},
    {&oct_op_dynamic_quantize_mat_mul, QUANTIZED},
    {&oct_op_mat_mul_integer, QUANTIZED},
    {&oct_op_mat_mul_integer_to_float, QUANTIZED},
    {&oct_op_ms_dequantize_linear, QUANTIZED},
    {&oct_op_ms_quantize_linear, QUANTIZED},
    {&oct_op_q_gemm, QUANTIZED},
    {&oct_op_q_linear_add, QUANTIZED},
    {&oct_op_q_linear_average_pool, QUANTIZED},
    {&oct_op_q_linear_concat, QUANTIZED},
    {&oct_op_q_linear_conv, QUANTIZED},
    {&oct_op_q_linear_global_average_pool, QUANTIZED},
    {&oct_op_q_linear_leaky_relu, QUANTIZED},
    {&oct_op_q_linear_mat_mul, QUANTIZED},
    {&oct_op_q_linear_mul, QUANTIZED},
    {&oct_op_q_linear_sigmoid, QUANTIZED},
    {&oct_op_q_linear_softmax, QUANTIZED},
    {&oct_op_quantize_linear, QUANTIZED},
    {&oct_op_constant_of_shape, FROM_SHAPE},
    {&oct_op_eye_like, FROM_SHAPE},
    {&oct_op_range, FROM_SHAPE},
    {&oct_op_shape, FROM_SHAPE},
    {&oct_op_size, FROM_SHAPE},
    {&oct_op_compress, DATA_SHAPE},
    {&oct_op_non_zero, DATA_SHAPE},
    {&oct_op_unique, DATA_SHAPE},
    {&oct_op_if, CONTROL_FLOW},
    {&oct_op_loop, CONTROL_FLOW},
    {&oct_op_scan, CONTROL_FLOW},
    {&oct_op_gru, RECURRENT},
    {&oct_op_lstm, RECURRENT},
    {&oct_op_rnn, RECURRENT},
    {&oct_op_bernoulli, RANDOM},
    {&oct_op_multinomial, RANDOM},
    {&oct_op_random_normal, RANDOM},
    {&oct_op_random_normal_like, RANDOM},
    {&oct_op_random_uniform, RANDOM},
    {&oct_op_random_uniform_like, RANDOM},
    {&oct_op_blackman_window, SIGNAL},
    {&oct_op_dft, SIGNAL},
    {&oct_op_hamming_window, SIGNAL},
    {&oct_op_hann_window, SIGNAL},
    {&oct_op_mel_weight_matrix, SIGNAL},
    {&oct_op_stft, SIGNAL},
    {&oct_op_tensor_scatter, CACHE},
    {&oct_op_det, RARE},
};

static bool is_listed(const oct_op *op)
{
    for (size_t i = 0; i < OCT_COUNT(without); i++)
        if (without[i].op == op) return true;
    return false;
}

static void every_row(void **state)
{
    int n_bad = 0;

    (void)state;
    for (int i = 0; oct_op_at(i); i++) {
        const oct_op *op = oct_op_at(i);

        if ((op->grad != NULL) != is_listed(op)) continue;
        print_error("%s %s\n", op->name, op->grad ? "has a gradient and is listed" : "has none");
        n_bad++;
    }
    assert_int_equal(n_bad, 0);
}

/* No file's node becomes one of them: they are not found by name. */
static void training_rows_are_not_in_files(void **state)
{
    (void)state;
    for (int i = 0; oct_train_op_at(i); i++) {
        assert_string_equal(oct_op_domain(oct_train_op_at(i)), OCT_TRAIN_DOMAIN);
        assert_null(oct_op_find(OCT_TRAIN_DOMAIN, oct_train_op_at(i)->name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(training_rows_are_not_in_files),
    };

    return run_test_group(tests);
}
