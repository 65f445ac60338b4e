/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of a layer while it is learned how they are rounded. In steps of its scale a weight
 * is x = w * fold / scale; what the layer computes with is (its code) * scale / fold.
 *
 *   AdaRound  code = floor(x) + h(v): v is learned, and h goes from anywhere between 0 and 1 to
 *             either of them
 *   LSQ       code = round(v), v begins as x; its gradient goes straight through the rounding
 */
#ifndef OCT_QUANT_LEARN_ROUNDING_H
#define OCT_QUANT_LEARN_ROUNDING_H

#include "quant/qmap.h"

/* h(v) = clip(1.2 * sigmoid(v) - 0.1, 0, 1): reaches its ends at finite v. */
float oct_adaround_h(float v);
float oct_adaround_v(float h); /* its inverse, for 0 <= h <= 1 */

/* 1 - |2h - 1|^b: 1 in the middle, 0 at the ends; and its derivative. */
double oct_adaround_cost(float h, double b);
double oct_adaround_slope(float h, double b);

typedef enum oct_rounding_kind { OCT_ROUNDING_ADAROUND, OCT_ROUNDING_LSQ } oct_rounding_kind;

typedef struct oct_rounding {
    oct_rounding_kind kind;
    int64_t len;
    float low, high; /* codes */
    float *unit;     /* of each weight: scale / fold */
    float *base;     /* AdaRound: floor(x), so that base and base + 1 are codes */
} oct_rounding;

/* For the weights of a point, which has no zero points; arrays live in the arena. */
oct_status oct_rounding_make(const oct_qpoint *p, oct_rounding_kind kind, oct_arena *a,
                             oct_rounding *out);

/* What v begins with: so that weights are as they are. */
void oct_rounding_start(const oct_rounding *r, const float *w, float *v);

/* Moves v to where it stands for the codes of the rounded weights `now`, which need not be the
 * nearest: taps of a kernel are rounded together (round_weights.h). LSQ: to at most `most` (below
 * half) of a step from them. */
void oct_rounding_hold(const oct_rounding *r, const float *now, float most, float *v);

/* From AdaRound to LSQ, with the codes that AdaRound ends with; `w` are the weights themselves. */
void oct_rounding_refine(oct_rounding *r, const float *w, float most, float *v);

/* Weights as the layer reads them, while learning (AdaRound: not rounded yet) or at the end. */
void oct_rounding_values(const oct_rounding *r, const float *v, bool at_end, float *w);

/* From gradients of weights to those of v; `factor` multiplies dw. */
void oct_rounding_grad(const oct_rounding *r, const float *v, const float *dw, double factor,
                       float *dv);

/* AdaRound: adds the gradient of lambda * cost(h, b). */
void oct_rounding_press(const oct_rounding *r, const float *v, double lambda, double b, float *dv);

/* LSQ: adds the gradient of gamma * the mean squared distance of weights from their codes. */
void oct_rounding_pull(const oct_rounding *r, const float *v, double gamma, float *dv);

/* AdaRound: rounds the given share of the weights for good, those that are nearest to a code; the
 * others can make up for it. */
void oct_rounding_settle(const oct_rounding *r, float *v, double share);

#endif
