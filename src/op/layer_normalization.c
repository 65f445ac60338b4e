/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization, RMSNormalization and com.microsoft's SkipLayerNormalization. */
#include <math.h>

#include "base/parallel.h"
#include "op/grad/norm_grad.h"
#include "op/moments.h"

enum { AXIS, EPSILON, STASH_TYPE };

typedef struct norm_job {
    oct_work w;
    bool is_rms;
    const void *x, *scale, *bias; /* bias may be NULL */
    int64_t scale_row, bias_row;  /* 0: the same numbers for every row; else n */
    void *y;
    double *mean, *inv_std; /* one for each row; NULL: unused */
    int64_t n;              /* elements in a row */
    double epsilon;
} norm_job;

static const void *advance(oct_work w, const void *p, int64_t n)
{
    if (!p) return NULL;
    return w == OCT_WORK_F64 ? (const void *)((const double *)p + n)
                             : (const void *)((const float *)p + n);
}

static void row_range(void *arg, int64_t begin, int64_t end)
{
    const norm_job *j = arg;

    for (int64_t r = begin; r < end; r++) {
        const int64_t at = r * j->n;
        const double mean = j->is_rms ? 0 : oct_mean(j->w, j->x, at, j->n);
        const double inv = 1 / sqrt(oct_square_mean(j->w, j->x, at, j->n, mean) + j->epsilon);

        oct_affine_by(j->w, j->x, j->y, at, j->n, mean, inv,
                      advance(j->w, j->scale, r * j->scale_row),
                      advance(j->w, j->bias, r * j->bias_row));
        if (j->mean) j->mean[r] = mean;
        if (j->inv_std) j->inv_std[r] = inv;
    }
}

/* A scale or bias: of the row's length as it is, anything else broadcast to the whole of x. */
static oct_status read_gain(const oct_args *a, int i, const oct_type *x, int32_t axis, oct_work w,
                            const void **data, int64_t *row)
{
    const oct_tensor *t = oct_args_in(a, i);
    const int64_t n = oct_type_span(x, axis, x->rank);
    bool is_row = t && t->type.rank == x->rank - axis;

    for (int d = 0; is_row && d < t->type.rank; d++)
        is_row = t->type.dim[d] == x->dim[axis + d];
    *row = is_row ? 0 : n;
    if (is_row) return oct_work_in(a, i, w, data);
    return oct_work_expand(a, i, w, x, data);
}

static oct_status run_rows(const oct_args *a, norm_job *j, int64_t rows)
{
    oct_parallel_for(a->n_threads, rows, OCT_MAX(4096 / OCT_MAX(j->n, 1), 1), row_range, j);
    oct_work_done(a, 0, j->w, j->y);
    return OCT_OK;
}

/* The per-row result i as output `i` of the type it was declared with. */
static void store_rows(const oct_args *a, int i, const double *from)
{
    oct_tensor *t = oct_args_out(a, i);

    if (t && from) oct_store_f64(t->type.dtype, t->data, 0, oct_tensor_len(t), from);
}

static oct_status want_rows(const oct_args *a, int i, double **rows)
{
    const oct_tensor *t = oct_args_out(a, i);

    *rows = NULL;
    if (!t) return OCT_OK;
    *rows = oct_args_scratch(a, (size_t)OCT_MAX(oct_tensor_len(t), 1), sizeof(**rows));
    return *rows ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status run(const oct_args *a, bool is_rms)
{
    const oct_type *x = &a->in[0]->type;
    norm_job j = {.w = oct_work_of(x->dtype), .is_rms = is_rms};
    int32_t axis;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), x->rank, &axis));
    j.epsilon = (double)oct_f32(a->node, EPSILON);
    j.n = oct_type_span(x, axis, x->rank);
    OCT_TRY(oct_work_in(a, 0, j.w, &j.x));
    OCT_TRY(read_gain(a, 1, x, axis, j.w, &j.scale, &j.scale_row));
    OCT_TRY(read_gain(a, 2, x, axis, j.w, &j.bias, &j.bias_row));
    OCT_TRY(oct_work_out(a, 0, j.w, &j.y));
    OCT_TRY(want_rows(a, 1, &j.mean));
    OCT_TRY(want_rows(a, 2, &j.inv_std));
    OCT_TRY(run_rows(a, &j, oct_type_span(x, 0, axis)));
    store_rows(a, 1, j.mean);
    store_rows(a, 2, j.inv_std);
    return OCT_OK;
}

static oct_status layer_ref(const oct_args *a)
{
    return run(a, false);
}

static oct_status rms_ref(const oct_args *a)
{
    return run(a, true);
}

/* The gains must broadcast to x; the row's operators differ in what else they give. */
static oct_status check_gain(const oct_infer *q, int i, const oct_type *x)
{
    const oct_type *t = oct_infer_in(q, i);

    OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
    if (!t || t->rank < 0 || x->rank < 0) return OCT_OK;
    for (int d = 1; d <= t->rank; d++) {
        const int64_t dim = t->dim[t->rank - d], have = d <= x->rank ? x->dim[x->rank - d] : 1;

        if (dim > 1 && have >= 0 && dim != have)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d does not broadcast to the input",
                                  i);
    }
    if (t->rank > x->rank)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d has more dims than the input", i);
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_dtype stash = (oct_dtype)oct_int(q->node, STASH_TYPE);
    const oct_type *x, *scale;
    oct_type stat;
    int32_t axis = 0;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &scale));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    if (x->rank >= 0) OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), x->rank, &axis));
    OCT_TRY(check_gain(q, 1, x));
    OCT_TRY(check_gain(q, 2, x));
    if (stash != OCT_DTYPE_F32 && stash != OCT_DTYPE_BF16 && stash != OCT_DTYPE_F16 &&
        stash != OCT_DTYPE_F64)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "stash_type %lld",
                              (long long)oct_int(q->node, STASH_TYPE));
    q->out[0] = stat = *x;
    if (scale->dtype) q->out[0].dtype = scale->dtype;
    stat.dtype = stash;
    for (int d = axis; d < stat.rank; d++)
        stat.dim[d] = 1;
    for (int i = 1; i < q->node->n_out; i++)
        q->out[i] = stat;
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [AXIS] = {.name = "axis", .kind = OCT_ATTR_INT, .def = {.i = -1}},
    [EPSILON] = {.name = "epsilon", .kind = OCT_ATTR_F32, .def = {.f = 1e-5f}},
    [STASH_TYPE] = {.name = "stash_type", .kind = OCT_ATTR_INT, .def = {.i = OCT_DTYPE_F32}},
    {0},
};

/* --- gradients --- */

/* Statistics as results are for looking at. */
static oct_status refuse_statistics(const oct_grad_args *a)
{
    for (int i = 1; i < 3 && i < a->node->n_out; i++)
        if (a->dy[i])
            return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED,
                                 "its mean and deviation have no gradient, only result 0");
    return OCT_OK;
}

/* Of x in *dx, of the gains at operands `scale` and `bias` in place. */
static void grad_rows(const oct_grad_args *a, oct_value *x, int scale, int bias, int64_t axis,
                      float epsilon, bool is_rms, oct_value **dx)
{
    const oct_node *n = a->node;
    oct_value *dy = oct_grad_cast(a->b, a->dy[0], x->type.dtype);
    oct_norm_grad g;

    if (dx || a->wanted[scale]) {
        g = oct_grad_norm(a->b, x, OCT_EMIT2(mul, dy, n->in[scale]), axis, epsilon, is_rms,
                          a->wanted[scale]);
        if (dx) *dx = g.dx;
        if (a->wanted[scale])
            a->dx[scale] = oct_grad_sum_to(a->b, OCT_EMIT2(mul, dy, g.unit), n->in[scale]);
    }
    if (oct_node_in(n, bias) && a->wanted[bias])
        a->dx[bias] = oct_grad_sum_to(a->b, dy, n->in[bias]);
}

static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;

    OCT_TRY(refuse_statistics(a));
    grad_rows(a, n->in[0], 1, 2, oct_int(n, AXIS), oct_f32(n, EPSILON),
              oct_node_is(n, &oct_op_rms_normalization), a->wanted[0] ? &a->dx[0] : NULL);
    return OCT_OK;
}

const oct_op oct_op_layer_normalization = {
    .name = "LayerNormalization",
    .since = 17,
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = layer_ref,
    .grad = grad,
    .flow = OCT_FLOW_STOP,
};

const oct_op oct_op_rms_normalization = {
    .name = "RMSNormalization",
    .since = 23,
    .min_in = 2,
    .max_in = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = rms_ref,
    .grad = grad,
    .flow = OCT_FLOW_STOP,
};

/* --- com.microsoft: the sum of input, skip and bias, normalised over the last axis --- */

enum { SKIP_EPSILON };
enum { SKIP_X, SKIP_SKIP, SKIP_GAMMA, SKIP_BETA, SKIP_BIAS };
enum { SKIP_Y, SKIP_MEAN, SKIP_INV_STD, SKIP_SUM };

static oct_status skip_shape(const oct_infer *q)
{
    const oct_type *x, *t;

    OCT_TRY(oct_infer_need(q, SKIP_X, &x));
    OCT_TRY(oct_infer_need(q, SKIP_SKIP, &t));
    OCT_TRY(oct_infer_need(q, SKIP_GAMMA, &t));
    OCT_TRY(oct_infer_check(q, SKIP_X, OCT_SET_FLOAT));
    if (x->rank == 0) return oct_infer_fail(q, OCT_ERR_SHAPE, "input is a scalar");
    for (int i = SKIP_SKIP; i <= SKIP_BIAS; i++)
        OCT_TRY(check_gain(q, i, x));
    for (int i = 0; i < q->node->n_out; i++) {
        q->out[i] = *x;
        if (i != SKIP_MEAN && i != SKIP_INV_STD) continue;
        q->out[i].dtype = OCT_DTYPE_F32;
        if (x->rank > 0) q->out[i].dim[x->rank - 1] = 1;
    }
    return OCT_OK;
}

/* x + skip + bias; also an output of its own. */
static oct_status sum_inputs(const oct_args *a, const oct_type *x, oct_work w, const void **out)
{
    const int64_t n = oct_type_len(x);
    const void *part;
    void *sum;

    if (!(sum = oct_args_scratch(a, (size_t)OCT_MAX(n, 1), sizeof(double)))) return OCT_ERR_MEMORY;
    for (int i = 0; i < 3; i++) {
        OCT_TRY(oct_work_expand(a, (int[]){SKIP_X, SKIP_SKIP, SKIP_BIAS}[i], w, x, &part));
        for (int64_t k = 0; part && k < n; k++)
            oct_work_put(w, sum, k, oct_work_get(w, sum, k) + oct_work_get(w, part, k));
    }
    oct_work_done(a, SKIP_SUM, w, sum);
    *out = sum;
    return OCT_OK;
}

static oct_status skip_ref(const oct_args *a)
{
    const oct_type *x = &a->in[SKIP_X]->type;
    const int32_t axis = x->rank - 1;
    norm_job j = {.w = oct_work_of(x->dtype)};

    OCT_TRY(oct_args_check(a));
    j.epsilon = (double)oct_f32(a->node, SKIP_EPSILON);
    j.n = x->dim[axis];
    OCT_TRY(sum_inputs(a, x, j.w, &j.x));
    OCT_TRY(read_gain(a, SKIP_GAMMA, x, axis, j.w, &j.scale, &j.scale_row));
    OCT_TRY(read_gain(a, SKIP_BETA, x, axis, j.w, &j.bias, &j.bias_row));
    OCT_TRY(oct_work_out(a, SKIP_Y, j.w, &j.y));
    OCT_TRY(want_rows(a, SKIP_MEAN, &j.mean));
    OCT_TRY(want_rows(a, SKIP_INV_STD, &j.inv_std));
    OCT_TRY(run_rows(a, &j, oct_type_span(x, 0, axis)));
    store_rows(a, SKIP_MEAN, j.mean);
    store_rows(a, SKIP_INV_STD, j.inv_std);
    return OCT_OK;
}

/* The sum is a result too; all that is added to it gets the same gradient. */
static oct_status skip_grad(const oct_grad_args *a)
{
    static const int addends[] = {SKIP_X, SKIP_SKIP, SKIP_BIAS};
    const oct_node *n = a->node;
    oct_value *sum = n->in[SKIP_X], *more = n->n_out > SKIP_SUM ? a->dy[SKIP_SUM] : NULL;
    oct_value *dsum = NULL;
    bool any = false;

    OCT_TRY(refuse_statistics(a));
    for (size_t i = 0; i < OCT_COUNT(addends); i++) {
        oct_value *v = oct_node_in(n, addends[i]);

        any = any || (v && a->wanted[addends[i]]);
        if (v && i > 0 && a->dy[SKIP_Y]) sum = OCT_EMIT2(add, sum, v);
    }
    if (a->dy[SKIP_Y] && !a->b->status)
        grad_rows(a, sum, SKIP_GAMMA, SKIP_BETA, -1, oct_f32(n, SKIP_EPSILON), false,
                  any ? &dsum : NULL);
    if (more) dsum = dsum ? OCT_EMIT2(add, dsum, more) : more;
    for (size_t i = 0; i < OCT_COUNT(addends) && dsum; i++)
        if (oct_node_in(n, addends[i]) && a->wanted[addends[i]])
            a->dx[addends[i]] = oct_grad_sum_to(a->b, dsum, n->in[addends[i]]);
    return OCT_OK;
}

static const oct_attr_def skip_attrs[] = {
    [SKIP_EPSILON] = {.name = "epsilon", .kind = OCT_ATTR_F32, .def = {.f = 1e-12f}},
    {0},
};

const oct_op oct_op_ms_skip_layer_normalization = {
    .name = "SkipLayerNormalization",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 3,
    .max_in = 5,
    .min_out = 1,
    .max_out = 4,
    .attrs = skip_attrs,
    .shape = skip_shape,
    .ref = skip_ref,
    .grad = skip_grad,
    .flow = OCT_FLOW_STOP,
};
