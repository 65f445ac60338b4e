/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a plan.
 *   graph ──fuse──▶ steps ──choose kernels, add reorders──▶ steps ──share memory──▶ block
 * ──make──▶
 *
 * A slot is one tensor in one layout. Slots are views of other slots (Reshape, parts of a Concat)
 * or own a range of the activation block. A step reads and writes slots with one kernel.
 */
#ifndef OCT_EXEC_PLAN_H
#define OCT_EXEC_PLAN_H

#include <octet/plan.h>

#include "graph/op.h"
#include "op/act.h"
#include "op/qparams.h"

/* Memory layout of a tensor. CLAST is NHWC, [N, spatial.., C], for ranks 3 to 5. */
typedef enum oct_layout {
    OCT_LAYOUT_ANY,   /* for kernels: whatever its operands have */
    OCT_LAYOUT_PLAIN, /* NCHW: row-major, dense, as in ONNX */
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
    bool strided;        /* NHWC: a view of some of the parent's channels, with its pitch; NCHW:
                          * of some of its pixels, with its channel pitch */
    int32_t first, last; /* steps that write it first and read it last, views included */
    size_t at;           /* bytes from the block's start, if it owns memory */
    bool is_input;       /* outside the block: its content outlives a run */
    bool pinned;         /* alive until the end: outputs, and what run-time shapes read */
} oct_slot;

typedef struct oct_kernel oct_kernel;

/* y = act[1](act[0](anchor(..)) + residual_scale * residual) */
typedef struct oct_fuse {
    oct_act act[2];
    int32_t residual; /* index into in[], or -1 */
    float residual_scale;
    int32_t shuffle; /* groups of a channel shuffle (Reshape, Transpose, Reshape); 0: none */
    bool fake;       /* QuantizeLinear and DequantizeLinear as one fake quantizer in f32 */
    int32_t bins;    /* bins of a DFL distribution (f32_dfl.c); 0: none */
    bool by_pixel;   /* DFL: the result is [pixels, sides] */
    bool nchw_out;   /* a convolution writes NCHW; the last node may be a Reshape of its result */
} oct_fuse;

/* An integer step: the quantization parameters of its operands and its result. */
typedef struct oct_integer {
    oct_codes *in;            /* one for each operand of the step; dtype NONE: not quantized */
    oct_codes out;            /* dtype NONE: the result is not quantized */
    const oct_tensor *factor; /* factor on the weights, [O or 1, C/group, 1..]; NULL: none */
    const oct_node **chain;   /* an elementwise function of one operand: its nodes, first to last */
    int n_chain;
    bool is_dynamic; /* scale and zero point of the operand are operands themselves
                      * (fuse_dynamic_quant.h) */
} oct_integer;

typedef struct oct_step {
    const oct_node *node; /* the anchor; NULL: a reorder */
    const oct_node *last; /* the node that makes the output; the anchor unless something is fused */
    oct_fuse fuse;
    const oct_integer *integer; /* NULL: not on codes */
    int32_t *in, *out;          /* slots; -1: absent */
    int32_t n_in, n_out;
    oct_layout layout; /* of its operands with channels, chosen with the kernel */
    const oct_kernel *kernel;
    const struct oct_axis_slices *slices; /* Concat and Split, set by alias.c; else NULL */
    void *state;                          /* the kernel's, read-only while running */
    size_t scratch_size;                  /* scratch bytes that a run allocates for it */
    const char *impl;                     /* implementation, for the profiler */
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
    uint8_t *is_kept;      /* by value id: a hook is to see it */
    const uint8_t *wanted; /* while compiling, by id of the caller's graph: keep these; or NULL */
    size_t max_block;      /* bytes that the block should have at most; 0: any number */
    bool is_bf16;          /* convolutions multiply bfloat16: see compile/narrow.c */
    bool is_apart;         /* no two values share memory: see oct_plan_new_unshared() */
    int32_t n_outputs;     /* of the network; values kept for hooks follow in g->outputs */
    oct_tensor **computed; /* by value id: constants computed for this plan; owned */
    size_t block_size, input_size, scratch_size;
    int64_t work; /* work of planning, in visits of slots and steps: linear in their number,
                   * which tests check */
    struct oct_dnnl *dnnl;
};

/* oct_plan_new(); hooks also see the values marked in `wanted` (by id in g). */
oct_status oct_plan_new_watching(const oct_graph *g, const oct_plan_options *options,
                                 const uint8_t *wanted, oct_plan **out);

/* The same, but values never share memory: all are there after a run, and parts of it can be run
 * again (rerun.h). */
oct_status oct_plan_new_unshared(const oct_graph *g, const oct_plan_options *options,
                                 const uint8_t *wanted, oct_plan **out);

/* What a plan for training may be asked for. */
typedef struct oct_plan_training {
    size_t max_block; /* bytes: steps run again until the block has no more, or is as small as it
                       * becomes: the caller compares (compile/recompute.c). 0: any number */
    bool is_bf16;     /* bfloat16 in convolutions and in what they read (compile/narrow.c) */
} oct_plan_training;

oct_status oct_plan_new_training(const oct_graph *g, const oct_plan_options *options,
                                 const oct_plan_training *training, oct_plan **out);

/* --- slots (slots.c) --- */

oct_status oct_plan_add_slot(oct_plan *p, const oct_slot *s, int32_t *out);

/* The slot that owns the memory; *offset: elements from its start. */
int32_t oct_slot_root(const oct_plan *p, int32_t i, int64_t *offset);

/* NHWC: elements from one pixel to the next. */
int64_t oct_slot_pitch(const oct_plan *p, int32_t i);
int64_t oct_slot_plane_pitch(const oct_plan *p, int32_t i); /* NCHW: from channel to channel */
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

/* Can this type have an NHWC form that differs from its NCHW form? */
bool oct_type_has_channels(const oct_type *t);

/* --- stages, in order --- */

oct_status oct_plan_fuse(oct_plan *p);                    /* fuse.c: nodes to steps and slots */
oct_status oct_plan_choose(oct_plan *p);                  /* choose.c: kernels, layouts, reorders */
oct_status oct_plan_narrow(oct_plan *p);                  /* narrow.c: bfloat16 for training */
oct_status oct_plan_schedule(oct_plan *p);                /* schedule.c: the order of steps */
oct_status oct_plan_recompute(oct_plan *p, size_t bytes); /* recompute.c: steps that run again */
oct_status oct_plan_alias(oct_plan *p);                   /* alias.c: views instead of copies */
oct_status oct_plan_place(oct_plan *p);                   /* memory.c: lifetimes and offsets */

/* check_plan.c: every step has a kernel, and what it reads is written before. Called before
 * aliasing it checks every value, called after it the memory that values share. */
oct_status oct_plan_check(const oct_plan *p);

/* Bytes of the block that are in use during a step: the block is at least as large as the
 * maximum. */
size_t oct_plan_live_bytes(const oct_plan *p, int32_t step);

/* That maximum, from newly computed lifetimes. */
oct_status oct_plan_peak(oct_plan *p, size_t *out);

oct_status oct_plan_add_step(oct_plan *p, const oct_step *s, int32_t *out);

#endif
