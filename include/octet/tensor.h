/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Tensors: element types, shapes, data. Row-major and dense.
 */
#ifndef OCTET_TENSOR_H
#define OCTET_TENSOR_H

#include <octet/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OCT_MAX_RANK 8

/** Element types; the numbers are those of ONNX. */
typedef enum oct_dtype {
    OCT_DTYPE_NONE = 0,
    OCT_DTYPE_F32 = 1,
    OCT_DTYPE_U8 = 2,
    OCT_DTYPE_I8 = 3,
    OCT_DTYPE_U16 = 4,
    OCT_DTYPE_I16 = 5,
    OCT_DTYPE_I32 = 6,
    OCT_DTYPE_I64 = 7,
    OCT_DTYPE_STRING = 8,
    OCT_DTYPE_BOOL = 9,
    OCT_DTYPE_F16 = 10,
    OCT_DTYPE_F64 = 11,
    OCT_DTYPE_U32 = 12,
    OCT_DTYPE_U64 = 13,
    OCT_DTYPE_C64 = 14,
    OCT_DTYPE_C128 = 15,
    OCT_DTYPE_BF16 = 16,
    OCT_DTYPE_F8E4M3FN = 17,
    OCT_DTYPE_F8E4M3FNUZ = 18,
    OCT_DTYPE_F8E5M2 = 19,
    OCT_DTYPE_F8E5M2FNUZ = 20,
    OCT_DTYPE_U4 = 21, /**< two to a byte, first in the low half */
    OCT_DTYPE_I4 = 22,
    OCT_DTYPE_F4E2M1 = 23,
    OCT_DTYPE_F8E8M0 = 24,
    OCT_DTYPE_U2 = 25, /**< four to a byte, first in the lowest bits */
    OCT_DTYPE_I2 = 26
} oct_dtype;

/** "float32", "int8", ...; "?" if there is no such type. */
OCT_API const char *oct_dtype_name(oct_dtype t);

/**
 * A tensor with a reference count. References may be taken and dropped from any thread; who writes
 * the data must be the only one to use it.
 */
typedef struct oct_tensor oct_tensor;

/** A new tensor with one reference, the caller's, and zeroed data. The context must outlive it. */
OCT_API oct_status oct_tensor_new(oct_ctx *ctx, oct_dtype dtype, int32_t rank, const int64_t *dims,
                                  oct_tensor **out);

/** One more reference, to be dropped with oct_tensor_unref(). Returns t. */
OCT_API oct_tensor *oct_tensor_ref(oct_tensor *t);

/** Drops a reference; the last one frees the tensor. Accepts NULL. */
OCT_API void oct_tensor_unref(oct_tensor *t);

/** \name Looking at a tensor: pointers are borrowed as long as the caller has a reference */
/**@{*/
OCT_API oct_dtype oct_tensor_dtype(const oct_tensor *t);
OCT_API int32_t oct_tensor_rank(const oct_tensor *t);
OCT_API const int64_t *oct_tensor_dims(const oct_tensor *t); /**< of rank elements */
OCT_API int64_t oct_tensor_len(const oct_tensor *t);         /**< elements */
OCT_API size_t oct_tensor_size(const oct_tensor *t);         /**< bytes */
OCT_API const void *oct_tensor_data(const oct_tensor *t);
/**@}*/

/**
 * The data for writing, borrowed as above: copied first if it is mapped from a file or otherwise
 * not to be written. Who else has a reference sees what is written. NULL: no memory.
 */
OCT_API void *oct_tensor_mutable(oct_tensor *t);

/**
 * Reads a NumPy .npy file (versions 1 to 3, C or Fortran order, any numeric type). *out has one
 * reference, the caller's.
 */
OCT_API oct_status oct_tensor_load_npy(oct_ctx *ctx, const char *path, oct_tensor **out);

/** Writes a NumPy .npy file; types NumPy does not know are written as float32. */
OCT_API oct_status oct_tensor_save_npy(oct_ctx *ctx, const oct_tensor *t, const char *path);

#ifdef __cplusplus
}
#endif

#endif
