/* SPDX-License-Identifier: Apache-2.0 */
/* What the page shows, as JSON that its script reads. */
#ifndef OCT_REPORT_DATA_H
#define OCT_REPORT_DATA_H

#include "report/links.h"

/* `no_graph`: why the graph is not drawn; NULL if it is, or there is none. */
void oct_report_data(const oct_report *r, const oct_links *links, const char *no_graph,
                     oct_str *out);

#endif
