/* SPDX-License-Identifier: Apache-2.0 */
/* Values between float32 and bfloat16: rows for other kernels, and whole values as steps. */
#include "exec/train/bf16.h"

#include "base/parallel.h"

const float *oct_rows_read(oct_rows r, const void *data, int64_t first, int64_t n, int64_t lanes,
                           float *tile, int64_t *pitch)
{
    const uint16_t *from = (const uint16_t *)data + first * r.pitch;

    *pitch = r.bf16 ? lanes : r.pitch;
    if (!r.bf16) return (const float *)data + first * r.pitch;
    if (r.pitch == lanes)
        r.bf16->widen(from, tile, n * lanes);
    else
        for (int64_t i = 0; i < n; i++)
            r.bf16->widen(from + i * r.pitch, tile + i * lanes, lanes);
    return tile;
}

float *oct_rows_begin(oct_rows r, void *data, int64_t first, int64_t lanes, float *tile,
                      int64_t *pitch)
{
    *pitch = r.bf16 ? lanes : r.pitch;
    return r.bf16 ? tile : (float *)data + first * r.pitch;
}

void oct_rows_write(oct_rows r, void *data, int64_t first, int64_t n, int64_t lanes,
                    const float *tile)
{
    uint16_t *to = (uint16_t *)data + first * r.pitch;

    if (!r.bf16) return;
    if (r.pitch == lanes)
        r.bf16->narrow(tile, to, n * lanes);
    else
        for (int64_t i = 0; i < n; i++)
            r.bf16->narrow(tile + i * lanes, to + i * r.pitch, lanes);
}

/* --- whole values --- */

typedef struct state {
    const oct_bf16_simd *simd;
    int64_t rows, row, pitch; /* of the operand; the result is dense */
} state;

typedef struct job {
    const state *st;
    const void *x;
    void *y;
} job;

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *t = &p->slots[s->in[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    *st = (state){.simd = oct_bf16_simd_get(), .rows = 1, .row = oct_type_len(t)};
    if (!oct_slot_is_dense(p, s->in[0])) {
        st->row = t->dim[1];
        st->rows = oct_type_len(t) / OCT_MAX(t->dim[1], 1);
        st->pitch = oct_slot_pitch(p, s->in[0]);
    }
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

static oct_status run(const oct_bound *b, oct_range_fn dense, oct_range_fn rows)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0]};

    if (st->rows == 1)
        oct_parallel_for(b->n_threads, st->row, 2 * OCT_GRAIN_ELEMENTS, dense, &j);
    else
        oct_parallel_for(b->n_threads, st->rows, OCT_MAX(1, 2 * OCT_GRAIN_ELEMENTS / st->row), rows,
                         &j);
    return OCT_OK;
}

static void narrow_dense(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    j->st->simd->narrow((const float *)j->x + begin, (uint16_t *)j->y + begin, end - begin);
}

static void narrow_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i++)
        st->simd->narrow((const float *)j->x + i * st->pitch, (uint16_t *)j->y + i * st->row,
                         st->row);
}

static void widen_dense(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    j->st->simd->widen((const uint16_t *)j->x + begin, (float *)j->y + begin, end - begin);
}

static void widen_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i++)
        st->simd->widen((const uint16_t *)j->x + i * st->pitch, (float *)j->y + i * st->row,
                        st->row);
}

static void round_dense(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    j->st->simd->round((const float *)j->x + begin, (float *)j->y + begin, end - begin);
}

static void round_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i++)
        st->simd->round((const float *)j->x + i * st->pitch, (float *)j->y + i * st->row, st->row);
}

static oct_status run_narrow(const oct_bound *b)
{
    return run(b, narrow_dense, narrow_rows);
}

static oct_status run_widen(const oct_bound *b)
{
    return run(b, widen_dense, widen_rows);
}

static oct_status run_round(const oct_bound *b)
{
    return run(b, round_dense, round_rows);
}

const oct_kernel oct_kernel_narrow = {
    .name = "narrow",
    .flags = OCT_KERNEL_REORDER | OCT_KERNEL_STRIDED_IN,
    .make = make,
    .run = run_narrow,
};

const oct_kernel oct_kernel_widen = {
    .name = "widen",
    .flags = OCT_KERNEL_REORDER | OCT_KERNEL_STRIDED_IN,
    .make = make,
    .run = run_widen,
};

const oct_kernel oct_kernel_round_bf16 = {
    .name = "round",
    .flags = OCT_KERNEL_REORDER | OCT_KERNEL_STRIDED_IN,
    .make = make,
    .run = run_round,
};
