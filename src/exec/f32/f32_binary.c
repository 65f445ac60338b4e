/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on two f32 operands with broadcasting, in any layout, with a fused activation. */
#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/layout.h"
#include "exec/simd/simd.h"
#include "op/op.h"

enum { A, B, Y, N_OPERANDS };

static const struct row {
    const oct_op *op;
    oct_simd_op simd;
} rows[] = {
    {&oct_op_add, OCT_SIMD_ADD}, {&oct_op_sub, OCT_SIMD_SUB}, {&oct_op_mul, OCT_SIMD_MUL},
    {&oct_op_div, OCT_SIMD_DIV}, {&oct_op_min, OCT_SIMD_MIN}, {&oct_op_max, OCT_SIMD_MAX},
};

/* Loops from the outermost in; the innermost has strides 0 or 1. */
typedef struct state {
    const oct_simd *simd;
    oct_simd_op op;
    oct_act act;
    int rank;
    int64_t n[OCT_MAX_RANK + 1], stride[N_OPERANDS][OCT_MAX_RANK + 1];
    int64_t outer;          /* product of all loops but the innermost */
    const float *packed[2]; /* a constant operand reordered into the result's layout; NULL: as it
                             * is */
} state;

static const struct row *find_row(const oct_step *s)
{
    for (size_t i = 0; s->node && i < OCT_COUNT(rows); i++)
        if (s->node->op == rows[i].op) return &rows[i];
    return NULL;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    if (!find_row(s) || s->n_in != 2 || s->fuse.residual >= 0 || !oct_step_is_f32(p, s))
        return false;
    *layout = OCT_LAYOUT_ANY;
    for (int i = 0; i < 2; i++) {
        const oct_slot *x = oct_step_in(p, s, i);

        /* An operand of lower rank would be broadcast along other dimensions than its layout
         * shows. */
        if (!x->data && oct_type_has_channels(&x->type) &&
            x->type.rank != p->slots[s->out[0]].type.rank)
            *layout = OCT_LAYOUT_PLAIN;
    }
    return true;
}

/* A type with leading ones up to `rank`. */
static oct_type padded(const oct_type *t, int rank)
{
    oct_type out = *t;

    out.rank = rank;
    for (int d = 0; d < rank; d++)
        out.dim[d] = d < rank - t->rank ? 1 : t->dim[d - (rank - t->rank)];
    return out;
}

/* Element strides along the dims of the result; 0 where the operand is broadcast. */
static void strides_of(const oct_type *t, oct_seen_layout l, int64_t *stride)
{
    const bool clast = l.layout == OCT_LAYOUT_CLAST;
    int64_t step = clast ? l.pitch : 1;

    for (int d = t->rank - 1; d >= 0; d--) {
        if (clast && d == 1) continue;
        stride[d] = t->dim[d] == 1 ? 0 : step;
        step *= t->dim[d];
    }
    if (clast) stride[1] = t->dim[1] == 1 ? 0 : 1;
}

/* Strides of an operand; a constant is reordered into the result's layout first. */
static oct_status place_operand(oct_plan *p, int32_t slot, const oct_slot *y, const float **packed,
                                int64_t *stride)
{
    const oct_slot *s = &p->slots[slot];
    const oct_type t = padded(&s->type, y->type.rank);
    oct_seen_layout l = {s->layout, oct_slot_pitch(p, slot)};

    if (s->data && packed && y->layout == OCT_LAYOUT_CLAST) {
        float *copy = oct_plan_alloc(p, (size_t)oct_type_len(&t), sizeof(float));

        if (!copy) return OCT_ERR_MEMORY;
        l = (oct_seen_layout){OCT_LAYOUT_CLAST, t.dim[1]};
        oct_relayout(&t, (oct_seen_layout){OCT_LAYOUT_PLAIN, 0}, s->data->data, l, copy);
        *packed = copy;
    }
    strides_of(&t, l, stride);
    return OCT_OK;
}

static bool can_merge(const state *st, const int64_t step[N_OPERANDS], int64_t n)
{
    const int last = st->rank - 1;

    for (int k = 0; k < N_OPERANDS; k++)
        if (st->stride[k][last] != step[k] * n) return false;
    return true;
}

/* Adds an inner loop; adjacent loops that can be one are merged. */
static void add_loop(state *st, int64_t n, const int64_t step[N_OPERANDS])
{
    if (n == 1) return;
    if (st->rank > 0 && can_merge(st, step, n)) {
        st->n[st->rank - 1] *= n;
        for (int k = 0; k < N_OPERANDS; k++)
            st->stride[k][st->rank - 1] = step[k];
        return;
    }
    st->n[st->rank] = n;
    for (int k = 0; k < N_OPERANDS; k++)
        st->stride[k][st->rank] = step[k];
    st->rank++;
}

static oct_status make_loops(oct_plan *p, const oct_step *s, state *st)
{
    const oct_slot *y = &p->slots[s->out[0]];
    const bool clast = y->layout == OCT_LAYOUT_CLAST;
    int64_t stride[N_OPERANDS][OCT_MAX_RANK];

    OCT_TRY(place_operand(p, s->in[A], y, &st->packed[A], stride[A]));
    OCT_TRY(place_operand(p, s->in[B], y, &st->packed[B], stride[B]));
    OCT_TRY(place_operand(p, s->out[0], y, NULL, stride[Y]));
    for (int i = 0; i < y->type.rank; i++) { /* in the memory order of the result */
        const int d = !clast || i == 0 ? i : i == y->type.rank - 1 ? 1 : i + 1;

        add_loop(st, y->type.dim[d],
                 (const int64_t[N_OPERANDS]){stride[A][d], stride[B][d], stride[Y][d]});
    }
    if (st->rank == 0 || st->stride[A][st->rank - 1] > 1 || st->stride[B][st->rank - 1] > 1 ||
        st->stride[Y][st->rank - 1] != 1) { /* one element a row: strides of 1 suit that */
        st->n[st->rank] = 1;
        st->stride[A][st->rank] = st->stride[B][st->rank] = st->stride[Y][st->rank] = 1;
        st->rank++;
    }
    st->outer = 1;
    for (int i = 0; i + 1 < st->rank; i++)
        st->outer *= st->n[i];
    return OCT_OK;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    st->simd = oct_simd_get();
    st->op = find_row(s)->simd;
    st->act = s->fuse.act[0];
    OCT_TRY(make_loops(p, s, st));
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const float *a, *b;
    float *y;
} job;

static void one_row(const state *st, const float *a, const float *b, float *y, int64_t n)
{
    const int in = st->rank - 1;

    st->simd->binary(st->op, a, (int)st->stride[A][in], b, (int)st->stride[B][in], y, n);
    if (st->act.kind) st->simd->act(&st->act, y, y, n);
}

static void rows_of(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i++) {
        int64_t at[N_OPERANDS] = {0}, rest = i;

        for (int d = st->rank - 2; d >= 0; d--) {
            const int64_t k = rest % st->n[d];

            rest /= st->n[d];
            for (int o = 0; o < N_OPERANDS; o++)
                at[o] += k * st->stride[o][d];
        }
        one_row(st, j->a + at[A], j->b + at[B], j->y + at[Y], st->n[st->rank - 1]);
    }
}

static void part_of_row(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    one_row(st, j->a + begin * st->stride[A][0], j->b + begin * st->stride[B][0], j->y + begin,
            end - begin);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int64_t inner = st->n[st->rank - 1];
    job j = {st, st->packed[A] ? st->packed[A] : b->in[A], st->packed[B] ? st->packed[B] : b->in[B],
             b->out[0]};

    if (inner == 0) return OCT_OK;
    if (st->rank == 1)
        oct_parallel_for(b->n_threads, inner, OCT_GRAIN_ELEMENTS, part_of_row, &j);
    else
        oct_parallel_for(b->n_threads, st->outer, OCT_MAX(1, OCT_GRAIN_ELEMENTS / inner), rows_of,
                         &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_binary = {
    .name = "binary",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT | OCT_KERNEL_IN_PLACE,
    .accepts = accepts,
    .make = make,
    .run = run,
};
