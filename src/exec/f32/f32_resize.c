/* SPDX-License-Identifier: Apache-2.0 */
/* Resize of NHWC images: each pixel is a weighted sum of a few whole pixels. */
#include <string.h>

#include "base/parallel.h"
#include "exec/f32/f32_resize.h"
#include "exec/simd/simd.h"
#include "op/op.h"
#include "op/resample.h"

typedef struct state {
    const oct_simd *simd;
    oct_resize_axis y, x;
    int64_t batch, channels, in_h, in_w, in_pitch, out_pitch;
    size_t elem; /* bytes of an element */
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_resample_table tables[OCT_MAX_RANK];
    const oct_type *x = s->n_in > 0 && s->in[0] >= 0 ? &p->slots[s->in[0]].type : NULL;

    if (!s->node || s->node->op != &oct_op_resize || p->slots[s->in[0]].data) return false;
    if (x->rank != 4 || oct_type_len(x) < 1) return false;
    if (x->dtype != OCT_DTYPE_F32 && x->dtype != OCT_DTYPE_U8 && x->dtype != OCT_DTYPE_I8)
        return false;
    *layout = OCT_LAYOUT_CLAST;
    if (!oct_resize_tables(s->node, x, p->arena, tables)) return false;
    /* Codes are copied (nearest), never interpolated. */
    return x->dtype == OCT_DTYPE_F32 || (tables[2].taps <= 1 && tables[3].taps <= 1);
}

/* An axis that keeps its size reads its own sample. */
static oct_status fill_axis(oct_plan *p, const oct_resample_table *t, int64_t out,
                            oct_resize_axis *a)
{
    const int64_t taps = t->taps ? t->taps : 1;
    int64_t *index = oct_plan_alloc(p, (size_t)(out * taps), sizeof(*index));
    float *weight = oct_plan_alloc(p, (size_t)(out * taps), sizeof(*weight));

    if (!index || !weight) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < out * taps; i++) {
        index[i] = t->taps ? t->index[i] : i;
        weight[i] = t->taps && t->weight ? (float)t->weight[i] : 1.0f;
    }
    *a = (oct_resize_axis){out, taps, index, weight};
    return OCT_OK;
}

oct_status oct_resize_axes(oct_plan *p, const oct_step *s, oct_resize_axis *y, oct_resize_axis *x)
{
    const oct_type *out = &p->slots[s->out[0]].type;
    oct_resample_table tables[OCT_MAX_RANK];

    if (!oct_resize_tables(s->node, &p->slots[s->in[0]].type, p->arena, tables))
        return oct_node_fail(s->node, OCT_ERR_STATE, "has no tables");
    OCT_TRY(fill_axis(p, &tables[2], out->dim[2], y));
    return fill_axis(p, &tables[3], out->dim[3], x);
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *x = &p->slots[s->in[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    *st = (state){.simd = oct_simd_get(),
                  .batch = x->dim[0],
                  .channels = x->dim[1],
                  .in_h = x->dim[2],
                  .in_w = x->dim[3],
                  .elem = oct_dtype_size(x->dtype),
                  .in_pitch = oct_slot_pitch(p, s->in[0]),
                  .out_pitch = oct_slot_pitch(p, s->out[0])};
    OCT_TRY(oct_resize_axes(p, s, &st->y, &st->x));
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const char *x;
    char *y;
} job;

#define MAX_MIXED 16 /* pixels of one weighted sum */

void oct_resize_pixel(const oct_simd *simd, const oct_resize_axis *ay, const oct_resize_axis *ax,
                      int64_t row, int64_t col, const oct_resize_rows *from, float *y,
                      int64_t channels)
{
    const int64_t ty = ay->taps, tx = ax->taps;
    const float *x[MAX_MIXED];
    float w[MAX_MIXED];
    bool first = true;
    int n = 0;

    for (int64_t i = 0; i < ty; i++)
        for (int64_t k = 0; k < tx; k++) {
            const int64_t line = from->in_order ? i : ay->index[row * ty + i];

            w[n] = ay->weight[row * ty + i] * ax->weight[col * tx + k];
            x[n] = from->x + line * from->row + ax->index[col * tx + k] * from->pixel;
            if (w[n] == 0.0f && !(first && n == 0 && i == ty - 1 && k == tx - 1)) continue;
            if (ty * tx > MAX_MIXED) {
                simd->axpy(w[n], x[n], y, channels, first);
                first = false;
            } else {
                n++;
            }
        }
    if (n > 0) simd->weighted_sum(w, x, n, y, channels);
}

/* Nearest: whole pixels of one row of the operand. */
static void copy_row(const state *st, const char *image, int64_t row, char *y)
{
    const size_t size = (size_t)st->channels * st->elem;
    const size_t pitch = (size_t)st->in_pitch * st->elem,
                 y_pitch = (size_t)st->out_pitch * st->elem;
    const char *x = image + (size_t)(st->y.index[row] * st->in_w) * pitch;

    for (int64_t col = 0; col < st->x.out; col++)
        memcpy(y + (size_t)col * y_pitch, x + (size_t)st->x.index[col] * pitch, size);
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    oct_resize_rows from = {.row = st->in_w * st->in_pitch, .pixel = st->in_pitch};

    for (int64_t i = begin; i < end; i++) {
        const size_t image = (size_t)(i / st->y.out * st->in_h * st->in_w * st->in_pitch);
        const size_t line = (size_t)(i * st->x.out * st->out_pitch);
        const char *x = j->x + image * st->elem;
        char *y = j->y + line * st->elem;

        if (st->y.taps == 1 && st->x.taps == 1) {
            copy_row(st, x, i % st->y.out, y);
            continue;
        }
        from.x = (const float *)(const void *)x;
        for (int64_t col = 0; col < st->x.out; col++)
            oct_resize_pixel(st->simd, &st->y, &st->x, i % st->y.out, col, &from,
                             (float *)(void *)y + col * st->out_pitch, st->channels);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0]};
    const int64_t grain = OCT_MAX(1, 16384 / OCT_MAX(1, st->x.out * st->channels));

    oct_parallel_for(b->n_threads, st->batch * st->y.out, grain, rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_resize = {
    .name = "resize",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
