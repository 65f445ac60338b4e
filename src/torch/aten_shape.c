/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: views that keep all elements, and how a view is written through. */
#include "torch/aten.h"

static oct_value *self(oct_aten *a)
{
    return oct_aten_tensor(a, "self");
}

/* --- writing through views --- */

oct_value *oct_aten_write_same(oct_aten *a, oct_value *whole, oct_value *y)
{
    (void)a;
    (void)whole;
    return y;
}

oct_value *oct_aten_write_reshape(oct_aten *a, oct_value *whole, oct_value *y)
{
    return ATEN2(reshape, y, oct_aten_shape_of(a, whole));
}

oct_value *oct_aten_write_none(oct_aten *a, oct_value *whole, oct_value *y)
{
    (void)whole;
    (void)y;
    oct_aten_fail(a, OCT_ERR_UNSUPPORTED,
                  "its result is a view that is written in place; decompose the program before "
                  "saving it: ep.run_decompositions({})");
    return NULL;
}

/* --- the same elements --- */

/* alias, detach, lift_fresh_copy .. */
void oct_aten_alias(oct_aten *a)
{
    a->out[0] = self(a);
}

void oct_aten_clone(oct_aten *a)
{
    a->out[0] = self(a);
    a->is_copy = true;
}

static const oct_meta *meta_of_self(oct_aten *a)
{
    const oct_arg *arg = oct_aten_arg(a, "self");

    return arg && arg->kind == OCT_ARG_TENSOR ? oct_map_get(&a->t->p->metas, arg->s) : NULL;
}

void oct_aten_contiguous(oct_aten *a)
{
    const oct_meta *meta = meta_of_self(a);

    a->out[0] = self(a);
    a->is_copy = meta && !meta->is_contiguous;
}

/* to.dtype and its kin: a copy only if the type changes. */
void oct_aten_to(oct_aten *a)
{
    oct_value *x = self(a);
    const int64_t number = oct_aten_int(a, "dtype", 0);
    const oct_dtype type = number ? oct_torch_dtype(number) : a->meta->type.dtype;

    a->out[0] = oct_aten_cast(a, x, type);
    a->is_copy = a->out[0] != x || oct_aten_bool(a, "copy", false);
}

void oct_aten_type_as(oct_aten *a)
{
    oct_value *x = self(a), *other = oct_aten_tensor(a, "other");

    a->out[0] = oct_aten_cast(a, x, other ? other->type.dtype : OCT_DTYPE_NONE);
    a->is_copy = a->out[0] != x;
}

/* --- reshape --- */

/* Reshape with one size left open where only one is symbolic: shapes downstream stay known. */
static oct_value *reshape_to(oct_aten *a, oct_value *x, oct_value *shape, int64_t *known, int n)
{
    int n_symbolic = 0, n_open = 0, n_zero = 0, at = 0;
    oct_node *node;

    for (int i = 0; i < n; i++) {
        if (known[i] == -2) at = i;
        n_symbolic += known[i] == -2;
        n_open += known[i] == -1;
        n_zero += known[i] == 0;
    }
    if (n_symbolic == 1 && !n_open && !n_zero) {
        known[at] = -1;
        return oct_aten_reshape(a, x, known, n);
    }
    node = oct_aten_node(a, &oct_op_reshape, (oct_value *[]){x, shape}, 2, 1);
    if (n_zero) oct_emit_int(a->b, node, "allowzero", 1); /* else 0 means: as it was */
    return oct_aten_done(a, node);
}

void oct_aten_view(oct_aten *a)
{
    const char *name = oct_aten_has(a, "shape") ? "shape" : "size";
    oct_value *x = self(a);
    int64_t known[OCT_MAX_RANK];
    int n = 0;
    oct_value *shape = oct_aten_sizes(a, name, known, &n);

    if (a->b->status) return;
    a->out[0] = reshape_to(a, x, shape, known, n);
}

/* reshape is a view only of a tensor whose elements lie in order. */
void oct_aten_reshape_any(oct_aten *a)
{
    const oct_meta *meta = meta_of_self(a);

    oct_aten_view(a);
    a->is_copy = meta && !meta->is_contiguous;
}

/* Elements in order under another shape: what decomposed pooling writes. */
void oct_aten_as_strided(oct_aten *a)
{
    const oct_meta *meta = meta_of_self(a);
    int64_t size[OCT_MAX_RANK], stride[OCT_MAX_RANK], want = 1;
    oct_value *x = self(a);
    const int n = oct_aten_ints(a, "size", size);
    bool is_dense = oct_aten_int(a, "storage_offset", 0) == 0 && (!meta || meta->is_contiguous) &&
                    oct_aten_ints(a, "stride", stride) == n;

    for (int i = n - 1; i >= 0 && is_dense; i--) {
        is_dense = size[i] > 0 && (size[i] == 1 || stride[i] == want);
        is_dense = is_dense && oct_mul_i64(want, size[i], &want);
    }
    if (a->b->status) return;
    if (!is_dense || want != oct_type_len(&x->type)) {
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "a view by strides");
        return;
    }
    a->out[0] = oct_aten_reshape(a, x, size, n);
}

void oct_aten_view_as(oct_aten *a)
{
    oct_value *x = self(a);

    a->out[0] = ATEN2(reshape, x, oct_aten_shape_of(a, oct_aten_tensor(a, "other")));
}

/* Dims [from, to) of x become `n` given ones; all others stay. At most one size may be open. */
static oct_value *replace_dims(oct_aten *a, oct_value *x, int32_t from, int32_t to,
                               const int64_t *dims, int n)
{
    const int32_t rank = oct_aten_rank(a, x);
    int64_t all[2 * OCT_MAX_RANK];
    oct_value *parts[3];
    int at = 0, n_open = 0, n_parts = 0;

    if (a->b->status || rank - (to - from) + n > OCT_MAX_RANK) {
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "more than %d dimensions", OCT_MAX_RANK);
        return NULL;
    }
    for (int32_t i = 0; i < from; i++)
        all[at++] = oct_aten_dim(x, i);
    for (int i = 0; i < n; i++)
        all[at++] = dims[i];
    for (int32_t i = to; i < rank; i++)
        all[at++] = oct_aten_dim(x, i);
    for (int i = 0; i < at; i++)
        n_open += all[i] < 0 ? 1 : all[i] == 0 ? 2 : 0; /* next to a 0, -1 means nothing */
    if (n_open <= 1) return oct_aten_reshape(a, x, all, at);
    if (from > 0) parts[n_parts++] = oct_aten_slice(a, oct_aten_shape_of(a, x), 0, 0, from);
    parts[n_parts++] = oct_ints(a->b, dims, n);
    if (to < rank) parts[n_parts++] = oct_aten_slice(a, oct_aten_shape_of(a, x), 0, to, rank);
    return ATEN2(reshape, x, oct_aten_concat(a, parts, n_parts, 0));
}

void oct_aten_flatten(oct_aten *a)
{
    oct_value *x = self(a);
    const int32_t rank = oct_aten_rank(a, x);
    const int32_t from = oct_aten_axis(a, oct_aten_int(a, "start_dim", 0), rank);
    const int32_t to = oct_aten_axis(a, oct_aten_int(a, "end_dim", -1), rank);
    int64_t merged = 1;

    if (a->b->status) return;
    if (from == 1 && to == rank - 1) {
        a->out[0] = ATEN1(flatten, x);
        return;
    }
    for (int32_t i = from; i <= to && rank; i++) {
        const int64_t dim = oct_aten_dim(x, i);

        if (dim < 0 || merged < 0 || !oct_mul_i64(merged, dim, &merged)) merged = -1;
    }
    a->out[0] = rank ? replace_dims(a, x, from, to + 1, &merged, 1)
                     : oct_aten_reshape(a, x, (int64_t[]){1}, 1);
}

void oct_aten_unflatten(oct_aten *a)
{
    oct_value *x = self(a);
    const int32_t axis = oct_aten_axis(a, oct_aten_int(a, "dim", 0), oct_aten_rank(a, x));
    int64_t sizes[OCT_MAX_RANK];
    const int n = oct_aten_ints(a, "sizes", sizes);

    a->out[0] = replace_dims(a, x, axis, axis + 1, sizes, n);
}

void oct_aten_unsqueeze_dim(oct_aten *a)
{
    oct_value *x = self(a);

    a->out[0] = oct_aten_unsqueeze(a, x, oct_aten_int(a, "dim", 0));
}

/* Dimensions that are not 1 stay, whatever the caller says. */
void oct_aten_squeeze_dims(oct_aten *a)
{
    oct_value *x = self(a);
    const int32_t rank = oct_aten_rank(a, x);
    int64_t dims[OCT_MAX_RANK], axes[OCT_MAX_RANK];
    int n = oct_aten_ints(a, "dim", dims), n_axes = 0;

    if (!oct_aten_has(a, "dim"))
        for (n = 0; n < rank; n++)
            dims[n] = n;
    for (int i = 0; i < n && rank; i++) {
        const int32_t axis = oct_aten_axis(a, dims[i], rank);

        if (oct_aten_dim(x, axis) == 1) axes[n_axes++] = axis;
    }
    a->out[0] = n_axes ? ATEN2(squeeze, x, oct_ints(a->b, axes, n_axes)) : x;
}

/* --- transposing --- */

static void permute_by(oct_aten *a, oct_value *x, const int64_t *perm, int n)
{
    a->out[0] = oct_aten_transpose(a, x, perm, n);
}

static int read_perm(oct_aten *a, const oct_value *x, int64_t perm[OCT_MAX_RANK])
{
    const int32_t rank = oct_aten_rank(a, x);
    const int n = oct_aten_ints(a, "dims", perm);

    if (n != rank) oct_aten_fail(a, OCT_ERR_SHAPE, "%d dimensions of %d", n, rank);
    for (int i = 0; i < n; i++)
        perm[i] = oct_aten_axis(a, perm[i], rank);
    return a->b->status ? 0 : n;
}

void oct_aten_permute(oct_aten *a)
{
    oct_value *x = self(a);
    int64_t perm[OCT_MAX_RANK];
    const int n = read_perm(a, x, perm);

    permute_by(a, x, perm, n);
}

oct_value *oct_aten_write_permute(oct_aten *a, oct_value *whole, oct_value *y)
{
    int64_t perm[OCT_MAX_RANK], back[OCT_MAX_RANK] = {0};
    const int n = read_perm(a, whole, perm);

    for (int i = 0; i < n; i++)
        back[perm[i]] = i;
    return oct_aten_transpose(a, y, back, n);
}

static oct_value *transpose_of(oct_aten *a, oct_value *x)
{
    const int32_t rank = oct_aten_rank(a, x);
    const bool by_axis = oct_aten_has(a, "axis0");
    const int64_t d0 = oct_aten_int(a, by_axis ? "axis0" : "dim0", 0);
    const int64_t d1 = oct_aten_int(a, by_axis ? "axis1" : "dim1", 1);

    if (rank < 2) return x;
    return oct_aten_swap(a, x, oct_aten_axis(a, d0, rank), oct_aten_axis(a, d1, rank));
}

void oct_aten_transpose_int(oct_aten *a)
{
    a->out[0] = transpose_of(a, self(a));
}

oct_value *oct_aten_write_transpose(oct_aten *a, oct_value *whole, oct_value *y)
{
    (void)whole;
    return transpose_of(a, y);
}

/* mT: the last two dimensions. */
void oct_aten_matrix_transpose(oct_aten *a)
{
    oct_value *x = self(a);
    const int32_t rank = oct_aten_rank(a, x);

    if (rank < 2) oct_aten_fail(a, OCT_ERR_SHAPE, "a matrix is expected");
    a->out[0] = oct_aten_swap(a, x, rank - 2, rank - 1);
}

oct_value *oct_aten_write_matrix_transpose(oct_aten *a, oct_value *whole, oct_value *y)
{
    const int32_t rank = oct_aten_rank(a, whole);

    return oct_aten_swap(a, y, rank - 2, rank - 1);
}

/* movedim(source, destination): all other dimensions keep their order. */
void oct_aten_movedim(oct_aten *a)
{
    oct_value *x = self(a);
    const int32_t rank = oct_aten_rank(a, x);
    int64_t from[OCT_MAX_RANK], to[OCT_MAX_RANK], perm[OCT_MAX_RANK];
    const int n = oct_aten_ints(a, "source", from);
    bool is_moved[OCT_MAX_RANK] = {false};
    int32_t next = 0;

    if (oct_aten_ints(a, "destination", to) != n)
        oct_aten_fail(a, OCT_ERR_SHAPE, "as many destinations as sources are expected");
    for (int i = 0; i < rank; i++)
        perm[i] = -1;
    for (int i = 0; i < n; i++) {
        const int32_t f = oct_aten_axis(a, from[i], rank);

        perm[oct_aten_axis(a, to[i], rank)] = f;
        is_moved[f] = true;
    }
    for (int i = 0; i < rank; i++) {
        if (perm[i] >= 0) continue;
        while (next < rank - 1 && is_moved[next])
            next++;
        perm[i] = next++;
    }
    permute_by(a, x, perm, rank);
}

/* --- repeating --- */

void oct_aten_expand(oct_aten *a)
{
    oct_value *x = self(a), *shape;
    int64_t known[OCT_MAX_RANK];
    int n = 0;

    shape = oct_aten_sizes(a, "size", known, &n);
    if (a->b->status) return;
    for (int i = 0; i < n; i++)
        if (known[i] == -1) known[i] = 1; /* the size stays, says Expand */
    shape = shape->data ? oct_ints(a->b, known, n)
                        : ATEN2(max, shape, oct_aten_scalar(a, OCT_DTYPE_I64, 1));
    a->out[0] = ATEN2(expand, x, shape);
}

void oct_aten_expand_as(oct_aten *a)
{
    oct_value *x = self(a);

    a->out[0] = ATEN2(expand, x, oct_aten_shape_of(a, oct_aten_tensor(a, "other")));
}

/* repeat may put dimensions in front. */
void oct_aten_repeat(oct_aten *a)
{
    oct_value *x = self(a), *repeats;
    const int32_t rank = oct_aten_rank(a, x);
    int64_t axes[OCT_MAX_RANK];
    int n = 0;

    repeats = oct_aten_sizes(a, "repeats", NULL, &n);
    for (int i = 0; i < n - rank; i++)
        axes[i] = i;
    if (n > rank) x = ATEN2(unsqueeze, x, oct_ints(a->b, axes, n - rank));
    a->out[0] = ATEN2(tile, x, repeats);
}
