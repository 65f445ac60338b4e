/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of SmoothQuant: the division is absorbed by the producer of x where possible, else
 * it becomes a Mul; the weights that multiply x absorb the factor.
 */
#include "quant/correct/smooth_quant.h"

#include <string.h>

#include "op/op.h"
#include "pass/fuse/affine.h"
#include "pass/rewrite.h"
#include "quant/solve/solve.h"

bool oct_smooth_reads(const oct_node *n, const oct_value *x)
{
    oct_weight_axes ax;

    if (n->graph != x->graph || n->n_in < 2 || n->in[0] != x || !oct_weight_axes_of(n, &ax))
        return false;
    if (oct_node_is(n, &oct_op_gemm))
        return oct_is_linear_layer(n) && oct_node_attr(n, "transA")->i == 0;
    return oct_node_is(n, &oct_op_mat_mul);
}

/* --- the side of x --- */

/* A copy of a constant along the last axis (or of a scalar), divided; NULL if it has another
 * shape. */
static oct_status divided(const oct_value *v, const oct_smoothing *s, oct_tensor **out)
{
    const oct_tensor *t = v ? v->data : NULL;
    const int64_t len = t ? oct_tensor_len(t) : 0;
    oct_type type;

    *out = NULL;
    if (!t || t->type.dtype != OCT_DTYPE_F32) return OCT_OK;
    if (len != 1 && (len != s->channels || t->type.dim[t->type.rank - 1] != len)) return OCT_OK;
    type = t->type;
    if (len == 1) type = oct_type_make(OCT_DTYPE_F32, 1, &s->channels);
    OCT_TRY(oct_tensor_make(v->graph->ctx, &type, out));
    for (int64_t c = 0; c < s->channels; c++)
        ((float *)(*out)->data)[c] =
            (float)((double)((const float *)t->data)[len == 1 ? 0 : c] / s->factor[c]);
    return OCT_OK;
}

/* Divides operand i if possible: *can says so. With `change` false nothing happens. */
static oct_status divide_const(oct_node *n, int32_t i, const oct_smoothing *s, bool change,
                               bool *can)
{
    oct_tensor *t = NULL;

    OCT_TRY(divided(oct_node_in(n, i), s, &t));
    *can = t != NULL;
    if (t && change) return oct_node_set_const(n, i, "smoothed", t);
    oct_tensor_unref(t);
    return OCT_OK;
}

/* The columns of a product's weight. */
static oct_status divide_columns(oct_node *n, const oct_smoothing *s, bool change, bool *can)
{
    const oct_tensor *w = oct_node_const(n, 1);
    oct_tensor *t = NULL;

    *can =
        w && w->type.dtype == OCT_DTYPE_F32 && w->type.rank == 2 && w->type.dim[1] == s->channels;
    if (!*can || !change) return OCT_OK;
    OCT_TRY(oct_tensor_copy(n->graph->ctx, w, &t));
    for (int64_t i = 0; i < oct_tensor_len(t); i++)
        ((float *)t->data)[i] = (float)((double)((float *)t->data)[i] / s->factor[i % s->channels]);
    return oct_node_set_const(n, 1, "weight", t);
}

static oct_status divide_gemm(oct_node *n, const oct_smoothing *s, oct_arena *a, bool change,
                              bool *can)
{
    oct_affine by;

    *can = oct_is_linear_layer(n) && oct_linear_layer_channels(n) == s->channels;
    if (!*can || !change) return OCT_OK;
    OCT_TRY(oct_affine_identity(a, s->channels, &by));
    for (int64_t c = 0; c < s->channels; c++)
        by.scale[c] = 1 / s->factor[c];
    OCT_TRY(oct_linear_layer_apply_after(n, &by, can));
    return *can ? OCT_OK : oct_node_fail(n, OCT_ERR_FORMAT, "its weights are not finite");
}

static oct_status divide_norm(oct_node *n, const oct_smoothing *s, bool change, bool *can)
{
    OCT_TRY(divide_const(n, 1, s, false, can));
    if (*can && oct_node_in(n, 2)) OCT_TRY(divide_const(n, 2, s, change, can));
    return *can ? divide_const(n, 1, s, change, can) : OCT_OK;
}

/* Divides v by changing its producer: Add and Relu pass the factor upstream. */
static oct_status divide(oct_value *v, const oct_smoothing *s, oct_arena *a, bool change, bool *can)
{
    oct_node *n = v->producer;
    int k;

    *can = false;
    if (!n || n->graph != v->graph || n->out[0] != v) return OCT_OK;
    if (oct_node_is(n, &oct_op_layer_normalization) || oct_node_is(n, &oct_op_rms_normalization))
        return divide_norm(n, s, change, can);
    if (oct_node_is(n, &oct_op_mat_mul)) return divide_columns(n, s, change, can);
    if (oct_node_is(n, &oct_op_gemm)) return divide_gemm(n, s, a, change, can);
    if (oct_node_is(n, &oct_op_relu) && oct_sole_user(n->in[0]))
        return divide(n->in[0], s, a, change, can);
    if ((k = oct_const_operand(n)) < 0) return OCT_OK;
    if (oct_node_is(n, &oct_op_mul)) return divide_const(n, k, s, change, can);
    if (!oct_node_is(n, &oct_op_add) || !oct_sole_user(n->in[1 - k])) return OCT_OK;
    OCT_TRY(divide(n->in[1 - k], s, a, false, can));
    if (*can) OCT_TRY(divide_const(n, k, s, change, can));
    return *can ? divide(n->in[1 - k], s, a, change, can) : OCT_OK;
}

/* MatMul consumers read x / s; all others x itself. */
static oct_status insert(const oct_smoothing *s)
{
    oct_graph *g = s->x->graph;
    oct_value *x = s->x, *y = NULL, *in[2] = {x, NULL};
    oct_node *before = x->producer ? x->producer->next : g->first, *mul;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &s->channels);
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_make(g->ctx, &type, &t));
    for (int64_t c = 0; c < s->channels; c++)
        ((float *)t->data)[c] = (float)(1 / s->factor[c]);
    if (!(in[1] = oct_value_const(g, oct_graph_fresh_name(g, "smooth"), t))) return OCT_ERR_MEMORY;
    mul = oct_node_new(g, before, oct_graph_fresh_name(g, "Smooth"), &oct_op_mul, in, 2, NULL, 1);
    if (!mul) return OCT_ERR_MEMORY;
    OCT_TRY(oct_node_infer(mul));
    y = mul->out[0];
    for (int32_t i = x->n_users - 1; i >= 0; i--)
        if (oct_smooth_reads(x->users[i], x)) OCT_TRY(oct_node_set_input(x->users[i], 0, y));
    return OCT_OK;
}

/* --- the side of the weights --- */

static oct_status grow_weight(oct_node *n, const oct_smoothing *s)
{
    const oct_tensor *w = n->in[1]->data;
    oct_tensor *t = NULL;
    oct_weight_axes ax;

    (void)oct_weight_axes_of(n, &ax);
    OCT_TRY(oct_tensor_copy(n->graph->ctx, w, &t));
    for (int64_t i = 0; i < oct_tensor_len(t); i++) {
        const int64_t c = ax.in == 0 ? i / ax.n_out : i % ax.n_in;
        float *x = (float *)t->data + i;

        *x = (float)((double)*x * s->factor[c]);
    }
    return oct_node_set_const(n, 1, "weight", t);
}

oct_status oct_smooth_apply(const oct_smoothing *s, oct_arena *a)
{
    bool only = !s->x->is_output, can = false;

    for (int32_t i = 0; i < s->x->n_users; i++) {
        const bool mine = oct_smooth_reads(s->x->users[i], s->x);

        if (mine) OCT_TRY(grow_weight(s->x->users[i], s));
        only = only && mine;
    }
    if (only) OCT_TRY(divide(s->x, s, a, true, &can));
    return can ? OCT_OK : insert(s);
}

/* --- replaying what a file says --- */

static bool is_read_by(const oct_value *x, int64_t channels)
{
    oct_weight_axes ax;
    bool some = false;

    for (int32_t i = 0; i < x->n_users; i++) {
        if (!oct_smooth_reads(x->users[i], x)) continue;
        if (!oct_weight_axes_of(x->users[i], &ax) || ax.n_in != channels) return false;
        some = true;
    }
    return some;
}

oct_status oct_smooth_again(oct_value *x, const double *factor, int64_t n, oct_arena *a, bool *fits)
{
    const double most = OCT_SMOOTH_MOST_FACTOR * 1.001; /* the file has rounded values */
    oct_smoothing s = {.x = x, .channels = n};

    *fits = !x->data && x->type.dtype == OCT_DTYPE_F32 && is_read_by(x, n);
    for (int64_t c = 0; c < n && *fits; c++)
        *fits = factor[c] >= 1 / most && factor[c] <= most;
    if (!*fits) return OCT_OK;
    if (!(s.factor = oct_arena_array(a, (size_t)n, sizeof(double)))) return OCT_ERR_MEMORY;
    memcpy(s.factor, factor, (size_t)n * sizeof(double));
    return oct_smooth_apply(&s, a);
}
