/* SPDX-License-Identifier: Apache-2.0 */
/* Connects rows of an analysis, nodes of the graph and quantization points by their names. */
#include "report/links.h"

#include "report/json.h"

enum {
    MAX_POINTS = 6, /* that are shown of one layer */
    MAX_STEPS = 64, /* nodes looked at on the way to them: names and graphs may be anything */
};

/* Points found so far, each once. */
typedef struct found {
    intptr_t list[MAX_POINTS];
    int n, steps;
} found;

static oct_status add_points(oct_links *l, const oct_analysis *a)
{
    oct_analyzed_point p = {.struct_size = sizeof(p)};

    for (int32_t i = 0; a && oct_analysis_point(a, i, &p); i++)
        OCT_TRY(oct_map_put(&l->points, p.value, (void *)((intptr_t)i + 1)));
    return OCT_OK;
}

static oct_status add_nodes(oct_links *l, const oct_report *r)
{
    oct_analyzed_layer row = {.struct_size = sizeof(row)};

    if (!r->graph) return OCT_OK;
    l->owner = r->graph->ctx; /* which need not be the report's */
    if (!(l->parts = oct_graph_domains(r->graph)))
        return oct_fail(l->ctx, OCT_ERR_MEMORY, "out of memory");
    for (oct_node *n = r->graph->first; n; n = n->next)
        if (l->parts[n->id] != OCT_DOMAIN_CONSTANT) OCT_TRY(oct_map_put(&l->nodes, n->name, n));
    for (int32_t i = 0; r->analysis && oct_analysis_layer(r->analysis, i, &row); i++) {
        const oct_node *n = oct_map_get(&l->nodes, row.name);

        if (n && l->parts[n->id] != OCT_DOMAIN_CONVERSION)
            l->parts[n->id] = row.reason ? OCT_DOMAIN_FLOAT : OCT_DOMAIN_INTEGER;
    }
    return OCT_OK;
}

oct_status oct_links_init(oct_links *l, oct_ctx *ctx, const oct_report *r)
{
    *l = (oct_links){.ctx = ctx};
    oct_map_init(&l->nodes, ctx);
    oct_map_init(&l->points, ctx);
    OCT_TRY(add_points(l, r->analysis));
    return add_nodes(l, r);
}

void oct_links_fini(oct_links *l)
{
    oct_map_fini(&l->nodes);
    oct_map_fini(&l->points);
    if (l->parts) oct_free(l->owner, l->parts);
}

static bool add_found(const oct_links *l, const char *value, found *f)
{
    const intptr_t point = (intptr_t)oct_map_get(&l->points, value);

    if (!point) return false;
    for (int i = 0; i < f->n; i++)
        if (f->list[i] == point) return true;
    if (f->n < MAX_POINTS) f->list[f->n++] = point;
    return true;
}

static void find_reads(const oct_links *l, const oct_node *n, found *f)
{
    for (int32_t i = 0; i < n->n_in && f->steps < MAX_STEPS; i++) {
        bool through;

        f->steps++;
        if (n->in[i] && !n->in[i]->data)
            (void)add_found(l, oct_value_before_conversions(n->in[i], l->parts, &through)->name, f);
    }
}

/* An activation after a convolution is fused into it: its result is what is quantized. */
static void find_makes(const oct_links *l, const oct_node *n, int depth, found *f)
{
    for (int32_t i = 0; i < n->n_out; i++) {
        const oct_value *v = n->out[i];

        if (!v || add_found(l, v->name, f) || depth == 0) continue;
        for (int32_t k = 0; k < v->n_users && f->steps < MAX_STEPS; k++) {
            const oct_node *user = v->users[k];

            f->steps++;
            if (l->parts[user->id] == OCT_DOMAIN_INTEGER) find_makes(l, user, depth - 1, f);
        }
    }
}

static void put_found(oct_str *out, const char *key, const found *f)
{
    if (!f->n) return;
    oct_json_open(out, key, '[');
    for (int i = 0; i < f->n; i++)
        oct_json_int(out, NULL, (int64_t)f->list[i] - 1);
    oct_json_close(out, ']');
}

void oct_links_put(const oct_links *l, const char *layer, oct_str *out)
{
    const oct_node *n = oct_map_get(&l->nodes, layer);
    found reads = {.n = 0}, makes = {.n = 0};

    if (!n) return;
    oct_json_int(out, "node", n->id);
    find_reads(l, n, &reads);
    if (l->parts[n->id] == OCT_DOMAIN_INTEGER) find_makes(l, n, 2, &makes);
    put_found(out, "reads", &reads);
    put_found(out, "makes", &makes);
}
