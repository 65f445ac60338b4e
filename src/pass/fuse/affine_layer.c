/* SPDX-License-Identifier: Apache-2.0 */
/* Absorbing scales and shifts of channels into the weights of Conv, ConvTranspose and Gemm. */
#include <math.h>
#include <string.h>

#include "op/conv_geometry.h"
#include "op/op.h"
#include "pass/fuse/affine.h"
#include "pass/rewrite.h"

/* The order of a weight's channels: element (o, i, k) of n_out x n_in x n_inner. */
typedef struct layout {
    const oct_tensor *w, *b; /* b may be NULL */
    int64_t n_out, n_in, n_inner, group;
    int64_t out_step, in_step; /* n_in counts channels of one group */
    bool is_transposed;        /* ConvTranspose: out channels count inside a group, in across */
    double alpha, beta;        /* of Gemm, else 1 */
} layout;

static bool is_bias(const oct_node *n, const oct_tensor *b, int64_t channels)
{
    if (!oct_node_in(n, 2)) return true;
    if (!b || b->type.dtype != OCT_DTYPE_F32) return false;
    if (oct_node_is(n, &oct_op_gemm)) {
        if (b->type.rank > 2 || (b->type.rank == 2 && b->type.dim[0] != 1)) return false;
        return oct_tensor_len(b) == channels || oct_tensor_len(b) == 1;
    }
    return oct_tensor_len(b) == channels;
}

static int64_t int_attr(const oct_node *n, const char *name, int64_t otherwise)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a ? a->i : otherwise;
}

static double f32_attr(const oct_node *n, const char *name)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a ? (double)a->f : 1;
}

static bool gemm_layout(const oct_node *n, layout *l)
{
    const oct_type *t = &l->w->type;
    const bool trans_b = int_attr(n, "transB", 0) != 0;

    if (t->rank != 2) return false;
    l->n_out = t->dim[trans_b ? 0 : 1];
    l->n_in = t->dim[trans_b ? 1 : 0];
    l->n_inner = 1;
    l->out_step = trans_b ? l->n_in : 1;
    l->in_step = trans_b ? 1 : l->n_out;
    l->alpha = f32_attr(n, "alpha");
    l->beta = l->b ? f32_attr(n, "beta") : 1;
    return l->alpha != 0 && l->beta != 0;
}

static bool conv_layout(const oct_node *n, layout *l)
{
    const oct_type *t = &l->w->type;

    if (t->rank < 3) return false;
    l->group = int_attr(n, "group", 1);
    l->n_inner = oct_type_span(t, 2, t->rank);
    l->is_transposed = oct_node_is(n, &oct_op_conv_transpose);
    if (l->group < 1 || l->n_inner < 1) return false;
    if (!l->is_transposed) {
        l->n_out = t->dim[0];
        l->n_in = t->dim[1];
        l->out_step = l->n_in * l->n_inner;
        l->in_step = l->n_inner;
        return l->n_out % l->group == 0;
    }
    if (t->dim[0] % l->group || !oct_mul_i64(t->dim[1], l->group, &l->n_out)) return false;
    l->n_in = t->dim[0] / l->group;
    l->out_step = l->n_inner;
    l->in_step = t->dim[1] * l->n_inner;
    return true;
}

static bool find_layout(const oct_node *n, layout *l)
{
    const bool is_gemm = oct_node_is(n, &oct_op_gemm);

    *l = (layout){.w = oct_node_const(n, 1), .b = oct_node_const(n, 2), .group = 1};
    l->alpha = l->beta = 1;
    if (!is_gemm && !oct_node_is(n, &oct_op_conv) && !oct_node_is(n, &oct_op_conv_transpose))
        return false;
    if (!l->w || l->w->type.dtype != OCT_DTYPE_F32 || oct_tensor_len(l->w) < 1) return false;
    if (n->n_out != 1 || !n->out[0]) return false;
    if (!(is_gemm ? gemm_layout(n, l) : conv_layout(n, l))) return false;
    return is_bias(n, l->b, l->n_out);
}

bool oct_is_linear_layer(const oct_node *n)
{
    layout l;

    return find_layout(n, &l);
}

int64_t oct_linear_layer_channels(const oct_node *n)
{
    layout l;

    return find_layout(n, &l) ? l.n_out : -1;
}

int64_t oct_linear_layer_in_channels(const oct_node *n)
{
    layout l;

    if (!find_layout(n, &l) || int_attr(n, "transA", 0)) return -1;
    return l.n_in * l.group;
}

/* Index of element (o, i of its group, 0). */
static int64_t weight_at(const layout *l, int64_t o, int64_t i)
{
    const int64_t per_group = l->n_out / l->group, g = o / per_group;

    if (!l->is_transposed) return o * l->out_step + i * l->in_step;
    return (g * l->n_in + i) * l->in_step + (o - g * per_group) * l->out_step;
}

static double bias_at(const layout *l, int64_t o)
{
    if (!l->b) return 0;
    return (double)((const float *)l->b->data)[oct_tensor_len(l->b) == 1 ? 0 : o];
}

static oct_status make_pair(oct_ctx *ctx, const layout *l, oct_tensor **w, oct_tensor **b)
{
    const oct_type bias = oct_type_make(OCT_DTYPE_F32, 1, &l->n_out);

    OCT_TRY(oct_tensor_make(ctx, &l->w->type, w));
    return oct_tensor_make(ctx, &bias, b);
}

static bool all_finite(const oct_tensor *t)
{
    const float *x = t->data;

    for (int64_t i = 0, len = oct_tensor_len(t); i < len; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* Replaces the weights; takes both references. */
static oct_status install(oct_node *n, const layout *l, oct_tensor *w, oct_tensor *b, bool *done)
{
    oct_status st;

    *done = all_finite(w) && all_finite(b);
    if (!*done) {
        oct_tensor_unref(w);
        oct_tensor_unref(b);
        return OCT_OK;
    }
    st = oct_node_set_const(n, 1, "weight", w);
    if (st || (!l->b && oct_const_is_all(b, 0))) {
        oct_tensor_unref(b);
        return st;
    }
    if (!l->b && oct_node_is(n, &oct_op_gemm)) st = oct_node_set_f32(n, "beta", 1);
    if (st) {
        oct_tensor_unref(b);
        return st;
    }
    return oct_node_set_const(n, 2, "bias", b);
}

oct_status oct_linear_layer_apply_after(oct_node *layer, const oct_affine *a, bool *done)
{
    layout l;
    oct_tensor *w = NULL, *b = NULL;
    oct_status st;

    *done = false;
    if (!find_layout(layer, &l) || l.n_out != a->channels) return OCT_OK;
    if ((st = make_pair(layer->graph->ctx, &l, &w, &b))) {
        oct_tensor_unref(w);
        return st;
    }
    for (int64_t o = 0; o < l.n_out; o++) {
        for (int64_t i = 0; i < l.n_in; i++) {
            const float *from = (const float *)l.w->data + weight_at(&l, o, i);
            float *to = (float *)w->data + weight_at(&l, o, i);

            for (int64_t k = 0; k < l.n_inner; k++)
                to[k] = (float)(a->scale[o] * (double)from[k]);
        }
        ((float *)b->data)[o] = (float)(a->scale[o] * bias_at(&l, o) + a->shift[o] / l.beta);
    }
    return install(layer, &l, w, b, done);
}

bool oct_linear_layer_takes_shifts(const oct_node *n)
{
    oct_conv_geometry g;
    layout l;

    if (!find_layout(n, &l) || l.is_transposed) return false;
    if (oct_node_is(n, &oct_op_gemm)) return true;
    if (oct_conv_geometry_conv(n, &n->in[0]->type, &l.w->type, &g)) return false;
    for (int i = 0; i < g.n; i++) /* -1: not known */
        if (g.pad_begin[i] != 0 || g.pad_end[i] != 0) return false;
    return g.n > 0;
}

oct_status oct_linear_layer_apply_before(oct_node *layer, const oct_affine *a, bool *done)
{
    layout l;
    oct_tensor *w = NULL, *b = NULL;
    oct_status st;

    *done = false;
    if (!find_layout(layer, &l) || l.n_in * l.group != a->channels) return OCT_OK;
    if ((st = make_pair(layer->graph->ctx, &l, &w, &b))) {
        oct_tensor_unref(w);
        return st;
    }
    for (int64_t o = 0; o < l.n_out; o++) {
        const int64_t first = o / (l.n_out / l.group) * l.n_in;
        double sum = 0;

        for (int64_t i = 0; i < l.n_in; i++) {
            const float *from = (const float *)l.w->data + weight_at(&l, o, i);
            float *to = (float *)w->data + weight_at(&l, o, i);

            for (int64_t k = 0; k < l.n_inner; k++) {
                to[k] = (float)(a->scale[first + i] * (double)from[k]);
                sum += a->shift[first + i] * (double)from[k];
            }
        }
        ((float *)b->data)[o] = (float)(bias_at(&l, o) + sum * l.alpha / l.beta);
    }
    return install(layer, &l, w, b, done);
}
