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

/* A value that is compared. */
typedef struct oct_distilled {
    oct_value *value;
    oct_value *teacher; /* the input of the graph that takes what it is in the teacher */
    oct_value *weight;  /* of its places; NULL: all count the same, and the loss is their mean */
    oct_distill_kind kind;
    int64_t axis; /* of classes, bins or coordinates; the others are places */
    bool is_inner;
} oct_distilled;

/*
 * Detectors: what a place weighs, emitted from the teacher's scores. Most places are background:
 * boxes mean nothing there, and in a mean over all places what matters would vanish. With s = the
 * highest score that the teacher gives a place, and N = max(sum of s, 1):
 *
 *   scores       count 1 / N at all places; those of classes times the score "there is an object",
 *                where a value of its own has it
 *   boxes        s / N, the mean over channels, or over the four sides of distributions
 *
 * Values of networks without such scores keep their mean.
 */
void oct_distill_weigh(oct_builder *b, oct_distilled *v, int32_t n);

/* The kind that word[0..n) names; false: none. */
bool oct_distill_kind_of(const char *word, size_t n, oct_distill_kind *out);

/*
 * Adds to a loss that was attached to the job's graph what its predictions differ by from those of
 * a teacher, as one more part: anchor by anchor where the loss has such predictions, else by the
 * values that the loss "distill" compares. found->pairs are what to feed.
 */
oct_status oct_distill_beside(const oct_loss_job *job, double weight, oct_loss_found *found);

#endif
