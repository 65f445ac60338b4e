/* SPDX-License-Identifier: Apache-2.0 */
/* The reference kernel of an operator's row as a step: used where there is nothing faster. */
#include "exec/kernel.h"
#include "exec/run.h"

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    (void)p;
    *layout = OCT_LAYOUT_PLAIN;
    return s->node && !s->fuse.shuffle && !s->fuse.fake && !s->fuse.bins;
}

/* Tensors on the block's memory, made once for each run. */
typedef struct own {
    oct_arena *scratch;
    oct_args args;
    oct_node_for node;     /* of this run: it receives the reasons of failures */
    oct_tensor *tensors[]; /* inputs, then outputs */
} own;

static oct_status wrap(oct_ctx *ctx, const oct_slot *slot, void *data, oct_tensor **out)
{
    if (slot->data) {
        *out = oct_tensor_ref(slot->data);
        return OCT_OK;
    }
    return oct_tensor_borrow(ctx, &slot->type, data, out);
}

static void unbind(oct_bound *b)
{
    own *o = b->own;

    if (!o) return;
    for (int32_t i = 0; i < b->step->n_in + b->step->n_out; i++)
        oct_tensor_unref(o->tensors[i]);
    oct_arena_free(o->scratch);
    oct_free(b->run->ctx, o);
    b->own = NULL;
}

static oct_status bind(const oct_plan *p, oct_bound *b)
{
    const oct_step *s = b->step;
    oct_ctx *ctx = b->run->ctx;
    const size_t n = (size_t)(s->n_in + s->n_out);
    own *o = oct_calloc(ctx, 1, sizeof(*o) + n * sizeof(oct_tensor *));

    if (!o) return OCT_ERR_MEMORY;
    b->own = o;
    if (!(o->scratch = oct_arena_new(ctx))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0) OCT_TRY(wrap(ctx, &p->slots[s->in[i]], b->in[i], &o->tensors[i]));
    for (int32_t i = 0; i < s->n_out; i++)
        if (s->out[i] >= 0)
            OCT_TRY(wrap(ctx, &p->slots[s->out[i]], b->out[i], &o->tensors[s->n_in + i]));
    oct_node_for_ctx(s->node, ctx, &o->node);
    o->args = (oct_args){.ctx = ctx,
                         .node = &o->node.node,
                         .in = o->tensors,
                         .out = o->tensors + s->n_in,
                         .scratch = o->scratch,
                         .n_threads = b->n_threads};
    return OCT_OK;
}

/* Applies what is fused to the anchor to its result, in place. */
static void apply_fused(const oct_bound *b, const own *o)
{
    const oct_fuse *f = &b->step->fuse;
    const int64_t n = oct_tensor_len(o->args.out[0]);
    const float *r = f->residual >= 0 ? b->in[f->residual] : NULL;
    float *y = b->out[0];

    for (int64_t i = 0; i < n; i++) {
        y[i] = oct_act_apply(&f->act[0], y[i]);
        if (r) y[i] = oct_act_apply(&f->act[1], y[i] + f->residual_scale * r[i]);
    }
}

static oct_status run(const oct_bound *b)
{
    own *o = b->own;
    const oct_status st = b->step->node->op->ref(&o->args);

    oct_arena_reset(o->scratch);
    if (!st && !oct_step_is_bare(b->step)) apply_fused(b, o);
    return st;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    (void)p;
    s->impl = "plain";
    return OCT_OK;
}

const oct_kernel oct_kernel_reference = {
    .name = "plain",
    .flags = OCT_KERNEL_PLAIN,
    .accepts = accepts,
    .make = make,
    .bind = bind,
    .unbind = unbind,
    .run = run,
};
