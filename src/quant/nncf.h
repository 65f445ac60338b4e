/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NNCF's range arithmetic, for settings that ask for it and for comparing results.
 *
 * It differs from oct_qspec_solve() in that a symmetric range is at least a hundredth of the
 * largest channel's, that a tiny asymmetric range is widened by a fixed amount, and that zero gets
 * its code by moving one end outwards instead of rounding the zero point.
 */
#ifndef OCT_QUANT_NNCF_H
#define OCT_QUANT_NNCF_H

#include "base/status.h"

typedef struct oct_nncf_config {
    int bits;
    bool is_symmetric;
    bool is_signed;     /* symmetric: signed even if nothing is below zero */
    bool is_narrow;     /* one code less: 255 levels */
    bool is_half_range; /* symmetric weights: codes use half of the range (overflow fix) */
} oct_nncf_config;

/*
 * Ends of the range of n channels (or one) from their smallest and largest numbers; symmetric: max
 * is the largest distance from 0. *levels is how many codes there are.
 */
oct_status oct_nncf_range(oct_ctx *ctx, const oct_nncf_config *c, const float *min,
                          const float *max, int64_t n, float *low, float *high, int32_t *levels);

/* Scale and zero point of a range; codes are level_low to level_high (one less if narrow). */
void oct_nncf_scale(float low, float high, int32_t level_low, int32_t level_high, bool is_narrow,
                    float *scale, int32_t *zero);

#endif
