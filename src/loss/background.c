/* SPDX-License-Identifier: Apache-2.0 */
/* Class terms of logits whose target is 0, many at a time. */
#include "loss/background.h"

#include <string.h>

/* Elements of one pass; their values stay in the first cache. */
enum { CHUNK = 512 };

/* What the terms need of a chunk of logits. */
typedef struct chunk {
    float p[CHUNK], not_p[CHUNK], softplus[CHUNK]; /* sigmoid(x), sigmoid(-x), log(1 + e^x) */
} chunk;

/* e^x for x <= 0: 2^k by the exponent's bits, a polynomial for what is left, at most log(2) / 2. */
static inline float exp_f32(float x)
{
    const float magic = 12582912.0F, least = -87.0F; /* 1.5 * 2^23 rounds; e^-88 is subnormal */
    const float y = x > least ? x : least;
    const float shifted = y * 1.44269504F + magic, k = shifted - magic;
    const float r = (y - k * .693359375F) + k * 2.12194440e-4F;
    float e = 1.0F / 720;
    int32_t bits;

    e = e * r + 1.0F / 120;
    e = e * r + 1.0F / 24;
    e = e * r + 1.0F / 6;
    e = e * r + .5F;
    e = e * r + 1;
    e = e * r + 1;
    memcpy(&bits, &e, sizeof(bits));
    bits += (int32_t)k * (1 << 23);
    memcpy(&e, &bits, sizeof(e));
    return e;
}

/* log(1 + e) for e from 0 to 1: 2 atanh(s) of s = e / (2 + e), which is at most 1/3. */
static inline float log1p_f32(float e)
{
    const float s = e / (2 + e), s2 = s * s;
    float t = 2.0F / 13;

    t = t * s2 + 2.0F / 11;
    t = t * s2 + 2.0F / 9;
    t = t * s2 + 2.0F / 7;
    t = t * s2 + 2.0F / 5;
    t = t * s2 + 2.0F / 3;
    t = t * s2 + 2;
    return t * s;
}

static void fill(chunk *c, const float *x, int n)
{
    for (int i = 0; i < n; i++) {
        const float v = x[i], e = exp_f32(v < 0 ? v : -v);
        const float large = 1 / (1 + e), small = e * large;

        c->p[i] = v < 0 ? small : large;
        c->not_p[i] = v < 0 ? large : small;
        c->softplus[i] = (v < 0 ? 0 : v) + log1p_f32(e);
    }
}

/* The terms weighed by w p^2, as the focal losses are: values replace softplus, slopes p. */
static void weigh(chunk *c, int n, float w)
{
    for (int i = 0; i < n; i++) {
        const float p = c->p[i], value = w * p * p * c->softplus[i];

        c->p[i] = 2 * value * c->not_p[i] + w * p * p * p;
        c->softplus[i] = value;
    }
}

/* Four sums side by side: one would wait for each addition to end. */
static double sum_of(const float *v, int n)
{
    double sum[4] = {0};
    int i = 0;

    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            sum[k] += (double)v[i + k];
    for (; i < n; i++)
        sum[0] += (double)v[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double oct_loss_background(const oct_dfl_loss *loss, const float *x, int64_t n, double scale,
                           float *dx)
{
    const float by = (float)scale;
    double sum = 0;
    chunk c;

    for (int64_t begin = 0; begin < n; begin += CHUNK) {
        const int count = (int)OCT_MIN(n - begin, CHUNK);

        fill(&c, x + begin, count);
        if (loss->term == OCT_CLASS_VARIFOCAL)
            weigh(&c, count, .75F);
        else if (loss->term == OCT_CLASS_FOCAL)
            weigh(&c, count, loss->focal_alpha > 0 ? (float)(1 - loss->focal_alpha) : 1);
        sum += sum_of(c.softplus, count);
        for (int i = 0; dx && i < count; i++)
            dx[begin + i] = by * c.p[i];
    }
    return sum;
}
