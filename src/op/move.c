/* SPDX-License-Identifier: Apache-2.0 */
/* Strided copies by element size, with merged loops and tiles where the inner strides are large. */
#include "op/move.h"

#include <string.h>

#include "base/parallel.h"

enum {
    TILE = 32,         /* rows and columns copied together in a transposition */
    GRAIN = 64 * 1024, /* bytes a thread takes at a time */
};

void oct_move_init(oct_move *m)
{
    m->rank = 0;
    m->empty = false;
}

void oct_move_add(oct_move *m, int64_t n, int64_t src, int64_t dst)
{
    const int last = m->rank - 1;

    if (n == 1) return;
    if (n <= 0) m->empty = true;
    if (m->empty) return;
    if (m->rank && m->src[last] == n * src && m->dst[last] == n * dst) {
        m->n[last] *= n;
        m->src[last] = src;
        m->dst[last] = dst;
        return;
    }
    m->n[m->rank] = n;
    m->src[m->rank] = src;
    m->dst[m->rank++] = dst;
}

/* One block of rows: strides in elements here, of `rows` rows of `cols` elements. */
typedef struct block {
    int64_t rows, row_src, row_dst;
    int64_t cols, col_src, col_dst;
} block;

typedef struct pair {
    uint64_t a, b;
} pair;

/* memcpy of a known size is one instruction and needs no alignment. */
#define COPY_BLOCK(name, T)                                                                        \
    static void name(const block *b, const char *src, char *dst)                                   \
    {                                                                                              \
        const int64_t es = (int64_t)sizeof(T);                                                     \
        for (int64_t r = 0; r < b->rows; r++) {                                                    \
            const char *s = src + r * b->row_src * es;                                             \
            char *d = dst + r * b->row_dst * es;                                                   \
            for (int64_t c = 0; c < b->cols; c++) {                                                \
                T v;                                                                               \
                memcpy(&v, s + c * b->col_src * es, sizeof(T));                                    \
                memcpy(d + c * b->col_dst * es, &v, sizeof(T));                                    \
            }                                                                                      \
        }                                                                                          \
    }

COPY_BLOCK(copy_1, uint8_t)
COPY_BLOCK(copy_2, uint16_t)
COPY_BLOCK(copy_4, uint32_t)
COPY_BLOCK(copy_8, uint64_t)
COPY_BLOCK(copy_16, pair)

typedef void (*copy_fn)(const block *b, const char *src, char *dst);

typedef struct job {
    oct_move m;
    int64_t size; /* bytes of an element */
    const char *src;
    char *dst;
    int64_t rows; /* of the second innermost loop, in one block */
    int64_t n_blocks;
    bool tiled;
    copy_fn copy;
} job;

static copy_fn copy_for(int64_t size)
{
    switch (size) {
    case 1:
        return copy_1;
    case 2:
        return copy_2;
    case 4:
        return copy_4;
    case 8:
        return copy_8;
    default:
        return copy_16;
    }
}

static void run_block(const job *j, block *b, const char *src, char *dst)
{
    if (b->col_src == 1 && b->col_dst == 1) {
        for (int64_t r = 0; r < b->rows; r++)
            memcpy(dst + r * b->row_dst * j->size, src + r * b->row_src * j->size,
                   (size_t)(b->cols * j->size));
        return;
    }
    if (!j->tiled) {
        j->copy(b, src, dst);
        return;
    }
    /* A tile's reads and writes both stay within a few cache lines. */
    const int64_t cols = b->cols;
    for (int64_t c = 0; c < cols; c += TILE) {
        b->cols = OCT_MIN(TILE, cols - c);
        j->copy(b, src + c * b->col_src * j->size, dst + c * b->col_dst * j->size);
    }
    b->cols = cols;
}

/* Items are blocks: the block of the second innermost loop runs fastest. */
static void run_items(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_move *m = &j->m;
    const int outer = m->rank - 2;

    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % j->n_blocks * j->rows;
        int64_t rest = item / j->n_blocks;
        int64_t src = first * m->src[outer], dst = first * m->dst[outer];
        block b = {OCT_MIN(j->rows, m->n[outer] - first),
                   m->src[outer],
                   m->dst[outer],
                   m->n[outer + 1],
                   m->src[outer + 1],
                   m->dst[outer + 1]};

        for (int d = outer - 1; d >= 0; d--) {
            src += rest % m->n[d] * m->src[d];
            dst += rest % m->n[d] * m->dst[d];
            rest /= m->n[d];
        }
        run_block(j, &b, j->src + src * j->size, j->dst + dst * j->size);
    }
}

/* Puts loop `from` directly outside the innermost one. */
static void to_second(oct_move *m, int from)
{
    const int to = m->rank - 2;
    const int64_t n = m->n[from], src = m->src[from], dst = m->dst[from];

    for (int d = from; d < to; d++) {
        m->n[d] = m->n[d + 1];
        m->src[d] = m->src[d + 1];
        m->dst[d] = m->dst[d + 1];
    }
    m->n[to] = n;
    m->src[to] = src;
    m->dst[to] = dst;
}

/* There are always two inner loops, so that one kernel does everything. */
static void pad_rank(oct_move *m)
{
    while (m->rank < 2) {
        for (int d = m->rank; d > 0; d--) {
            m->n[d] = m->n[d - 1];
            m->src[d] = m->src[d - 1];
            m->dst[d] = m->dst[d - 1];
        }
        m->n[0] = 1;
        m->src[0] = m->dst[0] = 0;
        if (m->rank == 0) m->src[0] = m->dst[0] = 1;
        m->rank++;
    }
}

/* Packed elements share bytes, so they are written one after the other by one thread. */
static void run_packed(const oct_move *m, oct_dtype t, const void *src, int64_t src_at, void *dst,
                       int64_t dst_at)
{
    int64_t total = 1;

    for (int d = 0; d < m->rank; d++)
        total *= m->n[d];
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i, s = src_at, d = dst_at, v;

        for (int k = m->rank - 1; k >= 0; k--) {
            s += rest % m->n[k] * m->src[k];
            d += rest % m->n[k] * m->dst[k];
            rest /= m->n[k];
        }
        oct_load_i64(t, src, s, 1, &v);
        oct_store_i64(t, dst, d, 1, &v);
    }
}

void oct_move_run(const oct_move *m, oct_dtype t, const void *src, int64_t src_at, void *dst,
                  int64_t dst_at, int n_threads)
{
    const int64_t size = (int64_t)oct_dtype_size(t);
    job j = {.m = *m, .size = size, .copy = copy_for(size)};
    int64_t items = 1;

    if (m->empty) return;
    if (size == 0) {
        run_packed(m, t, src, src_at, dst, dst_at);
        return;
    }
    pad_rank(&j.m);
    j.src = (const char *)src + src_at * size;
    j.dst = (char *)dst + dst_at * size;

    const int inner = j.m.rank - 1;
    if (j.m.src[inner] != 1)
        for (int d = 0; d < inner && !j.tiled; d++)
            if (j.m.src[d] == 1 && j.m.n[d] >= 4) {
                to_second(&j.m, d);
                j.tiled = true;
            }
    j.rows = j.tiled ? TILE : OCT_MAX(1, GRAIN / (j.m.n[inner] * size));
    j.n_blocks = (j.m.n[inner - 1] + j.rows - 1) / j.rows;
    items = j.n_blocks;
    for (int d = 0; d < inner - 1; d++)
        items *= j.m.n[d];
    const int64_t block_bytes = OCT_MIN(j.rows, j.m.n[inner - 1]) * j.m.n[inner] * size;
    oct_parallel_for(n_threads, items, OCT_MAX(1, GRAIN / block_bytes), run_items, &j);
}

typedef struct mapped {
    const oct_type *y;
    oct_dtype t;
    const void *src;
    void *dst;
    const int64_t *const *map;
    int64_t stride[OCT_MAX_RANK]; /* of x */
    int32_t rank;                 /* the axes that loop; the inner ones are copied in one piece */
    int64_t piece;
} mapped;

/* Items are rows of the last looping axis. */
static void run_mapped(void *arg, int64_t begin, int64_t end)
{
    const mapped *j = arg;
    const int32_t last = j->rank - 1;
    const int64_t n = j->y->dim[last];
    const int64_t *map = j->map[last];

    for (int64_t row = begin; row < end; row++) {
        int64_t rest = row, from = 0;
        bool skip = false;

        for (int32_t d = last - 1; d >= 0; d--) {
            const int64_t i = rest % j->y->dim[d], k = j->map[d] ? j->map[d][i] : i;

            rest /= j->y->dim[d];
            skip |= k < 0;
            from += k * j->stride[d];
        }
        for (int64_t i = 0; i < n && !skip; i++) {
            const int64_t k = map ? map[i] : i;

            if (k >= 0)
                oct_move_copy(j->t, j->src, from + k * j->stride[last], j->dst,
                              (row * n + i) * j->piece, j->piece);
        }
    }
}

void oct_move_mapped(const oct_type *x, const void *src, const oct_type *y, void *dst,
                     const int64_t *const *map, int n_threads)
{
    mapped j = {y, x->dtype, src, dst, map, {0}, y->rank, 1};
    int64_t rows = 1;

    if (oct_type_len(y) == 0) return;
    oct_strides(x, j.stride);
    while (j.rank > 1 && !map[j.rank - 1])
        j.piece *= y->dim[--j.rank];
    if (j.rank == 0) {
        oct_move_copy(x->dtype, src, 0, dst, 0, 1);
        return;
    }
    for (int32_t d = 0; d < j.rank - 1; d++)
        rows *= y->dim[d];
    const int64_t row_bytes = y->dim[j.rank - 1] * j.piece * (int64_t)oct_dtype_size(x->dtype);
    /* Packed elements share bytes: one thread. */
    oct_parallel_for(oct_dtype_size(x->dtype) ? n_threads : 1, rows,
                     OCT_MAX(1, GRAIN / OCT_MAX(row_bytes, 1)), run_mapped, &j);
}

void oct_move_copy(oct_dtype t, const void *src, int64_t src_at, void *dst, int64_t dst_at,
                   int64_t n)
{
    const size_t size = oct_dtype_size(t);
    oct_move m;

    if (n <= 0) return;
    if (size) {
        memcpy((char *)dst + (size_t)dst_at * size, (const char *)src + (size_t)src_at * size,
               (size_t)n * size);
        return;
    }
    oct_move_init(&m);
    oct_move_add(&m, n, 1, 1);
    run_packed(&m, t, src, src_at, dst, dst_at);
}

void oct_move_fill(oct_dtype t, const void *src, int64_t src_at, void *dst, int64_t n,
                   int n_threads)
{
    oct_move m;

    oct_move_init(&m);
    oct_move_add(&m, n, 0, 1);
    oct_move_run(&m, t, src, src_at, dst, 0, n_threads);
}

void oct_strides(const oct_type *t, int64_t stride[OCT_MAX_RANK])
{
    int64_t s = 1;

    for (int d = t->rank - 1; d >= 0; d--) {
        stride[d] = s;
        s *= t->dim[d];
    }
}

oct_status oct_infer_movable(const oct_infer *q, int i)
{
    if (q->in[i] && q->in[i]->dtype == OCT_DTYPE_STRING)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "string tensors are kept but not computed");
    return OCT_OK;
}

oct_status oct_read_ints(const oct_node *n, const oct_tensor *t, int64_t *out, int max, int *count)
{
    const int64_t len = oct_tensor_len(t);

    if (!oct_dtype_is_int(t->type.dtype) || t->type.rank > 1)
        return oct_node_fail(n, OCT_ERR_TYPE, "expected a list of integers, got %s of rank %d",
                             oct_dtype_name(t->type.dtype), (int)t->type.rank);
    if (len > max)
        return oct_node_fail(n, OCT_ERR_SHAPE, "a list has %lld entries, at most %d fit",
                             (long long)len, max);
    oct_load_i64(t->type.dtype, t->data, 0, len, out);
    *count = (int)len;
    return OCT_OK;
}

int64_t oct_read_int(const oct_tensor *t, int64_t fallback)
{
    return t && oct_tensor_len(t) > 0 ? oct_tensor_get_i64(t, 0) : fallback;
}

oct_status oct_read_indices(const oct_args *a, const oct_tensor *t, int64_t limit,
                            const int64_t **out)
{
    const int64_t len = oct_tensor_len(t);
    int64_t *ix;

    if (!oct_dtype_is_int(t->type.dtype))
        return oct_node_fail(a->node, OCT_ERR_TYPE, "indices are %s, expected integers",
                             oct_dtype_name(t->type.dtype));
    if (!(ix = oct_args_scratch(a, (size_t)OCT_MAX(len, 1), sizeof(*ix)))) return OCT_ERR_MEMORY;
    oct_load_i64(t->type.dtype, t->data, 0, len, ix);
    for (int64_t i = 0; i < len; i++) {
        if (ix[i] < -limit || ix[i] >= limit)
            return oct_node_fail(a->node, OCT_ERR_SHAPE, "index %lld is outside [-%lld, %lld)",
                                 (long long)ix[i], (long long)limit, (long long)limit);
        if (ix[i] < 0) ix[i] += limit;
    }
    *out = ix;
    return OCT_OK;
}

oct_status oct_args_expect(const oct_args *a, int i, int32_t rank, const int64_t *dim)
{
    const oct_type want = oct_type_make(a->out[i]->type.dtype, rank, dim);
    char got[OCT_TYPE_TEXT_SIZE], text[OCT_TYPE_TEXT_SIZE];

    if (oct_type_equal(&want, &a->out[i]->type)) return OCT_OK;
    return oct_node_fail(a->node, OCT_ERR_SHAPE, "result is %s, but %s was declared",
                         oct_type_text(&want, text), oct_type_text(&a->out[i]->type, got));
}
