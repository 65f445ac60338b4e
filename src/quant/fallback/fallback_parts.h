/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of fallback share. */
#ifndef OCT_QUANT_FALLBACK_FALLBACK_PARTS_H
#define OCT_QUANT_FALLBACK_FALLBACK_PARTS_H

#include "quant/activation_after.h"
#include "quant/fallback/fallback.h"

/* --- rounding_noise.c: noise against variance, mean of the channels --- */

/* The most that is accepted of it. */
double oct_rounding_noise_limit(const oct_node *n);

/* At the result of an activation, of rounding its input. */
oct_status oct_preact_rounding_noise(const oct_qmap *m, int32_t point, const oct_following_act *f,
                                     const oct_calibration *c, oct_arena *a, double *ratio);

/* At the result of a convolution, of rounding its input with that scale (0: the one it has). */
oct_status oct_input_rounding_noise(const oct_qmap *m, const oct_node *n, float step,
                                    const oct_calibration *c, oct_arena *a, double *ratio);

/* --- cost_model.c --- */

/* By node id: 1 where float is faster, all in all, though integers would be exact enough. */
oct_status oct_fallback_by_cost(const oct_qmap *m, const oct_target *t, oct_arena *a,
                                uint8_t *is_float);

/* --- consumer_scales.c --- */

/* Where a scale shared through Concat or data movement is too coarse for a consumer, the consumers
 * quantize their inputs with scales of their own. */
oct_status oct_fallback_consumer_scales(oct_qmap *m, const oct_target *t, const oct_calibration *c,
                                        oct_arena *a);

/* --- concat_scales.c --- */

/* Operands of a Concat get its scale where the added noise is small: then it is a mere copy. */
oct_status oct_fallback_concat_scales(oct_qmap *m, const oct_target *t, const oct_calibration *c,
                                      oct_arena *a);

#endif
