/* SPDX-License-Identifier: Apache-2.0 */
/* How rows of an analysis belong to nodes of the graph, and to the points they read and make. */
#ifndef OCT_REPORT_LINKS_H
#define OCT_REPORT_LINKS_H

#include <octet/report.h>

#include "analyze/domains.h"
#include "base/map.h"
#include "base/str.h"

typedef struct oct_links {
    oct_ctx *ctx, *owner; /* the report's, the graph's: of parts */
    oct_domain *parts;    /* NULL: no graph */
    oct_map nodes;        /* by name */
    oct_map points;       /* by value: index + 1 as a pointer */
} oct_links;

/* Parts follow the analysis where it has a row. Must be finished, failed or not. */
oct_status oct_links_init(oct_links *l, oct_ctx *ctx, const oct_report *r);
void oct_links_fini(oct_links *l);

/* Puts "node", "reads" and "makes" of a layer into the open object. */
void oct_links_put(const oct_links *l, const char *layer, oct_str *out);

#endif
