/* SPDX-License-Identifier: Apache-2.0 */
/* What rows that normalise by mean and variance share. */
#ifndef OCT_OP_GRAD_NORM_GRAD_H
#define OCT_OP_GRAD_NORM_GRAD_H

#include "op/grad/rules.h"

typedef struct oct_norm_grad {
    oct_value *dx;
    oct_value *unit; /* x normalised, before scale and bias; NULL unless asked for */
} oct_norm_grad;

/*
 * A NormalizationGrad: x is normalised over all axes from `axis` on, without its mean if is_rms is
 * false; dy is the gradient of the normalised x.
 */
oct_norm_grad oct_grad_norm(oct_builder *b, oct_value *x, oct_value *dy, int64_t axis,
                            float epsilon, bool is_rms, bool with_unit);

#endif
