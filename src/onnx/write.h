/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the ONNX writer share. Messages are streamed: no copy of the model is made. */
#ifndef OCT_ONNX_WRITE_H
#define OCT_ONNX_WRITE_H

#include <octet/onnx.h>

#include "onnx/read.h" /* oct_opsets */

#define OCT_ONNX_INLINE ((uint64_t)-1)

/* Where the bytes of a model go. */
typedef oct_status (*oct_onnx_put)(void *user, const void *p, size_t size);

/* One model being written. */
typedef struct oct_encoder {
    oct_ctx *ctx;
    const oct_graph *root;
    oct_opsets opsets;
    int64_t ir_version;
    oct_value **values; /* by graph, then id, so that a graph finds its own */
    size_t n_values;
    const char *location;   /* of external data; NULL: all in one file */
    uint64_t *offset;       /* by value id: in the external file, or OCT_ONNX_INLINE */
    uint64_t external_size; /* of that file */
    oct_onnx_put put;
    void *user;
    oct_status st;
} oct_encoder;

/* Streams a graph as an ONNX model in one piece (no external data). `options` may be NULL. */
oct_status oct_onnx_encode(const oct_graph *g, const oct_onnx_options *options, oct_onnx_put put,
                           void *user);

/* write_opset.c: the opsets and IR version a graph's file must have. */
oct_status oct_encoder_choose_opsets(oct_encoder *e, int32_t wanted);

/* The values of one graph: e->values[*begin] to before [*end]. */
void oct_encoder_values(const oct_encoder *e, const oct_graph *g, size_t *begin, size_t *end);

static inline bool oct_encoder_writes(const oct_value *v) /* as an initialiser */
{
    return oct_value_known(v) && (v->n_users > 0 || v->is_output);
}

#endif
