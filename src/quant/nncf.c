/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of src/nncf/quantization/fake_quantize.py, written anew from its description. */
#include "quant/nncf.h"

#include <float.h>
#include <math.h>

#define SMALLEST_HALF   8e-5 /* symmetric: no range is narrower than this on either side */
#define SMALLEST_WIDTH  8e-4 /* asymmetric: a narrower range is widened by as much at each end */
#define LARGEST_CHANNEL 0.01 /* symmetric: a channel has at least this part of the largest one */

static void symmetric(const oct_nncf_config *c, const float *min, const float *max, int64_t n,
                      int32_t levels, float *low, float *high)
{
    const double below = c->is_narrow ? 1.0 : (double)levels / (levels - 2);
    double largest = 0;
    bool is_signed = c->is_signed;

    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, (double)max[i]);
        is_signed = is_signed || min[i] < 0;
    }
    for (int64_t i = 0; i < n; i++) {
        const double end = fmax(fmax(largest * LARGEST_CHANNEL, SMALLEST_HALF), (double)max[i]);

        low[i] = is_signed ? (float)(-end * below) : 0;
        high[i] = (float)end;
    }
}

/* Moves one end outwards so that 0 is a multiple of the step: the one that costs less. */
static void give_zero_a_code(double *low, double *high, double top)
{
    const double zero = rint(-*low * top / (*high - *low));
    const double moved_low = zero < top ? zero / (zero - top) * *high : *low;
    const double moved_high = zero > 0 ? (zero - top) / zero * *low : *high;

    if (*high - moved_low > moved_high - *low)
        *low = moved_low;
    else
        *high = moved_high;
}

static void asymmetric(const oct_nncf_config *c, float min, float max, float *low, float *high)
{
    const double more = (double)max - (double)min > SMALLEST_WIDTH ? 0 : SMALLEST_WIDTH;
    double lo = fmin((double)min - more, 0), hi = fmax((double)max + more, 0);

    give_zero_a_code(&lo, &hi, exp2(c->bits) - 1);
    *low = (float)lo;
    *high = (float)hi;
}

oct_status oct_nncf_range(oct_ctx *ctx, const oct_nncf_config *c, const float *min,
                          const float *max, int64_t n, float *low, float *high, int32_t *levels)
{
    const int32_t all = (int32_t)1 << c->bits, half = all / 2;
    const double factor = (double)(all - 1 - c->is_narrow) / (half - 1);

    if (c->is_half_range && !c->is_symmetric)
        return oct_fail(ctx, OCT_ERR_ARG, "half of the range is for symmetric weights only");
    *levels = all - c->is_narrow;
    if (!c->is_symmetric) {
        for (int64_t i = 0; i < n; i++)
            asymmetric(c, min[i], max[i], &low[i], &high[i]);
        return OCT_OK;
    }
    symmetric(c, min, max, n, c->is_half_range ? half : *levels, low, high);
    for (int64_t i = 0; i < n && c->is_half_range; i++) {
        low[i] = (float)((double)low[i] * factor);
        high[i] = (float)((double)high[i] * factor);
    }
    return OCT_OK;
}

void oct_nncf_scale(float low, float high, int32_t level_low, int32_t level_high, bool is_narrow,
                    float *scale, int32_t *zero)
{
    const double steps = (double)level_high - level_low - is_narrow;
    double z;

    *scale = (float)(((double)high - (double)low) / steps);
    if (fabsf(*scale) < FLT_EPSILON) *scale = FLT_EPSILON;
    z = level_low + is_narrow - rint((double)low / (double)*scale);
    *zero = (int32_t)fmin(fmax(z, level_low), level_high);
}
