/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done to gradients before a step: sums over micro-batches, the norm, clipping. grad[i]
 * points at the gradient of parameter i; NULL, and those of frozen parameters: left out. The same
 * bytes for any number of threads.
 */
#ifndef OCT_OPTIM_GRADIENTS_H
#define OCT_OPTIM_GRADIENTS_H

#include "optim/params.h"

/* The norm over all parameters, and the first number that is none. */
typedef struct oct_grad_norm {
    double norm;       /* L2; NaN or infinite if some gradient is */
    int32_t bad;       /* the first parameter with NaN or Inf in its gradient; -1: none */
    int64_t bad_index; /* element of it */
    float bad_value;
} oct_grad_norm;

void oct_grads_norm(const oct_params *p, const float *const *grad, int n_threads,
                    oct_grad_norm *out);

/* The same for one flat buffer (weights, statistics), frozen parameters included. */
void oct_params_norm(const oct_params *p, const float *flat, int n_threads, oct_grad_norm *out);

/* By what gradients are multiplied so that their norm is at most `max` (0: no limit); as torch. */
double oct_grads_clip(double norm, double max);

/* sum = grad * factor for the first micro-batch, later sum += grad * factor. */
void oct_grads_sum(const oct_params *p, float *sum, const float *const *grad, double factor,
                   bool first, int n_threads);

#endif
