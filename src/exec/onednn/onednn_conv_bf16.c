/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv, ConvTranspose and ConvGradWeight with activations in bfloat16, by oneDNN: sums are float32,
 * and so are weights and their gradients outside of the kernel. Weights change from run to run:
 * each run packs them, rounded, into its scratch memory. A ConvTranspose is the gradient of a
 * convolution with respect to its operand.
 */
#include <string.h>

#include "exec/onednn/onednn_prim.h"
#include "exec/run.h"
#include "op/grad/rules.h"
#include "op/op.h"

enum { X, W, B };
enum { DY = 1 };

#define ALIGN 64

typedef enum kind { FORWARD, DATA, WEIGHTS } kind;

/* The convolution that a step computes, or a gradient of which it computes. */
typedef struct shape {
    kind kind;
    int n; /* spatial dims */
    dnnl_memory_desc_t src, dst, plain, bias;
    dnnl_dims_t stride, dilate, pad_l, pad_r;
    bool has_bias;
} shape;

typedef struct state {
    kind kind;
    dnnl_primitive_t conv, reorder; /* reorder: of weights, NULL: not needed */
    dnnl_memory_desc_t src, dst, plain, packed, bias, residual, pad, reorder_pad;
    size_t pad_at, reorder_at; /* in the scratch memory, after the packed weights */
    bool has_bias;
    int residual_arg; /* 0: none */
} state;

bool oct_dnnl_has_bf16(void)
{
    const unsigned need = dnnl_cpu_isa_avx512_core_bf16;

    return ((unsigned)dnnl_get_effective_cpu_isa() & need) == need;
}

/* --- descriptors --- */

/* NHWC, dense. */
static void act_md(const oct_type *t, dnnl_data_type_t dtype, dnnl_memory_desc_t *md)
{
    dnnl_dims_t dims = {0}, strides = {0};
    int64_t step = t->dim[1];

    for (int i = t->rank - 1; i >= 0; i--) {
        dims[i] = t->dim[i];
        strides[i] = i == 1 ? 1 : step;
        if (i != 1) step *= t->dim[i];
    }
    dnnl_memory_desc_init_by_strides(md, t->rank, dims, dtype, strides);
}

/* [M, C/group, k..] as the file has it, with an axis for the groups if there are several. */
static void weights_dims(const oct_type *t, int64_t group, dnnl_dims_t dims, int *rank)
{
    const int at = group > 1;

    dims[0] = group;
    for (int i = 0; i < t->rank; i++)
        dims[at + i] = t->dim[i];
    dims[at] = t->dim[0] / group;
    *rank = at + t->rank;
}

static void plain_md(const oct_type *t, int64_t group, dnnl_memory_desc_t *md)
{
    dnnl_dims_t dims = {0}, strides = {0};
    int64_t step = 1;
    int rank;

    weights_dims(t, group, dims, &rank);
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= dims[i];
    }
    dnnl_memory_desc_init_by_strides(md, rank, dims, dnnl_f32, strides);
}

static kind kind_of(const oct_step *s)
{
    return s->node->op == &oct_op_conv             ? FORWARD
           : s->node->op == &oct_op_conv_transpose ? DATA
                                                   : WEIGHTS;
}

/* The types of src, dst and weights of the convolution. */
static void types_of(const oct_plan *p, const oct_step *s, kind k, const oct_type *t[3])
{
    const oct_type *first = &p->slots[s->in[0]].type, *second = &p->slots[s->in[1]].type,
                   *out = &p->slots[s->out[0]].type;

    t[0] = k == DATA ? out : first;
    t[1] = k == FORWARD ? out : k == DATA ? first : second;
    t[2] = k == WEIGHTS ? out : second;
}

/* out: type of the activation that the step writes, where it writes one. */
static bool find_shape(const oct_plan *p, const oct_step *s, dnnl_data_type_t out, shape *c)
{
    const kind k = kind_of(s);
    const oct_type *t[3];
    oct_conv_geometry g;
    dnnl_dims_t channels;

    types_of(p, s, k, t);
    *c = (shape){.kind = k, .n = t[0]->rank - 2};
    if (t[0]->rank < 3 || t[0]->rank > 5) return false;
    if (k == DATA ? oct_conv_geometry_transpose(s->node, t[1], t[2], &g)
                  : oct_conv_geometry_conv(s->node, t[0], t[2], &g))
        return false;
    if (!oct_prim_window_fits(&g)) return false;
    for (int i = 0; i < c->n; i++) {
        const int64_t span = (g.kernel[i] - 1) * g.dilation[i] + 1;
        const int64_t in = t[0]->dim[i + 2], to = t[1]->dim[i + 2];

        if (in < 1 || to < 1 || g.pad_begin[i] < 0) return false;
        c->stride[i] = g.stride[i];
        c->dilate[i] = g.dilation[i] - 1;
        c->pad_l[i] = g.pad_begin[i];
        c->pad_r[i] = (to - 1) * g.stride[i] + span - in - g.pad_begin[i];
    }
    act_md(t[0], k == DATA ? out : dnnl_bf16, &c->src);
    act_md(t[1], k == FORWARD ? out : dnnl_bf16, &c->dst);
    plain_md(t[2], g.group, &c->plain);
    channels[0] = t[1]->dim[1];
    dnnl_memory_desc_init_by_tag(&c->bias, 1, channels, dnnl_f32, dnnl_a);
    c->has_bias = k == WEIGHTS ? oct_step_out(p, s, 1) != NULL
                               : oct_step_in(p, s, B) && s->fuse.residual != B;
    return k != DATA || !c->has_bias;
}

/* The packed weights: the format is oneDNN's choice. */
static void any_md(const shape *c, dnnl_memory_desc_t *md)
{
    dnnl_memory_desc_init_by_tag(md, c->plain.ndims, c->plain.dims,
                                 c->kind == WEIGHTS ? dnnl_f32 : dnnl_bf16, dnnl_format_tag_any);
}

static dnnl_status_t make_attr(const oct_step *s, const oct_type *residual,
                               dnnl_primitive_attr_t *attr)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_memory_desc_t md;
    dnnl_status_t st;

    if ((st = dnnl_primitive_attr_create(attr))) return st;
    if ((st = dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user))) return st;
    if (oct_step_is_bare(s)) return dnnl_success;
    if ((st = dnnl_post_ops_create(&ops))) return st;
    if (!oct_prim_append_act(ops, &s->fuse.act[0])) st = dnnl_unimplemented;
    if (!st && residual) {
        act_md(residual, dnnl_f32, &md);
        st = dnnl_post_ops_append_binary(ops, dnnl_binary_add, &md);
    }
    if (!st && !oct_prim_append_act(ops, &s->fuse.act[1])) st = dnnl_unimplemented;
    if (!st) st = dnnl_primitive_attr_set_post_ops(*attr, ops);
    dnnl_post_ops_destroy(ops);
    return st;
}

static dnnl_status_t make_desc(const oct_plan *p, const oct_step *s, const shape *c,
                               dnnl_primitive_desc_t *out)
{
    const dnnl_memory_desc_t *bias = c->has_bias ? &c->bias : NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_convolution_desc_t d;
    dnnl_memory_desc_t w;
    dnnl_status_t st;

    any_md(c, &w);
    if (c->kind == FORWARD)
        st = dnnl_dilated_convolution_forward_desc_init(
            &d, dnnl_forward_training, dnnl_convolution_direct, &c->src, &w, bias, &c->dst,
            c->stride, c->dilate, c->pad_l, c->pad_r);
    else if (c->kind == DATA)
        st = dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &c->src,
                                                              &w, &c->dst, c->stride, c->dilate,
                                                              c->pad_l, c->pad_r);
    else
        st = dnnl_dilated_convolution_backward_weights_desc_init(
            &d, dnnl_convolution_direct, &c->src, &w, bias, &c->dst, c->stride, c->dilate, c->pad_l,
            c->pad_r);
    if (st) return st;
    st =
        make_attr(s, s->fuse.residual >= 0 ? &p->slots[s->in[s->fuse.residual]].type : NULL, &attr);
    if (!st) st = dnnl_primitive_desc_create(out, &d, attr, p->dnnl->engine, NULL);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return st;
}

/* Not oneDNN's reference code, which is slower than float32 is. */
static bool is_fast(dnnl_primitive_desc_t d)
{
    const char *name = NULL;

    return dnnl_primitive_desc_query(d, dnnl_query_impl_info_str, 0, (void *)&name) ==
               dnnl_success &&
           name && strncmp(name, "ref", 3) != 0 && strncmp(name, "gemm:ref", 8) != 0;
}

bool oct_onednn_conv_bf16_accepts(const oct_plan *p, const oct_step *s)
{
    const dnnl_data_type_t types[] = {dnnl_f32, dnnl_bf16};
    const int n_types = s->fuse.residual >= 0 || kind_of(s) != FORWARD ? 1 : 2;
    shape c;

    if (kind_of(s) != FORWARD && !oct_step_is_bare(s)) return false;
    if (s->fuse.residual >= 0 && s->fuse.residual_scale != 1.0f) return false;
    if (!oct_prim_sizes_fit(p, s)) return false;
    if (kind_of(s) != WEIGHTS && p->slots[s->out[0]].layout != OCT_LAYOUT_CLAST) return false;
    if (kind_of(s) != WEIGHTS && p->slots[s->in[W]].data) return false;
    for (int i = 0; i < n_types; i++) {
        dnnl_primitive_desc_t d = NULL;
        bool ok;

        if (!find_shape(p, s, types[i], &c) || make_desc(p, s, &c, &d)) return false;
        ok = is_fast(d);
        dnnl_primitive_desc_destroy(d);
        if (!ok) return false;
    }
    return true;
}

/* --- the step's state --- */

static size_t aligned(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static dnnl_status_t make_reorder(const oct_plan *p, state *st)
{
    const bool from_plain = st->kind != WEIGHTS;
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
    act_md(&p->slots[s->in[s->fuse.residual]].type, dnnl_f32, &st->residual);
    st->residual_arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1;
}

static dnnl_status_t make_prims(oct_plan *p, oct_step *s, const shape *c, state *st)
{
    dnnl_primitive_desc_t d = NULL;
    dnnl_status_t status = make_desc(p, s, c, &d);
    const char *name = NULL;

    if (status) return status;
    st->packed = *dnnl_primitive_desc_query_md(
        d, c->kind == WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
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
    shape c;

    if (!st) return OCT_ERR_MEMORY;
    s->state = st;
    if (!find_shape(p, s, oct_prim_dtype(p->slots[s->out[0]].type.dtype), &c))
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
    const bool is_grad = st->kind == WEIGHTS;
    char *scratch = b->scratch;
    void *plain = is_grad ? b->out[0] : b->in[W], *packed = st->reorder ? scratch : plain;
    dnnl_status_t status = dnnl_success;

    add(p, o->conv, &o->n_conv, st->kind == DATA ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, &st->src,
        st->kind == DATA ? b->out[0] : b->in[0], &status);
    add(p, o->conv, &o->n_conv, st->kind == FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, &st->dst,
        st->kind == FORWARD ? b->out[0]
        : is_grad           ? b->in[DY]
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

    if (st->reorder && st->kind != WEIGHTS)
        status = dnnl_primitive_execute(st->reorder, o->stream, o->n_reorder, o->reorder);
    if (!status) status = dnnl_primitive_execute(st->conv, o->stream, o->n_conv, o->conv);
    if (!status && st->reorder && st->kind == WEIGHTS)
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
