/* SPDX-License-Identifier: Apache-2.0 */
/* What several decoders share: scanning for scores, distributions over distances. */
#include <math.h>

#include "detect/family.h"

int64_t oct_find_above(const float *s, int64_t n, int64_t from, float t)
{
    enum { BLOCK = 32 }; /* almost all scores are low: test many with one branch */
    int64_t i = from;

    for (; i + BLOCK <= n; i += BLOCK) {
        int32_t any = 0;

        for (int k = 0; k < BLOCK; k++)
            any |= s[i + k] > t;
        if (any) break;
    }
    while (i < n && !(s[i] > t))
        i++;
    return i;
}

float oct_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

float oct_logit(float p)
{
    if (!(p > 0)) return -INFINITY;
    return p < 1 ? logf(p / (1 - p)) : INFINITY;
}

float oct_distribution_mean(const float *x, int32_t n)
{
    float top = x[0], sum = 0, mean = 0;

    for (int32_t i = 1; i < n; i++)
        top = fmaxf(top, x[i]);
    for (int32_t i = 0; i < n; i++) {
        const float e = expf(x[i] - top);

        sum += e;
        mean += e * (float)i;
    }
    return mean / sum;
}

/* The box of one cell. */
static void cell_box(const oct_decoding *d, const oct_dfl_level *l, int64_t cell,
                     oct_candidate *box)
{
    const int64_t wide = (d->reading->width + l->stride - 1) / l->stride;
    const float s = (float)l->stride;
    const float cx = ((float)(cell % wide) + 0.5f) * s + l->shift;
    const float cy = ((float)(cell / wide) + 0.5f) * s + l->shift;
    const int32_t bins = d->reading->bins;
    const float *x = l->distances.x + cell * 4 * bins;

    box->x1 = cx - oct_distribution_mean(x, bins) * s;
    box->y1 = cy - oct_distribution_mean(x + bins, bins) * s;
    box->x2 = cx + oct_distribution_mean(x + 2 * bins, bins) * s;
    box->y2 = cy + oct_distribution_mean(x + 3 * bins, bins) * s;
}

void oct_decode_dfl(oct_decoding *d, const oct_dfl_level *l)
{
    const oct_reading *r = d->reading;
    const int64_t classes = r->n_classes, n = l->scores.dim[0] * classes;
    const float t = r->is_logits ? oct_logit(d->threshold) : d->threshold;
    int64_t cell_at = -1;
    oct_candidate box = {0};

    for (int64_t i = oct_find_above(l->scores.x, n, 0, t); i < n;
         i = oct_find_above(l->scores.x, n, i + 1, t)) {
        const int64_t cell = i / classes;
        const float s = l->scores.x[i];

        if (cell != cell_at) cell_box(d, l, cell, &box); /* several classes share a box */
        cell_at = cell;
        box.score = r->is_logits ? oct_sigmoid(s) : s;
        box.category = (int32_t)(i % classes);
        box.index = l->first * classes + i;
        oct_candidates_push(d->found, &box);
    }
}
