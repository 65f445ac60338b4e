/* SPDX-License-Identifier: Apache-2.0 */
/* A pass: graph to graph, with a promise that one table-driven test checks. */
#ifndef OCT_PASS_PASS_H
#define OCT_PASS_PASS_H

#include "graph/graph.h"

typedef enum oct_pass_exactness {
    OCT_PASS_BIT_EXACT, /* outputs keep their bits */
    OCT_PASS_CLOSE,     /* outputs keep their values up to rounding */
} oct_pass_exactness;

/* Pipelines. What makes a file larger, or loses what a file should keep, is for plans only. */
enum {
    OCT_IN_FILES = 1u << 0,         /* "simplify" */
    OCT_IN_FLOAT_PLANS = 1u << 1,   /* "execute" */
    OCT_IN_INTEGER_PLANS = 1u << 2, /* "integer" */
    OCT_IN_PLANS = OCT_IN_FLOAT_PLANS | OCT_IN_INTEGER_PLANS,
    OCT_IN_ALL = OCT_IN_FILES | OCT_IN_PLANS,
};

/* Changes one graph, not the bodies inside it: oct_pass_run() goes through those. A second run
 * right after the first changes nothing. */
typedef struct oct_pass {
    const char *name;
    const char *help;
    oct_status (*run)(oct_graph *g, int *n_changed); /* adds what it changed to *n_changed */
    oct_pass_exactness promise;
    int since;   /* makes operators of this opset: not for files of an older one */
    unsigned in; /* the pipelines it belongs to: OCT_IN_.. */
} oct_pass;

#define OCT_PASS(sym) extern const oct_pass oct_pass_##sym;
#include "pass/passes.def"
#undef OCT_PASS

/* Row i of the table, in pipeline order; NULL beyond its end. */
const oct_pass *oct_pass_at(int i);
const oct_pass *oct_pass_find(const char *name);

/* Runs one pass on a graph and all bodies inside it. */
oct_status oct_pass_run(const oct_pass *p, oct_graph *g, int *n_changed);

/* That pass, until nothing is left that no output needs: what only a removed body read goes too. */
oct_status oct_drop_dead(oct_graph *g);

/* float16 and bfloat16 inside become float32; inputs and outputs keep their type. A network with
 * bodies, or with operators that make such numbers from nothing, stays as it is. */
oct_status oct_widen_half(oct_graph *g, bool *changed);

/*
 * Named pipelines: "simplify" (all passes up to CLOSE, for files), "execute" (the same, for float
 * plans) and "integer" (for plans of quantized networks). Passes are repeated until none changes
 * anything. `only`/`skip` as in oct_simplify_options. The graph is verified after each pass in
 * debug builds.
 */
oct_status oct_pipeline_run(oct_graph *g, const char *pipeline, const char *only, const char *skip);

#endif
