/* SPDX-License-Identifier: Apache-2.0 */
/* What a network's values are compared by with those of its teacher. */
#ifndef OCT_LOSS_DISTILL_H
#define OCT_LOSS_DISTILL_H

#include <stdbool.h>
#include <stddef.h>

#include "loss/loss.h"

typedef enum oct_distill_kind {
    OCT_DISTILL_MSE,
    OCT_DISTILL_KL,
    OCT_DISTILL_BCE,
    OCT_DISTILL_AUTO /* by what the network does with the value; not of the operator */
} oct_distill_kind;

extern const char *const oct_distill_kinds[]; /* their names, NULL at the end */
extern const oct_op oct_op_distill_loss, oct_op_distill_head_loss;
extern const oct_loss_row oct_loss_distill;

/* The kind that word[0..n) names; false: none. */
bool oct_distill_kind_of(const char *word, size_t n, oct_distill_kind *out);

/*
 * Adds to a loss that was attached to the job's graph what its predictions differ by from those of
 * a teacher, as one more part: anchor by anchor where the loss has such predictions, else by the
 * values that the loss "distill" compares. found->pairs are what to feed.
 */
oct_status oct_distill_beside(const oct_loss_job *job, double weight, oct_loss_found *found);

#endif
