/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the ONNX reader share: the reader, scopes of names, drafts of nodes. */
#ifndef OCT_ONNX_READ_H
#define OCT_ONNX_READ_H

#include "graph/graph.h"
#include "onnx/wire.h"
#include "op/op.h"

#define OCT_ONNX_MAX_DEPTH   32        /* of subgraphs and of functions inside each other */
#define OCT_ONNX_MAX_INLINED (1 << 18) /* nodes that inlining functions may make */

typedef struct oct_opsets {
    oct_opset *v;
    int32_t n;
} oct_opsets;

/* One file being read. */
typedef struct oct_reader {
    oct_ctx *ctx;
    oct_wire wire;      /* its arena holds everything that is needed only while reading */
    oct_file *file;     /* NULL: read from memory */
    const char *folder; /* where external data may lie; NULL: nowhere */
    oct_graph *root;
    oct_opsets opsets;
    int64_t ir_version;
    oct_map functions;   /* key of function.c -> oct_pb_function */
    oct_map files;       /* location -> oct_file, of external data */
    oct_map node_names;  /* -> int32_t, the last suffix given out */
    oct_map value_names; /* all of the file's values, whatever their scope */
    oct_map rows;        /* "domain:op" -> oct_op, of unknown operators */
    oct_tensor **held;   /* tensors in attributes of drafts; let go at the end */
    size_t n_held, cap_held;
    struct oct_external *externals; /* files of external data, newest first */
    struct oct_declared *declared;  /* what the file says of types, newest first */
    int depth;
    int64_t n_inlined;
    oct_value absent; /* stands for an operand that a function's caller left out */
} oct_reader;

/* A value whose type the file declares, to be compared with inference. */
typedef struct oct_declared {
    struct oct_declared *next;
    oct_value *value;
    oct_type type;
} oct_declared;

typedef struct oct_external {
    struct oct_external *next;
    oct_file *file;
} oct_external;

typedef struct oct_names oct_names;

/* An attribute of a draft. A subgraph stays bytes until its node exists. */
typedef struct oct_draft_attr {
    const char *name;
    oct_attr value;
    oct_span graph;   /* kind GRAPH: its bytes ... */
    oct_names *scope; /* ... and the scope its names are looked up in */
} oct_draft_attr;

/* A function being inlined. */
typedef struct oct_call {
    const struct oct_call *outer;
    const oct_pb_function *fn;
    const oct_draft_attr *attr; /* what references to attributes stand for */
    int32_t n_attr;
} oct_call;

/* Where names of values are looked up: a graph's, or a function body's (in the caller's graph). */
struct oct_names {
    oct_reader *r;
    oct_names *outer; /* NULL: none visible */
    oct_graph *g;
    const oct_opsets *opsets;
    const oct_call *call;   /* NULL: not in a function */
    const char *prefix;     /* of names in a function body; NULL */
    oct_map names;          /* the file's name -> oct_value */
    oct_map infos;          /* -> oct_pb_value, the file's value_info */
    const oct_map *results; /* of a function body: its output -> the caller's value; NULL */
    bool is_unsorted;       /* a node reads what a later one makes */
    bool *unsorted;         /* the flag of the graph this is in */
};

/* A node before it is made: what opset upgrades work on. */
typedef struct oct_draft {
    oct_names *s;
    const char *name, *domain, *op, *doc;
    int64_t version; /* the opset whose meaning it has */
    oct_value **in;  /* NULL: not given */
    int32_t n_in;
    oct_value **out;
    int32_t n_out;
    oct_draft_attr *attr;
    int32_t n_attr;
} oct_draft;

/* --- read.c: text --- */

/* A terminated copy in an arena; fails on a zero byte inside. `what` for the error. */
oct_status oct_read_text(oct_reader *r, oct_arena *a, oct_span text, const char *what,
                         const char **out);
static inline bool oct_span_is(oct_span s, const char *text)
{
    size_t i = 0;

    while (i < s.size && text[i] && s.p[i] == (uint8_t)text[i])
        i++;
    return i == s.size && !text[i];
}

oct_status oct_read_opsets(oct_reader *r, const oct_spans *list, oct_opsets *out);

/* --- read_graph.c --- */

void oct_scope_init(oct_names *s, oct_reader *r, oct_names *outer, oct_graph *g);
void oct_scope_fini(oct_names *s);

/* The value a name stands for, here or in the scopes around; NULL: none. */
oct_value *oct_scope_find(const oct_names *s, const char *name);

/* A new value under the file's name; fails if the scope has it already. */
oct_status oct_scope_define(oct_names *s, const char *name, oct_value **out);
oct_status oct_scope_bind(oct_names *s, const char *name, oct_value *v);

/* `outer` NULL: the model's own graph. */
oct_status oct_read_graph(oct_reader *r, oct_names *outer, oct_span bytes, oct_graph *g);
oct_status oct_read_infos(oct_names *s, const oct_spans *infos);

/* --- read_node.c --- */

oct_status oct_read_nodes(oct_names *s, const oct_spans *nodes);
oct_status oct_draft_fail(const oct_draft *d, oct_status status, const char *fmt, ...)
    OCT_PRINTF(3, 4);

/* A node's name: the file's, made unique. */
oct_status oct_read_node_name(oct_reader *r, const char *wanted, const char **out);

/* Makes the node a finished draft describes, reads its subgraphs, infers its outputs' types. */
oct_status oct_draft_finish(oct_draft *d);

/* --- read_attr.c --- */

oct_status oct_read_attrs(oct_draft *d, const oct_spans *list);

/* A copy that lives as long as the graph. */
oct_status oct_keep_attr(oct_graph *g, const oct_attr *src, oct_attr *out);

/* The value of a Constant node. */
oct_status oct_read_constant(oct_draft *d, const oct_spans *attrs, oct_tensor **out);

/* --- read_tensor.c --- `where` goes in front of an error */

oct_status oct_read_tensor(oct_reader *r, const oct_pb_tensor *pb, const char *where,
                           oct_tensor **out);
oct_status oct_read_sparse(oct_reader *r, oct_span bytes, const char *where, oct_tensor **out,
                           oct_span *name);
oct_status oct_hold_tensor(oct_reader *r, oct_tensor *t); /* takes the reference */

/* --- external.c --- */

/* The mapped file a tensor's data lie in, borrowed, and where; `size` bytes of it are there. */
oct_status oct_external_find(oct_reader *r, const oct_pb_tensor *pb, size_t size, oct_file **file,
                             size_t *offset);

/* --- read_type.c --- */

oct_status oct_read_value_type(oct_reader *r, const oct_pb_value *info, oct_value *v);

/* --- function.c --- */

oct_status oct_read_functions(oct_reader *r, const oct_spans *list);

/* The function a node calls, or NULL. */
oct_status oct_function_find(oct_reader *r, const oct_pb_node *n, const oct_pb_function **out);
oct_status oct_function_inline(oct_draft *d, const oct_pb_function *fn);

/* --- upgrade.c --- */

/* Rewrites a draft until it has the meaning of OCT_OPSET_INTERNAL. */
oct_status oct_upgrade(oct_draft *d);

/* The first opset in which the internal form of a standard operator without a row is valid. */
int oct_upgrade_since(const char *op);

#endif
