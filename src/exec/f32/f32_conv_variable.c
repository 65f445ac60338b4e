/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv and ConvTranspose in f32 whose weights change from run to run, as in training: each run
 * packs them into its scratch memory, then computes as the kernels for constant weights do.
 *
 * A ConvTranspose with stride 1 is a convolution with the taps of each filter in reverse. With
 * stride s, the pixels of its result that have the same remainder modulo s are such a convolution,
 * with every s-th tap. This is the gradient of a convolution with respect to its operand.
 */
#include "base/parallel.h"
#include "exec/f32/f32_conv_blocks.h"
#include "op/conv_geometry.h"
#include "op/op.h"

enum { X, W, B };

#define MAX_PARTS     64
#define PACK_ELEMENTS 8192 /* weights that are worth a thread */
#define ALIGN         16   /* floats: a cache line */

typedef struct part {
    oct_conv_part p;
    int64_t at;     /* elements of the result before its first pixel */
    int64_t tap;    /* the first tap of its filters, in the file's order */
    int64_t step_y; /* from tap to tap, down and across */
    int64_t step_x;
} part;

typedef struct state {
    const oct_simd *simd;
    bool transpose, depthwise;
    int64_t groups, taps; /* taps: of the node's filters */
    part *parts;
    int32_t n_parts;
    int64_t blocks_size, weights_size; /* floats of scratch for one part of one group */
} state;

static bool is_transpose(const oct_step *s)
{
    return s->node->op == &oct_op_conv_transpose;
}

static bool find_geometry(const oct_plan *p, const oct_step *s, oct_conv_geometry *g)
{
    const oct_slot *x = oct_step_in(p, s, X), *w = oct_step_in(p, s, W);

    if (!s->node || (s->node->op != &oct_op_conv && !is_transpose(s)) || !oct_step_is_f32(p, s))
        return false;
    if (!x || !w || x->data) return false;
    if ((is_transpose(s) ? oct_conv_geometry_transpose : oct_conv_geometry_conv)(s->node, &x->type,
                                                                                 &w->type, g))
        return false;
    return oct_conv_geometry_to_2d(g);
}

/* Sizes that multiply without overflow, and taps that are worth a loop. */
static bool is_reasonable(const oct_conv_geometry *g, bool transpose)
{
    const int64_t limit = INT32_MAX;

    for (int i = 0; i < 2; i++) {
        if (g->kernel[i] > 4096 || g->stride[i] > limit || g->dilation[i] > limit) return false;
        if (g->pad_begin[i] > limit || g->in[i] > limit || g->out[i] > limit) return false;
        if (g->pad_begin[i] < 0 || g->in[i] < 1 || g->out[i] < 1) return false;
        if (transpose && g->stride[i] > 1 && g->dilation[i] > 1) return false;
    }
    return !transpose || g->stride[0] * g->stride[1] <= MAX_PARTS;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;
    oct_conv c = {0};

    if (!find_geometry(p, s, &g) || !is_reasonable(&g, is_transpose(s))) return false;
    if (is_transpose(s) && s->fuse.residual >= 0) return false;
    *layout = OCT_LAYOUT_CLAST;
    oct_conv_fill_geometry(&g, &c);
    return oct_conv_patch_floats(&c) <= OCT_CONV_MAX_PATCH;
}

/* One axis of a part of a ConvTranspose: pixels whose distance to the first tap of the first pixel
 * has the remainder r. */
typedef struct phase {
    int64_t first, n; /* pixels of the result */
    int64_t taps, pad;
    int64_t tap; /* of the node's filter: the last one, and it goes down by the stride */
} phase;

static phase find_phase(const oct_conv_geometry *g, int axis, int64_t r)
{
    const int64_t s = g->stride[axis], pad = g->pad_begin[axis];
    phase f = {.first = ((r - pad) % s + s) % s};

    f.n = g->out[axis] > f.first ? (g->out[axis] - f.first - 1) / s + 1 : 0;
    f.taps = g->kernel[axis] > r ? (g->kernel[axis] - r - 1) / s + 1 : 0;
    f.pad = (f.taps - 1) * g->dilation[axis] - (f.first + pad) / s;
    f.tap = r + s * (f.taps - 1);
    return f;
}

static void fill_transposed(const oct_conv_geometry *g, int64_t r, part *to)
{
    const phase y = find_phase(g, 0, r / g->stride[1]), x = find_phase(g, 1, r % g->stride[1]);
    const bool empty = y.taps == 0 || x.taps == 0; /* the kernel is smaller than the stride */
    oct_conv *c = &to->p.c;
    const int64_t pitch = c->out_pitch, row = c->out_w * pitch;

    to->at = y.first * row + x.first * pitch;
    to->tap = y.tap * g->kernel[1] + x.tap;
    to->step_y = -g->stride[0] * g->kernel[1];
    to->step_x = -g->stride[1];
    c->out_h = y.n;
    c->out_w = x.n;
    c->out_pitch = g->stride[1] * pitch;
    c->kernel[0] = empty ? 0 : y.taps;
    c->kernel[1] = empty ? 0 : x.taps;
    c->stride[0] = c->stride[1] = 1;
    c->pad[0] = y.pad;
    c->pad[1] = x.pad;
    to->p.skip = g->stride[0] * row - c->out_w * c->out_pitch;
}

static void fill_part(const oct_plan *p, const oct_step *s, const oct_conv_geometry *g, int64_t r,
                      part *to)
{
    to->p.batch = g->batch;
    to->p.depthwise = oct_conv_is_depthwise(g) && g->c_in == g->c_out;
    oct_conv_fill_geometry(g, &to->p.c);
    oct_conv_part_fill(p, s, &to->p);
    to->step_y = g->kernel[1];
    to->step_x = 1;
    if (is_transpose(s)) fill_transposed(g, r, to);
}

static int64_t rows_of(const oct_conv *c)
{
    return c->kernel[0] * c->kernel[1] * c->c_in;
}

/* Room for the largest part: parts are packed and computed one after the other. */
static oct_status make_room(oct_plan *p, oct_step *s, state *st)
{
    int64_t patch = 0, blocks = 0, weights = 0;

    for (int32_t i = 0; i < st->n_parts; i++) {
        oct_conv *c = &st->parts[i].p.c;

        if (!st->depthwise) c->patch_size = (int64_t)oct_conv_patch_floats(c);
        patch = OCT_MAX(patch, c->patch_size);
        blocks = oct_conv_n_blocks(st->simd, c);
        weights = OCT_MAX(weights, st->depthwise ? oct_conv_depthwise_floats(st->simd, c)
                                                 : oct_conv_packed_floats(st->simd, c, rows_of(c)));
    }
    st->blocks_size =
        oct_ceil_div(blocks * (int64_t)(sizeof(oct_conv_block) / sizeof(float)), ALIGN) * ALIGN;
    st->weights_size = oct_ceil_div(weights, ALIGN) * ALIGN;
    s->scratch_size =
        (size_t)(st->blocks_size + st->weights_size + patch * p->n_threads) * sizeof(float);
    return OCT_OK;
}

/* The split depends on the sizes of blocks, which are known before their weights. */
static oct_status split_parts(oct_plan *p, state *st)
{
    for (int32_t i = 0; i < st->n_parts; i++) {
        oct_conv *c = &st->parts[i].p.c;

        if (!st->depthwise) {
            c->blocks =
                oct_plan_alloc(p, (size_t)oct_conv_n_blocks(st->simd, c) + 1, sizeof(*c->blocks));
            if (!c->blocks) return OCT_ERR_MEMORY;
            oct_conv_lay_blocks(st->simd, c, 0, NULL);
        }
        oct_conv_part_split(&st->parts[i].p, st->simd);
    }
    return OCT_OK;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    oct_conv_geometry g;
    int64_t n;

    if (!st) return OCT_ERR_MEMORY;
    if (!find_geometry(p, s, &g))
        return oct_node_fail(s->node, OCT_ERR_STATE, "has changed since its kernel was chosen");
    n = is_transpose(s) ? g.stride[0] * g.stride[1] : 1;
    st->simd = oct_simd_get();
    st->transpose = is_transpose(s);
    st->depthwise = oct_conv_is_depthwise(&g) && g.c_in == g.c_out;
    st->groups = st->depthwise ? 1 : g.group;
    st->taps = g.kernel[0] * g.kernel[1];
    st->parts = oct_plan_alloc(p, (size_t)n, sizeof(*st->parts));
    if (!st->parts) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        part *to = &st->parts[st->n_parts];

        fill_part(p, s, &g, i, to);
        if (to->p.c.out_h > 0 && to->p.c.out_w > 0) st->n_parts++;
    }
    OCT_TRY(split_parts(p, st));
    OCT_TRY(make_room(p, s, st));
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "%s, packed each run:%s",
                               st->depthwise ? "depthwise" : "conv", st->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct packing {
    const oct_simd *simd;
    const oct_conv_weights *w;
    const oct_conv *c;
} packing;

static void pack_some(void *arg, int64_t begin, int64_t end)
{
    const packing *k = arg;

    oct_conv_pack_filters(k->simd, k->w, k->c, oct_conv_put_taps, begin, end);
}

static void pack(const oct_bound *b, const part *from, int64_t group, oct_conv *c)
{
    const state *st = b->step->state;
    const int32_t r = b->step->fuse.residual;
    const int64_t per_group = c->c_in * c->c_out * (st->depthwise ? 0 : st->taps);
    const float *bias = b->step->n_in > B && r != B ? b->in[B] : NULL;
    const oct_conv_weights w = {
        .w = (const float *)b->in[W] + group * per_group + from->tap,
        .o = st->transpose || st->depthwise ? st->taps : c->c_in * st->taps,
        .c = st->transpose ? c->c_out * st->taps : st->taps,
        .y = from->step_y,
        .x = from->step_x,
        .bias = bias ? bias + group * c->c_out : NULL,
    };
    packing k = {st->simd, &w, c};

    if (st->depthwise) {
        oct_conv_pack_depthwise(st->simd, &w, (float *)b->scratch + st->blocks_size, c);
        return;
    }
    c->blocks = b->scratch;
    oct_conv_lay_blocks(st->simd, c, rows_of(c), (float *)b->scratch + st->blocks_size);
    oct_parallel_for(b->n_threads, c->c_out, OCT_MAX(1, PACK_ELEMENTS / OCT_MAX(rows_of(c), 1)),
                     pack_some, &k);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int32_t r = b->step->fuse.residual;
    const float *residual = r >= 0 ? b->in[r] : NULL;
    float *patches = (float *)b->scratch + st->blocks_size + st->weights_size;

    for (int32_t i = 0; i < st->n_parts; i++)
        for (int64_t g = 0; g < st->groups; g++) {
            oct_conv_part now = st->parts[i].p;

            pack(b, &st->parts[i], g, &now.c);
            oct_conv_part_run(&now, st->simd, (const float *)b->in[X] + g * now.c.c_in,
                              (float *)b->out[0] + st->parts[i].at + g * now.c.c_out,
                              residual ? residual + g * now.c.c_out : NULL, patches, b->n_threads);
        }
    return OCT_OK;
}

const oct_kernel oct_kernel_conv_variable = {
    .name = "conv-variable",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .plain_in = 1u << W,
    .accepts = accepts,
    .make = make,
    .run = run,
};
