/* SPDX-License-Identifier: Apache-2.0 */
/* What people write for a layer, and the nodes they mean. */
#include <stdio.h>
#include <string.h>

#include "base/regex.h"
#include "op/op.h"
#include "quant/place/place.h"

enum { MAX_PATH = 1024, N_NEAR = 3 };

static void mark(const oct_node *n, uint8_t *marks, int32_t *count)
{
    if (!marks[n->id]) ++*count;
    marks[n->id] = 1;
}

/* --- module paths --- */

/* "/heads/head1/conv/Conv" as "heads.head1.conv.Conv"; too long names are cut. */
static void dotted(const char *name, char path[MAX_PATH])
{
    size_t n = 0;

    while (*name == '/')
        name++;
    for (; *name && n + 1 < MAX_PATH; name++)
        path[n++] = *name == '/' ? '.' : *name;
    path[n] = '\0';
}

/* NNCF's "YoloNAS_S/NDFLHeads[heads]/NNCFConv2d[pred]" as "heads.pred"; false: not of that form. */
static bool bracketed(const char *name, char path[MAX_PATH])
{
    size_t n = 0;
    const char *open, *close;

    while ((open = strchr(name, '[')) && (close = strchr(open, ']'))) {
        if (n && n + 1 < MAX_PATH) path[n++] = '.';
        for (open++; open < close && n + 1 < MAX_PATH; open++)
            path[n++] = *open;
        name = close + 1;
        if (*name && *name != '/') return false; /* a character class of a pattern */
    }
    path[n] = '\0';
    return n > 0;
}

/* * stands for any text, ? for one character; the text must end there, or a part of the path. */
static bool glob(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;

    for (;;) {
        if (!*pattern && (!*text || *text == '.')) return true;
        if (*pattern == '*') {
            star = ++pattern;
            from = text;
        } else if (*pattern && *text && (*pattern == *text || *pattern == '?')) {
            pattern++;
            text++;
        } else if (star && *from) {
            pattern = star;
            text = ++from;
        } else {
            return false;
        }
    }
}

static const char *next_part(const char *path)
{
    const char *dot = strchr(path, '.');

    return dot ? dot + 1 : NULL;
}

/* A path of several parts may begin anywhere in the name, one part only at its start or after the
 * name of the whole model: "conv" is not every layer with a conv in its name. */
static bool in_module(const char *name, const char *module)
{
    const int depth = strchr(module, '.') ? MAX_PATH : 2;
    char path[MAX_PATH];
    const char *p = path;

    dotted(name, path);
    for (int i = 0; i < depth && p; i++, p = next_part(p))
        if (glob(module, p)) return true;
    return false;
}

static bool regex_in_module(oct_regex *re, const char *name)
{
    char path[MAX_PATH];

    dotted(name, path);
    for (const char *p = path; p; p = next_part(p))
        if (oct_regex_matches(re, p)) return true;
    return false;
}

/* --- names and patterns --- */

static void match_exact(const oct_graph *g, const char *name, uint8_t *marks, int32_t *count)
{
    const oct_value *v;

    for (const oct_node *n = g->first; n; n = n->next)
        if (strcmp(n->name, name) == 0) mark(n, marks, count);
    if (*count || !(v = oct_graph_find_value(g, name))) return;
    if (v->producer && v->producer->graph == g) mark(v->producer, marks, count);
    for (int32_t i = 0; !v->producer && i < v->n_users; i++)
        if (v->users[i]->graph == g) mark(v->users[i], marks, count);
}

static oct_status match_regex(const oct_graph *g, const char *pattern, bool in_modules,
                              uint8_t *marks, int32_t *count)
{
    oct_regex *re = NULL;

    OCT_TRY(oct_regex_new(g->ctx, pattern, true, &re));
    for (const oct_node *n = g->first; n; n = n->next)
        if (in_modules ? regex_in_module(re, n->name) : oct_regex_matches(re, n->name))
            mark(n, marks, count);
    oct_regex_free(re);
    return OCT_OK;
}

oct_status oct_scope_match_pattern(const oct_graph *g, const char *pattern, uint8_t *marks,
                                   int32_t *n)
{
    *n = 0;
    OCT_TRY(match_regex(g, pattern, false, marks, n));
    /* Written for module paths: rather than matching nothing, begin at any part of the name. */
    return *n ? OCT_OK : match_regex(g, pattern, true, marks, n);
}

oct_status oct_scope_match_name(const oct_graph *g, const char *name, uint8_t *marks, int32_t *n)
{
    char module[MAX_PATH];

    *n = 0;
    if (strncmp(name, "{re}", 4) == 0) return oct_scope_match_pattern(g, name + 4, marks, n);
    match_exact(g, name, marks, n);
    if (*n) return OCT_OK;
    if (!bracketed(name, module)) dotted(name, module);
    for (const oct_node *p = g->first; p; p = p->next)
        if (*module && in_module(p->name, module)) mark(p, marks, n);
    if (*n || !strpbrk(name, "+\\|()^$[")) return OCT_OK;
    return match_regex(g, name, true, marks, n); /* heads.+reg_pred */
}

/* --- did you mean --- */

typedef struct near_names {
    const char *want;
    char name[N_NEAR][128];
    int dist[N_NEAR], n;
} near_names;

static void try_name(near_names *near, const char *name)
{
    const int bound = 1 + (int)strlen(near->want) / 3;
    const int d = strstr(name, near->want) ? 1 : oct_edit_distance(near->want, name, bound);
    int at = near->n;

    if (d > bound || !*near->want || strlen(name) >= sizeof(near->name[0])) return;
    for (int i = 0; i < near->n; i++)
        if (strcmp(near->name[i], name) == 0) return;
    while (at > 0 && near->dist[at - 1] > d)
        at--;
    if (at == N_NEAR) return;
    if (near->n < N_NEAR) near->n++;
    for (int i = near->n - 1; i > at; i--) {
        memcpy(near->name[i], near->name[i - 1], sizeof(near->name[i]));
        near->dist[i] = near->dist[i - 1];
    }
    memcpy(near->name[at], name, strlen(name) + 1);
    near->dist[at] = d;
}

/* Modules with as many parts as were typed, anywhere in the name. */
static void try_modules(near_names *near, const char *name)
{
    char path[MAX_PATH];
    int parts = 1;

    for (const char *p = near->want; (p = next_part(p)); parts++)
        ;
    dotted(name, path);
    for (char *start = path; start;) {
        char *end = start, kept;

        for (int i = 0; i < parts && end; i++)
            end = strchr(end + (i > 0), '.');
        if (end) {
            kept = *end;
            *end = '\0';
            try_name(near, start);
            *end = kept;
        }
        start = strchr(start, '.');
        if (start) start++;
    }
}

const char *oct_scope_near(const oct_graph *g, const char *name, char *text, size_t size)
{
    near_names near = {.want = name};
    size_t used = 0;
    bool has_names;

    if (size) *text = '\0';
    if (strlen(name) > 256) return text; /* nobody types that, and it would take long */
    for (const oct_node *n = g->first; n; n = n->next)
        try_name(&near, n->name);
    has_names = near.n > 0;
    for (const oct_node *n = g->first; n && !has_names; n = n->next)
        try_modules(&near, n->name);
    for (int i = 0; i < near.n && used < size; i++) {
        const char *before = i == 0 ? "; did you mean '" : i + 1 == near.n ? "' or '" : "', '";
        const int k = snprintf(text + used, size - used, "%s%s%s", before, near.name[i],
                               i + 1 == near.n ? "'?" : "");

        used += k > 0 ? (size_t)k : 0;
    }
    return text;
}
