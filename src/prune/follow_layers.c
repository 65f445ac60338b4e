/* SPDX-License-Identifier: Apache-2.0 */
/* Layers with weights: they end units of their operand, and make new ones. */
#include "op/op.h"
#include "prune/follow.h"

/* The layer cannot be cut: neither what it reads nor what it makes. */
static oct_status refuse(oct_channels *c, const oct_node *n, const char *why)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) oct_units_protect(c, n->in[i], n, why);
    return OCT_OK;
}

static oct_status give_new(oct_channels *c, const oct_value *y, int32_t axis)
{
    const int64_t n = y->type.dim[axis];
    int32_t first, *unit = oct_arena_array(c->arena, (size_t)n, sizeof(*unit));

    if (!unit) return OCT_ERR_MEMORY;
    OCT_TRY(oct_units_new(c, n, &first));
    for (int64_t i = 0; i < n; i++)
        unit[i] = first + (int32_t)i;
    return oct_follow_give(c, y, axis, unit);
}

/* --- convolution --- */

/* Each input channel has filters of its own: they go with it. */
static oct_status follow_depthwise(oct_channels *c, const oct_node *n, int64_t groups)
{
    const oct_value *y = n->out[0];
    const int64_t multiplier = y->type.dim[1] / groups;
    int32_t *x, *unit = oct_arena_array(c->arena, (size_t)y->type.dim[1], sizeof(*unit));

    if (!unit) return OCT_ERR_MEMORY;
    OCT_TRY(oct_follow_lane(c, n->in[0], 1, &x));
    for (int64_t i = 0; i < y->type.dim[1]; i++)
        unit[i] = x[i / multiplier];
    return oct_follow_give(c, y, 1, unit);
}

/* Groups stay of the same size: channels of the same place in each of them go together. */
static oct_status tie_groups(oct_channels *c, const oct_value *v, int64_t groups)
{
    const int64_t n = v->type.dim[1], part = n / groups;
    int32_t *unit;

    OCT_TRY(oct_follow_lane(c, v, 1, &unit));
    for (int64_t i = part; i < n; i++)
        oct_units_unite(c, unit[i % part], unit[i]);
    return OCT_OK;
}

static bool fits(const oct_node *n, const oct_weight_axes *w)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[0]->type;

    if (x->rank < 3 || y->rank < 3 || x->dim[1] < 1 || y->dim[1] < 1 || w->groups < 1) return false;
    return x->dim[1] % w->groups == 0 && y->dim[1] % w->groups == 0;
}

/* Conv has the filters of all groups side by side, ConvTranspose the input channels. */
oct_status oct_follow_conv(oct_channels *c, oct_node *n)
{
    oct_value *x = n->in[0], *y = n->out[0];
    oct_weight_axes w;

    if (!oct_weight_axes_of(n, &w) || (oct_node_in(n, 2) && !oct_node_const(n, 2)))
        return refuse(c, n, "its weights are not float32 constants");
    if (!fits(n, &w)) return refuse(c, n, "its shapes are not known");
    OCT_TRY(oct_follow_tie(c, x, 1));
    if (w.groups > 1 && x->type.dim[1] == w.groups) {
        OCT_TRY(follow_depthwise(c, n, w.groups));
        OCT_TRY(oct_follow_cut(c, n, 1, 0, w.in == 0 ? x : y, 1, OCT_CUT_OUT));
    } else {
        OCT_TRY(tie_groups(c, x, w.groups));
        OCT_TRY(give_new(c, y, 1));
        OCT_TRY(tie_groups(c, y, w.groups));
        OCT_TRY(oct_follow_cut(c, n, 1, w.out, y, 1, OCT_CUT_OUT));
        OCT_TRY(oct_follow_cut(c, n, 1, w.in, x, 1, OCT_CUT_IN));
    }
    return oct_node_in(n, 2) ? oct_follow_cut(c, n, 2, 0, y, 1, OCT_CUT_SHIFT) : OCT_OK;
}

/* --- products of matrices --- */

static oct_status follow_product(oct_channels *c, oct_node *n, const oct_weight_axes *w)
{
    const int32_t last = n->in[0]->type.rank - 1;

    OCT_TRY(oct_follow_tie(c, n->in[0], last));
    OCT_TRY(give_new(c, n->out[0], n->out[0]->type.rank - 1));
    OCT_TRY(oct_follow_cut(c, n, 1, w->out, n->out[0], n->out[0]->type.rank - 1, OCT_CUT_OUT));
    return oct_follow_cut(c, n, 1, w->in, n->in[0], last, OCT_CUT_IN);
}

static bool is_product(const oct_node *n)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[0]->type;

    return x->rank >= 2 && y->rank >= 2 && x->dim[x->rank - 1] > 0 && y->dim[y->rank - 1] > 0;
}

oct_status oct_follow_gemm(oct_channels *c, oct_node *n)
{
    oct_weight_axes w;

    if (!oct_weight_axes_of(n, &w) || (oct_node_in(n, 2) && !oct_node_const(n, 2)))
        return refuse(c, n, "its weights are not float32 constants");
    if (!is_product(n) || oct_node_attr(n, "transA")->i)
        return refuse(c, n, "its shapes are not known");
    OCT_TRY(follow_product(c, n, &w));
    return oct_node_in(n, 2) ? oct_follow_cut_broadcast(c, n, 2, n->out[0], OCT_CUT_SHIFT) : OCT_OK;
}

/*
 * A product of two activations, in attention: channels that are summed over go from both at once,
 * for all heads alike; others pass.
 */
static oct_status follow_activations(oct_channels *c, oct_node *n)
{
    oct_value *a = n->in[0], *b = n->in[1], *y = n->out[0];
    const int32_t rank = y->type.rank, k_a = rank - 1, k_b = rank - 2;
    oct_tensor *la = NULL, *lb = NULL;
    bool sums_a, sums_b, passes_a = false, passes_b = false;
    int32_t *ua, *ub;

    if (rank < 2 || a->type.rank != rank || b->type.rank != rank)
        return refuse(c, n, "it multiplies activations of different ranks");
    if (a->type.dim[k_a] < 1 || b->type.dim[k_b] != a->type.dim[k_a])
        return refuse(c, n, "its shapes are not known");
    OCT_TRY(oct_follow_read(c, a, &la));
    if (oct_follow_read(c, b, &lb)) {
        oct_tensor_unref(la);
        return OCT_ERR_MEMORY;
    }
    sums_a = oct_labels_vary(la, k_a);
    sums_b = oct_labels_vary(lb, k_b);
    for (int32_t d = 0; d < rank; d++) {
        passes_a |= d != k_a && oct_labels_vary(la, d);
        passes_b |= d != k_b && oct_labels_vary(lb, d);
    }
    oct_tensor_unref(la);
    oct_tensor_unref(lb);
    if (sums_a || sums_b) {
        OCT_TRY(oct_follow_tie(c, a, k_a));
        OCT_TRY(oct_follow_tie(c, b, k_b));
        OCT_TRY(oct_follow_lane(c, a, k_a, &ua));
        OCT_TRY(oct_follow_lane(c, b, k_b, &ub));
        for (int64_t i = 0; i < a->type.dim[k_a]; i++)
            oct_units_unite(c, ua[i], ub[i]);
        return OCT_OK;
    }
    if (passes_a && passes_b) return refuse(c, n, "it multiplies channels by channels");
    return passes_a ? oct_follow_copy(c, a, y) : passes_b ? oct_follow_copy(c, b, y) : OCT_OK;
}

oct_status oct_follow_mat_mul(oct_channels *c, oct_node *n)
{
    oct_weight_axes w;

    if (oct_weight_axes_of(n, &w) && is_product(n)) return follow_product(c, n, &w);
    if (n->in[0]->data || n->in[1]->data)
        return refuse(c, n, "its weights are not a float32 matrix on the right");
    return follow_activations(c, n);
}
