/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that decide between integers and float share. */
#ifndef OCT_QUANT_FALLBACK_FALLBACK_PARTS_H
#define OCT_QUANT_FALLBACK_FALLBACK_PARTS_H

#include "quant/activation_after.h"
#include "quant/fallback/fallback.h"

/* --- rounding_noise.c: noise against variance, mean of the channels --- */

/* How much of it is let through. */
double oct_rounding_noise_limit(const oct_node *n);

/* Of rounding in front of an activation, behind it. */
oct_status oct_preact_rounding_noise(const oct_qmap *m, int32_t point, const oct_following_act *f,
                                     const oct_calibration *c, oct_arena *a, double *harm);

/* Of rounding what a convolution reads to that step (0: the step it has), in what it computes. */
oct_status oct_input_rounding_noise(const oct_qmap *m, const oct_node *n, float step,
                                    const oct_calibration *c, oct_arena *a, double *harm);

/* --- cost_model.c --- */

/* By node id: 1 where float is faster, all in all, though integers would be exact enough. */
oct_status oct_fallback_by_cost(const oct_qmap *m, const oct_target *t, oct_arena *a,
                                uint8_t *is_float);

/* --- consumer_scales.c --- */

/* Where values that are joined or moved have one scale that is too coarse for who reads them,
 * layers round what they read by scales of their own. */
oct_status oct_fallback_consumer_scales(oct_qmap *m, const oct_target *t, const oct_calibration *c,
                                        oct_arena *a);

/* --- concat_scales.c --- */

/* Operands of a Concat get its scale where that does no harm: then it is a mere copy. */
oct_status oct_fallback_concat_scales(oct_qmap *m, const oct_target *t, const oct_calibration *c,
                                      oct_arena *a);

#endif
