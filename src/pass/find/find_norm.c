/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation over trailing dims, written out in small operators. */
#include "pass/find/find_norm.h"

#include <string.h>

#include "op/op.h"
#include "pass/find/formula.h"
#include "pass/rewrite.h"

int oct_trailing_axes(const oct_node *n)
{
    const int rank = n->in[0]->type.rank;
    int64_t axes[OCT_MAX_RANK];
    unsigned seen = 0;
    int k;

    if (rank < 1 || n->n_in != 2) return 0;
    if (!oct_const_ints(oct_node_const(n, 1), axes, OCT_MAX_RANK, &k) || k < 1) return 0;
    for (int i = 0; i < k; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];

        if (axis < rank - k || axis >= rank) return 0;
        seen |= 1u << axis;
    }
    for (int i = rank - k; i < rank; i++)
        if (!(seen >> i & 1u)) return 0;
    return k;
}

/* The same, if the dims are kept as ones. */
static int trailing_axes(const oct_node *n)
{
    const oct_attr *keep = oct_node_attr(n, "keepdims");

    return keep && keep->i != 1 ? 0 : oct_trailing_axes(n);
}

bool oct_is_trailing_mean(const oct_value *v, const oct_value *x, int n_axes)
{
    const oct_node *n = oct_inner_producer(v);

    return oct_node_is(n, &oct_op_reduce_mean) && n->in[0] == x && trailing_axes(n) == n_axes;
}

oct_value *oct_under_root(const oct_value *v, bool inverse)
{
    const oct_node *n = oct_inner_producer(v);
    double c;

    if (oct_node_is(n, &oct_op_pow) && oct_const_scalar(n->in[1], &c))
        return c == (inverse ? -0.5 : 0.5) ? n->in[0] : NULL;
    if (inverse) {
        if (oct_node_is(n, &oct_op_reciprocal)) return oct_under_root(n->in[0], false);
        if (oct_node_is(n, &oct_op_div) && oct_const_scalar(n->in[0], &c) && c == 1)
            return oct_under_root(n->in[1], false);
        return NULL;
    }
    return oct_node_is(n, &oct_op_sqrt) ? n->in[0] : NULL;
}

bool oct_is_square(const oct_value *v, const oct_value *d, int *n_readers)
{
    const oct_node *n = oct_inner_producer(v);
    double c;

    if (!n || n->n_in != 2 || n->in[0] != d) return false;
    *n_readers = oct_node_is(n, &oct_op_mul) ? 2 : 1;
    if (*n_readers == 2) return n->in[1] == d;
    return oct_node_is(n, &oct_op_pow) && oct_const_scalar(n->in[1], &c) && c == 2;
}

/* Is root the square root of mean(d * d) + eps? */
static bool is_rms(oct_value *d, const oct_value *root, bool inverse, oct_norm *out)
{
    const oct_value *u = oct_under_root(root, inverse);
    const oct_node *mean;
    oct_value *variance;
    double eps;
    int n_readers;

    if (!u || !oct_is_plus(u, &eps, &variance) || eps < 0) return false;
    mean = oct_inner_producer(variance);
    if (!oct_node_is(mean, &oct_op_reduce_mean)) return false;
    *out = (oct_norm){.d = d, .eps = eps, .n_axes = trailing_axes(mean)};
    if (!out->n_axes || !oct_is_square(mean->in[0], d, &n_readers)) return false;
    out->n_readers = n_readers + 1;
    return true;
}

bool oct_norm_match(oct_node *n, oct_norm *out)
{
    bool is_match = false;

    if (n->n_in != 2 || n->n_out != 1 || !n->in[0] || !n->in[1] || !n->out[0]) return false;
    if (n->out[0]->type.dtype != OCT_DTYPE_F32) return false;
    if (oct_node_is(n, &oct_op_div)) is_match = is_rms(n->in[0], n->in[1], false, out);
    if (oct_node_is(n, &oct_op_mul))
        is_match = is_rms(n->in[0], n->in[1], true, out) || is_rms(n->in[1], n->in[0], true, out);
    if (is_match) out->last = n;
    return is_match;
}

bool oct_has_trailing_shape(const oct_value *v, const oct_type *x, int n_axes)
{
    const oct_type *t = &v->type;
    const int ones = t->rank - n_axes;

    if (t->dtype != OCT_DTYPE_F32 || ones < 0 || t->rank > x->rank) return false;
    if (ones > 0 && !v->data) return false;
    for (int i = 0; i < ones; i++)
        if (t->dim[i] != 1) return false;
    for (int i = 0; i < n_axes; i++)
        if (t->dim[ones + i] < 1 || t->dim[ones + i] != x->dim[x->rank - n_axes + i]) return false;
    return true;
}

/* The node of this operator that follows, and what it puts in. */
static oct_node *next_of(const oct_norm *m, const oct_op *op, oct_value **with)
{
    oct_value *v = m->last->out[0];
    oct_node *n = oct_sole_user(v);

    if (!oct_node_is(n, op) || n->n_in != 2) return NULL;
    *with = n->in[n->in[0] == v ? 1 : 0];
    return *with && oct_has_trailing_shape(*with, &m->d->type, m->n_axes) ? n : NULL;
}

void oct_norm_extend(oct_norm *m, bool wants_bias)
{
    if (!m->mul && (m->mul = next_of(m, &oct_op_mul, &m->scale))) m->last = m->mul;
    if (!wants_bias) return;
    if ((m->add = next_of(m, &oct_op_add, &m->bias))) m->last = m->add;
}

oct_node *oct_norm_skip(const oct_norm *m, oct_node *n)
{
    while (n && (n == m->mul || n == m->add))
        n = n->next;
    return n;
}

static oct_status make_ones(const oct_norm *m, oct_value **out)
{
    const oct_type *x = &m->d->type;
    const oct_type t = oct_type_make(OCT_DTYPE_F32, m->n_axes, x->dim + x->rank - m->n_axes);
    const int64_t len = oct_type_len(&t);
    oct_tensor *ones = NULL;

    OCT_TRY(oct_tensor_make(m->last->graph->ctx, &t, &ones));
    for (int64_t i = 0; i < len; i++)
        ((float *)ones->data)[i] = 1;
    *out = oct_const_for(m->last, "scale", ones);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

/* A constant without the ones in front of its shape. */
static oct_status drop_ones(const oct_norm *m, const char *role, oct_value **v)
{
    const int ones = *v ? (*v)->type.rank - m->n_axes : 0;
    oct_tensor *t = NULL;
    oct_type type;

    if (ones <= 0) return OCT_OK;
    type = oct_type_make(OCT_DTYPE_F32, m->n_axes, (*v)->type.dim + ones);
    OCT_TRY(oct_tensor_make(m->last->graph->ctx, &type, &t));
    memcpy(t->data, (*v)->data->data, (size_t)oct_type_len(&type) * sizeof(float));
    *v = oct_const_for(m->last, role, t);
    return *v ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_norm_replace(const oct_norm *m, const oct_op *op, oct_value *x)
{
    oct_value *in[3] = {x, m->mul ? m->scale : NULL, m->add ? m->bias : NULL};
    oct_node *made;

    if (!in[1]) OCT_TRY(make_ones(m, &in[1]));
    OCT_TRY(drop_ones(m, "scale", &in[1]));
    OCT_TRY(drop_ones(m, "bias", &in[2]));
    OCT_TRY(oct_node_become(m->last, op, in, in[2] ? 3 : 2, &made));
    OCT_TRY(oct_node_set_int(made, "axis", -m->n_axes));
    return oct_node_set_f32(made, "epsilon", (float)m->eps);
}
