/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Networks as files of OpenVINO: IR, version 11, an XML file with the layers and beside it a .bin
 * file with the constants.
 */
#ifndef OCTET_OPENVINO_H
#define OCTET_OPENVINO_H

#include <octet/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How to write IR. */
typedef struct oct_openvino_options {
    size_t struct_size; /**< set by oct_openvino_options_init() */
    int32_t half;       /**< 1: float32 constants are kept as float16 (default 0) */
} oct_openvino_options;

OCT_API void oct_openvino_options_init_sized(oct_openvino_options *o, size_t struct_size);

/** Sets every option to its default. */
static inline void oct_openvino_options_init(oct_openvino_options *o)
{
    oct_openvino_options_init_sized(o, sizeof(*o));
}

/**
 * Writes a network as NAME.xml and NAME.bin; `path` ends with ".xml". QuantizeLinear and
 * DequantizeLinear become FakeQuantize, weights in integers stay integers. The graph is not
 * changed. An operator that has no form in IR fails, naming all such operators. `options` may be
 * NULL.
 */
OCT_API oct_status oct_openvino_save(const oct_graph *g, const char *path,
                                     const oct_openvino_options *options);

/**
 * Reads NAME.xml and NAME.bin, versions 10 and 11. FakeQuantize becomes QuantizeLinear and
 * DequantizeLinear, weights in integers stay integers. Constants stay in the mapped .bin file. The
 * caller frees *out. A layer that octet cannot read fails, naming all such layers.
 */
OCT_API oct_status oct_openvino_load(oct_ctx *ctx, const char *path, oct_graph **out);

#ifdef __cplusplus
}
#endif

#endif
