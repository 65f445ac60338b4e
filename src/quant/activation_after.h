/* SPDX-License-Identifier: Apache-2.0 */
/* The activation that consumes a value: one node, or Sigmoid and Mul (SiLU). */
#ifndef OCT_QUANT_ACTIVATION_AFTER_H
#define OCT_QUANT_ACTIVATION_AFTER_H

#include "op/act.h"

typedef struct oct_following_act {
    oct_act act;             /* NONE: there is no activation */
    const oct_value *gate;   /* the function is x * act(x), this is act(x); NULL: it is act(x) */
    const oct_value *result; /* of the function; the value itself if there is none */
    const char *name;        /* for messages: "SiLU"; "" if there is none */
} oct_following_act;

/* The activation, if all consumers of v belong to it: a single node, or Sigmoid with its Mul. */
oct_following_act oct_activation_after(const oct_value *v);

double oct_following_act_apply(const oct_following_act *b, double x);
double oct_following_act_slope(const oct_following_act *b, double x);

/* Is v produced by x * sigmoid(x), whatever else reads x? */
bool oct_is_silu(const oct_value *v);

#endif
