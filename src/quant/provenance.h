/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a quantized file: who made it, how, and from what. */
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
 * Applies to g, the simplified float network, what `quantized` says was done to its weights, so
 * that weights are compared with those they were made from. Equalization depends on weights alone
 * and is repeated; for corrections that depended on pictures the file has the factors. Warns where
 * it has none, or where they belong to another network.
 */
oct_status oct_origin_replay(const oct_graph *quantized, oct_graph *g);

#endif
