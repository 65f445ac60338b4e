/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator row is: everything octet knows of one operator. op/ defines the rows. */
#ifndef OCT_GRAPH_OP_H
#define OCT_GRAPH_OP_H

#include "graph/graph.h"

#define OCT_MAX_IN 8 /* operands that rows describe one by one; variadic operators have more */

/* How one operand is quantized. */
typedef enum oct_qrole {
    OCT_QROLE_NONE,     /* stays float */
    OCT_QROLE_ACT,      /* activation: own scale, from an observer */
    OCT_QROLE_WEIGHT,   /* constant: per-channel along weight_axis */
    OCT_QROLE_BIAS,     /* int32, scale = act * weight; never observed */
    OCT_QROLE_AS_INPUT, /* shares input 0's scale: Reshape, MaxPool */
} oct_qrole;

/* What filter pruning may do across a node. */
typedef enum oct_flow {
    OCT_FLOW_STOP,   /* channels must not change: Reshape, Softmax */
    OCT_FLOW_PASS,   /* same channels out as in: Relu, pooling */
    OCT_FLOW_TIE,    /* inputs must lose the same channels: Add */
    OCT_FLOW_CONCAT, /* output channels are the inputs' in order */
    OCT_FLOW_SOURCE, /* makes new channels: Conv, Gemm */
} oct_flow;

enum {
    OCT_OP_IS_COPY = 1u << 0,     /* output = input 0: Identity, inference Dropout */
    OCT_OP_ELEMENTWISE = 1u << 1, /* output i depends on inputs at i (after broadcasting) */
    OCT_OP_RANDOM = 1u << 3,      /* never folded, never merged */
    OCT_OP_DATA_SHAPE = 1u << 4,  /* output shape needs the data: kernel allocates (NonZero) */
    OCT_OP_COMMUTES = 1u << 5,    /* operands may be swapped */
    OCT_OP_VIEW = 1u << 6,        /* output is input 0's bytes under another shape: Reshape */
    OCT_OP_HAS_BODY = 1u << 7,    /* has subgraph attributes: If, Loop, Scan */
    OCT_OP_TYPE_ONLY = 1u << 8,   /* reads its operand's type, not its data: Shape, Size */
    OCT_OP_PICKS = 1u << 9,       /* reads no more elements than it makes: Gather, Slice */
    OCT_OP_CHOOSES = 1u << 10,    /* runs one of its subgraphs: If */
};

/* What may follow an operator inside one step of a runtime: its epilogue. */
enum {
    OCT_FUSES_BIAS = 1u << 0,     /* an Add of a constant for each channel */
    OCT_FUSES_ACT = 1u << 1,      /* an activation */
    OCT_FUSES_RESIDUAL = 1u << 2, /* an Add of another value */
    OCT_FUSES_ELSEWHERE = 1u << 3 /* other runtimes do that, octet has no kernel for it */
};

/* How an operator moves data: its result holds only elements of its data operands. */
typedef struct oct_data_move {
    bool (*is_move)(const oct_node *n); /* attributes under which that is so; NULL: always */
    /* Labels of output k from those of the data operands; *out NULL: cannot be told. */
    oct_status (*labels)(const oct_node *n, const oct_tensor *const *in, int32_t k,
                         oct_tensor **out);
    bool is_variadic; /* all operands are data, else the first one only */
} oct_data_move;

/* Which dimension of a weight is the output channel, which the input channel. */
typedef struct oct_weight_axes {
    int out, in;         /* axes; in -1: none (depthwise) */
    int64_t n_out, n_in; /* n_out: of the whole layer; n_in: of one group */
    int64_t groups;
} oct_weight_axes;

typedef struct oct_attr_def {
    const char *name;
    oct_attr_kind kind;
    /* The default. An array or string default: pointer and n. Leave all 0 and set `no_default`
     * for an attribute that is simply absent when not given. */
    union {
        float f;
        int64_t i;
        const char *s;
        const int64_t *is;
    } def;
    int64_t n_def;
    bool no_default;
    bool required;
} oct_attr_def;

/* Arguments of a shape function. Types may have unknown rank or dims; data[i] is operand i if it
 * is constant, or NULL. out[i] comes in as unknown (dtype NONE, rank -1), one for each n->n_out. */
typedef struct oct_infer {
    oct_ctx *ctx;
    const oct_node *node;
    const oct_type *const *in; /* NULL: absent */
    const oct_tensor *const *data;
    oct_type *out;
} oct_infer;

/* Arguments of a reference kernel. Outputs are allocated and of the inferred type, except with
 * OCT_OP_DATA_SHAPE, where the kernel calls oct_args_alloc(). Absent operands are NULL. */
typedef struct oct_args {
    oct_ctx *ctx;
    const oct_node *node;
    oct_tensor *const *in;
    oct_tensor **out;
    oct_arena *scratch; /* emptied after each node */
    int n_threads;
    const struct oct_env *env; /* for operators with bodies: where captured values are found */
} oct_args;

/* Arguments of a gradient rule. It emits nodes that compute dx[i] from dy[]; all shapes are known.
 */
typedef struct oct_grad_args {
    oct_builder *b;
    const oct_node *node;
    oct_value *const *dy; /* gradient of each result; NULL: it is zero */
    const bool *wanted;   /* for each operand: is its gradient asked for? */
    oct_value **dx;       /* gradient of each operand, NULL at first; left NULL: it is zero */
} oct_grad_args;

/* All octet knows of one operator. There is no enum of operators, so no switch over them. */
struct oct_op {
    const char *name;     /* ONNX op_type */
    const char *domain;   /* "" (the standard) unless said otherwise; NULL means "" */
    int since;            /* first opset in which octet's form of it (internal opset) is valid */
    int min_in, max_in;   /* max_in -1: any number */
    int min_out, max_out; /* 0, 0 means 1, 1; max_out -1: any number */
    const oct_attr_def *attrs; /* names, kinds, defaults; ends with {0} */
    oct_status (*shape)(const oct_infer *q);
    oct_status (*ref)(const oct_args *a);       /* the reference kernel: fast kernels are tested
                                                 * against it */
    oct_status (*grad)(const oct_grad_args *a); /* NULL: it has no gradient (oct_grad() says so) */
    int64_t (*macs)(const oct_node *n);         /* multiply-adds; NULL: 0 */
    int64_t (*work)(const oct_node *n);         /* on a fast kernel, in operations; NULL: by macs */
    struct {
        oct_qrole in[OCT_MAX_IN];
        int weight_axis;
    } quant;
    oct_flow flow;
    const oct_data_move *moves;    /* it only moves data, and how; NULL: it computes */
    const struct oct_act_row *act; /* it is an activation that other kernels can apply (op/act.h) */
    struct {
        /* Axes of the constant operand 1; false: not with this rank. NULL: no such operand. */
        bool (*axes)(const oct_node *n, const oct_type *w, oct_weight_axes *out);
        /* Weights in integers may carry a factor for each input channel: Mul(DQ(w), factor). */
        bool takes_factor;
    } weights;
    unsigned fuses; /* OCT_FUSES_.. */
    unsigned flags;
};

static inline const char *oct_op_domain(const oct_op *op)
{
    return op->domain ? op->domain : "";
}

/* A kept but unknown operator: no shape, no kernel. One row is made for each name in a graph. */
static inline bool oct_op_is_opaque(const oct_op *op)
{
    return !op->shape && !op->ref;
}

int oct_op_n_attrs(const oct_op *op);
const oct_op *oct_op_opaque(oct_graph *g, const char *domain, const char *name); /* in the arena */

/* Is the node this standard operator? For passes and tests: oct_node_is(n, &oct_op_conv). */
static inline bool oct_node_is(const oct_node *n, const oct_op *op)
{
    return n && n->op == op;
}

/* Allocates output i with this shape (OCT_OP_DATA_SHAPE operators). */
oct_status oct_args_alloc(const oct_args *a, int i, const oct_type *type);

/* Counts work that grows faster than operands and results; fails if it is too much. Evaluation
 * itself counts elements read and made. */
oct_status oct_args_spend(const oct_args *a, int64_t n_operations);

/* Fails if the node, with sizes as they are known, is too much even for fast kernels. */
oct_status oct_node_check_work(const oct_node *n);

/* Scratch memory for this call, zeroed; NULL with the error set. */
static inline void *oct_args_scratch(const oct_args *a, size_t n, size_t size)
{
    return oct_arena_array(a->scratch, n, size);
}

/* --- inference (graph/infer.c) --- */

/* Infers the outputs of one node from its operands' types, and merges with what is known. */
oct_status oct_node_infer(oct_node *n);

/* All nodes in order, subgraphs included. Also folds what shapes need (Shape, small integer
 * arithmetic on shapes) into its own side table, so Reshape(x, Concat(Shape(x)...)) is known. */
oct_status oct_graph_infer(oct_graph *g);

/* --- evaluation with plain kernels (graph/eval.c) --- */

/* What a node, with all bodies inside it, may still do. */
typedef struct oct_meter {
    const oct_node *node; /* NULL: whichever is evaluated first */
    int64_t left, limit;  /* operations */
} oct_meter;

/* Captured values while evaluating subgraphs: value -> tensor. */
typedef struct oct_env oct_env;
struct oct_env {
    const oct_env *outer;
    oct_tensor **by_id; /* indexed by value id of the root graph; NULL: not known here. Or NULL */
    oct_meter *meter;   /* NULL: every node may do what the context allows */
    oct_ctx *ctx;       /* memory comes from it and reasons of failures go to it; NULL: the
                           graph's. Runs of several threads share a graph, and have their own */
};

/* A node as a kernel sees it: the graph's, whose failures are told to another context. */
typedef struct oct_node_for {
    oct_node node; /* give this one to the kernel */
    oct_graph graph;
} oct_node_for;

void oct_node_for_ctx(const oct_node *n, oct_ctx *ctx, oct_node_for *out);

/* The tensor of a value: constant, or found in env or the ones around it; NULL. */
oct_tensor *oct_env_get(const oct_env *env, const oct_value *v);

/* Runs one node: in[] are given, out[i] are made (one reference each; NULL for unused ones). */
oct_status oct_node_eval(const oct_node *n, oct_tensor *const *in, oct_tensor **out,
                         const oct_env *env);

/* Runs a whole graph on reference kernels. ins in the order of g->inputs; outs likewise, one
 * reference each. */
oct_status oct_graph_eval(const oct_graph *g, oct_tensor *const *ins, oct_tensor **outs,
                          const oct_env *outer);

#endif
