/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Networks from files of any kind that octet reads.
 */
#ifndef OCTET_MODEL_H
#define OCTET_MODEL_H

#include <octet/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reads a network: an ONNX file, a torch.export archive (.pt2), OpenVINO IR (.xml, with its .bin
 * file beside it), or a checkpoint of octet train.
 * What the file holds decides, not its name; a file of another kind fails with what it is and what
 * to do. The caller frees *out with oct_graph_free(), before the context. Weights stay in the
 * mapped file where they can: it must not be truncated while the graph lives. `path` is needed
 * during the call only.
 */
OCT_API oct_status oct_model_load(oct_ctx *ctx, const char *path, oct_graph **out);

#ifdef __cplusplus
}
#endif

#endif
