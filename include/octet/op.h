/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Operators of your own: registered with a context before networks are read, from your program or
 * from a plugin.
 *
 * A plugin is a shared library:
 *
 *     #include <octet/octet.h>
 *     OCT_PLUGIN_ABI_DEFINE
 *     oct_status octet_plugin_init(oct_ctx *ctx)
 *     {
 *         return oct_register_op(ctx, &my_op);
 *     }
 */
#ifndef OCTET_OP_H
#define OCTET_OP_H

#include <octet/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Type of an operand or result. */
typedef struct oct_op_type {
    oct_dtype dtype;           /**< OCT_DTYPE_NONE: not known */
    int32_t rank;              /**< -1: not known */
    int64_t dim[OCT_MAX_RANK]; /**< -1: not known */
} oct_op_type;

/** What a shape function and a kernel are called with; borrowed during the call. */
typedef struct oct_op_call {
    size_t struct_size;
    const oct_node *node; /**< for oct_node_attr_int() and its like; do not walk the graph */
    int32_t n_in, n_out;
    const oct_op_type *in_type; /**< of each operand; one that is not given is not known */
    oct_op_type *out_type; /**< shape function: to be set. Kernel: as the shape function set them */
    const oct_tensor *const
        *in;                /**< kernel: NULL if not given. Shape function: NULL unless constant */
    oct_tensor *const *out; /**< kernel: allocated; NULL if not wanted. Shape function: NULL */
    const char *error; /**< to be set before a failure is returned: why; must live until then */
} oct_op_call;

/**
 * Both functions may be called from several threads at once, and must give the same for the same
 * operands: what depends on constants only is computed once. The shape function must know all sizes
 * where it knows those of the operands.
 */
typedef struct oct_op_def {
    size_t struct_size; /**< sizeof(oct_op_def), set by the caller */
    const char *domain; /**< as in the file, "" is ONNX's; NULL: any */
    const char *name;
    int32_t min_in, max_in;   /**< max_in -1: any number */
    int32_t min_out, max_out; /**< max_out -1: any number */
    oct_status (*shape)(void *user, oct_op_call *call);
    oct_status (*run)(void *user, oct_op_call *call);
    void *user; /**< must live as long as the context */
} oct_op_def;

/**
 * Networks that are read in this context from now on have this operator. Strings are copied. Fails
 * with OCT_ERR_ARG if octet has it already, or if it was registered before.
 */
OCT_API oct_status oct_register_op(oct_ctx *ctx, const oct_op_def *def);

/**
 * Registers an operator, of any domain, that gives zeros: "OP=float32:1x100x4,int32:1x1" names the
 * type of each result. Enough to calibrate or time what lies before it.
 */
OCT_API oct_status oct_register_stub(oct_ctx *ctx, const char *text);

/** \name Attributes of a node, or the fallback where it has none of this name and kind */
/**@{*/
OCT_API int64_t oct_node_attr_int(const oct_node *n, const char *name, int64_t fallback);
OCT_API float oct_node_attr_f32(const oct_node *n, const char *name, float fallback);
OCT_API const char *oct_node_attr_str(const oct_node *n, const char *name, const char *fallback);
/**@}*/

/** Changes whenever plugins have to be compiled anew. */
#define OCT_PLUGIN_ABI 1

/** Once in a plugin: tells which headers it was compiled with. */
#define OCT_PLUGIN_ABI_DEFINE                                                                      \
    OCT_API int32_t octet_plugin_abi(void);                                                        \
    OCT_API int32_t octet_plugin_abi(void)                                                         \
    {                                                                                              \
        return OCT_PLUGIN_ABI;                                                                     \
    }                                                                                              \
    OCT_API oct_status octet_plugin_init(oct_ctx *ctx);

/**
 * Loads a plugin and calls its octet_plugin_init(ctx), which registers operators. It stays loaded
 * as long as the context. A file without octet_plugin_abi(), or with another version, is refused.
 * A plugin is code: load none that you would not run.
 */
OCT_API oct_status oct_plugin_load(oct_ctx *ctx, const char *path);

/**
 * Drops operators that octet cannot run, and what depends on them, if no layer with weights is
 * among that: the values before them become outputs. *n_dropped: nodes, 0 if there was nothing to
 * drop, or too much. The rest can be run and scored.
 */
OCT_API oct_status oct_graph_drop_unknown(oct_graph *g, int32_t *n_dropped);

#ifdef __cplusplus
}
#endif

#endif
