/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of what a search gave. */
#ifndef OCT_TUNE_TUNED_H
#define OCT_TUNE_TUNED_H

#include "tune/tune.h"

struct oct_tuned {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_trial *list; /* all of the database, with the plan */
    int32_t n;
    bool *front;
    int32_t best;
    const char *score_name;
    const char *base; /* the recipe as text */
};

/* A trial as callers see it. */
void oct_tuned_show(const oct_trial *t, oct_tuned_trial *out);

#endif
