/* SPDX-License-Identifier: Apache-2.0 */
/* Slopes of the activations in op/acts.def. */
#ifndef OCT_OP_GRAD_ACT_GRAD_H
#define OCT_OP_GRAD_ACT_GRAD_H

#include "op/act.h"

/* dy/dx at x; tests compare all vectorised forms with it. Where the slope jumps, it is that of the
 * flat side, except for Clip, whose bounds belong to the inside: so do other frameworks. */
float oct_act_slope_f32(const oct_act *act, float x);
double oct_act_slope_f64(const oct_act *act, double x);

#endif
