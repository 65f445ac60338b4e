/* SPDX-License-Identifier: Apache-2.0 */
/* DFL (distribution focal loss) heads: each distance to a side of a box is the expected value of
 * a distribution over 16 or 17 bins. */
#ifndef OCT_PASS_FIND_DFL_H
#define OCT_PASS_FIND_DFL_H

#include "graph/op.h"

/* Reshape [N,sides*bins,..] to [N,sides,bins,P], Transpose to [N,bins,..], Softmax, and a Conv
 * of all bins to one channel; the values between have no other consumer. */
typedef struct oct_dfl {
    const oct_node *split, *transpose, *softmax, *sum;
    int64_t sides, bins;
    bool by_pixel; /* the result is [N,1,P,sides], else [N,1,sides,P] */
} oct_dfl;

bool oct_dfl_find(const oct_node *split, oct_dfl *out);

/* Is it such a Conv of a Softmax over its bins? It may have a bias. */
bool oct_dfl_is_sum(const oct_node *n);

#endif
