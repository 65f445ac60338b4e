/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which convolutions fall back to float, in runtimes that need one scale for the input and one for
 * the output of each (OCT_TARGET_MAY_PREACT, OCT_TARGET_MAY_STAY_FLOAT). Placement puts all points;
 * here those are switched off whose rounding costs more than integers gain.
 */
#ifndef OCT_QUANT_FALLBACK_FALLBACK_H
#define OCT_QUANT_FALLBACK_FALLBACK_H

#include "quant/observe/calibrate.h"
#include "quant/place/place.h"

/* Asks the calibration for means and variances of channels. */
oct_status oct_fallback_watch(const oct_qmap *m, const oct_target *t, oct_calibration *c);

/* Switches points off, with reasons. Activations have their scales, weights not yet. */
oct_status oct_fallback(oct_qmap *m, const oct_target *t, const oct_calibration *c);

/* The node gets a float input, float weights and a float result. `why` is not copied everywhere: it
 * lives as long as the qmap. */
oct_status oct_fallback_keep_float(oct_qmap *m, const oct_node *n, oct_float_reason reason,
                                   const char *why);

/* Values that no integer layer reads are not rounded. */
oct_status oct_fallback_drop_unread(oct_qmap *m, const oct_target *t);

#endif
