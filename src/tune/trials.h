/* SPDX-License-Identifier: Apache-2.0 */
/* The trials of a search, in a database that several processes share and that outlives them. */
#ifndef OCT_TUNE_TRIALS_H
#define OCT_TUNE_TRIALS_H

#include "base/mem.h"

/* Numbers are stored: append only. */
typedef enum oct_trial_kind {
    OCT_TRIAL_PLAN = 0,  /* decides what is tried; its settings are empty */
    OCT_TRIAL_FLOAT = 1, /* the float network, for comparing */
    OCT_TRIAL_INT8 = 2
} oct_trial_kind;

typedef enum oct_trial_state {
    OCT_TRIAL_OPEN = 0,
    OCT_TRIAL_CLAIMED = 1,
    OCT_TRIAL_DONE = 2,
    OCT_TRIAL_FAILED = 3, /* these settings do not work for this network: `error` */
    OCT_TRIAL_SKIPPED = 4 /* time was over */
} oct_trial_state;

/* One trial: settings, measured on the pictures of a round. */
typedef struct oct_trial {
    int64_t id; /* in the order they were made; the order of claiming, and of ties */
    int32_t kind, state, round;
    int64_t images;       /* to score on */
    const char *settings; /* "FIELD=VALUE" a line */
    const char *measure;  /* what the score is: "AP" */
    double score;         /* more is better */
    double ms;            /* median time of one picture; 0: not known */
    int64_t bytes;        /* of the file */
    double seconds;       /* that the trial took */
    const char *digest;   /* of the network: equal ones need not be measured twice */
    const char *error;    /* "": none */
} oct_trial;

typedef struct oct_trials oct_trials;

/*
 * Opens the file, or makes it. `search` says what is searched (network, pictures, settings, seed):
 * a file that holds another search is refused.
 */
oct_status oct_trials_open(oct_ctx *ctx, const char *path, const char *search, oct_trials **out);
void oct_trials_close(oct_trials *t); /* accepts NULL */

/* Between them, all or nothing, and one process at a time. Returns st, or why it failed. */
oct_status oct_trials_begin(oct_trials *t);
oct_status oct_trials_end(oct_trials *t, oct_status st);

/* A trial to do: its kind, round, images and settings. */
oct_status oct_trials_add(oct_trials *t, const oct_trial *trial);

typedef enum oct_claim {
    OCT_CLAIM_GOT,
    OCT_CLAIM_WAIT, /* others are at work on all that is left */
    OCT_CLAIM_NONE  /* all are finished */
} oct_claim;

/*
 * Takes the first trial that nobody works at: open ones, and those of processes that have ended.
 * Those of other machines count as ended when their heart has not beaten for half an hour of this
 * process's steady clock. Strings are the arena's.
 */
oct_status oct_trials_claim(oct_trials *t, oct_arena *arena, oct_trial *out, oct_claim *how);
oct_status oct_trials_beat(oct_trials *t, int64_t id); /* still at work */

/* Stores what a claimed trial gave: state and all that follows. If another process took it over in
 * the meantime, its result stays. */
oct_status oct_trials_finish(oct_trials *t, const oct_trial *trial);
oct_status oct_trials_release(oct_trials *t, int64_t id); /* it is open again */
oct_status oct_trials_skip(oct_trials *t, int32_t round); /* those still open in this round */

/* All trials in order; the arena's. */
oct_status oct_trials_list(oct_trials *t, oct_arena *arena, oct_trial **list, int32_t *n);

#endif
