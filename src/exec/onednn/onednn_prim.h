/* SPDX-License-Identifier: Apache-2.0 */
/* One oneDNN primitive as a step: what all onednn_*.c kernels share. */
#ifndef OCT_EXEC_ONEDNN_ONEDNN_PRIM_H
#define OCT_EXEC_ONEDNN_ONEDNN_PRIM_H

#include <dnnl.h>

#include "exec/kernel.h"
#include "exec/onednn/onednn.h"
#include "op/conv_geometry.h"

struct oct_dnnl {
    oct_ctx *ctx;
    dnnl_engine_t engine;
};

/* Where an argument's memory comes from. */
typedef enum oct_prim_from {
    OCT_PRIM_IN,     /* b->in[index] */
    OCT_PRIM_OUT,    /* b->out[index] */
    OCT_PRIM_PACKED, /* packed[index]: constants in the primitive's own format */
    OCT_PRIM_SCRATCH,
} oct_prim_from;

typedef struct oct_prim_arg {
    int arg;
    oct_prim_from from;
    int32_t index;
    dnnl_memory_desc_t md;
} oct_prim_arg;

#define OCT_PRIM_MAX_ARGS 8

/* A step's state. */
typedef struct oct_prim {
    dnnl_primitive_t prim;
    oct_prim_arg args[OCT_PRIM_MAX_ARGS];
    int32_t n_args;
    void *packed[OCT_PRIM_MAX_ARGS];
    int32_t n_packed;
} oct_prim;

/* Fails with the node's name and what oneDNN said. */
oct_status oct_dnnl_fail(const oct_step *s, dnnl_status_t status, const char *what);

/*
 * Are the sizes of all operands and results within what oneDNN supports? Its dimensions have 64
 * bits, but kernels multiply them in 32. Every kernel asks this before it accepts a step.
 */
bool oct_prim_sizes_fit(const oct_plan *p, const oct_step *s);

/* Are the windows within what oneDNN supports? */
bool oct_prim_window_fits(const oct_conv_geometry *g);

/* Makes a new, empty state for the step. */
oct_status oct_prim_new(oct_plan *p, oct_step *s, oct_prim **out);

/* Makes the primitive; fills s->impl and the scratch argument. Takes ownership of desc. */
oct_status oct_prim_finish(oct_plan *p, oct_step *s, oct_prim *prim, dnnl_primitive_desc_t desc);

void oct_prim_add(oct_prim *prim, int arg, oct_prim_from from, int32_t index,
                  const dnnl_memory_desc_t *md);

/* Reorders a constant into the primitive's format and adds it as an argument. */
oct_status oct_prim_pack(oct_plan *p, const oct_step *s, oct_prim *prim, int arg,
                         const dnnl_memory_desc_t *from, const void *data,
                         const dnnl_memory_desc_t *to);

/* The memory descriptor of a slot in its layout and pitch, with its logical dims. */
void oct_prim_md(const oct_plan *p, int32_t slot, dnnl_memory_desc_t *md);

/* Adds an activation as a post-op; false if oneDNN has none for it. */
bool oct_prim_append_act(dnnl_post_ops_t ops, const oct_act *act);

dnnl_data_type_t oct_prim_dtype(oct_dtype t); /* dnnl_data_type_undef: oneDNN has none */

/* The kernel functions for such a state. */
void oct_prim_drop(oct_plan *p, oct_step *s);
oct_status oct_prim_bind(const oct_plan *p, oct_bound *b);
void oct_prim_unbind(oct_bound *b);
oct_status oct_prim_run(const oct_bound *b);

#endif
