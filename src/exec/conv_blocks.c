/* SPDX-License-Identifier: Apache-2.0 */
/* Output channels of a float convolution in blocks. */
#include "exec/conv_blocks.h"

oct_status oct_conv_cut(oct_plan *p, const oct_simd *simd, int64_t rows, oct_conv *c,
                        float **memory)
{
    const int64_t vw = simd->width, n_vec = (c->c_out + vw - 1) / vw;
    const int most = simd->conv->max_vec;
    int64_t first = 0;
    float *packed;

    c->n_blocks = (int32_t)((n_vec + most - 1) / most);
    c->blocks = oct_plan_alloc(p, (size_t)c->n_blocks, sizeof(*c->blocks));
    *memory = packed = oct_plan_alloc(p, (size_t)((rows + 1) * n_vec * vw), sizeof(float));
    if (!c->blocks || !packed) return OCT_ERR_MEMORY;
    for (int32_t b = 0; b < c->n_blocks; b++) {
        const int64_t vecs = n_vec * (b + 1) / c->n_blocks - n_vec * b / c->n_blocks;
        const int64_t width = vecs * vw;

        c->blocks[b] = (oct_conv_block){.n_vec = (int)vecs,
                                        .first = first,
                                        .n = OCT_MIN(width, c->c_out - first),
                                        .w = packed,
                                        .bias = packed + rows * width};
        first += c->blocks[b].n;
        packed += (rows + 1) * width;
    }
    return OCT_OK;
}
