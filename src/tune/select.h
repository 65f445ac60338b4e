/* SPDX-License-Identifier: Apache-2.0 */
/* Which trials are best: successive halving, the Pareto front, and the choice under budgets. */
#ifndef OCT_TUNE_SELECT_H
#define OCT_TUNE_SELECT_H

#include "tune/trials.h"

enum {
    OCT_TUNE_ROUNDS = 3,
    OCT_TUNE_FACTOR = 3, /* of pictures, and of trials that drop out, from round to round */
    OCT_TUNE_FEW = 8     /* pictures below which a score says nothing */
};

/* Of `all` pictures, those of a round: the last one has all of them. */
int64_t oct_halving_images(int64_t all, int32_t round);

/* How many of n trials go on to the next round. */
int32_t oct_halving_keep(int32_t n);

/* What a result has to fulfil. */
typedef struct oct_budget {
    double max_drop;       /* of the score below the float network's; < 0: any */
    double max_ms, max_mb; /* 0: any */
} oct_budget;

/* Finished, and within the budgets? `float_score` is that of the same round. */
bool oct_budget_holds(const oct_budget *b, const oct_trial *t, double float_score);

/* What is aimed at within the budgets: with max_drop the fastest network, otherwise the best score.
 * Is a better than b? Ties: the earlier one. */
bool oct_trial_is_better(const oct_budget *b, double float_score, const oct_trial *a,
                         const oct_trial *other);

/*
 * The trials of a round that go on, as indices into the list: out[] has room for n. The default
 * settings (empty) always do, as the first; then the best, and a few that are smaller than all
 * better ones. Of settings that give the same network only the first go on.
 */
int32_t oct_halving_select(const oct_trial *list, int32_t n, int32_t round, const oct_budget *b,
                           int32_t *out);

/* The float network of a round; NULL: not measured. */
const oct_trial *oct_trials_float(const oct_trial *list, int32_t n, int32_t round);

/* The last round in which the default settings were measured; -1: none. */
int32_t oct_trials_last_round(const oct_trial *list, int32_t n);

/* Index of the best trial of the last round; -1: none is within the budgets. */
int32_t oct_trials_best(const oct_trial *list, int32_t n, const oct_budget *b);

/*
 * Marks the trials of a round that no other one of it beats in score, time and size at once: is[]
 * has n entries. Of equal ones the first is marked.
 */
void oct_pareto_front(const oct_trial *list, int32_t n, int32_t round, bool *is);

#endif
