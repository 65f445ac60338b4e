/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 1x1 convolution to a few channels of an NCHW tensor: weighted sums of whole channels.
 *
 * The expected value of a DFL head is one (16 or 17 channels to 1, over thousands of positions).
 * Reordering its operand to NHWC would cost more than the sum.
 */
#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/conv_geometry.h"
#include "op/op.h"

enum { X, W, B };

#define MAX_OUT 4
#define BLOCK   1024 /* positions whose accumulators stay in the first-level cache */

typedef struct state {
    const oct_simd *simd;
    int64_t batch, c_in, c_out, pixels;
    const float *w, *bias;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    oct_conv_geometry g;

    if (!s->node || s->node->op != &oct_op_conv || !oct_step_is_f32(p, s)) return false;
    if (!oct_step_is_bare(s) || !oct_step_const(p, s, W)) return false;
    if (oct_step_in(p, s, B) && !oct_step_const(p, s, B)) return false;
    if (p->slots[s->in[X]].data || p->slots[s->in[X]].layout != OCT_LAYOUT_PLAIN) return false;
    if (oct_conv_geometry_conv(s->node, &p->slots[s->in[X]].type, &p->slots[s->in[W]].type, &g))
        return false;
    *layout = OCT_LAYOUT_PLAIN;
    return g.n >= 1 && g.group == 1 && g.c_out <= MAX_OUT && g.c_in > g.c_out &&
           oct_conv_is_pointwise(&g) && !p->slots[s->in[X]].value->is_input;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *x = &p->slots[s->in[X]].type;
    const oct_tensor *b = oct_step_const(p, s, B);
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    *st = (state){.simd = oct_simd_get(),
                  .batch = x->dim[0],
                  .c_in = x->dim[1],
                  .c_out = p->slots[s->out[0]].type.dim[1],
                  .pixels = oct_type_pixels(x),
                  .w = oct_step_const(p, s, W)->data,
                  .bias = b ? b->data : NULL};
    s->state = st;
    s->impl = "weighted sum of channels";
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const float *x;
    float *y;
} job;

static void blocks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const int64_t per_plane = oct_ceil_div(st->pixels, BLOCK);

    for (int64_t u = begin; u < end; u++) {
        const int64_t at = u % per_plane * BLOCK, plane = u / per_plane;
        const int64_t o = plane % st->c_out, image = plane / st->c_out;
        const int64_t n = OCT_MIN(BLOCK, st->pixels - at);
        const float *x = j->x + image * st->c_in * st->pixels + at;
        float *y = j->y + plane * st->pixels + at;

        for (int64_t c = 0; c < st->c_in; c++)
            st->simd->axpy(st->w[o * st->c_in + c], x + c * st->pixels, y, n, c == 0);
        if (st->bias) st->simd->binary(OCT_SIMD_ADD, y, 1, &st->bias[o], 0, y, n);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[X], b->out[0]};
    const int64_t per_plane = oct_ceil_div(st->pixels, BLOCK);

    oct_parallel_for(b->n_threads, st->batch * st->c_out * per_plane, 4, blocks, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_conv1x1_nchw = {
    .name = "conv1x1-nchw",
    .accepts = accepts,
    .make = make,
    .run = run,
};
