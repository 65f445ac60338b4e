/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that decide between integers and float share. */
#ifndef OCT_QUANT_DECIDE_PARTS_H
#define OCT_QUANT_DECIDE_PARTS_H

#include "quant/behind.h"
#include "quant/decide.h"

/* A convolution that has codes for weights, so far. */
bool oct_decide_is_integer(const oct_qmap *m, const oct_node *n);

/* A point that others have their scale from hands it on. */
void oct_decide_switch_off(oct_qmap *m, int32_t point, const char *why);

/* --- decide_harm.c: noise against variance, mean of the channels --- */

/* How much of it is let through. */
double oct_decide_limit(const oct_node *n);

/* Of rounding in front of an activation, behind it. */
oct_status oct_decide_preact_harm(const oct_qmap *m, int32_t point, const oct_behind *f,
                                  const oct_calibration *c, oct_arena *a, double *harm);

/* Of rounding what a convolution reads to that step (0: the step it has), in what it computes. */
oct_status oct_decide_input_harm(const oct_qmap *m, const oct_node *n, float step,
                                 const oct_calibration *c, oct_arena *a, double *harm);

/* --- decide_cost.c --- */

/* By node id: 1 where float is faster, all in all, though integers would be exact enough. */
oct_status oct_decide_costs(const oct_qmap *m, const oct_target *t, oct_arena *a,
                            uint8_t *is_float);

/* --- decide_split.c --- */

/* Where values that are joined or moved have one scale that is too coarse for who reads them,
 * layers round what they read by scales of their own. */
oct_status oct_decide_split(oct_qmap *m, const oct_target *t, const oct_calibration *c,
                            oct_arena *a);

/* --- decide_share.c --- */

/* Operands of a Concat get its scale where that does no harm: then it is a mere copy. */
oct_status oct_decide_share(oct_qmap *m, const oct_target *t, const oct_calibration *c,
                            oct_arena *a);

#endif
