/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of callers that were compiled against other headers: shorter ones, or longer ones. */
#ifndef OCT_BASE_SIZED_H
#define OCT_BASE_SIZED_H

#include <string.h>

#include "base/status.h"

/* A struct of the library's for the caller, of whom struct_size (its first field) is known. */
static inline void oct_sized_give(void *to, const void *from, size_t size)
{
    size_t room;

    memcpy(&room, to, sizeof(room));
    if (room <= sizeof(room)) return;
    memcpy((char *)to + sizeof(room), (const char *)from + sizeof(room),
           (room < size ? room : size) - sizeof(room));
}

/* Element i of a caller's array whose elements have `stride` bytes (0: as the library's). */
static inline void oct_sized_element(void *to, const void *array, size_t stride, int32_t i,
                                     size_t size)
{
    const size_t step = stride ? stride : size;

    memset(to, 0, size);
    memcpy(to, (const char *)array + (size_t)i * step, step < size ? step : size);
}

#endif
