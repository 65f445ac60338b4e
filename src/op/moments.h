/* SPDX-License-Identifier: Apache-2.0 */
/* Mean and variance, and the affine map that normalisation operators apply with them. */
#ifndef OCT_OP_MOMENTS_H
#define OCT_OP_MOMENTS_H

#include "op/work.h"

/* Over n dense elements from element `at` on: in double, in two passes. w is a float type. */
double oct_mean(oct_work w, const void *x, int64_t at, int64_t n);
double oct_square_mean(oct_work w, const void *x, int64_t at, int64_t n, double around);

/* y = (x - sub) * mul + add on the same n elements. */
void oct_affine(oct_work w, const void *x, void *y, int64_t at, int64_t n, double sub, double mul,
                double add);

/* y = (x - sub) * mul * scale[i] + bias[i]; bias may be NULL. */
void oct_affine_by(oct_work w, const void *x, void *y, int64_t at, int64_t n, double sub,
                   double mul, const void *scale, const void *bias);

/* Element i of a work array. */
static inline double oct_work_get(oct_work w, const void *x, int64_t i)
{
    return w == OCT_WORK_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static inline void oct_work_put(oct_work w, void *x, int64_t i, double v)
{
    if (w == OCT_WORK_F64)
        ((double *)x)[i] = v;
    else
        ((float *)x)[i] = (float)v;
}

#endif
