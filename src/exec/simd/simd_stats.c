/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of calibration over all elements; compiled for each instruction set. */
#include "exec/simd/simd_stats.h"

#include "exec/simd/vec.h"

enum {
    RUN = 16, /* rows summed up in float */
    NV = 4,   /* vectors side by side: independent chains of additions */
};

INLINE vf load_some(const float *p, int64_t n)
{
    return n >= VW ? load(p) : load_part(p, n);
}

INLINE void store_some(float *p, vf v, int64_t n)
{
    if (n >= VW)
        store(p, v);
    else
        store_part(p, v, n);
}

/* --- extremes --- */

/* The running extreme is the second operand: that is what vmin() and vmax() return for NaN. */
INLINE void scan_columns(oct_column_stats *l, int at, const float *x, int64_t rows, int64_t pitch,
                         int nv, int64_t n)
{
    vf low[NV], high[NV], bad[NV], zeros[NV];

    for (int k = 0; k < nv; k++) {
        low[k] = load_some(l->low + at + k * VW, n);
        high[k] = load_some(l->high + at + k * VW, n);
        bad[k] = load_some(l->bad + at + k * VW, n);
        zeros[k] = load_some(l->zeros + at + k * VW, n);
    }
    for (int64_t i = 0; i < rows; i++, x += pitch)
        for (int k = 0; k < nv; k++) {
            const vf v = load_some(x + at + k * VW, n);

            low[k] = vmin(v, low[k]);
            high[k] = vmax(v, high[k]);
            bad[k] += v - v;
            zeros[k] += pick(v == 0.0f, splat(1.0f), splat(0.0f));
        }
    for (int k = 0; k < nv; k++) {
        store_some(l->low + at + k * VW, low[k], n);
        store_some(l->high + at + k * VW, high[k], n);
        store_some(l->bad + at + k * VW, bad[k], n);
        store_some(l->zeros + at + k * VW, zeros[k], n);
    }
}

static void scan(oct_column_stats *l, const float *x, int64_t rows, int64_t pitch, int width)
{
    int at = 0;

    for (; at + NV * VW <= width; at += NV * VW)
        scan_columns(l, at, x, rows, pitch, NV, VW);
    for (; at + VW <= width; at += VW)
        scan_columns(l, at, x, rows, pitch, 1, VW);
    if (at < width) scan_columns(l, at, x, rows, pitch, 1, width - at);
}

/* --- sums --- */

INLINE void sum_columns(double *sum, const float *x, int64_t rows, int64_t pitch, int nv, int64_t n)
{
    for (int64_t i = 0; i < rows; i += RUN) {
        const int64_t end = i + RUN < rows ? i + RUN : rows;
        vf part[NV] = {{0}};

        for (int64_t r = i; r < end; r++, x += pitch)
            for (int k = 0; k < nv; k++)
                part[k] += load_some(x + k * VW, n);
        for (int k = 0; k < nv; k++)
            for (int64_t j = 0; j < n; j++)
                sum[k * VW + j] += (double)part[k][j];
    }
}

static void sum(double *sum, const float *x, int64_t rows, int64_t pitch, int64_t width)
{
    int64_t at = 0;

    for (; at + NV * VW <= width; at += NV * VW)
        sum_columns(sum + at, x + at, rows, pitch, NV, VW);
    for (; at + VW <= width; at += VW)
        sum_columns(sum + at, x + at, rows, pitch, 1, VW);
    if (at < width) sum_columns(sum + at, x + at, rows, pitch, 1, width - at);
}

/* --- counts --- */

/* floor() without an instruction for it: truncate, and one less if that went up. */
INLINE vi floors(vf t)
{
    const vi whole = __builtin_convertvector(t, vi);

    return whole + (t < __builtin_convertvector(whole, vf));
}

INLINE void count_columns(uint64_t *count, const float *x, int64_t rows, int64_t pitch, int n,
                          const float *inv, const int32_t *base, uint64_t by)
{
    const vf factor = load_some(inv, n);
    vi first = {0};

    memcpy(&first, base, (size_t)n * sizeof(*base));
    for (int64_t i = 0; i < rows; i++, x += pitch) {
        const vi at = floors(load_some(x, n) * factor) - first;
        int32_t slot[VW];

        memcpy(slot, &at, sizeof(slot));
        for (int j = 0; j < n; j++)
            count[slot[j]] += by;
    }
}

static void count(uint64_t *count, const float *x, int64_t rows, int64_t pitch, int width,
                  const float *inv, const int32_t *base, uint64_t by)
{
    int at = 0;

    for (; at + VW <= width; at += VW)
        count_columns(count, x + at, rows, pitch, VW, inv + at, base + at, by);
    if (at < width) count_columns(count, x + at, rows, pitch, width - at, inv + at, base + at, by);
}

const oct_stats_simd OCT_SIMD_STATS = {.scan = scan, .sum = sum, .count = count};
