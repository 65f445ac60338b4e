/* SPDX-License-Identifier: Apache-2.0 */
/* Counting: indices are computed in blocks, which vectorises; then come plain increments. */
#include "stat/histogram.h"

#include <math.h>
#include <string.h>

#include "exec/simd/simd.h"

enum {
    K_MIN = -100, /* 2^-k stays a normal float */
    INDEX_BITS = 30,
    BLOCK = 256,
    LANES = 16,          /* channels whose counts are in use at a time: few enough for the cache */
    COPIES = 2,          /* neighbours are often equal: two counters, so that they need not wait */
    COPY_SLOTS = 4096,   /* largest histogram that is copied: 32 KiB of stack */
    COPY_FROM = 1 << 13, /* numbers for which copying pays */
};

int32_t oct_histogram_slots(int32_t bins)
{
    int32_t n = 32;

    while (n < 2 * OCT_MIN(bins, 65536))
        n *= 2;
    return n;
}

void oct_histogram_init(oct_histogram *h, int32_t n_slots, uint64_t *count)
{
    *h = (oct_histogram){.n_slots = n_slots, .count = count};
    h->low = INFINITY;
    h->high = -INFINITY;
    h->k = K_MIN;
}

void oct_histogram_reset(oct_histogram *h)
{
    memset(h->count, 0, (size_t)h->n_slots * sizeof(*h->count));
    oct_histogram_init(h, h->n_slots, h->count);
}

static int64_t index_of(float x, int k)
{
    return (int64_t)floor(ldexp((double)x, -k));
}

int64_t oct_histogram_used(const oct_histogram *h)
{
    return oct_histogram_is_empty(h) ? 0 : index_of(h->high, h->k) - h->base + 1;
}

static bool fits(const oct_histogram *h, float low, float high, int k)
{
    return ldexp(fmax(fabs((double)low), fabs((double)high)), -k) < 1 << INDEX_BITS &&
           index_of(high, k) - index_of(low, k) < h->n_slots;
}

/* Makes room for [low, high]: bins are merged, then moved up if there are new ones below. */
static void extend(oct_histogram *h, float low, float high)
{
    const float new_low = OCT_MIN(h->low, low), new_high = OCT_MAX(h->high, high);
    const int64_t from = h->base, n = oct_histogram_used(h);
    int64_t base, top, move;
    int by = 0, shift;

    while (!fits(h, new_low, new_high, h->k + by))
        by++;
    shift = OCT_MIN(by, 2 * INDEX_BITS);
    base = from >> shift;
    top = n ? ((from + n - 1) >> shift) - base + 1 : 0;
    /* A bin never moves up, so what is overwritten was read before. */
    for (int64_t i = 0; i < n && by > 0; i++) {
        const uint64_t count = h->count[i];

        h->count[i] = 0;
        h->count[((from + i) >> shift) - base] += count;
    }
    h->k += by;
    h->low = new_low;
    h->high = new_high;
    h->base = index_of(new_low, h->k);
    move = base - h->base;
    if (n && move > 0) {
        memmove(h->count + move, h->count, (size_t)top * sizeof(*h->count));
        memset(h->count, 0, (size_t)OCT_MIN(move, top) * sizeof(*h->count));
    }
}

/* Slots of n numbers. floor() without an instruction for it: truncate, and one less if that went
 * up. */
static void slots_of(const float *restrict x, int n, float inv, int32_t base,
                     int32_t *restrict slot)
{
    for (int i = 0; i < n; i++) {
        const float t = x[i] * inv;
        const int32_t whole = (int32_t)t;

        slot[i] = whole - base - (t < (float)whole);
    }
}

typedef struct copies {
    uint32_t count[COPIES][COPY_SLOTS];
} copies;

static void add(oct_histogram *h, copies *c, const int32_t *slot, int n)
{
    int i = 0;

    for (; c && i + COPIES <= n; i += COPIES)
        for (int k = 0; k < COPIES; k++)
            c->count[k][slot[i + k]]++;
    for (; i < n; i++)
        h->count[slot[i]]++;
}

/* `rows` rows of n numbers. Slots are gathered, over rows if they are short, before counting. */
static void count(oct_histogram *h, copies *c, const float *x, int64_t rows, int64_t n,
                  int64_t pitch)
{
    const float inv = ldexpf(1.0f, -h->k);
    const int32_t base = (int32_t)h->base;
    int32_t slot[2 * BLOCK];
    int filled = 0;

    for (int64_t r = 0; r < rows; r++, x += pitch)
        for (int64_t i = 0; i < n; i += BLOCK) {
            const int len = (int)OCT_MIN(n - i, BLOCK);

            slots_of(x + i, len, inv, base, slot + filled);
            filled += len;
            if (filled < BLOCK) continue;
            add(h, c, slot, filled);
            filled = 0;
        }
    add(h, c, slot, filled);
}

static void count_in_copies(oct_histogram *h, const float *x, int64_t rows, int64_t n,
                            int64_t pitch)
{
    const int64_t used = oct_histogram_used(h);
    copies c;

    for (int k = 0; k < COPIES; k++)
        memset(c.count[k], 0, (size_t)used * sizeof(c.count[k][0]));
    count(h, &c, x, rows, n, pitch);
    for (int k = 0; k < COPIES; k++)
        for (int64_t i = 0; i < used; i++)
            h->count[i] += c.count[k][i];
}

static void count_rows(oct_histogram *h, const float *x, int64_t rows, int64_t n, int64_t pitch)
{
    const int64_t total = rows * n;

    /* Copies count in 32 bits. */
    if (total < COPY_FROM || total > INT32_MAX || h->n_slots > COPY_SLOTS)
        count(h, NULL, x, rows, n, pitch);
    else
        count_in_copies(h, x, rows, n, pitch);
}

void oct_histogram_see(oct_histogram *h, const oct_value_view *s, const oct_scan *scan)
{
    if (scan->low > scan->high) return;
    if (scan->low < h->low || scan->high > h->high) extend(h, scan->low, scan->high);
    h->zeros += (uint64_t)scan->zeros;
    if (s->planar || s->pitch == s->channels)
        count_rows(h, s->data, 1, s->pixels * s->channels, 0);
    else
        count_rows(h, s->data, s->pixels, s->channels, s->pitch);
}

/* Channels [c, c + width) of rows: each element of a row goes to its own histogram. Their counts
 * are contiguous. */
static void count_channels(oct_histogram *h, const oct_value_view *s, int64_t c, int width,
                           int64_t by)
{
    uint64_t *counts = h[c].count;
    float inv[LANES];
    int32_t base[LANES];

    for (int j = 0; j < width; j++) {
        inv[j] = ldexpf(1.0f, -h[c + j].k);
        base[j] = (int32_t)(h[c + j].base - (h[c + j].count - counts));
    }
    oct_simd_get()->stats->count(counts, s->data + c, s->pixels, s->pitch, width, inv, base,
                                 (uint64_t)by);
}

void oct_histograms_see(oct_histogram *h, const oct_value_view *s, const oct_scan *scan, int64_t by)
{
    if (s->planar) {
        for (int64_t c = 0; c < s->channels; c++) {
            const oct_value_view plane = {s->data + c * s->pixels, s->pixels, 1, 1, true};

            oct_histogram_see(&h[c], &plane, &scan[c]);
        }
        return;
    }
    if (!s->pixels) return;
    for (int64_t c = 0; c < s->channels; c++) {
        if (scan[c].low < h[c].low || scan[c].high > h[c].high)
            extend(&h[c], scan[c].low, scan[c].high);
        h[c].zeros += (uint64_t)(scan[c].zeros * by);
        if (by <= 1) continue;
        h[c].count[index_of(scan[c].low, h[c].k) - h[c].base]++;
        h[c].count[index_of(scan[c].high, h[c].k) - h[c].base]++;
    }
    for (int64_t c = 0; c < s->channels; c += LANES)
        count_channels(h, s, c, (int)OCT_MIN(s->channels - c, LANES), by);
}

void oct_histogram_merge(oct_histogram *h, const oct_histogram *other)
{
    int64_t n;
    int shift;

    if (oct_histogram_is_empty(other)) return;
    extend(h, other->low, other->high);
    n = oct_histogram_used(other);
    shift = OCT_MIN(h->k - other->k, 2 * INDEX_BITS);
    for (int64_t i = 0; i < n; i++)
        h->count[((other->base + i) >> shift) - h->base] += other->count[i];
    h->zeros += other->zeros;
}
