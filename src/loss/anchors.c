/* SPDX-License-Identifier: Apache-2.0 */
/* Anchor points of feature maps. */
#include "loss/anchors.h"

enum { MAX_SIDE = 1 << 14 }; /* cells: 2^28 of a level cannot overflow */

int64_t oct_anchors_of_level(const oct_anchor_levels *l, int32_t level)
{
    return l->height[level] * l->width[level];
}

int64_t oct_anchors_count(const oct_anchor_levels *l)
{
    int64_t n = 0;

    for (int32_t i = 0; i < l->n; i++)
        n += oct_anchors_of_level(l, i);
    return n;
}

void oct_anchors_fill(const oct_anchor_levels *l, double offset, double *point, double *stride)
{
    int64_t at = 0;

    for (int32_t i = 0; i < l->n; i++)
        for (int64_t cell = 0; cell < oct_anchors_of_level(l, i); cell++, at++) {
            point[2 * at] = ((double)(cell % l->width[i]) + offset) * l->stride[i];
            point[2 * at + 1] = ((double)(cell / l->width[i]) + offset) * l->stride[i];
            stride[at] = l->stride[i];
        }
}

bool oct_anchor_levels_read(const int64_t *strides, int64_t n, const int64_t *sizes,
                            int64_t n_sizes, oct_anchor_levels *out)
{
    if (n < 1 || n > OCT_LOSS_MAX_LEVELS || n_sizes != 2 * n) return false;
    out->n = (int32_t)n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t height = sizes[2 * i], width = sizes[2 * i + 1];

        if (height < 1 || height > MAX_SIDE || width < 1 || width > MAX_SIDE) return false;
        if (strides[i] < 1 || strides[i] > MAX_SIDE) return false;
        out->height[i] = height;
        out->width[i] = width;
        out->stride[i] = (double)strides[i];
    }
    return true;
}
