/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in bfloat16 as oneDNN describes them, and which of them it has. */
#include <string.h>

#include "exec/onednn/onednn_conv_bf16.h"
#include "op/op.h"

enum { W = 1, B = 2 };

bool oct_dnnl_has_bf16(void)
{
    const unsigned need = dnnl_cpu_isa_avx512_core_bf16;

    return ((unsigned)dnnl_get_effective_cpu_isa() & need) == need;
}

/* NHWC, dense. */
void oct_bf16_act_md(const oct_type *t, dnnl_data_type_t dtype, dnnl_memory_desc_t *md)
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

static oct_bf16_kind kind_of(const oct_step *s)
{
    return s->node->op == &oct_op_conv             ? OCT_BF16_FORWARD
           : s->node->op == &oct_op_conv_transpose ? OCT_BF16_DATA
                                                   : OCT_BF16_WEIGHTS;
}

/* The types of src, dst and weights of the convolution. */
static void types_of(const oct_plan *p, const oct_step *s, oct_bf16_kind k, const oct_type *t[3])
{
    const oct_type *first = &p->slots[s->in[0]].type, *second = &p->slots[s->in[1]].type,
                   *out = &p->slots[s->out[0]].type;

    t[0] = k == OCT_BF16_DATA ? out : first;
    t[1] = k == OCT_BF16_FORWARD ? out : k == OCT_BF16_DATA ? first : second;
    t[2] = k == OCT_BF16_WEIGHTS ? out : second;
}

/* out: type of the activation that the step writes, where it writes one. */
bool oct_bf16_conv_find(const oct_plan *p, const oct_step *s, dnnl_data_type_t out,
                        oct_bf16_conv *c)
{
    const oct_bf16_kind k = kind_of(s);
    const oct_type *t[3];
    oct_conv_geometry g;
    dnnl_dims_t channels;

    types_of(p, s, k, t);
    *c = (oct_bf16_conv){.kind = k, .n = t[0]->rank - 2};
    if (t[0]->rank < 3 || t[0]->rank > 5) return false;
    if (k == OCT_BF16_DATA ? oct_conv_geometry_transpose(s->node, t[1], t[2], &g)
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
    oct_bf16_act_md(t[0], k == OCT_BF16_DATA ? out : dnnl_bf16, &c->src);
    oct_bf16_act_md(t[1], k == OCT_BF16_FORWARD ? out : dnnl_bf16, &c->dst);
    plain_md(t[2], g.group, &c->plain);
    channels[0] = t[1]->dim[1];
    dnnl_memory_desc_init_by_tag(&c->bias, 1, channels, dnnl_f32, dnnl_a);
    c->has_bias = k == OCT_BF16_WEIGHTS ? oct_step_out(p, s, 1) != NULL
                                        : oct_step_in(p, s, B) && s->fuse.residual != B;
    return k != OCT_BF16_DATA || !c->has_bias;
}

/* The packed weights: the format is oneDNN's choice. */
static void any_md(const oct_bf16_conv *c, dnnl_memory_desc_t *md)
{
    dnnl_memory_desc_init_by_tag(md, c->plain.ndims, c->plain.dims,
                                 c->kind == OCT_BF16_WEIGHTS ? dnnl_f32 : dnnl_bf16,
                                 dnnl_format_tag_any);
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
        oct_bf16_act_md(residual, dnnl_f32, &md);
        st = dnnl_post_ops_append_binary(ops, dnnl_binary_add, &md);
    }
    if (!st && !oct_prim_append_act(ops, &s->fuse.act[1])) st = dnnl_unimplemented;
    if (!st) st = dnnl_primitive_attr_set_post_ops(*attr, ops);
    dnnl_post_ops_destroy(ops);
    return st;
}

dnnl_status_t oct_bf16_conv_desc(const oct_plan *p, const oct_step *s, const oct_bf16_conv *c,
                                 dnnl_primitive_desc_t *out)
{
    const dnnl_memory_desc_t *bias = c->has_bias ? &c->bias : NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_convolution_desc_t d;
    dnnl_memory_desc_t w;
    dnnl_status_t st;

    any_md(c, &w);
    if (c->kind == OCT_BF16_FORWARD)
        st = dnnl_dilated_convolution_forward_desc_init(
            &d, dnnl_forward_training, dnnl_convolution_direct, &c->src, &w, bias, &c->dst,
            c->stride, c->dilate, c->pad_l, c->pad_r);
    else if (c->kind == OCT_BF16_DATA)
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

/*
 * Gradients of strided 1x1 weights: oneDNN 2.6 gathers the pixels that the stride reaches in whole
 * vectors, and writes beyond its scratch memory where channels do not fill one (seen with 3 to 12).
 */
static bool overruns(const oct_bf16_conv *c)
{
    const int at = c->plain.ndims - c->n - 2; /* 1: an axis for the groups comes first */
    bool is_strided = false;

    if (c->kind != OCT_BF16_WEIGHTS || c->plain.dims[at + 1] % 16 == 0) return false;
    for (int i = 0; i < c->n; i++) {
        if (c->plain.dims[at + 2 + i] != 1) return false;
        is_strided |= c->stride[i] > 1;
    }
    return is_strided;
}

bool oct_onednn_conv_bf16_accepts(const oct_plan *p, const oct_step *s)
{
    const dnnl_data_type_t types[] = {dnnl_f32, dnnl_bf16};
    const int n_types = s->fuse.residual >= 0 || kind_of(s) != OCT_BF16_FORWARD ? 1 : 2;
    oct_bf16_conv c;

    if (kind_of(s) != OCT_BF16_FORWARD && !oct_step_is_bare(s)) return false;
    if (s->fuse.residual >= 0 && s->fuse.residual_scale != 1.0f) return false;
    if (!oct_prim_sizes_fit(p, s)) return false;
    if (kind_of(s) != OCT_BF16_WEIGHTS && p->slots[s->out[0]].layout != OCT_LAYOUT_CLAST)
        return false;
    if (kind_of(s) != OCT_BF16_WEIGHTS && p->slots[s->in[W]].data) return false;
    for (int i = 0; i < n_types; i++) {
        dnnl_primitive_desc_t d = NULL;
        bool ok;

        if (!oct_bf16_conv_find(p, s, types[i], &c) || overruns(&c) ||
            oct_bf16_conv_desc(p, s, &c, &d))
            return false;
        ok = is_fast(d);
        dnnl_primitive_desc_destroy(d);
        if (!ok) return false;
    }
    return true;
}
