/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a run. */
#ifndef OCT_EXEC_RUN_H
#define OCT_EXEC_RUN_H

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

struct oct_run {
    oct_ctx *ctx;
    const oct_plan *plan;
    char *block;  /* activations */
    char *inputs; /* filled by the caller, never written by a step */
    char *scratch;
    oct_bound *bound;     /* one for each step */
    oct_tensor **outputs; /* one for each output of the network */
    oct_env env;          /* for the part with run-time shapes: by value id */
    oct_value_hook value_hook;
    void *value_user;
    oct_seen_hook seen_hook;
    void *seen_user;
    oct_step_hook step_hook;
    void *step_user;
};

/* Address of a slot's elements; NULL for none (-1). */
void *oct_run_address(const oct_run *r, int32_t slot);

/* For calibration and analysis: called for every kept value, in place. */
void oct_run_set_seen_hook(oct_run *r, oct_seen_hook hook, void *user);

/* Calls it for the inputs too: no step produces them. */
oct_status oct_run_show_inputs(const oct_run *r);

#endif
