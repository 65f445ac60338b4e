/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running again what follows from a change. A plan whose values lie apart (oct_plan_new_unshared())
 * was run once; in a second run of it, a value is replaced by another and only the steps behind it
 * are run. What they read beside it is copied from the first run, when it is needed.
 */
#ifndef OCT_EXEC_RERUN_H
#define OCT_EXEC_RERUN_H

#include "exec/run.h"

/* A value put in another's place, and all that follows from it. Read-only while running. */
typedef struct oct_change {
    int32_t n;           /* values */
    const int32_t *to;   /* slots that are overwritten .. */
    const int32_t *from; /* .. with those of the same plan, of the first run */
    int32_t *steps;      /* behind it, in order */
    int32_t n_steps;
    int32_t *needed; /* slots that own memory: read, but not made anew as a whole */
    int32_t n_needed;
    int32_t *made; /* slots that own memory: written */
    int32_t n_made;
    int64_t macs;
} oct_change;

/* The slot in which a step makes the value of this name; -1: the plan has none. */
int32_t oct_plan_slot_of(const oct_plan *p, const char *name);

/* The plain slot of output i of the network, or -1 if its shape is known only at run time. */
int32_t oct_plan_output_slot(const oct_plan *p, int32_t i);

/* Slots that will be looked at after a change. */
typedef struct oct_aims {
    const int32_t *slots;
    int32_t n;
    uint8_t *leads; /* by step: 1 if it leads to one of them; what else is there need not be run */
} oct_aims;

/* Finds what leads to the slots; in the arena. */
oct_status oct_aims_find(const oct_plan *p, oct_arena *a, oct_aims *m);

/* Finds what follows. from and to are borrowed, of equal types; the rest is in the arena. */
oct_status oct_change_find(const oct_plan *p, const oct_aims *m, oct_arena *a, oct_change *c);

/* Does the change reach this slot? */
bool oct_change_reaches(const oct_plan *p, const oct_change *c, int32_t slot);

/* A second run of a plan. */
typedef struct oct_rerun {
    oct_run *run;
    uint8_t *is_stale; /* by slot: differs from the first run */
} oct_rerun;

oct_status oct_rerun_new(oct_ctx *ctx, const oct_plan *p, oct_rerun *out);
void oct_rerun_free(oct_rerun *x);

/* The first run has other values now. */
void oct_rerun_reset(oct_rerun *x);

/* Makes the change; slots that it does not reach hold anything. */
oct_status oct_rerun_run(oct_rerun *x, const oct_run *first, const oct_change *c);

#endif
