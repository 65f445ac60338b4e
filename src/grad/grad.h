/* SPDX-License-Identifier: Apache-2.0 */
/* Differentiation: from graph to graph (docs/adr/0003-gradients-as-graph.md). */
#ifndef OCT_GRAD_GRAD_H
#define OCT_GRAD_GRAD_H

#include "graph/op.h"

/*
 * Appends nodes to g that compute the gradient of `loss` (one element, f32 or f64) with respect to
 * each of wrt[0..n), which lie upstream of it or are parameters; dwrt[i] is the value, of the shape
 * of wrt[i]: zeros where the loss does not depend on it. Shapes must be known. If a node on the way
 * has no gradient, the error names it, and the graph is as it was.
 */
oct_status oct_grad(oct_graph *g, oct_value *loss, oct_value *const *wrt, int32_t n,
                    oct_value **dwrt);

#endif
