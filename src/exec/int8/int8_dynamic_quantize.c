/* SPDX-License-Identifier: Apache-2.0 */
/* DynamicQuantizeLinear in any layout: the range of all elements, then their codes. */
#include "base/parallel.h"
#include "exec/int8/int8_kernel.h"
#include "op/dynamic_quantize.h"
#include "op/op.h"

#define LANES                                                                                      \
    16 /* ranges of neighbouring elements kept apart, so that the compiler uses                    \
        * vectors */

typedef struct state {
    const oct_int8 *set;
    int64_t rows, n, in_pitch, out_pitch, grain;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    if (!s->node || s->node->op != &oct_op_dynamic_quantize_linear || s->n_out != 3) return false;
    if (p->slots[s->in[0]].data || oct_type_len(&p->slots[s->in[0]].type) < 1) return false;
    *layout = OCT_LAYOUT_ANY;
    return s->out[0] >= 0 && s->out[1] >= 0 && s->out[2] >= 0;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *t = &p->slots[s->out[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    *st = (state){.set = oct_int8_get(), .rows = 1, .n = oct_type_len(t), .grain = 1};
    if (!oct_slot_is_dense(p, s->in[0]) || !oct_slot_is_dense(p, s->out[0])) {
        st->rows = t->dim[0] * oct_type_pixels(t);
        st->n = t->dim[1];
    } else { /* pieces of one long row; the last may be shorter */
        st->rows = oct_ceil_div(st->n, OCT_GRAIN_ELEMENTS);
    }
    st->in_pitch = st->rows > 1 && st->n != oct_type_len(t) ? oct_slot_pitch(p, s->in[0]) : 0;
    st->out_pitch = st->in_pitch ? oct_slot_pitch(p, s->out[0]) : 0;
    if (st->in_pitch) st->grain = OCT_MAX(1, OCT_GRAIN_ELEMENTS / OCT_MAX(st->n, 1));
    s->scratch_size = 2 * sizeof(float) * (size_t)oct_ceil_div(st->rows, st->grain);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 dynamic quantize:%s", st->set->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const float *x;
    uint8_t *y;
    float *range; /* lowest and highest of each chunk */
    oct_int8_codes codes;
} job;

static void row_range(const float *x, int64_t n, float *low, float *high)
{
    float lo[LANES] = {0}, hi[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            lo[k] = x[i + k] < lo[k] ? x[i + k] : lo[k];
            hi[k] = x[i + k] > hi[k] ? x[i + k] : hi[k];
        }
    for (; i < n; i++) {
        lo[0] = x[i] < lo[0] ? x[i] : lo[0];
        hi[0] = x[i] > hi[0] ? x[i] : hi[0];
    }
    for (int k = 0; k < LANES; k++) {
        *low = lo[k] < *low ? lo[k] : *low;
        *high = hi[k] > *high ? hi[k] : *high;
    }
}

/* Row i: where it begins in both, and its length. */
static int64_t row_at(const state *st, int64_t i, int64_t *x, int64_t *y)
{
    if (st->in_pitch) {
        *x = i * st->in_pitch;
        *y = i * st->out_pitch;
        return st->n;
    }
    *x = *y = i * OCT_GRAIN_ELEMENTS;
    return OCT_MIN(OCT_GRAIN_ELEMENTS, st->n - *x);
}

static void ranges(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    float *range = j->range + 2 * (begin / j->st->grain);
    int64_t x, y;

    range[0] = range[1] = 0;
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = row_at(j->st, i, &x, &y);

        row_range(j->x + x, n, &range[0], &range[1]);
    }
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t x, y;

    for (int64_t i = begin; i < end; i++) {
        const int64_t n = row_at(j->st, i, &x, &y);
        const oct_int8_strides r = {.rows = 1, .n = n, .a_pitch = n, .y_pitch = n};

        j->st->set->quantize(&j->codes, &r, j->x + x, j->y + y);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int64_t chunks = oct_ceil_div(st->rows, st->grain);
    float *scale = b->out[1];
    uint8_t *zero = b->out[2];
    int32_t zero32;
    job j = {.st = st, .x = b->in[0], .y = b->out[0], .range = b->scratch};

    oct_parallel_for(b->n_threads, st->rows, st->grain, ranges, &j);
    oct_dynamic_range(j.range, 2 * chunks, scale, zero);
    zero32 = *zero;
    j.codes = (oct_int8_codes){1, scale, &zero32, 0};
    oct_parallel_for(b->n_threads, st->rows, st->grain, rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_dynamic_quantize = {
    .name = "dynamic-quantize",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
