/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Class terms of logits whose target is 0, as nearly all are: 672,000 of a picture with 8400
 * anchors and 80 classes. In float and in loops that compilers turn into vectors; a term is exact
 * to a few units of its last place (1e-6 of its value).
 */
#ifndef OCT_LOSS_BACKGROUND_H
#define OCT_LOSS_BACKGROUND_H

#include <stdint.h>

#include "loss/dfl_head.h"

/* The sum over x[0 .. n - 1]; dx gets scale times the derivatives (NULL: not wanted). */
double oct_loss_background(const oct_dfl_loss *loss, const float *x, int64_t n, double scale,
                           float *dx);

#endif
