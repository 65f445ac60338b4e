/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes: which nodes the settings keep in float, and settings of single layers. */
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
#include "op/op.h"
#include "quant/place/place.h"

typedef struct scoper {
    const oct_graph *g;
    const oct_scope *s;
    const char *word; /* "ignored_scope" */
    oct_arena *a;
    uint8_t *marks;      /* of one entry, by node id */
    const char **reason; /* by node id */
} scoper;

static oct_status forget(scoper *sc)
{
    memset(sc->marks, 0, (size_t)sc->g->root->n_node_ids);
    return OCT_OK;
}

/* Nodes marked by an entry get its reason; an entry that marks none is an error. */
static oct_status commit(scoper *sc, int32_t count, const char *kind, const char *entry)
{
    char near[OCT_NEAR_SIZE];
    const char *text;

    if (!count && !sc->s->allow_unmatched)
        return oct_fail(sc->g->ctx, OCT_ERR_ARG, "%s: no node matches the %s '%.200s'%s", sc->word,
                        kind, entry, oct_scope_near(sc->g, entry, near, sizeof(near)));
    if (!(text = oct_arena_printf(sc->a, "ignored by %s '%s'", kind, entry))) return OCT_ERR_MEMORY;
    for (const oct_node *n = sc->g->first; n; n = n->next)
        if (sc->marks[n->id] && !sc->reason[n->id]) sc->reason[n->id] = text;
    return forget(sc);
}

/* --- types --- */

/* Is the node in a module of this class? What torch.export tells of modules is in the doc of a
 * node: "torch.nn: ResNet > BasicBlock > Conv2d". */
static bool is_in_class(const oct_node *n, const char *name)
{
    static const char prefix[] = "torch.nn: ", between[] = " > ";
    const size_t len = strlen(name);
    const char *s = n->doc && strncmp(n->doc, prefix, sizeof(prefix) - 1) == 0
                        ? n->doc + sizeof(prefix) - 1
                        : NULL;

    while (s && *s) {
        const char *end = strstr(s, between);

        if (end ? (size_t)(end - s) == len && strncmp(s, name, len) == 0 : strcmp(s, name) == 0)
            return true;
        s = end ? end + sizeof(between) - 1 : NULL;
    }
    return false;
}

static oct_status by_type(scoper *sc, const char *type)
{
    oct_nearest near = {type, 4, NULL};
    int32_t count = 0;

    for (const oct_node *n = sc->g->first; n; n = n->next) {
        oct_nearest_try(&near, n->op->name);
        if (strcmp(n->op->name, type) != 0 && !is_in_class(n, type)) continue;
        sc->marks[n->id] = 1;
        count++;
    }
    if (!count && near.name && !sc->s->allow_unmatched)
        return oct_fail(sc->g->ctx, OCT_ERR_ARG,
                        "%s: the network has no operator '%.60s'; did you mean '%s'?", sc->word,
                        type, near.name);
    return commit(sc, count, "type", type);
}

/* --- subgraphs --- */

static oct_status find_ends(scoper *sc, const char *const *names, int32_t n, uint8_t bit)
{
    char near[OCT_NEAR_SIZE];

    for (int32_t i = 0; i < n; i++) {
        const oct_node *node = oct_graph_find_node(sc->g, names[i]);
        const oct_value *v = node ? NULL : oct_graph_find_value(sc->g, names[i]);

        if (v) node = v->producer;
        if (node && node->graph == sc->g)
            sc->marks[node->id] |= bit;
        else if (!sc->s->allow_unmatched)
            return oct_fail(sc->g->ctx, OCT_ERR_ARG, "%s: subgraph: there is no node '%.200s'%s",
                            sc->word, names[i],
                            oct_scope_near(sc->g, names[i], near, sizeof(near)));
    }
    return OCT_OK;
}

enum { IS_INPUT = 1, IS_OUTPUT = 2, AFTER = 4, BEFORE = 8, ON_PATH = AFTER | BEFORE };

static void spread(scoper *sc)
{
    for (const oct_node *n = sc->g->first; n; n = n->next) {
        uint8_t *m = &sc->marks[n->id];

        if (*m & IS_INPUT) *m |= AFTER;
        for (int32_t i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->producer && (sc->marks[n->in[i]->producer->id] & AFTER))
                *m |= AFTER;
    }
    for (const oct_node *n = sc->g->last; n; n = n->prev) {
        uint8_t *m = &sc->marks[n->id];

        if (*m & IS_OUTPUT) *m |= BEFORE;
        for (int32_t k = 0; k < n->n_out; k++)
            for (int32_t u = 0; n->out[k] && u < n->out[k]->n_users; u++)
                if (sc->marks[n->out[k]->users[u]->id] & BEFORE) *m |= BEFORE;
    }
}

static oct_status by_subgraph(scoper *sc, const oct_subgraph *sub)
{
    char entry[256];
    int32_t count = 0;

    OCT_TRY(find_ends(sc, sub->inputs, sub->n_inputs, IS_INPUT));
    OCT_TRY(find_ends(sc, sub->outputs, sub->n_outputs, IS_OUTPUT));
    spread(sc);
    for (const oct_node *n = sc->g->first; n; n = n->next) {
        const uint8_t m = sc->marks[n->id];
        const bool is_on_path = (m & ON_PATH) == ON_PATH;

        if ((m & (IS_INPUT | IS_OUTPUT)) && !is_on_path && !sc->s->allow_unmatched)
            return oct_fail(
                sc->g->ctx, OCT_ERR_ARG, "%s: subgraph: no path leads %s '%s' %s of its %s",
                sc->word, m & IS_INPUT ? "from" : "to", n->name,
                m & IS_INPUT ? "to any" : "from any", m & IS_INPUT ? "outputs" : "inputs");
        sc->marks[n->id] = is_on_path;
        count += is_on_path;
    }
    snprintf(entry, sizeof(entry), "%.100s to %.100s", sub->n_inputs ? sub->inputs[0] : "",
             sub->n_outputs ? sub->outputs[0] : "");
    return commit(sc, count, "subgraph", entry);
}

/* --- all of one scope --- */

static bool is_empty(const oct_scope *s)
{
    return !s->n_names && !s->n_patterns && !s->n_types && !s->n_subgraphs;
}

static oct_status find(const oct_graph *g, const oct_scope *s, const char *word, oct_arena *a,
                       const char **reason)
{
    scoper sc = {.g = g, .s = s, .word = word, .a = a, .reason = reason};
    int32_t n;

    if (is_empty(s)) return OCT_OK;
    if (!(sc.marks = oct_arena_alloc(a, (size_t)g->root->n_node_ids + 1))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < s->n_names; i++) {
        OCT_TRY(oct_scope_match_name(g, s->names[i], sc.marks, &n));
        OCT_TRY(commit(&sc, n, "name", s->names[i]));
    }
    for (int32_t i = 0; i < s->n_patterns; i++) {
        OCT_TRY(oct_scope_match_pattern(g, s->patterns[i], sc.marks, &n));
        OCT_TRY(commit(&sc, n, "pattern", s->patterns[i]));
    }
    for (int32_t i = 0; i < s->n_types; i++)
        OCT_TRY(by_type(&sc, s->types[i]));
    for (int32_t i = 0; i < s->n_subgraphs; i++) {
        oct_subgraph sub;

        oct_sized_element(&sub, s->subgraphs, s->subgraph_size, i, sizeof(sub));
        OCT_TRY(by_subgraph(&sc, &sub));
    }
    return OCT_OK;
}

oct_status oct_scope_reasons(const oct_graph *g, const oct_quantize_options *o, oct_arena *a,
                             const char **reason)
{
    const char **wanted;

    OCT_TRY(find(g, &o->ignored, "ignored_scope", a, reason));
    if (is_empty(&o->only)) return OCT_OK;
    if (!(wanted = oct_arena_array(a, (size_t)g->root->n_node_ids + 1, sizeof(*wanted))))
        return OCT_ERR_MEMORY;
    OCT_TRY(find(g, &o->only, "only", a, wanted));
    for (const oct_node *n = g->first; n; n = n->next)
        if (!wanted[n->id] && !reason[n->id]) reason[n->id] = "not among those to quantize";
    return OCT_OK;
}

/* --- overrides --- */

static oct_status set_observer(oct_qmap *m, oct_qpoint *p, const char *kind)
{
    if (kind && !(p->observer = oct_arena_strdup(m->arena, kind))) return OCT_ERR_MEMORY;
    return OCT_OK;
}

static oct_status change_act(oct_qmap *m, int32_t at, const oct_quant_override *o)
{
    oct_qpoint *p = &m->points[oct_qmap_root_index(m, at)];

    if (o->activation_bits) p->spec.bits = o->activation_bits;
    if (o->symmetric) p->spec.is_symmetric = o->symmetric > 0;
    if (o->per_tensor) p->spec.axis = OCT_QSPEC_PER_TENSOR;
    return set_observer(m, p, o->activation_ranges);
}

static oct_status change_weight(oct_qmap *m, oct_qpoint *p, const oct_quant_override *o)
{
    if (o->weight_bits) p->spec.bits = o->weight_bits;
    if (o->weight_bits || o->weight_ranges) p->may_have_8_bits = false;
    p->spec.is_narrow = p->spec.is_narrow && p->spec.bits >= 8;
    if (o->per_tensor) p->spec.axis = OCT_QSPEC_PER_TENSOR;
    return set_observer(m, p, o->weight_ranges);
}

/* A layer's weights are its own; its activation is what its group writes. */
static oct_status change(oct_qmap *m, const oct_fusion_groups *groups, const oct_quant_override *o,
                         const uint8_t *marks)
{
    for (const oct_node *n = m->g->first; n; n = n->next) {
        const oct_value *y = oct_node_out(groups->item[groups->of_node[n->id]].last, 0);

        if (marks[n->id] && y && m->of_value[y->id] >= 0)
            OCT_TRY(change_act(m, m->of_value[y->id], o));
    }
    for (int32_t i = 0; i < m->n_points; i++) {
        oct_qpoint *p = &m->points[i];

        if (p->role == OCT_QROLE_WEIGHT && p->node && marks[p->node->id])
            OCT_TRY(change_weight(m, p, o));
    }
    for (int32_t i = 0; i < m->n_points; i++)
        OCT_TRY(oct_qspec_check(m->ctx, &m->points[i].spec));
    return OCT_OK;
}

static oct_status apply(oct_qmap *m, const oct_fusion_groups *groups, const oct_quant_override *o,
                        uint8_t *marks)
{
    char near[OCT_NEAR_SIZE];
    const char *entry = o->name ? o->name : o->pattern;
    int32_t n = 0;

    if (!entry) return oct_fail(m->ctx, OCT_ERR_ARG, "an override names neither node nor pattern");
    memset(marks, 0, (size_t)m->g->root->n_node_ids);
    if (o->name)
        OCT_TRY(oct_scope_match_name(m->g, o->name, marks, &n));
    else
        OCT_TRY(oct_scope_match_pattern(m->g, o->pattern, marks, &n));
    if (!n)
        return oct_fail(m->ctx, OCT_ERR_ARG, "override: no node matches '%.200s'%s", entry,
                        oct_scope_near(m->g, entry, near, sizeof(near)));
    return change(m, groups, o, marks);
}

oct_status oct_scope_override(oct_qmap *m, const oct_quantize_options *o)
{
    oct_fusion_groups groups;
    uint8_t *marks;

    if (!o->n_overrides) return OCT_OK;
    OCT_TRY(oct_fusion_groups_find(m->g, m->target, m->arena, &groups));
    if (!(marks = oct_arena_alloc(m->arena, (size_t)m->g->root->n_node_ids + 1)))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < o->n_overrides; i++) {
        oct_quant_override over;

        oct_sized_element(&over, o->overrides, o->override_size, i, sizeof(over));
        OCT_TRY(apply(m, &groups, &over, marks));
    }
    return OCT_OK;
}
