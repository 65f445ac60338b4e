/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of graphs in memory. */
#ifndef OCT_ANALYZE_DRAW_H
#define OCT_ANALYZE_DRAW_H

#include "analyze/parts.h"
#include "base/str.h"

/*
 * Appends an <svg> element that shows the parts of a quantized graph, without the conversions
 * themselves. Node n is the group with the id "nID" and the class "integer" or "float"; an edge has
 * the class "codes", "convert" or "float". OCT_ERR_UNSUPPORTED, with the reason, if there are too
 * many nodes or the layout takes more than `limit_ms`; then nothing was appended.
 */
oct_status oct_graph_svg(const oct_graph *g, const oct_part *parts, int limit_ms, oct_str *out);

#endif
