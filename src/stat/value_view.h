/* SPDX-License-Identifier: Apache-2.0 */
/* How the floats of one value lie in memory, for what gathers statistics over them. */
#ifndef OCT_STAT_VALUE_VIEW_H
#define OCT_STAT_VALUE_VIEW_H

#include "tensor/tensor.h"

/* NHWC: `pixels` rows of `channels` floats, `pitch` apart. NCHW (`planar`): channel c starts at
 * data + c * pixels. The samples of a batch are seen one by one. */
typedef struct oct_value_view {
    const float *data;
    int64_t pixels, channels, pitch;
    bool planar;
} oct_value_view;

#endif
