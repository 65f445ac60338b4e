/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of pooling and of its gradients share. */
#ifndef OCT_OP_POOL_H
#define OCT_OP_POOL_H

#include "op/conv_geometry.h"

/* How many elements the average of the window at o is over; [from, to) are its taps inside x. */
static inline double oct_pool_divisor(const oct_conv_geometry *g, bool include_pad,
                                      const int64_t *o, const int64_t *from, const int64_t *to)
{
    double n = 1;

    for (int d = 0; d < g->n; d++) {
        /* Padding counts if asked for, but not what ceil_mode adds after it. */
        const int64_t first = o[d] * g->stride[d] - g->pad_begin[d];
        const int64_t room = g->in[d] + g->pad_end[d] - first;
        const int64_t inside = (room + g->dilation[d] - 1) / g->dilation[d];

        n *= (double)(include_pad ? OCT_MIN(g->kernel[d], inside) : to[d] - from[d]);
    }
    return n;
}

/* The element of the channel that tap k of the window at o reads. */
static inline int64_t oct_pool_at(const oct_conv_geometry *g, const int64_t *o, const int64_t *k)
{
    int64_t at = 0;

    for (int d = 0; d < g->n; d++)
        at = at * g->in[d] + o[d] * g->stride[d] - g->pad_begin[d] + k[d] * g->dilation[d];
    return at;
}

#endif
