/* SPDX-License-Identifier: Apache-2.0 */
/* Indexing with tensors, padding, and windows that slide over tensors. */
#include <string.h>

#include "torch/aten.h"

/* --- x[i, j], with tensors for some dimensions --- */

typedef struct indices {
    oct_value *at[OCT_MAX_RANK]; /* NULL: the whole dimension */
    int n, n_given, first, last;
} indices;

static bool read_indices(oct_aten *a, const oct_value *x, indices *q)
{
    int32_t n = 0;
    oct_value **all = oct_aten_tensors(a, "indices", &n);

    memset(q, 0, sizeof(*q));
    if (a->b->status || n > oct_aten_rank(a, x)) {
        oct_aten_fail(a, OCT_ERR_SHAPE, "more indices than dimensions");
        return false;
    }
    q->n = n;
    for (int i = 0; i < n; i++) {
        if (!(q->at[i] = all[i])) continue;
        if (q->n_given++ == 0) q->first = i;
        q->last = i;
    }
    if (!q->n_given) oct_aten_fail(a, OCT_ERR_FORMAT, "no index");
    return !a->b->status;
}

static oct_value *gather_axis(oct_aten *a, oct_value *x, oct_value *index, int64_t axis)
{
    oct_node *n = oct_aten_node(a, &oct_op_gather, (oct_value *[]){x, index}, 2, 1);

    oct_emit_int(a->b, n, "axis", axis);
    return oct_aten_done(a, n);
}

/* Indices of all given dimensions, broadcast and side by side: [.., n_given]. */
static oct_value *join_indices(oct_aten *a, const indices *q)
{
    oct_value *shape = NULL, *sum = NULL, *parts[OCT_MAX_RANK];
    int n = 0;

    for (int i = 0; i < q->n; i++)
        if (q->at[i]) sum = sum ? ATEN2(add, sum, q->at[i]) : q->at[i];
    shape = oct_aten_shape_of(a, sum);
    for (int i = 0; i < q->n; i++)
        if (q->at[i]) parts[n++] = oct_aten_unsqueeze(a, ATEN2(expand, q->at[i], shape), -1);
    return oct_aten_concat(a, parts, n, -1);
}

/* Given dimensions first, the others after them in order. */
static oct_value *given_first(oct_aten *a, oct_value *x, const indices *q)
{
    const int32_t rank = oct_aten_rank(a, x);
    int64_t perm[OCT_MAX_RANK];
    int n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < rank; i++)
            if ((i < q->n && q->at[i] != NULL) == (pass == 0)) perm[n++] = i;
    return q->last - q->first + 1 == q->n_given && q->first == 0
               ? x
               : oct_aten_transpose(a, x, perm, rank);
}

/* The dims of the indices go back to where the indexed dimensions were, if those are neighbours. */
static oct_value *put_back(oct_aten *a, oct_value *y, const indices *q, int32_t n_index)
{
    const int32_t rank = oct_aten_rank(a, y);
    int64_t perm[OCT_MAX_RANK];
    int n = 0;

    if (q->first == 0 || q->last - q->first + 1 != q->n_given) return y;
    for (int i = 0; i < q->first; i++)
        perm[n++] = n_index + i;
    for (int i = 0; i < n_index; i++)
        perm[n++] = i;
    for (int i = n_index + q->first; i < rank; i++)
        perm[n++] = i;
    return oct_aten_transpose(a, y, perm, rank);
}

void oct_aten_index(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self"), *joined, *first;
    indices q;

    if (!read_indices(a, x, &q)) return;
    first = q.at[q.first];
    if (q.n_given == 1 && first->type.dtype != OCT_DTYPE_BOOL) {
        a->out[0] = gather_axis(a, x, first, q.first);
        return;
    }
    if (q.n_given == 1 && q.first == 0) { /* a mask: as many elements as are true in it */
        a->out[0] = ATEN2(gather_nd, x, oct_aten_swap(a, ATEN1(non_zero, first), 0, 1));
        return;
    }
    for (int i = 0; i < q.n; i++)
        if (q.at[i] && q.at[i]->type.dtype == OCT_DTYPE_BOOL) {
            oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "a mask beside other indices");
            return;
        }
    joined = join_indices(a, &q);
    if (a->b->status) return;
    a->out[0] = put_back(a, ATEN2(gather_nd, given_first(a, x, &q), joined), &q,
                         oct_aten_rank(a, joined) - 1);
}

/* x[i, j] = values, for indices of the first dimensions. */
void oct_aten_index_put(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self"), *joined, *values, *shape;
    indices q;
    oct_node *n;

    if (!read_indices(a, x, &q)) return;
    if (q.n_given == 1 && q.first == 0 && q.at[0]->type.dtype == OCT_DTYPE_BOOL &&
        q.at[0]->type.rank == x->type.rank) {
        a->out[0] = ATEN3(where, q.at[0], oct_aten_tensor(a, "values"), x);
        return;
    }
    if (q.first != 0 || q.last + 1 != q.n_given || q.at[0]->type.dtype == OCT_DTYPE_BOOL) {
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "writing by indices that are not the first ones");
        return;
    }
    joined = join_indices(a, &q);
    shape = oct_aten_shape_of(a, ATEN2(gather_nd, x, joined));
    values = ATEN2(expand, oct_aten_cast(a, oct_aten_tensor(a, "values"), x->type.dtype), shape);
    n = oct_aten_node(a, &oct_op_scatter_nd, (oct_value *[]){x, joined, values}, 3, 1);
    if (oct_aten_bool(a, "accumulate", false)) oct_emit_str(a->b, n, "reduction", "add");
    a->out[0] = oct_aten_done(a, n);
}

/* --- padding --- */

/* torch lists pairs from the last axis on; Pad wants all starts, then all ends. */
static oct_value *pad_by(oct_aten *a, oct_value *x, const char *mode, oct_value *fill)
{
    const int32_t rank = oct_aten_rank(a, x);
    const oct_arg *arg = oct_aten_arg(a, "pad");
    int64_t pads[2 * OCT_MAX_RANK] = {0};
    oct_node *n;

    if (!arg) arg = oct_aten_arg(a, "padding");
    if (!arg || arg->kind != OCT_ARG_LIST || arg->n % 2 || arg->n > 2 * rank) {
        oct_aten_fail(a, OCT_ERR_FORMAT, "argument 'pad' is not a list of pairs");
        return NULL;
    }
    for (int32_t i = 0; i < arg->n; i++) {
        const int32_t axis = rank - 1 - i / 2;

        if (arg->list[i].kind != OCT_ARG_INT)
            oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "padding of symbolic size");
        pads[axis + (i % 2 ? rank : 0)] = arg->list[i].i;
    }
    n = oct_aten_node(a, &oct_op_pad,
                      (oct_value *[]){x, oct_ints(a->b, pads, 2 * (int64_t)rank), fill},
                      fill ? 3 : 2, 1);
    oct_emit_str(a->b, n, "mode", mode);
    return oct_aten_done(a, n);
}

void oct_aten_pad(oct_aten *a)
{
    static const char *const words[][2] = {{"constant", "constant"},
                                           {"reflect", "reflect"},
                                           {"replicate", "edge"},
                                           {"circular", "wrap"}};
    const char *mode = oct_aten_text(a, "mode", "constant");
    oct_value *x = oct_aten_tensor(a, "self"), *fill = NULL;

    if (a->b->status) return;
    if (strcmp(mode, "constant") == 0)
        fill = oct_aten_scalar(a, x->type.dtype, oct_aten_f64(a, "value", 0));
    for (size_t i = 0; i < OCT_COUNT(words); i++)
        if (strcmp(mode, words[i][0]) == 0) a->out[0] = pad_by(a, x, words[i][1], fill);
    if (!a->out[0]) oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "padding '%.40s'", mode);
}

void oct_aten_reflection_pad(oct_aten *a)
{
    a->out[0] = pad_by(a, oct_aten_tensor(a, "self"), "reflect", NULL);
}

void oct_aten_replication_pad(oct_aten *a)
{
    a->out[0] = pad_by(a, oct_aten_tensor(a, "self"), "edge", NULL);
}

/* --- sliding windows --- */

/* Positions k * dilation + i * stride of all windows: [n, size] as one list. */
static oct_value *window_index(oct_aten *a, int64_t n, int64_t step, int64_t size, int64_t dilation)
{
    const int64_t max = 1 << 22;
    int64_t *v;

    if (n < 1 || size < 1 || n > max / size) {
        oct_aten_fail(a, OCT_ERR_SHAPE, "the number of windows is not known, or too large");
        return NULL;
    }
    if (!(v = oct_arena_array(a->t->arena, (size_t)(n * size), sizeof(*v)))) return NULL;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < size; k++)
            v[i * size + k] = i * step + k * dilation;
    return oct_ints(a->b, v, n * size);
}

/* Windows of one dimension; their elements become the last dimension. */
void oct_aten_unfold(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self"), *index;
    const int32_t rank = oct_aten_rank(a, x);
    const int32_t axis = oct_aten_axis(a, oct_aten_int(a, "dimension", 0), rank);
    const int64_t size = oct_aten_int(a, "size", 1), step = oct_aten_int(a, "step", 1);
    const int64_t dim = oct_aten_dim(x, axis), n = step > 0 ? (dim - size) / step + 1 : 0;
    int64_t perm[OCT_MAX_RANK];

    if (rank + 1 > OCT_MAX_RANK || dim < size || step < 1)
        oct_aten_fail(a, OCT_ERR_SHAPE, "windows larger than the tensor");
    index = window_index(a, n, step, size, 1);
    x = gather_axis(a, x, oct_aten_reshape(a, index, (int64_t[]){n, size}, 2), axis);
    for (int32_t i = 0; i <= rank; i++)
        perm[i] = i <= axis ? i : i < rank ? i + 1 : axis + 1;
    a->out[0] = oct_aten_transpose(a, x, perm, rank + 1);
}

typedef struct columns {
    int64_t kernel[OCT_MAX_RANK], dilation[OCT_MAX_RANK], padding[OCT_MAX_RANK];
    int64_t stride[OCT_MAX_RANK];
} columns;

static void read_columns(oct_aten *a, columns *c)
{
    oct_aten_spatial(a, "kernel_size", 2, 1, c->kernel);
    oct_aten_spatial(a, "dilation", 2, 1, c->dilation);
    oct_aten_spatial(a, "padding", 2, 0, c->padding);
    oct_aten_spatial(a, "stride", 2, 1, c->stride);
}

/* All windows of a picture as columns: [N, C * kh * kw, windows]. */
void oct_aten_im2col(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self"), *index[2];
    int64_t n[2] = {0, 0}, pads[8] = {0};
    columns c;

    read_columns(a, &c);
    if (oct_aten_rank(a, x) != 4) oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "not 4 dimensions");
    for (int i = 0; i < 2 && !a->b->status; i++) {
        const int64_t dim = oct_aten_dim(x, 2 + i) + 2 * c.padding[i];

        pads[2 + i] = pads[6 + i] = c.padding[i];
        n[i] =
            c.stride[i] > 0 ? (dim - c.dilation[i] * (c.kernel[i] - 1) - 1) / c.stride[i] + 1 : 0;
        index[i] = window_index(a, n[i], c.stride[i], c.kernel[i], c.dilation[i]);
    }
    if (a->b->status) return;
    if (c.padding[0] || c.padding[1])
        x = ATEN3(pad, x, oct_ints(a->b, pads, 8), oct_aten_scalar(a, x->type.dtype, 0));
    x = gather_axis(a, gather_axis(a, x, index[0], 2), index[1], 3);
    if (a->b->status) return;
    const int64_t channels = oct_aten_dim(x, 1);
    const int64_t split[] = {-1, channels, n[0], c.kernel[0], n[1], c.kernel[1]};
    const int64_t joined[] = {-1, channels * c.kernel[0] * c.kernel[1], n[0] * n[1]};

    if (channels < 1) oct_aten_fail(a, OCT_ERR_SHAPE, "the number of channels is not known");
    x = oct_aten_transpose(a, oct_aten_reshape(a, x, split, 6), (int64_t[]){0, 1, 3, 5, 2, 4}, 6);
    a->out[0] = oct_aten_reshape(a, x, joined, 3);
}

void oct_aten_col2im(oct_aten *a)
{
    int64_t size[OCT_MAX_RANK];
    columns c;
    oct_node *n;

    read_columns(a, &c);
    oct_aten_spatial(a, "output_size", 2, 1, size);
    n = oct_aten_node(a, &oct_op_col2im,
                      (oct_value *[]){oct_aten_tensor(a, "self"), oct_ints(a->b, size, 2),
                                      oct_ints(a->b, c.kernel, 2)},
                      3, 1);
    const int64_t pads[] = {c.padding[0], c.padding[1], c.padding[0], c.padding[1]};

    oct_emit_ints(a->b, n, "dilations", c.dilation, 2);
    oct_emit_ints(a->b, n, "pads", pads, 4);
    oct_emit_ints(a->b, n, "strides", c.stride, 2);
    a->out[0] = oct_aten_done(a, n);
}

/* --- channels to pixels and back --- */

void oct_aten_pixel_shuffle(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self");
    oct_node *n = oct_aten_node(a, &oct_op_depth_to_space, &x, 1, 1);

    oct_emit_int(a->b, n, "blocksize", oct_aten_int(a, "upscale_factor", 1));
    oct_emit_str(a->b, n, "mode", "CRD");
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_pixel_unshuffle(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self");
    const int64_t r = oct_aten_int(a, "downscale_factor", 1);
    const int64_t c = oct_aten_dim(x, 1), h = oct_aten_dim(x, 2), w = oct_aten_dim(x, 3);

    if (oct_aten_rank(a, x) != 4 || r < 1 || r > 4096 || c < 1 || h < r || w < r) {
        oct_aten_fail(a, OCT_ERR_SHAPE, "its sizes are not known");
        return;
    }
    x = oct_aten_reshape(a, x, (int64_t[]){-1, c, h / r, r, w / r, r}, 6);
    x = oct_aten_transpose(a, x, (int64_t[]){0, 1, 3, 5, 2, 4}, 6);
    a->out[0] = oct_aten_reshape(a, x, (int64_t[]){-1, c * r * r, h / r, w / r}, 4);
}

/* Channels of groups interleaved. */
void oct_aten_channel_shuffle(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self");
    const int64_t groups = oct_aten_int(a, "groups", 1), c = oct_aten_dim(x, 1);
    const int64_t h = oct_aten_dim(x, 2), w = oct_aten_dim(x, 3);

    if (groups < 1 || c < groups || h < 1 || w < 1) {
        oct_aten_fail(a, OCT_ERR_SHAPE, "its sizes are not known");
        return;
    }
    x = oct_aten_reshape(a, x, (int64_t[]){-1, groups, c / groups, h, w}, 5);
    x = oct_aten_swap(a, x, 1, 2);
    a->out[0] = oct_aten_reshape(a, x, (int64_t[]){-1, c, h, w}, 4);
}
