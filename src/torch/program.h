/* SPDX-License-Identifier: Apache-2.0 */
/* An exported program as its JSON tells it: nodes, arguments, types, signature. */
#ifndef OCT_TORCH_PROGRAM_H
#define OCT_TORCH_PROGRAM_H

#include "base/map.h"
#include "tensor/tensor.h"
#include "torch/archive.h"

typedef enum oct_arg_kind {
    OCT_ARG_NONE,
    OCT_ARG_TENSOR, /* s: its name */
    OCT_ARG_INT,    /* also element types, layouts and memory formats, as torch numbers them */
    OCT_ARG_FLOAT,
    OCT_ARG_BOOL, /* i: 0 or 1 */
    OCT_ARG_STRING,
    OCT_ARG_SYM, /* s: the name of a symbolic number */
    OCT_ARG_LIST,
    OCT_ARG_OTHER, /* s: what it is; octet has no use for it */
} oct_arg_kind;

typedef struct oct_arg {
    oct_arg_kind kind;
    int32_t n; /* LIST */
    union {
        int64_t i;
        double f;
        const char *s;
        const struct oct_arg *list;
    };
} oct_arg;

typedef struct oct_named_arg {
    const char *name;
    oct_arg value;
} oct_named_arg;

/* A node of the exported graph. */
typedef struct oct_call_node {
    const char *target; /* "aten.conv2d.default", "_operator.mul" */
    oct_named_arg *in;
    int32_t n_in;
    oct_arg *out; /* results, lists flattened: TENSOR, SYM or NONE */
    int32_t n_out;
    const char *path;    /* "layer1.0.conv1" */
    const char *classes; /* "ResNet > BasicBlock > Conv2d" */
} oct_call_node;

/* What the file says of a tensor. */
typedef struct oct_meta {
    oct_type type;         /* unknown dims are -1 */
    const char **dim_name; /* NULL, or for each dim a name or NULL */
    bool is_contiguous;    /* NCHW order, as far as the file tells */
} oct_meta;

typedef enum oct_spec_kind {
    OCT_SPEC_USER,
    OCT_SPEC_WEIGHT,   /* parameter or persistent buffer */
    OCT_SPEC_CONSTANT, /* lifted tensor or buffer that is not persistent */
    OCT_SPEC_OTHER,    /* a mutation, a token */
} oct_spec_kind;

typedef struct oct_spec {
    oct_spec_kind kind;
    oct_arg arg;      /* TENSOR, or a number the caller gave when the program was exported */
    const char *name; /* of a weight, in the state dict; of an output, its key in a dict */
} oct_spec;

typedef struct oct_program {
    oct_ctx *ctx;
    oct_arena *arena;
    int64_t schema;
    const char *torch_version;
    oct_call_node *nodes;
    size_t n_nodes, cap_nodes;
    oct_map metas; /* name -> oct_meta */
    oct_spec *in, *out;
    int32_t n_in, n_out;
} oct_program;

/* `bytes` is needed during the call only. */
oct_status oct_program_read(oct_ctx *ctx, oct_span_of bytes, oct_program *out);
void oct_program_fini(oct_program *p);

/* --- parts, shared by the readers --- */

#include <jansson.h>

/* The one key of a union, and its value; fails if it is no object of one key. */
oct_status oct_program_union(oct_program *p, const json_t *j, const char **key,
                             const json_t **value);
oct_status oct_program_arg(oct_program *p, const json_t *j, oct_arg *out);
oct_status oct_program_node(oct_program *p, const json_t *j, oct_call_node *out);
oct_status oct_program_text(oct_program *p, const json_t *j, const char *what, const char **out);

/* A tensor_values or tensor_meta object. strides (may be NULL) get what the file says, -1 if it is
 * symbolic; *offset (may be NULL) the first element. */
oct_status oct_program_meta(oct_program *p, const json_t *j, oct_meta *out, int64_t *strides,
                            int64_t *offset);

/* Signature and names of outputs. */
oct_status oct_program_signature(oct_program *p, const json_t *j);
oct_status oct_program_call_graph(oct_program *p, const json_t *j);

/* The element type of a ScalarType number; NONE: octet has none. */
oct_dtype oct_torch_dtype(int64_t scalar_type);

#endif
