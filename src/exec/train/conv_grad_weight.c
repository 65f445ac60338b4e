/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvGradWeight in NHWC: the gradient of a convolution's weights, and of its biases, as sums of
 * outer products over pixels. The gradients are written as the file has the weights: NCHW.
 */
#include "exec/train/conv_grad_weight.h"

#include "base/parallel.h"
#include "op/grad/rules.h"
#include "op/op.h"

enum { X, DY };

#define TILE        OCT_OUTER_CHANNELS
#define PANEL_BYTES 262144    /* of a unit's operands: they should stay in the second-level cache */
#define MIN_PIXELS  96        /* of a unit: its sums are added to memory once */
#define MAX_PIXELS  512       /* of a unit: sums in registers stay short */
#define SPLIT_BYTES (1 << 26) /* of the sums of all splits */
#define MAX_FLOATS  (1 << 28) /* of one unit's operands */

/* Sizes as a convolution has them, with the windows that dy has. */
static bool find_geometry(const oct_plan *p, const oct_step *s, oct_conv_geometry *g)
{
    const oct_slot *x = oct_step_in(p, s, X), *dy = oct_step_in(p, s, DY);
    const oct_slot *dw = oct_step_out(p, s, 0);

    if (!x || !dy || !dw || x->data || dy->data) return false;
    if (oct_conv_geometry_conv(s->node, &x->type, &dw->type, g)) return false;
    for (int d = 0; d < g->n; d++)
        g->out[d] = dy->type.dim[d + 2];
    return oct_conv_geometry_to_2d(g);
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;
    double floats = 1;

    if (!s->node || s->node->op != &oct_op_conv_grad_weight || !oct_step_is_f32(p, s) ||
        !oct_step_is_bare(s) || !find_geometry(p, s, &g))
        return false;
    for (int i = 0; i < 2; i++) {
        if (g.in[i] < 1 || g.out[i] < 1 || g.in[i] > INT32_MAX || g.pad_begin[i] > INT32_MAX)
            return false;
        if (g.kernel[i] > 4096 || g.stride[i] > INT32_MAX || g.dilation[i] > INT32_MAX)
            return false;
    }
    /* one row of the result, and what its windows read */
    floats = (double)g.c_in * ((double)(g.kernel[0] - 1) * (double)g.dilation[0] + 1) *
             ((double)(g.out[1] - 1) * (double)g.stride[1] +
              (double)(g.kernel[1] - 1) * (double)g.dilation[1] + 1);
    *layout = OCT_LAYOUT_CLAST;
    return floats < MAX_FLOATS && g.batch > 0 && g.c_in > 0 && g.c_out > 0;
}

static void fill_sizes(const oct_plan *p, const oct_step *s, const oct_conv_geometry *from,
                       oct_grad_weight *g)
{
    g->simd = oct_simd_get();
    g->depthwise = oct_conv_is_depthwise(from) && from->c_in == from->c_out;
    g->has_bias = oct_step_out(p, s, 1) != NULL;
    g->groups = g->depthwise ? 1 : from->group;
    g->batch = from->batch;
    g->c_in = from->c_in / g->groups;
    g->c_out = from->c_out / g->groups;
    g->in_h = from->in[0];
    g->in_w = from->in[1];
    g->out_h = from->out[0];
    g->out_w = from->out[1];
    g->x_pitch = oct_slot_pitch(p, s->in[X]);
    g->dy_pitch = oct_slot_pitch(p, s->in[DY]);
    for (int i = 0; i < 2; i++) {
        g->kernel[i] = from->kernel[i];
        g->stride[i] = from->stride[i];
        g->dilation[i] = from->dilation[i];
        g->pad[i] = from->pad_begin[i];
    }
    g->skip[0] = g->skip[1] = 1;
    for (int i = 0; i < 2 && !g->depthwise && g->kernel[0] == 1 && g->kernel[1] == 1; i++) {
        g->skip[i] = g->stride[i];
        g->stride[i] = 1;
    }
    if (!g->depthwise && oct_conv_is_pointwise(from) && g->in_h == g->out_h &&
        g->in_w == g->out_w) { /* all pixels of the batch are one long row */
        g->in_w = g->out_w = g->batch * g->in_h * g->in_w;
        g->in_h = g->out_h = g->batch = 1;
    }
}

static int64_t x_floats(const oct_grad_weight *g, int64_t rows, int64_t columns)
{
    return g->tiles * TILE * ((rows - 1) * g->stride[0] + (g->kernel[0] - 1) * g->dilation[0] + 1) *
           ((columns - 1) * g->stride[1] + (g->kernel[1] - 1) * g->dilation[1] + 1);
}

/* As many rows as the cache holds. */
static void choose_unit(oct_grad_weight *g)
{
    const bool one_row = g->in_h == 1 && g->out_h == 1 && g->kernel[1] == 1;
    const int64_t width = (int64_t)g->simd->conv->max_vec * g->simd->width;

    g->unit_rows = 1;
    g->unit_columns = one_row ? OCT_MIN(g->out_w, MIN_PIXELS) : g->out_w;
    for (;;) {
        int64_t rows = g->unit_rows, columns = g->unit_columns, pixels;

        if (one_row)
            columns += 32;
        else
            rows++;
        pixels = rows * columns;
        if (rows > g->out_h || columns > g->out_w || pixels > MAX_PIXELS) break;
        if (pixels > MIN_PIXELS &&
            (x_floats(g, rows, columns) + pixels * width) * (int64_t)sizeof(float) > PANEL_BYTES)
            break;
        g->unit_rows = rows;
        g->unit_columns = columns;
    }
    g->n_units =
        g->batch * oct_ceil_div(g->out_h, g->unit_rows) * oct_ceil_div(g->out_w, g->unit_columns);
}

static void share_out(oct_grad_weight *g, int n_threads)
{
    const int64_t vw = g->simd->width, vecs = oct_ceil_div(g->c_out, vw);
    const int64_t taps = g->kernel[0] * g->kernel[1];

    g->tiles = oct_ceil_div(g->c_in, TILE);
    g->n_blocks = oct_ceil_div(vecs, g->simd->conv->max_vec);
    g->shares = 1;
    if (g->depthwise) {
        g->n_units = g->batch * g->out_h;
        g->acc_floats = (taps + 1) * g->c_in;
    } else {
        const int64_t widest = oct_ceil_div(vecs, g->n_blocks) * vw;

        choose_unit(g);
        g->acc_floats = (taps * g->tiles * TILE + 1) * vecs * vw;
        g->x_floats = x_floats(g, g->unit_rows, g->unit_columns);
        g->dy_floats = g->unit_rows * g->unit_columns * widest;
    }
    g->acc_floats = oct_ceil_div(g->acc_floats, 16) * 16;
    g->splits = OCT_MIN(n_threads, SPLIT_BYTES / (int64_t)sizeof(float) / g->acc_floats);
    g->splits = OCT_MAX(1, OCT_MIN(g->splits, g->n_units));
    if (!g->depthwise) g->shares = OCT_MAX(1, OCT_MIN(g->n_blocks, n_threads / g->splits));
    g->room = g->x_floats + g->dy_floats;
    g->room = oct_ceil_div(g->room, 16) * 16;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    oct_grad_weight *g = oct_plan_alloc(p, 1, sizeof(*g));
    oct_conv_geometry from;

    if (!g) return OCT_ERR_MEMORY;
    if (!find_geometry(p, s, &from))
        return oct_node_fail(s->node, OCT_ERR_STATE, "has changed since its kernel was chosen");
    fill_sizes(p, s, &from, g);
    share_out(g, p->n_threads);
    s->scratch_size = (size_t)(g->splits * (g->acc_floats + g->shares * g->room)) * sizeof(float);
    s->state = g;
    s->impl = oct_arena_printf(p->arena, "%s:%s",
                               g->depthwise ? "depthwise sums" : "outer products", g->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

static void parts(void *arg, int64_t begin, int64_t end)
{
    const oct_grad_weight_io *io = arg;

    for (int64_t i = begin; i < end; i++) {
        if (io->g->depthwise)
            oct_grad_weight_depthwise(io, i);
        else
            oct_grad_weight_dense(io, i);
    }
}

/* Element `at` of all splits, in order. */
static float total(const oct_grad_weight_io *io, int64_t at)
{
    float sum = io->scratch[at];

    for (int64_t s = 1; s < io->g->splits; s++)
        sum += io->scratch[s * io->g->acc_floats + at];
    return sum;
}

static void put_depthwise(const oct_grad_weight_io *io)
{
    const oct_grad_weight *g = io->g;
    const int64_t taps = g->kernel[0] * g->kernel[1];

    for (int64_t c = 0; c < g->c_in; c++) {
        for (int64_t t = 0; t < taps; t++)
            io->dw[c * taps + t] = total(io, t * g->c_in + c);
        if (io->db) io->db[c] = total(io, taps * g->c_in + c);
    }
}

/* Tile `t` of block b: sums to weights [c_out][c_in][tap]. */
static void put_tile(const oct_grad_weight_io *io, int64_t b, int64_t t)
{
    const oct_grad_weight *g = io->g;
    const int64_t taps = g->kernel[0] * g->kernel[1], vw = g->simd->width;
    int64_t first, n, n_vec;

    oct_grad_weight_block(g, b, &first, &n, &n_vec);
    for (int64_t m = 0; m < n; m++)
        for (int64_t c = 0; c < TILE && t * TILE + c < g->c_in; c++)
            for (int64_t k = 0; k < taps; k++) {
                const int64_t at =
                    first * g->tiles * TILE * taps + ((t * taps + k) * TILE + c) * n_vec * vw + m;

                io->dw[((first + m) * g->c_in + t * TILE + c) * taps + k] = total(io, at);
            }
}

static void put_tiles(void *arg, int64_t begin, int64_t end)
{
    const oct_grad_weight_io *io = arg;

    for (int64_t i = begin; i < end; i++)
        put_tile(io, i / io->g->tiles, i % io->g->tiles);
}

static void put_biases(const oct_grad_weight_io *io)
{
    const oct_grad_weight *g = io->g;
    const int64_t vw = g->simd->width, at = g->acc_floats - oct_ceil_div(g->c_out, vw) * vw;

    for (int64_t m = 0; io->db && m < g->c_out; m++)
        io->db[m] = total(io, at + m);
}

static oct_status run(const oct_bound *b)
{
    const oct_grad_weight *g = b->step->state;
    const int64_t per_group = g->c_in * g->c_out * g->kernel[0] * g->kernel[1];

    for (int64_t i = 0; i < g->groups; i++) {
        oct_grad_weight_io io = {.g = g,
                                 .x = (const float *)b->in[X] + i * g->c_in,
                                 .dy = (const float *)b->in[DY] + i * g->c_out,
                                 .dw = (float *)b->out[0] + i * per_group,
                                 .db = g->has_bias ? (float *)b->out[1] + i * g->c_out : NULL,
                                 .scratch = b->scratch};

        oct_parallel_for(b->n_threads, g->splits * g->shares, 1, parts, &io);
        if (g->depthwise) {
            put_depthwise(&io);
            continue;
        }
        oct_parallel_for(b->n_threads, g->n_blocks * g->tiles, 16, put_tiles, &io);
        put_biases(&io);
    }
    return OCT_OK;
}

const oct_kernel oct_kernel_conv_grad_weight = {
    .name = "conv-grad-weight",
    .flags = OCT_KERNEL_STRIDED_IN,
    .plain_out = 1u << 0 | 1u << 1,
    .accepts = accepts,
    .make = make,
    .run = run,
};
