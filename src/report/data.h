/* SPDX-License-Identifier: Apache-2.0 */
/* What the page shows, as JSON that its script reads. */
#ifndef OCT_REPORT_DATA_H
#define OCT_REPORT_DATA_H

#include "report/links.h"

void oct_report_data(const oct_report *r, const oct_links *links, oct_str *out);

/* The parts: each puts its keys into the open object. */
void oct_report_put_accuracy(oct_str *out, const oct_report *r);
void oct_report_put_epochs(oct_str *out, const oct_report *r);
void oct_report_put_pruned(oct_str *out, const oct_report *r);
void oct_report_put_trials(oct_str *out, const oct_report *r);
void oct_report_put_times(oct_str *out, const oct_report *r);
void oct_report_put_pictures(oct_str *out, const oct_report *r);
void oct_report_put_graph(oct_str *out, const oct_report *r, const oct_links *links);

#endif
