/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of a quantized graph compute on integers, told from the graph alone. */
#ifndef OCT_ANALYZE_DOMAINS_H
#define OCT_ANALYZE_DOMAINS_H

#include "graph/graph.h"

typedef enum oct_domain {
    OCT_DOMAIN_FLOAT = 0,
    OCT_DOMAIN_INTEGER,
    OCT_DOMAIN_CONVERSION, /* QuantizeLinear, DequantizeLinear on the way of a picture */
    OCT_DOMAIN_CONSTANT,   /* works on constants only: the DequantizeLinear of a weight */
} oct_domain;

/* One for each node id of the root. NULL: no memory. Freed with oct_free(g->ctx, ..). */
oct_domain *oct_graph_domains(const oct_graph *g);

/*
 * The value that is behind conversions: v itself, or what the QuantizeLinear in front of it reads.
 * *through tells whether there were any.
 */
const oct_value *oct_value_before_conversions(const oct_value *v, const oct_domain *parts,
                                              bool *through);

#endif
