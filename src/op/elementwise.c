/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of elementwise operators: broadcasting, type conversion in pieces, threads. */
#include "op/elementwise.h"

#include <string.h>

#include "base/parallel.h"

/* Elements converted at a time; even, so that packed types are never torn. */
#define PIECE 512

typedef union piece {
    float f32[PIECE];
    double f64[PIECE];
    int64_t i64[PIECE];
} piece;

/* --- broadcasting --- */

static int64_t operand_stride(const oct_type *t, int32_t axis, int32_t out_rank)
{
    const int32_t own = axis - (out_rank - t->rank);

    if (own < 0 || t->dim[own] == 1) return 0;
    return oct_type_span(t, own + 1, t->rank);
}

void oct_bcast_init(oct_bcast *b, const oct_type *out, int n_in, const oct_type *const *in)
{
    *b = (oct_bcast){.n_in = n_in};
    for (int32_t i = 0; i < out->rank; i++) {
        const int last = b->rank - 1;
        int64_t s[OCT_BCAST_MAX];
        bool merge = b->rank > 0;

        if (out->dim[i] == 1) continue;
        for (int k = 0; k < n_in; k++) {
            s[k] = operand_stride(in[k], i, out->rank);
            merge = merge && b->stride[k][last] == s[k] * out->dim[i];
        }
        if (!merge) b->dim[b->rank++] = 1;
        b->dim[b->rank - 1] *= out->dim[i];
        for (int k = 0; k < n_in; k++)
            b->stride[k][b->rank - 1] = s[k];
    }
    if (b->rank == 0) b->dim[b->rank++] = 1;
}

void oct_bcast_walk(const oct_bcast *b, int64_t begin, int64_t end, oct_bcast_fn fn, void *arg)
{
    const int inner = b->rank - 1;
    int64_t pos[OCT_MAX_RANK], off[OCT_BCAST_MAX] = {0}, rest = begin;

    if (begin >= end) return;
    for (int d = inner; d >= 0; d--) {
        pos[d] = rest % b->dim[d];
        rest /= b->dim[d];
        for (int k = 0; k < b->n_in; k++)
            off[k] += pos[d] * b->stride[k][d];
    }
    for (;;) {
        const int64_t n = OCT_MIN(b->dim[inner] - pos[inner], end - begin);

        fn(arg, begin, off, n);
        if ((begin += n) >= end) return;
        /* The row is done: back to its start, and on to the next. */
        for (int k = 0; k < b->n_in; k++)
            off[k] -= pos[inner] * b->stride[k][inner];
        pos[inner] = 0;
        for (int d = inner - 1; d >= 0; d--) {
            const bool carry = ++pos[d] == b->dim[d];

            for (int k = 0; k < b->n_in; k++)
                off[k] += carry ? -(b->dim[d] - 1) * b->stride[k][d] : b->stride[k][d];
            if (!carry) break;
            pos[d] = 0;
        }
    }
}

/* --- the type a loop works in --- */

typedef enum work {
    WORK_F32,
    WORK_F64,
    WORK_I64,
    WORK_U64,
} work;

static work work_type(oct_dtype t)
{
    if (t == OCT_DTYPE_F64) return WORK_F64;
    if (t == OCT_DTYPE_U64) return WORK_U64;
    return oct_dtype_is_float(t) ? WORK_F32 : WORK_I64;
}

/* Is a tensor of this type an array of its work type? */
static bool is_native(oct_dtype t)
{
    return t == OCT_DTYPE_F32 || t == OCT_DTYPE_F64 || t == OCT_DTYPE_I64 || t == OCT_DTYPE_U64;
}

/* Elements [from, from + n) as an array of the work type: in place, or in *tmp. */
static const void *load(oct_dtype t, const void *src, int64_t from, int64_t n, piece *tmp)
{
    if (is_native(t)) return (const char *)src + from * (int64_t)oct_dtype_size(t);
    if (oct_dtype_is_float(t))
        oct_load_f32(t, src, from, n, tmp->f32);
    else
        oct_load_i64(t, src, from, n, tmp->i64);
    return tmp;
}

static void store(oct_dtype t, void *dst, int64_t from, int64_t n, const piece *tmp)
{
    if (oct_dtype_is_float(t))
        oct_store_f32(t, dst, from, n, tmp->f32);
    else
        oct_store_i64(t, dst, from, n, tmp->i64);
}

/* Can loops write straight into the output? */
static bool writes_in_place(oct_dtype out, bool to_bool)
{
    return to_bool || is_native(out);
}

static oct_status no_loop(const oct_args *a, oct_dtype t)
{
    return oct_node_fail(a->node, OCT_ERR_TYPE, "does not work on %s", oct_dtype_name(t));
}

/* --- one operand --- */

typedef struct unary_job {
    oct_unary_fn fn;
    const void *p, *x;
    void *y;
    oct_dtype in, out;
    bool in_place;
} unary_job;

static void unary_range(void *arg, int64_t begin, int64_t end)
{
    const unary_job *j = arg;
    const int64_t out_size = (int64_t)oct_dtype_size(j->out);
    const int64_t step = is_native(j->in) && j->in_place ? end - begin : PIECE;
    piece x, y;

    for (int64_t i = begin; i < end; i += step) {
        const int64_t n = OCT_MIN(step, end - i);
        const void *xs = load(j->in, j->x, i, n, &x);

        if (j->in_place) {
            j->fn(j->p, xs, (char *)j->y + i * out_size, n);
        } else {
            j->fn(j->p, xs, &y, n);
            store(j->out, j->y, i, n, &y);
        }
    }
}

oct_status oct_unary_run(const oct_args *a, const oct_unary *f, const void *p)
{
    const oct_unary_fn fns[] = {f->f32, f->f64, f->i64, f->u64 ? f->u64 : f->i64};
    const oct_tensor *x = a->in[0];
    oct_tensor *y = a->out[0];
    unary_job j = {.p = p,
                   .x = x->data,
                   .y = y->data,
                   .in = x->type.dtype,
                   .out = y->type.dtype,
                   .in_place = writes_in_place(y->type.dtype, f->to_bool)};

    j.fn = fns[work_type(j.in)];
    if (!j.fn) return no_loop(a, j.in);
    oct_parallel_for(a->n_threads, oct_tensor_len(y), OCT_MAP_GRAIN, unary_range, &j);
    return OCT_OK;
}

/* --- two operands --- */

typedef struct binary_job {
    oct_bcast b;
    oct_binary_fn fn;
    const void *p, *x, *y;
    void *z;
    oct_dtype in, out;
    bool in_place;
} binary_job;

static void binary_row(void *arg, int64_t at, const int64_t off[], int64_t n)
{
    const binary_job *j = arg;
    const int64_t out_size = (int64_t)oct_dtype_size(j->out);
    const int64_t sx = j->b.stride[0][j->b.rank - 1], sy = j->b.stride[1][j->b.rank - 1];
    const int64_t step = is_native(j->in) && j->in_place ? n : PIECE;
    piece x, y, z;

    for (int64_t i = 0; i < n; i += step) {
        const int64_t m = OCT_MIN(step, n - i);
        const void *xs = load(j->in, j->x, off[0] + i * sx, sx ? m : 1, &x);
        const void *ys = load(j->in, j->y, off[1] + i * sy, sy ? m : 1, &y);

        if (j->in_place) {
            j->fn(j->p, xs, sx, ys, sy, (char *)j->z + (at + i) * out_size, m);
        } else {
            j->fn(j->p, xs, sx, ys, sy, &z, m);
            store(j->out, j->z, at + i, m, &z);
        }
    }
}

static void binary_range(void *arg, int64_t begin, int64_t end)
{
    binary_job *j = arg;

    oct_bcast_walk(&j->b, begin, end, binary_row, j);
}

oct_status oct_binary_apply(const oct_args *a, const oct_binary *f, const void *p,
                            const oct_tensor *x, const oct_tensor *y)
{
    const oct_binary_fn fns[] = {f->f32, f->f64, f->i64, f->u64 ? f->u64 : f->i64};
    oct_tensor *z = a->out[0];
    binary_job j = {.p = p,
                    .x = x->data,
                    .y = y->data,
                    .z = z->data,
                    .in = x->type.dtype,
                    .out = z->type.dtype,
                    .in_place = writes_in_place(z->type.dtype, f->to_bool)};

    j.fn = fns[work_type(j.in)];
    if (!j.fn || y->type.dtype != j.in) return no_loop(a, y->type.dtype);
    oct_bcast_init(&j.b, &z->type, 2, (const oct_type *const[]){&x->type, &y->type});
    oct_parallel_for(a->n_threads, oct_tensor_len(z), OCT_MAP_GRAIN, binary_range, &j);
    return OCT_OK;
}

oct_status oct_binary_run(const oct_args *a, const oct_binary *f, const void *p)
{
    return oct_binary_apply(a, f, p, a->in[0], a->in[1]);
}

oct_status oct_variadic_run(const oct_args *a, const oct_binary *f, const void *p)
{
    if (a->node->n_in == 1) {
        if (a->out[0]->size > 0) memcpy(a->out[0]->data, a->in[0]->data, a->out[0]->size);
        return OCT_OK;
    }
    OCT_TRY(oct_binary_apply(a, f, p, a->in[0], a->in[1]));
    for (int32_t i = 2; i < a->node->n_in; i++)
        OCT_TRY(oct_binary_apply(a, f, p, a->out[0], a->in[i]));
    return OCT_OK;
}

/* --- shape functions --- */

oct_status oct_shape_same_float(const oct_infer *q)
{
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    return oct_shape_same(q);
}

oct_status oct_shape_same_numeric(const oct_infer *q)
{
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC));
    return oct_shape_same(q);
}

static oct_status broadcast_of(const oct_infer *q, unsigned set)
{
    for (int i = 0; i < q->node->n_in; i++)
        OCT_TRY(oct_infer_check(q, i, set));
    return oct_shape_broadcast(q);
}

oct_status oct_shape_broadcast_float(const oct_infer *q)
{
    return broadcast_of(q, OCT_SET_FLOAT);
}

oct_status oct_shape_broadcast_numeric(const oct_infer *q)
{
    return broadcast_of(q, OCT_SET_NUMERIC);
}
