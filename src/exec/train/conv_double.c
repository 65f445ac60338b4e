/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first convolution of a network in training, with sums in double. Pixels of an image are all
 * positive, so its result has a mean of many deviations, and borders of one colour have the same
 * rounding error in each pixel. Normalization over the batch, which follows, takes off the mean and
 * leaves the error: in float it would be the largest of the whole network.
 */
#include "base/parallel.h"
#include "exec/f32/f32_conv_blocks.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/conv_geometry.h"
#include "op/op.h"

enum { X, W, B };

#define MAX_CHANNELS 4   /* of an image */
#define MIN_TERMS    8   /* products of one sum: fewer lose nothing in float */
#define MAX_TERMS    256 /* more are no first convolution */
#define SEGMENT      32  /* pixels of the result that share a patch */
#define CHUNK_MACS   200000
#define MAX_STRIDE   8

typedef struct state {
    const oct_simd *simd;
    oct_conv_geometry g;
    int64_t x_pitch, y_pitch;
    int64_t terms, lanes;             /* terms of a row of taps; output channels, rounded up */
    int64_t weights_size, patch_size; /* doubles; patch: of one thread */
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;

    if (!s->node || s->node->op != &oct_op_conv || !oct_conv_find(p, s, &g) ||
        oct_conv_is_constant(p, s) || !oct_step_is_bare(s))
        return false;
    *layout = OCT_LAYOUT_CLAST;
    for (int i = 0; i < 2; i++)
        if (g.dilation[i] != 1 || g.stride[i] > MAX_STRIDE || g.kernel[i] > MAX_TERMS) return false;
    return g.group == 1 && g.c_in <= MAX_CHANNELS &&
           g.c_in * g.kernel[0] * g.kernel[1] >= MIN_TERMS &&
           g.c_in * g.kernel[0] * g.kernel[1] <= MAX_TERMS;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    int64_t block;

    if (!st) return OCT_ERR_MEMORY;
    if (!oct_conv_find(p, s, &st->g))
        return oct_node_fail(s->node, OCT_ERR_STATE, "has changed since its kernel was chosen");
    st->simd = oct_simd_get();
    block = 2 * st->simd->width; /* four vectors of doubles */
    st->x_pitch = oct_slot_pitch(p, s->in[X]);
    st->y_pitch = oct_slot_pitch(p, s->out[0]);
    st->terms = st->g.kernel[1] * st->g.c_in;
    st->lanes = oct_ceil_div(st->g.c_out, block) * block;
    st->weights_size = (st->g.kernel[0] * st->terms + 1) * st->lanes; /* and biases */
    st->patch_size =
        st->g.kernel[0] * ((SEGMENT - 1) * st->g.stride[1] + st->g.kernel[1]) * st->g.c_in;
    st->patch_size = oct_ceil_div(st->patch_size, 8) * 8;
    s->scratch_size = (size_t)(st->weights_size + st->patch_size * p->n_threads) * sizeof(double);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "conv, sums in double:%s", st->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const float *x;
    float *y;
    double *w, *patches; /* w: [ky][kx][c][lanes], then biases */
} job;

static void pack(const state *st, const float *w, const float *bias, double *to)
{
    const oct_conv_geometry *g = &st->g;
    const int64_t taps = g->kernel[0] * g->kernel[1];

    for (int64_t k = 0; k < taps; k++)
        for (int64_t c = 0; c < g->c_in; c++, to += st->lanes)
            for (int64_t o = 0; o < st->lanes; o++)
                to[o] = o < g->c_out ? (double)w[(o * g->c_in + c) * taps + k] : 0;
    for (int64_t o = 0; o < st->lanes; o++)
        to[o] = bias && o < g->c_out ? (double)bias[o] : 0;
}

/* What n pixels from x0 of row y read, with zeros for the padding: [ky][column][c]. */
static void copy_patch(const state *st, const float *image, int64_t y, int64_t x0, int64_t columns,
                       double *to)
{
    const oct_conv_geometry *g = &st->g;

    for (int64_t ky = 0; ky < g->kernel[0]; ky++) {
        const int64_t iy = y * g->stride[0] - g->pad_begin[0] + ky;
        const float *row = image + iy * g->in[1] * st->x_pitch;

        for (int64_t i = 0; i < columns; i++, to += g->c_in) {
            const int64_t ix = x0 * g->stride[1] - g->pad_begin[1] + i;
            const bool inside = iy >= 0 && iy < g->in[0] && ix >= 0 && ix < g->in[1];

            for (int64_t c = 0; c < g->c_in; c++)
                to[c] = inside ? (double)row[ix * st->x_pitch + c] : 0;
        }
    }
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const oct_conv_geometry *g = &st->g;
    double *patch = j->patches + oct_parallel_thread() * st->patch_size;

    for (int64_t r = begin; r < end; r++) {
        const int64_t y = r % g->out[0];
        const float *image = j->x + r / g->out[0] * g->in[0] * g->in[1] * st->x_pitch;

        for (int64_t x = 0; x < g->out[1]; x += SEGMENT) {
            const int64_t n = OCT_MIN(SEGMENT, g->out[1] - x);
            const int64_t columns = (n - 1) * g->stride[1] + g->kernel[1];
            const oct_conv_sums sums = {.x = patch,
                                        .row = columns * g->c_in,
                                        .pixel = g->stride[1] * g->c_in,
                                        .rows = g->kernel[0],
                                        .terms = st->terms,
                                        .w = j->w,
                                        .lanes = st->lanes,
                                        .y = j->y + (r * g->out[1] + x) * st->y_pitch,
                                        .pitch = st->y_pitch,
                                        .c_out = g->c_out,
                                        .n = n};

            copy_patch(st, image, y, x, columns, patch);
            st->simd->train->conv_double(&sums);
        }
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const oct_conv_geometry *g = &st->g;
    job j = {st, b->in[X], b->out[0], b->scratch, (double *)b->scratch + st->weights_size};
    const int64_t macs = g->out[1] * g->kernel[0] * st->terms * g->c_out;

    pack(st, b->in[W], b->step->n_in > B ? b->in[B] : NULL, j.w);
    oct_parallel_for(b->n_threads, g->batch * g->out[0], OCT_MAX(1, CHUNK_MACS / OCT_MAX(macs, 1)),
                     rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_conv_double = {
    .name = "conv-double",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .plain_in = 1u << W,
    .accepts = accepts,
    .make = make,
    .run = run,
};
