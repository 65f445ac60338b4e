/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits and fewer: every code, every midpoint, every special value. */
#include "tests/test.h"

#include "tensor/small_float.h"

typedef struct format {
    oct_dtype t;
    unsigned n_codes; /* half of them negative */
    int man_bits, bias;
    unsigned max;      /* code of the largest finite number */
    double max_value;  /* by the format's standard */
    double min_normal; /* 2^(1 - bias) */
} format;

static const format formats[] = {
    {OCT_DTYPE_F16, 65536, 10, 15, 0x7bff, 65504, 0x1p-14},
    {OCT_DTYPE_BF16, 65536, 7, 127, 0x7f7f, 0x1.fep127, 0x1p-126},
    {OCT_DTYPE_F8E4M3FN, 256, 3, 7, 0x7e, 448, 0x1p-6},
    {OCT_DTYPE_F8E4M3FNUZ, 256, 3, 8, 0x7f, 240, 0x1p-7},
    {OCT_DTYPE_F8E5M2, 256, 2, 15, 0x7b, 57344, 0x1p-14},
    {OCT_DTYPE_F8E5M2FNUZ, 256, 2, 16, 0x7f, 57344, 0x1p-15},
    {OCT_DTYPE_F4E2M1, 16, 1, 1, 0x7, 6, 1},
};

/* The value of a finite positive code, by the definition. */
static double value_of(const format *f, unsigned code)
{
    const int man = (int)(code & ((1u << f->man_bits) - 1)), e = (int)(code >> f->man_bits);

    if (!e) return ldexp(man, 1 - f->bias - f->man_bits);
    return ldexp(man + (1 << f->man_bits), e - f->bias - f->man_bits);
}

static unsigned pack(const format *f, double x)
{
    return oct_small_float_pack(oct_small_float_get(f->t), x, true);
}

static float unpack(const format *f, unsigned code)
{
    return oct_small_float_unpack(oct_small_float_get(f->t), code);
}

static void every_code_has_its_value(void **state)
{
    (void)state;
    for (size_t k = 0; k < OCT_COUNT(formats); k++) {
        const format *f = &formats[k];
        const unsigned sign = f->n_codes / 2;

        assert_true(value_of(f, f->max) == f->max_value);
        assert_true(value_of(f, 1u << f->man_bits) == f->min_normal);
        for (unsigned c = 0; c <= f->max; c++) {
            assert_true((double)unpack(f, c) == value_of(f, c));
            assert_int_equal(pack(f, value_of(f, c)), c);
            if (!c) continue; /* -0 is another matter */
            assert_true((double)unpack(f, c | sign) == -value_of(f, c));
            assert_int_equal(pack(f, -value_of(f, c)), c | sign);
        }
    }
}

/* Between two neighbours: the midpoint goes to the even code, all else to the nearer one. */
static void every_midpoint_goes_to_even(void **state)
{
    (void)state;
    for (size_t k = 0; k < OCT_COUNT(formats); k++) {
        const format *f = &formats[k];

        for (unsigned c = 0; c < f->max; c++) {
            const double mid = (value_of(f, c) + value_of(f, c + 1)) / 2;

            assert_int_equal(pack(f, mid), c + (c & 1));
            assert_int_equal(pack(f, nextafter(mid, 0)), c); /* no rounding by way of float */
            assert_int_equal(pack(f, nextafter(mid, INFINITY)), c + 1);
        }
    }
}

static void the_quick_halves_agree(void **state)
{
    const oct_small_float *f16 = oct_small_float_get(OCT_DTYPE_F16);
    const oct_small_float *bf16 = oct_small_float_get(OCT_DTYPE_BF16);

    (void)state;
    for (unsigned c = 0; c < 65536; c++) {
        const float a = oct_f16_to_f32((uint16_t)c), b = oct_bf16_to_f32((uint16_t)c);

        if (!isnan(a)) assert_true(a == oct_small_float_unpack(f16, c));
        assert_int_equal(isnan(a), (c & 0x7fff) > 0x7c00);
        assert_int_equal(oct_f32_to_f16(a), isnan(a) ? c | 0x200 : c);
        if (!isnan(b)) assert_true(b == oct_small_float_unpack(bf16, c));
        assert_int_equal(isnan(b), (c & 0x7fff) > 0x7f80);
        assert_int_equal(oct_f32_to_bf16(b), isnan(b) ? c | 0x40 : c);
    }
    for (uint64_t u = 0; u <= UINT32_MAX; u += 4099) { /* a million floats of all kinds */
        const uint32_t bits = (uint32_t)u;
        float x;

        memcpy(&x, &bits, sizeof(x));
        assert_int_equal(oct_f32_to_f16(x), oct_small_float_pack(f16, (double)x, false));
        assert_int_equal(oct_f32_to_bf16(x), oct_small_float_pack(bf16, (double)x, false));
    }
}

/* Whatever instructions the CPU has, many give what one gives. */
static void many_at_a_time_agree(void **state)
{
    static uint16_t in[65536], back[65536];
    static float wide[65536];

    (void)state;
    for (unsigned c = 0; c < 65536; c++)
        in[c] = (uint16_t)c;
    oct_f16_to_f32_n(in, 65535, wide); /* an odd number: a rest remains */
    oct_f32_to_f16_n(wide, 65535, back);
    for (unsigned c = 0; c < 65535; c++) {
        const float one = oct_f16_to_f32(in[c]);

        assert_memory_equal(&one, &wide[c], sizeof(one));
        assert_int_equal(back[c], oct_f32_to_f16(wide[c]));
    }
    assert_int_equal(back[65535], 0);
    for (size_t i = 0; i < 65536; i++) {
        const uint32_t bits = (uint32_t)(i * 65521);

        memcpy(&wide[i], &bits, sizeof(bits));
    }
    oct_f32_to_f16_n(wide, 65536, back);
    for (size_t i = 0; i < 65536; i++)
        assert_int_equal(back[i], oct_f32_to_f16(wide[i]));
}

/* Rows of the two tables in ONNX's text on Cast. */
static void f8_specials_are_as_onnx_says(void **state)
{
    const struct {
        oct_dtype t;
        uint8_t nan, neg_nan, neg_zero, max, inf; /* inf: where it goes if not saturated */
    } rows[] = {
        {OCT_DTYPE_F8E4M3FN, 0x7f, 0xff, 0x80, 0x7e, 0x7f},
        {OCT_DTYPE_F8E4M3FNUZ, 0x80, 0x80, 0x00, 0x7f, 0x80},
        {OCT_DTYPE_F8E5M2, 0x7e, 0xfe, 0x80, 0x7b, 0x7c},
        {OCT_DTYPE_F8E5M2FNUZ, 0x80, 0x80, 0x00, 0x7f, 0x80},
    };

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        const oct_dtype t = rows[i].t;

        for (int saturate = 0; saturate < 2; saturate++) {
            assert_int_equal(oct_f32_to_f8(t, 0.0f, saturate), 0);
            assert_int_equal(oct_f32_to_f8(t, -0.0f, saturate), rows[i].neg_zero);
            assert_int_equal(oct_f32_to_f8(t, -1e-30f, saturate), rows[i].neg_zero);
            assert_int_equal(oct_f32_to_f8(t, NAN, saturate), rows[i].nan);
            assert_int_equal(oct_f32_to_f8(t, copysignf(NAN, -1), saturate), rows[i].neg_nan);
        }
        assert_int_equal(oct_f32_to_f8(t, INFINITY, true), rows[i].max);
        assert_int_equal(oct_f32_to_f8(t, -INFINITY, true), rows[i].max | 0x80);
        assert_int_equal(oct_f32_to_f8(t, 1e9f, true), rows[i].max);
        assert_int_equal(oct_f32_to_f8(t, INFINITY, false), rows[i].inf);
        assert_int_equal(oct_f32_to_f8(t, 1e9f, false), rows[i].inf);
        assert_int_equal(oct_f32_to_f8(t, -1e9f, false), rows[i].inf | 0x80);
        assert_true(isnan(oct_f8_to_f32(t, rows[i].nan)));
        assert_true(isnan(oct_f8_to_f32(t, rows[i].neg_nan)));
        /* [x] is compared, not x: half a step above the largest still rounds to it */
        assert_int_equal(oct_f32_to_f8(t, oct_f8_to_f32(t, rows[i].max) * 1.01f, false),
                         rows[i].max);
    }
    assert_true(isinf(oct_f8_to_f32(OCT_DTYPE_F8E5M2, 0x7c)));
    assert_true(isinf(oct_f8_to_f32(OCT_DTYPE_F8E5M2, 0xfc)));
    assert_true(isnan(oct_f8_to_f32(OCT_DTYPE_F8E5M2, 0x7d)));
    assert_true(isnan(oct_f8_to_f32(OCT_DTYPE_F8E5M2, 0x7f)));
}

static void f4_has_only_numbers(void **state)
{
    const format *f = &formats[6];
    const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        assert_true((double)unpack(f, i) == values[i]);
    assert_int_equal(pack(f, INFINITY), 7);
    assert_int_equal(pack(f, -INFINITY), 15);
    assert_int_equal(pack(f, 1e9), 7);
    assert_int_equal(pack(f, NAN), 8);
    assert_int_equal(pack(f, -0.0), 8);
    assert_int_equal(oct_small_float_pack(oct_small_float_get(OCT_DTYPE_F4E2M1), 1e9, false), 7);
}

static void halves_overflow_to_infinity(void **state)
{
    (void)state;
    assert_int_equal(oct_f32_to_f16(65519.99f), 0x7bff);
    assert_int_equal(oct_f32_to_f16(65520), 0x7c00);
    assert_int_equal(oct_f32_to_f16(-1e30f), 0xfc00);
    assert_int_equal(oct_f32_to_f16(-0.0f), 0x8000);
    assert_int_equal(oct_f32_to_f16(0x1p-24f), 1);
    assert_int_equal(oct_f32_to_f16(0x1p-25f), 0);
    assert_int_equal(oct_f32_to_f16(0x1.000002p-25f), 1);
    assert_int_equal(oct_f32_to_bf16(3.4e38f), 0x7f80);
    assert_int_equal(oct_f32_to_bf16(1.00390625f), 0x3f80); /* a tie */
    /* Just above a tie for double, a tie for float: one rounding, not two. */
    assert_int_equal(pack(&formats[0], 1 + 0x1p-11 + 0x1p-40), 0x3c01);
}

static void e8m0_is_powers_of_two(void **state)
{
    const oct_dtype t = OCT_DTYPE_F8E8M0;

    (void)state;
    for (unsigned c = 0; c < 255; c++) {
        const float x = oct_f8_to_f32(t, (uint8_t)c);

        assert_true((double)x == ldexp(1, (int)c - 127));
        for (int round = OCT_ROUND_UP; round <= OCT_ROUND_NEAREST; round++)
            assert_int_equal(oct_f32_to_e8m0(x, (oct_round)round, true), c);
        if (c == 254) continue;
        assert_int_equal(oct_f32_to_e8m0(x * 1.4f, OCT_ROUND_UP, true), c + 1);
        assert_int_equal(oct_f32_to_e8m0(x * 1.4f, OCT_ROUND_DOWN, true), c);
        assert_int_equal(oct_f32_to_e8m0(x * 1.4f, OCT_ROUND_NEAREST, true), c);
        assert_int_equal(oct_f32_to_e8m0(x * 1.5f, OCT_ROUND_NEAREST, true), c + 1);
    }
    assert_true(isnan(oct_f8_to_f32(t, 255)));
    assert_int_equal(oct_f32_to_f8(t, NAN, true), 255);
    assert_int_equal(oct_f32_to_f8(t, 0, true), 0);
    assert_int_equal(oct_f32_to_f8(t, INFINITY, true), 254);
    assert_int_equal(oct_f32_to_f8(t, 3e38f, true), 254);
    assert_int_equal(oct_f32_to_f8(t, 0.124f, true), 124); /* from ONNX's own test */
    assert_int_equal(oct_f32_to_f8(t, 1.1f, true), 128);
    assert_int_equal(oct_f32_to_e8m0(0, OCT_ROUND_NEAREST, false), 255);
    assert_int_equal(oct_f32_to_e8m0(INFINITY, OCT_ROUND_NEAREST, false), 255);
    assert_int_equal(oct_f32_to_e8m0(3e38f, OCT_ROUND_NEAREST, false), 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_value),
        cmocka_unit_test(every_midpoint_goes_to_even),
        cmocka_unit_test(the_quick_halves_agree),
        cmocka_unit_test(many_at_a_time_agree),
        cmocka_unit_test(f8_specials_are_as_onnx_says),
        cmocka_unit_test(f4_has_only_numbers),
        cmocka_unit_test(halves_overflow_to_infinity),
        cmocka_unit_test(e8m0_is_powers_of_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
