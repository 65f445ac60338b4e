/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of Attention, of ordinary nodes: probabilities are computed again, then go back
 * through both products. Heads that share keys are rows of one product, so that the sum over them
 * is part of it.
 */
#include <math.h>
#include <string.h>

#include "op/grad/rules.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, N_VALID };
enum { Y, PRESENT_K, PRESENT_V, QK };

typedef struct job {
    const oct_grad_args *a;
    oct_builder *b;
    oct_dtype dtype;
    bool packed; /* 3-D operands: heads side by side in the last axis */
    int64_t batch, q_heads, kv_heads, q_len, past, total, size, v_size;
    double scale, softcap;
    oct_value *q;             /* [batch x kv_heads x rows x size] */
    oct_value *keys, *values; /* [batch x kv_heads x total x ..] */
    oct_value *capped;        /* tanh of the scores; NULL: no soft cap */
    oct_value *p;             /* probabilities [batch x q_heads x q_len x total] */
} job;

static int64_t int_attr(const oct_node *n, const char *name, int64_t fallback)
{
    const oct_attr *v = oct_node_attr(n, name);

    return v ? v->i : fallback;
}

static double f32_attr(const oct_node *n, const char *name, double fallback)
{
    const oct_attr *v = oct_node_attr(n, name);

    return v ? (double)v->f : fallback;
}

static void read_job(const oct_grad_args *a, job *j)
{
    const oct_node *n = a->node;
    const oct_type *q = &n->in[Q]->type, *k = &n->in[K]->type, *v = &n->in[V]->type;
    const oct_value *past = oct_node_in(n, PAST_K);

    *j = (job){.a = a, .b = a->b, .dtype = q->dtype, .packed = q->rank == 3, .batch = q->dim[0]};
    j->q_heads = j->packed ? int_attr(n, "q_num_heads", 1) : q->dim[1];
    j->kv_heads = j->packed ? int_attr(n, "kv_num_heads", 1) : k->dim[1];
    j->q_len = q->dim[q->rank - 2];
    j->size = q->dim[q->rank - 1] / (j->packed ? j->q_heads : 1);
    j->v_size = v->dim[v->rank - 1] / (j->packed ? j->kv_heads : 1);
    j->past = past ? past->type.dim[2] : 0;
    j->total = j->past + k->dim[k->rank - 2];
    j->scale = f32_attr(n, "scale", 1 / sqrt((double)j->size));
    j->softcap = f32_attr(n, "softcap", 0);
}

static oct_value *reshape(const job *j, oct_value *v, int64_t d0, int64_t d1, int64_t d2,
                          int64_t d3)
{
    const oct_type t = oct_type_make(j->dtype, 4, (int64_t[]){d0, d1, d2, d3});

    return j->b->status ? NULL : oct_grad_reshape(j->b, v, &t);
}

/* One of Q, K, V (or y) as [batch x heads x length x size]. */
static oct_value *unpack(const job *j, oct_value *v, int64_t heads, int64_t size)
{
    if (!j->packed || j->b->status) return v;
    v = reshape(j, v, j->batch, v->type.dim[1], heads, size);
    return oct_grad_transpose(j->b, v, (int64_t[]){0, 2, 1, 3});
}

/* Back to the operand's shape. */
static oct_value *pack(const job *j, oct_value *v, const oct_value *like)
{
    if (j->packed) v = oct_grad_transpose(j->b, v, (int64_t[]){0, 2, 1, 3});
    return j->b->status ? NULL : oct_grad_reshape(j->b, v, &like->type);
}

/* Queries of all heads that share keys, one after the other. */
static oct_value *as_rows(const job *j, oct_value *v, int64_t size)
{
    return reshape(j, v, j->batch, j->kv_heads, j->q_heads / j->kv_heads * j->q_len, size);
}

static oct_value *as_scores(const job *j, oct_value *v)
{
    return reshape(j, v, j->batch, j->q_heads, j->q_len, j->total);
}

static oct_value *swap(const job *j, oct_value *v)
{
    return oct_grad_transpose(j->b, v, (int64_t[]){0, 1, 3, 2});
}

static oct_value *with_past(const job *j, int i, int64_t size)
{
    const oct_node *n = j->a->node;
    oct_value *now = unpack(j, n->in[K + i], j->kv_heads, size);
    oct_node *concat;

    if (!oct_node_in(n, PAST_K)) return now;
    concat = oct_emit_node(j->b, &oct_op_concat, (oct_value *[]){n->in[PAST_K + i], now}, 2, 1);
    oct_emit_int(j->b, concat, "axis", 2);
    return oct_emitted(j->b, concat);
}

/* Which keys a query may see by its place, as a constant; NULL: all. */
static oct_value *visible(const job *j)
{
    const oct_node *n = j->a->node;
    const int64_t left = int_attr(n, "left_window_size", -1);
    const int64_t right = int_attr(n, "right_window_size", -1);
    const bool is_causal = int_attr(n, "is_causal", 0) != 0;
    const oct_type t = oct_type_make(OCT_DTYPE_BOOL, 2, (int64_t[]){j->q_len, j->total});
    oct_value *v;

    if ((!is_causal && left < 0 && right < 0) || !(v = oct_grad_filled(j->b, &t, 0))) return NULL;
    for (int64_t i = 0; i < j->q_len; i++)
        for (int64_t k = 0; k < j->total; k++) {
            const int64_t ahead = k - i - j->past;

            ((bool *)v->data->data)[i * j->total + k] = !(is_causal && ahead > 0) &&
                                                        !(left >= 0 && -ahead > left) &&
                                                        !(right >= 0 && ahead > right);
        }
    return v;
}

/* Probabilities. A query that sees nothing has none: its softmax is not a number, and not taken. */
static void forward(job *j)
{
    const oct_grad_args *a = j->a;
    const oct_dtype t = j->dtype;
    oct_value *mask = oct_node_in(a->node, MASK), *keep = visible(j), *s;

    j->q = as_rows(j, unpack(j, a->node->in[Q], j->q_heads, j->size), j->size);
    j->keys = with_past(j, 0, j->size);
    j->values = with_past(j, 1, j->v_size);
    s = OCT_EMIT2(mat_mul, oct_grad_scale(j->b, j->q, j->scale), swap(j, j->keys));
    s = as_scores(j, s);
    if (mask && mask->type.dtype != OCT_DTYPE_BOOL) {
        oct_value *seen;

        mask = oct_grad_cast(j->b, mask, t);
        seen = OCT_EMIT2(greater, mask, oct_scalar_of(j->b, t, -(double)INFINITY));
        s = OCT_EMIT2(add, s, mask);
        keep = keep ? OCT_EMIT2(and, keep, seen) : seen;
    } else if (mask) {
        keep = keep ? OCT_EMIT2(and, keep, mask) : mask;
    }
    if (j->softcap > 0) {
        j->capped = OCT_EMIT1(tanh, oct_grad_scale(j->b, s, 1 / j->softcap));
        s = oct_grad_scale(j->b, j->capped, j->softcap);
    }
    if (keep) s = OCT_EMIT3(where, keep, s, oct_scalar_of(j->b, t, -(double)INFINITY));
    j->p = OCT_EMIT1(softmax, s);
    if (keep) j->p = OCT_EMIT3(where, keep, j->p, oct_scalar_of(j->b, t, 0));
}

/* The gradient of the scores before mask and soft cap, from that of the probabilities. */
static oct_value *backward_scores(const job *j, oct_value *dp)
{
    const oct_grad_args *a = j->a;
    oct_value *ds = OCT_EMIT2(softmax_grad, j->p, as_scores(j, dp)), *mask;

    if (j->capped) {
        oct_value *one = oct_scalar_of(j->b, j->dtype, 1);

        ds = OCT_EMIT2(mul, ds, OCT_EMIT2(sub, one, OCT_EMIT2(mul, j->capped, j->capped)));
    }
    mask = oct_node_in(a->node, MASK);
    if (mask && a->wanted[MASK]) a->dx[MASK] = oct_grad_sum_to(j->b, ds, mask);
    return oct_grad_scale(j->b, as_rows(j, ds, j->total), j->scale);
}

/* What goes to keys or values, also as results, split between past and new ones. */
static void hand_out(const job *j, int i, oct_value *d)
{
    const oct_grad_args *a = j->a;
    const oct_node *n = a->node;
    oct_value *more = n->n_out > PRESENT_K + i ? a->dy[PRESENT_K + i] : NULL;

    if (more) d = d ? OCT_EMIT2(add, d, more) : more;
    if (!d) return;
    if (j->past && a->wanted[PAST_K + i]) a->dx[PAST_K + i] = oct_grad_part(j->b, d, 2, 0, j->past);
    if (!a->wanted[K + i]) return;
    if (j->past) d = oct_grad_part(j->b, d, 2, j->past, j->total);
    a->dx[K + i] = pack(j, d, n->in[K + i]);
}

static oct_status check(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const oct_value *mask = oct_node_in(n, MASK), *k = n->in[K], *past = oct_node_in(n, PAST_K);
    const int64_t total = k->type.dim[k->type.rank - 2] + (past ? past->type.dim[2] : 0);

    if (oct_node_in(n, N_VALID))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "with nonpad_kv_seqlen it has no gradient: "
                             "give a mask");
    if (n->n_out > QK && a->dy[QK])
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "its scores as a result have no gradient");
    if (mask && mask->type.dim[mask->type.rank - 1] != 1 &&
        mask->type.dim[mask->type.rank - 1] != total)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "with a mask shorter than the keys it has no gradient");
    return OCT_OK;
}

oct_status oct_grad_attention(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const bool has_past = oct_node_in(n, PAST_K) != NULL;
    oct_value *dk = NULL, *dv = NULL;
    job j;

    OCT_TRY(check(a));
    read_job(a, &j);
    if (a->dy[Y]) {
        oct_value *dy = as_rows(&j, unpack(&j, a->dy[Y], j.q_heads, j.v_size), j.v_size), *ds;

        forward(&j);
        if (a->wanted[V] || (has_past && a->wanted[PAST_V]))
            dv = OCT_EMIT2(mat_mul, swap(&j, as_rows(&j, j.p, j.total)), dy);
        ds = backward_scores(&j, OCT_EMIT2(mat_mul, dy, swap(&j, j.values)));
        if (a->wanted[Q]) {
            oct_value *dq = OCT_EMIT2(mat_mul, ds, j.keys);

            dq = reshape(&j, dq, j.batch, j.q_heads, j.q_len, j.size);
            a->dx[Q] = pack(&j, dq, n->in[Q]);
        }
        if (a->wanted[K] || (has_past && a->wanted[PAST_K]))
            dk = OCT_EMIT2(mat_mul, swap(&j, ds), j.q);
    }
    OCT_TRY(a->b->status);
    hand_out(&j, 0, dk);
    hand_out(&j, 1, dv);
    return OCT_OK;
}
