/* SPDX-License-Identifier: Apache-2.0 */
/* FakeQuant, and what its kernels share. */
#ifndef OCT_OP_GRAD_FAKE_QUANT_H
#define OCT_OP_GRAD_FAKE_QUANT_H

#include "op/op.h"

/* What the operand "step" is. */
typedef enum oct_step_kind {
    OCT_STEP_SCALE,     /* the scale itself: LSQ */
    OCT_STEP_LOG2,      /* its logarithm: changes are relative, and no scale becomes negative */
    OCT_STEP_LOG2_WHOLE /* its logarithm, rounded when it is used: powers of two, TQT */
} oct_step_kind;

/* What is rounded. */
typedef enum oct_fake_role { OCT_FAKE_ACT, OCT_FAKE_WEIGHT, OCT_FAKE_BIAS } oct_fake_role;

enum {
    OCT_FAKE_LEARNS_STEP = 1u << 0,
    OCT_FAKE_LEARNS_ZERO = 1u << 1,
    OCT_FAKE_CLIPS_ONLY = 1u << 2 /* rounding says nothing to the step, only clipping does: PACT */
};

/* The scale that a step stands for: never zero, negative or subnormal. */
double oct_step_scale(oct_step_kind kind, double step);
double oct_step_of_scale(oct_step_kind kind, double scale);

/* The attributes of a node; the same for FakeQuant and FakeQuantGrad. */
typedef struct oct_fake_attrs {
    double low, high; /* codes */
    int axis;         /* -1: one step for all */
    oct_step_kind kind;
    oct_fake_role role;
    unsigned learns;
    double grad_scale; /* of the gradients of steps and zero points */
} oct_fake_attrs;

void oct_fake_read(const oct_node *n, oct_fake_attrs *out);
void oct_fake_write(oct_builder *b, oct_node *n, const oct_fake_attrs *a);

#endif
