/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that keep their channels because the caller wants it. */
#include "base/regex.h"
#include "prune/groups.h"

/* What the options say, ready to be asked of each layer. */
typedef struct wishes {
    oct_regex *keep, *only; /* NULL: no such */
    const bool *is_behind;  /* by value id: a layer lies between the inputs and it */
    bool first, strided;
} wishes;

static bool has_stride(const oct_node *n)
{
    const oct_attr *a = oct_node_attr(n, "strides");

    for (int64_t i = 0; a && a->kind == OCT_ATTR_INTS && i < a->n; i++)
        if (a->is[i] > 1) return true;
    return false;
}

static const char *reason(const wishes *w, const oct_node *n)
{
    if (w->keep && oct_regex_matches(w->keep, n->name)) return "its layer is kept as it is";
    if (w->only && !oct_regex_matches(w->only, n->name)) return "its layer is not asked for";
    if (w->first && !w->is_behind[n->in[0]->id]) return "it is a first layer";
    if (w->strided && has_stride(n)) return "its layer has a stride";
    return NULL;
}

/* A unit that any such layer makes stays. */
static void protect_units(oct_channels *c, const wishes *w)
{
    for (int32_t i = 0; i < c->n_cuts; i++) {
        const oct_cut *k = &c->cuts[i];
        const char *why = k->role == OCT_CUT_OUT ? reason(w, k->node) : NULL;

        for (int64_t j = 0; why && j < k->n; j++)
            if (k->unit[j] >= 0 && !c->units[k->unit[j]].why) {
                c->units[k->unit[j]].why = why;
                c->units[k->unit[j]].node = k->node;
            }
    }
}

static bool makes_channels(const oct_channels *c, const oct_node *n)
{
    for (int32_t i = 0; i < c->n_cuts; i++)
        if (c->cuts[i].role == OCT_CUT_OUT && c->cuts[i].node == n) return true;
    return false;
}

static void find_behind(const oct_channels *c, bool *is_behind)
{
    for (const oct_node *n = c->g->first; n; n = n->next) {
        bool is = makes_channels(c, n);

        for (int32_t i = 0; i < n->n_in && !is; i++)
            is = n->in[i] && is_behind[n->in[i]->id];
        for (int32_t i = 0; i < n->n_out; i++)
            if (n->out[i]) is_behind[n->out[i]->id] = is;
    }
}

oct_status oct_prune_groups_protect(oct_prune_groups *g, const oct_prune_options *o)
{
    oct_channels *c = g->c;
    wishes w = {.first = o->keep_first != 0, .strided = o->keep_strided != 0};
    oct_status st = OCT_OK;

    if (w.first) {
        bool *is_behind =
            oct_arena_array(c->arena, (size_t)c->g->root->n_value_ids + 1, sizeof(*is_behind));

        if (!is_behind) return OCT_ERR_MEMORY;
        find_behind(c, is_behind);
        w.is_behind = is_behind;
    }
    if (o->keep) st = oct_regex_new(c->ctx, o->keep, false, &w.keep);
    if (!st && o->only) st = oct_regex_new(c->ctx, o->only, false, &w.only);
    if (!st) protect_units(c, &w);
    oct_regex_free(w.keep);
    oct_regex_free(w.only);
    for (int32_t i = 0; i < g->n && !st; i++)
        for (int32_t j = 0; j < g->groups[i].n && !g->groups[i].why; j++) {
            g->groups[i].why = c->units[g->groups[i].units[j]].why;
            g->groups[i].at = c->units[g->groups[i].units[j]].node;
        }
    return st;
}
