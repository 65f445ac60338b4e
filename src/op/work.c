/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of operands to the type a reference kernel computes in, and checks that kernels
 * share. */
#include "op/work.h"

#include <string.h>

oct_work oct_work_of(oct_dtype t)
{
    if (t == OCT_DTYPE_F64) return OCT_WORK_F64;
    return oct_dtype_is_float(t) ? OCT_WORK_F32 : OCT_WORK_I64;
}

oct_dtype oct_work_dtype(oct_work w)
{
    static const oct_dtype dtypes[] = {OCT_DTYPE_F32, OCT_DTYPE_F64, OCT_DTYPE_I64};

    return dtypes[w];
}

/* The bytes can be used as they are: u64 has the same sums and products as i64. */
static bool is_native(oct_work w, oct_dtype t)
{
    return t == oct_work_dtype(w) || (w == OCT_WORK_I64 && t == OCT_DTYPE_U64);
}

oct_status oct_work_in(const oct_args *a, int i, oct_work w, const void **out)
{
    const oct_tensor *t = oct_args_in(a, i);
    int64_t len;
    void *p;

    *out = NULL;
    if (!t) return OCT_OK;
    if (oct_dtype_get(t->type.dtype)->kind == OCT_DKIND_OTHER)
        return oct_node_fail(a->node, OCT_ERR_TYPE, "input %d has type %s, a number is needed", i,
                             oct_dtype_name(t->type.dtype));
    *out = t->data;
    if (is_native(w, t->type.dtype)) return OCT_OK;
    len = oct_tensor_len(t);
    p = oct_args_scratch(a, (size_t)OCT_MAX(len, 1), oct_dtype_size(oct_work_dtype(w)));
    if (!p) return OCT_ERR_MEMORY;
    if (w == OCT_WORK_F32) oct_load_f32(t->type.dtype, t->data, 0, len, p);
    if (w == OCT_WORK_F64) oct_load_f64(t->type.dtype, t->data, 0, len, p);
    if (w == OCT_WORK_I64) oct_load_i64(t->type.dtype, t->data, 0, len, p);
    *out = p;
    return OCT_OK;
}

oct_status oct_work_in_f32(const oct_args *a, int i, const float **out)
{
    const void *p;

    OCT_TRY(oct_work_in(a, i, OCT_WORK_F32, &p));
    *out = p;
    return OCT_OK;
}

oct_status oct_work_in_f64(const oct_args *a, int i, const double **out)
{
    const void *p;

    OCT_TRY(oct_work_in(a, i, OCT_WORK_F64, &p));
    *out = p;
    return OCT_OK;
}

oct_status oct_work_in_i64(const oct_args *a, int i, const int64_t **out)
{
    const void *p;

    OCT_TRY(oct_work_in(a, i, OCT_WORK_I64, &p));
    *out = p;
    return OCT_OK;
}

oct_status oct_work_out(const oct_args *a, int i, oct_work w, void **out)
{
    const oct_tensor *t = oct_args_out(a, i);

    *out = NULL;
    if (!t) return OCT_OK;
    if (oct_dtype_get(t->type.dtype)->kind == OCT_DKIND_OTHER)
        return oct_node_fail(a->node, OCT_ERR_TYPE, "output %d has type %s", i,
                             oct_dtype_name(t->type.dtype));
    *out = t->data;
    if (is_native(w, t->type.dtype)) return OCT_OK;
    *out = oct_args_scratch(a, (size_t)OCT_MAX(oct_tensor_len(t), 1),
                            oct_dtype_size(oct_work_dtype(w)));
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

void oct_work_done(const oct_args *a, int i, oct_work w, const void *from)
{
    oct_tensor *t = oct_args_out(a, i);
    int64_t len;

    if (!t || !from || from == t->data) return;
    len = oct_tensor_len(t);
    if (w == OCT_WORK_F32) oct_store_f32(t->type.dtype, t->data, 0, len, from);
    if (w == OCT_WORK_F64) oct_store_f64(t->type.dtype, t->data, 0, len, from);
    if (w == OCT_WORK_I64) oct_store_i64(t->type.dtype, t->data, 0, len, from);
}

oct_status oct_work_expand(const oct_args *a, int i, oct_work w, const oct_type *to,
                           const void **out)
{
    const oct_tensor *t = oct_args_in(a, i);
    const size_t size = oct_dtype_size(oct_work_dtype(w));
    const int64_t len = oct_type_len(to), zero[OCT_MAX_RANK] = {0};
    int64_t step[OCT_MAX_RANK], index[OCT_MAX_RANK] = {0}, dense = 1;
    char *p;

    OCT_TRY(oct_work_in(a, i, w, out));
    if (!t || oct_tensor_len(t) == len) return OCT_OK;
    for (int d = to->rank - 1, s = t->type.rank - 1; d >= 0; d--, s--) {
        const int64_t dim = s >= 0 ? t->type.dim[s] : 1;

        if (dim != 1 && dim != to->dim[d])
            return oct_node_fail(a->node, OCT_ERR_SHAPE, "input %d does not broadcast", i);
        step[d] = dim == 1 ? 0 : dense;
        dense *= dim;
    }
    if (t->type.rank > to->rank)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "input %d does not broadcast", i);
    if (!(p = oct_args_scratch(a, (size_t)OCT_MAX(len, 1), size))) return OCT_ERR_MEMORY;
    for (int64_t k = 0; k < len; k++, oct_next_index(to->rank, index, zero, to->dim)) {
        int64_t at = 0;

        for (int d = 0; d < to->rank; d++)
            at += index[d] * step[d];
        memcpy(p + (size_t)k * size, (const char *)*out + (size_t)at * size, size);
    }
    *out = p;
    return OCT_OK;
}

oct_status oct_args_infer(const oct_args *a, oct_infer *q)
{
    const oct_node *n = a->node;
    const size_t n_in = (size_t)n->n_in, n_out = (size_t)n->n_out;
    const oct_type **in = oct_args_scratch(a, n_in + 1, sizeof(*in));
    const oct_tensor **data = oct_args_scratch(a, n_in + 1, sizeof(*data));
    oct_type *out = oct_args_scratch(a, n_out + 1, sizeof(*out));

    if (!in || !data || !out) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n_in; i++) {
        data[i] = a->in[i];
        in[i] = a->in[i] ? &a->in[i]->type : NULL;
    }
    for (size_t i = 0; i < n_out; i++)
        out[i] = oct_type_unknown(OCT_DTYPE_NONE);
    *q = (oct_infer){.ctx = a->ctx, .node = n, .in = in, .data = data, .out = out};
    return OCT_OK;
}

/* Empty tensors may have any other dims: products of those must not overflow in kernels. */
static bool is_sane(const oct_tensor *t)
{
    int64_t n = 1;

    for (int d = 0; t && d < t->type.rank; d++)
        if (!oct_mul_i64(n, OCT_MAX(t->type.dim[d], 1), &n) || n > INT64_MAX >> 13) return false;
    return true;
}

oct_status oct_args_check(const oct_args *a)
{
    const oct_node *n = a->node;
    char want[OCT_TYPE_TEXT_SIZE], have[OCT_TYPE_TEXT_SIZE];
    oct_infer q;

    for (int32_t i = 0; i < n->n_in + n->n_out; i++)
        if (!is_sane(i < n->n_in ? a->in[i] : a->out[i - n->n_in]))
            return oct_node_fail(n, OCT_ERR_SHAPE, "an operand's dims are too large");
    OCT_TRY(oct_args_infer(a, &q));
    OCT_TRY(n->op->shape(&q));
    for (int32_t i = 0; i < n->n_out; i++) {
        if (!a->out[i] || oct_type_equal(&q.out[i], &a->out[i]->type)) continue;
        return oct_node_fail(n, OCT_ERR_SHAPE, "output %d is %s, declared as %s", (int)i,
                             oct_type_text(&q.out[i], want), oct_type_text(&a->out[i]->type, have));
    }
    return OCT_OK;
}
