/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of a quantized graph compute in integers, derived from the graph alone. */
#ifndef OCT_ANALYZE_DOMAINS_H
#define OCT_ANALYZE_DOMAINS_H

#include "graph/graph.h"

typedef enum oct_domain {
    OCT_DOMAIN_FLOAT = 0,
    OCT_DOMAIN_INTEGER,
    OCT_DOMAIN_CONVERSION, /* QuantizeLinear, DequantizeLinear of activations */
    OCT_DOMAIN_CONSTANT,   /* works on constants only: the DequantizeLinear of a weight */
} oct_domain;

/* One for each node id of the root. NULL: no memory. Freed with oct_free(g->ctx, ..). */
oct_domain *oct_graph_domains(const oct_graph *g);

/*
 * The value before conversions: v itself, or the operand of the QuantizeLinear that leads to it.
 * *through says whether there were any.
 */
const oct_value *oct_value_before_conversions(const oct_value *v, const oct_domain *parts,
                                              bool *through);

#endif
