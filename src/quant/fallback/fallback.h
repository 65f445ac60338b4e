/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which convolutions stay float where a runtime wants one scale right behind each of them and in
 * front of it (OCT_TARGET_MAY_PREACT). Placement puts all points; here those go whose rounding
 * would cost more than integers gain.
 */
#ifndef OCT_QUANT_FALLBACK_FALLBACK_H
#define OCT_QUANT_FALLBACK_FALLBACK_H

#include "quant/observe/calibrate.h"
#include "quant/place/place.h"

/* Asks for means and variances of channels. */
oct_status oct_fallback_watch(const oct_qmap *m, const oct_target *t, oct_calibration *c);

/* Switches points off, with reasons. Activations have their scales, weights not yet. */
oct_status oct_fallback(oct_qmap *m, const oct_target *t, const oct_calibration *c);

#endif
