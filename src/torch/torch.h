/* SPDX-License-Identifier: Apache-2.0 */
/* torch.export archives (.pt2) to graphs. */
#ifndef OCT_TORCH_TORCH_H
#define OCT_TORCH_TORCH_H

#include "graph/graph.h"

/* Weights that are not compressed stay in the file, which the graph keeps. */
oct_status oct_torch_load(oct_ctx *ctx, oct_file *file, oct_graph **out);

/* The same from memory; weights are copied, so that it need not outlive the call. */
oct_status oct_torch_load_memory(oct_ctx *ctx, const void *data, size_t size, oct_graph **out);

#endif
