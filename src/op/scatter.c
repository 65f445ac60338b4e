/* SPDX-License-Identifier: Apache-2.0 */
/* ScatterElements, ScatterND and TensorScatter: elements written to places given by indices. */
#include "op/move.h"

#include <math.h>
#include <string.h>

#include "op/grad/gather_grad.h"

enum { AXIS, REDUCTION };
enum { ND_REDUCTION };
enum { TS_AXIS, TS_MODE };

typedef enum reduction { SET, ADD, MUL, MAX, MIN } reduction;

static oct_status read_reduction(const oct_node *n, const char *s, reduction *out)
{
    static const char *const words[] = {"none", "add", "mul", "max", "min"};

    for (size_t i = 0; i < OCT_COUNT(words); i++)
        if (strcmp(words[i], s) == 0) {
            *out = (reduction)i;
            return OCT_OK;
        }
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "reduction '%.20s' is not known", s);
}

static double combine_f64(reduction r, double a, double b)
{
    switch (r) {
    case ADD:
        return a + b;
    case MUL:
        return a * b;
    case MAX:
        return a > b || a != a ? a : b;
    case MIN:
        return a < b || a != a ? a : b;
    case SET:
        break;
    }
    return b;
}

/* Unsigned arithmetic wraps, which is what narrow integers do too once stored. */
static int64_t combine_i64(reduction r, bool is_signed, int64_t a, int64_t b)
{
    const bool less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;

    switch (r) {
    case ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case MAX:
        return less ? b : a;
    case MIN:
        return less ? a : b;
    case SET:
        break;
    }
    return b;
}

/* n elements of src, from src_at on, into dst. Doubles hold every float type exactly enough. */
static void put(oct_dtype t, reduction r, const void *src, int64_t src_at, void *dst,
                int64_t dst_at, int64_t n)
{
    if (r == SET) {
        oct_move_copy(t, src, src_at, dst, dst_at, n);
        return;
    }
    if (r == ADD && t == OCT_DTYPE_F32) { /* gradients of Gather: many, and the same sums */
        for (int64_t i = 0; i < n; i++)
            ((float *)dst)[dst_at + i] += ((const float *)src)[src_at + i];
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (oct_dtype_is_float(t)) {
            double a, b;

            oct_load_f64(t, dst, dst_at + i, 1, &a);
            oct_load_f64(t, src, src_at + i, 1, &b);
            a = combine_f64(r, a, b);
            oct_store_f64(t, dst, dst_at + i, 1, &a);
        } else {
            int64_t a, b;

            oct_load_i64(t, dst, dst_at + i, 1, &a);
            oct_load_i64(t, src, src_at + i, 1, &b);
            a = combine_i64(r, oct_dtype_get(t)->kind == OCT_DKIND_INT, a, b);
            oct_store_i64(t, dst, dst_at + i, 1, &a);
        }
    }
}

static void copy_data(const oct_args *a)
{
    if (a->out[0]->data != a->in[0]->data && a->in[0]->size)
        memcpy(a->out[0]->data, a->in[0]->data, a->in[0]->size);
}

/* What all three check: three operands, the result like the first, updates of its type. */
static oct_status common_shape(const oct_infer *q, const char *reduce, int i_updates)
{
    const oct_type *x, *u;
    reduction r = SET;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, i_updates, &u));
    OCT_TRY(oct_infer_movable(q, 0));
    OCT_TRY(read_reduction(q->node, reduce, &r));
    q->out[0] = *x;
    if (x->dtype != u->dtype && x->dtype != OCT_DTYPE_NONE && u->dtype != OCT_DTYPE_NONE)
        return oct_infer_fail(q, OCT_ERR_TYPE, "data is %s, updates are %s",
                              oct_dtype_name(x->dtype), oct_dtype_name(u->dtype));
    if (r != SET && x->dtype != OCT_DTYPE_NONE)
        return oct_infer_check(q, 0, OCT_SET_NUMERIC | OCT_SET_BOOL);
    return OCT_OK;
}

static oct_status same_dim(const oct_infer *q, const oct_type *a, int32_t da, const oct_type *b,
                           int32_t db)
{
    if (a->dim[da] < 0 || b->dim[db] < 0 || a->dim[da] == b->dim[db]) return OCT_OK;
    return oct_infer_fail(q, OCT_ERR_SHAPE, "updates do not fit: dim %d is %lld, not %lld", (int)da,
                          (long long)a->dim[da], (long long)b->dim[db]);
}

static oct_status elements_shape_as(const oct_infer *q, const char *reduce)
{
    const oct_type *x, *ix, *u;
    int32_t axis;

    OCT_TRY(common_shape(q, reduce, 2));
    OCT_TRY(oct_infer_need(q, 1, &ix));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_INT));
    x = q->in[0];
    u = q->in[2];
    if (x->rank < 0 || ix->rank < 0 || u->rank < 0) return OCT_OK;
    OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), x->rank, &axis));
    if (x->rank != ix->rank || x->rank != u->rank)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "operands have ranks %d, %d and %d", (int)x->rank,
                              (int)ix->rank, (int)u->rank);
    for (int32_t d = 0; d < x->rank; d++) {
        OCT_TRY(same_dim(q, u, d, ix, d));
        if (d != axis && x->dim[d] >= 0 && ix->dim[d] > x->dim[d])
            return oct_infer_fail(q, OCT_ERR_SHAPE, "dim %d: %lld indices for %lld elements",
                                  (int)d, (long long)ix->dim[d], (long long)x->dim[d]);
    }
    return OCT_OK;
}

static oct_status elements_shape(const oct_infer *q)
{
    return elements_shape_as(q, q->node->attr[REDUCTION].s);
}

static oct_status scatter_shape(const oct_infer *q)
{
    return elements_shape_as(q, "none");
}

static oct_status elements_run(const oct_args *a, const char *reduce)
{
    const oct_type *x = &a->in[0]->type, *ix = &a->in[1]->type;
    int64_t stride[OCT_MAX_RANK];
    const int64_t *index;
    int32_t axis;
    reduction r = SET;

    OCT_TRY(read_reduction(a->node, reduce, &r));
    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), x->rank, &axis));
    OCT_TRY(oct_read_indices(a, a->in[1], x->dim[axis], &index));
    oct_strides(x, stride);
    copy_data(a);
    for (int64_t i = 0, n = oct_type_len(ix); i < n; i++) {
        int64_t rest = i, to = index[i] * stride[axis];

        for (int32_t d = x->rank - 1; d >= 0; d--) {
            if (d != axis) to += rest % ix->dim[d] * stride[d];
            rest /= ix->dim[d];
        }
        put(x->dtype, r, a->in[2]->data, i, a->out[0]->data, to, 1);
    }
    return OCT_OK;
}

static oct_status elements_ref(const oct_args *a)
{
    return elements_run(a, a->node->attr[REDUCTION].s);
}

static oct_status scatter_ref(const oct_args *a)
{
    return elements_run(a, "none");
}

static oct_status nd_shape(const oct_infer *q)
{
    const oct_type *x, *ix, *u;

    OCT_TRY(common_shape(q, q->node->attr[ND_REDUCTION].s, 2));
    OCT_TRY(oct_infer_need(q, 1, &ix));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_INT));
    x = q->in[0];
    u = q->in[2];
    if (x->rank < 0 || ix->rank < 0 || u->rank < 0) return OCT_OK;
    if (ix->rank < 1) return oct_infer_fail(q, OCT_ERR_SHAPE, "indices are a scalar");
    const int64_t k = ix->dim[ix->rank - 1];
    if (k < 0) return OCT_OK;
    if (k > x->rank || u->rank != ix->rank - 1 + x->rank - k)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "tuples of %lld, updates of rank %d, data of %d",
                              (long long)k, (int)u->rank, (int)x->rank);
    for (int32_t d = 0; d < u->rank; d++) {
        if (d < ix->rank - 1)
            OCT_TRY(same_dim(q, u, d, ix, d));
        else
            OCT_TRY(same_dim(q, u, d, x, d - (ix->rank - 1) + (int32_t)k));
    }
    return OCT_OK;
}

static oct_status nd_ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type, *ix = &a->in[1]->type;
    const int32_t k = (int32_t)ix->dim[ix->rank - 1];
    const int64_t n = oct_type_span(ix, 0, ix->rank - 1), piece = oct_type_span(x, k, x->rank);
    int64_t stride[OCT_MAX_RANK];
    reduction r = SET;

    OCT_TRY(read_reduction(a->node, a->node->attr[ND_REDUCTION].s, &r));
    oct_strides(x, stride);
    copy_data(a);
    for (int64_t i = 0; i < n; i++) {
        int64_t to = 0;

        for (int32_t d = 0; d < k; d++) {
            int64_t v;

            oct_load_i64(ix->dtype, a->in[1]->data, i * k + d, 1, &v);
            if (v < -x->dim[d] || v >= x->dim[d])
                return oct_node_fail(a->node, OCT_ERR_SHAPE, "index %lld is outside [-%lld, %lld)",
                                     (long long)v, (long long)x->dim[d], (long long)x->dim[d]);
            to += (v < 0 ? v + x->dim[d] : v) * stride[d];
        }
        put(x->dtype, r, a->in[2]->data, i * piece, a->out[0]->data, to, piece);
    }
    return OCT_OK;
}

static oct_status tensor_scatter_shape(const oct_infer *q)
{
    const char *mode = q->node->attr[TS_MODE].s;
    const oct_type *w = oct_infer_in(q, 2);
    int32_t axis;

    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "mode '%.20s' is not known", mode);
    OCT_TRY(common_shape(q, "none", 1));
    OCT_TRY(oct_infer_check(q, 2, OCT_SET_INT));
    const oct_type *x = q->in[0], *u = q->in[1];
    if (x->rank < 0 || u->rank < 0) return OCT_OK;
    OCT_TRY(oct_axis(q->node, oct_int(q->node, TS_AXIS), x->rank, &axis));
    if (axis == 0 || x->rank != u->rank)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "axis %d, ranks %d and %d", (int)axis, (int)x->rank,
                              (int)u->rank);
    for (int32_t d = 0; d < x->rank; d++)
        if (d != axis) OCT_TRY(same_dim(q, u, d, x, d));
    if (x->dim[axis] >= 0 && u->dim[axis] > x->dim[axis])
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the update is longer than the cache");
    if (w && w->rank >= 0 &&
        (w->rank != 1 || (w->dim[0] >= 0 && x->dim[0] >= 0 && w->dim[0] != x->dim[0])))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "write_indices must hold one entry per batch");
    return OCT_OK;
}

static oct_status tensor_scatter_ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type, *u = &a->in[1]->type;
    const bool circular = strcmp(a->node->attr[TS_MODE].s, "circular") == 0;
    const oct_tensor *where = oct_args_in(a, 2);
    int32_t axis;

    OCT_TRY(oct_axis(a->node, oct_int(a->node, TS_AXIS), x->rank, &axis));
    const int64_t outer = oct_type_span(x, 0, axis), inner = oct_type_span(x, axis + 1, x->rank);
    const int64_t len = x->dim[axis], n = u->dim[axis];
    copy_data(a);
    for (int64_t o = 0; o < outer; o++) {
        const int64_t batch = o / OCT_MAX(outer / x->dim[0], 1);
        const int64_t at = where ? oct_tensor_get_i64(where, batch) : 0;

        if (at < 0 || (!circular && at > len - n) || at > INT64_MAX - n)
            return oct_node_fail(a->node, OCT_ERR_SHAPE, "write index %lld for a cache of %lld",
                                 (long long)at, (long long)len);
        for (int64_t i = 0; i < n; i++)
            oct_move_copy(x->dtype, a->in[1]->data, (o * n + i) * inner, a->out[0]->data,
                          (o * len + (at + i) % len) * inner, inner);
    }
    return OCT_OK;
}

static const oct_attr_def scatter_attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = 0}},
    {0},
};
static const oct_attr_def elements_attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = 0}},
    [REDUCTION] = {"reduction", OCT_ATTR_STRING, .def = {.s = "none"}, .n_def = 4},
    {0},
};
static const oct_attr_def nd_attrs[] = {
    [ND_REDUCTION] = {"reduction", OCT_ATTR_STRING, .def = {.s = "none"}, .n_def = 4},
    {0},
};
static const oct_attr_def tensor_scatter_attrs[] = {
    [TS_AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = -2}},
    [TS_MODE] = {"mode", OCT_ATTR_STRING, .def = {.s = "linear"}, .n_def = 6},
    {0},
};

const oct_op oct_op_scatter = {
    .name = "Scatter",
    .since = 9,
    .min_in = 3,
    .max_in = 3,
    .attrs = scatter_attrs,
    .shape = scatter_shape,
    .ref = scatter_ref,
    .grad = oct_grad_scatter,
};

const oct_op oct_op_scatter_elements = {
    .name = "ScatterElements",
    .since = 11,
    .min_in = 3,
    .max_in = 3,
    .attrs = elements_attrs,
    .shape = elements_shape,
    .ref = elements_ref,
    .grad = oct_grad_scatter,
};

const oct_op oct_op_scatter_nd = {
    .name = "ScatterND",
    .since = 11,
    .min_in = 3,
    .max_in = 3,
    .attrs = nd_attrs,
    .shape = nd_shape,
    .ref = nd_ref,
    .grad = oct_grad_scatter_nd,
};

const oct_op oct_op_tensor_scatter = {
    .name = "TensorScatter",
    .since = 24,
    .min_in = 2,
    .max_in = 3,
    .attrs = tensor_scatter_attrs,
    .shape = tensor_scatter_shape,
    .ref = tensor_scatter_ref,
};
