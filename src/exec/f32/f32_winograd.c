/* SPDX-License-Identifier: Apache-2.0 */
/* 3x3 convolutions with stride 1 by Winograd's method, where it is faster. */
#include "base/parallel.h"
#include "exec/f32/f32_conv_blocks.h"
#include "op/conv_geometry.h"
#include "op/op.h"

enum { X, W };

/*
 * Below these the transforms cost more than the products they save. A tile saves 108 of 144
 * products for each pair of an input and an output channel, while its transforms cost the same for
 * each input and each output channel: few channels do not pay for them. 256 pixels are 16 tiles,
 * the rows of the 36 matrix products: fewer do not fill a register tile. Both limits are estimates
 * on the safe side, not measurements.
 */
#define MIN_CHANNELS 16
#define MIN_PIXELS   256

typedef struct state {
    const oct_simd *simd;
    oct_conv c;
    int64_t tiles;
} state;

static bool is_3x3(const oct_conv_geometry *g)
{
    for (int i = 0; i < 2; i++)
        if (g->kernel[i] != 3 || g->stride[i] != 1 || g->dilation[i] != 1 || g->pad_begin[i] > 2)
            return false;
    return true;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;

    if (!oct_conv_find(p, s, &g)) return false;
    *layout = OCT_LAYOUT_CLAST;
    return is_3x3(&g) && g.group == 1 && g.c_in >= MIN_CHANNELS && g.c_out >= MIN_CHANNELS &&
           g.out[0] * g.out[1] >= MIN_PIXELS;
}

/* One 3x3 filter to 6x6: G g G'. */
static void transform_filter(const float *w, double u[36])
{
    static const double g[6][3] = {{1.0 / 4, 0, 0},
                                   {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                   {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                   {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                   {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                   {0, 0, 1}};
    double t[6][3];

    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 3; k++)
            t[i][k] =
                g[i][0] * (double)w[k] + g[i][1] * (double)w[3 + k] + g[i][2] * (double)w[6 + k];
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++)
            u[i * 6 + k] = g[k][0] * t[i][0] + g[k][1] * t[i][1] + g[k][2] * t[i][2];
}

static void put_points(const oct_conv_weights *w, const oct_conv *c, int64_t o, float *to,
                       int64_t step)
{
    for (int64_t i = 0; i < c->c_in; i++) {
        double u[36];

        transform_filter(w->w + o * w->o + i * w->c, u);
        for (int64_t k = 0; k < 36; k++)
            to[(k * c->c_in + i) * step] = (float)u[k];
    }
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_tensor *w = oct_step_const(p, s, W);
    const oct_conv_weights weights = {
        .w = w->data, .o = w->type.dim[1] * 9, .c = 9, .t = 1, .bias = oct_conv_bias(p, s)};
    const int32_t r = s->fuse.residual;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    oct_conv_geometry g;

    if (!st) return OCT_ERR_MEMORY;
    OCT_TRY(oct_conv_geometry_conv(s->node, &p->slots[s->in[X]].type, &w->type, &g));
    st->simd = oct_simd_get();
    st->c = (oct_conv){.in_h = g.in[0],
                       .in_w = g.in[1],
                       .in_pitch = oct_slot_pitch(p, s->in[X]),
                       .c_in = g.c_in,
                       .out_h = g.out[0],
                       .out_w = g.out[1],
                       .out_pitch = oct_slot_pitch(p, s->out[0]),
                       .c_out = g.c_out,
                       .residual_pitch = r >= 0 ? oct_slot_pitch(p, s->in[r]) : 0,
                       .pad = {g.pad_begin[0], g.pad_begin[1]},
                       .act = {s->fuse.act[0], s->fuse.act[1]},
                       .residual_scale = s->fuse.residual_scale};
    OCT_TRY(oct_conv_pack(p, st->simd, &weights, 36 * g.c_in, put_points, &st->c));
    st->tiles = g.batch * oct_ceil_div(g.out[0], 4) * oct_ceil_div(g.out[1], 4);
    st->c.patch_size =
        36 * OCT_WINOGRAD_TILES * (g.c_in + (int64_t)st->simd->conv->max_vec * st->simd->width);
    s->scratch_size = (size_t)(st->c.patch_size * p->n_threads) * sizeof(float);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "winograd:%s", st->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const oct_bound *b;
    const float *residual;
} job;

static void some_tiles(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_conv *c = &j->st->c;
    const oct_conv_io io = {.x = j->b->in[X],
                            .y = j->b->out[0],
                            .residual = j->residual,
                            .patch =
                                (float *)j->b->scratch + oct_parallel_thread() * c->patch_size};

    j->st->simd->conv->winograd(c, &io, begin, end - begin);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int32_t r = b->step->fuse.residual;
    job j = {st, b, r >= 0 ? b->in[r] : NULL};

    /* few tiles: smaller chunks, so that every thread gets some */
    oct_parallel_for(b->n_threads, st->tiles,
                     st->tiles < 4 * OCT_WINOGRAD_TILES ? OCT_WINOGRAD_TILES / 2
                                                        : OCT_WINOGRAD_TILES,
                     some_tiles, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_winograd = {
    .name = "winograd",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
