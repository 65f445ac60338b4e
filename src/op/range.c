/* SPDX-License-Identifier: Apache-2.0 */
/* Range: start, start + delta, ... up to but not including limit. */
#include "op/move.h"

#include <math.h>

#define MAX_LEN ((int64_t)1 << 40) /* beyond any memory; keeps the arithmetic exact */

static oct_status count_floats(const oct_node *n, const oct_tensor *const *t, int64_t *out)
{
    const double start = oct_tensor_get_f64(t[0], 0), limit = oct_tensor_get_f64(t[1], 0);
    const double delta = oct_tensor_get_f64(t[2], 0), len = ceil((limit - start) / delta);

    if (!(fabs(len) < (double)MAX_LEN))
        return oct_node_fail(n, OCT_ERR_SHAPE, "from %g to %g by %g has no length", start, limit,
                             delta);
    *out = len > 0 ? (int64_t)len : 0;
    return OCT_OK;
}

static oct_status count_ints(const oct_node *n, const oct_tensor *const *t, int64_t *out)
{
    const int64_t start = oct_tensor_get_i64(t[0], 0), limit = oct_tensor_get_i64(t[1], 0);
    const int64_t delta = oct_tensor_get_i64(t[2], 0);

    if (delta == 0) return oct_node_fail(n, OCT_ERR_SHAPE, "delta is 0");
    if (delta > 0 ? limit <= start : limit >= start) {
        *out = 0;
        return OCT_OK;
    }
    /* Unsigned differences cannot overflow. */
    const uint64_t way =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    const uint64_t step = delta > 0 ? (uint64_t)delta : (uint64_t)0 - (uint64_t)delta;
    const uint64_t len = (way - 1) / step + 1;
    if (len >= (uint64_t)MAX_LEN)
        return oct_node_fail(n, OCT_ERR_SHAPE, "from %lld to %lld by %lld is too long",
                             (long long)start, (long long)limit, (long long)delta);
    *out = (int64_t)len;
    return OCT_OK;
}

static oct_status count(const oct_node *n, const oct_tensor *const *t, int64_t *out)
{
    for (int i = 0; i < 3; i++)
        if (oct_tensor_len(t[i]) != 1)
            return oct_node_fail(n, OCT_ERR_SHAPE, "operand %d is not a scalar", i);
    return oct_dtype_is_float(t[0]->type.dtype) ? count_floats(n, t, out) : count_ints(n, t, out);
}

static oct_status shape(const oct_infer *q)
{
    const oct_tensor *t[3];
    const oct_type *x;
    int64_t len = -1;

    for (int i = 2; i >= 0; i--) {
        OCT_TRY(oct_infer_need(q, i, &x));
        OCT_TRY(oct_infer_check(q, i, OCT_SET_NUMERIC));
        t[i] = oct_infer_data(q, i);
    }
    if (t[0] && t[1] && t[2]) OCT_TRY(count(q->node, t, &len));
    q->out[0] = oct_type_make(x->dtype, 1, &len);
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_tensor *t[3] = {a->in[0], a->in[1], a->in[2]};
    const oct_dtype type = a->out[0]->type.dtype;
    int64_t n;

    OCT_TRY(count(a->node, t, &n));
    OCT_TRY(oct_args_expect(a, 0, 1, &n));
    for (int64_t i = 0; i < n; i++) {
        if (oct_dtype_is_float(type)) {
            const double v = oct_tensor_get_f64(t[0], 0) + (double)i * oct_tensor_get_f64(t[2], 0);
            oct_store_f64(type, a->out[0]->data, i, 1, &v);
        } else {
            const uint64_t step = (uint64_t)oct_tensor_get_i64(t[2], 0);
            const int64_t v = (int64_t)((uint64_t)oct_tensor_get_i64(t[0], 0) + (uint64_t)i * step);
            oct_store_i64(type, a->out[0]->data, i, 1, &v);
        }
    }
    return OCT_OK;
}

const oct_op oct_op_range = {
    .name = "Range",
    .since = 11,
    .min_in = 3,
    .max_in = 3,
    .shape = shape,
    .ref = ref,
};
