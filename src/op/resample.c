/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinates and weights of resampling along one axis. */
#include "op/resample.h"

#include <math.h>

/* Where sample x of the result lies in the input. */
static double coordinate(const oct_resample *r, const oct_resample_axis *a, double x)
{
    const double in = (double)a->in, out = a->scale * in;

    switch (r->coord) {
    case OCT_COORD_ALIGN_CORNERS:
        return out == 1.0 ? 0.0 : x * (in - 1) / (out - 1);
    case OCT_COORD_ASYMMETRIC:
        return x / a->scale;
    case OCT_COORD_TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5) / a->scale;
    case OCT_COORD_TF_CROP_AND_RESIZE: {
        const double size = a->roi_end - a->roi_start;

        return a->roi_start * (in - 1) +
               (out == 1.0 ? size * (in - 1) / 2 : x * size * (in - 1) / (out - 1));
    }
    case OCT_COORD_PYTORCH_HALF_PIXEL:
        return out == 1.0 ? -0.5 : (x + 0.5) / a->scale - 0.5;
    case OCT_COORD_HALF_PIXEL_SYMMETRIC:
        /* The middle of the input stays the middle when the scaled size was rounded. */
        return in / 2 * (1 - (double)a->out / out) + (x + 0.5) / a->scale - 0.5;
    case OCT_COORD_HALF_PIXEL:
        break;
    }
    return (x + 0.5) / a->scale - 0.5;
}

static double nearest(oct_resample_round round, double x)
{
    switch (round) {
    case OCT_ROUND_FLOOR:
        return floor(x);
    case OCT_ROUND_CEIL:
        return ceil(x);
    case OCT_ROUND_PREFER_CEIL:
        return floor(x + 0.5);
    case OCT_ROUND_PREFER_FLOOR:
        break;
    }
    return ceil(x - 0.5);
}

/* The cubic convolution kernel at distance x. */
static double cubic(double a, double x)
{
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

static double kernel(const oct_resample *r, double x)
{
    if (r->mode == OCT_RESAMPLE_CUBIC) return cubic(r->cubic_a, x);
    return fmax(0, 1 - fabs(x));
}

/* Weights of one result sample. `stretch` <= 1 widens the kernel when antialiasing. */
static void fill(const oct_resample *r, int64_t n_in, double x, double stretch, int64_t taps,
                 int64_t *index, double *weight)
{
    /* An integer position prefers the window to its left, so that the kernel is not cut short. */
    const double left = ceil(x) - 1;
    const int64_t first = (int64_t)left - (taps / 2 - 1);
    double sum = 0;

    for (int64_t t = 0; t < taps; t++) {
        const int64_t i = first + t;

        weight[t] = kernel(r, ((double)i - x) * stretch);
        if (r->exclude_outside && (i < 0 || i >= n_in)) weight[t] = 0;
        index[t] = OCT_MAX(0, OCT_MIN(i, n_in - 1));
        sum += weight[t];
    }
    if (!r->exclude_outside && stretch == 1.0) return; /* they sum to 1 already */
    for (int64_t t = 0; t < taps && sum != 0; t++)
        weight[t] /= sum;
}

oct_status oct_resample_table_make(oct_arena *arena, const oct_resample *r,
                                   const oct_resample_axis *a, oct_resample_table *out)
{
    const double reach = r->mode == OCT_RESAMPLE_CUBIC ? 2 : 1;
    const double stretch = r->antialias ? fmin(a->scale, 1.0) : 1.0;
    /* No kernel needs more than the whole axis on both sides. */
    const double half = fmin(ceil(reach / stretch), 2.0 * (double)a->in + 2);
    const int64_t taps = r->mode == OCT_RESAMPLE_NEAREST ? 1 : 2 * (int64_t)half;
    const double margin = (double)taps + 2;
    size_t n;

    if (!oct_mul_size((size_t)a->out, (size_t)taps, &n)) n = SIZE_MAX;
    out->taps = taps;
    if (!(out->index = oct_arena_array(arena, n, sizeof(*out->index)))) return OCT_ERR_MEMORY;
    if (!(out->weight = oct_arena_array(arena, n, sizeof(*out->weight)))) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < a->out; i++) {
        int64_t *index = out->index + i * taps;
        double *weight = out->weight + i * taps;
        double x = coordinate(r, a, (double)i);

        if (r->coord == OCT_COORD_TF_CROP_AND_RESIZE && !(x >= 0 && x <= (double)(a->in - 1))) {
            for (int64_t t = 0; t < taps; t++)
                index[t] = -1;
            continue;
        }
        /* Beyond the edge all is the edge: keeps the casts below in range. */
        x = fmax(-margin, fmin(x, (double)a->in + margin));
        if (r->mode == OCT_RESAMPLE_NEAREST) {
            const double k = fmax(0, fmin(nearest(r->round, x), (double)(a->in - 1)));

            index[0] = (int64_t)k;
            weight[0] = 1;
        } else {
            fill(r, a->in, x, stretch, taps, index, weight);
        }
    }
    return OCT_OK;
}
