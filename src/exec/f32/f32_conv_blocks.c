/* SPDX-License-Identifier: Apache-2.0 */
/* Which float convolutions the own kernels take, and their output channels in blocks. */
#include "exec/f32/f32_conv_blocks.h"

#include <string.h>

#include "op/op.h"

enum { X, W, B };

bool oct_conv_find(const oct_plan *p, const oct_step *s, oct_conv_geometry *g)
{
    if (!s->node || s->node->op != &oct_op_conv || !oct_step_is_f32(p, s)) return false;
    if (p->slots[s->in[X]].data) return false;
    return !oct_conv_geometry_conv(s->node, &p->slots[s->in[X]].type, &p->slots[s->in[W]].type,
                                   g) &&
           oct_conv_geometry_to_2d(g);
}

bool oct_conv_is_constant(const oct_plan *p, const oct_step *s)
{
    return oct_step_const(p, s, W) &&
           (!oct_step_in(p, s, B) || s->fuse.residual == B || oct_step_const(p, s, B));
}

const float *oct_conv_bias(const oct_plan *p, const oct_step *s)
{
    const oct_tensor *b = s->fuse.residual == B ? NULL : oct_step_const(p, s, B);

    return b ? b->data : NULL;
}

void oct_conv_fill_geometry(const oct_conv_geometry *g, oct_conv *c)
{
    const bool by_group = !oct_conv_is_depthwise(g) || g->c_in != g->c_out;

    c->c_in = g->c_in / (by_group ? g->group : 1);
    c->c_out = g->c_out / (by_group ? g->group : 1);
    c->in_h = g->in[0];
    c->in_w = g->in[1];
    c->out_h = g->out[0];
    c->out_w = g->out[1];
    for (int i = 0; i < 2; i++) {
        c->kernel[i] = g->kernel[i];
        c->stride[i] = g->stride[i];
        c->dilation[i] = g->dilation[i];
        c->pad[i] = g->pad_begin[i];
    }
}

void oct_conv_part_fill(const oct_plan *p, const oct_step *s, oct_conv_part *part)
{
    oct_conv *c = &part->c;
    const int32_t r = s->fuse.residual;

    c->in_pitch = oct_slot_pitch(p, s->in[X]);
    c->out_pitch = oct_slot_pitch(p, s->out[0]);
    c->residual_pitch = r >= 0 ? oct_slot_pitch(p, s->in[r]) : 0;
    c->act[0] = s->fuse.act[0];
    c->act[1] = s->fuse.act[1];
    c->residual_scale = s->fuse.residual_scale;
    part->x_step = c->in_h * c->in_w * c->in_pitch;
    part->y_step = c->out_h * c->out_w * c->out_pitch;
    part->residual_step = c->out_h * c->out_w * c->residual_pitch;
}

void oct_conv_put_taps(const oct_conv_weights *w, const oct_conv *c, int64_t o, int64_t n,
                       float *to, int64_t step)
{
    for (int64_t i = 0; i < c->c_in; i++)
        for (int64_t ky = 0; ky < c->kernel[0]; ky++)
            for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
                const float *from = w->w + o * w->o + i * w->c + ky * w->y + kx * w->x;
                float *row = to + ((ky * c->kernel[1] + kx) * c->c_in + i) * step;

                for (int64_t l = 0; l < n; l++)
                    row[l] = from[l * w->o];
            }
}

int32_t oct_conv_n_blocks(const oct_simd *simd, const oct_conv *c)
{
    return (int32_t)oct_ceil_div(oct_ceil_div(c->c_out, simd->width), simd->conv->max_vec);
}

int64_t oct_conv_packed_floats(const oct_simd *simd, const oct_conv *c, int64_t rows)
{
    return (rows + 1) * oct_ceil_div(c->c_out, simd->width) * simd->width;
}

void oct_conv_lay_blocks(const oct_simd *simd, oct_conv *c, int64_t rows, float *at)
{
    const int64_t vw = simd->width, n_vec = oct_ceil_div(c->c_out, vw);
    int64_t first = 0;

    c->n_blocks = oct_conv_n_blocks(simd, c);
    for (int32_t b = 0; b < c->n_blocks; b++) {
        const int64_t vecs = n_vec * (b + 1) / c->n_blocks - n_vec * b / c->n_blocks;
        const int64_t width = vecs * vw, n = OCT_MIN(width, c->c_out - first);

        c->blocks[b] = (oct_conv_block){(int)vecs, first, n, at, at + rows * width};
        first += n;
        at += (rows + 1) * width;
    }
}

void oct_conv_pack_filters(const oct_simd *simd, const oct_conv_weights *w, const oct_conv *c,
                           oct_conv_filter_fn put, int64_t begin, int64_t end)
{
    for (int32_t b = 0; b < c->n_blocks; b++) {
        const oct_conv_block *block = &c->blocks[b];
        const int64_t step = (int64_t)block->n_vec * simd->width;
        const int64_t from = OCT_MAX(begin - block->first, 0);
        const int64_t to = OCT_MIN(end - block->first, block->n);
        float *at = (float *)(uintptr_t)block->w, *bias = (float *)(uintptr_t)block->bias;

        if (from >= to) continue;
        put(w, c, block->first + from, to - from, at + from, step);
        for (int64_t i = from; i < to; i++)
            bias[i] = w->bias ? w->bias[block->first + i] : 0;
        if (to < block->n) continue;
        for (float *row = at; row <= bias; row += step) /* the biases are the last row */
            for (int64_t i = block->n; i < step; i++)
                row[i] = 0;
    }
}

int64_t oct_conv_depthwise_floats(const oct_simd *simd, const oct_conv *c)
{
    return (c->kernel[0] * c->kernel[1] + 1) * oct_ceil_div(c->c_out, simd->width) * simd->width;
}

void oct_conv_pack_depthwise(const oct_simd *simd, const oct_conv_weights *w, float *packed,
                             oct_conv *c)
{
    const int64_t taps = c->kernel[0] * c->kernel[1];

    c->dw_pitch = oct_ceil_div(c->c_out, simd->width) * simd->width;
    c->dw_w = packed;
    c->dw_bias = packed + taps * c->dw_pitch;
    memset(packed, 0, (size_t)((taps + 1) * c->dw_pitch) * sizeof(float));
    for (int64_t i = 0; i < c->c_out; i++) {
        for (int64_t t = 0; t < taps; t++)
            packed[t * c->dw_pitch + i] =
                w->w[i * w->o + t / c->kernel[1] * w->y + t % c->kernel[1] * w->x];
        if (w->bias) packed[taps * c->dw_pitch + i] = w->bias[i];
    }
}

oct_status oct_conv_pack(oct_plan *p, const oct_simd *simd, const oct_conv_weights *w, int64_t rows,
                         oct_conv_filter_fn put, oct_conv *c)
{
    float *at = oct_plan_alloc(p, (size_t)oct_conv_packed_floats(simd, c, rows), sizeof(*at));

    c->blocks = oct_plan_alloc(p, (size_t)oct_conv_n_blocks(simd, c), sizeof(*c->blocks));
    if (!c->blocks || !at) return OCT_ERR_MEMORY;
    oct_conv_lay_blocks(simd, c, rows, at);
    oct_conv_pack_filters(simd, w, c, put, 0, c->c_out);
    return OCT_OK;
}
