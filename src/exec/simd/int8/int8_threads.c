/* SPDX-License-Identifier: Apache-2.0 */
/* Whole integer convolutions and poolings: the inner loops, distributed over threads. */
#include "base/parallel.h"
#include "exec/simd/int8/int8_winograd.h"

#define ROW_BYTES  65536 /* input of a pooling that is worth a thread */
#define POOL_CHUNK 512   /* channels that are pooled together */

/* --- convolution --- */

typedef struct conv_job {
    const oct_int8_conv *c;
    const oct_int8_epilogue *f;
    const oct_int8_io *io;
    size_t y_size, r_size; /* of an element */
    int64_t n_parts;       /* of an image's tiles, or of a row */
    int64_t n_groups;      /* of blocks, where they are tiles */
} conv_job;

/* The addresses of the image, and this thread's scratch memory. */
static oct_int8_io image_io(const conv_job *j, int64_t n)
{
    oct_int8_io io = *j->io;

    if (io.scratch)
        io.scratch = (uint8_t *)io.scratch + (size_t)oct_parallel_thread() * j->c->scratch_size;
    io.x += n * j->c->in_step;
    io.y = (uint8_t *)io.y + (size_t)(n * j->c->out_step) * j->y_size;
    if (io.residual)
        io.residual = (const uint8_t *)io.residual + (size_t)(n * j->c->residual_step) * j->r_size;
    return io;
}

static void conv_units(void *arg, int64_t begin, int64_t end)
{
    const conv_job *j = arg;
    const oct_int8_conv *c = j->c;

    for (int64_t u = begin; u < end; u++) {
        const int64_t part = u % j->n_parts, y = u / j->n_parts % c->rows;
        const int64_t g = u / j->n_parts / c->rows % c->groups;
        const oct_int8_io io = image_io(j, u / j->n_parts / c->rows / c->groups);

        if (c->depthwise)
            c->set->depthwise(c, j->f, &io, y);
        else
            c->set->dense(c, j->f, &io, y, c->out_w * part / j->n_parts,
                          c->out_w * (part + 1) / j->n_parts, (int32_t)g * c->group_size,
                          OCT_MIN((int32_t)(g + 1) * c->group_size, c->n_blocks));
    }
}

/* The parts are as even as possible: no thread waits for another one's last. */
static void conv_tiles(void *arg, int64_t begin, int64_t end)
{
    const conv_job *j = arg;
    const int64_t n = j->c->tiles[0] * j->c->tiles[1];

    for (int64_t u = begin; u < end; u++) {
        const int64_t k = u % j->n_parts, first = n * k / j->n_parts;
        const int64_t g = u / j->n_parts % j->n_groups, blocks = j->c->n_blocks;
        const oct_int8_io io = image_io(j, u / j->n_parts / j->n_groups);

        j->c->set->winograd(j->c, j->f, &io, first, n * (k + 1) / j->n_parts - first,
                            (int32_t)(blocks * g / j->n_groups),
                            (int32_t)(blocks * (g + 1) / j->n_groups));
    }
}

/* The size of parts of n, at most `most`, that gives each thread the same number. */
static int64_t even_parts(int64_t n, int64_t most, int n_threads)
{
    const int64_t threads = OCT_MAX(n_threads, 1), round = most * threads;

    return OCT_MIN(n, oct_ceil_div(n, round) * threads);
}

/*
 * A few tiles need all weights, and those are many: then each thread computes some channels of all
 * tiles and loads only its own weights. Every thread transforms all tiles, which pays off from two
 * blocks on.
 */
static int64_t tile_groups(const oct_int8_conv *c, int n_threads)
{
    const int64_t threads = OCT_MAX(n_threads, 1);
    const int64_t n_vec = oct_ceil_div(c->c_out, c->set->width);
    const bool few = c->batch * c->tiles[0] * c->tiles[1] <= 2 * OCT_INT8_MAX_TILES;
    const bool even = n_vec % c->n_blocks == 0 && c->n_blocks % threads == 0;

    return few && even && c->n_blocks >= 2 * threads ? threads : 1;
}

void oct_int8_conv_run(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                       int n_threads)
{
    conv_job j = {c, f, io, f->out == OCT_INT8_U8 ? 1 : 4, f->residual == OCT_INT8_U8 ? 1 : 4,
                  0, 1};

    if (c->winograd) {
        j.n_groups = tile_groups(c, n_threads);
        j.n_parts = even_parts(c->tiles[0] * c->tiles[1], OCT_INT8_MAX_TILES,
                               j.n_groups > 1 ? 1 : n_threads);
        oct_parallel_for(n_threads, c->batch * j.n_groups * j.n_parts, 1, conv_tiles, &j);
        return;
    }
    j.n_parts = c->segment < c->out_w ? even_parts(c->out_w, c->segment, n_threads) : 1;
    oct_parallel_for(n_threads, c->batch * c->groups * c->rows * j.n_parts, c->grain, conv_units,
                     &j);
}

/* --- pooling --- */

typedef struct pool_job {
    const oct_int8 *set;
    const oct_int8_pool *p;
    const uint8_t *x;
    uint8_t *y;
} pool_job;

/* The taps of one output pixel, along y and x. */
typedef struct pool_window {
    int64_t start[2];       /* position of the first tap, which may lie in the padding */
    int64_t from[2], to[2]; /* taps that lie inside */
    int64_t count;          /* what the sum is divided by */
} pool_window;

/* Finds the taps of window o along axis d that lie inside. */
static void inside(const oct_int8_pool *p, int d, int64_t size, int64_t o, pool_window *w)
{
    const int64_t start = o * p->stride[d] - p->pad[d], step = p->dilation[d];
    const int64_t room = size - start, from = start < 0 ? oct_ceil_div(-start, step) : 0;

    w->from[d] = OCT_MIN(from, p->kernel[d]);
    w->to[d] = room <= 0 ? w->from[d]
                         : OCT_MAX(OCT_MIN(oct_ceil_div(room, step), p->kernel[d]), w->from[d]);
}

/* Taps of window o along axis d that lie inside the image or its padding. */
static int64_t padded_taps(const oct_int8_pool *p, int d, int64_t size, int64_t o)
{
    const int64_t room = size + p->pad_end[d] - (o * p->stride[d] - p->pad[d]);

    return room <= 0 ? 0 : OCT_MIN(oct_ceil_div(room, p->dilation[d]), p->kernel[d]);
}

/* Channels [first, first + n) of one window. */
static void mean_part(const pool_job *j, const pool_window *w, const uint8_t *x, uint8_t *y,
                      int64_t first, int64_t n)
{
    const oct_int8_pool *p = j->p;
    const int64_t taps = (w->to[0] - w->from[0]) * (w->to[1] - w->from[1]);
    int32_t sum[POOL_CHUNK] = {0};
    float scale[POOL_CHUNK], low[POOL_CHUNK], high[POOL_CHUNK];
    int32_t zero[POOL_CHUNK];
    const oct_int8_epilogue f = {.way = OCT_INT8_DIRECT,
                                 .out = OCT_INT8_U8,
                                 .scale = scale,
                                 .bias = scale, /* parameters that this form does not use, but may
                                                 * load */
                                 .slope = scale,
                                 .limit = scale,
                                 .r_scale = scale,
                                 .r_zero = scale,
                                 .inv = scale,
                                 .low = low,
                                 .high = high,
                                 .zero = zero};

    for (int64_t ky = w->from[0]; ky < w->to[0]; ky++)
        for (int64_t kx = w->from[1]; kx < w->to[1]; kx++) {
            const int64_t iy = w->start[0] + ky * p->dilation[0];
            const int64_t ix = w->start[1] + kx * p->dilation[1];

            j->set->add(x + (iy * p->in_w + ix) * p->in_pitch + first, sum, n,
                        ky == w->from[0] && kx == w->from[1]);
        }
    for (int64_t i = 0; i < POOL_CHUNK; i++) {
        const int64_t k = OCT_MIN(first + i, p->c - 1);
        const int64_t kx = p->x.n > 1 ? k : 0, ky = p->y.n > 1 ? k : 0;

        sum[i] -= (int32_t)(taps * (p->x.zero ? p->x.zero[kx] : 0));
        scale[i] = p->x.scale[kx] / (p->y.scale[ky] * (float)w->count);
        zero[i] = p->y.zero ? p->y.zero[ky] : 0;
        low[i] = (float)-zero[i];
        high[i] = (float)(oct_int8_last(&p->y) - zero[i]);
        if (i >= (n + 63) / 64 * 64) break;
    }
    j->set->epilogue(&f, &(oct_int8_rows){.sum = sum,
                                          .acc_pitch = POOL_CHUNK,
                                          .n = n,
                                          .count = 1,
                                          .y = y + first,
                                          .y_pitch = p->c});
}

static void pool_rows(void *arg, int64_t begin, int64_t end)
{
    const pool_job *j = arg;
    const oct_int8_pool *p = j->p;

    for (int64_t u = begin; u < end; u++) {
        const int64_t oy = u % p->out_h, b = u / p->out_h;
        const uint8_t *x = j->x + b * p->in_step;
        uint8_t *y = j->y + b * p->out_step + oy * p->out_w * p->out_pitch;

        for (int64_t ox = 0; ox < p->out_w; ox++, y += p->out_pitch) {
            pool_window w = {
                .start = {oy * p->stride[0] - p->pad[0], ox * p->stride[1] - p->pad[1]}};

            inside(p, 0, p->in_h, oy, &w);
            inside(p, 1, p->in_w, ox, &w);
            w.count = p->count_pads
                          ? padded_taps(p, 0, p->in_h, oy) * padded_taps(p, 1, p->in_w, ox)
                          : (w.to[0] - w.from[0]) * (w.to[1] - w.from[1]);
            w.count = OCT_MAX(w.count, 1);
            for (int64_t k = 0; k < p->c; k += POOL_CHUNK)
                mean_part(j, &w, x, y, k, OCT_MIN(p->c - k, POOL_CHUNK));
        }
    }
}

void oct_int8_average_pool(const oct_int8 *set, const oct_int8_pool *p, const uint8_t *x,
                           uint8_t *y, int n_threads)
{
    const int64_t work = p->out_w * p->c * OCT_MIN(p->kernel[0], p->in_h) * /* of many taps, few */
                         OCT_MIN(p->kernel[1], p->in_w);                    /* lie inside */
    pool_job j = {set, p, x, y};

    oct_parallel_for(n_threads, p->batch * p->out_h, OCT_MAX(1, ROW_BYTES / OCT_MAX(work, 1)),
                     pool_rows, &j);
}
