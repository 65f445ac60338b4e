/* SPDX-License-Identifier: Apache-2.0 */
/* How operators that only move data carry the labels of channels: one oct_data_move for each way.
 */
#include <string.h>

#include "op/channels.h"

static bool attr_is(const oct_node *n, const char *name, const char *want)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_STRING && strcmp(a->s, want) == 0;
}

/* --- under which attributes an operator only moves data --- */

static bool resize_moves(const oct_node *n)
{
    return attr_is(n, "mode", "nearest") &&
           !attr_is(n, "coordinate_transformation_mode", "tf_crop_and_resize");
}

static bool is_zero(const oct_value *v)
{
    return !v || (v->data && oct_tensor_len(v->data) == 1 && oct_tensor_get_f64(v->data, 0) == 0.0);
}

/* Zero has a code in every quantized tensor; other constants may not. */
static bool pad_moves(const oct_node *n)
{
    return !attr_is(n, "mode", "constant") || is_zero(oct_node_in(n, 2));
}

static bool dropout_moves(const oct_node *n)
{
    return is_zero(oct_node_in(n, 2)) && !oct_node_out(n, 1);
}

static bool pool_moves(const oct_node *n)
{
    return !oct_node_out(n, 1); /* the index of the maximum cannot be told from codes */
}

/* --- labels --- */

/* y = x with the axes of `wide` repeated up to these dims; *y NULL: too large, or not known. */
static oct_status widen(const oct_tensor *x, unsigned wide, const oct_type *full, oct_tensor **y)
{
    const oct_type *xt = &x->type;
    oct_type t = *xt;
    int64_t len = 1, at[OCT_MAX_RANK] = {0};
    const int32_t *from = x->data;
    int32_t *to;

    *y = NULL;
    if (full->rank != t.rank) return OCT_OK;
    for (int32_t d = 0; d < t.rank; d++) {
        if (wide & (1u << d)) t.dim[d] = full->dim[d];
        if (t.dim[d] < 1 || (xt->dim[d] != 1 && xt->dim[d] != t.dim[d])) return OCT_OK;
        if (!oct_mul_i64(len, t.dim[d], &len) || len > OCT_MAX_LABELS) return OCT_OK;
    }
    OCT_TRY(oct_tensor_make(x->ctx, &t, y));
    to = (*y)->data;
    for (int64_t i = 0; i < len; i++) {
        int64_t src = 0;

        for (int32_t d = 0; d < t.rank; d++)
            src = src * xt->dim[d] + (xt->dim[d] > 1 ? at[d] : 0);
        to[i] = from[src];
        for (int32_t d = t.rank - 1; d >= 0 && ++at[d] == t.dim[d]; d--)
            at[d] = 0;
    }
    return OCT_OK;
}

/* The node's own kernel, on labels; only the axes of `wide` need their real length. */
static oct_status evaluate(const oct_node *n, const oct_tensor *x, unsigned wide, int32_t k,
                           oct_tensor **out)
{
    oct_tensor *in[OCT_MAX_IN] = {NULL}, *y = NULL, **results;
    oct_status st;

    *out = NULL;
    if (n->n_in > OCT_MAX_IN) return OCT_OK;
    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i] && !(in[i] = n->in[i]->data)) return OCT_OK; /* known only at run time */
    OCT_TRY(widen(x, wide, &n->in[0]->type, &y));
    if (!y) return OCT_OK;
    in[0] = y;
    results = oct_calloc(x->ctx, (size_t)n->n_out, sizeof(oct_tensor *));
    st = results ? oct_node_eval(n, in, results, NULL) : OCT_ERR_MEMORY;
    for (int32_t i = 0; results && i < n->n_out; i++) {
        if (i == k && !st)
            *out = results[i];
        else
            oct_tensor_unref(results[i]);
    }
    oct_free(x->ctx, results);
    oct_tensor_unref(y);
    return st == OCT_ERR_MEMORY ? st : OCT_OK; /* what cannot be computed is not known */
}

/* A tensor of labels may be narrowed in place, so it must not be a view of another. */
static oct_status own(const oct_tensor *x, oct_tensor **out)
{
    return oct_tensor_copy(x->ctx, x, out);
}

static oct_status copy(const oct_node *n, const oct_tensor *const *in, int32_t k, oct_tensor **out)
{
    (void)n;
    (void)k;
    return own(in[0], out);
}

/* Pooling and resizing change H and W only. */
static oct_status spatial(const oct_node *n, const oct_tensor *const *in, int32_t k,
                          oct_tensor **out)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[k]->type;

    if (x->rank != y->rank) return OCT_OK;
    for (int32_t d = 0; d < x->rank; d++)
        if (in[0]->type.dim[d] != 1 && (d > 1 || x->dim[d] != y->dim[d])) return OCT_OK;
    return own(in[0], out);
}

/* Only one axis matters: Split, Gather. */
static oct_status along_axis(const oct_node *n, const oct_tensor *const *in, int32_t k,
                             oct_tensor **out)
{
    const int32_t rank = n->in[0]->type.rank;
    const oct_attr *axis = oct_node_attr(n, "axis");
    const int64_t a = axis ? (axis->i < 0 ? axis->i + rank : axis->i) : 0;

    if (a < 0 || a >= rank) return OCT_OK;
    return evaluate(n, in[0], 1u << a, k, out);
}

static oct_status slice(const oct_node *n, const oct_tensor *const *in, int32_t k, oct_tensor **out)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[k]->type;
    unsigned cut = 0;
    bool is_cut = false;

    if (x->rank != y->rank) return OCT_OK;
    for (int32_t d = 0; d < x->rank; d++)
        if (x->dim[d] < 0 || x->dim[d] != y->dim[d]) cut |= 1u << d;
    for (int32_t d = 0; d < x->rank; d++)
        is_cut |= in[0]->type.dim[d] != 1; /* a step of -1 reverses an axis without shortening it */
    return is_cut ? evaluate(n, in[0], cut, k, out) : own(in[0], out);
}

/* What is repeated was the same along that axis. */
static oct_status expand(const oct_node *n, const oct_tensor *const *in, int32_t k,
                         oct_tensor **out)
{
    const int32_t more = n->out[k]->type.rank - in[0]->type.rank;
    oct_type t = {.dtype = OCT_DTYPE_I32, .rank = n->out[k]->type.rank};

    if (more < 0) return OCT_OK;
    for (int32_t d = 0; d < t.rank; d++)
        t.dim[d] = d < more ? 1 : in[0]->type.dim[d - more];
    OCT_TRY(own(in[0], out));
    (*out)->type = t;
    return OCT_OK;
}

static oct_status tile(const oct_node *n, const oct_tensor *const *in, int32_t k, oct_tensor **out)
{
    const int64_t len = oct_type_len(&n->out[k]->type);

    return len < 1 || len > OCT_MAX_LABELS ? OCT_OK : evaluate(n, in[0], 0, k, out);
}

/* Transpose: what is the same along an axis stays so. */
static oct_status any_length(const oct_node *n, const oct_tensor *const *in, int32_t k,
                             oct_tensor **out)
{
    return evaluate(n, in[0], 0, k, out);
}

/* DepthToSpace, SpaceToDepth. */
static oct_status blocks(const oct_node *n, const oct_tensor *const *in, int32_t k,
                         oct_tensor **out)
{
    return evaluate(n, in[0], 14u, k, out);
}

/* Reshape and similar: axes fall into groups of the same size in both shapes; a group without
 * differences keeps none, and in the others the elements keep their order. */
static oct_status reshape(const oct_node *n, const oct_tensor *const *in, int32_t k,
                          oct_tensor **out)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[k]->type;
    oct_type t = {.dtype = OCT_DTYPE_I32, .rank = OCT_MAX(y->rank, 0)};
    unsigned wide = 0;

    for (int32_t i = 0, j = 0; i < x->rank || j < y->rank;) {
        const int32_t i0 = i, j0 = j;
        int64_t a = i < x->rank ? x->dim[i++] : 1, b = j < y->rank ? y->dim[j++] : 1;
        bool differs = false;

        while (a != b) {
            int64_t *shorter = a < b ? &a : &b;

            if (a < 1 || b < 1 || (a < b ? i >= x->rank : j >= y->rank)) return OCT_OK;
            if (!oct_mul_i64(*shorter, a < b ? x->dim[i++] : y->dim[j++], shorter)) return OCT_OK;
        }
        while (i < x->rank && x->dim[i] == 1)
            i++;
        while (j < y->rank && y->dim[j] == 1)
            j++;
        for (int32_t d = i0; d < i; d++)
            differs |= in[0]->type.dim[d] != 1;
        for (int32_t d = i0; d < i && differs; d++)
            wide |= 1u << d;
        for (int32_t d = j0; d < j; d++)
            t.dim[d] = differs ? y->dim[d] : 1;
    }
    OCT_TRY(widen(in[0], wide, x, out));
    if (*out) (*out)->type = t;
    return OCT_OK;
}

static oct_status concat(const oct_node *n, const oct_tensor *const *in, int32_t k,
                         oct_tensor **out)
{
    const oct_type *y = &n->out[k]->type;
    const oct_attr *a = oct_node_attr(n, "axis");
    const int64_t axis = !a ? -1 : a->i < 0 ? a->i + y->rank : a->i;
    oct_tensor **part;
    unsigned wide = 0;
    oct_status st = OCT_OK;

    if (y->rank < 1 || axis < 0 || axis >= y->rank) return OCT_OK;
    for (int32_t i = 0; i < n->n_in; i++) {
        if (in[i]->type.rank != y->rank) return OCT_OK;
        for (int32_t d = 0; d < y->rank; d++)
            if (in[i]->type.dim[d] != 1 || d == axis) wide |= 1u << d;
    }
    if (!(part = oct_calloc(in[0]->ctx, (size_t)n->n_in, sizeof(oct_tensor *))))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n->n_in && !st; i++) {
        st = widen(in[i], wide, &n->in[i]->type, &part[i]);
        if (!part[i]) goto done;
    }
    if (!st) st = oct_node_eval(n, part, out, NULL);
done:
    for (int32_t i = 0; i < n->n_in; i++)
        oct_tensor_unref(part[i]);
    oct_free(in[0]->ctx, part);
    return st == OCT_ERR_MEMORY ? st : OCT_OK;
}

/* What is added before each axis; false: not known. */
static bool pads_before(const oct_node *n, int32_t rank, int64_t *before)
{
    const oct_tensor *pads = oct_node_const(n, 1), *axes = oct_node_const(n, 3);
    const int64_t count = axes ? oct_tensor_len(axes) : rank;

    if (!pads || (oct_node_in(n, 3) && !axes) || oct_tensor_len(pads) != 2 * count) return false;
    memset(before, 0, (size_t)rank * sizeof(*before));
    for (int64_t i = 0; i < count; i++) {
        int64_t d = axes ? oct_tensor_get_i64(axes, i) : i;

        if (d < 0) d += rank;
        if (d < 0 || d >= rank) return false;
        before[d] = oct_tensor_get_i64(pads, i);
    }
    return true;
}

/* New elements get the label of their channel; new channels have none. */
static oct_status pad(const oct_node *n, const oct_tensor *const *in, int32_t k, oct_tensor **out)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[k]->type, *xt = &in[0]->type;
    oct_type t = *xt;
    int64_t before[OCT_MAX_RANK], at[OCT_MAX_RANK] = {0}, len = 1;
    const int32_t *from = in[0]->data;
    int32_t *to;

    if (x->rank != y->rank || x->rank < 1 || !pads_before(n, x->rank, before)) return OCT_OK;
    for (int32_t d = 0; d < t.rank; d++) {
        if (t.dim[d] > 1 && x->dim[d] != y->dim[d]) {
            if (!attr_is(n, "mode", "constant")) return OCT_OK;
            t.dim[d] = y->dim[d];
        }
        if (t.dim[d] < 1 || !oct_mul_i64(len, t.dim[d], &len) || len > OCT_MAX_LABELS)
            return OCT_OK;
    }
    OCT_TRY(oct_tensor_make(in[0]->ctx, &t, out));
    to = (*out)->data;
    for (int64_t i = 0; i < len; i++) {
        int64_t src = 0;
        bool is_inside = true;

        for (int32_t d = 0; d < t.rank; d++) {
            const int64_t p = xt->dim[d] > 1 ? at[d] - before[d] : 0;

            is_inside &= p >= 0 && p < xt->dim[d];
            src = src * xt->dim[d] + p;
        }
        to[i] = is_inside ? from[src] : -1;
        for (int32_t d = t.rank - 1; d >= 0 && ++at[d] == t.dim[d]; d--)
            at[d] = 0;
    }
    return OCT_OK;
}

const oct_data_move oct_moves_concat = {.labels = concat, .is_variadic = true};
const oct_data_move oct_moves_blocks = {.labels = blocks};
const oct_data_move oct_moves_dropout = {.is_move = dropout_moves, .labels = copy};
const oct_data_move oct_moves_expand = {.labels = expand};
const oct_data_move oct_moves_reshape = {.labels = reshape};
const oct_data_move oct_moves_axis = {.labels = along_axis};
const oct_data_move oct_moves_global_pool = {.labels = spatial};
const oct_data_move oct_moves_copy = {.labels = copy};
const oct_data_move oct_moves_pool = {.is_move = pool_moves, .labels = spatial};
const oct_data_move oct_moves_pad = {.is_move = pad_moves, .labels = pad};
const oct_data_move oct_moves_resize = {.is_move = resize_moves, .labels = spatial};
const oct_data_move oct_moves_slice = {.labels = slice};
const oct_data_move oct_moves_tile = {.labels = tile};
const oct_data_move oct_moves_transpose = {.labels = any_length};
