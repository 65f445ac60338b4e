/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a plan.
 *
 *   graph ──fuse──▶ steps ──choose kernels, add reorders──▶ steps ──share memory──▶ block ──make──▶
 *
 * A slot is one tensor in one layout. Slots are views of other slots (Reshape, parts of a Concat)
 * or own a part of the activation block. A step reads and writes slots with one kernel.
 */
#ifndef OCT_EXEC_PLAN_H
#define OCT_EXEC_PLAN_H

#include <octet/plan.h>

#include "exec/act.h"
#include "graph/op.h"
#include "op/qparams.h"

/* How a tensor lies in memory. Channels-last: [N, spatial.., C], for ranks 3 to 5. */
typedef enum oct_layout {
    OCT_LAYOUT_ANY,   /* a kernel's wish: whatever its operands have */
    OCT_LAYOUT_PLAIN, /* row-major, dense, as ONNX has it */
    OCT_LAYOUT_CLAST,
    OCT_LAYOUT_COUNT
} oct_layout;

typedef struct oct_slot {
    const oct_value *value; /* a reordered copy has the same value */
    oct_type type;          /* logical: N C spatial */
    oct_layout layout;
    oct_tensor *data;    /* constant; owned by the graph */
    int32_t parent;      /* -1: owns memory; else a view into this slot */
    int64_t offset;      /* elements from the parent's start */
    bool strided;        /* channels-last view on some of the parent's channels: has its pitch;
                            plain: on some of its pixels, with the parent's planes */
    int32_t first, last; /* steps that make it and read it last, views included */
    size_t at;           /* bytes from the block's start, if it owns memory */
    bool is_input;       /* lies beside the block: its content outlives a run */
    bool pinned;         /* stays until the end: outputs, and what run-time shapes read */
} oct_slot;

typedef struct oct_kernel oct_kernel;

/* y = act[1](act[0](anchor(..)) + residual_scale * residual) */
typedef struct oct_fuse {
    oct_act act[2];
    int32_t residual; /* index into in[], or -1 */
    float residual_scale;
    int32_t shuffle; /* groups of a channel shuffle (Reshape, Transpose, Reshape); 0: none */
    bool fake;       /* QuantizeLinear and DequantizeLinear as one, in f32 */
    int32_t bins;    /* of a distribution whose mean is taken (f32_dfl.c); 0: none */
    bool by_pixel;   /* the means of a pixel lie side by side */
    bool planes;     /* a convolution makes planes; a Reshape of them may be the last node */
} oct_fuse;

/* A step on codes: how its operands and its result stand for numbers. */
typedef struct oct_integer {
    oct_codes *in;            /* one for each operand of the step; dtype NONE: no codes */
    oct_codes out;            /* dtype NONE: the result is no code */
    const oct_tensor *factor; /* on the weights, [O or 1, C/group, 1..]; NULL: none */
    const oct_node **chain;   /* a function of one operand: its nodes, first to last */
    int n_chain;
    bool is_dynamic; /* scale and zero point of the operand are operands too (fuse_dynamic_quant.h)
                      */
} oct_integer;

typedef struct oct_step {
    const oct_node *node; /* the anchor; NULL: a reorder */
    const oct_node *last; /* the node that makes the output; the anchor unless something is fused */
    oct_fuse fuse;
    const oct_integer *integer; /* NULL: not on codes */
    int32_t *in, *out;          /* slots; -1: absent */
    int32_t n_in, n_out;
    oct_layout layout; /* of its channelled operands, chosen with the kernel */
    const oct_kernel *kernel;
    void *state;         /* the kernel's, read-only while running */
    size_t scratch_size; /* bytes a run gives it */
    const char *impl;    /* what the kernel says it uses, for the profiler */
    int64_t macs;
    const char *label; /* "Conv+Swish" */
} oct_step;

struct oct_plan {
    oct_ctx *ctx;
    oct_graph *g; /* own copy, simplified */
    oct_plan_options options;
    int n_threads;
    oct_arena *arena;
    oct_slot *slots;
    int32_t n_slots;
    size_t cap_slots;
    oct_step *steps;
    int32_t n_steps;
    size_t cap_steps;
    int32_t *slot_of[OCT_LAYOUT_COUNT]; /* for each layout, by value id: slot or -1 */
    int32_t n_ids;
    const oct_node **dynamic; /* nodes whose shapes are known only at run time, in order */
    int32_t n_dynamic;
    uint8_t *is_dynamic;   /* by node id */
    uint8_t *is_kept;      /* by value id: a hook wants to see it */
    const uint8_t *wanted; /* while compiling, by id of the caller's graph: keep these; or NULL */
    bool is_apart;         /* no value's bytes are used again: see oct_plan_new_unshared() */
    int32_t n_outputs;     /* of the network; values kept for hooks follow in g->outputs */
    oct_tensor **frozen;   /* by value id: constants computed for this plan; owned */
    size_t block_size, input_size, scratch_size;
    int64_t work; /* of planning, in visits of slots and steps: grows as they do, which tests see */
    struct oct_dnnl *dnnl;
};

/* oct_plan_new(), and the values marked in `wanted` (by id in g) are shown to hooks. */
oct_status oct_plan_new_watching(const oct_graph *g, const oct_plan_options *options,
                                 const uint8_t *wanted, oct_plan **out);

/* The same, and all values are there after a run: parts of it can be run again (rerun.h). */
oct_status oct_plan_new_unshared(const oct_graph *g, const oct_plan_options *options,
                                 const uint8_t *wanted, oct_plan **out);

/* --- slots (slots.c) --- */

oct_status oct_plan_add_slot(oct_plan *p, const oct_slot *s, int32_t *out);

/* The slot that owns the memory; *offset: elements from its start. */
int32_t oct_slot_root(const oct_plan *p, int32_t i, int64_t *offset);

/* Channels-last: elements from one pixel to the next. */
int64_t oct_slot_pitch(const oct_plan *p, int32_t i);
int64_t oct_slot_plane_pitch(const oct_plan *p, int32_t i); /* plain: from plane to plane */
bool oct_slot_is_dense(const oct_plan *p, int32_t i);
size_t oct_slot_offset_bytes(const oct_plan *p, int32_t i); /* in the block, or the inputs */
bool oct_slot_in_input(const oct_plan *p, int32_t i);       /* an input, or a view of one */

static inline int64_t oct_slot_channels(const oct_slot *s)
{
    return s->type.rank >= 2 ? s->type.dim[1] : 1;
}

/* Pixels (spatial positions) of a type of rank 2 or more. */
static inline int64_t oct_type_pixels(const oct_type *t)
{
    return t->rank >= 2 ? oct_type_span(t, 2, t->rank) : 1;
}

/* Can this type have a channels-last form that differs from its plain form? */
bool oct_type_has_channels(const oct_type *t);

/* --- stages, in order --- */

oct_status oct_plan_fuse(oct_plan *p);     /* fuse.c: nodes to steps and slots */
oct_status oct_plan_choose(oct_plan *p);   /* choose.c: kernels, layouts, reorders */
oct_status oct_plan_schedule(oct_plan *p); /* schedule.c: the order of steps */
oct_status oct_plan_alias(oct_plan *p);    /* alias.c: views instead of copies */
oct_status oct_plan_place(oct_plan *p);    /* place.c: lifetimes and offsets */

/* check_plan.c: every step has a kernel, and what it reads is made before it. Before aliasing this
 * is said of every value, behind it of the memory that values share. */
oct_status oct_plan_check(const oct_plan *p);

/* Bytes of the block that are in use during a step: the most of these is what a block needs. */
size_t oct_plan_live_bytes(const oct_plan *p, int32_t step);

/* The most of them, from lifetimes that are found anew. */
oct_status oct_plan_peak(oct_plan *p, size_t *out);

oct_status oct_plan_add_step(oct_plan *p, const oct_step *s, int32_t *out);

#endif
