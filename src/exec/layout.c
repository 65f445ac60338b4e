/* SPDX-License-Identifier: Apache-2.0 */
/* Slow, general conversion between layouts: for hooks of the public API and rare element types. */
#include "exec/layout.h"

#include <string.h>

/* Elements from the start to channel c of pixel i. */
static int64_t where(oct_seen_layout l, int64_t channels, int64_t pixels, int64_t i, int64_t c)
{
    if (l.layout == OCT_LAYOUT_CLAST) return i * l.pitch + c;
    return (i / pixels * channels + c) * pixels + i % pixels;
}

void oct_relayout(const oct_type *t, oct_seen_layout from, const void *src, oct_seen_layout to,
                  void *dst)
{
    const int64_t channels = t->dim[1], pixels = oct_type_pixels(t), n = t->dim[0] * pixels;
    const size_t size = oct_dtype_size(t->dtype);

    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < channels; c++)
            memcpy((char *)dst + (size_t)where(to, channels, pixels, i, c) * size,
                   (const char *)src + (size_t)where(from, channels, pixels, i, c) * size, size);
}
