/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear as one step that stays in f32: fake quantization. */
#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/qparams.h"
#include "op/quant.h"

typedef struct state {
    const oct_simd *simd;
    const float *scale, *low, *high; /* in steps of scale, from zero */
    int64_t n;                       /* parameters */
    int step;                        /* 1: they change within a row */
    int64_t rows, row;               /* rows of `row` elements */
    int64_t in_pitch, out_pitch;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_codes c;

    if (!s->fuse.fake || !oct_codes_of(s->node, &c)) return false;
    if (p->slots[s->in[0]].data || !oct_step_is_f32(p, s)) return false;
    *layout = c.axis < 0 || c.axis == 1 ? OCT_LAYOUT_ANY : OCT_LAYOUT_PLAIN;
    return true;
}

/* Rows in memory order. */
static void cut_rows(const oct_plan *p, const oct_step *s, const oct_codes *c, state *st)
{
    const oct_type *t = &p->slots[s->out[0]].type;
    const bool clast = p->slots[s->out[0]].layout == OCT_LAYOUT_CLAST;

    if (clast) {
        st->rows = t->dim[0] * oct_type_pixels(t);
        st->row = t->dim[1];
        st->in_pitch = oct_slot_pitch(p, s->in[0]);
        st->out_pitch = oct_slot_pitch(p, s->out[0]);
        st->step = c->n > 1;
        if (st->step || st->in_pitch != st->row || st->out_pitch != st->row) return;
    }
    st->rows = 1;
    st->row = oct_type_len(t);
    if (c->n > 1) {
        const int64_t inner = oct_type_span(t, c->axis + 1, t->rank);

        st->step = inner == 1;
        st->row = st->step ? c->n : inner;
        st->rows = st->row ? oct_type_len(t) / st->row : 0;
    }
    st->in_pitch = st->out_pitch = st->row;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    int32_t low, high;
    oct_codes c;
    float *f;

    if (!st) return OCT_ERR_MEMORY;
    if (!oct_codes_of(s->node, &c)) return oct_node_fail(s->node, OCT_ERR_STATE, "has no codes");
    if (!(f = oct_plan_alloc(p, 3 * (size_t)c.n, sizeof(float)))) return OCT_ERR_MEMORY;
    oct_codes_limits(&c, &low, &high);
    for (int64_t i = 0; i < c.n; i++) {
        f[i] = oct_codes_scale(&c, i);
        f[c.n + i] = (float)(low - oct_codes_zero(&c, i));
        f[2 * c.n + i] = (float)(high - oct_codes_zero(&c, i));
    }
    *st =
        (state){.simd = oct_simd_get(), .scale = f, .low = f + c.n, .high = f + 2 * c.n, .n = c.n};
    cut_rows(p, s, &c, st);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "fake quantize:%s", st->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const float *x;
    float *y;
} job;

static void part_of_row(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    st->simd->fake_quantize(j->x + begin, j->y + begin, end - begin, st->scale, st->low, st->high,
                            0);
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i++) {
        const int64_t k = st->step || st->n == 1 ? 0 : i % st->n;

        st->simd->fake_quantize(j->x + i * st->in_pitch, j->y + i * st->out_pitch, st->row,
                                st->scale + k, st->low + k, st->high + k, st->step);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0]};

    if (st->rows == 1 && !st->step)
        oct_parallel_for(b->n_threads, st->row, OCT_GRAIN_ELEMENTS, part_of_row, &j);
    else
        oct_parallel_for(b->n_threads, st->rows,
                         OCT_MAX(1, OCT_GRAIN_ELEMENTS / OCT_MAX(st->row, 1)), rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_fake_quantize = {
    .name = "fake-quantize",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT | OCT_KERNEL_IN_PLACE,
    .accepts = accepts,
    .make = make,
    .run = run,
};
