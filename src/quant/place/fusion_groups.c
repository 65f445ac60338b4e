/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion groups: an anchor with the bias, activation and residual Add that a runtime fuses with it.
 */
#include <string.h>

#include "op/act.h"
#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/place/place.h"

enum { MAX_PARTS = 8 }; /* nodes of an activation that is written out */

typedef struct finder {
    const oct_target *t;
    const oct_node **lead; /* by node id: the anchor of its group, itself, or NULL */
} finder;

/* An activation that is written as several nodes, all of them functions of one value. */
typedef struct island {
    const oct_node *part[MAX_PARTS];
    int n;
} island;

/* A file may leave out what an operator needs. */
static bool is_whole(const oct_node *n)
{
    if (n->n_in < n->op->min_in || n->n_out != 1 || !n->out[0]) return false;
    for (int32_t i = 0; i < n->op->min_in; i++)
        if (!n->in[i]) return false;
    return true;
}

static bool is_free(const finder *f, const oct_node *n)
{
    return n && !f->lead[n->id] && is_whole(n);
}

/* --- activations --- */

static bool is_part(const island *s, const oct_node *n)
{
    for (int i = 0; i < s->n; i++)
        if (s->part[i] == n) return true;
    return false;
}

static bool is_scalar(const oct_value *v)
{
    return v->data && oct_tensor_len(v->data) == 1;
}

/* Is every operand of n the value, a part's result, or a scalar constant? */
static bool may_belong(const finder *f, const island *s, const oct_node *n, const oct_value *v)
{
    if (!is_free(f, n) || n->graph != v->graph || is_part(s, n)) return false;
    if (!(n->op->flags & OCT_OP_ELEMENTWISE) || !oct_type_equal(&n->out[0]->type, &v->type))
        return false;
    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_value *x = n->in[i];

        if (x && x != v && !is_scalar(x) && !(x->producer && is_part(s, x->producer))) return false;
    }
    return true;
}

/* Does anybody but the parts see this value? */
static bool is_open(const island *s, const oct_value *x)
{
    if (x->is_output) return true;
    for (int32_t i = 0; i < x->n_users; i++)
        if (!is_part(s, x->users[i])) return true;
    return false;
}

static const oct_node *next_part(const finder *f, const island *s, const oct_value *v)
{
    for (int i = -1; i < s->n; i++) {
        const oct_value *x = i < 0 ? v : s->part[i]->out[0];

        for (int32_t k = 0; k < x->n_users; k++)
            if (may_belong(f, s, x->users[k], v)) return x->users[k];
    }
    return NULL;
}

/* Is the last part all that can be seen from outside? */
static bool is_closed(const island *s, const oct_value *v)
{
    if (is_open(s, v)) return false;
    for (int i = 0; i + 1 < s->n; i++)
        if (is_open(s, s->part[i]->out[0])) return false;
    return true;
}

static bool find_island(const finder *f, const oct_value *v, island *s)
{
    const oct_node *n;

    s->n = 0;
    while (s->n < MAX_PARTS && (n = next_part(f, s, v))) {
        s->part[s->n++] = n;
        if (is_closed(s, v)) return true;
    }
    return false;
}

static oct_fusion_act kind_of(const island *s)
{
    oct_act act;

    if (s->n == 1 && oct_act_of(s->part[0], &act)) {
        if (act.kind == OCT_ACT_RELU || act.kind == OCT_ACT_CLIP) return OCT_FUSION_ACT_RELU;
        if (act.kind == OCT_ACT_SWISH) return OCT_FUSION_ACT_SILU;
        if (act.kind == OCT_ACT_HARD_SWISH) return OCT_FUSION_ACT_HARD_SWISH;
    }
    if (s->n == 2 && s->part[1]->op == &oct_op_mul) {
        if (s->part[0]->op == &oct_op_sigmoid) return OCT_FUSION_ACT_SILU;
        if (s->part[0]->op == &oct_op_hard_sigmoid) return OCT_FUSION_ACT_HARD_SWISH;
    }
    return OCT_FUSION_ACT_OTHER;
}

/* x * clip(x + 3) / 6, x * (1 + erf(..)) * 0.5: the factor at the end is part of it. */
static void take_factor(const finder *f, island *s)
{
    const oct_node *u = oct_sole_user(s->part[s->n - 1]->out[0]);

    if (s->n == MAX_PARTS || !is_free(f, u) || (u->op != &oct_op_mul && u->op != &oct_op_div))
        return;
    if (is_scalar(u->in[1]) || (u->op == &oct_op_mul && is_scalar(u->in[0]))) s->part[s->n++] = u;
}

static bool find_act(const finder *f, const oct_value *v, island *s, oct_fusion_act *kind)
{
    const oct_node *u = oct_sole_user(v);
    oct_act act;

    s->n = 0;
    if (v->is_output || v->n_users < 1 || v->type.dtype != OCT_DTYPE_F32) return false;
    if (u) {
        if (!is_free(f, u) || u->in[0] != v || !oct_act_of(u, &act)) return false;
        s->part[s->n++] = u;
        *kind = kind_of(s);
        return *kind == OCT_FUSION_ACT_RELU || (f->t->flags & OCT_TARGET_FUSES_ACTIVATION);
    }
    if (!(f->t->flags & OCT_TARGET_FUSES_ACTIVATION) || !find_island(f, v, s)) return false;
    *kind = kind_of(s);
    if (*kind == OCT_FUSION_ACT_OTHER) take_factor(f, s);
    return true;
}

/* --- growing --- */

static void take(finder *f, oct_fusion_group *g, const oct_node *n)
{
    f->lead[n->id] = g->anchor;
    g->last = n;
}

static bool take_act(finder *f, oct_fusion_group *g, bool is_first)
{
    oct_fusion_act kind;
    island s;

    if (!find_act(f, g->last->out[0], &s, &kind)) return false;
    for (int i = 0; i < s.n; i++)
        take(f, g, s.part[i]);
    if (is_first) g->act = kind;
    return true;
}

/* Add of a constant vector after a product without a bias: its bias. */
static void take_bias(finder *f, oct_fusion_group *g)
{
    const oct_value *v = g->last->out[0];
    const oct_node *u = oct_sole_user(v);
    const oct_tensor *c;
    int wide = 0;

    if (!is_free(f, u) || u->op != &oct_op_add || oct_node_in(g->anchor, 2)) return;
    c = oct_node_const(u, u->in[0] == v);
    if (!c || !oct_type_equal(&u->out[0]->type, &v->type)) return;
    for (int32_t d = 0; d < c->type.rank; d++)
        wide += c->type.dim[d] != 1;
    if (wide <= 1) take(f, g, u);
}

/* Mul(x, scalar) whose only consumer is the Add: the residual's factor, part of the group. */
static const oct_node *factor_of(const finder *f, const oct_value *v)
{
    const oct_node *n = v->producer;

    if (!is_free(f, n) || n->op != &oct_op_mul || !oct_sole_user(v)) return NULL;
    for (int i = 0; i < 2; i++)
        if (is_scalar(n->in[i]) && !n->in[1 - i]->data &&
            oct_type_equal(&n->in[1 - i]->type, &v->type))
            return n;
    return NULL;
}

static bool take_residual(finder *f, oct_fusion_group *g)
{
    const oct_value *v = g->last->out[0], *other;
    const oct_node *u = oct_sole_user(v), *mul;

    if (g->add || !is_free(f, u) || u->op != &oct_op_add || u->in[0] == u->in[1]) return false;
    other = u->in[u->in[0] == v];
    if (other->data || !oct_type_equal(&other->type, &v->type)) return false;
    if ((mul = factor_of(f, other))) f->lead[mul->id] = g->anchor;
    take(f, g, u);
    g->add = u;
    return true;
}

static void grow(finder *f, oct_fusion_group *g)
{
    const unsigned may = g->anchor->op->fuses;
    const bool may_add = (may & OCT_FUSES_RESIDUAL) && (f->t->flags & OCT_TARGET_FUSES_RESIDUAL);
    bool has_act = false;

    if (!may || !is_whole(g->anchor) || g->anchor->out[0]->type.dtype != OCT_DTYPE_F32) return;
    if (may & OCT_FUSES_BIAS) take_bias(f, g);
    for (;;) {
        const bool had_add = g->add != NULL;

        if (!has_act && take_act(f, g, !had_add))
            has_act = true;
        else if (may_add && take_residual(f, g))
            has_act = false; /* one more may follow the Add */
        else
            break;
    }
}

/* Products first: a factor of the residual may come before the convolution it belongs to. */
static void find_all(finder *f, const oct_graph *g, oct_fusion_group *by_anchor)
{
    for (int pass = 0; pass < 2; pass++)
        for (const oct_node *n = g->first; n; n = n->next) {
            oct_fusion_group *group = &by_anchor[n->id];

            if (f->lead[n->id] || (pass == 0 && !(n->op->fuses & OCT_FUSES_RESIDUAL))) continue;
            f->lead[n->id] = n;
            *group = (oct_fusion_group){.anchor = n, .last = n};
            grow(f, group);
        }
}

oct_status oct_fusion_groups_find(const oct_graph *g, const oct_target *t, oct_arena *a,
                                  oct_fusion_groups *out)
{
    const size_t n_ids = (size_t)g->root->n_node_ids + 1;
    finder f = {.t = t, .lead = oct_arena_array(a, n_ids, sizeof(*f.lead))};
    oct_fusion_group *by_anchor = oct_arena_array(a, n_ids, sizeof(*by_anchor));

    *out = (oct_fusion_groups){
        .item = oct_arena_array(a, (size_t)g->n_nodes + 1, sizeof(oct_fusion_group)),
        .of_node = oct_arena_array(a, n_ids, sizeof(int32_t))};
    if (!f.lead || !by_anchor || !out->item || !out->of_node) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n_ids; i++)
        out->of_node[i] = -1;
    find_all(&f, g, by_anchor);
    for (const oct_node *n = g->first; n; n = n->next) {
        if (!by_anchor[n->id].anchor) continue;
        out->of_node[n->id] = out->n;
        out->item[out->n++] = by_anchor[n->id];
    }
    for (const oct_node *n = g->first; n; n = n->next)
        out->of_node[n->id] = out->of_node[f.lead[n->id]->id];
    return OCT_OK;
}
