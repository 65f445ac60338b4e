/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of outer products over pixels. The operands of a unit are copied once into panels, x with
 * its padding in tiles of a few channels, dy in blocks of some vectors: each pair of a tile, a
 * block and a tap is then one call of the inner loop, on memory that lies in the first-level cache.
 */
#include <string.h>

#include "exec/train/conv_grad_weight.h"

#define TILE OCT_OUTER_CHANNELS

void oct_grad_weight_block(const oct_grad_weight *g, int64_t b, int64_t *first, int64_t *n,
                           int64_t *n_vec)
{
    const int64_t vw = g->simd->width, vecs = oct_ceil_div(g->c_out, vw);
    const int64_t from = vecs * b / g->n_blocks;

    *n_vec = vecs * (b + 1) / g->n_blocks - from;
    *first = from * vw;
    *n = OCT_MIN(*n_vec * vw, g->c_out - *first);
}

/* A unit: rows [y, y + rows) and columns [x, x + columns) of the result of one image. */
typedef struct unit {
    int64_t image, y, x, rows, columns;
    int64_t in_rows, in_columns; /* that its windows read */
} unit;

static unit find_unit(const oct_grad_weight *g, int64_t i)
{
    const int64_t across = oct_ceil_div(g->out_w, g->unit_columns);
    const int64_t down = oct_ceil_div(g->out_h, g->unit_rows);
    unit u = {.image = i / (across * down),
              .y = i / across % down * g->unit_rows,
              .x = i % across * g->unit_columns};

    u.rows = OCT_MIN(g->unit_rows, g->out_h - u.y);
    u.columns = OCT_MIN(g->unit_columns, g->out_w - u.x);
    u.in_rows = (u.rows - 1) * g->stride[0] + (g->kernel[0] - 1) * g->dilation[0] + 1;
    u.in_columns = (u.columns - 1) * g->stride[1] + (g->kernel[1] - 1) * g->dilation[1] + 1;
    return u;
}

/* One row of one tile; columns outside of the image are zeros. */
static void copy_tile_row(const float *row, int64_t pitch, int64_t n, int64_t from, int64_t to,
                          int64_t columns, float *p)
{
    memset(p, 0, (size_t)(from * TILE) * sizeof(float));
    if (n == TILE) {
        for (int64_t i = from; i < to; i++)
            memcpy(p + i * TILE, row + i * pitch, TILE * sizeof(float));
    } else {
        for (int64_t i = from; i < to; i++)
            for (int64_t c = 0; c < TILE; c++)
                p[i * TILE + c] = c < n ? row[i * pitch + c] : 0;
    }
    memset(p + to * TILE, 0, (size_t)((columns - to) * TILE) * sizeof(float));
}

static int64_t clamp(int64_t v, int64_t high)
{
    return v < 0 ? 0 : v > high ? high : v;
}

/* [tile][row][column][TILE] */
static void copy_x(const oct_grad_weight *g, const float *x, const unit *u, float *panel)
{
    const int64_t skip = g->skip[1], y0 = u->y * g->stride[0] * g->skip[0] - g->pad[0];
    const int64_t x0 = u->x * g->stride[1] * skip - g->pad[1];
    const int64_t from = clamp(oct_ceil_div(OCT_MAX(-x0, 0), skip), u->in_columns);
    const int64_t to = clamp(oct_ceil_div(OCT_MAX(g->in_w - x0, 0), skip), u->in_columns);

    for (int64_t r = 0; r < u->in_rows; r++) {
        const int64_t y = y0 + r * g->skip[0];
        const bool inside = y >= 0 && y < g->in_h && from < to;
        const float *row =
            x + ((u->image * g->in_h + (inside ? y : 0)) * g->in_w + x0) * g->x_pitch;

        for (int64_t t = 0; t < g->tiles; t++) {
            float *p = panel + (t * u->in_rows + r) * u->in_columns * TILE;

            if (!inside)
                memset(p, 0, (size_t)(u->in_columns * TILE) * sizeof(float));
            else
                copy_tile_row(row + t * TILE, skip * g->x_pitch, OCT_MIN(TILE, g->c_in - t * TILE),
                              from, to, u->in_columns, p);
        }
    }
}

/* [row][column][width] of one block */
static void copy_dy(const oct_grad_weight *g, const float *dy, const unit *u, int64_t n,
                    int64_t width, float *panel)
{
    const size_t size = (size_t)n * sizeof(float), rest = (size_t)(width - n) * sizeof(float);

    for (int64_t r = 0; r < u->rows; r++) {
        const float *row = dy + ((u->image * g->out_h + u->y + r) * g->out_w + u->x) * g->dy_pitch;

        for (int64_t i = 0; i < u->columns; i++, panel += width) {
            memcpy(panel, row + i * g->dy_pitch, size);
            if (rest) memset(panel + n, 0, rest);
        }
    }
}

static void sum_biases(const oct_grad_weight *g, const float *dy, const unit *u, float *db)
{
    for (int64_t r = 0; r < u->rows; r++)
        g->simd->train->sums(dy +
                                 ((u->image * g->out_h + u->y + r) * g->out_w + u->x) * g->dy_pitch,
                             g->dy_pitch, u->columns, db, g->c_out);
}

/* All tiles and taps of one block. */
static void sum_block(const oct_grad_weight *g, const unit *u, const float *x, const float *dy,
                      int64_t n_vec, float *acc)
{
    const int64_t width = n_vec * g->simd->width;
    oct_outer o = {.x_row = g->stride[0] * u->in_columns * TILE,
                   .x_pixel = g->stride[1] * TILE,
                   .dy = dy,
                   .dy_pixel = width,
                   .rows = u->rows,
                   .columns = u->columns,
                   .n_vec = (int)n_vec,
                   .acc = acc};

    for (int64_t t = 0; t < g->tiles; t++)
        for (int64_t ky = 0; ky < g->kernel[0]; ky++)
            for (int64_t kx = 0; kx < g->kernel[1]; kx++) {
                o.x = x + ((t * u->in_rows + ky * g->dilation[0]) * u->in_columns +
                           kx * g->dilation[1]) *
                              TILE;
                g->simd->train->outer(&o);
                o.acc += TILE * width;
            }
}

void oct_grad_weight_dense(const oct_grad_weight_io *io, int64_t part)
{
    const oct_grad_weight *g = io->g;
    const int64_t split = part / g->shares, share = part % g->shares;
    const int64_t b0 = share * g->n_blocks / g->shares, b1 = (share + 1) * g->n_blocks / g->shares;
    const int64_t per_lane = g->tiles * TILE * g->kernel[0] * g->kernel[1], vw = g->simd->width;
    float *acc = oct_grad_weight_acc(io, split);
    float *x = io->scratch + g->splits * g->acc_floats + part * g->room, *dy = x + g->x_floats;
    float *db = acc + g->acc_floats - oct_ceil_div(g->c_out, vw) * vw;
    int64_t first, n, n_vec, end;

    oct_grad_weight_block(g, b1 - 1, &end, &n, &n_vec);
    end += n_vec * vw;
    oct_grad_weight_block(g, b0, &first, &n, &n_vec);
    memset(acc + per_lane * first, 0, (size_t)(per_lane * (end - first)) * sizeof(float));
    if (share == 0) memset(db, 0, (size_t)g->c_out * sizeof(float));
    for (int64_t i = split * g->n_units / g->splits; i < (split + 1) * g->n_units / g->splits;
         i++) {
        const unit u = find_unit(g, i);

        copy_x(g, io->x, &u, x);
        for (int64_t b = b0; b < b1; b++) {
            oct_grad_weight_block(g, b, &first, &n, &n_vec);
            copy_dy(g, io->dy + first, &u, n, n_vec * vw, dy);
            sum_block(g, &u, x, dy, n_vec, acc + per_lane * first);
        }
        if (io->db && share == 0) sum_biases(g, io->dy, &u, db);
    }
}

/* Pixels [*lo, *hi) of a row of n whose tap at `first` lies inside the input. */
static void inside(int64_t first, int64_t stride, int64_t in, int64_t n, int64_t *lo, int64_t *hi)
{
    *lo = first < 0 ? oct_ceil_div(-first, stride) : 0;
    *hi = OCT_MIN(first < in ? (in - 1 - first) / stride + 1 : 0, n);
}

/* One row of the result; acc is [tap][channel]. */
static void depthwise_row(const oct_grad_weight *g, const float *x, const float *dy, int64_t oy,
                          float *acc)
{
    for (int64_t ky = 0; ky < g->kernel[0]; ky++) {
        const int64_t y = oy * g->stride[0] - g->pad[0] + ky * g->dilation[0];

        if (y < 0 || y >= g->in_h) continue;
        for (int64_t kx = 0; kx < g->kernel[1]; kx++) {
            const int64_t at = kx * g->dilation[1] - g->pad[1];
            int64_t lo, hi;

            inside(at, g->stride[1], g->in_w, g->out_w, &lo, &hi);
            if (lo >= hi) continue;
            g->simd->train->dot(dy + lo * g->dy_pitch, g->dy_pitch,
                                x + (y * g->in_w + lo * g->stride[1] + at) * g->x_pitch,
                                g->stride[1] * g->x_pitch, hi - lo,
                                acc + (ky * g->kernel[1] + kx) * g->c_in, g->c_in);
        }
    }
}

void oct_grad_weight_depthwise(const oct_grad_weight_io *io, int64_t split)
{
    const oct_grad_weight *g = io->g;
    const int64_t taps = g->kernel[0] * g->kernel[1];
    float *acc = oct_grad_weight_acc(io, split);

    memset(acc, 0, (size_t)g->acc_floats * sizeof(float));
    for (int64_t i = split * g->n_units / g->splits; i < (split + 1) * g->n_units / g->splits;
         i++) {
        const unit u = {.image = i / g->out_h, .y = i % g->out_h, .rows = 1, .columns = g->out_w};

        depthwise_row(g, io->x + u.image * g->in_h * g->in_w * g->x_pitch,
                      io->dy + i * g->out_w * g->dy_pitch, u.y, acc);
        if (io->db) sum_biases(g, io->dy, &u, acc + taps * g->c_in);
    }
}
