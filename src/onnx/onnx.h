/* SPDX-License-Identifier: Apache-2.0 */
/* What others need of the ONNX reader beyond whole files. */
#ifndef OCT_ONNX_ONNX_H
#define OCT_ONNX_ONNX_H

#include "graph/graph.h"

/* A file that holds one TensorProto. */
oct_status oct_onnx_read_tensor(oct_ctx *ctx, const char *path, oct_tensor **out);

/* A model that is a part of a mapped file; what is made of it keeps the file. */
oct_status oct_onnx_load_part(oct_ctx *ctx, oct_file *f, size_t offset, size_t size,
                              oct_graph **out);

#endif
