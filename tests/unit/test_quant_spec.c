/* SPDX-License-Identifier: Apache-2.0 */
/* Scales, zero points and codes. */
#include "tests/test.h"

#include <float.h>

#include "base/rng.h"
#include "op/op.h"
#include "quant/spec.h"

static const oct_qspec u8 = {.bits = 8, .axis = OCT_QSPEC_PER_TENSOR};
static const oct_qspec s8 = {.bits = 8, .is_signed = true, .is_symmetric = true, .axis = -1};
static const oct_qspec w8 = {
    .bits = 8, .is_signed = true, .is_symmetric = true, .is_narrow = true, .axis = 0};

static void limits_and_types(void **state)
{
    oct_qspec s = u8;
    int32_t low, high;
    char text[64];

    (void)state;
    oct_qspec_limits(&s, &low, &high);
    assert_true(low == 0 && high == 255);
    assert_int_equal(oct_qspec_dtype(&s), OCT_DTYPE_U8);
    assert_string_equal(oct_qspec_text(&s, text, sizeof(text)), "u8 asymmetric per tensor");
    oct_qspec_limits(&w8, &low, &high);
    assert_true(low == -127 && high == 127);
    assert_string_equal(oct_qspec_text(&w8, text, sizeof(text)), "s8 narrow symmetric per channel");
    s = (oct_qspec){.bits = 32, .is_signed = true, .is_symmetric = true, .axis = -1};
    oct_qspec_limits(&s, &low, &high);
    assert_true(low == INT32_MIN && high == INT32_MAX);
    assert_int_equal(oct_qspec_dtype(&s), OCT_DTYPE_I32);
    s = (oct_qspec){.bits = 16, .axis = -1};
    oct_qspec_limits(&s, &low, &high);
    assert_true(low == 0 && high == 65535);
    s.bits = 3;
    assert_int_equal(oct_qspec_dtype(&s), OCT_DTYPE_U4);
}

static void contradictions_are_refused(void **state)
{
    fixture *f = *state;
    oct_qspec s = u8;

    assert_ok(f->ctx, oct_qspec_check(f->ctx, &s));
    s.bits = 9;
    assert_fails(f->ctx, oct_qspec_check(f->ctx, &s), OCT_ERR_ARG, "9 bits");
    s = u8;
    s.bits = 32;
    assert_fails(f->ctx, oct_qspec_check(f->ctx, &s), OCT_ERR_ARG, "biases");
    s = u8;
    s.is_narrow = true;
    assert_fails(f->ctx, oct_qspec_check(f->ctx, &s), OCT_ERR_ARG, "narrow");
    s = u8;
    s.axis = OCT_MAX_RANK;
    assert_fails(f->ctx, oct_qspec_check(f->ctx, &s), OCT_ERR_ARG, "axis");
    s = u8;
    s.rounding = OCT_QROUND_COUNT;
    assert_fails(f->ctx, oct_qspec_check(f->ctx, &s), OCT_ERR_ARG, "rounding");
}

static void ranges_become_scales(void **state)
{
    oct_qspec s = u8;
    float scale, low, high;
    int32_t zero;

    (void)state;
    oct_qspec_solve(&u8, -1, 254, &scale, &zero);
    assert_true(scale == 1 && zero == 1);
    oct_qspec_range(&u8, scale, zero, &low, &high);
    assert_true(low == -1 && high == 254);
    oct_qspec_solve(&u8, 100, 510, &scale, &zero); /* widened to 0 */
    assert_true(scale == 2 && zero == 0);
    oct_qspec_solve(&u8, -510, -1, &scale, &zero);
    assert_true(scale == 2 && zero == 255);
    oct_qspec_solve(&s8, -128, 10, &scale, &zero);
    assert_true(scale == 1 && zero == 0);
    oct_qspec_solve(&s8, -10, 254, &scale, &zero);
    assert_true(scale == 2 && zero == 0);
    oct_qspec_solve(&w8, -254, 10, &scale, &zero);
    assert_true(scale == 2 && zero == 0);
    s.is_symmetric = true;
    oct_qspec_solve(&s, 0, 510, &scale, &zero);
    assert_true(scale == 2 && zero == 0);
    oct_qspec_solve(&s, -256, 1, &scale, &zero);
    assert_true(scale == 2 && zero == 128);
}

static void powers_of_two_cover_the_range(void **state)
{
    oct_qspec s = s8;
    float scale;
    int32_t zero;

    (void)state;
    s.is_pow2 = true;
    oct_qspec_solve(&s, -1, 127.0f / 64, &scale, &zero); /* exactly: not one step more */
    assert_true(scale == 1.0f / 64 && zero == 0);
    oct_qspec_solve(&s, -1, 127.01f / 64, &scale, &zero);
    assert_true(scale == 1.0f / 32);
    s.is_symmetric = s.is_signed = false;
    oct_qspec_solve(&s, -3, 100, &scale, &zero);
    assert_true(scale == 0.5f && zero == 6);
}

/* Whatever the range, the scale is a normal number and zero a code. */
static void strange_ranges_give_usable_scales(void **state)
{
    static const float ends[] = {0,        1e-45f,    1e-30f,  FLT_MIN, 1e-3f, 1,
                                 FLT_MAX,  INFINITY,  NAN,     -1e-45f, -1,    -1e-30f,
                                 -FLT_MAX, -INFINITY, -1e-12f, 1e30f};
    const oct_qspec *specs[] = {&u8, &s8, &w8};

    (void)state;
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < OCT_COUNT(ends); i++)
            for (size_t j = 0; j < OCT_COUNT(ends); j++) {
                int32_t zero, low, high;
                float scale;

                oct_qspec_limits(specs[k], &low, &high);
                oct_qspec_solve(specs[k], ends[i], ends[j], &scale, &zero);
                assert_true(isnormal(scale) && scale > 0);
                assert_true(isnormal(scale * scale * 2) || scale > 1); /* a bias's scale */
                assert_in_range(zero + 1000, low + 1000, high + 1000);
                assert_int_equal(oct_qspec_code(specs[k], scale, zero, 0), zero);
            }
}

/* One QuantizeLinear over all of x. */
static oct_tensor *quantize_linear(fixture *f, oct_dtype t, float scale, int32_t zero,
                                   const float *x, int64_t n)
{
    oct_tensor *z = tensor_of(f->ctx, t, 0, NULL, (double[]){zero}), *out = NULL, *in[3];
    oct_value *v[3] = {input(f, n, x), oct_scalar(&f->b, scale), oct_value_const(f->g, NULL, z)};
    oct_node *node = oct_emit_node(&f->b, &oct_op_quantize_linear, v, 3, 1);

    assert_non_null(node);
    for (int i = 0; i < 3; i++)
        in[i] = v[i]->data;
    assert_ok(f->ctx, oct_node_eval(node, in, &out, NULL));
    return out;
}

enum { N = 4096 };

/* Random numbers, ties, ends and beyond. */
static void fill(float *x, float scale, uint64_t seed)
{
    oct_rng r;

    oct_rng_init(&r, seed);
    for (int i = 0; i < N; i++) {
        const double t = 400 * oct_rng_f64(&r) - 200;

        x[i] = (float)((i % 2 ? t : rint(2 * t) / 2) * (double)scale);
    }
    x[0] = 0;
    x[1] = -0.0f;
    x[2] = 1e30f;
    x[3] = -1e30f;
    x[4] = 0.49999997f * scale;
    x[5] = INFINITY;
}

static void half_even_is_what_quantize_linear_does(void **state)
{
    fixture *f = *state;
    static const float scales[] = {1, 0.25f, 0.0173f, 3.7f, 1e-4f};
    float x[N], y[N];

    for (size_t k = 0; k < OCT_COUNT(scales); k++)
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            const int32_t zero = is_signed ? -11 : 117;
            oct_qspec s = u8;
            oct_tensor *want;

            s.is_signed = is_signed;
            fill(x, scales[k], k + 1);
            want = quantize_linear(f, oct_qspec_dtype(&s), scales[k], zero, x, N);
            oct_qspec_fake(&s, scales[k], zero, x, y, N);
            for (int i = 0; i < N; i++) {
                const int32_t code = (int32_t)oct_tensor_get_i64(want, i);

                assert_int_equal(oct_qspec_code(&s, scales[k], zero, x[i]), code);
                assert_true(y[i] == oct_qspec_value(scales[k], zero, code));
            }
            oct_tensor_unref(want);
        }
}

static void ties_go_where_the_spec_says(void **state)
{
    static const float x[] = {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f, 0.49999997f, -0.49999997f};
    static const int even[] = {-2, -2, 0, 0, 2, 2, 0, 0}, away[] = {-3, -2, -1, 1, 2, 3, 0, 0};
    static const int up[] = {-2, -1, 0, 1, 2, 3, 0, 0};
    const int *const want[] = {even, away, up};

    (void)state;
    for (int r = 0; r < OCT_QROUND_COUNT; r++)
        for (int i = 0; i < 8; i++) {
            oct_qspec s = s8;
            float y;

            s.rounding = (oct_qround)r;
            assert_int_equal(oct_qspec_code(&s, 1, 0, x[i]), want[r][i]);
            oct_qspec_fake(&s, 1, 0, &x[i], &y, 1);
            assert_true(y == (float)want[r][i]);
        }
}

static void biases_have_all_of_32_bits(void **state)
{
    const oct_qspec s = {.bits = 32, .is_signed = true, .is_symmetric = true, .axis = -1};

    (void)state;
    assert_int_equal(oct_qspec_code(&s, 1, 0, 16777216.0f), 16777216);
    assert_int_equal(oct_qspec_code(&s, 1, 0, 1e20f), INT32_MAX);
    assert_int_equal(oct_qspec_code(&s, 1, 0, -1e20f), INT32_MIN);
    assert_int_equal(oct_qspec_code(&s, 0.5f, 0, -1.25f), -2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_and_types),
        cmocka_unit_test_setup_teardown(contradictions_are_refused, setup, teardown),
        cmocka_unit_test(ranges_become_scales),
        cmocka_unit_test(powers_of_two_cover_the_range),
        cmocka_unit_test(strange_ranges_give_usable_scales),
        cmocka_unit_test_setup_teardown(half_even_is_what_quantize_linear_does, setup, teardown),
        cmocka_unit_test(ties_go_where_the_spec_says),
        cmocka_unit_test(biases_have_all_of_32_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
