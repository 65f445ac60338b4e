/* SPDX-License-Identifier: Apache-2.0 */
/* The reference integer convolution: channels innermost, so that each filter row is one dot
 * product. */
#include "op/conv_integer.h"

#include <string.h>

#include "base/parallel.h"
#include "op/idot.h"

/*
 * "Row" is an index over all spatial axes but the last. x is [batch x group x row x col x c] with
 * zeros to the left and right, so that columns need no bounds; w is [filter x row x col x c].
 */
typedef struct job {
    const oct_conv_geometry *g;
    const oct_tensor *x_in, *w_in;
    int32_t x_zero;
    const int32_t *w_zero;
    int16_t *x, *w;
    int32_t *y;
    int64_t c;                         /* channels of one group */
    int64_t cols;                      /* of a padded row */
    int64_t in_rows, out_rows, k_rows; /* how many there are */
} job;

static int64_t rows_of(const oct_conv_geometry *g, const int64_t *dim)
{
    int64_t n = 1;

    for (int d = 0; d < g->n - 1; d++)
        n *= dim[d];
    return n;
}

/* One row of one group of one image. */
static void widen_x(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_conv_geometry *g = j->g;
    const int last = g->n - 1;
    const int64_t width = g->in[last], left = g->pad_begin[last];
    const int64_t n = OCT_MIN(width, j->cols - left); /* the right end may never be read */
    int16_t line[256];

    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % j->in_rows, image_group = i / j->in_rows;
        int16_t *to = j->x + (i * j->cols + left) * j->c;

        for (int64_t c = 0; c < j->c; c++) {
            const int64_t from = ((image_group * j->c + c) * j->in_rows + row) * width;

            for (int64_t at = 0, m; at < n; at += m) {
                m = OCT_MIN(n - at, (int64_t)OCT_COUNT(line));
                oct_widen(j->x_in->type.dtype, j->x_in->data, from + at, 1, m, j->x_zero, line);
                for (int64_t k = 0; k < m; k++)
                    to[(at + k) * j->c + c] = line[k];
            }
        }
    }
}

static void widen_w(const job *j)
{
    const oct_conv_geometry *g = j->g;
    const int64_t taps = oct_conv_geometry_kernel_size(g);

    for (int64_t m = 0; m < g->c_out; m++)
        for (int64_t t = 0; t < taps; t++)
            oct_widen(j->w_in->type.dtype, j->w_in->data, m * j->c * taps + t, taps, j->c,
                      j->w_zero[m], j->w + (m * taps + t) * j->c);
}

/* The input row that output row o reads through kernel row k; -1: padding. */
static int64_t row_read(const oct_conv_geometry *g, int64_t o, int64_t k)
{
    int64_t row = 0, scale = 1;

    for (int d = g->n - 2; d >= 0; d--) {
        const int64_t i =
            o % g->out[d] * g->stride[d] + k % g->kernel[d] * g->dilation[d] - g->pad_begin[d];

        if (i < 0 || i >= g->in[d]) return -1;
        row += i * scale;
        scale *= g->in[d];
        o /= g->out[d];
        k /= g->kernel[d];
    }
    return row;
}

/* One channel to one: a dot product has only a few terms, so the loop goes along the row. */
static void add_taps(const job *j, const int16_t *x, const int16_t *w, int32_t *y)
{
    const oct_conv_geometry *g = j->g;
    const int last = g->n - 1;
    const int64_t s = g->stride[last], n = g->out[last];

    for (int64_t t = 0; t < g->kernel[last]; t++) {
        const int16_t *from = x + t * g->dilation[last];
        const int32_t tap = w[t];

        if (s == 1)
            for (int64_t i = 0; i < n; i++)
                y[i] = (int32_t)((uint32_t)y[i] + (uint32_t)(from[i] * tap));
        else
            for (int64_t i = 0; i < n; i++)
                y[i] = (int32_t)((uint32_t)y[i] + (uint32_t)(from[i * s] * tap));
    }
}

/* All filters of one group at one output row of one image. */
static void conv_row(const job *j, int64_t image, int64_t group, int64_t row)
{
    const oct_conv_geometry *g = j->g;
    const int last = g->n - 1;
    const int64_t n = g->out[last], filters = g->c_out / g->group;
    const int64_t y_row = j->out_rows * n; /* from filter to filter */
    const int64_t w_row = j->k_rows * g->kernel[last] * j->c;
    const bool dense = g->dilation[last] == 1;
    const int64_t taps = dense ? 1 : g->kernel[last];
    const int64_t terms = (dense ? g->kernel[last] : 1) * j->c;
    int32_t *y = j->y + ((image * g->c_out + group * filters) * j->out_rows + row) * n;

    for (int64_t k = 0; k < j->k_rows; k++) {
        const int64_t in_row = row_read(g, row, k);
        const int16_t *w = j->w + group * filters * w_row + k * g->kernel[last] * j->c, *x;

        if (in_row < 0) continue;
        x = j->x + ((image * g->group + group) * j->in_rows + in_row) * j->cols * j->c;
        if (j->c == 1) {
            for (int64_t m = 0; m < filters; m++)
                add_taps(j, x, w + m * w_row, y + m * y_row);
            continue;
        }
        for (int64_t t = 0; t < taps; t++)
            oct_idot(filters, w + t * j->c, w_row, n, x + t * g->dilation[last] * j->c,
                     g->stride[last] * j->c, terms, y, y_row);
    }
}

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % j->out_rows, image_group = i / j->out_rows;

        conv_row(j, image_group / j->g->group, image_group % j->g->group, row);
    }
}

/* A 1x1 convolution needs no rows: one list of pixels, split anywhere between threads. */
static void flatten_pointwise(oct_conv_geometry *g)
{
    const int64_t pixels = oct_conv_geometry_in_size(g);

    if (!oct_conv_is_pointwise(g) || g->n == 1) return;
    g->in[1] = g->out[1] = g->in[g->n - 1];
    g->in[0] = g->out[0] = g->in[1] > 0 ? pixels / g->in[1] : 0;
    g->n = 2;
}

/* Room for the widened operands. */
static oct_status make_room(const oct_args *a, job *j)
{
    const oct_conv_geometry *g = j->g;
    const int last = g->n - 1;
    int64_t reach, n_x;

    if (!oct_mul_i64(g->out[last] - 1, g->stride[last], &reach) ||
        !oct_mul_i64(g->kernel[last] - 1, g->dilation[last], &j->cols) ||
        !oct_add_i64(reach, j->cols, &j->cols) || !oct_add_i64(j->cols, 1, &j->cols) ||
        !oct_mul_i64(j->cols, j->c * g->group, &n_x) || !oct_mul_i64(n_x, j->in_rows, &n_x) ||
        !oct_mul_i64(n_x, g->batch, &n_x))
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "the padded input is too large");
    j->x = oct_args_scratch(a, (size_t)OCT_MAX(n_x, 1), sizeof(*j->x));
    j->w = oct_args_scratch(a, (size_t)OCT_MAX(oct_tensor_len(j->w_in), 1), sizeof(*j->w));
    return j->x && j->w ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_conv_integer(const oct_args *a, const oct_conv_geometry *geometry,
                            const oct_tensor *x, int32_t x_zero, const oct_tensor *w,
                            const int32_t *w_zero, int32_t *y)
{
    oct_conv_geometry g = *geometry;
    job j = {.g = &g, .x_in = x, .w_in = w, .x_zero = x_zero, .w_zero = w_zero, .y = y};
    const int64_t len = g.batch * g.c_out * oct_conv_geometry_out_size(&g);

    if (len == 0) return OCT_OK;
    memset(y, 0, (size_t)len * sizeof(*y));
    if (oct_tensor_len(x) == 0 || oct_tensor_len(w) == 0) return OCT_OK;
    flatten_pointwise(&g);
    j.c = g.c_in / g.group;
    j.in_rows = rows_of(&g, g.in);
    j.out_rows = rows_of(&g, g.out);
    j.k_rows = rows_of(&g, g.kernel);
    OCT_TRY(make_room(a, &j));
    widen_w(&j);
    oct_parallel_for(a->n_threads, g.batch * g.group * j.in_rows, 4, widen_x, &j);
    oct_parallel_for(a->n_threads, g.batch * g.group * j.out_rows, 1, range, &j);
    return OCT_OK;
}
