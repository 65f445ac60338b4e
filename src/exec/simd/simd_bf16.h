/* SPDX-License-Identifier: Apache-2.0 */
/* Between float32 and bfloat16: rounded to the nearest, half to even, as all CPUs that have the
 * instruction do. */
#ifndef OCT_EXEC_SIMD_SIMD_BF16_H
#define OCT_EXEC_SIMD_SIMD_BF16_H

#include <stdint.h>

typedef struct oct_bf16_simd {
    const char *name;
    void (*narrow)(const float *x, uint16_t *y, int64_t n);
    void (*widen)(const uint16_t *x, float *y, int64_t n);
    void (*round)(const float *x, float *y,
                  int64_t n); /* to values that bfloat16 has; y may be x */
} oct_bf16_simd;

const oct_bf16_simd *oct_bf16_simd_get(void);

#endif
