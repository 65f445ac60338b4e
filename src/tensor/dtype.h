/* SPDX-License-Identifier: Apache-2.0 */
/* Element types as one table, and conversion between any two of them. */
#ifndef OCT_TENSOR_DTYPE_H
#define OCT_TENSOR_DTYPE_H

#include <octet/tensor.h>

#include "base/status.h"

typedef enum oct_dkind {
    OCT_DKIND_OTHER, /* string, complex: kept, not computed */
    OCT_DKIND_BOOL,
    OCT_DKIND_UINT,
    OCT_DKIND_INT,
    OCT_DKIND_FLOAT,
} oct_dkind;

typedef struct oct_dtype_info {
    const char *name; /* NumPy's and ONNX's word: "float32" */
    uint8_t bits;     /* 0: not a fixed size (string) */
    oct_dkind kind;
    const char *npy; /* .npy descriptor, or NULL */
} oct_dtype_info;

/* Never NULL: an unknown type has name "?" and 0 bits. */
const oct_dtype_info *oct_dtype_get(oct_dtype t);
oct_dtype oct_dtype_by_name(const char *name); /* OCT_DTYPE_NONE if there is none */

static inline bool oct_dtype_is_float(oct_dtype t)
{
    return oct_dtype_get(t)->kind == OCT_DKIND_FLOAT;
}

static inline bool oct_dtype_is_int(oct_dtype t) /* signed or unsigned, not bool */
{
    const oct_dkind k = oct_dtype_get(t)->kind;
    return k == OCT_DKIND_INT || k == OCT_DKIND_UINT;
}

/* Bytes of n elements (packed types round up); false on overflow or a type without a fixed size. */
bool oct_dtype_bytes(oct_dtype t, int64_t n, size_t *out);

/* Bytes of one element; 0 for packed (4-bit, 2-bit) types and strings. */
size_t oct_dtype_size(oct_dtype t);

/*
 * n elements starting at element index `from` of src (packed types need the index), to plain
 * arrays, and back. Floats to i64 truncate towards zero and saturate; i64 to narrow integers
 * wraps, as C and NumPy do; f32/f64 to narrow floats round half to even; to f8 saturate is by the
 * flag (ONNX Cast's `saturate`). Bool reads as 0/1, is written as x != 0.
 */
void oct_load_f32(oct_dtype t, const void *src, int64_t from, int64_t n, float *dst);
void oct_load_f64(oct_dtype t, const void *src, int64_t from, int64_t n, double *dst);
void oct_load_i64(oct_dtype t, const void *src, int64_t from, int64_t n, int64_t *dst);
void oct_store_f32(oct_dtype t, void *dst, int64_t from, int64_t n, const float *src);
void oct_store_f64(oct_dtype t, void *dst, int64_t from, int64_t n, const double *src);
void oct_store_i64(oct_dtype t, void *dst, int64_t from, int64_t n, const int64_t *src);

/* Any to any (not strings or complex), as ONNX Cast does it. `saturate` matters only for f8. */
void oct_convert(oct_dtype from_type, const void *src, oct_dtype to_type, void *dst, int64_t n,
                 bool saturate);

/* How a number becomes a power of two (Cast's round_mode). */
typedef enum oct_round {
    OCT_ROUND_UP,
    OCT_ROUND_DOWN,
    OCT_ROUND_NEAREST,
} oct_round;

/* Single values of the small floats. */
float oct_f16_to_f32(uint16_t h);
uint16_t oct_f32_to_f16(float f);
float oct_bf16_to_f32(uint16_t h);
uint16_t oct_f32_to_bf16(float f);
float oct_f8_to_f32(oct_dtype t, uint8_t b);
/* To float8e8m0 it rounds up, as Cast does by default. */
uint8_t oct_f32_to_f8(oct_dtype t, float f, bool saturate);
uint8_t oct_f32_to_e8m0(float f, oct_round round, bool saturate);

#endif
