/* SPDX-License-Identifier: Apache-2.0 */
/* Operations whose last bit must be ONNX Runtime's, since it decides codes. */
#include "tests/test.h"

#include "exec/act.h"
#include "exec/simd/int8.h"

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
    const oct_int8_finish_spec spec = {
        .c = N, .scale = scale, .bias = bias, .act = {{.kind = kind, .a = 1}}, .out = OCT_INT8_F32};
    void *memory = aligned_alloc(64, oct_int8_finish_size(N));
    oct_int8_finish f;

    assert_non_null(memory);
    for (int i = 0; i < N; i++) {
        ones[i] = 1;
        scale[i] = 0;
        bias[i] = logistic[i].x;
    }
    oct_int8_finish_pack(&spec, memory, &f);
    set->finish(&f, ones, N, 0, N, 1, NULL, 0, y, N);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rational_sigmoid_is_onnx_runtimes),
        cmocka_unit_test(vectors_have_the_same_rational_sigmoid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
