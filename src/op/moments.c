/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of normalisation in double; the maps themselves in the type the kernel works in. */
#include "op/moments.h"

#define SUM(T, expr)                                                                               \
    do {                                                                                           \
        const T *p_ = (const T *)x + at;                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double v = (double)p_[i];                                                        \
            sum += (expr);                                                                         \
        }                                                                                          \
    } while (0)

double oct_mean(oct_work w, const void *x, int64_t at, int64_t n)
{
    double sum = 0;

    if (w == OCT_WORK_F64)
        SUM(double, v);
    else
        SUM(float, v);
    return sum / (double)n;
}

double oct_square_mean(oct_work w, const void *x, int64_t at, int64_t n, double around)
{
    double sum = 0;

    if (w == OCT_WORK_F64)
        SUM(double, (v - around) * (v - around));
    else
        SUM(float, (v - around) * (v - around));
    return sum / (double)n;
}

#define MAP(T, expr)                                                                               \
    do {                                                                                           \
        const T *restrict from_ = (const T *)x + at;                                               \
        const T sub_ = (T)sub, mul_ = (T)mul;                                                      \
        T *restrict to_ = (T *)y + at;                                                             \
                                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T v = (from_[i] - sub_) * mul_;                                                  \
            to_[i] = (expr);                                                                       \
        }                                                                                          \
    } while (0)

void oct_affine(oct_work w, const void *x, void *y, int64_t at, int64_t n, double sub, double mul,
                double add)
{
    if (w == OCT_WORK_F64)
        MAP(double, v + add);
    else
        MAP(float, v + (float)add);
}

void oct_affine_by(oct_work w, const void *x, void *y, int64_t at, int64_t n, double sub,
                   double mul, const void *scale, const void *bias)
{
    const double *sd = scale, *bd = bias;
    const float *sf = scale, *bf = bias;

    if (w == OCT_WORK_F64 && bias)
        MAP(double, v *sd[i] + bd[i]);
    else if (w == OCT_WORK_F64)
        MAP(double, v *sd[i]);
    else if (bias)
        MAP(float, v *sf[i] + bf[i]);
    else
        MAP(float, v *sf[i]);
}
