/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of 8-bit codes by a table of powers. */
#include "op/softmax_codes.h"

#include <float.h>
#include <math.h>

#include "op/quant.h"

#define RESERVE 5.0 /* natural logarithm of what a sum stays below the largest float */

void oct_softmax_codes_init(oct_softmax_codes *s, oct_dtype dtype, int64_t n, float x_scale,
                            float y_scale, int32_t y_zero)
{
    /* Powers are as large as their sum allows. The factor cancels out, but for the rounding. */
    double top = fmax(logf(FLT_MAX / (float)OCT_MAX(n, 1)) - RESERVE, 0) / (double)x_scale;

    s->steps = fminf(floorf(1.0f / y_scale), FLT_MAX);
    /* Few elements and a fine scale: the largest power times the steps would be infinite, as it is
     * in ONNX Runtime. Where it is not, bits stay as that has them. */
    if (exp(top * (double)x_scale) * (double)s->steps > (double)FLT_MAX)
        top = fmax(logf(FLT_MAX / fmaxf(s->steps, (float)OCT_MAX(n, 1))) - RESERVE, 0) /
              (double)x_scale;
    for (int i = 0; i < 256; i++)
        s->power[i] = (float)exp((top - i) * (double)x_scale);
    s->zero = y_zero;
    s->flip = dtype == OCT_DTYPE_I8 ? 128 : 0;
    oct_quant_limits(dtype, &s->low, &s->high);
}

void oct_softmax_codes_row(const oct_softmax_codes *s, const uint8_t *x, uint8_t *y, int64_t n,
                           int64_t step)
{
    int top = 0;
    float sum = 0;

    for (int64_t i = 0; i < n; i++)
        top = OCT_MAX(top, x[i * step] ^ s->flip);
    for (int64_t i = 0; i < n; i++)
        sum += s->power[top - (x[i * step] ^ s->flip)];
    for (int64_t i = 0; i < n; i++) {
        const float share = s->power[top - (x[i * step] ^ s->flip)] * s->steps / sum;

        y[i * step] = (uint8_t)oct_quant_code(share, s->zero, s->low, s->high);
    }
}
