/* SPDX-License-Identifier: Apache-2.0 */
/* What a file says of the promise it was made under: metadata "octet.promise" and its like. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "base/str.h"
#include "control/control.h"

static const char *const kinds[] = {
    [OCT_PROMISE_DROP] = "drop",
    [OCT_PROMISE_RELATIVE_DROP] = "relative_drop",
    [OCT_PROMISE_LEAST] = "least",
    [OCT_PROMISE_MOST] = "most",
};

double oct_promise_need(int32_t kind, double limit, double float_score)
{
    if (kind == OCT_PROMISE_DROP) return float_score - limit;
    if (kind == OCT_PROMISE_RELATIVE_DROP) return float_score - fabs(float_score) * limit;
    return limit;
}

/* --- writing --- */

static oct_status write_number(oct_graph *g, const char *key, double v)
{
    char text[40];

    (void)snprintf(text, sizeof(text), "%.9g", v);
    return oct_graph_set_metadata(g, key, isnan(v) ? NULL : text);
}

oct_status oct_promise_write(oct_graph *g, const oct_promise *p)
{
    OCT_TRY(oct_graph_set_metadata(g, "octet.promise", kinds[p->kind]));
    OCT_TRY(write_number(g, "octet.promise.limit", p->limit));
    OCT_TRY(oct_graph_set_metadata(g, "octet.promise.measure", p->measure));
    OCT_TRY(write_number(g, "octet.promise.float", p->float_score));
    OCT_TRY(write_number(g, "octet.promise.score", p->score));
    OCT_TRY(oct_graph_set_metadata(g, "octet.promise.held", p->held ? "yes" : "no"));
    OCT_TRY(write_number(g, "octet.promise.restored", p->restored));
    return oct_graph_set_metadata(g, "octet.promise.layers", p->restored ? p->layers : NULL);
}

/* --- reading: the file may say anything --- */

static bool read_number(const oct_graph *g, const char *key, double *v)
{
    const char *text = oct_graph_metadata(g, key);
    char *end = NULL;

    if (!text || !*text) return false;
    *v = strtod(text, &end);
    return !*end && isfinite(*v);
}

static bool read_promise(const oct_graph *g, oct_promise *p)
{
    const char *kind = oct_graph_metadata(g, "octet.promise");
    const char *held = oct_graph_metadata(g, "octet.promise.held");
    double restored = 0;

    p->kind = -1;
    for (size_t i = 0; kind && i < OCT_COUNT(kinds); i++)
        if (strcmp(kinds[i], kind) == 0) p->kind = (int32_t)i;
    if (p->kind < 0 || !read_number(g, "octet.promise.limit", &p->limit) ||
        !read_number(g, "octet.promise.score", &p->score))
        return false;
    if (!read_number(g, "octet.promise.float", &p->float_score)) {
        if (p->kind == OCT_PROMISE_DROP || p->kind == OCT_PROMISE_RELATIVE_DROP) return false;
        p->float_score = NAN;
    }
    if (read_number(g, "octet.promise.restored", &restored) && restored >= 0 && restored < 1e6)
        p->restored = (int32_t)restored;
    p->measure = oct_graph_metadata(g, "octet.promise.measure");
    if (!p->measure) p->measure = "score";
    p->layers = oct_graph_metadata(g, "octet.promise.layers");
    p->held = held && strcmp(held, "yes") == 0;
    p->need = oct_promise_need(p->kind, p->limit, p->float_score);
    return true;
}

int32_t oct_graph_promise(const oct_graph *g, oct_promise *p)
{
    oct_promise all = {.struct_size = p->struct_size};

    if (!read_promise(g, &all)) return 0;
    oct_sized_give(p, &all, sizeof(all));
    return 1;
}

const char *oct_graph_promise_text(const oct_graph *g, char *text, size_t size)
{
    oct_promise p = {.struct_size = sizeof(p)};
    char limit[64], from[48] = "";

    if (size) *text = '\0';
    if (!read_promise(g, &p)) return text;
    if (p.kind == OCT_PROMISE_DROP)
        (void)snprintf(limit, sizeof(limit), "drops by at most %g", p.limit);
    else if (p.kind == OCT_PROMISE_RELATIVE_DROP)
        (void)snprintf(limit, sizeof(limit), "drops by at most %g %%", 100 * p.limit);
    else
        (void)snprintf(limit, sizeof(limit), "at %s %g",
                       p.kind == OCT_PROMISE_LEAST ? "least" : "most", p.limit);
    if (!isnan(p.float_score)) (void)snprintf(from, sizeof(from), "%.4f float, ", p.float_score);
    (void)snprintf(text, size, "%.40s %s: %s%.4g INT8, %d layer%s float for it%s", p.measure, limit,
                   from, p.score, (int)p.restored, p.restored == 1 ? "" : "s",
                   p.held ? "" : "; NOT KEPT");
    return text;
}
