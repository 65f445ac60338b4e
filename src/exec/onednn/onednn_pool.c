/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool and the global ones, by oneDNN. */
#include "exec/onednn/onednn_prim.h"
#include "op/op.h"

typedef struct window {
    dnnl_alg_kind_t alg;
    oct_conv_geometry g;
    dnnl_dims_t kernel, stride, dilate, pad_l;
    dnnl_dims_t pad_r; /* end padding that matches the sizes exactly */
} window;

static void global_window(const oct_type *x, oct_conv_geometry *g)
{
    *g = (oct_conv_geometry){.n = x->rank - 2, .batch = x->dim[0], .c_out = x->dim[1]};
    for (int i = 0; i < g->n; i++) {
        g->in[i] = g->kernel[i] = x->dim[2 + i];
        g->out[i] = g->stride[i] = g->dilation[i] = 1;
    }
}

static bool find_window(const oct_plan *p, const oct_step *s, window *w)
{
    const oct_op *op = s->node->op;
    const oct_type *x = &p->slots[s->in[0]].type;
    const oct_attr *count_pad = oct_node_attr(s->node, "count_include_pad");
    const bool is_max = op == &oct_op_max_pool || op == &oct_op_global_max_pool;
    bool padded = false;

    if (op == &oct_op_global_average_pool || op == &oct_op_global_max_pool)
        global_window(x, &w->g);
    else if (oct_conv_geometry_pool(s->node, x, &w->g))
        return false;
    if (w->g.n < 1 || w->g.n > 3 || !oct_prim_window_fits(&w->g)) return false;
    for (int i = 0; i < w->g.n; i++) {
        const oct_conv_geometry *g = &w->g;
        const int64_t span = (g->kernel[i] - 1) * g->dilation[i] + 1;

        if (g->in[i] < 1 || g->out[i] < 1 || g->pad_begin[i] < 0) return false;
        w->kernel[i] = g->kernel[i];
        w->stride[i] = g->stride[i];
        w->dilate[i] = g->dilation[i] - 1;
        w->pad_l[i] = g->pad_begin[i];
        w->pad_r[i] = (g->out[i] - 1) * g->stride[i] + span - g->in[i] - g->pad_begin[i];
        /* oneDNN computes windows inside the padding, and averages over rounded-up windows,
         * differently. */
        if (g->pad_begin[i] >= span || w->pad_r[i] >= span) return false;
        if (!is_max && w->pad_r[i] > g->pad_end[i]) return false;
        if (!is_max && g->dilation[i] != 1) return false;
        padded = padded || g->pad_begin[i] || w->pad_r[i] > 0;
    }
    w->alg = is_max                                ? dnnl_pooling_max
             : padded && count_pad && count_pad->i ? dnnl_pooling_avg_include_padding
                                                   : dnnl_pooling_avg_exclude_padding;
    return true;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    window w;
    const oct_op *op = s->node ? s->node->op : NULL;

    if (op != &oct_op_max_pool && op != &oct_op_average_pool && op != &oct_op_global_average_pool &&
        op != &oct_op_global_max_pool)
        return false;
    if (s->n_out != 1 || !oct_step_is_f32(p, s) || !oct_step_is_bare(s) || p->slots[s->in[0]].data)
        return false;
    if (oct_type_len(&p->slots[s->in[0]].type) < 1 || !oct_prim_sizes_fit(p, s)) return false;
    if (!find_window(p, s, &w)) return false;
    if (oct_conv_geometry_taps(&w.g, true) > oct_ctx_work_limit(p->ctx)) return false;
    *layout = OCT_LAYOUT_CLAST;
    return true;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    window w = {0};
    dnnl_memory_desc_t x, y;
    dnnl_pooling_v2_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_attr_t attr = NULL;
    oct_prim *prim = NULL;
    dnnl_status_t st;

    if (!find_window(p, s, &w)) return oct_node_fail(s->node, OCT_ERR_STATE, "has no window");
    OCT_TRY(oct_prim_new(p, s, &prim));
    oct_prim_md(p, s->in[0], &x);
    oct_prim_md(p, s->out[0], &y);
    oct_prim_add(prim, DNNL_ARG_SRC, OCT_PRIM_IN, 0, &x);
    oct_prim_add(prim, DNNL_ARG_DST, OCT_PRIM_OUT, 0, &y);
    st = dnnl_pooling_v2_forward_desc_init(&desc, dnnl_forward_inference, w.alg, &x, &y, w.stride,
                                           w.kernel, w.dilate, w.pad_l, w.pad_r);
    if (!st) st = dnnl_primitive_attr_create(&attr);
    if (!st) st = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (!st) st = dnnl_primitive_desc_create(&pd, &desc, attr, p->dnnl->engine, NULL);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return st ? oct_dnnl_fail(s, st, "pooling") : oct_prim_finish(p, s, prim, pd);
}

const oct_kernel oct_kernel_onednn_pool = {
    .name = "onednn-pool",
    .flags = OCT_KERNEL_OPENMP,
    .accepts = accepts,
    .make = make,
    .drop = oct_prim_drop,
    .bind = oct_prim_bind,
    .unbind = oct_prim_unbind,
    .run = oct_prim_run,
};
