/* SPDX-License-Identifier: Apache-2.0 */
/* From IR to a graph: what the rows of layers share. */
#ifndef OCT_OPENVINO_READ_H
#define OCT_OPENVINO_READ_H

#include "base/map.h"
#include "graph/op.h"
#include "openvino/ir.h"

/* NAME.xml and NAME.bin (read_file.c). ir was initialised; the caller frees what is in it. */
oct_status oct_ir_load(oct_ir *ir, const char *path);

typedef struct oct_from_ir {
    oct_ir ir;
    oct_ctx *ctx;
    oct_graph *g;
    oct_value ***values; /* by layer, by output */
    const oct_ir_layer *layer;
    oct_builder b;                   /* names nodes after the layer */
    oct_map value_names, node_names; /* in use */
} oct_from_ir;

typedef oct_status (*oct_from_ir_fn)(oct_from_ir *r, const oct_ir_layer *l);

/* Operand i of the layer; NULL: it has none. */
oct_value *oct_from_ir_in(const oct_from_ir *r, const oct_ir_layer *l, int32_t i);

/* Result i of the layer is v; the status of the builder. */
oct_status oct_from_ir_done(oct_from_ir *r, const oct_ir_layer *l, int32_t i, oct_value *v);

/* The name for a constant: that of the layer, made unique. NULL: no memory. */
const char *oct_from_ir_name(oct_from_ir *r, const char *name);

/* Attributes. */
const char *oct_from_ir_str(const oct_ir_layer *l, const char *name, const char *otherwise);
int64_t oct_from_ir_int(const oct_ir_layer *l, const char *name, int64_t otherwise);
double oct_from_ir_f64(const oct_ir_layer *l, const char *name, double otherwise);
bool oct_from_ir_bool(const oct_ir_layer *l, const char *name, bool otherwise);

/* A list of integers, at most `max`; *n of them, 0 if there is no such attribute. */
oct_status oct_from_ir_ints(const oct_from_ir *r, const oct_ir_layer *l, const char *name,
                            int64_t *out, int max, int *n);

/* "layer 'NAME' (TYPE): ..." */
oct_status oct_from_ir_fail(const oct_from_ir *r, const oct_ir_layer *l, oct_status st,
                            const char *fmt, ...) OCT_PRINTF(4, 5);

/* Fails unless the layer has n operands. */
oct_status oct_from_ir_need(const oct_from_ir *r, const oct_ir_layer *l, int32_t n);

/* Operand i as a constant list of integers, at most OCT_MAX_RANK; or as one integer. */
oct_status oct_from_ir_list(const oct_from_ir *r, const oct_ir_layer *l, int32_t i, int64_t *out,
                            int *n);
oct_status oct_from_ir_one(const oct_from_ir *r, const oct_ir_layer *l, int32_t i, int64_t *out);

/* v as another element type, if it is not of that type; NULL stays NULL. */
oct_value *oct_from_ir_cast(oct_from_ir *r, oct_value *v, oct_dtype to);

/* A list of int64, though IR may have a single number of another type. */
oct_value *oct_from_ir_as_list(oct_from_ir *r, oct_value *v);

/* The constant behind operand i, of any type; NULL: it is none. */
const oct_tensor *oct_from_ir_const(const oct_from_ir *r, const oct_ir_layer *l, int32_t i);

/* The row of a layer; NULL: none. */
oct_from_ir_fn oct_from_ir_find(const char *type);

#define OCT_IR_LAYER(type, fn) oct_status oct_from_ir_##fn(oct_from_ir *r, const oct_ir_layer *l);
#include "openvino/read_layers.def"
#undef OCT_IR_LAYER

#endif
