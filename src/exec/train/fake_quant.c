/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FakeQuant and FakeQuantGrad. A tensor is seen as rows with one grid each, or as rows of channels
 * with a grid for each channel. Sums of gradients are made in parts that do not depend on the
 * number of threads, and are added in order.
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/axes.h"
#include "op/grad/fake_quant.h"
#include "op/grad/rules.h"

enum { X, STEP, ZERO };
enum { G_DY = 1, G_STEP, G_ZERO };
enum { DX, DSTEP, DZERO };

#define MAX_PARTS 64
#define RUN       1024 /* elements that are summed in float, at most */
#define LN2       0.69314718055994530942

typedef struct state {
    const oct_simd *simd;
    oct_fake_attrs a;
    bool is_grad;
    float rounding; /* 0: only clipping says something to steps; else 1 */
    bool by_lane;   /* each lane of a row has its own grid; else each row */
    int64_t n_grids;
    int64_t rows, row; /* rows of `row` elements */
    int64_t len; /* of the tensor, if rows are pieces of it: the last may be shorter; else 0 */
    int64_t x_pitch, dy_pitch, y_pitch;
    int64_t parts, sets; /* sets of sums: one for each part, or one where a part is a row */
} state;

static bool accepts_any(const oct_plan *p, const oct_step *s, const oct_op *op, int n_data,
                        oct_layout *layout)
{
    const oct_type *x;
    int64_t axis;

    if (!s->node || s->node->op != op || !oct_step_is_f32(p, s) || !oct_step_is_bare(s) ||
        s->out[0] < 0)
        return false;
    for (int i = 0; i < n_data; i++)
        if (p->slots[s->in[i]].data) return false;
    x = &p->slots[s->in[X]].type;
    axis = oct_node_attr(s->node, "axis")->i;
    if (oct_type_len(x) == 0 || axis > 1) return false;
    *layout = axis < 0 ? OCT_LAYOUT_ANY : axis == 1 ? OCT_LAYOUT_CLAST : OCT_LAYOUT_PLAIN;
    return axis < 1 || (x->rank > 2 && x->rank <= 5);
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    return accepts_any(p, s, &oct_op_fake_quant, 1, layout);
}

static bool accepts_grad(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    return accepts_any(p, s, &oct_op_fake_quant_grad, 2, layout);
}

/* How the elements lie. */
static void see(const oct_plan *p, const oct_step *s, state *st)
{
    const oct_type *t = &p->slots[s->in[X]].type;
    const int32_t x = s->in[X], dy = s->in[st->is_grad ? G_DY : X], y = s->out[0];
    const bool is_dense =
        oct_slot_is_dense(p, x) && oct_slot_is_dense(p, dy) && oct_slot_is_dense(p, y);

    st->by_lane = st->a.axis == 1;
    st->n_grids = st->a.axis < 0 ? 1 : t->dim[st->a.axis];
    if (st->a.axis == 0) {
        st->rows = t->dim[0];
        st->row = oct_type_span(t, 1, t->rank);
    } else if (!st->by_lane && is_dense) {
        st->len = oct_type_len(t);
        st->row = OCT_MIN(st->len, RUN);
        st->rows = oct_ceil_div(st->len, st->row);
    } else {
        st->rows = t->dim[0] * oct_type_pixels(t);
        st->row = t->dim[1];
    }
    st->x_pitch = st->dy_pitch = st->y_pitch = st->row;
    if (st->by_lane || (st->a.axis < 0 && !is_dense)) {
        st->x_pitch = oct_slot_pitch(p, x);
        st->dy_pitch = oct_slot_pitch(p, dy);
        st->y_pitch = oct_slot_pitch(p, y);
    }
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    size_t n;

    if (!st) return OCT_ERR_MEMORY;
    st->simd = oct_simd_get();
    st->is_grad = s->node->op == &oct_op_fake_quant_grad;
    oct_fake_read(s->node, &st->a);
    st->rounding = st->a.learns & OCT_FAKE_CLIPS_ONLY ? 0 : 1;
    see(p, s, st);
    st->parts = st->a.axis == 0 ? st->rows : OCT_MIN(MAX_PARTS, st->rows);
    st->sets = st->a.axis == 0 ? 1 : st->parts;
    n = (size_t)st->n_grids;
    /* scale, low and high of each grid; gradients: two sums in double for each part and grid, two
     * in float for each thread and lane */
    s->scratch_size = 3 * n * sizeof(float);
    if (st->is_grad)
        s->scratch_size += 2 * n * sizeof(double) * (size_t)st->sets +
                           2 * (size_t)st->row * sizeof(float) * (size_t)p->n_threads;
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const float *x, *dy;
    float *y;
    double *sums; /* [set][2][grid] */
    float *scale, *low, *high;
    float *some; /* [thread][2][row] */
} job;

static job job_of(const oct_bound *b)
{
    const state *st = b->step->state;
    const int at = st->is_grad ? G_STEP : STEP;
    const float *step = b->in[at], *zero = b->step->n_in > at + 1 ? b->in[at + 1] : NULL;
    const int64_t n = st->n_grids;
    job j = {.st = st, .x = b->in[X], .y = b->out[0], .sums = b->scratch};

    j.scale = (float *)(j.sums + (st->is_grad ? 2 * n * st->sets : 0));
    j.low = j.scale + n;
    j.high = j.low + n;
    j.some = j.high + n;
    for (int64_t i = 0; i < n; i++) {
        const double z = zero ? rint((double)zero[i]) : 0;

        j.scale[i] = (float)oct_step_scale(st->a.kind, (double)step[i]);
        j.low[i] = (float)(st->a.low - z);
        j.high[i] = (float)(st->a.high - z);
    }
    return j;
}

static int64_t length_of(const state *st, int64_t i)
{
    return st->len ? OCT_MIN(st->row, st->len - i * st->row) : st->row;
}

static void round_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t i = begin; i < end; i++) {
        const int64_t g = st->a.axis == 0 ? i : 0;

        st->simd->fake_quantize(j->x + i * st->x_pitch, j->y + i * st->y_pitch, length_of(st, i),
                                j->scale + g, j->low + g, j->high + g, st->by_lane);
    }
}

/* The sums of one row with one grid, in float over short runs. */
static void row_sums(const job *j, int64_t i, double *sums)
{
    const state *st = j->st;
    const int64_t g = st->a.axis == 0 ? i : 0, n = length_of(st, i);

    for (int64_t k = 0; k < n; k += RUN) {
        float some[2] = {0, 0};
        const float *x = j->x + i * st->x_pitch + k, *dy = j->dy + i * st->dy_pitch + k;

        st->simd->train->fake_grad(x, dy, j->y + i * st->y_pitch + k, OCT_MIN(RUN, n - k),
                                   j->scale[g], j->low[g], j->high[g], st->rounding, some);
        sums[0] += (double)some[0];
        sums[1] += (double)some[1];
    }
}

/* The same with a grid for each lane: rows of a run are added in float. */
static void lane_sums(const job *j, int64_t begin, int64_t end, double *sums)
{
    const state *st = j->st;
    const int64_t n = st->row;
    float *a = j->some + 2 * n * oct_parallel_thread(), *b = a + n;

    for (int64_t i = begin; i < end; i += 64) {
        memset(a, 0, 2 * (size_t)n * sizeof(*a));
        for (int64_t k = i; k < OCT_MIN(i + 64, end); k++)
            st->simd->train->fake_grad_lanes(j->x + k * st->x_pitch, j->dy + k * st->dy_pitch,
                                             j->y + k * st->y_pitch, n, j->scale, j->low, j->high,
                                             st->rounding, a, b);
        for (int64_t k = 0; k < n; k++) {
            sums[k] += (double)a[k];
            sums[n + k] += (double)b[k];
        }
    }
}

static void grad_parts(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const int64_t n = st->n_grids;

    for (int64_t part = begin; part < end; part++) {
        const int64_t first = part * st->rows / st->parts, last = (part + 1) * st->rows / st->parts;
        double own[2] = {0, 0}, *sums = j->sums + part * 2 * n;

        if (st->by_lane) {
            memset(sums, 0, 2 * (size_t)n * sizeof(*sums));
            lane_sums(j, first, last, sums);
            continue;
        }
        for (int64_t i = first; i < last; i++)
            row_sums(j, i, own);
        if (st->a.axis == 0) { /* a part is a row, and a row has its own grid */
            j->sums[part] = own[0];
            j->sums[n + part] = own[1];
        } else {
            sums[0] = own[0];
            sums[1] = own[1];
        }
    }
}

/* The sums of all parts, in order. */
static void give_sums(const job *j, float *dstep, float *dzero)
{
    const state *st = j->st;
    const int64_t n = st->n_grids;

    for (int64_t i = 0; i < n; i++) {
        double a = 0, b = 0, factor = st->a.grad_scale;

        for (int64_t k = 0; k < st->sets; k++) {
            a += j->sums[k * 2 * n + i];
            b += j->sums[k * 2 * n + n + i];
        }
        if (dzero) dzero[i] = (float)(-b * (double)j->scale[i] * factor);
        if (st->a.kind != OCT_STEP_SCALE) factor *= (double)j->scale[i] * LN2;
        if (dstep) dstep[i] = (float)(a * factor);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = job_of(b);

    oct_parallel_for(b->n_threads, st->rows, OCT_MAX(1, OCT_GRAIN_ELEMENTS / st->row), round_rows,
                     &j);
    return OCT_OK;
}

static oct_status run_grad(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = job_of(b);

    j.dy = b->in[G_DY];
    oct_parallel_for(b->n_threads, st->parts, 1, grad_parts, &j);
    give_sums(&j, b->step->n_out > DSTEP ? b->out[DSTEP] : NULL,
              b->step->n_out > DZERO ? b->out[DZERO] : NULL);
    return OCT_OK;
}

const oct_kernel oct_kernel_fake_quant = {
    .name = "fake-quant",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT | OCT_KERNEL_IN_PLACE,
    .accepts = accepts,
    .make = make,
    .run = run,
};

const oct_kernel oct_kernel_fake_quant_grad = {
    .name = "fake-quant-grad",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT | OCT_KERNEL_IN_PLACE,
    .accepts = accepts_grad,
    .make = make,
    .run = run_grad,
};
