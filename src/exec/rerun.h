/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running only the steps downstream of a change. A plan whose values share no memory
 * (oct_plan_new_unshared()) was run once; in a second run of it, a value is replaced by another and
 * only the steps downstream of it are run. What else they read is copied from the first run when it
 * is needed.
 */
#ifndef OCT_EXEC_RERUN_H
#define OCT_EXEC_RERUN_H

#include "exec/run.h"

/* A value replaced by another, and all steps downstream of it. Read-only while running. */
typedef struct oct_change {
    int32_t n;           /* values */
    const int32_t *to;   /* slots that are overwritten .. */
    const int32_t *from; /* .. with those of the same plan, of the first run */
    int32_t *steps;      /* downstream of the value, in order */
    int32_t n_steps;
    int32_t *needed; /* slots that own memory: read, but not fully rewritten */
    int32_t n_needed;
    int32_t *made; /* slots that own memory: written */
    int32_t n_made;
    int64_t macs;
} oct_change;

/* The slot in which a step stores the value of this name; -1: the plan has none. */
int32_t oct_plan_slot_of(const oct_plan *p, const char *name);

/* The slots whose content is compared after a change. */
typedef struct oct_aims {
    const int32_t *slots;
    int32_t n;
    uint8_t *leads; /* by step: 1 if one of the slots depends on it; other steps need not be run */
} oct_aims;

/* Finds the steps that the slots depend on; in the arena. */
oct_status oct_aims_find(const oct_plan *p, oct_arena *a, oct_aims *m);

/* Finds the steps downstream. from and to are borrowed, of equal types; the rest is in the
 * arena. */
oct_status oct_change_find(const oct_plan *p, const oct_aims *m, oct_arena *a, oct_change *c);

/* Does the slot depend on the change? */
bool oct_change_reaches(const oct_plan *p, const oct_change *c, int32_t slot);

/* A second run of a plan. */
typedef struct oct_rerun {
    oct_run *run;
    uint8_t *is_stale; /* by slot: differs from the first run */
} oct_rerun;

oct_status oct_rerun_new(oct_ctx *ctx, const oct_plan *p, oct_rerun *out);
void oct_rerun_free(oct_rerun *x);

/* Call when the first run has new values. */
void oct_rerun_reset(oct_rerun *x);

/* Applies the change; slots that do not depend on it have undefined content. */
oct_status oct_rerun_run(oct_rerun *x, const oct_run *first, const oct_change *c);

#endif
