/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel is. The table is tried in order; the reference kernel at its end accepts
 * everything. */
#ifndef OCT_EXEC_KERNEL_H
#define OCT_EXEC_KERNEL_H

#include "exec/plan.h"

/* One step of one run: addresses are fixed when the run is made. */
typedef struct oct_bound {
    const oct_step *step;
    void **in, **out; /* addresses; NULL: absent */
    void *scratch;    /* 64-byte aligned */
    int n_threads;
    void *own; /* the kernel's, for this run only */
    struct oct_run *run;
} oct_bound;

enum {
    OCT_KERNEL_STRIDED_IN = 1u << 0,  /* reads NHWC views with any pitch */
    OCT_KERNEL_STRIDED_OUT = 1u << 1, /* writes them */
    OCT_KERNEL_IN_PLACE = 1u << 2,    /* output may be the memory of input 0 */
    OCT_KERNEL_PLAIN = 1u << 3,       /* reported as slow */
    OCT_KERNEL_REORDER = 1u << 4,     /* only moves data */
    OCT_KERNEL_VIEW = 1u << 5,        /* the output may be a view of the input (alias.c) */
    OCT_KERNEL_INTEGER = 1u << 6,     /* accepts integer steps, and only those */
    OCT_KERNEL_NCHW_OUT = 1u << 7,    /* writes NCHW with any channel pitch */
    OCT_KERNEL_OPENMP = 1u << 8,      /* starts threads of its own: not inside a team */
};

struct oct_kernel {
    const char *name;
    unsigned flags;
    oct_layout out_layout; /* ANY: that of the step; else the layout the kernel always writes */

    /* Operands and results that are NCHW whatever the layout of the step: bit i for operand i.
     * Weights, and their gradients, have no pixels. */
    unsigned plain_in, plain_out;

    /* Does it support this step? *layout: what its operands with channels must have (default
     * PLAIN). */
    bool (*accepts)(const oct_plan *p, const oct_step *s, oct_layout *layout);

    /* Prepares s->state, s->scratch_size, s->impl; slots are final. May be NULL. */
    oct_status (*make)(oct_plan *p, oct_step *s);
    void (*drop)(oct_plan *p, oct_step *s);

    /* Prepares b->own for one run; may be NULL. */
    oct_status (*bind)(const oct_plan *p, oct_bound *b);
    void (*unbind)(oct_bound *b);

    oct_status (*run)(const oct_bound *b);
};

#define OCT_KERNEL(sym) extern const oct_kernel oct_kernel_##sym;
#include "exec/kernels.def"
#undef OCT_KERNEL

const oct_kernel *oct_kernel_at(int i); /* NULL beyond the end */

/* Operands of a step, for kernels. */
static inline const oct_slot *oct_step_in(const oct_plan *p, const oct_step *s, int32_t i)
{
    return i < s->n_in && s->in[i] >= 0 ? &p->slots[s->in[i]] : NULL;
}

static inline const oct_slot *oct_step_out(const oct_plan *p, const oct_step *s, int32_t i)
{
    return i < s->n_out && s->out[i] >= 0 ? &p->slots[s->out[i]] : NULL;
}

/* Operand i if it is a constant, or NULL. */
static inline oct_tensor *oct_step_const(const oct_plan *p, const oct_step *s, int32_t i)
{
    const oct_slot *slot = oct_step_in(p, s, i);

    return slot ? slot->data : NULL;
}

/* Is nothing fused to it? */
static inline bool oct_step_is_bare(const oct_step *s)
{
    return s->fuse.residual < 0 && !s->fuse.act[0].kind && !s->fuse.act[1].kind;
}

/* All operands f32? */
bool oct_step_is_f32(const oct_plan *p, const oct_step *s);

/* Memory that lives as long as the plan, zeroed. */
static inline void *oct_plan_alloc(oct_plan *p, size_t n, size_t size)
{
    return oct_arena_array(p->arena, n, size);
}

#endif
