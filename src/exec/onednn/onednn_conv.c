/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and ConvTranspose with bias, activation and residual Add, by oneDNN. */
#include <string.h>

#include "exec/onednn/onednn_prim.h"
#include "op/op.h"

enum { X, W, B };

static bool is_transpose(const oct_step *s)
{
    return s->node->op == &oct_op_conv_transpose;
}

static oct_status geometry(const oct_plan *p, const oct_step *s, oct_conv_geometry *g)
{
    const oct_type *x = &p->slots[s->in[X]].type, *w = &p->slots[s->in[W]].type;

    return is_transpose(s) ? oct_conv_geometry_transpose(s->node, x, w, g)
                           : oct_conv_geometry_conv(s->node, x, w, g);
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;

    if (!s->node || (s->node->op != &oct_op_conv && !is_transpose(s))) return false;
    if (!oct_step_is_f32(p, s) || !oct_step_const(p, s, W) || !oct_prim_sizes_fit(p, s))
        return false;
    if (oct_step_in(p, s, B) && s->fuse.residual != B && !oct_step_const(p, s, B)) return false;
    if (s->fuse.residual >= 0 && (is_transpose(s) || s->fuse.residual_scale != 1.0f)) return false;
    if (geometry(p, s, &g) || g.n < 1 || g.n > 3) return false;
    for (int i = 0; i < g.n; i++) /* empty tensors and unusual padding are left to the reference
                                   * kernel */
        if (g.in[i] < 1 || g.out[i] < 1 || g.pad_begin[i] < 0 || g.pad_end[i] < 0) return false;
    if (g.batch < 1 || g.c_in < 1 || g.c_out < 1 || !oct_prim_window_fits(&g)) return false;
    *layout = OCT_LAYOUT_CLAST;
    return true;
}

typedef struct dims {
    dnnl_dims_t stride, dilate, pad_l, pad_r;
} dims;

static void fill_dims(const oct_conv_geometry *g, bool transpose, dims *d)
{
    for (int i = 0; i < g->n; i++) {
        const int64_t span = (g->kernel[i] - 1) * g->dilation[i] + 1;

        d->stride[i] = g->stride[i];
        d->dilate[i] = g->dilation[i] - 1;
        d->pad_l[i] = g->pad_begin[i];
        /* oneDNN requires the end padding that matches the sizes exactly */
        if (transpose)
            d->pad_r[i] = (g->in[i] - 1) * g->stride[i] + span - g->out[i] - g->pad_begin[i];
        else
            d->pad_r[i] = (g->out[i] - 1) * g->stride[i] + span - g->in[i] - g->pad_begin[i];
    }
}

/* Weights as the file has them ([O, I/g, k] or, transposed, [I, O/g, k]) in oneDNN's dims. */
static void weights_md(const oct_conv_geometry *g, bool transpose, dnnl_memory_desc_t *md,
                       dnnl_memory_desc_t *any)
{
    const int64_t o = g->c_out / g->group, c = g->c_in / g->group;
    const int at = g->group > 1 ? 1 : 0, rank = at + 2 + g->n;
    dnnl_dims_t d = {0}, strides = {0};
    int64_t step = 1;

    d[0] = g->group;
    d[at] = o;
    d[at + 1] = c;
    for (int i = g->n - 1; i >= 0; i--) {
        d[at + 2 + i] = g->kernel[i];
        strides[at + 2 + i] = step;
        step *= g->kernel[i];
    }
    strides[at + 1] = transpose ? step * o : step;
    strides[at] = transpose ? step : step * c;
    if (at) strides[0] = step * o * c;
    dnnl_memory_desc_init_by_strides(md, rank, d, dnnl_f32, strides);
    dnnl_memory_desc_init_by_tag(any, rank, d, dnnl_f32, dnnl_format_tag_any);
}

static dnnl_status_t make_attr(const oct_plan *p, const oct_step *s, dnnl_primitive_attr_t *attr)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_memory_desc_t md;
    dnnl_status_t st;

    if ((st = dnnl_primitive_attr_create(attr))) return st;
    if ((st = dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user))) return st;
    if ((st = dnnl_post_ops_create(&ops))) return st;
    if (!oct_prim_append_act(ops, &s->fuse.act[0])) st = dnnl_unimplemented;
    if (!st && s->fuse.residual >= 0) {
        oct_prim_md(p, s->in[s->fuse.residual], &md);
        st = dnnl_post_ops_append_binary(ops, dnnl_binary_add, &md);
    }
    if (!st && !oct_prim_append_act(ops, &s->fuse.act[1])) st = dnnl_unimplemented;
    if (!st) st = dnnl_primitive_attr_set_post_ops(*attr, ops);
    dnnl_post_ops_destroy(ops);
    return st;
}

static dnnl_status_t make_desc(const oct_plan *p, const oct_step *s, const oct_conv_geometry *g,
                               const dnnl_memory_desc_t *w, bool bias, dnnl_primitive_desc_t *out)
{
    dnnl_memory_desc_t x, y, b;
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_dims_t c = {g->c_out};
    dnnl_status_t st;
    dims d;

    oct_prim_md(p, s->in[X], &x);
    oct_prim_md(p, s->out[0], &y);
    dnnl_memory_desc_init_by_tag(&b, 1, c, dnnl_f32, dnnl_a);
    fill_dims(g, is_transpose(s), &d);
    st = (is_transpose(s) ? dnnl_dilated_deconvolution_forward_desc_init
                          : dnnl_dilated_convolution_forward_desc_init)(
        &desc, dnnl_forward_inference,
        is_transpose(s) ? dnnl_deconvolution_direct : dnnl_convolution_direct, &x, w,
        bias ? &b : NULL, &y, d.stride, d.dilate, d.pad_l, d.pad_r);
    if (st) return st;
    if (!(st = make_attr(p, s, &attr)))
        st = dnnl_primitive_desc_create(out, &desc, attr, p->dnnl->engine, NULL);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return st;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_tensor *w = oct_step_const(p, s, W);
    const oct_tensor *b = s->fuse.residual == B ? NULL : oct_step_const(p, s, B);
    dnnl_memory_desc_t w_md, w_any, md;
    dnnl_primitive_desc_t desc = NULL;
    oct_conv_geometry g;
    oct_prim *prim = NULL;
    dnnl_status_t st;

    OCT_TRY(geometry(p, s, &g));
    OCT_TRY(oct_prim_new(p, s, &prim));
    weights_md(&g, is_transpose(s), &w_md, &w_any);
    if ((st = make_desc(p, s, &g, &w_any, b != NULL, &desc)))
        return oct_dnnl_fail(s, st, "convolution");
    OCT_TRY(oct_prim_pack(p, s, prim, DNNL_ARG_WEIGHTS, &w_md, w->data,
                          dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0)));
    if (b) {
        dnnl_dims_t c = {g.c_out};

        dnnl_memory_desc_init_by_tag(&md, 1, c, dnnl_f32, dnnl_a);
        OCT_TRY(oct_prim_pack(p, s, prim, DNNL_ARG_BIAS, &md, b->data, &md));
    }
    oct_prim_md(p, s->in[X], &md);
    oct_prim_add(prim, DNNL_ARG_SRC, OCT_PRIM_IN, X, &md);
    oct_prim_md(p, s->out[0], &md);
    oct_prim_add(prim, DNNL_ARG_DST, OCT_PRIM_OUT, 0, &md);
    if (s->fuse.residual >= 0) {
        const int at = s->fuse.act[0].kind ? 1 + (s->fuse.act[0].kind == OCT_ACT_HARD_SIGMOID) : 0;

        oct_prim_md(p, s->in[s->fuse.residual], &md);
        oct_prim_add(prim, DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1, OCT_PRIM_IN,
                     s->fuse.residual, &md);
    }
    return oct_prim_finish(p, s, prim, desc);
}

const oct_kernel oct_kernel_onednn_conv = {
    .name = "onednn-conv",
    .flags = OCT_KERNEL_OPENMP,
    .accepts = accepts,
    .make = make,
    .drop = oct_prim_drop,
    .bind = oct_prim_bind,
    .unbind = oct_prim_unbind,
    .run = oct_prim_run,
};
