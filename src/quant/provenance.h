/* SPDX-License-Identifier: Apache-2.0 */
/* What a quantized file says of itself: who made it, how, and of what. */
#ifndef OCT_QUANT_PROVENANCE_H
#define OCT_QUANT_PROVENANCE_H

#include <octet/quant.h>

#include "graph/graph.h"
#include "quant/correct/correct.h"

/* Makes codes, reads them, or computes with them. */
bool oct_node_is_quantizing(const oct_node *n);

/* Writes it into the metadata of a graph that was made with these options. The same inputs give
 * the same bytes: no time, no path. */
oct_status oct_origin_write(oct_graph *g, const oct_quantize_options *o, const oct_corrections *c);

/*
 * What `quantized` says was done to the weights of the float network, done to g, its simplified
 * form: so that weights are compared with those they were made from. Equalizing depends on weights
 * alone and is done again; of what depended on pictures the file has the factors. There is a
 * warning where it has not, or they are of another network.
 */
oct_status oct_origin_replay(const oct_graph *quantized, oct_graph *g);

#endif
