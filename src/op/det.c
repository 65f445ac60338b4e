/* SPDX-License-Identifier: Apache-2.0 */
/* Det: determinants of square matrices, by elimination. */
#include <math.h>
#include <string.h>

#include "op/work.h"

static oct_status shape(const oct_infer *q)
{
    const oct_type *x;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    q->out[0] = oct_type_unknown(x->dtype);
    if (x->rank < 0) return OCT_OK;
    if (x->rank < 2)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "rank is %d, expected 2 or more", x->rank);
    if (x->dim[x->rank - 1] >= 0 && x->dim[x->rank - 2] >= 0 &&
        x->dim[x->rank - 1] != x->dim[x->rank - 2])
        return oct_infer_fail(q, OCT_ERR_SHAPE, "matrices are not square");
    q->out[0] = oct_type_make(x->dtype, x->rank - 2, x->dim);
    return OCT_OK;
}

/* Destroys m. */
static double det(double *m, int64_t n)
{
    double d = 1;

    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;

        for (int64_t i = k + 1; i < n; i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k])) pivot = i;
        if (m[pivot * n + k] == 0) return 0;
        for (int64_t j = k; j < n && pivot != k; j++) {
            const double t = m[k * n + j];

            m[k * n + j] = m[pivot * n + j];
            m[pivot * n + j] = t;
        }
        d *= pivot != k ? -m[k * n + k] : m[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            const double f = m[i * n + k] / m[k * n + k];

            for (int64_t j = k + 1; j < n; j++)
                m[i * n + j] -= f * m[k * n + j];
        }
    }
    return d;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *t = &a->in[0]->type;
    oct_tensor *y = a->out[0];
    const int64_t n = t->dim[t->rank - 1], len = oct_tensor_len(y);
    double *m;

    if (len == 0) return OCT_OK; /* n * n may be anything then */
    m = oct_args_scratch(a, (size_t)OCT_MAX(n * n, 1), sizeof(*m));
    if (!m) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < len; i++) {
        double d;

        oct_load_f64(t->dtype, a->in[0]->data, i * n * n, n * n, m);
        d = det(m, n);
        oct_store_f64(y->type.dtype, y->data, i, 1, &d);
    }
    return OCT_OK;
}

const oct_op oct_op_det = {
    .name = "Det",
    .since = 11,
    .min_in = 1,
    .max_in = 1,
    .shape = shape,
    .ref = ref,
};
