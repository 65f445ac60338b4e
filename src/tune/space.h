/* SPDX-License-Identifier: Apache-2.0 */
/* What is tried: a table of dimensions, and settings made of it. */
#ifndef OCT_TUNE_SPACE_H
#define OCT_TUNE_SPACE_H

#include <octet/recipe.h>

#include "base/mem.h"

/* Settings of trials are "FIELD=VALUE" a line, in the words of a recipe; "" is the default. */

typedef struct oct_space_options {
    const char *fixed;   /* what the recipe sets, as oct_recipe_lines() writes it: not varied */
    const char *targets; /* "octet,ort": these too; NULL: the recipe's only */
    bool slow;           /* also what takes minutes for each trial */
    const char *const *mixed; /* settings made by sensitivity, each a value of one dimension */
    int32_t n_mixed;
    uint64_t seed;
} oct_space_options;

/*
 * Up to n different settings, the arena's: the default, then one change at a time, then
 * combinations drawn by the seed.
 */
oct_status oct_space_list(oct_arena *arena, const oct_space_options *o, int32_t n,
                          const char ***list, int32_t *n_listed);

/* Both together; NULL if they set the same field, or there is no memory. */
const char *oct_space_merge(oct_arena *arena, const char *a, const char *b);

/* Sets them in a recipe. Only fields that a search varies are accepted: they may come from a file
 * that somebody else wrote. */
oct_status oct_space_apply(oct_ctx *ctx, const char *settings, oct_recipe *r);

#endif
