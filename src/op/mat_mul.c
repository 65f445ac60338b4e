/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, as NumPy does it: 1-D operands, broadcast batches; and com.microsoft's FusedMatMul. */
#include <string.h>

#include "op/grad/mat_mul_grad.h"
#include "op/mm.h"

enum { ALPHA, TRANS_A, TRANS_B, TRANS_BATCH_A, TRANS_BATCH_B };

typedef struct side {
    oct_type batch;     /* leading dims */
    int64_t rows, cols; /* of each matrix, after transposition */
    bool trans;
    bool is_vector;
} side;

/* A 1-D operand is a row on the left, a column on the right, and its 1 is dropped again. */
static oct_status read_side(const oct_node *n, const oct_type *t, bool trans, bool is_left, side *s)
{
    *s = (side){.trans = trans, .is_vector = t->rank == 1};
    if (t->rank == 0) return oct_node_fail(n, OCT_ERR_SHAPE, "cannot multiply a scalar");
    if (t->rank == 1) {
        s->trans = false;
        s->rows = is_left ? 1 : t->dim[0];
        s->cols = is_left ? t->dim[0] : 1;
        return OCT_OK;
    }
    s->batch.rank = t->rank - 2;
    memcpy(s->batch.dim, t->dim, (size_t)s->batch.rank * sizeof(int64_t));
    s->rows = t->dim[t->rank - (trans ? 1 : 2)];
    s->cols = t->dim[t->rank - (trans ? 2 : 1)];
    return OCT_OK;
}

/* MatMul has no attributes; a node of it may carry foreign ones that mean nothing. */
static bool flag(const oct_node *n, int attr)
{
    return oct_node_is(n, &oct_op_ms_fused_mat_mul) && oct_int(n, attr) != 0;
}

static oct_status read_sides(const oct_node *n, const oct_type *ta, const oct_type *tb, side *a,
                             side *b, oct_type *batch)
{
    if (flag(n, TRANS_BATCH_A) || flag(n, TRANS_BATCH_B))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "transBatchA and transBatchB");
    OCT_TRY(read_side(n, ta, flag(n, TRANS_A), true, a));
    OCT_TRY(read_side(n, tb, flag(n, TRANS_B), false, b));
    if (a->cols >= 0 && b->rows >= 0 && a->cols != b->rows)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%lld columns on the left, %lld rows on the right",
                             (long long)a->cols, (long long)b->rows);
    *batch = (oct_type){.rank = 0};
    return oct_broadcast(n, &a->batch, &b->batch, batch);
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *ta, *tb;
    oct_type y;
    side a, b;

    OCT_TRY(oct_infer_need(q, 0, &ta));
    OCT_TRY(oct_infer_need(q, 1, &tb));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_NUMERIC));
    q->out[0] = oct_type_unknown(ta->dtype ? ta->dtype : tb->dtype);
    if (ta->rank < 0 || tb->rank < 0) return OCT_OK;
    OCT_TRY(read_sides(q->node, ta, tb, &a, &b, &y));
    if (!a.is_vector) y.dim[y.rank++] = a.rows;
    if (!b.is_vector) y.dim[y.rank++] = b.cols;
    y.dtype = q->out[0].dtype;
    q->out[0] = y;
    return OCT_OK;
}

/* First element of each matrix of a side within the broadcast batch. */
static int64_t *offsets(const oct_args *a, const side *s, const oct_type *batch, int64_t count)
{
    int64_t *at = oct_args_scratch(a, (size_t)OCT_MAX(count, 1), sizeof(*at));
    const int32_t skip = batch->rank - s->batch.rank;

    for (int64_t i = 0; at && i < count; i++) {
        int64_t rest = i, step = s->rows * s->cols;

        for (int32_t d = batch->rank - 1; d >= skip; d--) {
            const int64_t dim = s->batch.dim[d - skip];

            if (dim > 1) at[i] += rest % batch->dim[d] * step;
            step *= dim;
            rest /= batch->dim[d];
        }
    }
    return at;
}

/* b with its matrices transposed, so that its rows are dense. */
static oct_status straighten(const oct_args *a, const side *b, oct_work w, const void **data)
{
    const size_t size = oct_dtype_size(oct_work_dtype(w));
    const int64_t len = oct_tensor_len(a->in[1]), matrix = b->rows * b->cols;
    char *to;

    if (!b->trans || len == 0) return OCT_OK;
    if (!(to = oct_args_scratch(a, (size_t)len, size))) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < len; i += matrix)
        oct_mm_transpose((const char *)*data + (size_t)i * size, b->cols, b->rows, size,
                         to + (size_t)i * size);
    *data = to;
    return OCT_OK;
}

static void scale(oct_work w, void *y, int64_t n, double by)
{
    for (int64_t i = 0; i < n && by != 1; i++) {
        if (w == OCT_WORK_F32) ((float *)y)[i] *= (float)by;
        if (w == OCT_WORK_F64) ((double *)y)[i] *= by;
    }
}

static oct_status ref(const oct_args *a)
{
    const oct_work w = oct_work_of(a->out[0]->type.dtype);
    const bool is_fused = oct_node_is(a->node, &oct_op_ms_fused_mat_mul);
    oct_mm p = {.work = w};
    oct_type batch;
    side sa, sb;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(read_sides(a->node, &a->in[0]->type, &a->in[1]->type, &sa, &sb, &batch));
    OCT_TRY(oct_work_in(a, 0, w, &p.a));
    OCT_TRY(oct_work_in(a, 1, w, &p.b));
    OCT_TRY(oct_work_out(a, 0, w, &p.c));
    OCT_TRY(straighten(a, &sb, w, &p.b));
    p.batch = oct_type_span(&batch, 0, batch.rank);
    p.m = sa.rows;
    p.k = sa.cols;
    p.n = sb.cols;
    p.a_row = sa.trans ? 1 : sa.cols;
    p.a_col = sa.trans ? sa.rows : 1;
    p.b_row = p.c_row = sb.cols;
    if (oct_tensor_len(a->out[0]) == 0) return OCT_OK;
    p.a_at = offsets(a, &sa, &batch, p.batch);
    p.b_at = offsets(a, &sb, &batch, p.batch);
    if (!p.a_at || !p.b_at) return OCT_ERR_MEMORY;
    OCT_TRY(oct_mm_run(a, &p));
    if (is_fused) scale(w, p.c, oct_tensor_len(a->out[0]), (double)oct_f32(a->node, ALPHA));
    oct_work_done(a, 0, w, p.c);
    return OCT_OK;
}

static int64_t macs(const oct_node *n)
{
    const oct_type *x = &n->in[0]->type;
    const int64_t out = n->out[0] ? oct_type_len(&n->out[0]->type) : -1;
    int64_t k, result;

    if (out < 0 || x->rank < 1) return 0;
    k = x->dim[x->rank - 1 - (x->rank > 1 && flag(n, TRANS_A))];
    return k > 0 && oct_mul_i64(out, k, &result) ? result : 0;
}

static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const bool is_fused = oct_node_is(n, &oct_op_ms_fused_mat_mul);

    return oct_grad_product(a, is_fused ? (double)oct_f32(n, ALPHA) : 1, flag(n, TRANS_A),
                            flag(n, TRANS_B));
}

static const oct_attr_def no_attrs[] = {{0}};

static bool weight_axes(const oct_node *n, const oct_type *w, oct_weight_axes *out)
{
    (void)n;
    out->out = 1;
    out->in = 0;
    return w->rank == 2;
}

const oct_op oct_op_mat_mul = {
    .name = "MatMul",
    .since = 13,
    .min_in = 2,
    .max_in = 2,
    .attrs = no_attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .macs = macs,
    .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_WEIGHT}, .weight_axis = -1},
    .flow = OCT_FLOW_SOURCE,
    .weights = {.axes = weight_axes, .takes_factor = true},
    .fuses = OCT_FUSES_BIAS | OCT_FUSES_ACT,
};

static const oct_attr_def fused_attrs[] = {
    [ALPHA] = {.name = "alpha", .kind = OCT_ATTR_F32, .def = {.f = 1.0f}},
    [TRANS_A] = {.name = "transA", .kind = OCT_ATTR_INT},
    [TRANS_B] = {.name = "transB", .kind = OCT_ATTR_INT},
    [TRANS_BATCH_A] = {.name = "transBatchA", .kind = OCT_ATTR_INT},
    [TRANS_BATCH_B] = {.name = "transBatchB", .kind = OCT_ATTR_INT},
    {0},
};

const oct_op oct_op_ms_fused_mat_mul = {
    .name = "FusedMatMul",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 2,
    .max_in = 2,
    .attrs = fused_attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .macs = macs,
    .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_WEIGHT}, .weight_axis = -1},
    .flow = OCT_FLOW_SOURCE,
};
