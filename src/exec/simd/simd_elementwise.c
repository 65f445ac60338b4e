/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops; compiled once for each instruction set, see meson.build. */
#include <math.h>

#include "exec/simd/simd.h"
#include "exec/simd/simd_epilogue.h"

/* --- activations --- */

static void act(const oct_act *act, const float *x, float *y, int64_t n)
{
    if (!act->kind && y != x) memcpy(y, x, (size_t)n * sizeof(float));
#define ROW(kind) act_row(kind, act, x, y, n)
    FOR_ACT(act->kind, ROW)
#undef ROW
}

/* --- two operands --- */

INLINE vf combine(oct_simd_op op, vf a, vf b)
{
    switch (op) {
    case OCT_SIMD_ADD:
        return a + b;
    case OCT_SIMD_SUB:
        return a - b;
    case OCT_SIMD_MUL:
        return a * b;
    case OCT_SIMD_DIV:
        return a / b;
    case OCT_SIMD_MIN:
        return vmin(a, b);
    default:
        return vmax(a, b);
    }
}

INLINE void binary_loop(oct_simd_op op, const float *a, int sa, const float *b, int sb, float *y,
                        int64_t n)
{
    const vf a0 = splat(a[0]), b0 = splat(b[0]);
    int64_t i = 0;

    for (; i + VW <= n; i += VW)
        store(y + i, combine(op, sa ? load(a + i) : a0, sb ? load(b + i) : b0));
    if (i < n)
        store_part(
            y + i,
            combine(op, sa ? load_part(a + i, n - i) : a0, sb ? load_part(b + i, n - i) : b0),
            n - i);
}

static void binary(oct_simd_op op, const float *a, int sa, const float *b, int sb, float *y,
                   int64_t n)
{
    if (n < 1) return;
    switch (op) {
#define CASE(op)                                                                                   \
    case op:                                                                                       \
        if (sa && sb)                                                                              \
            binary_loop(op, a, 1, b, 1, y, n);                                                     \
        else if (sa)                                                                               \
            binary_loop(op, a, 1, b, 0, y, n);                                                     \
        else                                                                                       \
            binary_loop(op, a, 0, b, sb, y, n);                                                    \
        return
        CASE(OCT_SIMD_ADD);
        CASE(OCT_SIMD_SUB);
        CASE(OCT_SIMD_MUL);
        CASE(OCT_SIMD_DIV);
        CASE(OCT_SIMD_MIN);
        CASE(OCT_SIMD_MAX);
#undef CASE
    default:
        return;
    }
}

/* --- softmax --- */

static float reduce_max(const float *x, int64_t n)
{
    vf m = splat(x[0]);
    float best = x[0];
    int64_t i = 0;

    for (; i + VW <= n; i += VW)
        m = vmax(m, load(x + i));
    for (int k = 0; k < VW; k++)
        best = m[k] > best ? m[k] : best;
    for (; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best;
}

static void softmax_row(const float *x, float *y, int64_t n)
{
    const float top = reduce_max(x, n);
    vf total = {0};
    float sum = 0;
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        const vf e = vexp(load(x + i) - top);

        store(y + i, e);
        total += e;
    }
    for (int k = 0; k < VW; k++)
        sum += total[k];
    if (i < n) {
        const vf e = vexp(load_part(x + i, n - i) - top);

        store_part(y + i, e, n - i);
        for (int64_t k = 0; k < n - i; k++)
            sum += e[k];
    }
    binary_loop(OCT_SIMD_MUL, y, 1, &(float){1.0f / sum}, 0, y, n);
}

/* VW columns at a time; `n` of them are real. */
INLINE void softmax_columns(const float *x, float *y, int64_t len, int64_t step, int64_t n)
{
    const int full = n == VW;
    vf top = full ? load(x) : load_part(x, n), sum = {0};

    for (int64_t k = 1; k < len; k++)
        top = vmax(top, full ? load(x + k * step) : load_part(x + k * step, n));
    for (int64_t k = 0; k < len; k++) {
        const vf e = vexp((full ? load(x + k * step) : load_part(x + k * step, n)) - top);

        sum += e;
        if (full)
            store(y + k * step, e);
        else
            store_part(y + k * step, e, n);
    }
    sum = 1.0f / sum;
    for (int64_t k = 0; k < len; k++) {
        if (full)
            store(y + k * step, load(y + k * step) * sum);
        else
            store_part(y + k * step, load_part(y + k * step, n) * sum, n);
    }
}

static void softmax(const float *x, float *y, int64_t len, int64_t step, int64_t inner)
{
    int64_t i = 0;

    if (inner == 1 && step == 1) {
        softmax_row(x, y, len);
        return;
    }
    for (; i + VW <= inner; i += VW)
        softmax_columns(x + i, y + i, len, step, VW);
    if (i < inner) softmax_columns(x + i, y + i, len, step, inner - i);
}

INLINE vf mean_of_columns(const float *x, const float *w, int64_t len, int64_t step, int64_t n)
{
    const int full = n == VW;
    vf top = full ? load(x) : load_part(x, n), sum = {0}, mean = {0};

    for (int64_t k = 1; k < len; k++)
        top = vmax(top, full ? load(x + k * step) : load_part(x + k * step, n));
    for (int64_t k = 0; k < len; k++) {
        const vf e = vexp((full ? load(x + k * step) : load_part(x + k * step, n)) - top);

        sum += e;
        mean += e * w[k];
    }
    return mean / sum;
}

static void expected_value(const float *x, const float *w, float *y, int64_t len, int64_t step,
                           int64_t inner)
{
    int64_t i = 0;

    for (; i + VW <= inner; i += VW)
        store(y + i, mean_of_columns(x + i, w, len, step, VW));
    if (i < inner) store_part(y + i, mean_of_columns(x + i, w, len, step, inner - i), inner - i);
}

INLINE void mix_loop(const float *w, const float *const *x, int n_x, float *y, int64_t n)
{
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        vf sum = load(x[0] + i) * w[0];

        for (int k = 1; k < n_x; k++)
            sum += load(x[k] + i) * w[k];
        store(y + i, sum);
    }
    if (i < n) {
        vf sum = load_part(x[0] + i, n - i) * w[0];

        for (int k = 1; k < n_x; k++)
            sum += load_part(x[k] + i, n - i) * w[k];
        store_part(y + i, sum, n - i);
    }
}

static void weighted_sum(const float *w, const float *const *x, int n_x, float *y, int64_t n)
{
    if (n_x == 4)
        mix_loop(w, x, 4, y, n);
    else if (n_x == 2)
        mix_loop(w, x, 2, y, n);
    else
        mix_loop(w, x, n_x, y, n);
}

static void axpy(float w, const float *x, float *y, int64_t n, bool first)
{
    int64_t i = 0;

    if (first) {
        binary_loop(OCT_SIMD_MUL, x, 1, &w, 0, y, n);
        return;
    }
    for (; i + VW <= n; i += VW)
        store(y + i, load(y + i) + load(x + i) * w);
    for (; i < n; i++)
        y[i] += w * x[i];
}

/* --- fake quantization --- */

/* A code is never a negative zero, so neither is its value. */
INLINE vf whole(vf x)
{
    return __builtin_convertvector(__builtin_convertvector(vround(x), vi), vf);
}

/* NaN becomes the lowest code, as vmax() returns its second operand. */
INLINE vf fake(vf x, vf scale, vf low, vf high)
{
    return whole(vmin(vmax(x / scale, low), high)) * scale;
}

static void fake_quantize(const float *x, float *y, int64_t n, const float *scale, const float *low,
                          const float *high, int step)
{
    const vf s = splat(scale[0]), l = splat(low[0]), h = splat(high[0]);
    int64_t i = 0;

    if (step) {
        for (; i + VW <= n; i += VW)
            store(y + i, fake(load(x + i), load(scale + i), load(low + i), load(high + i)));
        for (; i < n; i++) {
            const vf v = fake(splat(x[i]), splat(scale[i]), splat(low[i]), splat(high[i]));

            y[i] = v[0];
        }
        return;
    }
    for (; i + VW <= n; i += VW)
        store(y + i, fake(load(x + i), s, l, h));
    if (i < n) store_part(y + i, fake(load_part(x + i, n - i), s, l, h), n - i);
}

/* --- transposing --- */

/* Interleaves the lanes of two vectors: those of the first halves, those of the second. */
#if VW == 16
#define FIRST_HALVES(a, b)                                                                         \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define SECOND_HALVES(a, b)                                                                        \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif VW == 8
#define FIRST_HALVES(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define SECOND_HALVES(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define FIRST_HALVES(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define SECOND_HALVES(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* Transposes VW x VW in registers: each round interleaves rows that are VW / 2 apart. */
INLINE void transpose_square(vf row[VW])
{
    for (int width = 1; width < VW; width *= 2) {
        vf next[VW];

        for (int i = 0; i < VW / 2; i++) {
            next[2 * i] = FIRST_HALVES(row[i], row[i + VW / 2]);
            next[2 * i + 1] = SECOND_HALVES(row[i], row[i + VW / 2]);
        }
        for (int i = 0; i < VW; i++)
            row[i] = next[i];
    }
}

static void transpose_whole(const float *x, int64_t x_pitch, float *y, int64_t y_pitch)
{
    vf row[VW];

    for (int i = 0; i < VW; i++)
        row[i] = load(x + i * x_pitch);
    transpose_square(row);
    for (int i = 0; i < VW; i++)
        store(y + i * y_pitch, row[i]);
}

/* At the edges: fewer rows and columns than a block. */
static void transpose_part(const float *x, int64_t x_pitch, float *y, int64_t y_pitch, int64_t rows,
                           int64_t cols)
{
    for (int64_t c = 0; c < cols; c++)
        for (int64_t r = 0; r < rows; r++)
            y[c * y_pitch + r] = x[r * x_pitch + c];
}

static void transpose(const float *x, int64_t x_pitch, float *y, int64_t y_pitch, int64_t rows,
                      int64_t cols)
{
    for (int64_t r = 0; r < rows; r += VW)
        for (int64_t c = 0; c < cols; c += VW) {
            const float *from = x + r * x_pitch + c;
            float *to = y + c * y_pitch + r;

            if (r + VW <= rows && c + VW <= cols)
                transpose_whole(from, x_pitch, to, y_pitch);
            else
                transpose_part(from, x_pitch, to, y_pitch, r + VW <= rows ? VW : rows - r,
                               c + VW <= cols ? VW : cols - c);
        }
}

extern const oct_conv_simd OCT_SIMD_CONV;
extern const oct_stats_simd OCT_SIMD_STATS;
extern const oct_train_simd OCT_SIMD_TRAIN;

const oct_simd OCT_SIMD_NAME = {
    .name = OCT_SIMD_TEXT,
    .width = VW,
    .act = act,
    .binary = binary,
    .softmax = softmax,
    .expected_value = expected_value,
    .weighted_sum = weighted_sum,
    .axpy = axpy,
    .fake_quantize = fake_quantize,
    .transpose = transpose,
    .conv = &OCT_SIMD_CONV,
    .stats = &OCT_SIMD_STATS,
    .train = &OCT_SIMD_TRAIN,
};
