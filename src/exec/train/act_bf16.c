/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and their gradients whose operands or results are bfloat16, in any layout. */
#include "base/parallel.h"
#include "exec/simd/simd.h"
#include "exec/train/bf16.h"
#include "op/grad/rules.h"

enum { X, DY };

#define TILE 1024 /* elements that are widened at once */

typedef struct state {
    const oct_simd *simd;
    oct_act act;
    int64_t rows, row; /* rows of `row` elements */
    int64_t x_pitch, dy_pitch, y_pitch;
    oct_rows x, dy, y; /* as single elements */
} state;

typedef struct job {
    const state *st;
    const void *x, *dy;
    void *y;
} job;

static oct_status make_any(oct_plan *p, oct_step *s, state **out)
{
    const oct_type *t = &p->slots[s->out[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    *st = (state){.simd = oct_simd_get(),
                  .rows = 1,
                  .row = oct_type_len(t),
                  .x = {oct_slot_bf16(p, s->in[X]), 1},
                  .dy = {s->n_in > DY ? oct_slot_bf16(p, s->in[DY]) : NULL, 1},
                  .y = {oct_slot_bf16(p, s->out[0]), 1}};
    for (int32_t i = 0; i <= s->n_in; i++)
        if (!oct_slot_is_dense(p, i < s->n_in ? s->in[i] : s->out[0])) st->rows = 0;
    if (!st->rows) {
        st->rows = t->dim[0] * oct_type_pixels(t);
        st->row = t->dim[1];
        st->x_pitch = oct_slot_pitch(p, s->in[X]);
        st->dy_pitch = s->n_in > DY ? oct_slot_pitch(p, s->in[DY]) : 0;
        st->y_pitch = oct_slot_pitch(p, s->out[0]);
    }
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "bf16:%s", st->simd->name);
    *out = st;
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = NULL;

    OCT_TRY(make_any(p, s, &st));
    oct_act_of(s->node, &st->act);
    return OCT_OK;
}

static oct_status make_grad(oct_plan *p, oct_step *s)
{
    state *st = NULL;

    OCT_TRY(make_any(p, s, &st));
    st->act = (oct_act){(oct_act_kind)oct_node_attr(s->node, "act")->i,
                        oct_node_attr(s->node, "act_a")->f, oct_node_attr(s->node, "act_b")->f};
    return OCT_OK;
}

/* n elements that follow each other. */
static void span(const job *j, int64_t x_at, int64_t dy_at, int64_t y_at, int64_t n_all)
{
    const state *st = j->st;
    float from[TILE], slope[TILE], to[TILE];

    for (int64_t i = 0; i < n_all; i += TILE) {
        const int64_t n = OCT_MIN(TILE, n_all - i);
        int64_t pitch;
        const float *x = oct_rows_read(st->x, j->x, x_at + i, n, 1, from, &pitch), *dy;
        float *y = oct_rows_begin(st->y, j->y, y_at + i, 1, to, &pitch);

        if (j->dy) {
            dy = oct_rows_read(st->dy, j->dy, dy_at + i, n, 1, slope, &pitch);
            st->simd->train->act_grad(&st->act, x, dy, y, n);
        } else {
            st->simd->act(&st->act, x, y, n);
        }
        oct_rows_write(st->y, j->y, y_at + i, n, 1, to);
    }
}

static void one_row(void *arg, int64_t begin, int64_t end)
{
    span(arg, begin, begin, begin, end - begin);
}

static void many_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i++)
        span(j, i * st->x_pitch, i * st->dy_pitch, i * st->y_pitch, st->row);
}

static oct_status run_any(const oct_bound *b, job *j)
{
    const state *st = j->st;

    if (st->rows == 1)
        oct_parallel_for(b->n_threads, st->row, OCT_GRAIN_ELEMENTS, one_row, j);
    else
        oct_parallel_for(b->n_threads, st->rows, OCT_MAX(1, OCT_GRAIN_ELEMENTS / st->row),
                         many_rows, j);
    return OCT_OK;
}

static oct_status run(const oct_bound *b)
{
    job j = {b->step->state, b->in[X], NULL, b->out[0]};

    return run_any(b, &j);
}

static oct_status run_grad(const oct_bound *b)
{
    job j = {b->step->state, b->in[X], b->in[DY], b->out[0]};

    return run_any(b, &j);
}

const oct_kernel oct_kernel_unary_bf16 = {
    .name = "unary-bf16",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .make = make,
    .run = run,
};

const oct_kernel oct_kernel_act_grad_bf16 = {
    .name = "act-grad-bf16",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .make = make_grad,
    .run = run_grad,
};
