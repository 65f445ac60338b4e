/* SPDX-License-Identifier: Apache-2.0 */
/* Tile and Expand: a tensor repeated along its axes. */
#include "op/channels.h"
#include "op/grad/rules.h"
#include "op/move.h"

static oct_status tile_shape(const oct_infer *q)
{
    int64_t rep[OCT_MAX_RANK];
    const oct_type *x;
    int n;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_movable(q, 0));
    OCT_TRY(oct_infer_ints(q, 1, rep, OCT_MAX_RANK, &n));
    oct_type y = *x;
    for (int32_t d = 0; d < x->rank && n < 0; d++)
        y.dim[d] = -1;
    if (n >= 0 && x->rank >= 0) {
        if (n != x->rank)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "%d repeats for rank %d", n, (int)x->rank);
        for (int32_t d = 0; d < n; d++) {
            if (rep[d] < 0)
                return oct_infer_fail(q, OCT_ERR_SHAPE, "axis %d is repeated %lld times", (int)d,
                                      (long long)rep[d]);
            if (y.dim[d] >= 0 && !oct_mul_i64(y.dim[d], rep[d], &y.dim[d]))
                return oct_infer_fail(q, OCT_ERR_SHAPE, "axis %d gets too long", (int)d);
        }
    }
    q->out[0] = y;
    return OCT_OK;
}

static oct_status tile_ref(const oct_args *a)
{
    const oct_tensor *x = a->in[0];
    int64_t rep[OCT_MAX_RANK], want[OCT_MAX_RANK], xs[OCT_MAX_RANK], ys[OCT_MAX_RANK];
    oct_move m;
    int n;

    OCT_TRY(oct_read_ints(a->node, a->in[1], rep, OCT_MAX_RANK, &n));
    if (n != x->type.rank)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "%d repeats for rank %d", n,
                             (int)x->type.rank);
    for (int d = 0; d < n; d++)
        if (!oct_mul_i64(x->type.dim[d], rep[d], &want[d])) want[d] = -1;
    OCT_TRY(oct_args_expect(a, 0, n, want));

    oct_strides(&x->type, xs);
    oct_strides(&a->out[0]->type, ys);
    oct_move_init(&m);
    for (int d = 0; d < n; d++) {
        oct_move_add(&m, rep[d], 0, x->type.dim[d] * ys[d]);
        oct_move_add(&m, x->type.dim[d], xs[d], ys[d]);
    }
    oct_move_run(&m, x->type.dtype, x->data, 0, a->out[0]->data, 0, a->n_threads);
    return OCT_OK;
}

static oct_status expand_shape(const oct_infer *q)
{
    const oct_type *x, *s;
    oct_type want = oct_type_unknown(OCT_DTYPE_NONE), y = want;
    int n;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &s));
    OCT_TRY(oct_infer_movable(q, 0));
    OCT_TRY(oct_infer_ints(q, 1, want.dim, OCT_MAX_RANK, &n));
    y.dtype = x->dtype;
    q->out[0] = y;
    if (x->rank < 0) return OCT_OK;
    if (n >= 0) {
        for (int d = 0; d < n; d++)
            if (want.dim[d] < 0)
                return oct_infer_fail(q, OCT_ERR_SHAPE, "dim %d of the shape is %lld", d,
                                      (long long)want.dim[d]);
    } else {
        if (s->rank != 1 || s->dim[0] < 0) return OCT_OK;
        if (s->dim[0] > OCT_MAX_RANK)
            return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "rank %lld is above %d",
                                  (long long)s->dim[0], OCT_MAX_RANK);
        n = (int)s->dim[0];
        for (int d = 0; d < n; d++)
            want.dim[d] = -1;
    }
    want.rank = n;
    OCT_TRY(oct_broadcast(q->node, x, &want, &y));
    y.dtype = x->dtype;
    q->out[0] = y;
    return OCT_OK;
}

static oct_status expand_ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type, *y = &a->out[0]->type;
    oct_type want = oct_type_unknown(y->dtype), all = want;
    int64_t xs[OCT_MAX_RANK], ys[OCT_MAX_RANK];
    oct_move m;
    int n;

    OCT_TRY(oct_read_ints(a->node, a->in[1], want.dim, OCT_MAX_RANK, &n));
    want.rank = n;
    OCT_TRY(oct_broadcast(a->node, x, &want, &all));
    OCT_TRY(oct_args_expect(a, 0, all.rank, all.dim));

    oct_strides(x, xs);
    oct_strides(y, ys);
    oct_move_init(&m);
    for (int32_t d = 0; d < y->rank; d++) {
        const int32_t k = d - (y->rank - x->rank);

        oct_move_add(&m, y->dim[d], k < 0 || x->dim[k] == 1 ? 0 : xs[k], ys[d]);
    }
    oct_move_run(&m, x->dtype, a->in[0]->data, 0, a->out[0]->data, 0, a->n_threads);
    return OCT_OK;
}

/* One axis at a time, so that no rank is exceeded: the sum over its repeats. */
static oct_status tile_grad(const oct_grad_args *a)
{
    const oct_type *x = &a->node->in[0]->type;
    oct_value *dx = a->dy[0];
    int64_t rep[OCT_MAX_RANK];
    int n;

    OCT_TRY(oct_grad_ints(a, 1, rep, OCT_MAX_RANK, &n));
    for (int d = 0; d < n && !a->b->status; d++) {
        oct_type after = dx->type, parts;

        if (rep[d] == 1) continue;
        after.dim[d] = x->dim[d];
        parts = oct_type_make(
            x->dtype, 3,
            (int64_t[]){oct_type_span(&after, 0, d), rep[d], oct_type_span(&after, d, after.rank)});
        dx = oct_grad_reshape(a->b, dx, &parts);
        dx = oct_grad_reduce(a->b, &oct_op_reduce_sum, dx, (int64_t[]){1}, 1, false);
        if (!a->b->status) dx = oct_grad_reshape(a->b, dx, &after);
    }
    a->dx[0] = dx;
    return OCT_OK;
}

static oct_status expand_grad(const oct_grad_args *a)
{
    a->dx[0] = oct_grad_sum_to(a->b, a->dy[0], a->node->in[0]);
    return OCT_OK;
}

const oct_op oct_op_tile = {
    .name = "Tile",
    .since = 7,
    .min_in = 2,
    .max_in = 2,
    .shape = tile_shape,
    .ref = tile_ref,
    .grad = tile_grad,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .moves = &oct_moves_tile,
};

const oct_op oct_op_expand = {
    .name = "Expand",
    .since = 8,
    .min_in = 2,
    .max_in = 2,
    .shape = expand_shape,
    .ref = expand_ref,
    .grad = expand_grad,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .moves = &oct_moves_expand,
};
