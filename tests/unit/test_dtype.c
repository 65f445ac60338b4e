/* SPDX-License-Identifier: Apache-2.0 */
/* The table of element types and conversion between them. */
#include "tests/test.h"

#include "tensor/dtype.h"

static void the_table_is_whole(void **state)
{
    size_t size = 0;

    (void)state;
    for (int t = 1; t <= OCT_DTYPE_I2; t++) {
        const oct_dtype_info *info = oct_dtype_get((oct_dtype)t);

        assert_int_equal(oct_dtype_by_name(info->name), t);
        assert_string_equal(oct_dtype_name((oct_dtype)t), info->name);
        assert_int_equal(oct_dtype_bytes((oct_dtype)t, 3, &size), t != OCT_DTYPE_STRING);
        assert_int_equal(oct_dtype_size((oct_dtype)t), info->bits / 8);
    }
    assert_string_equal(oct_dtype_name(OCT_DTYPE_NONE), "?");
    assert_string_equal(oct_dtype_name((oct_dtype)99), "?");
    assert_string_equal(oct_dtype_name((oct_dtype)-1), "?");
    assert_int_equal(oct_dtype_by_name("float"), OCT_DTYPE_NONE);
    assert_int_equal(oct_dtype_by_name("?"), OCT_DTYPE_NONE);
    assert_true(oct_dtype_is_float(OCT_DTYPE_BF16) && !oct_dtype_is_float(OCT_DTYPE_I8));
    assert_true(oct_dtype_is_int(OCT_DTYPE_U4) && !oct_dtype_is_int(OCT_DTYPE_BOOL));
}

static void bytes_round_up_and_know_overflow(void **state)
{
    size_t size = 0;

    (void)state;
    assert_true(oct_dtype_bytes(OCT_DTYPE_I4, 5, &size) && size == 3);
    assert_true(oct_dtype_bytes(OCT_DTYPE_U2, 5, &size) && size == 2);
    assert_true(oct_dtype_bytes(OCT_DTYPE_U2, INT64_MAX, &size) && size == (size_t)1 << 61);
    assert_true(oct_dtype_bytes(OCT_DTYPE_F64, 0, &size) && size == 0);
    assert_false(oct_dtype_bytes(OCT_DTYPE_F32, INT64_MAX, &size));
    assert_false(oct_dtype_bytes(OCT_DTYPE_F32, -1, &size));
    assert_false(oct_dtype_bytes(OCT_DTYPE_NONE, 1, &size));
}

/* Small integers exist in every type: there and back through all pairs of types. */
static void all_pairs_keep_small_numbers(void **state)
{
    (void)state;
    for (int a = 1; a <= OCT_DTYPE_I2; a++) {
        for (int b = 1; b <= OCT_DTYPE_I2; b++) {
            uint8_t x[300 * 8], y[300 * 8], z[300 * 8];
            double v[300], back[300];
            const int64_t n = 299; /* more than a chunk, and no multiple of anything */

            if (oct_dtype_get((oct_dtype)a)->kind == OCT_DKIND_OTHER ||
                oct_dtype_get((oct_dtype)b)->kind == OCT_DKIND_OTHER)
                continue;
            memset(x, 0, sizeof(x));
            memset(y, 0, sizeof(y));
            memset(z, 0, sizeof(z));
            for (int i = 0; i < n; i++) /* 0 is no power of two */
                v[i] = a == OCT_DTYPE_F8E8M0 || b == OCT_DTYPE_F8E8M0 ? 1 : i * 7 % 3 == 1;
            oct_store_f64((oct_dtype)a, x, 0, n, v);
            oct_convert((oct_dtype)a, x, (oct_dtype)b, y, n, true);
            oct_load_f64((oct_dtype)b, y, 0, n, back);
            assert_memory_equal(v, back, (size_t)n * sizeof(*v));
            oct_convert((oct_dtype)b, y, (oct_dtype)a, z, n, true);
            assert_memory_equal(x, z, sizeof(x));
        }
    }
}

/* All six ways in and out, at an offset that is no multiple of the packing. */
static void loads_and_stores_take_an_offset(void **state)
{
    (void)state;
    for (int t = 1; t <= OCT_DTYPE_I2; t++) {
        uint8_t x[256];
        float f[3] = {1, 0, 1};
        double d[3] = {0};
        int64_t i[3] = {0};

        if (oct_dtype_get((oct_dtype)t)->kind == OCT_DKIND_OTHER || t == OCT_DTYPE_F8E8M0) continue;
        memset(x, 0, sizeof(x));
        oct_store_f32((oct_dtype)t, x, 5, 3, f);
        oct_load_f64((oct_dtype)t, x, 4, 3, d);
        assert_true(d[0] == 0 && d[1] == 1 && d[2] == 0);
        oct_store_f64((oct_dtype)t, x, 6, 3, d);
        oct_load_i64((oct_dtype)t, x, 5, 3, i);
        assert_true(i[0] == 1 && i[1] == 0 && i[2] == 1);
        oct_store_i64((oct_dtype)t, x, 9, 3, i);
        oct_load_f32((oct_dtype)t, x, 7, 3, f);
        assert_true(f[0] == 1 && f[1] == 0 && f[2] == 1);
    }
}

static void integers_wrap_and_floats_saturate(void **state)
{
    const int64_t wide[] = {200, -1, 256, INT64_MIN, 9, -9};
    const double huge[] = {1e30, -1e30, (double)NAN, -1.9, 0x1p63, -0x1p63};
    const float small[] = {-1.0f, 300.0f, 1.9f, -1.9f};
    int64_t i64[6];
    int8_t i8[6];
    uint8_t u8[6], packed[3];
    uint64_t u64[2];

    (void)state;
    oct_store_i64(OCT_DTYPE_I8, i8, 0, 4, wide);
    assert_true(i8[0] == -56 && i8[1] == -1 && i8[2] == 0 && i8[3] == 0);
    oct_store_i64(OCT_DTYPE_BOOL, u8, 0, 4, wide);
    assert_true(u8[0] == 1 && u8[1] == 1 && u8[2] == 1 && u8[3] == 1);
    oct_store_i64(OCT_DTYPE_I4, packed, 0, 6, wide);
    oct_load_i64(OCT_DTYPE_I4, packed, 0, 6, i64);
    assert_true(i64[0] == -8 && i64[1] == -1 && i64[4] == -7 && i64[5] == 7);
    oct_load_i64(OCT_DTYPE_F64, huge, 0, 6, i64);
    assert_true(i64[0] == INT64_MAX && i64[1] == INT64_MIN && i64[2] == 0 && i64[3] == -1);
    assert_true(i64[4] == INT64_MAX && i64[5] == INT64_MIN);
    oct_store_f32(OCT_DTYPE_U8, u8, 0, 4, small);
    assert_true(u8[0] == 255 && u8[1] == 44 && u8[2] == 1 && u8[3] == 255);
    oct_convert(OCT_DTYPE_F64, (double[]){0x1.8p63, 1e30}, OCT_DTYPE_U64, u64, 2, true);
    assert_true(u64[0] == 0xc000000000000000u && u64[1] == UINT64_MAX);
}

static void large_integers_round_once(void **state)
{
    const uint64_t u64[] = {UINT64_MAX, (1u << 24) + 1, ((uint64_t)1 << 60) + 1};
    const int64_t i64[] = {((int64_t)1 << 53) + 1};
    float f[3];
    double d[3];
    int64_t same;

    (void)state;
    oct_convert(OCT_DTYPE_U64, u64, OCT_DTYPE_F32, f, 3, true);
    assert_true(f[0] == 0x1p64f && f[1] == 0x1p24f && f[2] == 0x1p60f);
    oct_convert(OCT_DTYPE_U64, u64, OCT_DTYPE_F64, d, 3, true);
    assert_true(d[0] == 0x1p64 && d[1] == 16777217);
    oct_convert(OCT_DTYPE_I64, i64, OCT_DTYPE_U64, &same, 1, true);
    assert_true(same == i64[0]); /* not by way of double */
}

static void bool_reads_any_byte_as_one(void **state)
{
    const uint8_t bytes[] = {0, 1, 2, 255};
    const float floats[] = {0.0f, -0.0f, NAN, 0.1f};
    uint8_t out[4];
    int64_t i[4];

    (void)state;
    oct_load_i64(OCT_DTYPE_BOOL, bytes, 0, 4, i);
    assert_true(i[0] == 0 && i[1] == 1 && i[2] == 1 && i[3] == 1);
    oct_convert(OCT_DTYPE_F32, floats, OCT_DTYPE_BOOL, out, 4, true);
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 1 && out[3] == 1);
}

static void f8_saturation_is_by_the_flag(void **state)
{
    const float x = 1e6f;
    const double y = 1e6;
    uint8_t out;

    (void)state;
    oct_convert(OCT_DTYPE_F32, &x, OCT_DTYPE_F8E4M3FN, &out, 1, true);
    assert_int_equal(out, 0x7e);
    oct_convert(OCT_DTYPE_F64, &y, OCT_DTYPE_F8E4M3FN, &out, 1, false);
    assert_int_equal(out, 0x7f);
}

static void what_is_no_number_is_left_alone(void **state)
{
    const double complex_one[2] = {1, 2};
    double out[2] = {0, 0};
    float f = 5;

    (void)state;
    oct_convert(OCT_DTYPE_C128, complex_one, OCT_DTYPE_C128, out, 1, true);
    assert_memory_equal(out, complex_one, sizeof(out));
    oct_convert(OCT_DTYPE_C128, complex_one, OCT_DTYPE_F32, &f, 1, true);
    oct_convert(OCT_DTYPE_STRING, complex_one, OCT_DTYPE_F32, &f, 1, true);
    oct_convert(OCT_DTYPE_F32, &f, OCT_DTYPE_NONE, out, 1, true);
    assert_true(f == 5);
    assert_memory_equal(out, complex_one, sizeof(out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_whole),
        cmocka_unit_test(bytes_round_up_and_know_overflow),
        cmocka_unit_test(all_pairs_keep_small_numbers),
        cmocka_unit_test(loads_and_stores_take_an_offset),
        cmocka_unit_test(integers_wrap_and_floats_saturate),
        cmocka_unit_test(large_integers_round_once),
        cmocka_unit_test(bool_reads_any_byte_as_one),
        cmocka_unit_test(f8_saturation_is_by_the_flag),
        cmocka_unit_test(what_is_no_number_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
