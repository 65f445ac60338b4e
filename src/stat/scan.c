/* SPDX-License-Identifier: Apache-2.0 */
/* Minima, maxima and counts of zeros. */
#include "stat/scan.h"

#include <math.h>

#include "exec/simd/simd.h"

enum { LANES = OCT_STATS_LANES };

static void start(oct_column_stats *l)
{
    for (int j = 0; j < LANES; j++) {
        l->low[j] = INFINITY;
        l->high[j] = -INFINITY;
        l->bad[j] = 0;
        l->zeros[j] = 0;
    }
}

static void add_lane(const oct_column_stats *l, int j, oct_scan *out)
{
    out->low = l->low[j] < out->low ? l->low[j] : out->low;
    out->high = l->high[j] > out->high ? l->high[j] : out->high;
    out->zeros += (int64_t)l->zeros[j];
}

static bool is_good(const oct_column_stats *l)
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

/* n contiguous elements, into *out. */
static bool flat(const float *x, int64_t n, oct_scan *out)
{
    const oct_stats_simd *simd = oct_simd_get()->stats;
    bool good = true;

    while (n > 0) {
        const int64_t n_rows = OCT_MIN(n / LANES, OCT_STATS_ROWS);
        const int rest = n_rows ? 0 : (int)n;
        oct_column_stats l;

        start(&l);
        simd->scan(&l, x, n_rows, LANES, LANES);
        simd->scan(&l, x, rest > 0, 0, rest);
        for (int j = 0; j < LANES; j++)
            add_lane(&l, j, out);
        good = good && is_good(&l);
        x += n_rows * LANES + rest;
        n -= n_rows * LANES + rest;
    }
    return good;
}

/* Channels [c, c + width) of rows; lanes are added to out[0], or out[j] if each is on its own. */
static bool block(const oct_value_view *s, int64_t c, int width, oct_scan *out, bool each)
{
    const oct_stats_simd *simd = oct_simd_get()->stats;
    bool good = true;

    for (int64_t i = 0, n; i < s->pixels; i += n) {
        oct_column_stats l;

        n = OCT_MIN(s->pixels - i, OCT_STATS_ROWS);
        start(&l);
        simd->scan(&l, s->data + i * s->pitch + c, n, s->pitch, width);
        for (int j = 0; j < width; j++)
            add_lane(&l, j, &out[each ? j : 0]);
        good = good && is_good(&l);
    }
    return good;
}

bool oct_scan_all(const oct_value_view *s, oct_scan *out)
{
    bool good = true;

    nothing(out);
    if (s->planar || s->pitch == s->channels) return flat(s->data, s->pixels * s->channels, out);
    for (int64_t c = 0; c < s->channels; c += LANES)
        good = block(s, c, (int)OCT_MIN(s->channels - c, LANES), out, false) && good;
    return good;
}

bool oct_scan_channels(const oct_value_view *s, oct_scan *out)
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
