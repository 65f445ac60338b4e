/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One part of a convolution step: a dense or depthwise convolution over all images. A
 * Conv is one part; a ConvTranspose with stride s is s * s parts, each with every s-th pixel of the
 * result.
 */
#ifndef OCT_EXEC_F32_F32_CONV_PART_H
#define OCT_EXEC_F32_F32_CONV_PART_H

#include "exec/simd/simd.h"

typedef struct oct_conv_part {
    oct_conv c;
    bool depthwise;
    int64_t batch, x_step, y_step, residual_step; /* elements from image to image */
    int64_t skip;                                 /* elements of the result beside out_w pixels in
                                                   * each row: 0 unless other parts fill them */
    /* how the work is split: rows, parts of rows, groups of blocks */
    int32_t group_size; /* blocks whose weights fit the cache */
    int64_t rows, segments, groups, segment;
    int64_t grain;
} oct_conv_part;

/* Input that a tile copies, in floats; a double, because strides and dilations may be anything. */
double oct_conv_patch_floats(const oct_conv *c);
#define OCT_CONV_MAX_PATCH 4e6 /* more is not worth copying */

/* Decides how the work is split; geometry, pitches and blocks' sizes are known. */
void oct_conv_part_split(oct_conv_part *part, const oct_simd *simd);

/* All images; scratch has c.patch_size floats for each thread. */
void oct_conv_part_run(const oct_conv_part *part, const oct_simd *simd, const float *x, float *y,
                       const float *residual, float *scratch, int n_threads);

#endif
