/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the integer loops share within one instruction set. */
#ifndef OCT_EXEC_SIMD_INT8_INT8_PART_H
#define OCT_EXEC_SIMD_INT8_INT8_PART_H

#include "exec/simd/int8/int8_vec.h"

void INT8_SYM(epilogue)(const oct_int8_epilogue *f, const oct_int8_rows *r);
void INT8_SYM(dense)(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                     int64_t y, int64_t x0, int64_t x1, int32_t b0, int32_t b1);
void INT8_SYM(depthwise)(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                         int64_t y);

void INT8_SYM(winograd)(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                        int64_t first, int64_t n, int32_t b0, int32_t b1);

/* Transforms some tiles: [OCT_INT8_POINTS][OCT_INT8_MAX_TILES][row]. */
void INT8_SYM(points)(const oct_int8_conv *c, const oct_int8_io *io, int64_t first, int64_t n,
                      uint16_t *to);

void INT8_SYM(quantize_nchw)(const oct_int8_codes *q, const float *x, int64_t plane, int64_t c,
                             int64_t pixels, uint8_t *y, int64_t pitch);
void INT8_SYM(dequantize_nchw)(const oct_int8_codes *q, const uint8_t *x, int64_t pitch, int64_t c,
                               int64_t pixels, float *y, int64_t plane);

INLINE void store_part_or_all(float *p, vf v, int64_t lanes)
{
    if (lanes == VW)
        store(p, v);
    else
        store_part(p, v, lanes);
}

static inline int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/*
 * Copies n bytes in blocks of 16: reads up to 15 more, unless `end` is nearer, and writes up to
 * 15 more, which the caller overwrites next or has room for.
 */
INLINE uint8_t *copy_run(uint8_t *to, const uint8_t *from, int64_t n, const uint8_t *end)
{
    const int64_t whole = (n + 15) / 16 * 16;

    if (end - from >= whole) {
        int64_t i = 0;

        for (; i + BW <= whole; i += BW)
            memcpy(to + i, from + i, BW);
        for (; i < whole; i += 16)
            memcpy(to + i, from + i, 16);
    } else {
        memcpy(to, from, (size_t)n);
    }
    return to + n;
}

#endif
