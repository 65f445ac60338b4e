/* SPDX-License-Identifier: Apache-2.0 */
/* ResizeGrad in NHWC along height and width, any mode: each pixel of dy is added to those it was
 * computed from. A thread has whole images and some of their channels. */
#include <string.h>

#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/grad/rules.h"
#include "op/resample.h"

#define LANES 128 /* channels of a unit of work */

typedef struct axis {
    int64_t in, out, taps;
    const int64_t *index; /* [out][taps]; an index below 0: outside, nothing is added */
    const double *weight;
} axis;

typedef struct state {
    const oct_simd *simd;
    axis y, x;
    int64_t batch, channels, dy_pitch, dx_pitch;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    const oct_type *dy, *x;

    if (!s->node || s->node->op != &oct_op_resize_grad || !oct_step_is_f32(p, s) ||
        !oct_step_is_bare(s) || p->slots[s->in[0]].data)
        return false;
    dy = &p->slots[s->in[0]].type;
    x = &p->slots[s->out[0]].type;
    *layout = OCT_LAYOUT_CLAST;
    return x->rank == 4 && dy->rank == 4 && oct_type_len(x) > 0 && oct_type_len(dy) > 0 &&
           x->dim[0] == dy->dim[0] && x->dim[1] == dy->dim[1];
}

/* An axis that is not resized has each pixel once. */
static oct_status fill_axis(oct_plan *p, const oct_resample_table *t, int64_t in, int64_t out,
                            axis *to)
{
    int64_t *index;
    double *weight;

    *to = (axis){in, out, t->taps, t->index, t->weight};
    if (t->taps) return OCT_OK;
    index = oct_plan_alloc(p, (size_t)out, sizeof(*index));
    weight = oct_plan_alloc(p, (size_t)out, sizeof(*weight));
    if (!index || !weight) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < out; i++) {
        index[i] = i;
        weight[i] = 1;
    }
    *to = (axis){in, out, 1, index, weight};
    return OCT_OK;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *dy = &p->slots[s->in[0]].type;
    oct_resample_table table[OCT_MAX_RANK];
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    oct_type x;

    if (!st) return OCT_ERR_MEMORY;
    OCT_TRY(oct_resize_grad_tables(s->node, dy, p->arena, &x, table));
    st->simd = oct_simd_get();
    OCT_TRY(fill_axis(p, &table[2], x.dim[2], dy->dim[2], &st->y));
    OCT_TRY(fill_axis(p, &table[3], x.dim[3], dy->dim[3], &st->x));
    st->batch = x.dim[0];
    st->channels = x.dim[1];
    st->dy_pitch = oct_slot_pitch(p, s->in[0]);
    st->dx_pitch = oct_slot_pitch(p, s->out[0]);
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const float *dy;
    float *dx;
} job;

/* One row of dy to one row of dx. */
static void add_row(const state *st, double w, const float *dy, float *dx, int64_t lanes)
{
    const axis *a = &st->x;

    for (int64_t o = 0; o < a->out; o++)
        for (int64_t t = 0; t < a->taps; t++) {
            const int64_t at = a->index[o * a->taps + t];
            const double weight = w * a->weight[o * a->taps + t];

            if (a->index[o * a->taps] < 0) break;
            if (weight != 0)
                st->simd->axpy((float)weight, dy + o * st->dy_pitch, dx + at * st->dx_pitch, lanes,
                               false);
        }
}

static void one_unit(const job *j, int64_t image, int64_t first, int64_t lanes)
{
    const state *st = j->st;
    const axis *a = &st->y;
    const float *dy = j->dy + image * a->out * st->x.out * st->dy_pitch + first;
    float *dx = j->dx + image * a->in * st->x.in * st->dx_pitch + first;

    for (int64_t i = 0; i < a->in * st->x.in; i++)
        memset(dx + i * st->dx_pitch, 0, (size_t)lanes * sizeof(*dx));
    for (int64_t o = 0; o < a->out; o++)
        for (int64_t t = 0; t < a->taps && a->index[o * a->taps] >= 0; t++)
            add_row(st, a->weight[o * a->taps + t], dy + o * st->x.out * st->dy_pitch,
                    dx + a->index[o * a->taps + t] * st->x.in * st->dx_pitch, lanes);
}

static void units(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const int64_t c = j->st->channels, cuts = oct_ceil_div(c, LANES);

    for (int64_t u = begin; u < end; u++)
        one_unit(j, u / cuts, u % cuts * LANES, OCT_MIN(LANES, c - u % cuts * LANES));
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0]};

    oct_parallel_for(b->n_threads, st->batch * oct_ceil_div(st->channels, LANES), 1, units, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_resize_grad = {
    .name = "resize-grad",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
