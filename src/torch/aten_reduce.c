/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, sorting and cumulative sums. */
#include "torch/aten.h"

/* The operand in the type of the result, if the operator has a `dtype`. */
static oct_value *self_as_result(oct_aten *a)
{
    return oct_aten_cast(a, oct_aten_tensor(a, "self"), a->meta->type.dtype);
}

static void reduce(oct_aten *a, const oct_op *op, oct_value *x)
{
    int64_t axes[OCT_MAX_RANK];
    const int n = oct_aten_ints(a, "dim", axes);

    a->out[0] = oct_aten_reduce(a, op, x, axes, n, oct_aten_bool(a, "keepdim", false));
}

void oct_aten_mean(oct_aten *a)
{
    reduce(a, &oct_op_reduce_mean, self_as_result(a));
}

void oct_aten_sum(oct_aten *a)
{
    reduce(a, &oct_op_reduce_sum, self_as_result(a));
}

void oct_aten_prod(oct_aten *a)
{
    reduce(a, &oct_op_reduce_prod, self_as_result(a));
}

void oct_aten_amax(oct_aten *a)
{
    reduce(a, &oct_op_reduce_max, oct_aten_tensor(a, "self"));
}

void oct_aten_amin(oct_aten *a)
{
    reduce(a, &oct_op_reduce_min, oct_aten_tensor(a, "self"));
}

void oct_aten_logsumexp(oct_aten *a)
{
    reduce(a, &oct_op_reduce_log_sum_exp, oct_aten_tensor(a, "self"));
}

/* any and all are maximum and minimum of truth. */
static void truth(oct_aten *a, const oct_op *op)
{
    oct_value *x = oct_aten_operand(a, "self", OCT_DTYPE_BOOL);

    reduce(a, op, oct_aten_cast(a, x, OCT_DTYPE_I32));
    a->out[0] = oct_aten_cast(a, a->out[0], OCT_DTYPE_BOOL);
}

void oct_aten_any(oct_aten *a)
{
    truth(a, &oct_op_reduce_max);
}

void oct_aten_all(oct_aten *a)
{
    truth(a, &oct_op_reduce_min);
}

/* --- variance --- */

/* Elements that a reduction sums; 0: not known. */
static int64_t summed(const oct_value *x, const int64_t *axes, int n)
{
    int64_t count = 1;

    for (int i = 0; i < (n ? n : x->type.rank); i++) {
        const int64_t axis = n ? axes[i] : i;
        const int64_t dim = oct_aten_dim(x, (int32_t)(axis < 0 ? axis + x->type.rank : axis));

        if (dim < 1 || !oct_mul_i64(count, dim, &count)) return 0;
    }
    return count;
}

static double correction(oct_aten *a)
{
    if (oct_aten_has(a, "correction")) return oct_aten_f64(a, "correction", 1);
    return oct_aten_bool(a, "unbiased", true) ? 1 : 0;
}

static oct_value *variance(oct_aten *a, oct_value **mean)
{
    oct_value *x = oct_aten_tensor(a, "self"), *d, *sum;
    const bool keep = oct_aten_bool(a, "keepdim", false);
    int64_t axes[OCT_MAX_RANK], count;
    const int n = oct_aten_ints(a, "dim", axes);
    double by;

    if (a->b->status) return NULL;
    count = summed(x, axes, n);
    by = (double)count - correction(a);
    if (count < 1 || by <= 0) {
        oct_aten_fail(a, OCT_ERR_SHAPE, "the number of elements it averages is not known");
        return NULL;
    }
    d = ATEN2(sub, x, oct_aten_reduce(a, &oct_op_reduce_mean, x, axes, n, true));
    sum = oct_aten_reduce(a, &oct_op_reduce_sum, ATEN2(mul, d, d), axes, n, keep);
    if (mean) *mean = oct_aten_reduce(a, &oct_op_reduce_mean, x, axes, n, keep);
    return ATEN2(div, sum, oct_aten_scalar(a, x->type.dtype, by));
}

void oct_aten_var(oct_aten *a)
{
    a->out[0] = variance(a, NULL);
}

void oct_aten_std(oct_aten *a)
{
    a->out[0] = ATEN1(sqrt, variance(a, NULL));
}

void oct_aten_var_mean(oct_aten *a)
{
    oct_value *mean = NULL;

    a->out[0] = variance(a, &mean);
    if (a->n_out > 1) a->out[1] = mean;
}

void oct_aten_std_mean(oct_aten *a)
{
    oct_aten_var_mean(a);
    a->out[0] = ATEN1(sqrt, a->out[0]);
}

/* --- positions --- */

static oct_value *arg_of(oct_aten *a, const oct_op *op, oct_value *x, int64_t axis, bool keep)
{
    oct_node *n = oct_aten_node(a, op, &x, 1, 1);

    oct_emit_int(a->b, n, "axis", axis);
    oct_emit_int(a->b, n, "keepdims", keep);
    return oct_aten_done(a, n);
}

/* Without a dimension: of all elements, in order. */
static void arg_best(oct_aten *a, const oct_op *op)
{
    oct_value *x = oct_aten_tensor(a, "self");

    if (oct_aten_has(a, "dim")) {
        a->out[0] = arg_of(a, op, x, oct_aten_int(a, "dim", 0), oct_aten_bool(a, "keepdim", false));
        return;
    }
    a->out[0] = arg_of(a, op, oct_aten_reshape(a, x, (int64_t[]){-1}, 1), 0, false);
}

void oct_aten_argmax(oct_aten *a)
{
    arg_best(a, &oct_op_arg_max);
}

void oct_aten_argmin(oct_aten *a)
{
    arg_best(a, &oct_op_arg_min);
}

/* max(dim): values and positions. */
static void best(oct_aten *a, const oct_op *value, const oct_op *position)
{
    oct_value *x = oct_aten_tensor(a, "self");
    const int64_t axis = oct_aten_int(a, "dim", 0);
    const bool keep = oct_aten_bool(a, "keepdim", false);

    a->out[0] = oct_aten_reduce(a, value, x, &axis, 1, keep);
    if (a->n_out > 1) a->out[1] = arg_of(a, position, x, axis, keep);
}

void oct_aten_max_dim(oct_aten *a)
{
    best(a, &oct_op_reduce_max, &oct_op_arg_max);
}

void oct_aten_min_dim(oct_aten *a)
{
    best(a, &oct_op_reduce_min, &oct_op_arg_min);
}

static void top(oct_aten *a, oct_value *x, oct_value *k, int64_t axis, bool largest)
{
    oct_node *n = oct_aten_node(a, &oct_op_top_k, (oct_value *[]){x, k}, 2, 2);

    oct_emit_int(a->b, n, "axis", axis);
    oct_emit_int(a->b, n, "largest", largest);
    a->out[0] = oct_aten_done(a, n);
    if (a->n_out > 1 && n) a->out[1] = n->out[1];
}

void oct_aten_topk(oct_aten *a)
{
    const oct_arg *k = oct_aten_arg(a, "k");
    oct_value *x = oct_aten_tensor(a, "self");

    if (!k) oct_aten_fail(a, OCT_ERR_FORMAT, "argument 'k' is missing");
    if (a->b->status) return;
    top(a, x, oct_aten_number(a, k), oct_aten_int(a, "dim", -1), oct_aten_bool(a, "largest", true));
}

static oct_value *sort_axis(oct_aten *a, oct_value **x, int64_t *axis)
{
    *x = oct_aten_tensor(a, "self");
    *axis = oct_aten_axis(a, oct_aten_int(a, "dim", -1), oct_aten_rank(a, *x));
    return oct_aten_size_of(a, *x, (int32_t)*axis);
}

void oct_aten_sort(oct_aten *a)
{
    oct_value *x, *k;
    int64_t axis;

    k = sort_axis(a, &x, &axis);
    top(a, x, k, axis, oct_aten_bool(a, "descending", false));
}

void oct_aten_argsort(oct_aten *a)
{
    oct_value *both[2] = {NULL, NULL};
    oct_aten inner = *a;

    inner.out = both;
    inner.n_out = 2;
    oct_aten_sort(&inner);
    a->out[0] = both[1];
}

void oct_aten_cumsum(oct_aten *a)
{
    oct_value *x = self_as_result(a);

    a->out[0] =
        ATEN2(cum_sum, x, oct_aten_scalar(a, OCT_DTYPE_I64, (double)oct_aten_int(a, "dim", 0)));
}
