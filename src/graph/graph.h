/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IR: an SSA graph of nodes and values with ONNX semantics.
 *
 *   graph ── nodes in execution order (a linked list) ── each: an operator row, values in and out
 *         └─ values: made by a node, fed by the caller (inputs) or constant (data != NULL)
 *
 * Everything but tensors lives in the root graph's arena and dies with it. A subgraph (the body of
 * an If or Loop) is a graph whose nodes may use values of the graphs around it directly.
 * Analysis results live in side arrays indexed by value or node id, never in these structs.
 */
#ifndef OCT_GRAPH_GRAPH_H
#define OCT_GRAPH_GRAPH_H

#include <octet/graph.h>

#include "base/map.h"
#include "base/mem.h"
#include "tensor/tensor.h"

typedef struct oct_op oct_op;
typedef struct oct_attr oct_attr;

typedef enum oct_attr_kind {
    OCT_ATTR_NONE = 0,
    OCT_ATTR_F32,
    OCT_ATTR_INT,
    OCT_ATTR_STRING,
    OCT_ATTR_TENSOR,
    OCT_ATTR_GRAPH,
    OCT_ATTR_F32S,
    OCT_ATTR_INTS,
    OCT_ATTR_STRINGS,
    OCT_ATTR_RAW, /* any other: its serialized AttributeProto, kept as it is */
} oct_attr_kind;

/* The value of one attribute. Arrays and strings live in the arena; tensors are referenced. */
struct oct_attr {
    oct_attr_kind kind; /* NONE: not set and without a default */
    bool given;         /* set in the file or by a builder, not a default */
    int64_t n;          /* elements of the array kinds, bytes of STRING and RAW */
    union {
        float f;
        int64_t i;
        const char *s; /* terminated as well */
        oct_tensor *t;
        oct_graph *g;
        const float *fs;
        const int64_t *is;
        const char *const *ss;
    };
};

/* An attribute the row does not list: kept and written back. */
typedef struct oct_extra_attr {
    const char *name;
    oct_attr value;
} oct_extra_attr;

/*
 * What a value is. A pass or kernel that bakes numbers in asks for a constant (`data`,
 * oct_node_const()), and so leaves alone what training changes.
 */
typedef enum oct_value_kind {
    OCT_VALUE_INNER, /* made by a node */
    OCT_VALUE_INPUT, /* given for each run */
    OCT_VALUE_CONST, /* known and fixed */
    OCT_VALUE_PARAM, /* known before the first step; training changes it: weights */
    OCT_VALUE_STATE, /* the same, but no gradient is asked for: running statistics, momenta */
} oct_value_kind;

struct oct_value {
    int32_t id; /* < root->n_value_ids; never reused */
    const char *name;
    oct_graph *graph;
    oct_type type;
    bool is_declared;      /* a part of its type is known from the file alone, not by inference */
    const char **dim_name; /* NULL, or for each dim a symbolic name or NULL */
    oct_node *producer;    /* NULL: input or constant */
    int32_t out_index;     /* which output of the producer */
    oct_tensor *data;      /* CONST: known, and never changes; else NULL */
    oct_tensor *initial;   /* PARAM, STATE: what it is before the first step; else NULL */
    bool is_state;         /* STATE */
    bool is_input, is_output;
    oct_node **users; /* nodes that read it, once per operand */
    int32_t n_users, cap_users;
    const char *doc;
    const char *raw_type; /* not a tensor (sequence, optional, map): serialized TypeProto */
    size_t raw_type_size;
};

struct oct_node {
    int32_t id; /* < root->n_node_ids; never reused */
    const char *name;
    const oct_op *op;
    oct_graph *graph;
    oct_value **in; /* NULL: optional operand not given */
    int32_t n_in;
    oct_value **out; /* NULL: optional result, unused */
    int32_t n_out;
    oct_attr *attr; /* one for each entry of op->attrs */
    oct_extra_attr *extra;
    int32_t n_extra;
    oct_node *prev, *next;
    const char *doc;
};

typedef struct oct_opset {
    const char *domain;
    int64_t version;
} oct_opset;

typedef struct oct_prop {
    const char *key, *value;
} oct_prop;

/* What an ONNX file says about itself; only a root graph has it. */
typedef struct oct_model_info {
    int64_t ir_version, model_version;
    const char *producer_name, *producer_version, *domain, *doc;
    oct_opset *opsets; /* as in the file; the graph itself is in octet's internal form */
    int32_t n_opsets;
    oct_prop *props;
    int32_t n_props;
} oct_model_info;

struct oct_graph {
    oct_ctx *ctx;
    oct_arena *arena;  /* the root's */
    oct_graph *parent; /* NULL: root */
    oct_graph *root;
    const char *name, *doc;
    oct_node *first, *last;
    int32_t n_nodes;
    oct_value **inputs, **outputs;
    int32_t n_inputs, n_outputs;
    size_t cap_inputs, cap_outputs;
    /* root only */
    int32_t n_value_ids, n_node_ids;
    oct_value **values; /* by id; NULL: removed */
    size_t cap_values;
    oct_model_info info;
    int64_t name_serial; /* for made-up names */
};

/* --- making and freeing --- */

oct_status oct_graph_new(oct_ctx *ctx, const char *name, oct_graph **out);
oct_status oct_graph_new_sub(oct_graph *parent, const char *name, oct_graph **out);

/* A deep copy (weights are shared by reference). map[id], if not NULL, gets the new value. */
oct_status oct_graph_clone(const oct_graph *g, oct_graph **out);

/* --- values --- NULL means no memory, with the error set. Names are copied; NULL: make one up */

oct_value *oct_value_new(oct_graph *g, const char *name, const oct_type *type);
oct_value *oct_value_const(oct_graph *g, const char *name, oct_tensor *t); /* takes the reference */
oct_value_kind oct_value_kind_of(const oct_value *v);

/* A constant becomes a parameter or a state that starts with its data, and back. What is not a
 * constant (or was none) stays as it is. */
void oct_value_to_param(oct_value *v, bool is_state);
void oct_value_to_const(oct_value *v);
void oct_graph_params_to_consts(oct_graph *g); /* all of them: for running and for files */

/* The bytes of a constant, or those a parameter starts with; NULL: neither. */
static inline oct_tensor *oct_value_known(const oct_value *v)
{
    return v->data ? v->data : v->initial;
}

oct_status oct_graph_add_input(oct_graph *g, oct_value *v);
oct_status oct_graph_add_output(oct_graph *g, oct_value *v);
oct_value *oct_graph_find_value(const oct_graph *g, const char *name); /* linear; also subgraphs' */
oct_node *oct_graph_find_node(const oct_graph *g, const char *name);

/* All readers of `from`, and the graph's outputs, use `to` instead. If `from` is an output of the
 * graph, `to` takes over its name (so the interface stays), which needs `to` to be free for it:
 * see oct_value_can_replace(). */
oct_status oct_value_replace_uses(oct_value *from, oct_value *to);

/* False if replacing would change the graph's interface: `from` is an output and `to` is an
 * input, a constant, or an output already. */
bool oct_value_can_replace(const oct_value *from, const oct_value *to);

/* --- nodes --- */

/* A node at the end of g (before == NULL) or before `before`. Operand pointers are copied,
 * attributes set to the row's defaults. Outputs get new values of unknown type when out is NULL;
 * out[i] may be NULL for unused results. */
oct_node *oct_node_new(oct_graph *g, oct_node *before, const char *name, const oct_op *op,
                       oct_value *const *in, int32_t n_in, oct_value *const *out, int32_t n_out);

oct_status oct_node_set_input(oct_node *n, int32_t i, oct_value *v); /* i may be n_in: appends */
void oct_node_remove(oct_node *n); /* its outputs must have no users; they go too */
void oct_node_move_before(oct_node *n, oct_node *before); /* NULL: to the end */

/* Attributes by name (of the row, else extra); the value is copied into the arena. */
oct_status oct_node_set_attr(oct_node *n, const char *name, const oct_attr *value);
oct_status oct_node_set_int(oct_node *n, const char *name, int64_t v);
oct_status oct_node_set_f32(oct_node *n, const char *name, float v);
oct_status oct_node_set_str(oct_node *n, const char *name, const char *v);
oct_status oct_node_set_ints(oct_node *n, const char *name, const int64_t *v, int64_t n_v);
const oct_attr *oct_node_attr(const oct_node *n, const char *name); /* NULL: no such, or not set */

/* The constant that operand i is, or NULL: absent, or not a constant. */
static inline oct_tensor *oct_node_const(const oct_node *n, int32_t i)
{
    return i < n->n_in && n->in[i] ? n->in[i]->data : NULL;
}

static inline oct_value *oct_node_in(const oct_node *n, int32_t i)
{
    return i < n->n_in ? n->in[i] : NULL;
}

static inline oct_value *oct_node_out(const oct_node *n, int32_t i)
{
    return i < n->n_out ? n->out[i] : NULL;
}

/* Sets the error "node 'NAME' (OP): ..." and returns `status`. */
oct_status oct_node_fail(const oct_node *n, oct_status status, const char *fmt, ...)
    OCT_PRINTF(3, 4);
#define oct_node_fail(n, status, ...)                                                              \
    oct_status_known(oct_node_fail(n, status, __VA_ARGS__), status)

/* --- whole graph --- */

/* Checks that links agree both ways, that nodes come after what they read, that names are unique
 * and attributes of their declared kinds. Meant between passes and after reading. */
oct_status oct_graph_verify(const oct_graph *g);

/* Puts nodes into an order in which each comes after what it reads; fails on a cycle, naming it. */
oct_status oct_graph_sort(oct_graph *g);

/* Same structure, names, attributes and data? On false, `why` (may be NULL) says where. */
bool oct_graph_equal(const oct_graph *a, const oct_graph *b, char *why, size_t why_size);

/* A name that is not in use in the root graph: "BASE" or "BASE_N". In the arena. */
const char *oct_graph_fresh_name(oct_graph *g, const char *base);

/* --- building: sticky, so that a chain of emits needs one check --- */

typedef struct oct_builder {
    oct_graph *g;
    oct_node *before;   /* where new nodes go; NULL: at the end */
    const char *prefix; /* for names; NULL: the operator's */
    oct_status status;
} oct_builder;

/* Appends a node with one output and infers its type. NULL operands at the end are left out. */
oct_value *oct_emit(oct_builder *b, const oct_op *op, oct_value *x, oct_value *y, oct_value *z);
oct_node *
oct_emit_node(oct_builder *b, const oct_op *op, oct_value *const *in, int32_t n_in,
              int32_t n_out); /* types not inferred: set attributes, then oct_node_infer */
/* After the attributes of an emitted node are set: infers its types. Result 0; NULL: failed. */
oct_value *oct_emitted(oct_builder *b, oct_node *n);

/* Attributes of an emitted node, sticky as well; n may be NULL after a failure. */
void oct_emit_int(oct_builder *b, oct_node *n, const char *name, int64_t v);
void oct_emit_ints(oct_builder *b, oct_node *n, const char *name, const int64_t *v, int64_t n_v);
void oct_emit_f32(oct_builder *b, oct_node *n, const char *name, float v);
void oct_emit_str(oct_builder *b, oct_node *n, const char *name, const char *v);
void oct_emit_attrs_of(oct_builder *b, oct_node *n, const oct_node *from); /* those of like names */

oct_value *oct_scalar(oct_builder *b, float v);
oct_value *oct_scalar_of(oct_builder *b, oct_dtype dtype, double v);
oct_value *oct_ints(oct_builder *b, const int64_t *v, int64_t n);

#endif
