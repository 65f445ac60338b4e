/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv, ConvTranspose and ConvGradWeight with activations in bfloat16, by oneDNN: sums are float32,
 * and so are weights and their gradients outside of the kernel. Weights change from run to run:
 * each run packs them, rounded, into its scratch memory. A ConvTranspose is the gradient of a
 * convolution with respect to its operand.
 */
#include "exec/onednn/onednn_conv_bf16.h"
#include "exec/run.h"

enum { X, W, B };
enum { DY = 1 };

#define ALIGN 64

typedef struct state {
    oct_bf16_kind kind;
    dnnl_primitive_t conv, reorder; /* reorder: of weights, NULL: not needed */
    dnnl_memory_desc_t src, dst, plain, packed, bias, residual, pad, reorder_pad;
    size_t pad_at, reorder_at; /* in the scratch memory, after the packed weights */
    bool has_bias;
    int residual_arg; /* 0: none */
} state;

/* --- the step's state --- */

static size_t aligned(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static dnnl_status_t make_reorder(const oct_plan *p, state *st)
{
    const bool from_plain = st->kind != OCT_BF16_WEIGHTS;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t d = NULL;
    dnnl_status_t status;

    if (dnnl_memory_desc_equal(&st->plain, &st->packed)) return dnnl_success;
    if ((status = dnnl_primitive_attr_create(&attr))) return status;
    status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (!status)
        status = dnnl_reorder_primitive_desc_create(
            &d, from_plain ? &st->plain : &st->packed, p->dnnl->engine,
            from_plain ? &st->packed : &st->plain, p->dnnl->engine, attr);
    if (!status) st->reorder_pad = *dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0);
    if (!status) status = dnnl_primitive_create(&st->reorder, d);
    if (d) dnnl_primitive_desc_destroy(d);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

static void find_residual(const oct_plan *p, const oct_step *s, state *st)
{
    const int at = s->fuse.act[0].kind ? 1 + (s->fuse.act[0].kind == OCT_ACT_HARD_SIGMOID) : 0;

    if (s->fuse.residual < 0) return;
    oct_bf16_act_md(&p->slots[s->in[s->fuse.residual]].type, dnnl_f32, &st->residual);
    st->residual_arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1;
}

static dnnl_status_t make_prims(oct_plan *p, oct_step *s, const oct_bf16_conv *c, state *st)
{
    dnnl_primitive_desc_t d = NULL;
    dnnl_status_t status = oct_bf16_conv_desc(p, s, c, &d);
    const char *name = NULL;

    if (status) return status;
    st->packed = *dnnl_primitive_desc_query_md(
        d, c->kind == OCT_BF16_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    st->pad = *dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0);
    if (!dnnl_primitive_desc_query(d, dnnl_query_impl_info_str, 0, (void *)&name) && name)
        s->impl = oct_arena_printf(p->arena, "bf16 %s", name);
    status = dnnl_primitive_create(&st->conv, d);
    dnnl_primitive_desc_destroy(d);
    return status ? status : make_reorder(p, st);
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    dnnl_status_t status;
    oct_bf16_conv c;

    if (!st) return OCT_ERR_MEMORY;
    s->state = st;
    if (!oct_bf16_conv_find(p, s, oct_prim_dtype(p->slots[s->out[0]].type.dtype), &c))
        return oct_node_fail(s->node, OCT_ERR_STATE, "has changed since its kernel was chosen");
    st->kind = c.kind;
    st->src = c.src;
    st->dst = c.dst;
    st->plain = c.plain;
    st->bias = c.bias;
    st->has_bias = c.has_bias;
    find_residual(p, s, st);
    if ((status = make_prims(p, s, &c, st)))
        return oct_dnnl_fail(s, status, "convolution in bfloat16");
    st->pad_at = st->reorder ? aligned(dnnl_memory_desc_get_size(&st->packed)) : 0;
    st->reorder_at = st->pad_at + aligned(dnnl_memory_desc_get_size(&st->pad));
    s->scratch_size = st->reorder_at +
                      (st->reorder ? aligned(dnnl_memory_desc_get_size(&st->reorder_pad)) : 0) +
                      ALIGN;
    return OCT_OK;
}

static void drop(oct_plan *p, oct_step *s)
{
    const state *st = s->state;

    (void)p;
    if (!st) return;
    if (st->conv) dnnl_primitive_destroy(st->conv);
    if (st->reorder) dnnl_primitive_destroy(st->reorder);
}

/* --- running --- */

#define MAX_ARGS 8

typedef struct own {
    dnnl_stream_t stream;
    dnnl_exec_arg_t conv[MAX_ARGS], reorder[MAX_ARGS];
    int n_conv, n_reorder;
} own;

static void add(const oct_plan *p, dnnl_exec_arg_t *args, int *n, int arg,
                const dnnl_memory_desc_t *md, void *data, dnnl_status_t *st)
{
    if (*st) return;
    args[*n].arg = arg;
    *st = dnnl_memory_create(&args[*n].memory, md, p->dnnl->engine, data);
    if (!*st) ++*n;
}

static dnnl_status_t add_args(const oct_plan *p, const oct_bound *b, own *o)
{
    const state *st = b->step->state;
    const bool is_grad = st->kind == OCT_BF16_WEIGHTS;
    char *scratch = b->scratch;
    void *plain = is_grad ? b->out[0] : b->in[W], *packed = st->reorder ? scratch : plain;
    dnnl_status_t status = dnnl_success;

    add(p, o->conv, &o->n_conv, st->kind == OCT_BF16_DATA ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC,
        &st->src, st->kind == OCT_BF16_DATA ? b->out[0] : b->in[0], &status);
    add(p, o->conv, &o->n_conv, st->kind == OCT_BF16_FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST,
        &st->dst,
        st->kind == OCT_BF16_FORWARD ? b->out[0]
        : is_grad                    ? b->in[DY]
                                     : b->in[0],
        &status);
    add(p, o->conv, &o->n_conv, is_grad ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, &st->packed,
        packed, &status);
    add(p, o->conv, &o->n_conv, DNNL_ARG_SCRATCHPAD, &st->pad, scratch + st->pad_at, &status);
    if (st->has_bias)
        add(p, o->conv, &o->n_conv, is_grad ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, &st->bias,
            is_grad ? b->out[1] : b->in[B], &status);
    if (st->residual_arg)
        add(p, o->conv, &o->n_conv, st->residual_arg, &st->residual, b->in[b->step->fuse.residual],
            &status);
    if (!st->reorder) return status;
    add(p, o->reorder, &o->n_reorder, is_grad ? DNNL_ARG_TO : DNNL_ARG_FROM, &st->plain, plain,
        &status);
    add(p, o->reorder, &o->n_reorder, is_grad ? DNNL_ARG_FROM : DNNL_ARG_TO, &st->packed, packed,
        &status);
    add(p, o->reorder, &o->n_reorder, DNNL_ARG_SCRATCHPAD, &st->reorder_pad,
        scratch + st->reorder_at, &status);
    return status;
}

static oct_status bind(const oct_plan *p, oct_bound *b)
{
    own *o = oct_calloc(b->run->ctx, 1, sizeof(*o));
    dnnl_status_t st;

    if (!o) return OCT_ERR_MEMORY;
    b->own = o;
    st = dnnl_stream_create(&o->stream, p->dnnl->engine, dnnl_stream_default_flags);
    if (!st) st = add_args(p, b, o);
    return st ? oct_fail(b->run->ctx, OCT_ERR_MEMORY, "oneDNN could not make a memory object")
              : OCT_OK;
}

static void unbind(oct_bound *b)
{
    own *o = b->own;

    if (!o) return;
    for (int i = 0; i < o->n_conv; i++)
        dnnl_memory_destroy(o->conv[i].memory);
    for (int i = 0; i < o->n_reorder; i++)
        dnnl_memory_destroy(o->reorder[i].memory);
    if (o->stream) dnnl_stream_destroy(o->stream);
    oct_free(b->run->ctx, o);
    b->own = NULL;
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const own *o = b->own;
    dnnl_status_t status = dnnl_success;

    if (st->reorder && st->kind != OCT_BF16_WEIGHTS)
        status = dnnl_primitive_execute(st->reorder, o->stream, o->n_reorder, o->reorder);
    if (!status) status = dnnl_primitive_execute(st->conv, o->stream, o->n_conv, o->conv);
    if (!status && st->reorder && st->kind == OCT_BF16_WEIGHTS)
        status = dnnl_primitive_execute(st->reorder, o->stream, o->n_reorder, o->reorder);
    return status ? oct_fail(b->run->ctx, OCT_ERR_STATE, "a oneDNN primitive failed") : OCT_OK;
}

const oct_kernel oct_kernel_onednn_conv_bf16 = {
    .name = "onednn-conv-bf16",
    .flags = OCT_KERNEL_OPENMP,
    .make = make,
    .drop = drop,
    .bind = bind,
    .unbind = unbind,
    .run = run,
};
