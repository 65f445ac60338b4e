/* SPDX-License-Identifier: Apache-2.0 */
/* AffineGrid: where each output pixel looks, under an affine map of the unit square or cube. */
#include "op/grad/rules.h"
#include "op/work.h"

enum { ALIGN_CORNERS };
enum { THETA, SIZE };

static oct_status shape(const oct_infer *q)
{
    const oct_type *theta, *t;
    int64_t size[5] = {-1, -1, -1, -1, -1};
    int n;

    OCT_TRY(oct_infer_need(q, THETA, &theta));
    OCT_TRY(oct_infer_need(q, SIZE, &t));
    OCT_TRY(oct_infer_check(q, THETA, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_ints(q, SIZE, size, 5, &n));
    q->out[0] = oct_type_unknown(theta->dtype);
    if (n < 0 && t->rank == 1 && (t->dim[0] == 4 || t->dim[0] == 5)) n = (int)t->dim[0];
    if (n < 0) return OCT_OK;
    if (n != 4 && n != 5)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "size has %d numbers, 4 or 5 are needed", n);
    for (int d = 0; d < n && oct_infer_data(q, SIZE); d++)
        if (size[d] < 0 || size[d] > INT32_MAX)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "size[%d] is %lld", d, (long long)size[d]);
    for (int d = 0; d < 3 && theta->rank >= 0; d++) {
        const int64_t want[] = {size[0], n - 2, n - 1};

        if (theta->rank != 3 || (theta->dim[d] >= 0 && want[d] >= 0 && theta->dim[d] != want[d]))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "theta does not fit %d dims", n - 2);
    }
    q->out[0] = oct_type_make(theta->dtype, n, size);
    for (int d = 1; d < n - 1; d++)
        q->out[0].dim[d] = size[d + 1];
    q->out[0].dim[n - 1] = n - 2;
    return OCT_OK;
}

/* Pixel i of n in [-1, 1]. */
static double coordinate(int64_t i, int64_t n, bool align)
{
    if (align) return n > 1 ? -1 + 2 * (double)i / (double)(n - 1) : 0;
    return (2 * (double)i + 1) / (double)n - 1;
}

static oct_status ref(const oct_args *a)
{
    const bool align = oct_int(a->node, ALIGN_CORNERS) != 0;
    const oct_type *t = &a->out[0]->type;
    const int n = t->rank - 2; /* 2 or 3 */
    const int64_t zero[OCT_MAX_RANK] = {0};
    int64_t index[OCT_MAX_RANK] = {0}, n_points;
    const double *theta;
    double *y;
    void *p;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_work_in_f64(a, THETA, &theta));
    OCT_TRY(oct_work_out(a, 0, OCT_WORK_F64, &p));
    y = p;
    n_points = oct_type_span(t, 0, n + 1);
    for (int64_t i = 0; i < n_points; i++, oct_next_index(n + 1, index, zero, t->dim)) {
        const double *m = theta + index[0] * n * (n + 1);

        for (int row = 0; row < n; row++, m += n + 1) {
            double sum = m[n];

            for (int d = 0; d < n; d++) /* x is the last axis of the image */
                sum += m[d] * coordinate(index[n - d], t->dim[n - d], align);
            y[i * n + row] = sum;
        }
    }
    oct_work_done(a, 0, OCT_WORK_F64, y);
    return OCT_OK;
}

/* grid = base theta^T, base: the homogeneous coordinates of all points. */
static oct_status grad(const oct_grad_args *a)
{
    const bool align = oct_int(a->node, ALIGN_CORNERS) != 0;
    const oct_type *t = &a->dy[0]->type;
    const int n = t->rank - 2;
    const int64_t n_points = oct_type_span(t, 1, n + 1), zero[OCT_MAX_RANK] = {0};
    const oct_type rows = oct_type_make(t->dtype, 3, (int64_t[]){t->dim[0], n_points, n});
    const oct_type like = oct_type_make(t->dtype, 2, (int64_t[]){n_points, n + 1});
    oct_value *base = oct_grad_filled(a->b, &like, 1), *dy;
    int64_t index[OCT_MAX_RANK] = {0};
    oct_node *turned;

    for (int64_t i = 0; base && i < n_points; i++, oct_next_index(n, index, zero, t->dim + 1))
        for (int d = 0; d < n; d++) {
            const double v = coordinate(index[n - 1 - d], t->dim[n - d], align);

            oct_store_f64(t->dtype, base->data->data, i * (n + 1) + d, 1, &v);
        }
    dy = oct_grad_reshape(a->b, a->dy[0], &rows);
    turned = oct_emit_node(a->b, &oct_op_transpose, &dy, 1, 1);
    oct_emit_ints(a->b, turned, "perm", (int64_t[]){0, 2, 1}, 3);
    a->dx[THETA] = oct_emit(a->b, &oct_op_mat_mul, oct_emitted(a->b, turned), base, NULL);
    return a->b->status;
}

static const oct_attr_def attrs[] = {
    [ALIGN_CORNERS] = {.name = "align_corners", .kind = OCT_ATTR_INT},
    {0},
};

const oct_op oct_op_affine_grid = {
    .name = "AffineGrid",
    .since = 20,
    .min_in = 2,
    .max_in = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .flow = OCT_FLOW_STOP,
};
