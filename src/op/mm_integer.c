/* SPDX-License-Identifier: Apache-2.0 */
/* Integer matrix products: operands widened and laid out by rows, then dot products. */
#include "op/mm_integer.h"

#include <string.h>

#include "base/parallel.h"
#include "op/elementwise.h"
#include "op/idot.h"

/* Rows, columns and leading dims of one side. */
typedef struct side {
    oct_type batch;
    int64_t rows, cols;
} side;

static side read_side(const oct_type *t, bool is_left, bool trans)
{
    side s = {.batch = {.rank = 0}};

    if (t->rank == 1) {
        s.rows = is_left ? 1 : t->dim[0];
        s.cols = is_left ? t->dim[0] : 1;
        return s;
    }
    s.batch = oct_type_make(t->dtype, t->rank - 2, t->dim);
    s.rows = t->dim[t->rank - (trans ? 1 : 2)];
    s.cols = t->dim[t->rank - (trans ? 2 : 1)];
    return s;
}

oct_status oct_mm_integer_shape(const oct_node *n, const oct_type *a, const oct_type *b,
                                oct_dtype dtype, oct_type *out)
{
    side l, r;

    *out = oct_type_unknown(dtype);
    if (a->rank < 0 || b->rank < 0) return OCT_OK;
    if (a->rank == 0 || b->rank == 0)
        return oct_node_fail(n, OCT_ERR_SHAPE, "cannot multiply a scalar");
    l = read_side(a, true, false);
    r = read_side(b, false, false);
    if (l.cols >= 0 && r.rows >= 0 && l.cols != r.rows)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%lld columns on the left, %lld rows on the right",
                             (long long)l.cols, (long long)r.rows);
    OCT_TRY(oct_broadcast(n, &l.batch, &r.batch, out));
    if (a->rank > 1) out->dim[out->rank++] = l.rows;
    if (b->rank > 1) out->dim[out->rank++] = r.cols;
    return OCT_OK;
}

/* The batch dims of the product, and how many there are. */
static int64_t batches(const side *l, const side *r, oct_type *out)
{
    *out = l->batch.rank >= r->batch.rank ? l->batch : r->batch;
    for (int i = 1; i <= OCT_MIN(l->batch.rank, r->batch.rank); i++)
        if (out->dim[out->rank - i] == 1)
            out->dim[out->rank - i] = out->rank == l->batch.rank ? r->batch.dim[r->batch.rank - i]
                                                                 : l->batch.dim[l->batch.rank - i];
    return oct_type_len(out);
}

void oct_mm_integer_sizes(const oct_type *a, const oct_type *b, bool trans_a, bool trans_b,
                          oct_mm_integer *p)
{
    const side l = read_side(a, true, trans_a), r = read_side(b, false, trans_b);
    oct_type all;

    p->batch = batches(&l, &r, &all);
    p->m = l.rows;
    p->k = l.cols;
    p->n = r.cols;
}

/*
 * All matrices of an operand as rows of k codes without their zero points; zero[] has one number
 * for each row. `dense`: rows are dense in the operand already.
 */
static int16_t *widen(const oct_args *args, const oct_tensor *t, int64_t rows, int64_t k,
                      const int32_t *zero, bool dense)
{
    const int64_t len = oct_tensor_len(t);
    int16_t *out = oct_args_scratch(args, (size_t)OCT_MAX(len, 1), sizeof(*out));

    for (int64_t i = 0; out && len > 0 && i < len / k; i++) {
        const int64_t matrix = i / rows, row = i % rows;

        oct_widen(t->type.dtype, t->data, dense ? i * k : matrix * rows * k + row, dense ? 1 : rows,
                  k, zero[row], out + i * k);
    }
    return out;
}

typedef struct job {
    const oct_mm_integer *p;
    const int16_t *a, *b;
    const int64_t *a_at, *b_at; /* which matrix each product uses */
} job;

/* One row of tasks is one row of one product. */
static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_mm_integer *p = j->p;

    for (int64_t at = begin, n; at < end; at += n) {
        const int64_t batch = at / p->m, row = at % p->m;

        n = OCT_MIN(end - at, p->m - row);
        oct_idot(n, j->a + (j->a_at[batch] * p->m + row) * p->k, p->k, p->n,
                 j->b + j->b_at[batch] * p->n * p->k, p->k, p->k, p->c + at * p->n, p->n);
    }
}

typedef struct places {
    int64_t *a, *b;
    int64_t step_a, step_b;
} places;

static void note_places(void *arg, int64_t at, const int64_t off[], int64_t n)
{
    const places *w = arg;

    for (int64_t i = 0; i < n; i++) {
        w->a[at + i] = off[0] + i * w->step_a;
        w->b[at + i] = off[1] + i * w->step_b;
    }
}

static oct_status find_places(const oct_args *args, const side *l, const side *r, job *j)
{
    oct_type all;
    const int64_t n = batches(l, r, &all);
    places w = {.a = oct_args_scratch(args, (size_t)OCT_MAX(n, 1), sizeof(int64_t)),
                .b = oct_args_scratch(args, (size_t)OCT_MAX(n, 1), sizeof(int64_t))};
    oct_bcast b;

    if (!w.a || !w.b) return OCT_ERR_MEMORY;
    oct_bcast_init(&b, &all, 2, (const oct_type *const[]){&l->batch, &r->batch});
    w.step_a = b.stride[0][b.rank - 1];
    w.step_b = b.stride[1][b.rank - 1];
    oct_bcast_walk(&b, 0, n, note_places, &w);
    j->a_at = w.a;
    j->b_at = w.b;
    return OCT_OK;
}

oct_status oct_mm_integer_run(const oct_args *args, const oct_tensor *a, const int32_t *a_zero,
                              const oct_tensor *b, const int32_t *b_zero, bool trans_a,
                              bool trans_b, oct_mm_integer *p)
{
    const side l = read_side(&a->type, true, trans_a), r = read_side(&b->type, false, trans_b);
    job j = {.p = p};
    int64_t len;

    oct_mm_integer_sizes(&a->type, &b->type, trans_a, trans_b, p);
    if (!oct_mul_i64(p->batch, p->m, &len) || !oct_mul_i64(len, p->n, &len))
        return oct_node_fail(args->node, OCT_ERR_SHAPE, "the product is too large");
    if (!p->c) p->c = oct_args_scratch(args, (size_t)OCT_MAX(len, 1), sizeof(*p->c));
    if (!p->c) return OCT_ERR_MEMORY;
    if (len > 0) memset(p->c, 0, (size_t)len * sizeof(*p->c));
    if (len == 0 || p->k == 0) return OCT_OK;
    OCT_TRY(find_places(args, &l, &r, &j));
    j.a = widen(args, a, p->m, p->k, a_zero, !trans_a);
    j.b = widen(args, b, p->n, p->k, b_zero, trans_b || b->type.rank == 1);
    if (!j.a || !j.b) return OCT_ERR_MEMORY;
    oct_parallel_for(args->n_threads, p->batch * p->m, 16, range, &j);
    return OCT_OK;
}
