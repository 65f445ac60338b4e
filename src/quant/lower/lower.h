/* SPDX-License-Identifier: Apache-2.0 */
/*
 * (graph, qmap) to one graph with QuantizeLinear and DequantizeLinear: what is simulated, run in
 * integers, and written to a file. And back.
 */
#ifndef OCT_QUANT_LOWER_LOWER_H
#define OCT_QUANT_LOWER_LOWER_H

#include "quant/qmap.h"

typedef struct oct_lower_options {
    bool int8_io; /* inputs and outputs of the network are integers, without Q and DQ there */
} oct_lower_options;

/* A new graph; names of the float graph's nodes and values are kept. */
oct_status oct_lower(const oct_qmap *m, const oct_lower_options *o, oct_graph **out);

/* Does this point need a Q and DQ pair of its own? A value that was only moved has codes already.
 */
bool oct_point_needs_pair(const oct_qmap *m, int32_t point);

/* A QDQ or QOperator graph becomes a float graph and its qmap (which borrows the float graph). What
 * cannot be expressed stays as it is in the graph. */
oct_status oct_raise(const oct_graph *qdq, oct_graph **g, oct_qmap **m);

#endif
