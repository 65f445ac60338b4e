/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 16 bits and fewer: one description per format, and quick loops for the 16-bit ones. */
#ifndef OCT_TENSOR_SMALL_FLOAT_H
#define OCT_TENSOR_SMALL_FLOAT_H

#include "tensor/dtype.h"

/* A format of sign, exponent and mantissa (all but float8e8m0); NULL for other types. */
typedef struct oct_small_float oct_small_float;

const oct_small_float *oct_small_float_get(oct_dtype t);

/* Exact. */
float oct_small_float_unpack(const oct_small_float *f, uint32_t code);

/* Rounds once, half to even. `saturate` matters only for 8-bit formats. */
uint32_t oct_small_float_pack(const oct_small_float *f, double x, bool saturate);

void oct_f16_to_f32_n(const uint16_t *src, int64_t n, float *dst);
void oct_f32_to_f16_n(const float *src, int64_t n, uint16_t *dst);
void oct_bf16_to_f32_n(const uint16_t *src, int64_t n, float *dst);
void oct_f32_to_bf16_n(const float *src, int64_t n, uint16_t *dst);

#endif
