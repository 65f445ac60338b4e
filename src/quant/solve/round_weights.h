/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights to codes. The taps of a kernel see neighbouring pixels, which are much alike, so errors
 * of one sign add up: the taps that are nearest to a tie are rounded the other way until what is
 * left of the error of each kernel's sum is at most half a step. Clipped parts are not made up for.
 */
#ifndef OCT_QUANT_SOLVE_ROUND_WEIGHTS_H
#define OCT_QUANT_SOLVE_ROUND_WEIGHTS_H

#include "quant/qmap.h"

#define OCT_MAX_TAPS 64 /* pixels of a larger kernel are not alike */

/* Weights that are rounded together, one after the other in memory; 1: each by itself. */
int64_t oct_weight_taps(const oct_qpoint *p);

/* n (<= OCT_MAX_TAPS) weights that are rounded together. */
void oct_round_weights(const oct_qspec *s, float scale, int32_t zero, const float *x, int32_t *code,
                       int64_t n);

#endif
