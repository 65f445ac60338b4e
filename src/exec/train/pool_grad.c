/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPoolGrad and AveragePoolGrad in NHWC: windows overlap, so a thread has whole images and some
 * of their channels. */
#include <string.h>

#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/grad/rules.h"
#include "op/pool.h"

#define LANES    64  /* channels of a unit of work */
#define MAX_TAPS 256 /* of a window */

typedef struct state {
    const oct_simd *simd;
    oct_conv_geometry g;
    bool is_max, include_pad;
    int64_t x_pitch, dy_pitch, dx_pitch;
} state;

static bool find_geometry(const oct_plan *p, const oct_step *s, oct_conv_geometry *g)
{
    if (!s->node ||
        (s->node->op != &oct_op_max_pool_grad && s->node->op != &oct_op_average_pool_grad))
        return false;
    return !oct_conv_geometry_pool(s->node, &p->slots[s->out[0]].type, g) && g->n == 2;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;

    if (!find_geometry(p, s, &g) || !oct_step_is_f32(p, s) || !oct_step_is_bare(s)) return false;
    for (int32_t i = 0; i < s->n_in; i++)
        if (p->slots[s->in[i]].data) return false;
    for (int d = 0; d < 2; d++)
        if (g.in[d] < 1 || g.out[d] < 1 || g.kernel[d] > MAX_TAPS) return false;
    *layout = OCT_LAYOUT_CLAST;
    return g.kernel[0] * g.kernel[1] <= MAX_TAPS && g.batch > 0 && g.c_in > 0;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    const oct_attr *pad = oct_node_attr(s->node, "count_include_pad");

    if (!st) return OCT_ERR_MEMORY;
    st->simd = oct_simd_get();
    st->is_max = s->node->op == &oct_op_max_pool_grad;
    st->include_pad = pad && pad->i;
    if (!find_geometry(p, s, &st->g))
        return oct_node_fail(s->node, OCT_ERR_STATE, "has changed since its kernel was chosen");
    st->x_pitch = oct_slot_pitch(p, s->in[0]);
    st->dy_pitch = oct_slot_pitch(p, s->in[st->is_max ? 1 : 0]);
    st->dx_pitch = oct_slot_pitch(p, s->out[0]);
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const float *x, *dy; /* x: MaxPoolGrad only */
    float *dx;
} job;

/* The pixels of x in the window of output pixel o, in order; how many. */
static int32_t find_taps(const oct_conv_geometry *g, const int64_t *o, int64_t *pixel, double *n)
{
    int64_t from[OCT_MAX_SPATIAL] = {0}, to[OCT_MAX_SPATIAL] = {0}, k[2];
    int32_t count = 0;

    for (int d = 0; d < 2; d++)
        oct_conv_window(g, d, o[d], &from[d], &to[d]);
    if (n && from[0] < to[0] && from[1] < to[1]) *n = oct_pool_divisor(g, *n != 0, o, from, to);
    for (k[0] = from[0]; k[0] < to[0]; k[0]++)
        for (k[1] = from[1]; k[1] < to[1]; k[1]++)
            pixel[count++] = oct_pool_at(g, o, k);
    return count;
}

static void to_maximum(const state *st, const float *x, const float *dy, float *dx,
                       const int64_t *pixel, int32_t n, int64_t lanes)
{
    int32_t index[LANES];
    int64_t at[MAX_TAPS];

    for (int32_t k = 0; k < n; k++)
        at[k] = pixel[k] * st->x_pitch;
    st->simd->train->max_taps(x, at, n, index, lanes);
    for (int64_t i = 0; i < lanes; i++)
        dx[pixel[index[i]] * st->dx_pitch + i] += dy[i];
}

/* Some channels of one image. */
static void one_unit(const job *j, int64_t image, int64_t first, int64_t lanes)
{
    const state *st = j->st;
    const oct_conv_geometry *g = &st->g;
    const int64_t in_size = g->in[0] * g->in[1], out_size = g->out[0] * g->out[1];
    const float *x = j->x ? j->x + image * in_size * st->x_pitch + first : NULL;
    const float *dy = j->dy + image * out_size * st->dy_pitch + first;
    float *dx = j->dx + image * in_size * st->dx_pitch + first;
    int64_t pixel[MAX_TAPS], o[OCT_MAX_SPATIAL] = {0};

    for (int64_t i = 0; i < in_size; i++)
        memset(dx + i * st->dx_pitch, 0, (size_t)lanes * sizeof(*dx));
    for (o[0] = 0; o[0] < g->out[0]; o[0]++)
        for (o[1] = 0; o[1] < g->out[1]; o[1]++, dy += st->dy_pitch) {
            double divisor = st->include_pad;
            const int32_t n = find_taps(g, o, pixel, x ? NULL : &divisor);

            if (!n) continue;
            if (x)
                to_maximum(st, x, dy, dx, pixel, n, lanes);
            else
                for (int32_t k = 0; k < n; k++)
                    st->simd->axpy((float)(1 / divisor), dy, dx + pixel[k] * st->dx_pitch, lanes,
                                   false);
        }
}

static void units(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const int64_t c = j->st->g.c_in, cuts = oct_ceil_div(c, LANES);

    for (int64_t u = begin; u < end; u++)
        one_unit(j, u / cuts, u % cuts * LANES, OCT_MIN(LANES, c - u % cuts * LANES));
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, st->is_max ? b->in[0] : NULL, b->in[st->is_max ? 1 : 0], b->out[0]};

    oct_parallel_for(b->n_threads, st->g.batch * oct_ceil_div(st->g.c_in, LANES), 1, units, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_pool_grad = {
    .name = "pool-grad",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
