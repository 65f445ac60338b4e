/* SPDX-License-Identifier: Apache-2.0 */
/* Which float convolutions the own kernels take, and their output channels in blocks. */
#include "exec/f32/f32_conv_blocks.h"

#include "op/op.h"

enum { X, W, B };

bool oct_conv_find(const oct_plan *p, const oct_step *s, oct_conv_geometry *g)
{
    if (!s->node || s->node->op != &oct_op_conv || !oct_step_is_f32(p, s)) return false;
    if (!oct_step_const(p, s, W) || p->slots[s->in[X]].data) return false;
    if (oct_step_in(p, s, B) && s->fuse.residual != B && !oct_step_const(p, s, B)) return false;
    return !oct_conv_geometry_conv(s->node, &p->slots[s->in[X]].type, &p->slots[s->in[W]].type,
                                   g) &&
           oct_conv_geometry_to_2d(g);
}

const float *oct_conv_bias(const oct_plan *p, const oct_step *s)
{
    const oct_tensor *b = s->fuse.residual == B ? NULL : oct_step_const(p, s, B);

    return b ? b->data : NULL;
}

void oct_conv_put_taps(const oct_conv_weights *w, const oct_conv *c, int64_t o, float *to,
                       int64_t step)
{
    const int64_t taps = c->kernel[0] * c->kernel[1];

    for (int64_t i = 0; i < c->c_in; i++)
        for (int64_t t = 0; t < taps; t++)
            to[(t * c->c_in + i) * step] = w->w[o * w->o + i * w->c + t * w->t];
}

oct_status oct_conv_pack(oct_plan *p, const oct_simd *simd, const oct_conv_weights *w, int64_t rows,
                         oct_conv_filter_fn put, oct_conv *c)
{
    const int64_t vw = simd->width, n_vec = oct_ceil_div(c->c_out, vw);
    int64_t first = 0;
    float *at;

    c->n_blocks = (int32_t)oct_ceil_div(n_vec, simd->conv->max_vec);
    c->blocks = oct_plan_alloc(p, (size_t)c->n_blocks, sizeof(*c->blocks));
    at = oct_plan_alloc(p, (size_t)((rows + 1) * n_vec * vw), sizeof(*at));
    if (!c->blocks || !at) return OCT_ERR_MEMORY;
    for (int32_t b = 0; b < c->n_blocks; b++) {
        const int64_t vecs = n_vec * (b + 1) / c->n_blocks - n_vec * b / c->n_blocks;
        const int64_t width = vecs * vw, n = OCT_MIN(width, c->c_out - first);
        float *bias = at + rows * width;

        c->blocks[b] = (oct_conv_block){(int)vecs, first, n, at, bias};
        for (int64_t i = 0; i < n; i++) {
            put(w, c, first + i, at + i, width);
            if (w->bias) bias[i] = w->bias[first + i];
        }
        first += n;
        at = bias + width;
    }
    return OCT_OK;
}
