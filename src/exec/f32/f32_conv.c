/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution in f32 by octet's own vector code: dense and depthwise, 1-D and 2-D.
 *
 * Unlike oneDNN's it reads and writes any pitch, so that a Concat's producers write into its result
 * and a Split's consumers read its operand, and it adds a scaled residual.
 */
#include "exec/f32/f32_conv_blocks.h"
#include "op/conv_geometry.h"
#include "op/op.h"

enum { X, W };

typedef struct state {
    const oct_simd *simd;
    oct_conv_part part;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;
    oct_conv c = {0};

    if (!oct_conv_find(p, s, &g) || !oct_conv_is_constant(p, s)) return false;
    *layout = OCT_LAYOUT_CLAST;
    if (g.group != 1) return oct_conv_is_depthwise(&g) && g.c_in == g.c_out;
    oct_conv_fill_geometry(&g, &c);
    return oct_conv_patch_floats(&c) <= OCT_CONV_MAX_PATCH;
}

static oct_status pack_dense(oct_plan *p, state *st, const float *w, const float *bias)
{
    oct_conv *c = &st->part.c;
    const int64_t taps = c->kernel[0] * c->kernel[1], o = c->c_in * taps;
    const oct_conv_weights weights = {
        .w = w, .o = o, .c = taps, .y = c->kernel[1], .x = 1, .bias = bias};

    return oct_conv_pack(p, st->simd, &weights, o, oct_conv_put_taps, c);
}

static oct_status pack_depthwise(oct_plan *p, state *st, const float *w, const float *bias)
{
    oct_conv *c = &st->part.c;
    const int64_t taps = c->kernel[0] * c->kernel[1];
    const oct_conv_weights weights = {.w = w, .o = taps, .y = c->kernel[1], .x = 1, .bias = bias};
    float *packed =
        oct_plan_alloc(p, (size_t)oct_conv_depthwise_floats(st->simd, c), sizeof(float));

    if (!packed) return OCT_ERR_MEMORY;
    oct_conv_pack_depthwise(st->simd, &weights, packed, c);
    return OCT_OK;
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
    st->part.batch = g.batch;
    st->part.depthwise = g.group > 1;
    oct_conv_fill_geometry(&g, &st->part.c);
    oct_conv_part_fill(p, s, &st->part);
    OCT_TRY(st->part.depthwise ? pack_depthwise(p, st, w->data, bias)
                               : pack_dense(p, st, w->data, bias));
    oct_conv_part_split(&st->part, st->simd);
    if (!st->part.depthwise) {
        st->part.c.patch_size = (int64_t)oct_conv_patch_floats(&st->part.c);
        s->scratch_size = (size_t)(st->part.c.patch_size * p->n_threads) * sizeof(float);
    }
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "%s:%s", st->part.depthwise ? "depthwise" : "conv",
                               st->simd->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int32_t r = b->step->fuse.residual;

    oct_conv_part_run(&st->part, st->simd, b->in[X], b->out[0], r >= 0 ? b->in[r] : NULL,
                      b->scratch, b->n_threads);
    return OCT_OK;
}

const oct_kernel oct_kernel_conv = {
    .name = "conv",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts,
    .make = make,
    .run = run,
};
