/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a run. */
#ifndef OCT_EXEC_RUN_H
#define OCT_EXEC_RUN_H

#include <stdatomic.h>

#include "exec/kernel.h"

/* A value as a hook sees it: its memory, without a copy. */
typedef struct oct_seen {
    const oct_value *value;
    const oct_type *type;
    oct_layout layout;
    int64_t pitch; /* NHWC: elements from pixel to pixel */
    const void *data;
} oct_seen;

typedef oct_status (*oct_seen_hook)(void *user, const oct_seen *seen);

/* Memory of the caller's for an input or output. */
typedef struct oct_binding {
    const void *from; /* of an input; NULL: not bound */
    bool is_in_place; /* steps read it there; otherwise it is copied when a run begins */
    void *to;         /* of an output; NULL: not bound */
    size_t size;
} oct_binding;

struct oct_run {
    oct_ctx *ctx;
    const oct_plan *plan;
    char *block;  /* activations */
    char *inputs; /* filled by the caller, never written by a step */
    char *scratch;
    oct_bound *bound;         /* one for each step */
    oct_tensor **outputs;     /* one for each output of the network */
    oct_env env;              /* for the part with run-time shapes: by value id */
    oct_binding *bindings;    /* inputs of the network, then outputs */
    oct_status unusable;      /* not OCT_OK: binding failed half-way */
    atomic_bool is_cancelled; /* set from any thread */
    oct_value_hook value_hook;
    void *value_user;
    oct_seen_hook seen_hook;
    void *seen_user;
    oct_step_hook step_hook;
    void *step_user;
};

/* Address of a slot's elements; NULL for none (-1). */
void *oct_run_address(const oct_run *r, int32_t slot);

/* The plain slot of a value that enters or leaves the plan, or -1. */
int32_t oct_run_plain_slot(const oct_plan *p, const oct_value *v);

oct_status oct_run_find_input(const oct_run *r, const char *name, int32_t *i);

/* bind.c: before the first step and after the last. */
oct_status oct_run_unbind_input(oct_run *r, int32_t i);
void oct_run_copy_inputs(const oct_run *r);
oct_status oct_run_copy_outputs(const oct_run *r);

/* For calibration and analysis: every kept value, in place. */
void oct_run_set_seen_hook(oct_run *r, oct_seen_hook hook, void *user);

/* Calls it for the inputs too: no step produces them. */
oct_status oct_run_show_inputs(const oct_run *r);

#endif
