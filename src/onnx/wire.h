/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of an ONNX file as they lie in memory.
 *
 * Decoding a message copies nothing: strings, byte fields and messages inside it are spans of the
 * buffer, decoded by another call when somebody looks at them. So a weight is never touched, and
 * no message can make the decoder recurse. Only wire.c and write*.c see the protobuf library.
 */
#ifndef OCT_ONNX_WIRE_H
#define OCT_ONNX_WIRE_H

#include "base/mem.h"

/* A part of the buffer; p is NULL if the field is absent. */
typedef struct oct_span {
    const uint8_t *p;
    size_t size;
} oct_span;

typedef struct oct_spans {
    oct_span *v;
    size_t n, cap;
} oct_spans;

typedef struct oct_wire_ints {
    int64_t *v;
    size_t n, cap;
} oct_wire_ints;

typedef struct oct_wire_floats {
    float *v;
    size_t n, cap;
} oct_wire_floats;

/* What decoding needs: the whole buffer (for offsets in errors), and where lists are kept. */
typedef struct oct_wire {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_span all;
} oct_wire;

typedef struct oct_pb_model {
    int64_t ir_version, model_version;
    oct_span producer_name, producer_version, domain, doc;
    oct_spans graph; /* more than one is an error of the file */
    oct_spans opsets, props, functions;
} oct_pb_model;

typedef struct oct_pb_graph {
    oct_span name, doc;
    oct_spans node, initializer, sparse_initializer, input, output, value_info;
} oct_pb_graph;

typedef struct oct_pb_node {
    oct_spans input, output, attribute;
    oct_span name, op_type, domain, overload, doc;
} oct_pb_node;

/* AttributeProto.type */
enum {
    OCT_PB_UNDEFINED = 0,
    OCT_PB_FLOAT = 1,
    OCT_PB_INT = 2,
    OCT_PB_STRING = 3,
    OCT_PB_TENSOR = 4,
    OCT_PB_GRAPH = 5,
    OCT_PB_FLOATS = 6,
    OCT_PB_INTS = 7,
    OCT_PB_STRINGS = 8,
    OCT_PB_TENSORS = 9,
    OCT_PB_GRAPHS = 10,
    OCT_PB_SPARSE_TENSOR = 11,
    OCT_PB_SPARSE_TENSORS = 12,
    OCT_PB_TYPE_PROTO = 13,
    OCT_PB_TYPE_PROTOS = 14,
};

typedef struct oct_pb_attr {
    oct_span self; /* the whole message */
    oct_span name, ref_name, s, t, g, tp, sparse;
    int32_t type;
    bool has_f, has_i;
    float f;
    int64_t i;
    oct_wire_floats floats;
    oct_wire_ints ints;
    oct_spans strings, tensors, graphs, types, sparses;
} oct_pb_attr;

typedef struct oct_pb_tensor {
    oct_span self;
    oct_span name, doc, raw;
    oct_wire_ints dims;
    int32_t data_type;
    int32_t location; /* 1: external */
    oct_spans strings, external;
    size_t n_float, n_i32, n_i64, n_double, n_u64; /* elements of the typed fields */
} oct_pb_tensor;

typedef struct oct_pb_sparse {
    oct_span values, indices;
    oct_wire_ints dims;
} oct_pb_sparse;

typedef struct oct_pb_value {
    oct_span name, type, doc;
} oct_pb_value;

typedef struct oct_pb_type {
    oct_span tensor; /* p NULL: another kind of type */
} oct_pb_type;

typedef struct oct_pb_tensor_type {
    int32_t elem_type;
    oct_span shape;
} oct_pb_tensor_type;

typedef struct oct_pb_dim {
    bool has_value;
    int64_t value;
    oct_span param;
} oct_pb_dim;

typedef struct oct_pb_pair { /* OperatorSetIdProto, StringStringEntryProto */
    oct_span key, value;
    int64_t version;
} oct_pb_pair;

typedef struct oct_pb_function {
    oct_span name, domain, overload;
    oct_spans input, output, attribute, attribute_proto, node, opsets, value_info;
} oct_pb_function;

oct_status oct_wire_model(oct_wire *w, oct_span bytes, oct_pb_model *out);
oct_status oct_wire_graph(oct_wire *w, oct_span bytes, oct_pb_graph *out);
oct_status oct_wire_node(oct_wire *w, oct_span bytes, oct_pb_node *out);
oct_status oct_wire_attr(oct_wire *w, oct_span bytes, oct_pb_attr *out);
oct_status oct_wire_tensor(oct_wire *w, oct_span bytes, oct_pb_tensor *out);
oct_status oct_wire_sparse(oct_wire *w, oct_span bytes, oct_pb_sparse *out);
oct_status oct_wire_value(oct_wire *w, oct_span bytes, oct_pb_value *out);
oct_status oct_wire_type(oct_wire *w, oct_span bytes, oct_pb_type *out);
oct_status oct_wire_tensor_type(oct_wire *w, oct_span bytes, oct_pb_tensor_type *out);
oct_status oct_wire_shape(oct_wire *w, oct_span bytes, oct_spans *dims);
oct_status oct_wire_dim(oct_wire *w, oct_span bytes, oct_pb_dim *out);
oct_status oct_wire_opset(oct_wire *w, oct_span bytes, oct_pb_pair *out);
oct_status oct_wire_prop(oct_wire *w, oct_span bytes, oct_pb_pair *out);
oct_status oct_wire_function(oct_wire *w, oct_span bytes, oct_pb_function *out);

/*
 * The numbers of a tensor's typed fields into plain arrays, which must have room for as many as
 * oct_wire_tensor() counted; NULL: not wanted.
 */
typedef struct oct_wire_numbers {
    float *f;
    double *d;
    int64_t *i32, *i64, *u64;
} oct_wire_numbers;

oct_status oct_wire_tensor_numbers(oct_wire *w, oct_span bytes, const oct_wire_numbers *to);

#endif
