/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Networks: look at, simplify. <octet/onnx.h> reads and writes them.
 *
 * Nodes and values are borrowed from the graph and live as long as it, unless a call that changes
 * the graph removes them.
 */
#ifndef OCTET_GRAPH_H
#define OCTET_GRAPH_H

#include <octet/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A graph is of one thread, that of its context. As long as nobody changes it, others may look at
 * it too. The functions that look at it return pointers borrowed from the graph.
 */
typedef struct oct_graph oct_graph;
typedef struct oct_node oct_node;
typedef struct oct_value oct_value;

/** Frees a graph, whoever made it. Plans made of it stay valid. Accepts NULL. */
OCT_API void oct_graph_free(oct_graph *g);

/** \name Looking at a graph */
/**@{*/
OCT_API const char *oct_graph_name(const oct_graph *g);
OCT_API int64_t oct_graph_opset(const oct_graph *g); /**< of the standard domain, in the file */
OCT_API int64_t oct_graph_ir_version(const oct_graph *g);   /**< as in the file */
OCT_API const char *oct_graph_producer(const oct_graph *g); /**< "pytorch 2.1", "" if unknown */

/**
 * What the file says about itself under this key (ONNX's metadata_props); NULL: nothing. Borrowed
 * until that key is set.
 */
OCT_API const char *oct_graph_metadata(const oct_graph *g, const char *key);
OCT_API const char *oct_graph_metadata_key(const oct_graph *g, int32_t i); /**< NULL at the end */

/** Sets what is written under a key, copied, and replaces what was there; `value` NULL removes it.
 */
OCT_API oct_status oct_graph_set_metadata(oct_graph *g, const char *key, const char *value);

OCT_API int32_t oct_graph_n_inputs(const oct_graph *g);
OCT_API int32_t oct_graph_n_outputs(const oct_graph *g);
OCT_API const oct_value *oct_graph_input(const oct_graph *g, int32_t i);
OCT_API const oct_value *oct_graph_output(const oct_graph *g, int32_t i);
OCT_API int32_t oct_graph_n_nodes(const oct_graph *g);
OCT_API const oct_node *oct_graph_first_node(const oct_graph *g); /**< NULL if there is none */
OCT_API const oct_node *oct_node_next(const oct_node *n);         /**< NULL at the end */

OCT_API const char *oct_node_name(const oct_node *n);
OCT_API const char *oct_node_op(const oct_node *n);     /**< "Conv" */
OCT_API const char *oct_node_domain(const oct_node *n); /**< "" for the standard operators */
OCT_API int32_t oct_node_n_in(const oct_node *n);
OCT_API int32_t oct_node_n_out(const oct_node *n);
OCT_API const oct_value *oct_node_input(const oct_node *n, int32_t i);  /**< NULL if not given */
OCT_API const oct_value *oct_node_output(const oct_node *n, int32_t i); /**< NULL if not wanted */
OCT_API int64_t oct_node_params(const oct_node *n); /**< elements in constant floats it reads */
OCT_API int64_t oct_node_macs(const oct_node *n);   /**< multiply-adds; 0 if none or not known */

OCT_API const char *oct_value_name(const oct_value *v);
OCT_API oct_dtype oct_value_dtype(const oct_value *v);
OCT_API int32_t oct_value_rank(const oct_value *v);                       /**< -1: not known */
OCT_API int64_t oct_value_dim(const oct_value *v, int32_t axis);          /**< -1: not known */
OCT_API const char *oct_value_dim_name(const oct_value *v, int32_t axis); /**< NULL: no name */
OCT_API const oct_tensor *oct_value_data(const oct_value *v);   /**< NULL: not a constant */
OCT_API const oct_node *oct_value_producer(const oct_value *v); /**< NULL: input or constant */
OCT_API const char *oct_value_text(const oct_value *v, char *text,
                                   size_t size); /**< type as text */
OCT_API int32_t oct_value_n_users(const oct_value *v);
OCT_API const oct_node *oct_value_user(const oct_value *v, int32_t i);
/**@}*/

/** Fixes the shape of an input and infers all shapes again. Nodes and values stay valid. */
OCT_API oct_status oct_graph_set_input_shape(oct_graph *g, const char *input, int32_t rank,
                                             const int64_t *dims);

/**
 * Keeps only the outputs that are named ("boxes,scores"), in the network's own order, and drops
 * nodes and weights that only the others need. An unknown name is an error that names the nearest.
 */
OCT_API oct_status oct_graph_keep_outputs(oct_graph *g, const char *names);

/**
 * Cuts the network down to what lies between some values and others ("a,b"; NULL: the network's own
 * inputs or outputs). A value that becomes an input keeps its name and gets the type that is
 * inferred; outputs come in the order of the list. Fails if a name is unknown (the nearest is
 * told), or if the outputs need an input that is not named; the graph is then to be freed.
 */
OCT_API oct_status oct_graph_extract(oct_graph *g, const char *inputs, const char *outputs);

/** Draws the graph into a file: .svg, .png, .pdf or .dot by its extension. */
OCT_API oct_status oct_graph_draw(const oct_graph *g, const char *path);

/** \name Simplification */
/**@{*/
typedef struct oct_simplify_options {
    size_t struct_size; /**< set by oct_simplify_options_init() */
    const char *only;   /**< comma-separated passes; NULL: all (default) */
    const char *skip;   /**< comma-separated passes not to run; NULL: none (default) */
} oct_simplify_options;

OCT_API void oct_simplify_options_init_sized(oct_simplify_options *o, size_t struct_size);

static inline void oct_simplify_options_init(oct_simplify_options *o)
{
    oct_simplify_options_init_sized(o, sizeof(*o));
}

/**
 * Runs the normalisation passes until nothing changes. `options` may be NULL. Nodes and values that
 * were borrowed before are not to be used afterwards.
 */
OCT_API oct_status oct_graph_simplify(oct_graph *g, const oct_simplify_options *options);

/** Looks at the table of passes: NULL beyond its end. Borrowed for ever; any thread. */
OCT_API const char *oct_pass_name(int32_t i);
OCT_API const char *oct_pass_help(const char *name);
OCT_API const char *oct_pass_promise(const char *name); /**< "bit-exact", "close" or "lossy" */
/**@}*/

#ifdef __cplusplus
}
#endif

#endif
