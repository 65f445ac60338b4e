/* SPDX-License-Identifier: Apache-2.0 */
/* What tests need of the ONNX reader beyond whole models. */
#ifndef OCT_ONNX_ONNX_H
#define OCT_ONNX_ONNX_H

#include "tensor/tensor.h"

/* A file that holds one TensorProto. */
oct_status oct_onnx_read_tensor(oct_ctx *ctx, const char *path, oct_tensor **out);

#endif
