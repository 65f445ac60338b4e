/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move, pool, reduce or normalize: channels pass, or are tied by what is shared. */
#include "op/channels.h"
#include "op/op.h"
#include "prune/follow.h"

/* --- moving data --- */

static bool has_units(const oct_channels *c, const oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->id < c->n_labels && c->labels[n->in[i]->id]) return true;
    return false;
}

/* Where data goes must be known now, since the numbers that say so change with the channels. */
static bool is_fixed(const oct_node *n)
{
    for (int32_t i = oct_node_n_data(n); i < n->n_in; i++)
        if (n->in[i] && !n->in[i]->data) return false;
    return true;
}

/* A part that nobody reads has no size to give to Split. */
static bool has_all_results(const oct_node *n)
{
    for (int32_t k = 0; k < n->n_out; k++)
        if (!n->out[k]) return false;
    return true;
}

static oct_status move(oct_channels *c, const oct_node *n, oct_tensor **in)
{
    const int32_t n_data = oct_node_n_data(n);

    for (int32_t i = 0; i < n_data; i++)
        OCT_TRY(oct_follow_read(c, n->in[i], &in[i]));
    for (int32_t k = 0; k < n->n_out; k++) {
        oct_tensor *t = NULL;

        if (!n->out[k]) continue;
        OCT_TRY(oct_labels_through(n, (const oct_tensor *const *)in, k, &t));
        if (!t) return oct_follow_stop(c, (oct_node *)(uintptr_t)n);
        OCT_TRY(oct_follow_set(c, n->out[k], t));
    }
    return OCT_OK;
}

oct_status oct_follow_moves(oct_channels *c, oct_node *n)
{
    oct_tensor **in;
    oct_status st;

    if (!has_units(c, n)) return OCT_OK;
    if (!oct_node_moves_data(n) || !is_fixed(n) || !has_all_results(n))
        return oct_follow_stop(c, n);
    if (!(in = oct_calloc(c->ctx, (size_t)n->n_in, sizeof(*in)))) return OCT_ERR_MEMORY;
    st = move(c, n, in);
    for (int32_t i = 0; i < n->n_in; i++)
        oct_tensor_unref(in[i]);
    oct_free(c->ctx, in);
    return st;
}

/* A Slice with a step would have to become another operator. */
oct_status oct_follow_slice(oct_channels *c, oct_node *n)
{
    const oct_tensor *steps = oct_node_const(n, 4);

    for (int64_t i = 0; steps && i < oct_tensor_len(steps); i++)
        if (oct_tensor_get_i64(steps, i) != 1) return oct_follow_stop(c, n);
    return oct_follow_moves(c, n);
}

/* A list of channels can be cut; one channel alone, or a matrix of them, cannot. */
oct_status oct_follow_gather(oct_channels *c, oct_node *n)
{
    const int32_t rank = n->in[0]->type.rank;
    oct_tensor *t = NULL;
    int32_t axis;
    bool is_list;

    if (!has_units(c, n) || rank < 1) return OCT_OK;
    OCT_TRY(oct_axis(n, oct_node_attr(n, "axis")->i, rank, &axis));
    OCT_TRY(oct_follow_read(c, n->in[0], &t));
    is_list = !oct_labels_vary(t, axis) || n->in[1]->type.rank == 1;
    oct_tensor_unref(t);
    return is_list ? oct_follow_moves(c, n) : oct_follow_stop(c, n);
}

/* Blocks of pixels become channels, or the other way: all of a block's channels go together. */
oct_status oct_follow_blocks(oct_channels *c, oct_node *n)
{
    OCT_TRY(oct_follow_tie(c, n->in[0], 1));
    OCT_TRY(oct_follow_moves(c, n));
    return oct_follow_tie(c, n->out[0], 1);
}

/* Pooling, resizing: each channel for itself, but all of its pixels. */
oct_status oct_follow_spatial(oct_channels *c, oct_node *n)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[0]->type;

    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i]) oct_units_protect(c, n->in[i], n, "it is not the data of this operator");
    if (x->rank < 2 || x->rank != y->rank || x->dim[1] != y->dim[1] || x->dim[1] < 1 ||
        oct_node_out(n, 1))
        return oct_follow_stop(c, n);
    OCT_TRY(oct_follow_tie(c, n->in[0], 1));
    return oct_follow_copy(c, n->in[0], n->out[0]);
}

/* Only the type is read: sizes that were not folded may be used for anything. */
oct_status oct_follow_shape(oct_channels *c, oct_node *n)
{
    if (has_units(c, n))
        oct_units_protect(c, n->in[0], n, "its shape is computed with at run time");
    return OCT_OK;
}

/* --- operators that see all channels at once --- */

/* Do labels of operand 0 differ along any of these axes? */
static oct_status varies(oct_channels *c, const oct_node *n, unsigned axes, bool *out)
{
    oct_tensor *t = NULL;

    OCT_TRY(oct_follow_read(c, n->in[0], &t));
    *out = false;
    for (int32_t d = 0; d < t->type.rank; d++)
        *out |= (axes & (1u << d)) && oct_labels_vary(t, d);
    oct_tensor_unref(t);
    return OCT_OK;
}

/* Softmax over channels, a norm over them: each result depends on all. */
static oct_status pass_unless(oct_channels *c, oct_node *n, unsigned axes)
{
    bool is_seen;

    OCT_TRY(varies(c, n, axes, &is_seen));
    if (!is_seen) return oct_follow_copy(c, n->in[0], n->out[0]);
    oct_units_protect(c, n->in[0], n, "each result depends on all channels");
    return OCT_OK;
}

oct_status oct_follow_along_axis(oct_channels *c, oct_node *n)
{
    int32_t axis;

    if (n->in[0]->type.rank < 1) return oct_follow_stop(c, n);
    OCT_TRY(oct_axis(n, oct_node_attr(n, "axis")->i, n->in[0]->type.rank, &axis));
    return pass_unless(c, n, 1u << axis);
}

oct_status oct_follow_norm_last(oct_channels *c, oct_node *n)
{
    const int32_t rank = n->in[0]->type.rank;
    int32_t axis;

    if (rank < 1 || oct_node_out(n, 1)) return oct_follow_stop(c, n);
    OCT_TRY(oct_axis(n, oct_node_attr(n, "axis")->i, rank, &axis));
    return pass_unless(c, n, ~0u << axis);
}

/* --- norms of each channel --- */

static oct_status cut_norm(oct_channels *c, oct_node *n)
{
    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i])
            OCT_TRY(oct_follow_cut(c, n, i, 0, n->in[0], 1,
                                   i == 1   ? OCT_CUT_NORM
                                   : i == 2 ? OCT_CUT_SHIFT
                                            : OCT_CUT_FACTOR));
    return OCT_OK;
}

oct_status oct_follow_norm_channels(oct_channels *c, oct_node *n)
{
    const oct_type *x = &n->in[0]->type;

    for (int32_t i = 1; i < n->n_in; i++)
        if (!oct_node_const(n, i) || n->in[i]->type.rank != 1 || x->rank < 2 ||
            n->in[i]->type.dim[0] != x->dim[1])
            return oct_follow_stop(c, n);
    for (int32_t k = 1; k < n->n_out; k++)
        if (n->out[k] && (n->out[k]->n_users || n->out[k]->is_output)) return oct_follow_stop(c, n);
    OCT_TRY(oct_follow_tie(c, n->in[0], 1));
    OCT_TRY(oct_follow_copy(c, n->in[0], n->out[0]));
    return cut_norm(c, n);
}

/* With one channel in each group it is a norm of each channel. */
oct_status oct_follow_norm_groups(oct_channels *c, oct_node *n)
{
    if (n->in[0]->type.rank < 2 || n->in[0]->type.dim[1] != oct_node_attr(n, "num_groups")->i) {
        oct_units_protect(c, n->in[0], n, "each result depends on a group of channels");
        return OCT_OK;
    }
    return oct_follow_norm_channels(c, n);
}

/* --- reductions --- */

/* The axes that go, as bits; false: not known. */
static bool reduced_axes(const oct_node *n, unsigned *axes)
{
    const oct_tensor *t = oct_node_const(n, 1);
    const int32_t rank = n->in[0]->type.rank;

    if (rank < 0 || (oct_node_in(n, 1) && !t)) return false;
    *axes = 0;
    if (!t || oct_tensor_len(t) == 0) {
        *axes = oct_node_attr(n, "noop_with_empty_axes")->i ? 0 : ~0u;
        return true;
    }
    for (int64_t i = 0; i < oct_tensor_len(t); i++) {
        const int64_t d = oct_tensor_get_i64(t, i);

        if (d < -rank || d >= rank) return false;
        *axes |= 1u << (d < 0 ? d + rank : d);
    }
    return true;
}

oct_status oct_follow_reduce(oct_channels *c, oct_node *n)
{
    unsigned axes;
    bool is_seen;
    oct_tensor *t = NULL, *own = NULL;
    int32_t rank = 0;

    if (!reduced_axes(n, &axes)) return oct_follow_stop(c, n);
    OCT_TRY(varies(c, n, axes, &is_seen));
    if (is_seen) {
        oct_units_protect(c, n->in[0], n, "each result depends on all channels");
        return OCT_OK;
    }
    if (oct_node_attr(n, "keepdims")->i) return oct_follow_copy(c, n->in[0], n->out[0]);
    OCT_TRY(oct_follow_read(c, n->in[0], &t));
    if (oct_tensor_copy(c->ctx, t, &own) == OCT_OK) {
        for (int32_t d = 0; d < t->type.rank; d++)
            if (!(axes & (1u << d))) own->type.dim[rank++] = t->type.dim[d];
        own->type.rank = rank;
    }
    oct_tensor_unref(t);
    return own ? oct_follow_set(c, n->out[0], own) : OCT_ERR_MEMORY;
}

/* --- quantization --- */

/* One scale for all channels lets them pass; scales by channel are not followed. */
oct_status oct_follow_quantize(oct_channels *c, oct_node *n)
{
    const oct_type *x = &n->in[0]->type;

    if (!has_units(c, n)) return OCT_OK;
    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i] && (!n->in[i]->data || oct_tensor_len(n->in[i]->data) != 1 || x->rank < 0))
            return oct_follow_stop(c, n);
    return oct_follow_copy(c, n->in[0], n->out[0]);
}
