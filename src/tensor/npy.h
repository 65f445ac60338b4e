/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy format, from memory. */
#ifndef OCT_TENSOR_NPY_H
#define OCT_TENSOR_NPY_H

#include "tensor/tensor.h"

/* Makes a tensor with its own data from the bytes of a .npy file, which may be hostile. */
oct_status oct_npy_decode(oct_ctx *ctx, const uint8_t *data, size_t size, oct_tensor **out);

/* What the header says; of the data nothing needs to be there. */
oct_status oct_npy_peek(oct_ctx *ctx, const uint8_t *data, size_t size, oct_type *out);

#endif
