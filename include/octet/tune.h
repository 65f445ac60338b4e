/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * A search for the settings that quantize a network best, under budgets of time, size and accuracy.
 */
#ifndef OCTET_TUNE_H
#define OCTET_TUNE_H

#include <octet/eval.h>
#include <octet/recipe.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Settings that were tried on the pictures of one round. Strings are the search's. */
typedef struct oct_tuned_trial {
    size_t struct_size;   /**< set by the caller: sizeof(oct_tuned_trial) */
    int64_t id;           /**< from 1, in the order they are tried */
    int32_t round;        /**< 0, 1, 2: each has more pictures and fewer trials */
    int32_t is_float;     /**< 1: the float network, for comparing */
    int32_t is_done;      /**< 0: it failed, or was not tried */
    int32_t is_front;     /**< of the last round: nothing else is better in score, time and size */
    int32_t is_best;      /**< the one that was chosen */
    int64_t images;       /**< it was scored on */
    const char *settings; /**< "FIELD=VALUE" a line, in a recipe's words; "": the default */
    double score;         /**< AP or top-1 with labels; otherwise how far the float network's own
                               results are repeated, at most 1 */
    double ms;         /**< median time of one picture, in octet, on this machine; 0: not known */
    int64_t bytes;     /**< of the file */
    double seconds;    /**< that the trial took */
    const char *error; /**< why it failed; "": it did not */
} oct_tuned_trial;

/** How far a search is. */
typedef struct oct_tune_progress {
    size_t struct_size; /**< set by the library */
    const oct_tuned_trial
        *trial;          /**< that begins or has ended; NULL: what to try is being decided */
    int32_t has_ended;   /**< 1: its results are in */
    int32_t done, total; /**< trials, as far as they are known */
    double seconds_left; /**< about; < 0: not known */
} oct_tune_progress;

/** How to search. All it points to is needed during the call only. */
typedef struct oct_tune_options {
    size_t struct_size;   /**< set by oct_tune_options_init() */
    const char *database; /**< the file of trials (SQLite): made, or gone on with. Several processes
                               may work on one */
    int32_t trials;       /**< settings to try (default 24) */
    double seconds;       /**< begin no more trials after that; 0 (default): any time */
    double max_drop;      /**< the score may be so much below the float network's: then the fastest
                               such network is chosen, not the most accurate; < 0 (default): any */
    double max_ms, max_mb; /**< 0 (default): any */
    const char *targets;   /**< "octet,ort": try these too; NULL (default): the recipe's */
    int32_t slow;          /**< 1: AdaRound, LSQ and full bias correction too (default 0) */
    int64_t images;        /**< score on at most so many (default 128) */
    uint64_t seed;         /**< of combinations */
    const oct_preprocess *preprocess; /**< NULL: the family's */
    const oct_class_names *names;     /**< of the network's classes; NULL: as the file says */
    void (*progress)(void *user, const oct_tune_progress *p); /**< may be NULL */
    void *user;                                               /**< for `progress` */
} oct_tune_options;

OCT_API void oct_tune_options_init_sized(oct_tune_options *o, size_t struct_size);

/** Sets every option to its default. */
static inline void oct_tune_options_init(oct_tune_options *o)
{
    oct_tune_options_init_sized(o, sizeof(*o));
}

/** What a search gave. Of one thread; what its functions return is borrowed from it. */
typedef struct oct_tuned oct_tuned;

/**
 * Searches. The recipe says what to calibrate on and, where it has annotations, what to score on;
 * what it sets is not varied. Neither graph nor recipe are changed. The same search (network,
 * pictures, recipe, seed, number of trials) goes on where an earlier call on the same database
 * ended, however that ended, and comes to the same result. If it is cancelled, trials that were
 * finished are kept. The caller frees *out, before the graph's context.
 */
OCT_API oct_status oct_tune(const oct_graph *g, oct_recipe *recipe, const oct_tune_options *options,
                            oct_tuned **out);
OCT_API void oct_tuned_free(oct_tuned *t); /**< accepts NULL */

/** Trial i in the order they were made; returns 0 beyond the end. */
OCT_API int32_t oct_tuned_trial_at(const oct_tuned *t, int32_t i, oct_tuned_trial *out);

/** Index of the trial that was chosen; -1: none is within the budgets. */
OCT_API int32_t oct_tuned_best(const oct_tuned *t);

/** What `score` is: "AP", "top-1", "AP of float's boxes", .. */
OCT_API const char *oct_tuned_score_name(const oct_tuned *t);

/** The recipe that repeats a trial with all pictures to calibrate on, which the caller frees. */
OCT_API oct_status oct_tuned_recipe(const oct_tuned *t, int32_t i, oct_recipe **out);

#ifdef __cplusplus
}
#endif

#endif
