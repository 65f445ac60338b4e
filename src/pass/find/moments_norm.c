/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation whose variance is mean(x * x) - mean(x)^2, written out in small operators. */
#include "op/op.h"
#include "pass/find/find_norm.h"
#include "pass/find/formula.h"
#include "pass/rewrite.h"

/* The ReduceSum whose result times *c is v; v may have other readers. */
static const oct_node *scaled_sum(const oct_value *v, double *c)
{
    const oct_node *n = v->producer, *sum = NULL;
    const bool is_mul = oct_node_is(n, &oct_op_mul);

    if ((!is_mul && !oct_node_is(n, &oct_op_div)) || n->n_in != 2) return NULL;
    for (int i = is_mul ? 0 : 1; i < 2 && !sum; i++)
        if (n->in[1 - i] && oct_const_scalar(n->in[i], c) &&
            oct_keeps_shape(&n->in[1 - i]->type, &n->in[i]->type))
            sum = oct_inner_producer(n->in[1 - i]);
    if (!is_mul) *c = 1 / *c;
    return oct_node_is(sum, &oct_op_reduce_sum) ? sum : NULL;
}

/* What v is the mean of, over its last *n_axes dims; NULL: it is none. */
static oct_value *mean_of(const oct_value *v, int *n_axes)
{
    const oct_node *n = v->producer;
    double c = 1, count = 1;
    const oct_type *x;

    if (!oct_node_is(n, &oct_op_reduce_mean)) n = scaled_sum(v, &c);
    if (!n || !(*n_axes = oct_trailing_axes(n))) return NULL;
    x = &n->in[0]->type;
    for (int i = x->rank - *n_axes; i < x->rank; i++) {
        if (x->dim[i] < 1) return NULL;
        count *= (double)x->dim[i];
    }
    return oct_node_is(n, &oct_op_reduce_mean) || oct_is_near(c, 1 / count) ? n->in[0] : NULL;
}

/* The v of Max(v, 0), Clip(v, 0) or Relu(v); else v: rounding alone makes a variance negative. */
static const oct_value *above_zero(const oct_value *v)
{
    const oct_node *n = oct_inner_producer(v);
    double c;

    if (oct_node_is(n, &oct_op_relu)) return n->in[0];
    if (oct_node_is(n, &oct_op_clip) && !oct_node_in(n, 2))
        return oct_node_in(n, 1) && oct_const_scalar(n->in[1], &c) && c == 0 ? n->in[0] : v;
    if (!oct_node_is(n, &oct_op_max) || n->n_in != 2) return v;
    for (int i = 0; i < 2; i++)
        if (n->in[1 - i] && oct_const_scalar(n->in[i], &c) && c == 0 &&
            oct_keeps_shape(&n->in[1 - i]->type, &n->in[i]->type))
            return n->in[1 - i];
    return v;
}

static const oct_value *before_reshape(const oct_value *v)
{
    const oct_node *n = oct_inner_producer(v);

    return oct_node_is(n, &oct_op_reshape) ? n->in[0] : v;
}

/* Is v one number for each row of x, in the same order? A Reshape could mix rows up. */
static bool is_for_rows(const oct_value *v, const oct_type *x, int n_axes)
{
    const bool is_reshaped = before_reshape(v) != v;

    if (v->type.rank != x->rank) return false;
    for (int i = 0; i < x->rank; i++) {
        const bool is_reduced = i >= x->rank - n_axes;

        if (is_reduced && v->type.dim[i] != 1) return false;
        if (!is_reduced && is_reshaped && (x->dim[i] < 1 || v->type.dim[i] != x->dim[i]))
            return false;
    }
    return true;
}

/* v = mean(x * x) - mean^2, with no other readers inside. */
static oct_value *variance_of(const oct_value *v, const oct_value **mean, int *n_axes)
{
    const oct_node *sub = oct_inner_producer(v), *square;
    oct_value *x, *squares;
    int n_readers, k;

    if (!oct_node_is(sub, &oct_op_sub) || sub->n_in != 2) return NULL;
    if (!oct_inner_producer(sub->in[0])) return NULL;
    if (!(square = oct_inner_producer(sub->in[1])) || !square->in[0]) return NULL;
    *mean = square->in[0];
    if (!oct_is_square(sub->in[1], *mean, &n_readers)) return NULL;
    if ((*mean)->is_output || (*mean)->n_users != n_readers + 1) return NULL;
    if (!(x = mean_of(*mean, n_axes)) || !(squares = mean_of(sub->in[0], &k))) return NULL;
    return k == *n_axes && oct_is_square(squares, x, &n_readers) ? x : NULL;
}

/* Is d = x - mean and root its deviation, or 1 / deviation? */
static oct_value *normalised(const oct_value *d, const oct_value *root, bool inverse, oct_norm *out)
{
    const oct_value *u = oct_under_root(root, inverse), *mean;
    const oct_node *sub = oct_inner_producer(d);
    oct_value *plain, *x;

    if (!u || !oct_node_is(sub, &oct_op_sub) || sub->n_in != 2) return NULL;
    if (!oct_is_plus(u, &out->eps, &plain) || out->eps < 0) return NULL;
    x = variance_of(above_zero(before_reshape(above_zero(plain))), &mean, &out->n_axes);
    if (!x || sub->in[0] != x || before_reshape(sub->in[1]) != mean) return NULL;
    if (!is_for_rows(sub->in[1], &x->type, out->n_axes)) return NULL;
    return is_for_rows(above_zero(plain), &x->type, out->n_axes) ? x : NULL;
}

/* The same, with a scale already in 1 / deviation. */
static oct_value *normalised_and_scaled(const oct_value *d, const oct_value *factor, oct_norm *out)
{
    oct_node *mul = oct_inner_producer(factor);

    if (!oct_node_is(mul, &oct_op_mul) || mul->n_in != 2) return NULL;
    for (int i = 0; i < 2; i++) {
        oct_value *x = normalised(d, mul->in[1 - i], true, out);

        if (!x || !oct_has_trailing_shape(mul->in[i], &x->type, out->n_axes)) continue;
        out->mul = mul;
        out->scale = mul->in[i];
        return x;
    }
    return NULL;
}

bool oct_moments_match(oct_node *n, oct_norm *out, oct_value **x)
{
    *out = (oct_norm){.last = n};
    *x = NULL;
    if (n->n_in != 2 || n->n_out != 1 || !n->in[0] || !n->in[1] || !n->out[0]) return false;
    if (n->out[0]->type.dtype != OCT_DTYPE_F32) return false;
    if (oct_node_is(n, &oct_op_div)) *x = normalised(n->in[0], n->in[1], false, out);
    for (int i = 0; i < 2 && !*x && oct_node_is(n, &oct_op_mul); i++) {
        *x = normalised(n->in[i], n->in[1 - i], true, out);
        if (!*x) *x = normalised_and_scaled(n->in[i], n->in[1 - i], out);
    }
    if (*x) out->d = *x;
    return *x != NULL;
}
