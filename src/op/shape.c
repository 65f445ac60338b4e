/* SPDX-License-Identifier: Apache-2.0 */
/* What several rows share: shape functions, broadcasting, axes, small integer operands. */
#include "op/op.h"

oct_status oct_infer_need(const oct_infer *q, int i, const oct_type **out)
{
    if (i >= q->node->n_in || !q->in[i])
        return oct_infer_fail(q, OCT_ERR_FORMAT, "operand %d is missing", i);
    *out = q->in[i];
    return OCT_OK;
}

oct_status oct_infer_check(const oct_infer *q, int i, unsigned set)
{
    const oct_type *t = oct_infer_in(q, i);

    if (!t || t->dtype == OCT_DTYPE_NONE) return OCT_OK;
    if ((unsigned)t->dtype < 32 && (set >> t->dtype & 1u)) return OCT_OK;
    if (oct_dtype_get(t->dtype)->kind == OCT_DKIND_OTHER) /* valid, perhaps */
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "octet does not compute with %s",
                              oct_dtype_name(t->dtype));
    return oct_infer_fail(q, OCT_ERR_TYPE, "operand %d cannot be %s", i, oct_dtype_name(t->dtype));
}

oct_status oct_shape_same(const oct_infer *q)
{
    const oct_type *x = NULL;

    OCT_TRY(oct_infer_need(q, 0, &x));
    q->out[0] = *x;
    return OCT_OK;
}

static bool broadcast_dim(int64_t a, int64_t b, int64_t *out)
{
    if (a == b || b == 1)
        *out = a;
    else if (a == 1)
        *out = b;
    else if (a < 0) /* b is not 1: a must be 1 or b */
        *out = b;
    else if (b < 0)
        *out = a;
    else
        return false;
    return true;
}

oct_status oct_broadcast(const oct_node *n, const oct_type *a, const oct_type *b, oct_type *out)
{
    char ta[OCT_TYPE_TEXT_SIZE], tb[OCT_TYPE_TEXT_SIZE];
    int64_t dim[OCT_MAX_RANK] = {0};
    const int32_t rank = OCT_MAX(a->rank, b->rank);

    if (a->rank < 0 || b->rank < 0) {
        out->rank = -1;
        return OCT_OK;
    }
    for (int32_t i = 0; i < rank; i++) {
        const int32_t ia = i - (rank - a->rank), ib = i - (rank - b->rank);
        const int64_t da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];

        if (!broadcast_dim(da, db, &dim[i]))
            return oct_node_fail(n, OCT_ERR_SHAPE, "%s and %s do not broadcast",
                                 oct_type_text(a, ta), oct_type_text(b, tb));
    }
    out->rank = rank;
    for (int32_t i = 0; i < rank; i++)
        out->dim[i] = dim[i];
    return OCT_OK;
}

/* All operands broadcast into *out, which gets the element type they share. */
static oct_status broadcast_all(const oct_infer *q, oct_type *out)
{
    const oct_type *x = NULL;

    OCT_TRY(oct_infer_need(q, 0, &x));
    *out = *x;
    for (int i = 1; i < q->node->n_in; i++) {
        OCT_TRY(oct_infer_need(q, i, &x));
        if (out->dtype == OCT_DTYPE_NONE) out->dtype = x->dtype;
        if (x->dtype != out->dtype && x->dtype != OCT_DTYPE_NONE)
            return oct_infer_fail(q, OCT_ERR_TYPE, "operand %d is %s, operand 0 %s", i,
                                  oct_dtype_name(x->dtype), oct_dtype_name(out->dtype));
        OCT_TRY(oct_broadcast(q->node, out, x, out));
    }
    return OCT_OK;
}

oct_status oct_shape_broadcast(const oct_infer *q)
{
    return broadcast_all(q, &q->out[0]);
}

oct_status oct_shape_compare(const oct_infer *q)
{
    OCT_TRY(broadcast_all(q, &q->out[0]));
    q->out[0].dtype = OCT_DTYPE_BOOL;
    return OCT_OK;
}

oct_status oct_axis(const oct_node *n, int64_t axis, int32_t rank, int32_t *out)
{
    if (axis < -(int64_t)rank || axis >= rank)
        return oct_node_fail(n, OCT_ERR_SHAPE, "axis %lld is outside a tensor of rank %d",
                             (long long)axis, rank);
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return OCT_OK;
}

oct_status oct_dtype_attr(const oct_node *n, int64_t v, oct_dtype *out)
{
    if (v < 1 || v > OCT_DTYPE_I2 || oct_dtype_get((oct_dtype)v)->kind == OCT_DKIND_OTHER)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "cannot make elements of type %s (%lld)",
                             v < 1 || v > OCT_DTYPE_I2 ? "?" : oct_dtype_name((oct_dtype)v),
                             (long long)v);
    *out = (oct_dtype)v;
    return OCT_OK;
}

oct_status oct_type_of_dims(const oct_node *n, oct_dtype dtype, const int64_t *dim, int64_t rank,
                            oct_type *out)
{
    oct_type t;
    size_t size;

    if (rank > OCT_MAX_RANK)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "rank %lld is above %d", (long long)rank,
                             OCT_MAX_RANK);
    for (int64_t i = 0; i < rank; i++)
        if (dim[i] < 0)
            return oct_node_fail(n, OCT_ERR_SHAPE, "dimension %lld is %lld", (long long)i,
                                 (long long)dim[i]);
    t = oct_type_make(dtype, (int32_t)rank, dim);
    if (!oct_type_bytes(&t, &size))
        return oct_node_fail(n, OCT_ERR_SHAPE, "the shape asked for is too large");
    *out = t;
    return OCT_OK;
}

oct_status oct_infer_ints(const oct_infer *q, int i, int64_t *out, int max, int *n)
{
    const oct_tensor *t = oct_infer_data(q, i);
    int64_t len;

    *n = -1;
    if (!t) return OCT_OK;
    if (!oct_dtype_is_int(t->type.dtype))
        return oct_infer_fail(q, OCT_ERR_TYPE, "operand %d is %s, expected integers", i,
                              oct_dtype_name(t->type.dtype));
    len = oct_tensor_len(t);
    if (len < 0 || len > max)
        return oct_infer_fail(q, OCT_ERR_SHAPE,
                              "operand %d has %lld elements, at most %d make sense", i,
                              (long long)len, max);
    oct_load_i64(t->type.dtype, t->data, 0, len, out);
    *n = (int)len;
    return OCT_OK;
}
