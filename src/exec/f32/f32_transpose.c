/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose of row-major tensors: contiguous rows are copied, the rest is transposed in square
 * blocks. */
#include <string.h>

#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/op.h"

#define WIDE 64 /* columns of the operand that one task handles */

typedef struct axis {
    int64_t size, from, to; /* elements from one index to the next, in the operand and the result */
} axis;

/* Axes that are adjacent in operand and result are merged into one. */
typedef struct state {
    const oct_simd *simd;
    int n; /* axes around the row or the square */
    axis around[OCT_MAX_RANK];
    axis row;     /* the result's last */
    axis col;     /* the operand's last; size 0: the same axis, whole rows are copied */
    int64_t cuts; /* of the columns */
    int64_t units;
    size_t elem;
} state;

static bool has_size(size_t elem)
{
    return elem == 1 || elem == 2 || elem == 4 || elem == 8;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    const oct_slot *x = s->n_in > 0 ? oct_step_in(p, s, 0) : NULL;
    const oct_attr *perm;

    if (!s->node || s->node->op != &oct_op_transpose || !x || x->data || s->n_out != 1)
        return false;
    perm = oct_node_attr(s->node, "perm");
    *layout = OCT_LAYOUT_PLAIN;
    return has_size(oct_dtype_size(x->type.dtype)) && oct_type_len(&x->type) > 0 &&
           x->type.rank >= 1 && (!perm || perm->n == 0 || perm->n == x->type.rank);
}

/* The axes of the result, merged where they are adjacent in both. */
static int find_axes(const oct_node *node, const oct_type *x, axis *out)
{
    const oct_attr *perm = oct_node_attr(node, "perm");
    int64_t stride[OCT_MAX_RANK], step = 1;
    int n = 0;

    for (int d = x->rank - 1; d >= 0; d--) {
        stride[d] = step;
        step *= x->dim[d];
    }
    for (int i = 0; i < x->rank; i++) {
        int64_t d = perm && perm->n ? perm->is[i] : x->rank - 1 - i;

        if (d < 0) d += x->rank;
        if (x->dim[d] == 1) continue;
        if (n > 0 && out[n - 1].from == x->dim[d] * stride[d]) {
            out[n - 1].size *= x->dim[d];
            out[n - 1].from = stride[d];
        } else {
            out[n++] = (axis){.size = x->dim[d], .from = stride[d]};
        }
    }
    step = 1;
    for (int i = n - 1; i >= 0; i--) {
        out[i].to = step;
        step *= out[i].size;
    }
    return n;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *x = &p->slots[s->in[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    axis all[OCT_MAX_RANK];
    int n;

    if (!st) return OCT_ERR_MEMORY;
    st->simd = oct_simd_get();
    st->elem = oct_dtype_size(x->dtype);
    st->row = (axis){1, 1, 1};
    st->cuts = st->units = 1;
    n = find_axes(s->node, x, all);
    if (n > 0) st->row = all[--n];
    for (int i = 0; i < n; i++) {
        if (st->row.from != 1 && all[i].from == 1) {
            st->col = all[i];
            st->cuts = oct_ceil_div(all[i].size, WIDE);
            continue;
        }
        st->around[st->n++] = all[i];
        st->units *= all[i].size;
    }
    st->units *= st->cuts;
    s->state = st;
    s->impl = st->col.size ? st->simd->name : "copy of rows";
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const char *x;
    char *y;
} job;

#define TRANSPOSE(name, T)                                                                         \
    static void name(const void *from, int64_t x_pitch, void *to, int64_t y_pitch, int64_t rows,   \
                     int64_t cols)                                                                 \
    {                                                                                              \
        const T *x = from;                                                                         \
        T *y = to;                                                                                 \
                                                                                                   \
        for (int64_t r = 0; r < rows; r += 16)                                                     \
            for (int64_t c = 0; c < cols; c++)                                                     \
                for (int64_t i = r; i < OCT_MIN(rows, r + 16); i++)                                \
                    y[c * y_pitch + i] = x[i * x_pitch + c];                                       \
    }

TRANSPOSE(turn_1, uint8_t)
TRANSPOSE(turn_2, uint16_t)
TRANSPOSE(turn_8, uint64_t)

static void transpose_block(const state *st, const char *x, char *y, int64_t cols)
{
    const int64_t rows = st->row.size, in = st->row.from, out = st->col.to;

    if (st->elem == 4)
        st->simd->transpose((const float *)(const void *)x, in, (float *)(void *)y, out, rows,
                            cols);
    else
        (st->elem == 1 ? turn_1 : st->elem == 2 ? turn_2 : turn_8)(x, in, y, out, rows, cols);
}

static void units(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t u = begin; u < end; u++) {
        const int64_t first = u % st->cuts * WIDE;
        int64_t left = u / st->cuts, from = first, to = first * st->col.to;

        for (int i = st->n - 1; i >= 0; i--) {
            from += left % st->around[i].size * st->around[i].from;
            to += left % st->around[i].size * st->around[i].to;
            left /= st->around[i].size;
        }
        if (st->col.size)
            transpose_block(st, j->x + (size_t)from * st->elem, j->y + (size_t)to * st->elem,
                            OCT_MIN(WIDE, st->col.size - first));
        else
            memcpy(j->y + (size_t)to * st->elem, j->x + (size_t)from * st->elem,
                   (size_t)st->row.size * st->elem);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int64_t work = st->row.size * (st->col.size ? OCT_MIN(WIDE, st->col.size) : 1);
    job j = {st, b->in[0], b->out[0]};

    oct_parallel_for(b->n_threads, st->units, OCT_MAX(1, OCT_GRAIN_ELEMENTS / work), units, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_transpose = {
    .name = "transpose",
    .accepts = accepts,
    .make = make,
    .run = run,
};
