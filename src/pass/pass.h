/* SPDX-License-Identifier: Apache-2.0 */
/* A pass: graph to graph, with a promise that one table-driven test holds it to. */
#ifndef OCT_PASS_PASS_H
#define OCT_PASS_PASS_H

#include "graph/graph.h"

typedef enum oct_promise {
    OCT_PASS_BIT_EXACT, /* outputs keep their bits */
    OCT_PASS_CLOSE,     /* outputs keep their values up to rounding */
    OCT_PASS_LOSSY,     /* outputs may change: only on request */
} oct_promise;

typedef struct oct_pass {
    const char *name;
    const char *help;
    oct_status (*run)(oct_graph *g, int *n_changed); /* adds what it changed to *n_changed */
    oct_promise promise;
} oct_pass;

#define OCT_PASS(sym) extern const oct_pass oct_pass_##sym;
#include "pass/passes.def"
#undef OCT_PASS

/* Row i of the table, in pipeline order; NULL beyond its end. */
const oct_pass *oct_pass_at(int i);
const oct_pass *oct_pass_find(const char *name);

/*
 * Named pipelines: "simplify" (all passes up to CLOSE, for files) and "execute" (the same, for
 * plans). Passes are repeated until none changes anything. `only`/`skip` as in
 * oct_simplify_options. The graph is verified after each pass in debug builds.
 */
oct_status oct_pipeline_run(oct_graph *g, const char *pipeline, const char *only, const char *skip);

#endif
