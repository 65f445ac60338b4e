/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tail of a network: what follows its last layers with weights. Boxes in pixels and scores
 * below one are concatenated there; one 8-bit scale for both would round the scores to zero.
 */
#include <string.h>

#include "op/channels.h"
#include "op/op.h"
#include "quant/place/place.h"

enum { MAX_MOVES = 16 }; /* nodes between a Softmax and the projection after it */

typedef struct tail {
    const oct_graph *g;
    uint8_t *reaches; /* by node id: a feature layer follows, or it is one */
    uint8_t *follows; /* by node id: a feature layer came before */
    uint8_t *is_tail;
} tail;

/* Chooses indices: what follows is a selection, not a function of the features. */
static bool selects(const oct_node *n)
{
    return oct_node_is(n, &oct_op_non_max_suppression) || oct_node_is(n, &oct_op_top_k);
}

static bool is_float(const oct_value *v)
{
    return v && oct_dtype_is_float(v->type.dtype);
}

/* A projection with fixed weights of a Softmax (DFL): expected values, not features. */
static bool is_projection(const oct_node *n)
{
    const oct_value *v = oct_node_in(n, 0);

    for (int i = 0; i < MAX_MOVES && v && v->producer; i++) {
        if (oct_node_is(v->producer, &oct_op_softmax)) return true;
        if (!oct_node_moves_data(v->producer) || oct_node_n_data(v->producer) != 1) return false;
        v = v->producer->in[0];
    }
    return false;
}

static bool has_weight(const oct_node *n)
{
    for (int32_t i = 0; i < OCT_MIN(n->n_in, OCT_MAX_IN); i++)
        if (n->op->quant.in[i] == OCT_QROLE_WEIGHT && oct_node_const(n, i)) return true;
    return false;
}

static bool is_feature(const oct_node *n)
{
    return has_weight(n) && !is_projection(n);
}

/* Does operand i carry data on, or does it only say how (shapes, indices, regions)? */
static bool carries(const oct_node *n, int32_t i)
{
    if (selects(n) || !is_float(n->in[i])) return false;
    if (n->op->quant.in[0] == OCT_QROLE_NONE) return true; /* the row says nothing */
    return n->op->max_in < 0 || i >= OCT_MAX_IN || n->op->quant.in[i] != OCT_QROLE_NONE;
}

static bool leads_on(const tail *t, const oct_value *v)
{
    for (int32_t k = 0; k < v->n_users; k++) {
        const oct_node *u = v->users[k];

        if (u->graph != t->g || !t->reaches[u->id]) continue;
        for (int32_t i = 0; i < u->n_in; i++)
            if (u->in[i] == v && carries(u, i)) return true;
    }
    return false;
}

static bool reads(const oct_node *n, const uint8_t *mark)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->producer && mark[n->in[i]->producer->id]) return true;
    return false;
}

static void find_auto(tail *t)
{
    bool has_features = false;

    for (const oct_node *n = t->g->last; n; n = n->prev) {
        t->reaches[n->id] = is_feature(n);
        for (int32_t k = 0; k < n->n_out && !t->reaches[n->id]; k++)
            t->reaches[n->id] = n->out[k] && leads_on(t, n->out[k]);
        has_features |= t->reaches[n->id];
    }
    for (const oct_node *n = t->g->first; n; n = n->next) {
        const bool follows = reads(n, t->follows);

        t->follows[n->id] = follows || is_feature(n);
        if (t->reaches[n->id] || (has_features && !follows)) continue;
        t->is_tail[n->id] = is_float(oct_node_out(n, 0)) || selects(n) || reads(n, t->is_tail);
    }
}

/* --- names --- */

static oct_status find_named(tail *t, const char *names)
{
    oct_ctx *ctx = t->g->ctx;
    const char *p = names;

    while (*p) {
        const size_t len = strcspn(p, ",");
        char name[512], near[OCT_NEAR_SIZE];
        const oct_node *n;

        if (len >= sizeof(name)) return oct_fail(ctx, OCT_ERR_ARG, "tail: a name is too long");
        memcpy(name, p, len);
        name[len] = '\0';
        p += len + (p[len] == ',');
        if (!len) continue;
        if (!(n = oct_graph_find_node(t->g, name)) || n->graph != t->g)
            return oct_fail(ctx, OCT_ERR_ARG, "tail: there is no node '%s'%s", name,
                            oct_scope_near(t->g, name, near, sizeof(near)));
        t->is_tail[n->id] = 1;
    }
    for (const oct_node *n = t->g->first; n; n = n->next)
        if (reads(n, t->is_tail)) t->is_tail[n->id] = 1;
    return OCT_OK;
}

/* --- the sentence --- */

typedef struct contents {
    const oct_node *first;
    int32_t n;
    bool selects, projects, stretches, joins, scores;
} contents;

static bool feeds_choice(const oct_node *n)
{
    for (int32_t k = 0; k < n->n_out; k++)
        for (int32_t i = 0; n->out[k] && i < n->out[k]->n_users; i++)
            if (selects(n->out[k]->users[i])) return true;
    return false;
}

/* The Exp of a Softmax written out: it is divided by its own sum. */
static bool is_softmax_exp(const oct_node *n)
{
    for (int32_t i = 0; i < n->out[0]->n_users; i++)
        if (oct_node_is(n->out[0]->users[i], &oct_op_reduce_sum)) return true;
    return false;
}

static bool makes_scores(const oct_node *n)
{
    static const oct_op *const scoring[] = {&oct_op_softmax, &oct_op_sigmoid, &oct_op_log_softmax,
                                            &oct_op_hardmax};

    for (size_t i = 0; i < OCT_COUNT(scoring); i++)
        if (n->op == scoring[i]) return true;
    return oct_node_is(n, &oct_op_exp) && is_softmax_exp(n);
}

static void find_contents(const tail *t, contents *c)
{
    for (const oct_node *n = t->g->first; n; n = n->next) {
        if (!t->is_tail[n->id]) continue;
        if (!c->first) c->first = n;
        c->n++;
        c->selects |= selects(n) || feeds_choice(n);
        c->joins |= oct_node_is(n, &oct_op_concat) && is_float(oct_node_out(n, 0));
        c->projects |= has_weight(n);
        c->stretches |= oct_node_is(n, &oct_op_exp) && !is_softmax_exp(n);
        c->scores |= makes_scores(n);
    }
}

static const char *reason(const contents *c, bool is_named)
{
    if (is_named) return "it was named so";
    if (c->selects) return "the best boxes are chosen there";
    if (c->projects || (c->joins && (c->scores || c->stretches)))
        return "boxes and scores are put together there";
    if (c->scores) return "scores are made there";
    return "no layer with weights follows";
}

static oct_status describe(const tail *t, bool is_named, oct_arena *a, const char **text)
{
    contents c = {.first = NULL};

    find_contents(t, &c);
    if (!c.n) return OCT_OK;
    *text = oct_arena_printf(a, "tail of %d node%s from '%s' on: %s; kept in float", (int)c.n,
                             c.n == 1 ? "" : "s", c.first->name, reason(&c, is_named));
    return *text ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_tail_find(const oct_graph *g, const char *setting, oct_arena *a, uint8_t *is_tail,
                         const char **text)
{
    const size_t n_ids = (size_t)g->root->n_node_ids + 1;
    const bool is_named = setting && strcmp(setting, "auto") != 0;
    tail t = {.g = g, .is_tail = is_tail};

    *text = NULL;
    memset(is_tail, 0, (size_t)g->root->n_node_ids);
    if (is_named && strcmp(setting, "off") == 0) return OCT_OK;
    t.reaches = oct_arena_alloc(a, n_ids);
    t.follows = oct_arena_alloc(a, n_ids);
    if (!t.reaches || !t.follows) return OCT_ERR_MEMORY;
    if (is_named)
        OCT_TRY(find_named(&t, setting));
    else
        find_auto(&t);
    return describe(&t, is_named, a, text);
}
