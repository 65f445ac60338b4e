/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: any equation with ellipsis, repeated labels and implicit output. */
#include <string.h>

#include "base/parallel.h"
#include "op/einsum_equation.h"
#include "op/work.h"

static oct_status shape(const oct_infer *q)
{
    const oct_type *t;
    oct_einsum e;
    bool known = true;

    if (!oct_has(q->node, OCT_EINSUM_EQUATION))
        return oct_infer_fail(q, OCT_ERR_FORMAT, "no equation");
    if (q->node->n_in > OCT_EINSUM_OPERANDS)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "more than %d operands", OCT_EINSUM_OPERANDS);
    for (int i = 0; i < q->node->n_in; i++) {
        OCT_TRY(oct_infer_need(q, i, &t));
        OCT_TRY(oct_infer_check(q, i, OCT_SET_NUMERIC));
        known = known && t->rank >= 0;
    }
    OCT_TRY(oct_infer_need(q, 0, &t));
    q->out[0] = oct_type_unknown(t->dtype);
    if (!known) return OCT_OK;
    OCT_TRY(oct_einsum_read(q->node, q->in, &e));
    q->out[0].rank = e.n_out;
    for (int i = 0; i < e.n_out; i++)
        q->out[0].dim[i] = e.dim[e.out[i]];
    return OCT_OK;
}

/* Loops: first over the output's labels, then over those that are summed. */
typedef struct einsum_job {
    int n_in, n_out, n_loops;
    int64_t dim[OCT_EINSUM_LABELS];
    int64_t step[OCT_EINSUM_LABELS][OCT_EINSUM_OPERANDS];
    const void *x[OCT_EINSUM_OPERANDS];
    void *y;
} einsum_job;

#define T     float
#define ACC   double
#define FN(f) f##_f32
#include "op/einsum_kernel.inc"
#undef T
#undef FN
#define T     double
#define FN(f) f##_f64
#include "op/einsum_kernel.inc"
#undef T
#undef ACC
#undef FN
#define T     uint64_t /* wraps */
#define ACC   uint64_t
#define FN(f) f##_u64
#include "op/einsum_kernel.inc"
#undef T
#undef ACC
#undef FN

static void add_loop(const oct_einsum *e, const oct_type *const *in, int label, einsum_job *j)
{
    const int at = j->n_loops++;

    j->dim[at] = e->dim[label];
    for (int i = 0; i < e->n_in; i++) {
        int64_t step = 1;

        for (int d = e->rank[i] - 1; d >= 0; d--) {
            /* A label twice in one operand walks its diagonal. */
            if (e->label[i][d] == label && in[i]->dim[d] != 1) j->step[at][i] += step;
            step *= in[i]->dim[d];
        }
    }
}

/* Each operand's element in each product. */
static int64_t count_products(const einsum_job *j)
{
    int64_t n = j->n_in;

    for (int i = 0; i < j->n_loops; i++)
        if (!oct_mul_i64(n, j->dim[i], &n)) return INT64_MAX;
    return n;
}

static oct_status ref(const oct_args *a)
{
    static const oct_range_fn fns[] = {einsum_range_f32, einsum_range_f64, einsum_range_u64};
    const oct_work w = oct_work_of(a->out[0]->type.dtype);
    const int64_t n = oct_tensor_len(a->out[0]);
    einsum_job j = {.n_in = a->node->n_in};
    bool is_out[OCT_EINSUM_LABELS] = {false}, empty = false;
    oct_infer q;
    oct_einsum e;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_args_infer(a, &q));
    OCT_TRY(oct_einsum_read(a->node, q.in, &e));
    for (int i = 0; i < j.n_in; i++) {
        OCT_TRY(oct_work_in(a, i, w, &j.x[i]));
        empty = empty || oct_tensor_len(a->in[i]) == 0;
    }
    OCT_TRY(oct_work_out(a, 0, w, &j.y));
    for (int i = 0; i < e.n_out; i++) {
        add_loop(&e, q.in, e.out[i], &j);
        is_out[e.out[i]] = true;
    }
    j.n_out = e.n_out;
    for (int l = 0; l < OCT_EINSUM_LABELS; l++)
        if (e.n_uses[l] && !is_out[l]) add_loop(&e, q.in, l, &j);
    OCT_TRY(oct_args_spend(a, count_products(&j)));
    if (empty) /* sums over nothing */
        memset(a->out[0]->data, 0, a->out[0]->size);
    else
        oct_parallel_for(a->n_threads, n, 64, fns[w], &j);
    if (!empty) oct_work_done(a, 0, w, j.y);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [OCT_EINSUM_EQUATION] = {.name = "equation", .kind = OCT_ATTR_STRING, .required = true},
    {0},
};

const oct_op oct_op_einsum = {
    .name = "Einsum",
    .since = 12,
    .min_in = 1,
    .max_in = -1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = oct_grad_einsum,
    .flow = OCT_FLOW_STOP,
};
