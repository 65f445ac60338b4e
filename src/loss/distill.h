/* SPDX-License-Identifier: Apache-2.0 */
/* What a network's values are compared by with those of its teacher. */
#ifndef OCT_LOSS_DISTILL_H
#define OCT_LOSS_DISTILL_H

#include <stdbool.h>
#include <stddef.h>

#include "graph/op.h"

typedef enum oct_distill_kind {
    OCT_DISTILL_MSE,
    OCT_DISTILL_KL,
    OCT_DISTILL_BCE,
    OCT_DISTILL_AUTO /* by what the network does with the value; not of the operator */
} oct_distill_kind;

extern const char *const oct_distill_kinds[]; /* their names, NULL at the end */
extern const oct_op oct_op_distill_loss;

/* The kind that word[0..n) names; false: none. */
bool oct_distill_kind_of(const char *word, size_t n, oct_distill_kind *out);

#endif
