/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes compute with the values of points, behind nodes that only move data. */
#include <string.h>

#include "op/channels.h"
#include "quant/place/place.h"

typedef struct search {
    const oct_qmap *m;
    oct_reader_fn *each;
    void *arg;
    uint8_t *mark; /* by point */
} search;

static oct_status tell(const search *s, const oct_value *v, const oct_node *reader)
{
    memset(s->mark, 0, (size_t)s->m->n_points);
    OCT_TRY(oct_place_sources(s->m, v, s->mark));
    for (int32_t i = 0; i < s->m->n_points; i++)
        if (s->mark[i]) s->each(s->arg, i, reader);
    return OCT_OK;
}

static oct_status tell_all(const search *s)
{
    const oct_graph *g = s->m->g;

    for (const oct_node *n = g->first; n; n = n->next)
        for (int32_t i = 0; i < n->n_in && !oct_node_moves_data(n); i++)
            if (n->in[i] && !n->in[i]->data && n->in[i]->graph == g) OCT_TRY(tell(s, n->in[i], n));
    for (int32_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i]->producer) OCT_TRY(tell(s, g->outputs[i], NULL));
    return OCT_OK;
}

oct_status oct_place_readers(const oct_qmap *m, oct_arena *a, oct_reader_fn *each, void *arg)
{
    const search s = {m, each, arg, oct_arena_alloc(a, (size_t)m->n_points + 1)};

    return s.mark ? tell_all(&s) : OCT_ERR_MEMORY;
}
