/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of recompute.c and recompute_copy.c: steps that run again, so that values need no memory
 * in between. */
#ifndef OCT_EXEC_COMPILE_RECOMPUTE_H
#define OCT_EXEC_COMPILE_RECOMPUTE_H

#include "exec/kernel.h"

/* What is known of the steps in their current order, with the aliasing that follows from it. */
typedef struct oct_recompute_view {
    oct_arena *arena;
    int32_t n_slots, n_steps;
    int32_t *root;         /* by slot: the one that owns its memory */
    int32_t *maker;        /* by slot: the step that makes it, or -1 */
    int32_t *first, *last; /* by root: steps that touch it first and last */
    size_t *room;          /* by root: bytes in the block */
    size_t *live;          /* by step: bytes in use */
    size_t peak;
    int32_t at;       /* the first step at which that is so */
    int32_t n_at_top; /* steps at which that is so */
} oct_recompute_view;

/* A step that is added before step `before` of the current order. */
typedef struct oct_recompute_insert {
    int32_t before;
    oct_step step;
} oct_recompute_insert;

typedef struct oct_recompute {
    oct_plan *p;
    oct_recompute_view now, next; /* next: of the order that is tried */
    int32_t *origin;              /* by slot: what it is a copy of; itself */
    size_t cap_origin;
    int32_t n_given; /* slots there were before */
    oct_slot *saved_slots;
    oct_step *saved_steps;
    size_t cap_saved_slots, cap_saved_steps;
    oct_arena *scratch; /* of aliasing */

    /* one change */
    int32_t block;                 /* the root whose values are made again after the peak */
    bool is_dry;                   /* only its price is asked for */
    uint8_t *is_moved, *is_copied; /* by step: it runs earlier; it was counted */
    size_t cap_moved, cap_copied;
    oct_recompute_insert *inserts;
    size_t cap_inserts;
    int32_t n_inserts, n_steps_used;
    double cost;     /* operations of the copies */
    size_t extended; /* bytes of other values that must now be kept across the peak */
    bool is_too_long;
} oct_recompute;

/* Makes all values of r->block that are read after the peak anew, just before they are read; or
 * finds what that costs (is_dry). */
oct_status oct_recompute_change(oct_recompute *r);

#endif
