/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing outputs: what only the others need is dropped. */
#include <string.h>

#include <octet/graph.h>

#include "base/map.h"
#include "pass/pass.h"

enum { NAME_SIZE = 256, FAR = 64 };

static int32_t find(const oct_graph *g, const char *name)
{
    for (int32_t i = 0; i < g->n_outputs; i++)
        if (strcmp(g->outputs[i]->name, name) == 0) return i;
    return -1;
}

static oct_status unknown(const oct_graph *g, const char *name)
{
    oct_nearest near = {.want = name, .distance = FAR};

    for (int32_t i = 0; i < g->n_outputs; i++)
        oct_nearest_try(&near, g->outputs[i]->name);
    return oct_fail(g->ctx, OCT_ERR_ARG, "there is no output '%.80s'%s%s%s", name,
                    near.name ? "; did you mean '" : "", near.name ? near.name : "",
                    near.name ? "'?" : "");
}

/* kept[i]: is output i named? */
static oct_status read_names(const oct_graph *g, const char *names, bool *kept)
{
    for (const char *p = names; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        const size_t len = strcspn(p, ",");
        char name[NAME_SIZE];
        int32_t i;

        if (len == 0) return oct_fail(g->ctx, OCT_ERR_ARG, "an empty name among the outputs");
        if (len >= sizeof(name))
            return oct_fail(g->ctx, OCT_ERR_ARG, "there is no output '%.80s..'", p);
        memcpy(name, p, len);
        name[len] = '\0';
        if ((i = find(g, name)) < 0) return unknown(g, name);
        kept[i] = true;
    }
    return OCT_OK;
}

static oct_status keep(oct_graph *g, const bool *kept)
{
    int32_t n = 0;

    for (int32_t i = 0; i < g->n_outputs; i++)
        if (!kept[i]) g->outputs[i]->is_output = false;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (!kept[i]) continue;
        g->outputs[i]->is_output = true; /* one value may be two outputs */
        g->outputs[n++] = g->outputs[i];
    }
    g->n_outputs = n;
    OCT_TRY(oct_drop_dead(g));
    return oct_graph_verify(g);
}

oct_status oct_graph_keep_outputs(oct_graph *g, const char *names)
{
    OCT_ENTER(g->ctx);
    bool *kept = oct_calloc(g->ctx, (size_t)g->n_outputs + 1, sizeof(*kept));
    oct_status st = kept ? read_names(g, names, kept) : OCT_ERR_MEMORY;

    if (!st) st = keep(g, kept);
    oct_free(g->ctx, kept);
    return st;
}
