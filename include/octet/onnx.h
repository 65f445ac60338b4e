/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * ONNX files: networks in and out.
 *
 * A graph belongs to the context it was made with, and to one thread at a time.
 */
#ifndef OCTET_ONNX_H
#define OCTET_ONNX_H

#include <octet/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reads an ONNX file. The caller frees *out with oct_graph_free(), before the context. Weights stay
 * in the mapped file until something changes them: the file must not be truncated while the graph
 * lives. `path` is needed during the call only.
 */
OCT_API oct_status oct_onnx_load(oct_ctx *ctx, const char *path, oct_graph **out);

/**
 * Reads an ONNX model from memory, which must stay alive and unchanged as long as the graph and
 * what is made of it: plans, results of quantizing. The caller frees *out with oct_graph_free().
 */
OCT_API oct_status oct_onnx_load_memory(oct_ctx *ctx, const void *data, size_t size,
                                        oct_graph **out);

/** How to write an ONNX file. */
typedef struct oct_onnx_options {
    size_t struct_size; /**< set by oct_onnx_options_init() */
    int32_t
        external_data; /**< 1: weights into FILE.data beside it; 0 (default): only above 2 GiB */
    int32_t opset;     /**< 0 (default): the file's own, raised where octet's form needs it */
} oct_onnx_options;

OCT_API void oct_onnx_options_init_sized(oct_onnx_options *o, size_t struct_size);

/** Sets every option to its default. */
static inline void oct_onnx_options_init(oct_onnx_options *o)
{
    oct_onnx_options_init_sized(o, sizeof(*o));
}

/**
 * Writes an ONNX file: to a temporary name, synced, renamed. The graph is not changed; nothing of
 * the arguments is kept. `options` may be NULL.
 */
OCT_API oct_status oct_onnx_save(const oct_graph *g, const char *path,
                                 const oct_onnx_options *options);

#ifdef __cplusplus
}
#endif

#endif
