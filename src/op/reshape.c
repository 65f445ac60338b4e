/* SPDX-License-Identifier: Apache-2.0 */
/* Reshape, Squeeze, Unsqueeze and Flatten: the same elements under another shape. */
#include "op/channels.h"
#include "op/grad/rules.h"
#include "op/move.h"

#include <string.h>

enum { ALLOWZERO };
enum { AXIS };

/* Views share their bytes where the caller can; this is for those that cannot. */
static oct_status ref(const oct_args *a)
{
    if (oct_type_len(&a->in[0]->type) != oct_type_len(&a->out[0]->type) ||
        a->in[0]->size != a->out[0]->size)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "%lld elements do not fill the result's %lld",
                             (long long)oct_type_len(&a->in[0]->type),
                             (long long)oct_type_len(&a->out[0]->type));
    if (a->out[0]->data != a->in[0]->data && a->in[0]->size)
        memcpy(a->out[0]->data, a->in[0]->data, a->in[0]->size);
    return OCT_OK;
}

/* Fills the -1 in y->dim[open] from the count of elements, if that is known. */
static oct_status solve_open(const oct_infer *q, const oct_type *x, oct_type *y, int open,
                             const bool *copied)
{
    int64_t have = 1, want = 1;

    for (int32_t d = 0; d < x->rank; d++) {
        if (x->dim[d] < 0 && copied[d]) continue; /* the same unknown on both sides */
        if (x->dim[d] < 0) return OCT_OK;
        if (!oct_mul_i64(have, x->dim[d], &have))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "the operand has too many elements");
    }
    for (int32_t d = 0; d < y->rank; d++) {
        if (d == open || (y->dim[d] < 0 && copied[d])) continue;
        if (!oct_mul_i64(want, y->dim[d], &want))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "the shape has too many elements");
    }
    if (want == 0 ? have != 0 : have % want != 0)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "%lld elements cannot be divided into %lld",
                              (long long)have, (long long)want);
    y->dim[open] = want ? have / want : 0;
    return OCT_OK;
}

static oct_status check_count(const oct_infer *q, const oct_type *x, const oct_type *y)
{
    if (!oct_type_is_static(x) || !oct_type_is_static(y) || oct_type_len(x) == oct_type_len(y))
        return OCT_OK;
    char from[OCT_TYPE_TEXT_SIZE], to[OCT_TYPE_TEXT_SIZE];
    return oct_infer_fail(q, OCT_ERR_SHAPE, "%s cannot become %s", oct_type_text(x, from),
                          oct_type_text(y, to));
}

static oct_status reshape_shape(const oct_infer *q)
{
    bool copied[OCT_MAX_RANK] = {false};
    const oct_type *x, *s;
    int n, open = -1;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &s));
    oct_type y = oct_type_unknown(x->dtype);
    OCT_TRY(oct_infer_ints(q, 1, y.dim, OCT_MAX_RANK, &n));
    if (n < 0) {
        if (s->rank == 1 && s->dim[0] >= 0 && s->dim[0] <= OCT_MAX_RANK)
            for (y.rank = 0; y.rank < s->dim[0]; y.rank++)
                y.dim[y.rank] = -1;
        q->out[0] = y;
        return OCT_OK;
    }
    y.rank = n;
    for (int d = 0; d < n; d++) {
        if (y.dim[d] < -1)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "dim %d of the shape is %lld", d,
                                  (long long)y.dim[d]);
        if (y.dim[d] == -1) {
            if (open >= 0) return oct_infer_fail(q, OCT_ERR_SHAPE, "the shape has two -1");
            open = d;
        }
        if (y.dim[d] == 0 && !oct_int(q->node, ALLOWZERO)) {
            if (x->rank >= 0 && d >= x->rank)
                return oct_infer_fail(q, OCT_ERR_SHAPE, "0 for dim %d copies none of rank %d", d,
                                      (int)x->rank);
            y.dim[d] = x->rank >= 0 ? x->dim[d] : -1;
            copied[d] = true;
        }
    }
    if (open >= 0 && x->rank >= 0) OCT_TRY(solve_open(q, x, &y, open, copied));
    OCT_TRY(check_count(q, x, &y));
    q->out[0] = y;
    return OCT_OK;
}

/* Axes of a result or operand of this rank, as flags. */
static oct_status mark_axes(const oct_infer *q, const int64_t *axes, int n, int32_t rank,
                            bool marked[OCT_MAX_RANK])
{
    for (int32_t d = 0; d < OCT_MAX_RANK; d++)
        marked[d] = false;
    for (int i = 0; i < n; i++) {
        int32_t d;

        OCT_TRY(oct_axis(q->node, axes[i], rank, &d));
        if (marked[d]) return oct_infer_fail(q, OCT_ERR_SHAPE, "axis %d is given twice", (int)d);
        marked[d] = true;
    }
    return OCT_OK;
}

static oct_status squeeze_shape(const oct_infer *q)
{
    int64_t axes[OCT_MAX_RANK];
    bool drop[OCT_MAX_RANK];
    const oct_type *x;
    int n = -1;

    OCT_TRY(oct_infer_need(q, 0, &x));
    if (oct_infer_in(q, 1)) OCT_TRY(oct_infer_ints(q, 1, axes, OCT_MAX_RANK, &n));
    oct_type y = oct_type_unknown(x->dtype);
    q->out[0] = y;
    if (x->rank < 0 || (oct_infer_in(q, 1) && n < 0)) return OCT_OK;
    OCT_TRY(mark_axes(q, axes, OCT_MAX(n, 0), x->rank, drop));
    for (int32_t d = 0; d < x->rank && n < 0; d++) {
        if (x->dim[d] < 0) return OCT_OK; /* may or may not be 1 */
        drop[d] = x->dim[d] == 1;
    }
    y.rank = 0;
    for (int32_t d = 0; d < x->rank; d++) {
        if (!drop[d])
            y.dim[y.rank++] = x->dim[d];
        else if (x->dim[d] >= 0 && x->dim[d] != 1)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "dim %d is %lld, not 1", (int)d,
                                  (long long)x->dim[d]);
    }
    q->out[0] = y;
    return OCT_OK;
}

static oct_status unsqueeze_shape(const oct_infer *q)
{
    int64_t axes[OCT_MAX_RANK];
    bool added[OCT_MAX_RANK];
    const oct_type *x;
    int n;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_ints(q, 1, axes, OCT_MAX_RANK, &n));
    oct_type y = oct_type_unknown(x->dtype);
    q->out[0] = y;
    if (x->rank < 0 || n < 0) return OCT_OK;
    if (x->rank + n > OCT_MAX_RANK)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "rank %d is above %d", (int)x->rank + n,
                              OCT_MAX_RANK);
    y.rank = x->rank + n;
    OCT_TRY(mark_axes(q, axes, n, y.rank, added));
    for (int32_t d = 0, from = 0; d < y.rank; d++)
        y.dim[d] = added[d] ? 1 : x->dim[from++];
    q->out[0] = y;
    return OCT_OK;
}

static oct_status product(const oct_infer *q, const oct_type *x, int32_t from, int32_t to,
                          int64_t *out)
{
    int64_t n = 1;

    *out = -1;
    for (int32_t d = from; d < to; d++) {
        if (x->dim[d] < 0) return OCT_OK;
        if (!oct_mul_i64(n, x->dim[d], &n))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "the operand has too many elements");
    }
    *out = n;
    return OCT_OK;
}

static oct_status flatten_shape(const oct_infer *q)
{
    int64_t axis = oct_int(q->node, AXIS);
    const oct_type *x;

    OCT_TRY(oct_infer_need(q, 0, &x));
    oct_type y = oct_type_make(x->dtype, 2, (const int64_t[]){-1, -1});
    if (x->rank >= 0) {
        if (axis < -x->rank || axis > x->rank)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "axis %lld for rank %d", (long long)axis,
                                  (int)x->rank);
        if (axis < 0) axis += x->rank;
        OCT_TRY(product(q, x, 0, (int32_t)axis, &y.dim[0]));
        OCT_TRY(product(q, x, (int32_t)axis, x->rank, &y.dim[1]));
    }
    q->out[0] = y;
    return OCT_OK;
}

static const oct_attr_def reshape_attrs[] = {
    [ALLOWZERO] = {"allowzero", OCT_ATTR_INT, .def = {.i = 0}},
    {0},
};
static const oct_attr_def flatten_attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = 1}},
    {0},
};

const oct_op oct_op_reshape = {
    .name = "Reshape",
    .since = 7,
    .min_in = 2,
    .max_in = 2,
    .attrs = reshape_attrs,
    .shape = reshape_shape,
    .ref = ref,
    .grad = oct_grad_reshaped,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flags = OCT_OP_VIEW,
    .moves = &oct_moves_reshape,
};

const oct_op oct_op_squeeze = {
    .name = "Squeeze",
    .since = 13,
    .min_in = 1,
    .max_in = 2,
    .shape = squeeze_shape,
    .ref = ref,
    .grad = oct_grad_reshaped,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flags = OCT_OP_VIEW,
    .moves = &oct_moves_reshape,
};

const oct_op oct_op_unsqueeze = {
    .name = "Unsqueeze",
    .since = 13,
    .min_in = 2,
    .max_in = 2,
    .shape = unsqueeze_shape,
    .ref = ref,
    .grad = oct_grad_reshaped,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flags = OCT_OP_VIEW,
    .moves = &oct_moves_reshape,
};

const oct_op oct_op_flatten = {
    .name = "Flatten",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = flatten_attrs,
    .shape = flatten_shape,
    .ref = ref,
    .grad = oct_grad_reshaped,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flags = OCT_OP_VIEW,
    .moves = &oct_moves_reshape,
};
