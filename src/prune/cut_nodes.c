/* SPDX-License-Identifier: Apache-2.0 */
/* What changes in nodes when channels go: numbers of groups, and sizes that are spelt out. */
#include "op/op.h"
#include "pass/rewrite.h"
#include "prune/cut.h"

#define MAX_SIZES 64

oct_status oct_cut_none(const oct_surgery *s, oct_node *n)
{
    (void)s;
    (void)n;
    return OCT_OK;
}

static const oct_type *later(const oct_surgery *s, const oct_value *v)
{
    return &s->type[v->id];
}

/* Operand i becomes a constant of its own with these numbers. */
static oct_status set_ints(const oct_surgery *s, oct_node *n, int32_t i, const char *role,
                           const int64_t *x, int64_t len)
{
    oct_tensor *t = NULL, *like = NULL;
    const oct_tensor *old = oct_node_const(n, i);

    OCT_TRY(oct_tensor_vec_i64(s->c->ctx, x, len, &t));
    if (!old || old->type.dtype == OCT_DTYPE_I64) return oct_node_set_const(n, i, role, t);
    if (oct_tensor_cast(s->c->ctx, t, old->type.dtype, &like)) {
        oct_tensor_unref(t);
        return OCT_ERR_MEMORY;
    }
    oct_tensor_unref(t);
    return oct_node_set_const(n, i, role, like);
}

/* --- layers and norms --- */

oct_status oct_cut_conv(const oct_surgery *s, oct_node *n)
{
    const int64_t groups = oct_node_attr(n, "group")->i, now = n->in[0]->type.dim[1],
                  then = later(s, n->in[0])->dim[1];

    if (groups == 1 || groups != now || now == then) return OCT_OK;
    return oct_node_set_int(n, "group", then);
}

oct_status oct_cut_group_normalization(const oct_surgery *s, oct_node *n)
{
    const int64_t now = n->in[0]->type.dim[1], then = later(s, n->in[0])->dim[1];

    return now == then ? OCT_OK : oct_node_set_int(n, "num_groups", then);
}

/* --- shapes --- */

/* Element i of a list of sizes is that of axis `first + i`; those that change are replaced. */
static oct_status set_sizes(const oct_surgery *s, oct_node *n, int32_t operand, int32_t first)
{
    const oct_type *now = &n->out[0]->type, *then = later(s, n->out[0]);
    const oct_tensor *old = oct_node_const(n, operand);
    int64_t x[MAX_SIZES];
    int len;
    bool is_changed = false;

    if (!old || !oct_const_ints(old, x, MAX_SIZES, &len)) return OCT_OK;
    for (int i = 0; i < len; i++) {
        const int32_t d = first + i;

        if (d < 0 || d >= now->rank || now->dim[d] == then->dim[d] || x[i] == 1) continue;
        x[i] = then->dim[d];
        is_changed = true;
    }
    return is_changed ? set_ints(s, n, operand, "shape", x, len) : OCT_OK;
}

oct_status oct_cut_reshape(const oct_surgery *s, oct_node *n)
{
    return set_sizes(s, n, 1, 0);
}

/* Sizes to expand to are aligned at the end. */
oct_status oct_cut_expand(const oct_surgery *s, oct_node *n)
{
    const oct_tensor *old = oct_node_const(n, 1);

    return old ? set_sizes(s, n, 1, n->out[0]->type.rank - (int32_t)oct_tensor_len(old)) : OCT_OK;
}

/* Only a list of all axes has one for channels; `axes` names others. */
oct_status oct_cut_resize(const oct_surgery *s, oct_node *n)
{
    const oct_attr *axes = oct_node_attr(n, "axes");

    if (n->n_in < 4 || (axes && axes->n > 0 && axes->n < n->out[0]->type.rank)) return OCT_OK;
    return set_sizes(s, n, 3, 0);
}

/* --- parts of channels --- */

/* How many of the first `end` channels are kept. */
static int64_t count(const bool *kept, int64_t end)
{
    int64_t n = 0;

    for (int64_t i = 0; i < end; i++)
        n += kept[i];
    return n;
}

static int64_t wrap(int64_t i, int64_t n)
{
    const int64_t at = i < 0 ? i + n : i;

    return at < 0 ? 0 : at > n ? n : at;
}

oct_status oct_cut_slice(const oct_surgery *s, oct_node *n)
{
    const int32_t rank = n->in[0]->type.rank;
    int64_t from[MAX_SIZES], to[MAX_SIZES], axes[MAX_SIZES];
    const oct_tensor *which = oct_node_const(n, 3);
    int len, n_to, n_axes;
    const bool *kept;
    int32_t axis;

    OCT_TRY(oct_surgery_kept(s, n->in[0], &axis, &kept));
    if (axis < 0 || !oct_const_ints(oct_node_const(n, 1), from, MAX_SIZES, &len) ||
        !oct_const_ints(oct_node_const(n, 2), to, MAX_SIZES, &n_to) || len != n_to)
        return OCT_OK;
    if (which && (!oct_const_ints(which, axes, MAX_SIZES, &n_axes) || n_axes != len)) return OCT_OK;
    for (int i = 0; i < len; i++) {
        const int64_t size = n->in[0]->type.dim[axis], d = which ? axes[i] : i;

        if ((d < 0 ? d + rank : d) != axis) continue;
        from[i] = count(kept, wrap(from[i], size));
        to[i] = count(kept, wrap(to[i], size));
    }
    OCT_TRY(set_ints(s, n, 1, "starts", from, len));
    return set_ints(s, n, 2, "ends", to, len);
}

oct_status oct_cut_split(const oct_surgery *s, oct_node *n)
{
    oct_attr *parts = NULL;
    int64_t *size;
    const bool *kept;
    int32_t axis, along;

    OCT_TRY(oct_surgery_kept(s, n->in[0], &axis, &kept));
    OCT_TRY(oct_axis(n, oct_node_attr(n, "axis")->i, n->in[0]->type.rank, &along));
    if (axis != along) return OCT_OK;
    size = oct_arena_array(s->c->arena, (size_t)n->n_out, sizeof(*size));
    if (!size) return OCT_ERR_MEMORY;
    for (int32_t k = 0; k < n->n_out; k++)
        size[k] = later(s, n->out[k])->dim[axis];
    for (int i = 0; i < oct_op_n_attrs(n->op); i++)
        if (n->op->attrs[i].no_default) parts = &n->attr[i];
    if (parts) *parts = (oct_attr){.kind = OCT_ATTR_NONE}; /* num_outputs: parts of equal size */
    return set_ints(s, n, 1, "split", size, n->n_out);
}

/* Indices count kept channels only. */
oct_status oct_cut_gather(const oct_surgery *s, oct_node *n)
{
    const oct_tensor *old = oct_node_const(n, 1);
    const bool *kept;
    int64_t *index, len = 0;
    int32_t axis, along;

    OCT_TRY(oct_surgery_kept(s, n->in[0], &axis, &kept));
    OCT_TRY(oct_axis(n, oct_node_attr(n, "axis")->i, n->in[0]->type.rank, &along));
    if (axis != along || !old) return OCT_OK;
    index = oct_arena_array(s->c->arena, (size_t)oct_tensor_len(old) + 1, sizeof(*index));
    if (!index) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < oct_tensor_len(old); i++) {
        const int64_t at = wrap(oct_tensor_get_i64(old, i), n->in[0]->type.dim[axis]);

        if (at < n->in[0]->type.dim[axis] && kept[at]) index[len++] = count(kept, at);
    }
    return set_ints(s, n, 1, "indices", index, len);
}
