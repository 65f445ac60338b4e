/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: any equation with ellipsis, repeated labels and implicit output. */
#include <string.h>

#include "base/parallel.h"
#include "op/work.h"

enum { EQUATION };

#define MAX_OPERANDS 8
#define FIRST_DOT    52                         /* labels A-Z, a-z, then the dims of "..." */
#define N_LABELS     (FIRST_DOT + OCT_MAX_RANK) /* "..." is aligned at its right end */

/* An equation read against the shapes of its operands. */
typedef struct equation {
    int n_in;
    int rank[MAX_OPERANDS];
    int label[MAX_OPERANDS][OCT_MAX_RANK]; /* of each dim of each operand */
    int n_out, out[OCT_MAX_RANK];
    int64_t dim[N_LABELS]; /* of each label: -1 not known */
    int n_uses[N_LABELS];
    int n_dots; /* dims that "..." stands for */
} equation;

static int label_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return 26 + c - 'a';
    return -1;
}

/* The labels of one term "ab...c" into label[]; *dots is where "..." stands, or -1. */
static oct_status read_term(const oct_node *n, const char *s, size_t len, int *label, int *n_label,
                            int *dots)
{
    *n_label = 0;
    *dots = -1;
    for (size_t i = 0; i < len; i++) {
        if (s[i] == ' ') continue;
        if (s[i] == '.' && i + 2 < len && s[i + 1] == '.' && s[i + 2] == '.' && *dots < 0) {
            *dots = *n_label;
            i += 2;
            continue;
        }
        if (label_of(s[i]) < 0)
            return oct_node_fail(n, OCT_ERR_FORMAT, "equation has a '%c' it may not have", s[i]);
        if (*n_label == OCT_MAX_RANK)
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "equation has more than %d labels a term",
                                 OCT_MAX_RANK);
        label[(*n_label)++] = label_of(s[i]);
    }
    return OCT_OK;
}

/* Inserts the labels that "..." stands for between those before and after it. */
static void insert_dots(int *label, int n_label, int dots, int n_dots)
{
    memmove(label + dots + n_dots, label + dots, (size_t)(n_label - dots) * sizeof(*label));
    for (int i = 0; i < n_dots; i++)
        label[dots + i] = N_LABELS - n_dots + i;
}

static oct_status bind_dim(const oct_node *n, equation *e, int label, int64_t dim)
{
    int64_t *d = &e->dim[label];

    e->n_uses[label]++;
    if (*d == dim || dim == 1) {
        if (*d == -1 && e->n_uses[label] == 1) *d = dim;
        return OCT_OK;
    }
    if (dim < 0) {
        if (*d == 1) *d = -1;
        return OCT_OK;
    }
    if (*d > 1 || *d == 0)
        return oct_node_fail(n, OCT_ERR_SHAPE, "one label stands for sizes %lld and %lld",
                             (long long)*d, (long long)dim);
    *d = dim;
    return OCT_OK;
}

static oct_status read_operand(const oct_node *n, equation *e, const char *s, size_t len,
                               const oct_type *t)
{
    int *label = e->label[e->n_in];
    int n_label, dots, n_dots;

    OCT_TRY(read_term(n, s, len, label, &n_label, &dots));
    n_dots = t->rank - n_label;
    if (n_dots < 0 || (dots < 0 && n_dots > 0))
        return oct_node_fail(n, OCT_ERR_SHAPE, "equation names %d dims of operand %d, it has %d",
                             n_label, e->n_in, t->rank);
    if (dots >= 0) insert_dots(label, n_label, dots, n_dots);
    for (int d = 0; d < t->rank; d++)
        OCT_TRY(bind_dim(n, e, label[d], t->dim[d]));
    e->rank[e->n_in++] = t->rank;
    e->n_dots = OCT_MAX(e->n_dots, n_dots);
    return OCT_OK;
}

static oct_status read_output(const oct_node *n, equation *e, const char *s)
{
    bool seen[N_LABELS] = {false};
    int dots;

    if (s) {
        OCT_TRY(read_term(n, s, strlen(s), e->out, &e->n_out, &dots));
        if (e->n_out + e->n_dots > OCT_MAX_RANK && dots >= 0)
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "output has more than %d dims",
                                 OCT_MAX_RANK);
        if (dots >= 0) {
            insert_dots(e->out, e->n_out, dots, e->n_dots);
            e->n_out += e->n_dots;
        }
    } else { /* implicit: "..." and, in order, the labels that occur once */
        int once = 0;

        for (int l = 0; l < FIRST_DOT; l++)
            once += e->n_uses[l] == 1;
        if (once + e->n_dots > OCT_MAX_RANK)
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "output has more than %d dims",
                                 OCT_MAX_RANK);
        for (int i = 0; i < e->n_dots; i++)
            e->out[e->n_out++] = N_LABELS - e->n_dots + i;
        for (int l = 0; l < FIRST_DOT; l++)
            if (e->n_uses[l] == 1) e->out[e->n_out++] = l;
    }
    for (int i = 0; i < e->n_out; i++) {
        if (seen[e->out[i]] || e->n_uses[e->out[i]] == 0)
            return oct_node_fail(n, OCT_ERR_FORMAT, "an output label is %s",
                                 seen[e->out[i]] ? "given twice" : "not one of an operand");
        seen[e->out[i]] = true;
    }
    return OCT_OK;
}

static oct_status read_equation(const oct_node *n, const oct_type *const *in, equation *e)
{
    const char *s = n->attr[EQUATION].s, *arrow = strstr(s, "->"), *end;

    memset(e, 0, sizeof(*e));
    for (int l = 0; l < N_LABELS; l++)
        e->dim[l] = -1;
    end = arrow ? arrow : s + strlen(s);
    for (int i = 0; i < n->n_in; i++) {
        const char *comma = memchr(s, ',', (size_t)(end - s)), *stop = comma ? comma : end;

        OCT_TRY(read_operand(n, e, s, (size_t)(stop - s), in[i]));
        if (!comma != (i == n->n_in - 1))
            return oct_node_fail(n, OCT_ERR_FORMAT, "equation and inputs differ in number");
        s = comma ? comma + 1 : end;
    }
    return read_output(n, e, arrow ? arrow + 2 : NULL);
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *t;
    equation e;
    bool known = true;

    if (!oct_has(q->node, EQUATION)) return oct_infer_fail(q, OCT_ERR_FORMAT, "no equation");
    if (q->node->n_in > MAX_OPERANDS)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "more than %d operands", MAX_OPERANDS);
    for (int i = 0; i < q->node->n_in; i++) {
        OCT_TRY(oct_infer_need(q, i, &t));
        OCT_TRY(oct_infer_check(q, i, OCT_SET_NUMERIC));
        known = known && t->rank >= 0;
    }
    OCT_TRY(oct_infer_need(q, 0, &t));
    q->out[0] = oct_type_unknown(t->dtype);
    if (!known) return OCT_OK;
    OCT_TRY(read_equation(q->node, q->in, &e));
    q->out[0].rank = e.n_out;
    for (int i = 0; i < e.n_out; i++)
        q->out[0].dim[i] = e.dim[e.out[i]];
    return OCT_OK;
}

/* Loops: first over the output's labels, then over those that are summed. */
typedef struct einsum_job {
    int n_in, n_out, n_loops;
    int64_t dim[N_LABELS];
    int64_t step[N_LABELS][MAX_OPERANDS];
    const void *x[MAX_OPERANDS];
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

static void add_loop(const equation *e, const oct_type *const *in, int label, einsum_job *j)
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
    bool is_out[N_LABELS] = {false}, empty = false;
    oct_infer q;
    equation e;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_args_infer(a, &q));
    OCT_TRY(read_equation(a->node, q.in, &e));
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
    for (int l = 0; l < N_LABELS; l++)
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
    [EQUATION] = {.name = "equation", .kind = OCT_ATTR_STRING, .required = true},
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
    .flow = OCT_FLOW_STOP,
};
