/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hue, saturation and value of 8-bit pictures, in float32 without rounding in between. Rows are
 * worked on in pieces with one channel after the other, so that the compiler can use vectors.
 */
#include "augment/hsv.h"

#include <string.h>

enum { PIECE = 128 };

typedef struct piece {
    float r[PIECE], g[PIECE], b[PIECE];
} piece;

static void read_piece(piece *p, const uint8_t *from, int n)
{
    for (int i = 0; i < n; i++) {
        p->r[i] = from[3 * i];
        p->g[i] = from[3 * i + 1];
        p->b[i] = from[3 * i + 2];
    }
}

static void write_piece(const piece *p, uint8_t *to, int n)
{
    for (int i = 0; i < n; i++) {
        to[3 * i] = (uint8_t)(int)(p->r[i] + 0.5f);
        to[3 * i + 1] = (uint8_t)(int)(p->g[i] + 0.5f);
        to[3 * i + 2] = (uint8_t)(int)(p->b[i] + 0.5f);
    }
}

/* How much of the chroma is missing from a channel at hue k (of 6, offset by the channel). */
static inline float missing(float k)
{
    float t;

    k = k >= 6 ? k - 6 : k;
    t = 4 - k < k ? 4 - k : k;
    t = t < 0 ? 0 : t;
    return t > 1 ? 1 : t;
}

/* The numbers of a change, hue in sixths of the circle, the rest of 255. */
typedef struct factors {
    float turn, s, add_s, v, add_v;
} factors;

static inline void change_one(const factors *f, float *pr, float *pg, float *pb)
{
    const float r = *pr, g = *pg, b = *pb;
    const float rg = r > g ? r : g, most = rg > b ? rg : b;
    const float low = r < g ? r : g, least = low < b ? low : b;
    const float d = most - least, by = 1 / (d > 0 ? d : 1);
    const float hr = (g - b) * by, hg = 2 + (b - r) * by, hb = 4 + (r - g) * by;
    float h = most == r ? hr : most == g ? hg : hb;
    float s = d / (most > 0 ? most : 1), v = most, c;

    h += f->turn;
    h = h < 0 ? h + 6 : h;
    h = h >= 6 ? h - 6 : h;
    s = s * f->s + f->add_s;
    s = s < 0 ? 0 : s > 1 ? 1 : s;
    v = v * f->v + f->add_v;
    v = v < 0 ? 0 : v > 255 ? 255 : v;
    c = v * s;
    *pr = v - c * missing(h + 5);
    *pg = v - c * missing(h + 3);
    *pb = v - c * missing(h + 1);
}

void oct_hsv_apply(const oct_rgb *im, const oct_hsv_change *c)
{
    const size_t n = (size_t)im->width * (size_t)im->height;
    /* Not negative, and below one turn, so that one correction is enough. */
    const double turn = c->turn < 0 ? c->turn + 1 : c->turn >= 1 ? c->turn - 1 : c->turn;
    const factors f = {(float)(turn * 6), (float)c->s, (float)c->add_s, (float)c->v,
                       (float)(c->add_v * 255)};
    piece p;

    memset(&p, 0, sizeof(p));
    for (size_t at = 0; at < n; at += PIECE) {
        const int m = (int)OCT_MIN(n - at, (size_t)PIECE);

        read_piece(&p, im->at + at * 3, m);
        for (int i = 0; i < PIECE; i++)
            change_one(&f, &p.r[i], &p.g[i], &p.b[i]);
        write_piece(&p, im->at + at * 3, m);
    }
}

void oct_table_apply(const oct_rgb *im, const uint8_t table[256])
{
    const size_t n = (size_t)im->width * (size_t)im->height * 3;

    for (size_t i = 0; i < n; i++)
        im->at[i] = table[im->at[i]];
}
