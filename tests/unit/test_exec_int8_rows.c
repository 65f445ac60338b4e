/* SPDX-License-Identifier: Apache-2.0 */
/* Integer loops over rows and windows, each instruction set against its plain twin. */
#include "tests/unit/int8_data.h"

#include "op/quant.h"

/* --- elementwise --- */

static void codes_to_floats_and_back(void **state)
{
    enum { ROWS = 9, MAX = 150 };
    oct_rng rng;
    const oct_int8 *set, *plain = plain_set();

    (void)state;
    oct_rng_init(&rng, 2);
    for (int round = 0; round < 20; round++) {
        const int64_t n = 1 + (int64_t)oct_rng_below(&rng, MAX), each = round % 2 ? n : 1;
        const oct_int8_strides r = {
            .rows = ROWS, .n = n, .a_pitch = n + round % 3, .y_pitch = n + round % 4};
        const size_t size = (size_t)(ROWS * r.y_pitch);
        float *x = random_floats(&rng, ROWS * r.a_pitch, -9, 9), *back[2];
        float *scale[2] = {random_floats(&rng, n, 0.01f, 0.2f),
                           random_floats(&rng, n, 0.01f, 0.2f)};
        int32_t *zero[2] = {random_zeros(&rng, n), random_zeros(&rng, n)};
        const int32_t last = round % 4 == 3 ? 15 : 0;
        const oct_int8_codes q = {each, scale[0], zero[0], last};
        const oct_int8_codes to = {each, scale[1], zero[1], last};
        uint8_t *codes = random_codes(&rng, ROWS * r.a_pitch), *y[2];

        x[0] = NAN;
        for (int i = 0; (set = oct_int8_at(i)); i++) {
            for (int k = 0; k < 2; k++) {
                const oct_int8 *one = k ? plain : set;

                y[k] = calloc(size, 2);
                back[k] = calloc(size, sizeof(float));
                one->quantize(&q, &r, x, y[k]);
                one->requantize(&q, &to, &r, codes, y[k] + size);
                one->dequantize(&q, &r, codes, back[k]);
            }
            assert_memory_equal(y[0], y[1], 2 * size);
            assert_memory_equal(back[0], back[1], size * sizeof(float));
            for (int k = 0; k < 2; k++) {
                free(y[k]);
                free(back[k]);
            }
        }
        for (int k = 0; k < 2; k++) {
            free(scale[k]);
            free(zero[k]);
        }
        free(x);
        free(codes);
    }
}

static void planes(void **state)
{
    static const int64_t sizes[][3] = {/* channels, pixels, more */
                                       {3, 200, 0}, {3, 64, 0},   {1, 70, 0},
                                       {5, 33, 2},  {80, 100, 4}, {130, 65, 0}};
    oct_rng rng;
    const oct_int8 *set, *plain = plain_set();

    (void)state;
    oct_rng_init(&rng, 6);
    for (size_t s = 0; s < OCT_COUNT(sizes) * 2; s++) {
        const int64_t c = sizes[s / 2][0], n = sizes[s / 2][1], pitch = c + sizes[s / 2][2];
        const size_t size = (size_t)((n - 1) * pitch + c);
        float *scale = random_floats(&rng, c, 0.01f, 0.2f), *x = random_floats(&rng, c * n, -9, 9);
        int32_t *zero = random_zeros(&rng, c);
        const oct_int8_codes q = {s % 2 ? c : 1, scale, zero, s % 3 ? 0 : 15};
        uint8_t *codes = random_codes(&rng, (int64_t)size), *y[2];
        float *z[2];

        for (int64_t k = 0; k < c; k++) { /* what no picture should have */
            x[k * n] = INFINITY;
            x[k * n + 1] = -INFINITY;
            x[k * n + 2] = NAN;
            x[k * n + 3] = 3e38f;
            x[k * n + 4] = -3e38f;
        }
        for (int i = 0; (set = oct_int8_at(i)); i++) {
            for (int k = 0; k < 2; k++) {
                y[k] = calloc(size, 1);
                z[k] = calloc((size_t)(c * n), sizeof(float));
                (k ? plain : set)->quantize_nchw(&q, x, n, c, n, y[k], pitch);
                (k ? plain : set)->dequantize_nchw(&q, codes, pitch, c, n, z[k], n);
            }
            assert_memory_equal(y[0], y[1], size);
            assert_memory_equal(z[0], z[1], (size_t)(c * n) * sizeof(float));
            for (int k = 0; k < 2; k++) {
                free(y[k]);
                free(z[k]);
            }
        }
        free(scale);
        free(x);
        free(zero);
        free(codes);
    }
}

static void tables(void **state)
{
    const oct_int8 *set;
    uint8_t table[256];
    float floats[256];
    oct_rng rng;
    uint8_t *x;

    (void)state;
    oct_rng_init(&rng, 3);
    x = random_codes(&rng, 300);
    for (int i = 0; i < 256; i++) {
        table[i] = (uint8_t)oct_rng_below(&rng, 256);
        floats[i] = (float)oct_rng_f64(&rng);
    }
    for (int s = 0; (set = oct_int8_at(s)); s++)
        for (int64_t n = 0; n <= 300; n += 25) {
            uint8_t *y = malloc((size_t)n + 1);
            float z[300];

            y[n] = 99;
            set->lookup(table, x, y, n);
            set->lookup_f32(floats, x, z, n);
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal(y[i], table[x[i]]);
                assert_true(z[i] == floats[x[i]]);
            }
            assert_int_equal(y[n], 99);
            free(y);
        }
    free(x);
}

static void check_binary(oct_rng *rng, const oct_int8_binary_spec *spec, const oct_int8_strides *r,
                         int b_step)
{
    const oct_int8 *set, *plain = plain_set();
    const size_t size = (size_t)(r->rows * r->y_pitch) * (spec->out == OCT_INT8_U8 ? 1 : 4);
    uint8_t *a = random_codes(rng, (r->rows - 1) * r->a_pitch + r->n);
    uint8_t *b = random_codes(rng, (r->rows - 1) * r->b_pitch + (b_step ? r->n : 1));
    void *memory = get(oct_int8_binary_size(spec->c)), *got = calloc(size, 1),
         *want = calloc(size, 1);
    oct_int8_binary packed;

    oct_int8_binary_pack(spec, memory, &packed);
    plain->binary(&packed, r, a, b, b_step, want);
    for (int i = 0; (set = oct_int8_at(i)); i++) {
        set->binary(&packed, r, a, b, b_step, got);
        if (spec->out == OCT_INT8_U8)
            compare_codes(set->name, "binary", got, want, (int64_t)size, packed.direct);
        else
            compare_floats(set->name, "binary", got, want, (int64_t)size / 4);
    }
    free(a);
    free(b);
    free(memory);
    free(got);
    free(want);
}

static void sums_and_products_of_codes(void **state)
{
    oct_rng rng;

    (void)state;
    oct_rng_init(&rng, 4);
    for (int round = 0; round < 60; round++) {
        const int64_t n = 1 + (int64_t)oct_rng_below(&rng, 150), each = round % 2 ? n : 1;
        float *scale[3];
        int32_t *zero[3];
        oct_int8_binary_spec spec = {.op = (oct_int8_op)(round % 3),
                                     .c = each,
                                     .act = acts[round % 4 ? 0 : round % (int)OCT_COUNT(acts)],
                                     .out = round % 5 == 4 ? OCT_INT8_F32 : OCT_INT8_U8};
        const oct_int8_strides r = {7, n, n + round % 2, round % 7 ? n : 0, n + 1};

        for (int i = 0; i < 3; i++) {
            scale[i] = random_floats(&rng, n, 0.01f, 0.1f);
            zero[i] = random_zeros(&rng, n);
        }
        spec.a = (oct_int8_codes){each, scale[0], zero[0], 0};
        spec.b = (oct_int8_codes){1, scale[1], zero[1], 0};
        spec.y = (oct_int8_codes){each, scale[2], zero[2], round % 3 ? 0 : 15};
        check_binary(&rng, &spec, &r, round % 11 != 0);
        for (int i = 0; i < 3; i++) {
            free(scale[i]);
            free(zero[i]);
        }
    }
}

/* --- pooling --- */

static void check_pool(oct_rng *rng, const oct_int8_pool *p)
{
    const oct_int8 *set;
    uint8_t *x = random_codes(rng, p->batch * p->in_step);
    uint8_t *mean = calloc((size_t)(p->batch * p->out_step), 1);

    for (int s = 0; (set = oct_int8_at(s)); s++) {
        oct_int8_average_pool(set, p, x, mean, 1);
        for (int64_t i = 0; i < p->batch * p->out_h * p->out_w * p->c; i++) {
            const int64_t c = i % p->c, ox = i / p->c % p->out_w,
                          oy = i / p->c / p->out_w % p->out_h;
            const int64_t b = i / p->c / p->out_w / p->out_h, k = p->x.n > 1 ? c : 0;
            const int64_t at = b * p->out_step + (oy * p->out_w + ox) * p->out_pitch + c;
            int32_t sum = 0, n = 0;

            for (int64_t ky = 0; ky < p->kernel[0]; ky++)
                for (int64_t kx = 0; kx < p->kernel[1]; kx++) {
                    const int64_t iy = oy * p->stride[0] - p->pad[0] + ky;
                    const int64_t ix = ox * p->stride[1] - p->pad[1] + kx;
                    int32_t v;

                    if (iy < 0 || iy >= p->in_h || ix < 0 || ix >= p->in_w) continue;
                    v = x[b * p->in_step + (iy * p->in_w + ix) * p->in_pitch + c];
                    sum += v - p->x.zero[k];
                    n++;
                }
            if (p->count_pads) n = (int32_t)(p->kernel[0] * p->kernel[1]);
            assert_int_equal(
                mean[at], oct_quant_code((float)sum * (p->x.scale[k] / (p->y.scale[k] * (float)n)),
                                         p->y.zero[k], 0, 255));
        }
    }
    free(x);
    free(mean);
}

static void pooling(void **state)
{
    static const int64_t cases[][6] = {/* c, h, w, kernel, stride, pad */
                                       {64, 9, 9, 3, 2, 1},
                                       {13, 8, 11, 2, 2, 0},
                                       {600, 5, 5, 5, 1, 2},
                                       {32, 7, 7, 7, 1, 0},
                                       {5, 20, 20, 5, 1, 2}};
    oct_rng rng;

    (void)state;
    oct_rng_init(&rng, 5);
    for (size_t i = 0; i < OCT_COUNT(cases) * 2; i++) {
        const int64_t *k = cases[i / 2], c = k[0];
        float *scale[2] = {random_floats(&rng, c, 0.01f, 0.1f),
                           random_floats(&rng, c, 0.01f, 0.1f)};
        int32_t *zero[2] = {random_zeros(&rng, c), random_zeros(&rng, c)};
        oct_int8_pool p = {.batch = 2,
                           .c = c,
                           .in_h = k[1],
                           .in_w = k[2],
                           .in_pitch = c + 3,
                           .out_pitch = c + 1,
                           .kernel = {k[3], k[3]},
                           .stride = {k[4], k[4]},
                           .dilation = {1, 1},
                           .pad = {k[5], k[5]},
                           .pad_end = {k[5], k[5]},
                           .count_pads = i % 2,
                           .x = {i % 3 ? c : 1, scale[0], zero[0]},
                           .y = {i % 3 ? c : 1, scale[1], zero[1]}};

        p.out_h = (k[1] + 2 * k[5] - k[3]) / k[4] + 1;
        p.out_w = (k[2] + 2 * k[5] - k[3]) / k[4] + 1;
        p.in_step = p.in_h * p.in_w * p.in_pitch;
        p.out_step = p.out_h * p.out_w * p.out_pitch;
        check_pool(&rng, &p);
        for (int s = 0; s < 2; s++) {
            free(scale[s]);
            free(zero[s]);
        }
    }
}

static void the_environment_limits_the_set(void **state)
{
    static const char *const never[][2] = {
        {"SSE41", "avx"}, {"AVX2", "avx512"}, {"AVX2", "vnni"}, {"AVX512_CORE", "vnni"}};

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(never); i++) {
        setenv("ONEDNN_MAX_CPU_ISA", never[i][0], 1);
        for (int s = 0; oct_int8_at(s); s++)
            assert_null(strstr(oct_int8_at(s)->name, never[i][1]));
        unsetenv("ONEDNN_MAX_CPU_ISA");
    }
    setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1); /* what kernels get is the best of what is left */
    assert_string_equal(oct_int8_get()->name, "base");
    unsetenv("ONEDNN_MAX_CPU_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_to_floats_and_back),
        cmocka_unit_test(planes),
        cmocka_unit_test(tables),
        cmocka_unit_test(sums_and_products_of_codes),
        cmocka_unit_test(pooling),
        cmocka_unit_test(the_environment_limits_the_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
