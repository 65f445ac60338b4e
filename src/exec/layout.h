/* SPDX-License-Identifier: Apache-2.0 */
/* Converting a tensor from one layout to another, element by element. */
#ifndef OCT_EXEC_LAYOUT_H
#define OCT_EXEC_LAYOUT_H

#include "exec/plan.h"

typedef struct oct_seen_layout {
    oct_layout layout;
    int64_t pitch; /* NHWC: elements from pixel to pixel */
} oct_seen_layout;

void oct_relayout(const oct_type *t, oct_seen_layout from, const void *src, oct_seen_layout to,
                  void *dst);

#endif
