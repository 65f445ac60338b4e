/* SPDX-License-Identifier: Apache-2.0 */
/* Activations that other kernels can apply to their results. */
#ifndef OCT_EXEC_ACT_H
#define OCT_EXEC_ACT_H

#include "graph/op.h"

typedef enum oct_act_kind {
    OCT_ACT_NONE = 0,
    OCT_ACT_RELU,
    OCT_ACT_CLIP,  /* a = lowest, b = highest */
    OCT_ACT_LEAKY, /* a = slope below zero */
    OCT_ACT_SWISH, /* x * sigmoid(a * x) */
    OCT_ACT_HARD_SWISH,
    OCT_ACT_SIGMOID,
    OCT_ACT_HARD_SIGMOID, /* min(1, max(0, a * x + b)) */
    OCT_ACT_TANH,
    OCT_ACT_GELU,      /* with erf */
    OCT_ACT_GELU_TANH, /* approximated */
    OCT_ACT_ELU,       /* a = alpha */
    OCT_ACT_MISH,
    OCT_ACT_COUNT
} oct_act_kind;

typedef struct oct_act {
    oct_act_kind kind;
    float a, b;
} oct_act;

/* Is this node an activation of one f32 operand with constant parameters? */
bool oct_act_of(const oct_node *n, oct_act *act);

/* One value; the oracle of all vectorised forms. */
float oct_act_apply(const oct_act *act, float x);

const char *oct_act_name(oct_act_kind kind);

#endif
