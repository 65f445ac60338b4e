/* SPDX-License-Identifier: Apache-2.0 */
/* Labels on channels, and how nodes that only move data map them. */
#include "graph/channels.h"

#include <string.h>

enum { MAX_LABELS = 1 << 22 }; /* larger tensors are not tracked exactly */

/* One operator that moves data. `is_move` NULL: always. */
typedef struct mover {
    const char *name;
    bool (*is_move)(const oct_node *n);
    oct_status (*through)(const oct_node *n, const oct_tensor *const *in, int32_t k,
                          oct_tensor **out);
    bool is_variadic;
} mover;

static bool attr_is(const oct_node *n, const char *name, const char *want)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_STRING && strcmp(a->s, want) == 0;
}

/* --- which nodes --- */

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

oct_status oct_labels_new(oct_ctx *ctx, const oct_type *type, int32_t first, bool per_channel,
                          oct_tensor **out)
{
    oct_type t = {.dtype = OCT_DTYPE_I32, .rank = OCT_MAX(type->rank, 0)};
    int64_t n = 1;
    int32_t *label;

    for (int32_t d = 0; d < t.rank; d++)
        t.dim[d] = 1;
    if (per_channel) {
        if (type->rank < 2 || type->dim[1] < 1 || type->dim[1] > MAX_LABELS)
            return oct_fail(ctx, OCT_ERR_SHAPE, "a value without channels has no labels for them");
        n = t.dim[1] = type->dim[1];
    }
    if (first > INT32_MAX - (int32_t)n) return oct_fail(ctx, OCT_ERR_SHAPE, "too many channels");
    OCT_TRY(oct_tensor_make(ctx, &t, out));
    label = (*out)->data;
    for (int32_t c = 0; c < n; c++)
        label[c] = first + c;
    return OCT_OK;
}

bool oct_labels_channels(const oct_tensor *labels, int64_t channels, int32_t *out)
{
    const oct_type *t = &labels->type;
    const int32_t *label = labels->data;
    const int64_t n = oct_tensor_len(labels);

    if (n < 1 || (n > 1 && (t->rank < 2 || t->dim[1] != n || n != channels))) return false;
    for (int64_t c = 0; c < channels; c++)
        out[c] = label[n > 1 ? c : 0];
    return true;
}

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
        if (!oct_mul_i64(len, t.dim[d], &len) || len > MAX_LABELS) return OCT_OK;
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

/* Are all slices along this axis the same? */
static bool is_even(const oct_tensor *x, int32_t axis)
{
    const int64_t n = x->type.dim[axis], inner = oct_type_span(&x->type, axis + 1, x->type.rank);
    const int64_t outer = oct_type_span(&x->type, 0, axis);
    const int32_t *label = x->data;

    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 1; i < n; i++)
            if (memcmp(label + (o * n + i) * inner, label + o * n * inner,
                       (size_t)inner * sizeof(*label)) != 0)
                return false;
    return true;
}

/* Axes along which nothing changes become 1, in place. */
static void narrow(oct_tensor *x)
{
    int32_t *label = x->data;

    for (int32_t d = 0; d < x->type.rank; d++) {
        const int64_t n = x->type.dim[d], inner = oct_type_span(&x->type, d + 1, x->type.rank);
        const int64_t outer = oct_type_span(&x->type, 0, d);

        if (n < 2 || !is_even(x, d)) continue;
        for (int64_t o = 1; o < outer; o++)
            memmove(label + o * inner, label + o * n * inner, (size_t)inner * sizeof(*label));
        x->type.dim[d] = 1;
        x->size = (size_t)(outer * inner) * sizeof(*label);
    }
}

/* --- operators --- */

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

/* Pooling and resizing: several elements of a channel, or none, become one. */
static oct_status planes(const oct_node *n, const oct_tensor *const *in, int32_t k,
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

    return len < 1 || len > MAX_LABELS ? OCT_OK : evaluate(n, in[0], 0, k, out);
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
        if (t.dim[d] < 1 || !oct_mul_i64(len, t.dim[d], &len) || len > MAX_LABELS) return OCT_OK;
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

static const mover movers[] = {
    {"Concat", NULL, concat, true},
    {"DepthToSpace", NULL, blocks, false},
    {"Dropout", dropout_moves, copy, false},
    {"Expand", NULL, expand, false},
    {"Flatten", NULL, reshape, false},
    {"Gather", NULL, along_axis, false},
    {"GlobalMaxPool", NULL, planes, false},
    {"Identity", NULL, copy, false},
    {"MaxPool", pool_moves, planes, false},
    {"Pad", pad_moves, pad, false},
    {"Reshape", NULL, reshape, false},
    {"Resize", resize_moves, planes, false},
    {"Slice", NULL, slice, false},
    {"SpaceToDepth", NULL, blocks, false},
    {"Split", NULL, along_axis, false},
    {"Squeeze", NULL, reshape, false},
    {"Tile", NULL, tile, false},
    {"Transpose", NULL, any_length, false},
    {"Unsqueeze", NULL, reshape, false},
    {"Upsample", resize_moves, planes, false},
};

static const mover *find(const oct_node *n)
{
    if (*oct_op_domain(n->op) || n->n_in < 1 || n->n_out < 1) return NULL;
    for (size_t i = 0; i < OCT_COUNT(movers); i++)
        if (strcmp(movers[i].name, n->op->name) == 0) return &movers[i];
    return NULL;
}

int32_t oct_node_n_data(const oct_node *n)
{
    const mover *m = find(n);

    return !m ? 0 : m->is_variadic ? n->n_in : 1;
}

bool oct_node_moves_data(const oct_node *n)
{
    const mover *m = find(n);

    if (!m || (m->is_move && !m->is_move(n))) return false;
    for (int32_t i = 0; i < (m->is_variadic ? n->n_in : 1); i++)
        if (!n->in[i] || n->in[i]->data)
            return false; /* a lookup table of constants: labels are
                           * the table's own */
    return true;
}

oct_status oct_labels_through(const oct_node *n, const oct_tensor *const *in, int32_t k,
                              oct_tensor **out)
{
    const mover *m = find(n);

    *out = NULL;
    if (!m || k < 0 || k >= n->n_out || !n->out[k] || !oct_node_moves_data(n)) return OCT_OK;
    for (int32_t i = 0; i < oct_node_n_data(n); i++)
        if (!in[i] || in[i]->type.rank != n->in[i]->type.rank) return OCT_OK;
    OCT_TRY(m->through(n, in, k, out));
    if (*out) narrow(*out);
    return OCT_OK;
}
