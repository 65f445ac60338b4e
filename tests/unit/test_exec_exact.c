/* SPDX-License-Identifier: Apache-2.0 */
/* Operations whose last bit must be ONNX Runtime's, since it decides codes. */
#include "tests/unit/exec_net.h"

#include "exec/simd/int8/simd_int8.h"
#include "op/act.h"
#include "op/softmax_codes.h"
#include "tests/unit/quant_net.h"

#define N 16 /* values; whole vectors of every set */

/* What ONNX Runtime 1.31 gives on a CPU with fused multiplication. */
static const struct logistic {
    float x, y;
} logistic[N] = {
    {-20.0f, 0},
    {-18.5f, 0},
    {-7.3f, 0x1.61fp-11f},
    {-1.234567f, 0x1.cd95a8p-3f},
    {-0.001f, 0x1.ffbe76p-2f},
    {0.0f, 0x1p-1f},
    {0.1f, 0x1.0cca12p-1f},
    {0.7654321f, 0x1.5d74d4p-1f},
    {3.3f, 0x1.edc99ep-1f},
    {11.0f, 0x1.fffddp-1f},
    {17.9f, 1},
    {25.0f, 1},
    {2.5f, 0x1.d9291ep-1f},
    {-2.5f, 0x1.36b71p-4f},
    {-0.4f, 0x1.9af1ap-2f},
    {6.02f, 0x1.fec24ep-1f},
};

static void rational_sigmoid_is_onnx_runtimes(void **state)
{
    const oct_act sigmoid = {.kind = OCT_ACT_RATIONAL_SIGMOID};
    const oct_act swish = {.kind = OCT_ACT_RATIONAL_SWISH, .a = 1};

    (void)state;
    for (int i = 0; i < N; i++) {
        const float x = logistic[i].x, y = logistic[i].y;

        if (oct_act_apply(&sigmoid, x) != y)
            fail_msg("sigmoid(%g) = %a, want %a", x, oct_act_apply(&sigmoid, x), y);
        if (oct_act_apply(&swish, x) != x * y)
            fail_msg("swish(%g) = %a, want %a", x, oct_act_apply(&swish, x), x * y);
    }
}

/* The sums are 1, the bias is x, and the result stays float. */
static void finish_ones(const oct_int8 *set, oct_act_kind kind, float y[N])
{
    float scale[N], bias[N];
    int32_t ones[N];
    const oct_int8_epilogue_spec spec = {
        .c = N, .scale = scale, .bias = bias, .act = {{.kind = kind, .a = 1}}, .out = OCT_INT8_F32};
    void *memory = aligned_alloc(64, oct_int8_epilogue_size(N));
    oct_int8_epilogue f;

    assert_non_null(memory);
    for (int i = 0; i < N; i++) {
        ones[i] = 1;
        scale[i] = 0;
        bias[i] = logistic[i].x;
    }
    oct_int8_epilogue_pack(&spec, memory, &f);
    set->epilogue(&f, &(oct_int8_rows){ones, N, 0, N, 1, y, N, NULL, 0});
    free(memory);
}

static void vectors_have_the_same_rational_sigmoid(void **state)
{
    const oct_int8 *set;

    (void)state;
    for (int k = 0; (set = oct_int8_at(k)); k++) {
        const bool fused = strncmp(set->name, "base", 4) != 0;
        float sigmoid[N], swish[N];

        finish_ones(set, OCT_ACT_RATIONAL_SIGMOID, sigmoid);
        finish_ones(set, OCT_ACT_RATIONAL_SWISH, swish);
        for (int i = 0; i < N; i++) {
            const float x = logistic[i].x, y = logistic[i].y;

            if (fabsf(sigmoid[i] - y) > (fused ? 0 : 2e-7f) ||
                fabsf(swish[i] - x * y) > (fused ? 0 : 2e-7f * fabsf(x)))
                fail_msg("%s: sigmoid(%g) = %a, swish %a", set->name, x, sigmoid[i], swish[i]);
        }
    }
}

/* --- two operands --- */

/* Scales of a grid of 0.005 give sums in the middle between two codes, but for the last bits. */
static const struct pair {
    float a_scale, b_scale, y_scale;
    int32_t a_zero, b_zero, y_zero, offset;
} pairs[] = {
    {0.005f, 0.04f, 0.09f, 17, 203, 5, 0},
    {0.035f, 0.015f, 0.1f, 128, 130, 97, 0},
    {0.035f, 0.015f, 0.1f, 128, 130, 97, 128},
    {0.02f, 0.045f, 0.065f, 3, 250, 128, 128},
};

/* In single steps, each rounded to float; fmaf() is a fused multiplication. */
static int32_t pair_code(const struct pair *p, oct_int8_op op, int32_t a, int32_t b)
{
    const float az = (float)(p->a_zero - p->offset), bz = (float)(p->b_zero - p->offset);
    const float yz = (float)(p->y_zero - p->offset);
    const float ra = p->a_scale / p->y_scale, rb = p->b_scale / p->y_scale;
    float x;

    a -= p->offset;
    b -= p->offset;
    if (op == OCT_INT8_MUL) {
        x = ((float)a - az) * ((float)b - bz) * (p->a_scale * p->b_scale / p->y_scale);
        x = x + yz;
    } else {
        const float fixed = yz - fmaf(ra, az, rb * bz);

        x = fmaf((float)a, ra, fmaf((float)b, rb, fixed));
    }
    return OCT_MIN(OCT_MAX((int32_t)rintf(x) + p->offset, 0), 255);
}

static void check_pair(const oct_int8 *set, const struct pair *p, oct_int8_op op)
{
    const oct_int8_binary_spec spec = {.op = op,
                                       .c = 1,
                                       .a = {1, &p->a_scale, &p->a_zero},
                                       .b = {1, &p->b_scale, &p->b_zero},
                                       .offset = p->offset,
                                       .out = OCT_INT8_U8,
                                       .y = {1, &p->y_scale, &p->y_zero}};
    const oct_int8_strides r = {
        .rows = 1, .n = 256, .a_pitch = 256, .b_pitch = 256, .y_pitch = 256};
    void *memory = aligned_alloc(64, oct_int8_binary_size(1));
    uint8_t a[256], b[256], y[256];
    oct_int8_binary s;

    assert_non_null(memory);
    oct_int8_binary_pack(&spec, memory, &s);
    for (int k = 0; k < 256; k++) {
        for (int i = 0; i < 256; i++) {
            a[i] = (uint8_t)k;
            b[i] = (uint8_t)i;
        }
        set->binary(&s, &r, a, b, 1, y);
        for (int i = 0; i < 256; i++)
            if (y[i] != pair_code(p, op, k, i))
                fail_msg("%s: operation %d of %d and %d gives %d, want %d", set->name, (int)op, k,
                         i, y[i], pair_code(p, op, k, i));
    }
    free(memory);
}

static void pairs_round_as_onnx_runtimes(void **state)
{
    const oct_int8 *set;

    (void)state;
    for (int k = 0; (set = oct_int8_at(k)); k++)
        for (size_t i = 0; i < OCT_COUNT(pairs); i++) {
            check_pair(set, &pairs[i], OCT_INT8_ADD);
            check_pair(set, &pairs[i], OCT_INT8_MUL);
        }
}

/* --- Softmax --- */

/* 1 / .0037 is 270.27, of which ONNX Runtime takes 270: three codes of these would be others. */
static void softmax_of_codes_is_onnx_runtimes(void **state)
{
    static const uint8_t x[N] = {105, 156, 80,  255, 67,  62, 225, 220,
                                 50,  197, 218, 33,  164, 65, 224, 62};
    static const uint8_t want[N] = {3, 4, 3, 142, 3, 3, 37, 30, 3, 12, 27, 3, 5, 3, 35, 3};
    oct_softmax_codes s;
    uint8_t y[N];

    (void)state;
    oct_softmax_codes_init(&s, OCT_DTYPE_U8, N, 0.047f, 0.0037f, 3);
    oct_softmax_codes_row(&s, x, y, N, 1);
    assert_memory_equal(y, want, N);
    for (int i = 0; i < N; i++)
        y[i] = x[i] ^ 128; /* the same, as signed bytes */
    oct_softmax_codes_init(&s, OCT_DTYPE_I8, N, 0.047f, 0.0037f, 3 - 128);
    oct_softmax_codes_row(&s, y, y, N, 1);
    for (int i = 0; i < N; i++)
        assert_int_equal(y[i] ^ 128, want[i]);
}

/* How many codes 1 has is cut to a whole number, not rounded: 254 of 254.99998 and 273 of 273.97.
 * What lies half way between two codes becomes the even one. */
static void softmax_of_codes_cuts_steps_and_rounds_to_even(void **state)
{
    static const struct {
        float y_scale;
        uint8_t x[2], want[2];
    } cases[] = {{1 / 255.0f, {255, 0}, {254, 0}},   {0.00365f, {200, 155}, {247, 26}},
                 {1 / 253.5f, {10, 10}, {126, 126}}, {1 / 255.5f, {10, 10}, {128, 128}},
                 {0.0019f, {100, 100}, {255, 255}},  {0.3f, {9, 9}, {2, 2}}};

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_softmax_codes s;
        uint8_t y[2];

        oct_softmax_codes_init(&s, OCT_DTYPE_U8, 2, 0.05f, cases[i].y_scale, 0);
        oct_softmax_codes_row(&s, cases[i].x, y, 2, 1);
        for (int k = 0; k < 2; k++)
            if (y[k] != cases[i].want[k])
                fail_msg("case %d: code %d is %d, want %d", (int)i, k, y[k], cases[i].want[k]);
    }
}

/* Few elements and fine scales: nothing may become infinite on the way. Elements are nearly equal
 * and scales such that their codes still fit: what is infinite would be the largest code. */
static void softmax_of_codes_stays_finite(void **state)
{
    static const double codes[] = {100, 160, 200, 240, 1e6, 1e36};

    (void)state;
    for (int64_t n = 1; n <= N; n++)
        for (size_t i = 0; i < OCT_COUNT(codes); i++) {
            const float scale = (float)(1 / (codes[i] * (double)n));
            const double steps = floor((double)(1 / scale));
            oct_softmax_codes s;
            uint8_t x[N], y[N];
            double sum = 0;

            for (int64_t k = 0; k < n; k++) {
                x[k] = (uint8_t)(255 - k % 2);
                sum += exp(-0.04 * (double)(k % 2));
            }
            oct_softmax_codes_init(&s, OCT_DTYPE_U8, n, 0.04f, scale, 7);
            oct_softmax_codes_row(&s, x, y, n, 1);
            for (int64_t k = 0; k < n; k++) {
                const double share = exp(-0.04 * (double)(k % 2)) / sum;

                if (fabs(y[k] - fmin(share * steps + 7, 255)) > 0.51)
                    fail_msg("%d elements, scale %g: code %d is %d, want %g", (int)n, (double)scale,
                             (int)k, y[k], share * steps + 7);
            }
        }
}

/* Between DequantizeLinear and QuantizeLinear Softmax is what QLinearSoftmax is. */
static void softmax_stays_in_integers(void **state)
{
    fixture *f = *state;
    const float sx = 0.047f, sy = 0.0037f;
    const int32_t zx = 99, zy = 3;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){2, 16, 5, 7});
    oct_value *codes = quantize(f, x, OCT_DTYPE_U8, &sx, &zx, 1, 1);
    oct_tensor *out[6] = {NULL};

    for (int axis = 1; axis < 4; axis++) {
        oct_node *soft = node(f, &oct_op_softmax, dequantize(f, codes, &sx, &zx, 1, 1), NULL, NULL);
        oct_node *linear = NULL;
        oct_value *y, *const in[] = {codes, soft->in[0]->producer->in[1],
                                     soft->in[0]->producer->in[2], NULL, NULL};

        assert_ok(f->ctx, oct_node_set_int(soft, "axis", axis));
        y = quantize(f, infer(f, soft), OCT_DTYPE_U8, &sy, &zy, 1, 1);
        output(f, dequantize(f, y, &sy, &zy, 1, 1));
        linear = oct_emit_node(&f->b, &oct_op_q_linear_softmax, in, 5, 1);
        assert_non_null(linear);
        assert_ok(f->ctx, oct_node_set_input(linear, 3, y->producer->in[1]));
        assert_ok(f->ctx, oct_node_set_input(linear, 4, y->producer->in[2]));
        assert_ok(f->ctx, oct_node_set_int(linear, "axis", axis));
        assert_ok(f->ctx, oct_node_set_int(linear, "opset", 13));
        output(f, dequantize(f, infer(f, linear), &sy, &zy, 1, 1));
    }
    run_graph(f, NULL, out);
    for (int i = 0; i < 6; i += 2)
        assert_same("Softmax", out[i], out[i + 1], 0);
    for (int i = 0; i < 6; i++)
        oct_tensor_unref(out[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rational_sigmoid_is_onnx_runtimes),
        cmocka_unit_test(vectors_have_the_same_rational_sigmoid),
        cmocka_unit_test(pairs_round_as_onnx_runtimes),
        cmocka_unit_test(softmax_of_codes_is_onnx_runtimes),
        cmocka_unit_test(softmax_of_codes_cuts_steps_and_rounds_to_even),
        cmocka_unit_test(softmax_of_codes_stays_finite),
        cmocka_unit_test_setup_teardown(softmax_stays_in_integers, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
