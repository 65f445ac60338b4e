/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherElements and GatherND: elements picked by indices. */
#include "op/move.h"

#include "base/parallel.h"
#include "op/channels.h"
#include "op/grad/gather_grad.h"

enum { AXIS };
enum { BATCH_DIMS };
enum { GRAIN = 64 * 1024 };

/* Appends dims [from, to) of x to y. */
static oct_status append(const oct_infer *q, oct_type *y, const oct_type *x, int32_t from,
                         int32_t to)
{
    for (int32_t d = from; d < to; d++) {
        if (y->rank == OCT_MAX_RANK)
            return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "the result's rank is above %d",
                                  OCT_MAX_RANK);
        y->dim[y->rank++] = x->dim[d];
    }
    return OCT_OK;
}

static oct_status two_operands(const oct_infer *q, const oct_type **x, const oct_type **ix)
{
    OCT_TRY(oct_infer_need(q, 0, x));
    OCT_TRY(oct_infer_need(q, 1, ix));
    OCT_TRY(oct_infer_movable(q, 0));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_INT));
    q->out[0] = oct_type_unknown((*x)->dtype);
    return OCT_OK;
}

static oct_status gather_shape(const oct_infer *q)
{
    const oct_type *x, *ix;
    int32_t axis;

    OCT_TRY(two_operands(q, &x, &ix));
    if (x->rank < 0 || ix->rank < 0) return OCT_OK;
    OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), x->rank, &axis));
    oct_type y = oct_type_make(x->dtype, 0, NULL);
    OCT_TRY(append(q, &y, x, 0, axis));
    OCT_TRY(append(q, &y, ix, 0, ix->rank));
    OCT_TRY(append(q, &y, x, axis + 1, x->rank));
    q->out[0] = y;
    return OCT_OK;
}

/* Copies `piece` elements for each of n items; item i of a group comes from at(i). */
typedef struct picking {
    const oct_tensor *x;
    oct_tensor *y;
    const int64_t *index;
    int64_t per_group, group_step, piece;
} picking;

static void pick(void *arg, int64_t begin, int64_t end)
{
    const picking *p = arg;

    for (int64_t i = begin; i < end; i++) {
        const int64_t from = i / p->per_group * p->group_step;

        oct_move_copy(p->x->type.dtype, p->x->data, from + p->index[i % p->per_group] * p->piece,
                      p->y->data, i * p->piece, p->piece);
    }
}

static void pick_all(const oct_args *a, picking *p, int64_t n)
{
    const int64_t size = (int64_t)oct_dtype_size(p->x->type.dtype);

    if (n == 0 || p->piece == 0) return;
    /* Packed elements share bytes: one thread. */
    oct_parallel_for(size ? a->n_threads : 1, n, OCT_MAX(1, GRAIN / OCT_MAX(1, size * p->piece)),
                     pick, p);
}

static oct_status gather_ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type;
    picking p = {.x = a->in[0], .y = a->out[0]};
    int32_t axis;

    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), x->rank, &axis));
    OCT_TRY(oct_read_indices(a, a->in[1], x->dim[axis], &p.index));
    p.per_group = oct_tensor_len(a->in[1]);
    p.group_step = oct_type_span(x, axis, x->rank);
    p.piece = oct_type_span(x, axis + 1, x->rank);
    pick_all(a, &p, oct_type_span(x, 0, axis) * p.per_group);
    return OCT_OK;
}

/* Indices must fit into the data in all axes but the one they index. */
static oct_status elements_shape(const oct_infer *q)
{
    const oct_type *x, *ix;
    int32_t axis;

    OCT_TRY(two_operands(q, &x, &ix));
    if (ix->rank < 0) return OCT_OK;
    q->out[0] = oct_type_make(x->dtype, ix->rank, ix->dim);
    if (x->rank < 0) return OCT_OK;
    if (x->rank != ix->rank || x->rank == 0)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "data has rank %d, indices %d", (int)x->rank,
                              (int)ix->rank);
    OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), x->rank, &axis));
    for (int32_t d = 0; d < x->rank; d++)
        if (d != axis && x->dim[d] >= 0 && ix->dim[d] > x->dim[d])
            return oct_infer_fail(q, OCT_ERR_SHAPE, "dim %d: %lld indices for %lld elements",
                                  (int)d, (long long)ix->dim[d], (long long)x->dim[d]);
    return OCT_OK;
}

static oct_status elements_ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type, *ix = &a->in[1]->type;
    int64_t stride[OCT_MAX_RANK];
    const int64_t *index;
    int32_t axis;

    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), x->rank, &axis));
    OCT_TRY(oct_read_indices(a, a->in[1], x->dim[axis], &index));
    oct_strides(x, stride);
    for (int64_t i = 0, n = oct_type_len(ix); i < n; i++) {
        int64_t rest = i, from = index[i] * stride[axis];

        for (int32_t d = x->rank - 1; d >= 0; d--) {
            if (d != axis) from += rest % ix->dim[d] * stride[d];
            rest /= ix->dim[d];
        }
        oct_move_copy(x->dtype, a->in[0]->data, from, a->out[0]->data, i, 1);
    }
    return OCT_OK;
}

/* batch_dims and the length of an index tuple, checked against both ranks. */
static oct_status nd_params(const oct_node *n, const oct_type *x, const oct_type *ix, int32_t *b,
                            int32_t *k)
{
    const int64_t batch = oct_int(n, BATCH_DIMS), tuple = ix->rank ? ix->dim[ix->rank - 1] : 0;

    if (x->rank < 1 || ix->rank < 1 || batch < 0 || batch >= OCT_MIN(x->rank, ix->rank))
        return oct_node_fail(n, OCT_ERR_SHAPE, "batch_dims %lld with ranks %d and %d",
                             (long long)batch, (int)x->rank, (int)ix->rank);
    if (tuple > x->rank - batch)
        return oct_node_fail(n, OCT_ERR_SHAPE, "index tuples of %lld for rank %d", (long long)tuple,
                             (int)x->rank);
    for (int64_t d = 0; d < batch; d++)
        if (x->dim[d] >= 0 && ix->dim[d] >= 0 && x->dim[d] != ix->dim[d])
            return oct_node_fail(n, OCT_ERR_SHAPE, "batch dim %d differs: %lld and %lld", (int)d,
                                 (long long)x->dim[d], (long long)ix->dim[d]);
    *b = (int32_t)batch;
    *k = (int32_t)tuple;
    return OCT_OK;
}

static oct_status nd_shape(const oct_infer *q)
{
    const oct_type *x, *ix;
    int32_t b, k;

    OCT_TRY(two_operands(q, &x, &ix));
    if (x->rank < 0 || ix->rank < 0) return OCT_OK;
    OCT_TRY(nd_params(q->node, x, ix, &b, &k));
    if (k < 0) return OCT_OK;
    oct_type y = oct_type_make(x->dtype, 0, NULL);
    OCT_TRY(append(q, &y, ix, 0, ix->rank - 1));
    OCT_TRY(append(q, &y, x, b + k, x->rank));
    q->out[0] = y;
    return OCT_OK;
}

static oct_status nd_ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type, *ix = &a->in[1]->type;
    int64_t *at;
    picking p = {.x = a->in[0], .y = a->out[0], .per_group = 1};
    int32_t b, k;

    OCT_TRY(nd_params(a->node, x, ix, &b, &k));
    const int64_t n = oct_type_span(ix, 0, ix->rank - 1), batches = oct_type_span(ix, 0, b);
    const int64_t in_batch = batches ? n / batches : 0;
    if (!(at = oct_args_scratch(a, (size_t)OCT_MAX(n, 1), sizeof(*at)))) return OCT_ERR_MEMORY;
    p.piece = oct_type_span(x, b + k, x->rank);
    for (int64_t i = 0; i < n; i++) {
        at[i] = i / in_batch * oct_type_span(x, b, b + k);
        for (int32_t d = 0; d < k; d++) {
            const int64_t dim = x->dim[b + d];
            int64_t v;

            oct_load_i64(ix->dtype, a->in[1]->data, i * k + d, 1, &v);
            if (v < -dim || v >= dim)
                return oct_node_fail(a->node, OCT_ERR_SHAPE, "index %lld is outside [-%lld, %lld)",
                                     (long long)v, (long long)dim, (long long)dim);
            at[i] += (v < 0 ? v + dim : v) * oct_type_span(x, b + d + 1, b + k);
        }
    }
    p.index = at;
    p.per_group = OCT_MAX(n, 1);
    pick_all(a, &p, n);
    return OCT_OK;
}

static const oct_attr_def axis_attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = 0}},
    {0},
};
static const oct_attr_def nd_attrs[] = {
    [BATCH_DIMS] = {"batch_dims", OCT_ATTR_INT, .def = {.i = 0}},
    {0},
};

const oct_op oct_op_gather = {
    .name = "Gather",
    .since = 7,
    .min_in = 2,
    .max_in = 2,
    .attrs = axis_attrs,
    .shape = gather_shape,
    .ref = gather_ref,
    .grad = oct_grad_gather,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flags = OCT_OP_PICKS,
    .moves = &oct_moves_axis,
};

const oct_op oct_op_gather_elements = {
    .name = "GatherElements",
    .since = 11,
    .min_in = 2,
    .max_in = 2,
    .attrs = axis_attrs,
    .shape = elements_shape,
    .ref = elements_ref,
    .grad = oct_grad_gather_elements_of,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flags = OCT_OP_PICKS,
};

const oct_op oct_op_gather_nd = {
    .name = "GatherND",
    .since = 11,
    .min_in = 2,
    .max_in = 2,
    .attrs = nd_attrs,
    .shape = nd_shape,
    .ref = nd_ref,
    .grad = oct_grad_gather_nd,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flags = OCT_OP_PICKS,
};
