/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as DOT, the language of Graphviz. */
#ifndef OCT_ANALYZE_DOT_H
#define OCT_ANALYZE_DOT_H

#include "analyze/domains.h"
#include "base/str.h"
#include "graph/graph.h"

/*
 * Nodes with operator, name and main attributes, coloured by kind; shapes on the edges; weights are
 * not drawn. Names may hold anything: what DOT or a reader of the picture could misread is
 * replaced.
 */
oct_status oct_graph_dot(const oct_graph *g, oct_str *out);

#endif
