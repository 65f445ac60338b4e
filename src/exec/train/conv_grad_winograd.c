/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of 3x3 weights with stride 1 by Winograd's method: 36 products instead of 144 for
 * each tile of 4x4 pixels of dy. Tiles of x and dy are transformed to 36 points; at each point the
 * outer products of channels are summed over all tiles, and the sums are transformed to weights
 * once at the end. Splits of the tiles sum into memory of their own, which is added up in order.
 */
#include <string.h>

#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/conv_geometry.h"
#include "op/grad/rules.h"

enum { X, DY };

#define TILE         OCT_OUTER_CHANNELS
#define MIN_CHANNELS 16        /* as in f32_winograd.c */
#define MIN_PIXELS   256       /* of all images */
#define MAX_SUMS     (1 << 24) /* floats of one split's sums */
#define CHUNK_FLOATS (1 << 21) /* of transformed tiles */
#define SPLIT_FLOATS (1 << 25) /* of all splits */
#define MAX_LANES    (OCT_CONV_MAX_VEC * 16)

typedef struct state {
    const oct_simd *simd;
    oct_conv c; /* its result is dy */
    bool has_bias;
    int64_t tiles, chunk, splits; /* chunk: tiles that are transformed at a time */
    int64_t n_blocks;
    int64_t x_lanes, dy_lanes; /* channels, rounded up */
    int64_t sums, room;        /* floats of a split's sums and biases, and of all it needs */
} state;

static bool find_geometry(const oct_plan *p, const oct_step *s, oct_conv_geometry *g)
{
    const oct_slot *x = oct_step_in(p, s, X), *dy = oct_step_in(p, s, DY);
    const oct_slot *dw = oct_step_out(p, s, 0);

    if (!x || !dy || !dw || x->data || dy->data) return false;
    if (oct_conv_geometry_conv(s->node, &x->type, &dw->type, g) || g->n != 2) return false;
    for (int i = 0; i < 2; i++) {
        g->out[i] = dy->type.dim[i + 2];
        if (g->kernel[i] != 3 || g->stride[i] != 1 || g->dilation[i] != 1 || g->pad_begin[i] > 2)
            return false;
    }
    return true;
}

static int64_t round_up(int64_t n, int64_t to)
{
    return oct_ceil_div(n, to) * to;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    const int64_t vw = oct_simd_get()->width;
    oct_conv_geometry g;

    if (!s->node || s->node->op != &oct_op_conv_grad_weight || !oct_step_is_f32(p, s) ||
        !oct_step_is_bare(s) || !find_geometry(p, s, &g))
        return false;
    *layout = OCT_LAYOUT_CLAST;
    return g.group == 1 && g.batch > 0 && g.c_in >= MIN_CHANNELS && g.c_out >= MIN_CHANNELS &&
           g.batch * g.out[0] * g.out[1] >= MIN_PIXELS &&
           36 * round_up(g.c_in, TILE) * round_up(g.c_out, vw) <= MAX_SUMS;
}

static void share_out(state *st, int n_threads)
{
    const int64_t both = st->x_lanes + st->dy_lanes;

    st->sums = 36 * st->x_lanes * st->dy_lanes + st->dy_lanes;
    st->splits = OCT_MIN(n_threads, SPLIT_FLOATS / (st->sums + CHUNK_FLOATS));
    st->splits = OCT_MAX(1, OCT_MIN(st->splits, st->tiles / 16));
    st->chunk = OCT_MAX(32, OCT_MIN(512, CHUNK_FLOATS / (36 * both)));
    st->chunk = OCT_MIN(st->chunk, oct_ceil_div(st->tiles, st->splits));
    st->room = round_up(st->sums + 36 * st->chunk * both + st->dy_lanes, 16);
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    oct_conv_geometry g;

    if (!st) return OCT_ERR_MEMORY;
    if (!find_geometry(p, s, &g))
        return oct_node_fail(s->node, OCT_ERR_STATE, "has changed since its kernel was chosen");
    st->simd = oct_simd_get();
    st->c = (oct_conv){.in_h = g.in[0],
                       .in_w = g.in[1],
                       .in_pitch = oct_slot_pitch(p, s->in[X]),
                       .c_in = g.c_in,
                       .out_h = g.out[0],
                       .out_w = g.out[1],
                       .out_pitch = oct_slot_pitch(p, s->in[DY]),
                       .c_out = g.c_out,
                       .pad = {g.pad_begin[0], g.pad_begin[1]}};
    st->has_bias = oct_step_out(p, s, 1) != NULL;
    st->tiles = g.batch * oct_ceil_div(g.out[0], 4) * oct_ceil_div(g.out[1], 4);
    st->x_lanes = round_up(g.c_in, TILE);
    st->dy_lanes = round_up(g.c_out, st->simd->width);
    st->n_blocks = oct_ceil_div(st->dy_lanes / st->simd->width, st->simd->conv->max_vec);
    share_out(st, p->n_threads);
    s->scratch_size = (size_t)(st->splits * st->room) * sizeof(float);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "winograd:%s", st->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const float *x, *dy;
    float *dw, *db; /* db: NULL if it is not asked for */
    float *scratch;
} job;

/* Vectors [*first, *first + *n) of block b. */
static void find_block(const state *st, int64_t b, int64_t *first, int64_t *n)
{
    const int64_t vecs = st->dy_lanes / st->simd->width;

    *first = vecs * b / st->n_blocks;
    *n = vecs * (b + 1) / st->n_blocks - *first;
}

/* Adds the outer products of n transformed tiles; sums are [point][block][channel of x][width]. */
static void add_products(const state *st, const float *v, const float *u, int64_t n, float *sums)
{
    oct_outer o = {.x_pixel = st->x_lanes, .dy_pixel = st->dy_lanes, .rows = 1, .columns = n};

    for (int64_t i = 0; i < 36; i++)
        for (int64_t b = 0; b < st->n_blocks; b++) {
            int64_t first, n_vec;

            find_block(st, b, &first, &n_vec);
            first *= st->simd->width;
            o.n_vec = (int)n_vec;
            o.dy = u + i * st->chunk * st->dy_lanes + first;
            o.acc = sums + (i * st->dy_lanes + first) * st->x_lanes;
            for (int64_t t = 0; t < st->x_lanes; t += TILE) {
                o.x = v + i * st->chunk * st->x_lanes + t;
                st->simd->train->outer(&o);
                o.acc += TILE * n_vec * st->simd->width;
            }
        }
}

/* Point 7 of a tile is 1/36 of the sum of its pixels. */
static void add_biases(const state *st, const float *u, int64_t n, float *db, float *sum)
{
    memset(sum, 0, (size_t)st->dy_lanes * sizeof(*sum));
    st->simd->train->sums(u + 7 * st->chunk * st->dy_lanes, st->dy_lanes, n, sum, st->dy_lanes);
    st->simd->axpy(36.0f, sum, db, st->dy_lanes, false);
}

static void one_split(const job *j, int64_t split)
{
    const state *st = j->st;
    const int64_t end = (split + 1) * st->tiles / st->splits;
    float *sums = j->scratch + split * st->room, *v = sums + st->sums;
    float *u = v + 36 * st->chunk * st->x_lanes, *room = u + 36 * st->chunk * st->dy_lanes;

    memset(sums, 0, (size_t)st->sums * sizeof(*sums));
    if (st->x_lanes != st->c.c_in)
        memset(v, 0, (size_t)(36 * st->chunk * st->x_lanes) * sizeof(*v));
    for (int64_t i = split * st->tiles / st->splits; i < end; i += st->chunk) {
        const int64_t n = OCT_MIN(st->chunk, end - i);

        for (int64_t t = 0; t < n; t++) {
            st->simd->conv->winograd_x(&st->c, j->x, i + t, v + t * st->x_lanes,
                                       st->chunk * st->x_lanes);
            st->simd->conv->winograd_dy(&st->c, j->dy, i + t, u + t * st->dy_lanes,
                                        st->chunk * st->dy_lanes);
        }
        add_products(st, v, u, n, sums);
        if (j->db) add_biases(st, u, n, sums + st->sums - st->dy_lanes, room);
    }
}

static void some_splits(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        one_split(arg, i);
}

/* The weights of some channels of x, in the order of the file. */
static void put_weights(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    float w[9 * MAX_LANES];

    for (int64_t u = begin; u < end; u++) {
        const int64_t c = u / st->n_blocks;
        int64_t first, n_vec, n;

        find_block(st, u % st->n_blocks, &first, &n_vec);
        first *= st->simd->width;
        n = OCT_MIN(n_vec * st->simd->width, st->c.c_out - first);
        st->simd->conv->winograd_weights(j->scratch + first * st->x_lanes +
                                             c * n_vec * st->simd->width,
                                         st->x_lanes * st->dy_lanes, st->room, st->splits, w, n);
        for (int64_t m = 0; m < n; m++)
            for (int64_t k = 0; k < 9; k++)
                j->dw[((first + m) * st->c.c_in + c) * 9 + k] = w[k * n + m];
    }
}

static void put_biases(const job *j)
{
    const state *st = j->st;
    const float *from = j->scratch + st->sums - st->dy_lanes;

    for (int64_t m = 0; j->db && m < st->c.c_out; m++) {
        j->db[m] = from[m];
        for (int64_t s = 1; s < st->splits; s++)
            j->db[m] += from[s * st->room + m];
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[X], b->in[DY], b->out[0], st->has_bias ? b->out[1] : NULL, b->scratch};

    oct_parallel_for(b->n_threads, st->splits, 1, some_splits, &j);
    oct_parallel_for(b->n_threads, st->c.c_in * st->n_blocks, 8, put_weights, &j);
    put_biases(&j);
    return OCT_OK;
}

const oct_kernel oct_kernel_conv_grad_winograd = {
    .name = "conv-grad-winograd",
    .flags = OCT_KERNEL_STRIDED_IN,
    .plain_out = 1u << 0 | 1u << 1,
    .accepts = accepts,
    .make = make,
    .run = run,
};
