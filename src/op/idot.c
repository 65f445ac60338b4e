/* SPDX-License-Identifier: Apache-2.0 */
/* Integer dot products, four by two at a time, for whatever vector unit there is. */
#include "op/idot.h"

/* Terms that cannot overflow: 255 * 255 * 32768 < 2^31. */
#define MAX_TERMS 32768

#define WIDEN(T)                                                                                   \
    do {                                                                                           \
        const T *codes = (const T *)x + from;                                                      \
        if (step == 1)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (int16_t)(codes[i] - zero);                                                 \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (int16_t)(codes[i * step] - zero);                                          \
    } while (0)

void oct_widen(oct_dtype t, const void *x, int64_t from, int64_t step, int64_t n, int32_t zero,
               int16_t *y)
{
    if (t == OCT_DTYPE_I8)
        WIDEN(int8_t);
    else
        WIDEN(uint8_t);
}

static void add(int32_t *c, int32_t v)
{
    *c = (int32_t)((uint32_t)*c + (uint32_t)v);
}

/* Four rows of a with two of b. */
static inline __attribute__((always_inline)) void block(const int16_t *a, int64_t a_row,
                                                        const int16_t *b, int64_t b_row, int64_t k,
                                                        int32_t *c, int64_t c_row)
{
    const int16_t *a0 = a, *a1 = a + a_row, *a2 = a1 + a_row, *a3 = a2 + a_row;
    const int16_t *b0 = b, *b1 = b + b_row;
    int32_t s00 = 0, s01 = 0, s10 = 0, s11 = 0, s20 = 0, s21 = 0, s30 = 0, s31 = 0;

    for (int64_t i = 0; i < k; i++) {
        s00 += a0[i] * b0[i];
        s01 += a0[i] * b1[i];
        s10 += a1[i] * b0[i];
        s11 += a1[i] * b1[i];
        s20 += a2[i] * b0[i];
        s21 += a2[i] * b1[i];
        s30 += a3[i] * b0[i];
        s31 += a3[i] * b1[i];
    }
    add(&c[0], s00);
    add(&c[1], s01);
    add(&c[c_row], s10);
    add(&c[c_row + 1], s11);
    add(&c[2 * c_row], s20);
    add(&c[2 * c_row + 1], s21);
    add(&c[3 * c_row], s30);
    add(&c[3 * c_row + 1], s31);
}

static inline __attribute__((always_inline)) void product(int64_t m, const int16_t *a,
                                                          int64_t a_row, int64_t n,
                                                          const int16_t *b, int64_t b_row,
                                                          int64_t k, int32_t *c, int64_t c_row)
{
    for (int64_t i = 0; i < m; i += 4)
        for (int64_t j = 0; j < n; j += 2) {
            const int64_t i_end = i + 4 < m ? i + 4 : m, j_end = j + 2 < n ? j + 2 : n;

            if (i_end - i == 4 && j_end - j == 2) {
                block(a + i * a_row, a_row, b + j * b_row, b_row, k, c + i * c_row + j, c_row);
                continue;
            }
            for (int64_t p = i; p < i_end; p++)
                for (int64_t q = j; q < j_end; q++) {
                    int32_t s = 0;

                    for (int64_t t = 0; t < k; t++)
                        s += a[p * a_row + t] * b[q * b_row + t];
                    add(&c[p * c_row + q], s);
                }
        }
}

static void product_any(int64_t m, const int16_t *a, int64_t a_row, int64_t n, const int16_t *b,
                        int64_t b_row, int64_t k, int32_t *c, int64_t c_row)
{
    product(m, a, a_row, n, b, b_row, k, c, c_row);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void product_avx2(int64_t m, const int16_t *a, int64_t a_row,
                                                         int64_t n, const int16_t *b, int64_t b_row,
                                                         int64_t k, int32_t *c, int64_t c_row)
{
    product(m, a, a_row, n, b, b_row, k, c, c_row);
}
#endif

void oct_idot(int64_t m, const int16_t *a, int64_t a_row, int64_t n, const int16_t *b,
              int64_t b_row, int64_t k, int32_t *c, int64_t c_row)
{
    for (int64_t at = 0; at < k; at += MAX_TERMS) {
        const int64_t terms = OCT_MIN(k - at, MAX_TERMS);

#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2")) {
            product_avx2(m, a + at, a_row, n, b + at, b_row, terms, c, c_row);
            continue;
        }
#endif
        product_any(m, a + at, a_row, n, b + at, b_row, terms, c, c_row);
    }
}
