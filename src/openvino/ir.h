/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO's IR in memory: layers with attributes, connected by ports, in the order of the file. */
#ifndef OCT_OPENVINO_IR_H
#define OCT_OPENVINO_IR_H

#include "graph/graph.h"

/* An output of a layer: where an edge comes from. layer -1: none. */
typedef struct oct_ir_at {
    int32_t layer, port;
} oct_ir_at;

typedef struct oct_ir_attr {
    const char *name, *value;
} oct_ir_attr;

typedef struct oct_ir_out {
    oct_type type;
    const char *names; /* of the tensor, with commas between them; NULL: none */
} oct_ir_out;

typedef struct oct_ir_layer {
    const char *name, *type, *version;
    oct_ir_attr *attrs;
    size_t n_attrs, cap_attrs;
    oct_ir_at *in;
    int32_t n_in;
    oct_ir_out *out;
    int32_t n_out;
    oct_tensor *data;  /* Const: a reference; else NULL */
    bool decompresses; /* Convert of a constant that is kept as float16 */
} oct_ir_layer;

typedef struct oct_ir {
    oct_ctx *ctx;
    oct_arena *arena;
    const char *name;
    oct_ir_layer *layers;
    size_t cap_layers;
    int32_t n_layers;
    oct_ir_attr *facts; /* of the whole network: its metadata */
    size_t n_facts, cap_facts;
    oct_status status; /* sticky: functions that add do nothing after a failure */
} oct_ir;

oct_status oct_ir_init(oct_ir *ir, oct_ctx *ctx, const char *name);
void oct_ir_fini(oct_ir *ir);

/* Adds a layer with n_out outputs of these types; returns its first output. */
oct_ir_at oct_ir_add(oct_ir *ir, const char *name, const char *type, const char *version,
                     const oct_ir_at *in, int32_t n_in, const oct_type *out, int32_t n_out);

/* Attributes of the layer that was added last. */
void oct_ir_attr_str(oct_ir *ir, const char *name, const char *value);
void oct_ir_attr_bool(oct_ir *ir, const char *name, bool value);
void oct_ir_attr_int(oct_ir *ir, const char *name, int64_t value);
void oct_ir_attr_f64(oct_ir *ir, const char *name, double value);
void oct_ir_attr_ints(oct_ir *ir, const char *name, const int64_t *v, int64_t n);

/* A fact about the whole network. */
void oct_ir_fact(oct_ir *ir, const char *name, const char *value);

/* Constants. The first takes the reference to t. */
oct_ir_at oct_ir_const(oct_ir *ir, const char *name, oct_tensor *t);
oct_ir_at oct_ir_scalar(oct_ir *ir, const char *name, double v); /* f32 */
oct_ir_at oct_ir_ints(oct_ir *ir, const char *name, const int64_t *v, int64_t n, bool is_scalar);

/* "NAME/SUFFIX" in the arena. */
const char *oct_ir_name(oct_ir *ir, const char *name, const char *suffix);

const oct_type *oct_ir_type(const oct_ir *ir, oct_ir_at at);

/* IR's words for an element type: "f32" of constants and "FP32" of ports; NULL: it has none. */
const char *oct_ir_element(oct_dtype t);
const char *oct_ir_precision(oct_dtype t);
oct_dtype oct_ir_dtype(const char *element); /* of "f32"; OCT_DTYPE_NONE: not known */

/* NAME.xml and NAME.bin (write_file.c). */
oct_status oct_ir_save(const oct_ir *ir, const char *path);

#endif
