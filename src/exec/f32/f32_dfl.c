/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DFL (distribution focal loss) decoding in one step: Reshape, Transpose, Softmax over the bins and
 * a 1x1 convolution with the bin values, which gives the expected distance to each of the four
 * sides of a box (16 or 17 bins each). A block of pixels goes through all of it, so only the
 * expected values are stored.
 */
#include "base/parallel.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/op.h"

#define BLOCK 64 /* pixels */

typedef struct state {
    const oct_simd *simd;
    int64_t images, pixels, sides, bins, pitch, cuts;
    const float *w;
    bool by_pixel; /* result [pixels, sides], else [sides, pixels] */
    size_t room;   /* floats of a thread */
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    (void)p;
    *layout = OCT_LAYOUT_CLAST;
    return s->fuse.bins > 0; /* fuse.c has checked the rest */
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *x = &p->slots[s->in[0]].type, *y = &p->slots[s->out[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    *st = (state){.simd = oct_simd_get(),
                  .images = x->dim[0],
                  .pixels = oct_type_pixels(x),
                  .sides = x->dim[1] / s->fuse.bins,
                  .bins = s->fuse.bins,
                  .pitch = oct_slot_pitch(p, s->in[0]),
                  .w = oct_node_const(s->last, 1)->data,
                  .by_pixel = s->fuse.by_pixel};
    st->cuts = (st->pixels + BLOCK - 1) / BLOCK;
    st->room = (size_t)(x->dim[1] + st->sides) * BLOCK;
    s->scratch_size = st->room * (size_t)p->n_threads * sizeof(float);
    s->macs = oct_type_len(y) * st->bins;
    s->state = st;
    s->impl = st->simd->name;
    return OCT_OK;
}

typedef struct job {
    const state *st;
    const float *x;
    float *y, *scratch;
} job;

static void blocks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const int64_t channels = st->sides * st->bins;
    float *t = j->scratch + st->room * (size_t)oct_parallel_thread(), *mean = t + channels * BLOCK;

    for (int64_t u = begin; u < end; u++) {
        const int64_t image = u / st->cuts, first = u % st->cuts * BLOCK;
        const int64_t n = OCT_MIN(BLOCK, st->pixels - first);
        float *y = j->y + image * st->sides * st->pixels;

        st->simd->transpose(j->x + (image * st->pixels + first) * st->pitch, st->pitch, t, BLOCK, n,
                            channels);
        for (int64_t s = 0; s < st->sides; s++) {
            const float *side = t + s * st->bins * BLOCK;
            float *to = st->by_pixel ? mean + s * BLOCK : y + s * st->pixels + first;

            st->simd->expected_value(side, st->w, to, st->bins, BLOCK, n);
        }
        if (st->by_pixel)
            st->simd->transpose(mean, BLOCK, y + first * st->sides, st->sides, st->sides, n);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0], b->scratch};

    oct_parallel_for(b->n_threads, st->images * st->cuts, 4, blocks, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_dfl = {
    .name = "dfl",
    .flags = OCT_KERNEL_STRIDED_IN,
    .out_layout = OCT_LAYOUT_PLAIN,
    .accepts = accepts,
    .make = make,
    .run = run,
};
