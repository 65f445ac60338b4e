/* SPDX-License-Identifier: Apache-2.0 */
/* Steps as they happened, in the trace event format of Chrome, Perfetto and TensorBoard. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include "cli/cli.h"

typedef struct cli_event {
    int32_t step; /* of the plan; -1: a whole run; -2: loading its pictures */
    int32_t run;
    int64_t start_ns, end_ns;
} cli_event;

typedef struct cli_trace {
    cli_event *events;
    size_t n, cap;
} cli_trace;

void cli_trace_add(cli_trace *t, int32_t step, int32_t run, int64_t start_ns, int64_t end_ns);
void cli_trace_fini(cli_trace *t);
oct_status cli_trace_save(cli *c, const cli_trace *t, const oct_plan *plan, const char *model,
                          const char *path);

#endif
