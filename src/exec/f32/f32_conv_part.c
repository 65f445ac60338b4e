/* SPDX-License-Identifier: Apache-2.0 */
/* How one convolution is split over threads, for constant and for variable weights. */
#include "exec/f32/f32_conv_part.h"

#include "base/parallel.h"

#define CHUNK_MACS     400000 /* work that is worth a thread */
#define GROUP_BYTES    262144 /* weights that should stay in the second-level cache */
#define SEGMENT_PIXELS 240    /* of an image that needs no rows (1x1) */

double oct_conv_patch_floats(const oct_conv *c)
{
    const double columns = (double)(OCT_CONV_PIXELS - 1) * (double)c->stride[1] +
                           (double)(c->kernel[1] - 1) * (double)c->dilation[1] + 1;

    return (double)c->kernel[0] * (double)c->c_in * columns;
}

static int64_t group_size(const oct_conv *c, int width)
{
    const int64_t per_vec = c->kernel[0] * c->kernel[1] * c->c_in * width * (int64_t)sizeof(float);
    int64_t bytes = 0;

    for (int32_t b = 0; b < c->n_blocks; b++) {
        bytes += per_vec * c->blocks[b].n_vec;
        if (b > 0 && bytes > GROUP_BYTES) return b;
    }
    return c->n_blocks;
}

void oct_conv_part_split(oct_conv_part *part, const oct_simd *simd)
{
    oct_conv *c = &part->c;
    const bool pointwise = c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 &&
                           c->stride[1] == 1 && !c->pad[0] && !c->pad[1] && c->out_h == c->in_h &&
                           c->out_w == c->in_w && !part->skip;
    int64_t macs;

    if (pointwise && !part->depthwise) { /* all pixels of the batch are one long row */
        c->in_w = c->out_w = part->batch * c->in_h * c->in_w;
        c->in_h = c->out_h = 1;
        part->batch = 1;
    }
    part->rows = c->out_h;
    part->segment = pointwise ? SEGMENT_PIXELS : OCT_MAX(c->out_w, 1);
    part->segments = part->depthwise ? 1 : oct_ceil_div(c->out_w, part->segment);
    part->group_size = part->depthwise ? 1 : (int32_t)group_size(c, simd->width);
    part->groups = part->depthwise ? 1 : oct_ceil_div(c->n_blocks, part->group_size);
    macs = c->kernel[0] * c->kernel[1] * OCT_MIN(part->segment, c->out_w) *
           (part->depthwise ? 1 : c->c_in) * c->c_out / part->groups;
    part->grain = OCT_MAX(1, CHUNK_MACS / OCT_MAX(macs, 1));
    if (part->depthwise) part->grain = OCT_MAX(1, CHUNK_MACS / 4 / OCT_MAX(macs, 1));
}

typedef struct job {
    const oct_conv_part *part;
    const oct_simd *simd;
    const float *x, *residual;
    float *y, *scratch;
} job;

static void units(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_conv_part *p = j->part;
    const oct_conv *c = &p->c;
    oct_conv_io io = {0};

    if (!p->depthwise) io.patch = j->scratch + oct_parallel_thread() * c->patch_size;
    for (int64_t u = begin; u < end; u++) {
        const int64_t seg = u % p->segments, y = u / p->segments % p->rows;
        const int64_t g = u / p->segments / p->rows % p->groups;
        const int64_t n = u / p->segments / p->rows / p->groups, x0 = seg * p->segment;

        io.x = j->x + n * p->x_step;
        io.y = j->y + n * p->y_step + y * p->skip;
        io.residual = j->residual ? j->residual + n * p->residual_step : NULL;
        if (p->depthwise)
            j->simd->conv->depthwise(c, &io, y);
        else
            j->simd->conv->dense(c, &io, y, x0, OCT_MIN(x0 + p->segment, c->out_w),
                                 (int32_t)g * p->group_size,
                                 OCT_MIN((int32_t)(g + 1) * p->group_size, c->n_blocks));
    }
}

void oct_conv_part_run(const oct_conv_part *part, const oct_simd *simd, const float *x, float *y,
                       const float *residual, float *scratch, int n_threads)
{
    job j = {part, simd, x, residual, y, scratch};

    oct_parallel_for(n_threads, part->batch * part->groups * part->rows * part->segments,
                     part->grain, units, &j);
}
