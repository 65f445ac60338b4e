/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize of codes with interpolation (linear, cubic): in float, row by row, so that only codes are
 * stored. The operations are those of DequantizeLinear, Resize and QuantizeLinear: pixels half-way
 * between two codes are common here, and ties must be rounded the same way.
 */
#include "base/parallel.h"
#include "exec/f32/f32_resize.h"
#include "exec/int8/int8_kernel.h"
#include "exec/simd/simd.h"
#include "op/op.h"
#include "op/resample.h"

#define KEPT 4 /* rows that may be those of the row before */

typedef struct state {
    const oct_simd *simd;
    const oct_int8 *set;
    oct_resize_axis y, x;
    oct_int8_codes from, to;
    int64_t batch, channels, in_h, in_w, in_pitch, out_pitch;
    int64_t room; /* floats one thread needs */
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_resample_table tables[OCT_MAX_RANK];
    const oct_type *x;

    if (!s->integer || s->integer->n_chain || !s->node || s->node->op != &oct_op_resize)
        return false;
    if (!oct_step_in_u8(p, s, 0) || !oct_step_out_is_codes(s) || !oct_step_is_bare(s)) return false;
    x = &p->slots[s->in[0]].type;
    if (x->rank != 4 || oct_type_len(x) < 1 || !oct_codes_are_u8(&s->integer->out)) return false;
    *layout = OCT_LAYOUT_CLAST;
    return oct_resize_tables(s->node, x, p->arena, tables) && tables[0].taps <= 1 &&
           tables[1].taps <= 1;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *x = &p->slots[s->in[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    *st = (state){.simd = oct_simd_get(),
                  .set = oct_int8_get(),
                  .batch = x->dim[0],
                  .channels = x->dim[1],
                  .in_h = x->dim[2],
                  .in_w = x->dim[3],
                  .in_pitch = oct_slot_pitch(p, s->in[0]),
                  .out_pitch = oct_slot_pitch(p, s->out[0])};
    OCT_TRY(oct_resize_axes(p, s, &st->y, &st->x));
    OCT_TRY(oct_int8_codes_make(p, &s->integer->in[0], &st->from));
    OCT_TRY(oct_int8_codes_make(p, &s->integer->out, &st->to));
    st->room = (st->y.taps * st->in_w + st->x.out) * st->channels;
    s->scratch_size = (size_t)st->room * (size_t)p->n_threads * sizeof(float);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 resize:%s", st->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const uint8_t *x;
    uint8_t *y;
    float *scratch;
} job;

/* The rows of the operand that row `row` is interpolated from, as floats; have: those already
 * there. */
static void read_rows(const state *st, const uint8_t *image, int64_t row, int64_t *have, float *to)
{
    const oct_int8_strides r = {
        .rows = st->in_w, .n = st->channels, .a_pitch = st->in_pitch, .y_pitch = st->channels};

    for (int64_t i = 0; i < st->y.taps; i++) {
        const int64_t from = st->y.index[row * st->y.taps + i];

        if (i < KEPT && have[i] == from) continue;
        if (i < KEPT) have[i] = from;
        st->set->dequantize(&st->from, &r, image + from * st->in_w * st->in_pitch,
                            to + i * st->in_w * st->channels);
    }
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    float *lines = j->scratch + oct_parallel_thread() * st->room;
    float *line = lines + st->y.taps * st->in_w * st->channels;
    const oct_resize_rows from = {
        .x = lines, .row = st->in_w * st->channels, .pixel = st->channels, .in_order = true};
    const oct_int8_strides r = {
        .rows = st->x.out, .n = st->channels, .a_pitch = st->channels, .y_pitch = st->out_pitch};
    int64_t have[KEPT] = {-1, -1, -1, -1};

    for (int64_t i = begin; i < end; i++) {
        const uint8_t *image = j->x + i / st->y.out * st->in_h * st->in_w * st->in_pitch;
        const int64_t row = i % st->y.out;

        if (row == 0) /* another image */
            for (int k = 0; k < KEPT; k++)
                have[k] = -1;
        read_rows(st, image, row, have, lines);
        for (int64_t col = 0; col < st->x.out; col++)
            oct_resize_pixel(st->simd, &st->y, &st->x, row, col, &from, line + col * st->channels,
                             st->channels);
        st->set->quantize(&st->to, &r, line, j->y + i * st->x.out * st->out_pitch);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0], b->scratch};
    const int64_t grain = OCT_MAX(1, 16384 / OCT_MAX(1, st->x.out * st->channels));

    oct_parallel_for(b->n_threads, st->batch * st->y.out, grain, rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_resize = {
    .name = "int8-resize",
    .flags = OCT_KERNEL_INTEGER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
