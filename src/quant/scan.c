/* SPDX-License-Identifier: Apache-2.0 */
/* Minima, maxima and counts of zeros, in lanes that compilers vectorise. */
#include "quant/scan.h"

#include <math.h>

enum { LANES = 64 };

typedef struct lanes {
    float low[LANES], high[LANES];
    float bad[LANES]; /* stays 0 while all are numbers: x - x is NaN for NaN and Inf */
    int32_t zeros[LANES];
} lanes;

/* Counts of zeros are 32 bits wide in the lanes; they are taken out before they can overflow. */
enum { ROWS_MAX = 1 << 30 };

static void start(lanes *l)
{
    for (int j = 0; j < LANES; j++) {
        l->low[j] = INFINITY;
        l->high[j] = -INFINITY;
        l->bad[j] = 0;
        l->zeros[j] = 0;
    }
}

static inline float min2(float a, float b)
{
    return a < b ? a : b;
}

static inline float max2(float a, float b)
{
    return a > b ? a : b;
}

/* A running value is the second operand: then a NaN, which compares false, leaves it alone. */
static void add_row(lanes *restrict l, const float *restrict x, int width)
{
    for (int j = 0; j < width; j++) {
        l->low[j] = min2(x[j], l->low[j]);
        l->high[j] = max2(x[j], l->high[j]);
        l->bad[j] += x[j] - x[j];
        l->zeros[j] += x[j] == 0;
    }
}

/* Four rows at once: the lanes are loaded and stored once for four numbers. */
static void add_rows4(lanes *restrict l, const float *restrict a, const float *restrict b,
                      const float *restrict c, const float *restrict d, int width)
{
    for (int j = 0; j < width; j++) {
        const float low = min2(min2(a[j], b[j]), min2(c[j], d[j]));
        const float high = max2(max2(a[j], b[j]), max2(c[j], d[j]));

        l->low[j] = min2(low, l->low[j]);
        l->high[j] = max2(high, l->high[j]);
        l->bad[j] += ((a[j] - a[j]) + (b[j] - b[j])) + ((c[j] - c[j]) + (d[j] - d[j]));
        l->zeros[j] += (a[j] == 0) + (b[j] == 0) + (c[j] == 0) + (d[j] == 0);
    }
}

static void rows(lanes *l, const float *x, int64_t n, int64_t pitch, int width)
{
    int64_t i = 0;

    for (; i + 4 <= n; i += 4, x += 4 * pitch)
        add_rows4(l, x, x + pitch, x + 2 * pitch, x + 3 * pitch, width);
    for (; i < n; i++, x += pitch)
        add_row(l, x, width);
}

static void add_lane(const lanes *l, int j, oct_scan *out)
{
    out->low = l->low[j] < out->low ? l->low[j] : out->low;
    out->high = l->high[j] > out->high ? l->high[j] : out->high;
    out->zeros += l->zeros[j];
}

static bool is_good(const lanes *l)
{
    float sum = 0;

    for (int j = 0; j < LANES; j++)
        sum += l->bad[j];
    return sum == 0;
}

static void nothing(oct_scan *out)
{
    *out = (oct_scan){.low = INFINITY, .high = -INFINITY};
}

/* n numbers one behind the other, into *out. */
static bool flat(const float *x, int64_t n, oct_scan *out)
{
    bool good = true;

    while (n > 0) {
        const int64_t n_rows = OCT_MIN(n / LANES, ROWS_MAX);
        const int rest = n_rows ? 0 : (int)n;
        lanes l;

        start(&l);
        rows(&l, x, n_rows, LANES, LANES);
        rows(&l, x, rest > 0, 0, rest);
        for (int j = 0; j < LANES; j++)
            add_lane(&l, j, out);
        good = good && is_good(&l);
        x += n_rows * LANES + rest;
        n -= n_rows * LANES + rest;
    }
    return good;
}

/* Channels [c, c + width) of rows; lanes are added to out[0], or out[j] if each is on its own. */
static bool block(const oct_sight *s, int64_t c, int width, oct_scan *out, bool each)
{
    bool good = true;

    for (int64_t i = 0, n; i < s->pixels; i += n) {
        lanes l;

        n = OCT_MIN(s->pixels - i, ROWS_MAX);
        start(&l);
        rows(&l, s->data + i * s->pitch + c, n, s->pitch, width);
        for (int j = 0; j < width; j++)
            add_lane(&l, j, &out[each ? j : 0]);
        good = good && is_good(&l);
    }
    return good;
}

bool oct_scan_all(const oct_sight *s, oct_scan *out)
{
    bool good = true;

    nothing(out);
    if (s->planar || s->pitch == s->channels) return flat(s->data, s->pixels * s->channels, out);
    for (int64_t c = 0; c < s->channels; c += LANES)
        good = block(s, c, (int)OCT_MIN(s->channels - c, LANES), out, false) && good;
    return good;
}

bool oct_scan_channels(const oct_sight *s, oct_scan *out)
{
    bool good = true;

    for (int64_t c = 0; c < s->channels; c++)
        nothing(&out[c]);
    if (s->planar) {
        for (int64_t c = 0; c < s->channels; c++)
            good = flat(s->data + c * s->pixels, s->pixels, &out[c]) && good;
        return good;
    }
    for (int64_t c = 0; c < s->channels; c += LANES)
        good = block(s, c, (int)OCT_MIN(s->channels - c, LANES), out + c, true) && good;
    return good;
}

bool oct_scan_for(oct_observer *o, const oct_sight *s, oct_scan *out)
{
    const bool good =
        oct_observer_n_ranges(o) > 1 ? oct_scan_channels(s, out) : oct_scan_all(s, out);

    if (!good) o->has_bad = true;
    return good;
}
