/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 3x3 convolutions with stride 1 by Winograd's method, where it is faster. Constant weights are
 * packed when the plan is made, others by each run. A ConvTranspose whose weights are not constant
 * (the gradient with respect to the operand) is one too, with the taps of each filter in reverse.
 */
#include "base/parallel.h"
#include "exec/f32/f32_conv_blocks.h"
#include "op/conv_geometry.h"
#include "op/grad/rules.h"
#include "op/op.h"

enum { X, W, B };

/*
 * Below these the transforms cost more than the products they save. A tile saves 108 of 144
 * products for each pair of an input and an output channel, while its transforms cost the same for
 * each input and each output channel: few channels do not pay for them. 256 pixels are 16 tiles,
 * the rows of the 36 matrix products: fewer do not fill a register tile. Both limits are estimates
 * on the safe side, not measurements.
 */
#define MIN_CHANNELS 16
#define MIN_PIXELS   256 /* with variable weights: of all images of the batch */

#define PACK_FILTERS 4096 /* whose transform is worth a thread */

typedef struct state {
    const oct_simd *simd;
    oct_conv c;
    int64_t tiles;
    bool is_constant, transpose;
    int64_t blocks_size, weights_size; /* floats of scratch, if not constant */
} state;

static bool is_3x3(const oct_conv_geometry *g)
{
    for (int i = 0; i < 2; i++)
        if (g->kernel[i] != 3 || g->stride[i] != 1 || g->dilation[i] != 1 || g->pad_begin[i] > 2)
            return false;
    return true;
}

static bool is_transpose(const oct_step *s)
{
    return s->node->op == &oct_op_conv_transpose;
}

static bool find_geometry(const oct_plan *p, const oct_step *s, oct_conv_geometry *g)
{
    const oct_slot *x, *w;

    if (!s->node) return false;
    if (!is_transpose(s)) return oct_conv_find(p, s, g);
    if (!oct_step_is_f32(p, s) || s->fuse.residual >= 0) return false;
    x = oct_step_in(p, s, X);
    w = oct_step_in(p, s, W);
    if (x->data || w->data || oct_conv_geometry_transpose(s->node, &x->type, &w->type, g))
        return false;
    for (int i = 0; i < g->n; i++) /* the padding of the convolution with reversed taps */
        g->pad_begin[i] = (g->kernel[i] - 1) * g->dilation[i] - g->pad_begin[i];
    return oct_conv_geometry_to_2d(g) && g->pad_begin[0] >= 0 && g->pad_begin[1] >= 0;
}

/* An activation whose slope jumps? */
static bool has_kink(const oct_node *n)
{
    oct_act act = {0};

    if (n->op == &oct_op_batch_norm_train)
        act.kind = (oct_act_kind)oct_node_attr(n, "act")->i;
    else if (!oct_act_of(n, &act))
        return n->op == &oct_op_p_relu;
    return act.kind == OCT_ACT_RELU || act.kind == OCT_ACT_CLIP || act.kind == OCT_ACT_LEAKY;
}

/*
 * Does such an activation follow, after sums and norms at most? In training a rounding
 * error then changes the slope of values near the jump, and with them the gradients of all layers
 * before. The method loses about three bits more than the plain sum.
 */
static bool leads_to_kink(const oct_value *v, int depth)
{
    for (int32_t i = 0; v && depth > 0 && i < v->n_users; i++) {
        const oct_node *n = v->users[i];

        if (has_kink(n)) return true;
        if ((n->op == &oct_op_batch_norm_train || n->op == &oct_op_add) &&
            leads_to_kink(n->out[0], depth - 1))
            return true;
    }
    return false;
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    enum { DEPTH = 6 }; /* norm, sum of branches, sum with a constant, norm with activation */
    oct_conv_geometry g;
    bool is_variable;

    if (!find_geometry(p, s, &g)) return false;
    *layout = OCT_LAYOUT_CLAST;
    if (!is_3x3(&g) || g.group != 1 || g.c_in < MIN_CHANNELS || g.c_out < MIN_CHANNELS)
        return false;
    is_variable = is_transpose(s) || !oct_conv_is_constant(p, s);
    /* Simulated codes: plain sums of products of codes are exact, so that ties (of powers of two as
     * scales there are many) are rounded as integers round them. */
    if (p->options.simulate && !is_variable) return false;
    if (g.out[0] * g.out[1] * (is_variable ? g.batch : 1) < MIN_PIXELS) return false;
    return !is_variable || is_transpose(s) || !leads_to_kink(s->last->out[0], DEPTH);
}

/* One 3x3 filter to 6x6: G g G'. */
static void transform_filter(const oct_conv_weights *at, int64_t o, int64_t i, double u[36])
{
    static const double g[6][3] = {{1.0 / 4, 0, 0},
                                   {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                   {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                   {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                   {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                   {0, 0, 1}};
    double t[6][3], w[3][3];

    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 3; x++)
            w[y][x] = (double)at->w[o * at->o + i * at->c + y * at->y + x * at->x];
    for (int r = 0; r < 6; r++)
        for (int k = 0; k < 3; k++)
            t[r][k] = g[r][0] * w[0][k] + g[r][1] * w[1][k] + g[r][2] * w[2][k];
    for (int r = 0; r < 6; r++)
        for (int k = 0; k < 6; k++)
            u[r * 6 + k] = g[k][0] * t[r][0] + g[k][1] * t[r][1] + g[k][2] * t[r][2];
}

static void put_points(const oct_conv_weights *w, const oct_conv *c, int64_t o, int64_t n,
                       float *to, int64_t step)
{
    for (int64_t l = 0; l < n; l++)
        for (int64_t i = 0; i < c->c_in; i++) {
            double u[36];

            transform_filter(w, o + l, i, u);
            for (int64_t k = 0; k < 36; k++)
                to[(k * c->c_in + i) * step + l] = (float)u[k];
        }
}

/* The same in float, many filters at once: for weights of one run only. */
static void put_points_fast(const oct_conv_weights *w, const oct_conv *c, int64_t o, int64_t n,
                            float *to, int64_t step)
{
    for (int64_t i = 0; i < c->c_in; i++)
        w->simd->conv->winograd_filters(w->w + o * w->o + i * w->c, w->o, w->y, w->x, to + i * step,
                                        c->c_in * step, n);
}

static void fill_state(const oct_plan *p, const oct_step *s, const oct_conv_geometry *g, state *st)
{
    const int32_t r = s->fuse.residual;

    st->simd = oct_simd_get();
    st->transpose = is_transpose(s);
    st->is_constant = !st->transpose && oct_conv_is_constant(p, s);
    st->c = (oct_conv){.in_h = g->in[0],
                       .in_w = g->in[1],
                       .in_pitch = oct_slot_pitch(p, s->in[X]),
                       .c_in = g->c_in,
                       .out_h = g->out[0],
                       .out_w = g->out[1],
                       .out_pitch = oct_slot_pitch(p, s->out[0]),
                       .c_out = g->c_out,
                       .residual_pitch = r >= 0 ? oct_slot_pitch(p, s->in[r]) : 0,
                       .pad = {g->pad_begin[0], g->pad_begin[1]},
                       .act = {s->fuse.act[0], s->fuse.act[1]},
                       .residual_scale = s->fuse.residual_scale};
    st->tiles = g->batch * oct_ceil_div(g->out[0], 4) * oct_ceil_div(g->out[1], 4);
    st->c.patch_size =
        36 * OCT_WINOGRAD_TILES * (g->c_in + (int64_t)st->simd->conv->max_vec * st->simd->width);
}

/* The gradient's weights are [c_in][c_out][3][3], and their taps are read from the last. */
static oct_conv_weights weights_of(const state *st, const float *w, const float *bias)
{
    const int sign = st->transpose ? -1 : 1;

    return (oct_conv_weights){.w = w + (st->transpose ? 8 : 0),
                              .o = 9 * (st->transpose ? 1 : st->c.c_in),
                              .c = 9 * (st->transpose ? st->c.c_out : 1),
                              .y = 3 * sign,
                              .x = sign,
                              .bias = bias,
                              .simd = st->simd};
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    oct_conv_geometry g;

    if (!st) return OCT_ERR_MEMORY;
    if (!find_geometry(p, s, &g))
        return oct_node_fail(s->node, OCT_ERR_STATE, "has changed since its kernel was chosen");
    fill_state(p, s, &g, st);
    if (st->is_constant) {
        const oct_conv_weights w =
            weights_of(st, oct_step_const(p, s, W)->data, oct_conv_bias(p, s));

        OCT_TRY(oct_conv_pack(p, st->simd, &w, 36 * g.c_in, put_points, &st->c));
    } else {
        st->blocks_size =
            oct_ceil_div(oct_conv_n_blocks(st->simd, &st->c) * (int64_t)sizeof(oct_conv_block),
                         64) *
            16;
        st->weights_size = oct_conv_packed_floats(st->simd, &st->c, 36 * g.c_in);
    }
    s->scratch_size =
        (size_t)(st->blocks_size + st->weights_size + st->c.patch_size * p->n_threads) *
        sizeof(float);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "winograd%s:%s",
                               st->is_constant ? "" : ", packed each run", st->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct packing {
    const state *st;
    oct_conv_weights w;
    const oct_conv *c;
} packing;

static void pack_some(void *arg, int64_t begin, int64_t end)
{
    const packing *k = arg;

    oct_conv_pack_filters(k->st->simd, &k->w, k->c, put_points_fast, begin, end);
}

static void pack(const oct_bound *b, oct_conv *c)
{
    const state *st = b->step->state;
    const bool has_bias = b->step->n_in > B && b->step->fuse.residual != B;
    packing k = {st, weights_of(st, b->in[W], has_bias ? b->in[B] : NULL), c};

    c->blocks = b->scratch;
    oct_conv_lay_blocks(st->simd, c, 36 * c->c_in, (float *)b->scratch + st->blocks_size);
    oct_parallel_for(b->n_threads, c->c_out, OCT_MAX(1, PACK_FILTERS / c->c_in), pack_some, &k);
}

typedef struct job {
    const state *st;
    const oct_bound *b;
    oct_conv c;
    const float *residual;
    float *patches;
} job;

static void some_tiles(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_conv_io io = {.x = j->b->in[X],
                            .y = j->b->out[0],
                            .residual = j->residual,
                            .patch = j->patches + oct_parallel_thread() * j->c.patch_size};

    j->st->simd->conv->winograd(&j->c, &io, begin, end - begin);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int32_t r = b->step->fuse.residual;
    job j = {st, b, st->c, r >= 0 ? b->in[r] : NULL,
             (float *)b->scratch + st->blocks_size + st->weights_size};

    if (!st->is_constant) pack(b, &j.c);
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
    .plain_in = 1u << W,
    .accepts = accepts,
    .make = make,
    .run = run,
};
