/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of oct_graph_half(): which nodes compute in float16, and the rewriting. */
#ifndef OCT_QUANT_HALF_H
#define OCT_QUANT_HALF_H

#include <octet/quant.h>

#include "graph/op.h"

#define OCT_HALF_MOST 65504.0f /* the largest float16 */

/* What is decided, by node id. */
typedef struct oct_half_plan {
    bool *narrow;         /* the node computes in float16 */
    int32_t n_nodes;      /* ids that were there when it was decided */
    const float *largest; /* by value id: the largest magnitude that was measured; NULL: not */
} oct_half_plan;

/* Is the operand of a narrow node one that float16 replaces? Sizes and scales of Resize are not. */
bool oct_half_takes(const oct_node *n, int32_t i);

/* Decides for the nodes of the graph itself; bodies stay as they are. Tells what overflows. */
oct_status oct_half_decide(const oct_graph *g, const oct_half_options *o, oct_half_plan *p);

/* Changes types, constants and puts Casts where both kinds meet. */
oct_status oct_half_rewrite(oct_graph *g, const oct_half_plan *p);

/* Weights as bfloat16, with a Cast to float32 behind each (io.c, as the next one). */
oct_status oct_half_store_bf16(oct_graph *g);

/* float32 inputs and outputs become `to`, under their names. */
oct_status oct_half_io(oct_graph *g, oct_dtype to);

#endif
