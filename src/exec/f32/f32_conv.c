/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution in f32 by octet's own vector code: dense and depthwise, 1-D and 2-D.
 *
 * Unlike oneDNN's it reads and writes any pitch, so that a Concat's producers write into its result
 * and a Split's consumers read its operand, and it adds a scaled residual.
 */
#include <string.h>

#include "base/parallel.h"
#include "exec/f32/f32_conv_blocks.h"
#include "op/conv_geometry.h"
#include "op/op.h"

enum { X, W };

#define CHUNK_MACS     400000 /* work that is worth a thread */
#define GROUP_BYTES    262144 /* weights that should stay in the second-level cache */
#define SEGMENT_PIXELS 240    /* of an image that needs no rows (1x1) */
#define MAX_PATCH      4e6    /* floats that are worth copying for a tile */

typedef struct state {
    const oct_simd *simd;
    oct_conv c;
    bool depthwise;
    int64_t batch, x_step, y_step, residual_step; /* elements from image to image */
    int32_t group_size;                           /* blocks whose weights fit the cache */
    int64_t rows, segments, groups, segment;
    int64_t grain;
} state;

/* Input copied for a tile; a double, because strides and dilations may be anything. */
static double patch_floats(const oct_conv_geometry *g)
{
    const double columns = (double)(OCT_CONV_PIXELS - 1) * (double)g->stride[1] +
                           (double)(g->kernel[1] - 1) * (double)g->dilation[1] + 1;

    return (double)g->kernel[0] * (double)g->c_in * columns;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;

    if (!oct_conv_find(p, s, &g)) return false;
    *layout = OCT_LAYOUT_CLAST;
    if (g.group != 1) return oct_conv_is_depthwise(&g) && g.c_in == g.c_out;
    return patch_floats(&g) <= MAX_PATCH;
}

static void fill_geometry(const oct_conv_geometry *g, oct_conv *c)
{
    c->c_in = g->c_in;
    c->c_out = g->c_out;
    c->in_h = g->in[0];
    c->in_w = g->in[1];
    c->out_h = g->out[0];
    c->out_w = g->out[1];
    for (int i = 0; i < 2; i++) {
        c->kernel[i] = g->kernel[i];
        c->stride[i] = g->stride[i];
        c->dilation[i] = g->dilation[i];
        c->pad[i] = g->pad_begin[i];
    }
}

static oct_status pack_dense(oct_plan *p, state *st, const float *w, const float *bias)
{
    const int64_t taps = st->c.kernel[0] * st->c.kernel[1], o = st->c.c_in * taps;
    const oct_conv_weights weights = {.w = w, .o = o, .c = taps, .t = 1, .bias = bias};

    return oct_conv_pack(p, st->simd, &weights, o, oct_conv_put_taps, &st->c);
}

static oct_status pack_depthwise(oct_plan *p, state *st, const float *w, const float *bias)
{
    oct_conv *c = &st->c;
    const int64_t vw = st->simd->width, taps = c->kernel[0] * c->kernel[1];
    float *packed;

    c->dw_pitch = oct_ceil_div(c->c_out, vw) * vw;
    packed = oct_plan_alloc(p, (size_t)((taps + 1) * c->dw_pitch), sizeof(float));
    if (!packed) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < c->c_out; i++) {
        for (int64_t t = 0; t < taps; t++)
            packed[t * c->dw_pitch + i] = w[i * taps + t];
        if (bias) packed[taps * c->dw_pitch + i] = bias[i];
    }
    c->dw_w = packed;
    c->dw_bias = packed + taps * c->dw_pitch;
    return OCT_OK;
}

static int64_t group_size(const oct_conv *c, int width)
{
    const int64_t per_vec = c->kernel[0] * c->kernel[1] * c->c_in * width * (int64_t)sizeof(float);
    int64_t bytes = 0;

    for (int32_t b = 0; b < c->n_blocks; b++) {
        bytes += per_vec * c->blocks[b].n_vec;
        if (b > 0 && bytes > GROUP_BYTES) return b;
    }
    return c->n_blocks;
}

/* How the work is split: rows, parts of rows, groups of blocks. */
static void share_out(state *st)
{
    oct_conv *c = &st->c;
    const bool pointwise = c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 &&
                           c->stride[1] == 1 && !c->pad[0] && !c->pad[1] && c->out_h == c->in_h &&
                           c->out_w == c->in_w;
    int64_t macs;

    if (pointwise && !st->depthwise) { /* all pixels of the batch are one long row */
        c->in_w = c->out_w = st->batch * c->in_h * c->in_w;
        c->in_h = c->out_h = 1;
        st->batch = 1;
    }
    st->rows = c->out_h;
    st->segment = pointwise ? SEGMENT_PIXELS : c->out_w;
    st->segments = st->depthwise ? 1 : oct_ceil_div(c->out_w, st->segment);
    st->group_size = st->depthwise ? 1 : (int32_t)group_size(c, st->simd->width);
    st->groups = st->depthwise ? 1 : oct_ceil_div(c->n_blocks, st->group_size);
    macs = c->kernel[0] * c->kernel[1] * OCT_MIN(st->segment, c->out_w) *
           (st->depthwise ? 1 : c->c_in) * c->c_out / st->groups;
    st->grain = OCT_MAX(1, CHUNK_MACS / OCT_MAX(macs, 1));
    if (st->depthwise) st->grain = OCT_MAX(1, CHUNK_MACS / 4 / OCT_MAX(macs, 1));
}

static void fill_pitches(const oct_plan *p, const oct_step *s, state *st)
{
    oct_conv *c = &st->c;
    const int32_t r = s->fuse.residual;

    c->in_pitch = oct_slot_pitch(p, s->in[X]);
    c->out_pitch = oct_slot_pitch(p, s->out[0]);
    c->residual_pitch = r >= 0 ? oct_slot_pitch(p, s->in[r]) : 0;
    c->act[0] = s->fuse.act[0];
    c->act[1] = s->fuse.act[1];
    c->residual_scale = s->fuse.residual_scale;
    st->x_step = c->in_h * c->in_w * c->in_pitch;
    st->y_step = c->out_h * c->out_w * c->out_pitch;
    st->residual_step = c->out_h * c->out_w * c->residual_pitch;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_tensor *w = oct_step_const(p, s, W);
    const float *bias = oct_conv_bias(p, s);
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    oct_conv_geometry g;

    if (!st) return OCT_ERR_MEMORY;
    OCT_TRY(oct_conv_geometry_conv(s->node, &p->slots[s->in[X]].type, &w->type, &g));
    oct_conv_geometry_to_2d(&g);
    st->simd = oct_simd_get();
    st->batch = g.batch;
    st->depthwise = g.group > 1;
    fill_geometry(&g, &st->c);
    fill_pitches(p, s, st);
    OCT_TRY(st->depthwise ? pack_depthwise(p, st, w->data, bias)
                          : pack_dense(p, st, w->data, bias));
    share_out(st);
    if (!st->depthwise) {
        st->c.patch_size = (int64_t)patch_floats(&g);
        s->scratch_size = (size_t)(st->c.patch_size * p->n_threads) * sizeof(float);
    }
    s->state = st;
    s->impl =
        oct_arena_printf(p->arena, "%s:%s", st->depthwise ? "depthwise" : "conv", st->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const oct_bound *b;
    const float *residual;
} job;

static void units(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const oct_conv *c = &st->c;
    oct_conv_io io = {0};

    if (!st->depthwise) io.patch = (float *)j->b->scratch + oct_parallel_thread() * c->patch_size;
    for (int64_t u = begin; u < end; u++) {
        const int64_t seg = u % st->segments, y = u / st->segments % st->rows;
        const int64_t g = u / st->segments / st->rows % st->groups;
        const int64_t n = u / st->segments / st->rows / st->groups, x0 = seg * st->segment;

        io.x = (const float *)j->b->in[X] + n * st->x_step;
        io.y = (float *)j->b->out[0] + n * st->y_step;
        io.residual = j->residual ? j->residual + n * st->residual_step : NULL;
        if (st->depthwise)
            st->simd->conv->depthwise(c, &io, y);
        else
            st->simd->conv->dense(c, &io, y, x0, OCT_MIN(x0 + st->segment, c->out_w),
                                  (int32_t)g * st->group_size,
                                  OCT_MIN((int32_t)(g + 1) * st->group_size, c->n_blocks));
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int32_t r = b->step->fuse.residual;
    job j = {st, b, r >= 0 ? b->in[r] : NULL};

    oct_parallel_for(b->n_threads, st->batch * st->groups * st->rows * st->segments, st->grain,
                     units, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_conv = {
    .name = "conv",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
