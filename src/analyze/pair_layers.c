/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a pair: fusion groups of the float network, and their quantized subgraphs. */
#include <stdlib.h>
#include <string.h>

#include "analyze/side_by_side.h"
#include "op/op.h"
#include "quant/place/place.h"

#define GROUPS_OF   "octet" /* the target that fuses most: what one step of a plan computes */
#define CLAMP_DEPTH 8       /* nodes between a value and its quantizer */

typedef struct finder {
    oct_pair *p;
    const oct_node **nodes; /* of the quantized network, in order */
    int32_t *position;      /* by node id of the quantized network: index into nodes */
    int32_t *stamp;         /* by position: the last candidate whose subgraph it was in */
    int32_t *list;          /* positions in the current subgraph */
    int32_t n_list, serial;
    oct_fusion_groups groups;
    uint8_t *is_split;       /* by group: it has integers inside, so its nodes are layers of their
                              * own */
    int32_t *layer_of_group; /* for those that are not split */
    uint8_t *is_tail;        /* by node id of the exact network */
} finder;

/* A candidate for a layer: a group, or a node of one that is split. */
typedef struct candidate {
    const oct_node *anchor, *last;
    int32_t group; /* -1: a node alone */
} candidate;

/* --- quantized subgraphs --- */

static bool is_own(const finder *f, const candidate *c, const oct_value *v)
{
    if (!v->producer) return false;
    return c->group < 0 ? v->producer == c->anchor : f->groups.of_node[v->producer->id] == c->group;
}

static int by_position(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static bool push(finder *f, const oct_value *v)
{
    const oct_node *n = v->producer;
    int32_t at;

    if (!n) return v->data != NULL;
    at = f->position[n->id];
    if (f->stamp[at] == f->serial) return true;
    f->stamp[at] = f->serial;
    f->list[f->n_list++] = at;
    return !(n->op->flags & OCT_OP_HAS_BODY) && n->graph == f->p->quantized;
}

/* Everything upstream of the candidate's values up to those of other layers. False: it cannot be
 * separated. */
static bool collect(finder *f, const candidate *c)
{
    const oct_pair *p = f->p;
    bool good = true;

    f->n_list = 0;
    f->serial++;
    for (int32_t i = 0; i < c->last->n_out && good; i++) {
        const oct_value *v = c->last->out[i], *q = v ? p->quantized_of[v->id] : NULL;

        if (q)
            good = push(f, q);
        else if (v)
            good = v->n_users == 0 && !v->is_output;
    }
    for (int32_t k = 0; k < f->n_list && good; k++) {
        const oct_node *n = f->nodes[f->list[k]];

        for (int32_t i = 0; i < n->n_in && good; i++) {
            const oct_value *v = n->in[i], *x = v ? p->exact_of[v->id] : NULL;

            if (v && !v->data && !(x && !is_own(f, c, x))) good = push(f, v);
        }
    }
    return good && f->n_list > 0;
}

static oct_status take_subgraph(finder *f, oct_pair_layer *u)
{
    const oct_node **subgraph = oct_arena_array(f->p->arena, (size_t)f->n_list, sizeof(*subgraph));

    if (!subgraph) return OCT_ERR_MEMORY;
    qsort(f->list, (size_t)f->n_list, sizeof(*f->list), by_position);
    for (int32_t i = 0; i < f->n_list; i++) {
        subgraph[i] = f->nodes[f->list[i]];
        u->is_integer |= oct_node_is_quantize(subgraph[i]) || oct_node_is_dequantize(subgraph[i]);
    }
    u->subgraph = subgraph;
    u->n_subgraph = f->n_list;
    return OCT_OK;
}

/* --- groups --- */

/* Does the quantized network use this value in a way that the group does not? */
static bool is_seen_outside(const finder *f, const oct_value *v, int32_t group)
{
    const oct_value *q = f->p->quantized_of[v->id];

    for (int32_t i = 0; q && i < q->n_users; i++) {
        const oct_value *made = oct_node_out(q->users[i], 0);
        const oct_value *x = made ? f->p->exact_of[made->id] : NULL;

        if (!x || !x->producer || f->groups.of_node[x->producer->id] != group) return true;
    }
    return false;
}

static void split_groups(finder *f)
{
    for (const oct_node *n = f->p->exact->first; n; n = n->next) {
        const int32_t g = f->groups.of_node[n->id];

        for (int32_t i = 0; i < n->n_out && n != f->groups.item[g].last; i++)
            if (n->out[i] && is_seen_outside(f, n->out[i], g)) f->is_split[g] = 1;
    }
}

/* --- layers --- */

static oct_status add_layer(finder *f, const candidate *c)
{
    oct_pair *p = f->p;
    oct_pair_layer *u = &p->layers[p->n_layers];
    oct_weight_axes ax;

    *u = (oct_pair_layer){.anchor = c->anchor,
                          .last = c->last,
                          .has_weights = oct_weight_axes_of(c->anchor, &ax),
                          .is_tail = f->is_tail[c->anchor->id]};
    if (collect(f, c)) OCT_TRY(take_subgraph(f, u));
    if (!u->is_integer && !u->has_weights) return OCT_OK;
    if (c->group >= 0)
        f->layer_of_group[c->group] = p->n_layers;
    else
        p->layer_of[c->anchor->id] = p->n_layers;
    p->n_layers++;
    return OCT_OK;
}

static oct_status find_layers(finder *f)
{
    oct_pair *p = f->p;

    for (int32_t i = 0; i < f->groups.n; i++)
        f->layer_of_group[i] = -1;
    for (const oct_node *n = p->exact->first; n; n = n->next) {
        const int32_t g = f->groups.of_node[n->id];
        const oct_fusion_group *group = &f->groups.item[g];
        const bool is_whole = !f->is_split[g] && group->last != group->anchor;
        const candidate c = {n, is_whole ? group->last : n, is_whole ? g : -1};

        if (!is_whole || group->anchor == n) OCT_TRY(add_layer(f, &c));
    }
    for (const oct_node *n = p->exact->first; n; n = n->next)
        if (p->layer_of[n->id] < 0)
            p->layer_of[n->id] = f->layer_of_group[f->groups.of_node[n->id]];
    return OCT_OK;
}

/* --- points --- */

/* Nodes between a value and its codes where only some of the elements are used. */
static bool only_limits(const oct_node *n)
{
    return n->n_in > 0 && (n->op == &oct_op_clip || n->op == &oct_op_min || n->op == &oct_op_max ||
                           n->op == &oct_op_identity);
}

/* The value that both networks have and that this node quantizes. */
static const oct_value *source_of(const oct_pair *p, const oct_node *q)
{
    const oct_value *v = q->in[0];

    for (int i = 0; v && i < CLAMP_DEPTH; i++) {
        if (p->exact_of[v->id]) return p->exact_of[v->id];
        v = v->producer && only_limits(v->producer) ? v->producer->in[0] : NULL;
    }
    return NULL;
}

static oct_status find_points(oct_pair *p)
{
    p->points = oct_arena_array(p->arena, (size_t)p->quantized->n_nodes + 1, sizeof(*p->points));
    if (!p->points) return OCT_ERR_MEMORY;
    for (const oct_node *n = p->quantized->first; n; n = n->next) {
        oct_pair_point s = {.value = NULL};
        bool is_known = false;

        if (!oct_node_is_quantize(n) || n->in[0]->data || !oct_codes_of(n, &s.codes)) continue;
        if (!(s.value = source_of(p, n)) || s.value->type.dtype != OCT_DTYPE_F32) continue;
        /* Activations have no other types. */
        if (oct_dtype_get(s.codes.dtype)->bits > 16 || (s.codes.n > 1 && s.codes.axis != 1))
            continue;
        for (int32_t i = 0; i < p->n_points && !is_known; i++)
            is_known =
                p->points[i].value == s.value && oct_codes_equal(&p->points[i].codes, &s.codes);
        if (!is_known) p->points[p->n_points++] = s;
    }
    return OCT_OK;
}

/* --- outputs --- */

static void add_output(oct_pair *p, const oct_value *v)
{
    for (int32_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i] == v) return;
    p->outputs[p->n_outputs++] = v;
}

/* Boxes after NMS cannot be compared one by one: its inputs can. */
static oct_status find_outputs(finder *f)
{
    oct_pair *p = f->p;
    uint8_t *seen = oct_arena_alloc(p->arena, (size_t)p->exact->n_value_ids + 1);
    const oct_value **list =
        oct_arena_array(p->arena, (size_t)p->exact->n_value_ids + 1, sizeof(*list));
    int32_t n = 0;

    p->outputs = oct_arena_array(p->arena, (size_t)p->exact->n_value_ids + 1, sizeof(*p->outputs));
    if (!seen || !list || !p->outputs) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->exact->n_outputs; i++)
        list[n++] = p->exact->outputs[i];
    for (int32_t k = 0; k < n; k++) {
        const oct_value *v = list[k];

        if (v->type.dtype == OCT_DTYPE_F32 && p->quantized_of[v->id] &&
            oct_type_len(&v->type) > 0) {
            add_output(p, v);
            continue;
        }
        for (int32_t i = 0; v->producer && i < v->producer->n_in; i++) {
            const oct_value *x = v->producer->in[i];

            if (!x || x->data || x->is_input || x->graph != p->exact || seen[x->id]) continue;
            seen[x->id] = 1;
            list[n++] = x;
        }
    }
    if (p->n_outputs) return OCT_OK;
    return oct_fail(p->ctx, OCT_ERR_ARG,
                    "the outputs of the two networks cannot be compared: none of '%s'.. is a "
                    "tensor of floats with the same name and shape in both",
                    p->exact->n_outputs ? p->exact->outputs[0]->name : "");
}

static oct_status index_nodes(finder *f)
{
    const oct_graph *g = f->p->quantized;
    oct_arena *a = f->p->arena;
    int32_t at = 0;

    f->nodes = oct_arena_array(a, (size_t)g->n_nodes + 1, sizeof(*f->nodes));
    f->stamp = oct_arena_array(a, (size_t)g->n_nodes + 1, sizeof(*f->stamp));
    f->list = oct_arena_array(a, (size_t)g->n_nodes + 1, sizeof(*f->list));
    f->position = oct_arena_array(a, (size_t)g->n_node_ids + 1, sizeof(*f->position));
    if (!f->nodes || !f->stamp || !f->list || !f->position) return OCT_ERR_MEMORY;
    for (const oct_node *n = g->first; n; n = n->next) {
        f->position[n->id] = at;
        f->nodes[at++] = n;
    }
    return OCT_OK;
}

static oct_status prepare(finder *f)
{
    oct_pair *p = f->p;
    const size_t n = (size_t)p->exact->n_node_ids + 1;
    const oct_target *t = NULL;

    p->layer_of = oct_arena_array(p->arena, n, sizeof(*p->layer_of));
    p->layers = oct_arena_array(p->arena, n, sizeof(*p->layers));
    f->is_tail = oct_arena_alloc(p->arena, n);
    if (!p->layer_of || !p->layers || !f->is_tail) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        p->layer_of[i] = -1;
    OCT_TRY(index_nodes(f));
    OCT_TRY(oct_target_find(p->ctx, GROUPS_OF, &t));
    OCT_TRY(oct_fusion_groups_find(p->exact, t, p->arena, &f->groups));
    f->is_split = oct_arena_alloc(p->arena, (size_t)f->groups.n + 1);
    f->layer_of_group = oct_arena_array(p->arena, (size_t)f->groups.n + 1, sizeof(int32_t));
    if (!f->is_split || !f->layer_of_group) return OCT_ERR_MEMORY;
    return oct_tail_find(p->exact, "auto", p->arena, f->is_tail, &p->tail_text);
}

oct_status oct_pair_find_layers(oct_pair *p)
{
    finder f = {.p = p};

    OCT_TRY(oct_pair_match_values(p));
    OCT_TRY(prepare(&f));
    split_groups(&f);
    OCT_TRY(find_layers(&f));
    OCT_TRY(find_points(p));
    return find_outputs(&f);
}
