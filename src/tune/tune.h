/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a search: what is measured, and how. */
#ifndef OCT_TUNE_TUNE_H
#define OCT_TUNE_TUNE_H

#include <octet/tune.h>

#include "base/mem.h"
#include "base/sha256.h"
#include "tune/select.h"

/* --- measure.c: one network --- */

/* What trials are measured with: network, pictures of each round, the float plan. */
typedef struct oct_tune_bench {
    oct_ctx *ctx;
    const oct_graph *g;
    oct_recipe *base;
    const oct_tune_options *o;
    bool has_labels;
    int64_t n_calibrate;                     /* pictures there are */
    int64_t n_score;                         /* of them, and to score on */
    oct_dataset *calibrate[OCT_TUNE_ROUNDS]; /* opened when first needed */
    oct_dataset *score[OCT_TUNE_ROUNDS];
    oct_plan *plan; /* of the float network */
    oct_run *run;
    int64_t sensitivity_ends_ns; /* on the steady clock: no further widths after it; 0: none */
    double float_ms;             /* that times of trials are given by; 0: not measured yet */
    oct_comparison *comparison[OCT_TUNE_ROUNDS]; /* where there are no labels */
} oct_tune_bench;

oct_status oct_tune_bench_init(oct_tune_bench *b, const oct_graph *g, oct_recipe *base,
                               const oct_tune_options *o);
void oct_tune_bench_fini(oct_tune_bench *b);

/* The recipe of a trial, which the caller frees. */
oct_status oct_tune_recipe(oct_tune_bench *b, const char *settings, oct_recipe **out);

oct_status oct_tune_calibration(oct_tune_bench *b, int32_t round, oct_dataset **out);

/* The network of these settings, calibrated as in a round; the caller frees *out. */
oct_status oct_tune_quantize(oct_tune_bench *b, const char *settings, int32_t round,
                             oct_quantized **out);

/* Fills in the score of a network on the pictures of the trial's round. */
oct_status oct_tune_score(oct_tune_bench *b, const oct_graph *g, oct_trial *t);

/* --- clock.c: times and sizes --- */

/* Median time of one picture, in turns with the float network's (NULL: of that one alone). */
oct_status oct_tune_time(oct_tune_bench *b, const oct_graph *g, double *ms);

/* Size and SHA-256 of the file that a graph would be. */
oct_status oct_tune_weigh(const oct_graph *g, oct_arena *arena, int64_t *bytes,
                          const char **digest);

/* --- identity.c --- */

/* A digest of all that decides what is tried and what comes of it. */
oct_status oct_tune_identity(oct_tune_bench *b, oct_arena *arena, char text[OCT_SHA256_TEXT]);

/* --- sensitivity.c --- */

/* Settings of mixed precision, by what each layer alone does to the outputs; the arena's. */
oct_status oct_tune_sensitivity(oct_tune_bench *b, oct_arena *arena, const char ***list,
                                int32_t *n);

#endif
