/* SPDX-License-Identifier: Apache-2.0 */
/* The table of passes, and pipelines: which of them run, repeated until nothing changes. */
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "graph/op.h"
#include "pass/pass.h"

/* To add a pass: pass/<name>.c, one line in pass/passes.def, one in pass/meson.build. */
static const oct_pass *const table[] = {
#define OCT_PASS(sym) &oct_pass_##sym,
#include "pass/passes.def"
#undef OCT_PASS
};

#define N_PASSES ((int)OCT_COUNT(table))

/* Real networks converge after two to four rounds; one that does not is built to be expensive. */
#define MAX_ROUNDS 10

#define MAX_NESTING 64 /* of bodies; the reader refuses more */

typedef struct selection {
    bool runs[OCT_COUNT(table)];
} selection;

const oct_pass *oct_pass_at(int i)
{
    return i >= 0 && i < N_PASSES ? table[i] : NULL;
}

static int index_of(const char *name, size_t len)
{
    for (int i = 0; i < N_PASSES; i++)
        if (strlen(table[i]->name) == len && strncmp(table[i]->name, name, len) == 0) return i;
    return -1;
}

const oct_pass *oct_pass_find(const char *name)
{
    return oct_pass_at(index_of(name, strlen(name)));
}

/* --- running one --- */

static oct_status run_nested(const oct_pass *p, oct_graph *g, int *n_changed, int depth);

static oct_status run_body(const oct_pass *p, const oct_attr *a, int *n_changed, int depth)
{
    return a->kind == OCT_ATTR_GRAPH && a->g ? run_nested(p, a->g, n_changed, depth + 1) : OCT_OK;
}

/* Bodies first: the graph around them may then lose what they no longer use. */
static oct_status run_nested(const oct_pass *p, oct_graph *g, int *n_changed, int depth)
{
    if (depth > MAX_NESTING)
        return oct_fail(g->ctx, OCT_ERR_FORMAT, "subgraphs are nested too deeply");
    for (oct_node *n = g->first; n; n = n->next) {
        for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++)
            OCT_TRY(run_body(p, &n->attr[i], n_changed, depth));
        for (int32_t i = 0; i < n->n_extra; i++)
            OCT_TRY(run_body(p, &n->extra[i].value, n_changed, depth));
    }
    return p->run(g, n_changed);
}

oct_status oct_pass_run(const oct_pass *p, oct_graph *g, int *n_changed)
{
    OCT_TRY(run_nested(p, g, n_changed, 0));
#ifndef NDEBUG
    OCT_TRY(oct_graph_verify(g->root));
#endif
    return OCT_OK;
}

/* --- choosing --- */

/* Names that could be meant, or all of them if none is near. */
static oct_status no_such_pass(oct_ctx *ctx, const char *name)
{
    oct_str near;
    oct_status st;
    int n = 0;

    oct_str_init(&near, ctx);
    for (int bound = 1; bound <= 4 && n == 0; bound++)
        for (int i = 0; i < N_PASSES; i++)
            if (oct_edit_distance(name, table[i]->name, bound) <= bound)
                oct_str_printf(&near, "%s%s", n++ ? ", " : "", table[i]->name);
    for (int i = 0; i < N_PASSES && n == 0; i++)
        oct_str_printf(&near, "%s%s", i ? ", " : "", table[i]->name);
    st = oct_fail(ctx, OCT_ERR_ARG,
                  n ? "there is no pass '%s'; did you mean: %s"
                    : "there is no pass '%s'; there are: %s",
                  name, near.s ? near.s : "");
    oct_str_fini(&near);
    return st;
}

/* Marks the passes of a comma-separated list. */
static oct_status mark(oct_ctx *ctx, const char *list, selection *s)
{
    for (const char *at = list; *at;) {
        const size_t len = strcspn(at, ",");
        const int i = index_of(at, len);
        char name[64];

        if (len > 0 && i < 0) {
            memcpy(name, at, OCT_MIN(len, sizeof(name) - 1));
            name[OCT_MIN(len, sizeof(name) - 1)] = '\0';
            return no_such_pass(ctx, name);
        }
        if (len > 0) s->runs[i] = true;
        at += len;
        at += *at == ',';
    }
    return OCT_OK;
}

/* The opset of the file the graph came from; a graph made in code has none to keep to. */
static int64_t file_opset(const oct_graph *g)
{
    const oct_model_info *info = &g->root->info;

    for (int32_t i = 0; i < info->n_opsets; i++)
        if (!*info->opsets[i].domain || strcmp(info->opsets[i].domain, "ai.onnx") == 0)
            return info->opsets[i].version;
    return INT64_MAX;
}

static const struct pipeline {
    const char *name;
    unsigned bit; /* OCT_IN_.. */
} pipelines[] = {
    {"simplify", OCT_IN_FILES},
    {"execute", OCT_IN_FLOAT_PLANS},
    {"integer", OCT_IN_INTEGER_PLANS},
};

/* A file keeps its opset: passes that make operators of a later one do not run on it. */
static bool fits_opset(const oct_graph *g, const oct_pass *p, unsigned pipeline)
{
    return pipeline != OCT_IN_FILES || p->since <= file_opset(g);
}

static oct_status choose(oct_graph *g, const char *pipeline, const char *only, const char *skip,
                         selection *s)
{
    unsigned bit = 0;
    selection wanted = {{false}}, unwanted = {{false}};

    for (size_t i = 0; i < OCT_COUNT(pipelines); i++)
        if (strcmp(pipeline, pipelines[i].name) == 0) bit = pipelines[i].bit;
    if (!bit)
        return oct_fail(g->ctx, OCT_ERR_ARG,
                        "there is no pipeline '%s'; there are: simplify, execute, integer",
                        pipeline);
    if (only) OCT_TRY(mark(g->ctx, only, &wanted));
    if (skip) OCT_TRY(mark(g->ctx, skip, &unwanted));
    for (int i = 0; i < N_PASSES; i++)
        s->runs[i] = !unwanted.runs[i] && (only ? wanted.runs[i] : (table[i]->in & bit) != 0) &&
                     fits_opset(g, table[i], bit);
    return OCT_OK;
}

oct_status oct_pipeline_run(oct_graph *g, const char *pipeline, const char *only, const char *skip)
{
    selection s;
    int idle = 0; /* passes in a row that changed nothing */

    OCT_TRY(choose(g, pipeline, only, skip, &s));
    for (int k = 0; k < MAX_ROUNDS * N_PASSES && idle < N_PASSES; k++) {
        const oct_pass *p = table[k % N_PASSES];
        int n_changed = 0;

        if (s.runs[k % N_PASSES]) OCT_TRY(oct_pass_run(p, g, &n_changed));
        if (n_changed) oct_log(g->ctx, OCT_LOG_DEBUG, "%s: %d changes", p->name, n_changed);
        idle = n_changed ? 0 : idle + 1;
    }
    return OCT_OK;
}
