/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes are faster in integers. Each node has a cost in integers and one in float, and a
 * value that crosses from one to the other costs a conversion. The cheapest partition of the
 * network is a minimum cut, so a single layer stays with its neighbours unless changing it pays two
 * conversions.
 */
#include "op/channels.h"
#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/fallback/fallback_parts.h"
#include "quant/fallback/min_cut.h"

#define BLOCK      16    /* channels of float convolutions */
#define MOST_NODES 50000 /* a limit on time; larger networks are not cut */

typedef struct pricer {
    const oct_qmap *m;
    const oct_target *t;
    oct_min_cut *cut; /* nodes by id, then two things for each value id: see price_value() */
    int32_t n_nodes;
} pricer;

/* --- prices --- */

static double elements(const oct_value *v)
{
    return v && oct_type_is_static(&v->type) ? (double)oct_type_span(&v->type, 0, v->type.rank) : 0;
}

static int64_t price(const oct_cost *c, double n, double macs, int64_t channels)
{
    const int64_t lanes = OCT_MAX(c->lanes, 1);
    const int64_t rounded = (channels + lanes - 1) / lanes * lanes;
    const double more = channels > 0 ? (double)rounded / (double)channels : 1;

    return (int64_t)OCT_MIN(c->fixed + c->element * n + c->mac * macs * more, 1e9);
}

/* Is this the product of a gate, x * sigmoid(x)? *x: what the gate reads. */
static bool is_gated(const oct_node *n, const oct_value **x)
{
    for (int32_t i = 0; i < n->n_in && oct_node_is(n, &oct_op_mul); i++) {
        const oct_following_act b = oct_activation_after(n->in[i]);

        if (!b.gate || b.result != n->out[0]) continue;
        *x = n->in[i];
        return true;
    }
    return false;
}

static oct_cost_kind kind_of(const oct_node *n)
{
    const oct_value *x;
    oct_act act;

    if (oct_node_is_depthwise(n))
        return n->in[1]->type.dim[0] % BLOCK ? OCT_COST_DEPTHWISE_ODD : OCT_COST_DEPTHWISE;
    if (oct_node_is(n, &oct_op_conv)) return OCT_COST_CONV;
    if (oct_node_is(n, &oct_op_concat)) return OCT_COST_CONCAT;
    if (is_gated(n, &x)) return OCT_COST_GATE;
    if (oct_node_is(n, &oct_op_add) || oct_node_is(n, &oct_op_mul)) return OCT_COST_ADD;
    if (!oct_act_of(n, &act) || act.kind == OCT_ACT_RELU || act.kind == OCT_ACT_CLIP)
        return OCT_COST_NONE;
    /* The cost of a gate is in its Mul. */
    return oct_activation_after(n->in[0]).gate == n->out[0] ? OCT_COST_NONE : OCT_COST_ACT;
}

/* --- what may be integer --- */

static bool has_codes(const oct_qmap *m, const oct_value *v)
{
    const int32_t k = v ? m->of_value[v->id] : -1;

    return k >= 0 && m->points[k].state != OCT_QSTATE_OFF;
}

static bool reads_codes(const oct_qmap *m, const oct_node *n, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t k = n->in[i] ? oct_qmap_at(m, n, i) : -1;

        if (n->in[i] && !n->in[i]->data && (k < 0 || m->points[k].state == OCT_QSTATE_OFF))
            return false;
    }
    return true;
}

/* Relu and Clip after a convolution are fused with it. */
static const oct_node *leader_of(const oct_qmap *m, const oct_node *n)
{
    const oct_node *by = n->n_in > 0 && n->in[0] ? n->in[0]->producer : NULL;

    if (!oct_node_is(n, &oct_op_relu) && !oct_node_is(n, &oct_op_clip)) return NULL;
    return by && oct_qmap_conv_is_integer(m, by) && !has_codes(m, by->out[0]) ? by : NULL;
}

static bool may_be_integer(const pricer *p, const oct_node *n)
{
    const oct_qmap *m = p->m;

    if (oct_qmap_conv_is_integer(m, n) || leader_of(m, n)) return true;
    if (m->float_reason[n->id] || n->n_out < 1 || !has_codes(m, n->out[0])) return false;
    if (oct_node_moves_data(n)) return reads_codes(m, n, oct_node_n_data(n));
    return oct_target_computes(p->t, n->op) && reads_codes(m, n, n->n_in);
}

/* --- the network as a minimum cut: the source side is integer, the sink side float --- */

static oct_status together(const pricer *p, const oct_node *a, const oct_node *b)
{
    OCT_TRY(oct_min_cut_edge(p->cut, a->id, b->id, OCT_MIN_CUT_INFINITE));
    return oct_min_cut_edge(p->cut, b->id, a->id, OCT_MIN_CUT_INFINITE);
}

static oct_status price_node(const pricer *p, const oct_node *n)
{
    const oct_cost_row *row = &p->t->costs[kind_of(n)];
    const oct_node *leader = leader_of(p->m, n);
    const double size = elements(oct_node_out(n, 0));
    const double macs = n->op->macs ? (double)OCT_MAX(n->op->macs(n), (int64_t)0) : 0;
    const int64_t channels = oct_node_is(n, &oct_op_conv) ? n->in[1]->type.dim[0] : 0;
    const oct_value *x = NULL;

    if (!may_be_integer(p, n)) return oct_min_cut_terminals(p->cut, n->id, OCT_MIN_CUT_INFINITE, 0);
    OCT_TRY(oct_min_cut_terminals(p->cut, n->id, price(&row->integer, size, macs, channels),
                                  price(&row->floating, size, macs, channels)));
    if (leader) return together(p, n, leader);
    if (!is_gated(n, &x)) return OCT_OK;
    /* Sigmoid and Mul go together; their input is quantized only if the convolution is. */
    OCT_TRY(together(p, n, oct_activation_after(x).gate->producer));
    if (!x->producer) return OCT_OK;
    return oct_min_cut_edge(p->cut, n->id, x->producer->id, OCT_MIN_CUT_INFINITE);
}

/* Codes that are only moved have the scale of where they come from: they are not rounded later. */
static bool is_moved(const oct_qmap *m, const oct_value *v)
{
    const int32_t k = m->of_value[v->id];

    return k >= 0 && m->points[k].state == OCT_QSTATE_DOMINATED && v->producer &&
           oct_node_moves_data(v->producer);
}

/* A value is quantized, or dequantized, once for all consumers that need it so. */
static oct_status price_value(const pricer *p, const oct_value *v)
{
    const oct_cost_row *row = &p->t->costs[OCT_COST_BORDER];
    const int32_t rounded = p->n_nodes + 2 * v->id, dequantized = rounded + 1;
    const double size = elements(v);
    const int64_t into =
        is_moved(p->m, v) ? OCT_MIN_CUT_INFINITE : price(&row->integer, size, 0, 0);

    if (v->producer) {
        const bool is_accumulator =
            oct_qmap_conv_is_integer(p->m, v->producer) && !has_codes(p->m, v);
        const int64_t out_of = price(&row->floating, size, 0, 0);

        OCT_TRY(oct_min_cut_edge(p->cut, rounded, v->producer->id, into));
        /* Accumulators are written as float, so they are only transposed. */
        OCT_TRY(oct_min_cut_edge(p->cut, v->producer->id, dequantized,
                                 is_accumulator ? out_of / 2 : out_of));
    } else {
        OCT_TRY(oct_min_cut_terminals(p->cut, rounded, into, 0));
    }
    if (v->is_output) OCT_TRY(oct_min_cut_terminals(p->cut, dequantized, OCT_MIN_CUT_INFINITE, 0));
    for (int32_t i = 0; i < v->n_users; i++) {
        if (v->users[i]->graph != p->m->g) continue;
        OCT_TRY(oct_min_cut_edge(p->cut, v->users[i]->id, rounded, OCT_MIN_CUT_INFINITE));
        OCT_TRY(oct_min_cut_edge(p->cut, dequantized, v->users[i]->id, OCT_MIN_CUT_INFINITE));
    }
    return OCT_OK;
}

static bool is_activation(const oct_graph *g, const oct_value *v)
{
    return v && v->graph == g && !v->data && v->type.dtype == OCT_DTYPE_F32 &&
           !(v->producer && v->producer->graph != g);
}

oct_status oct_fallback_by_cost(const oct_qmap *m, const oct_target *t, oct_arena *a,
                                uint8_t *is_float)
{
    const oct_graph *root = m->g->root;
    pricer p = {m, t, NULL, root->n_node_ids};
    const int64_t n = (int64_t)root->n_node_ids + 2 * (int64_t)root->n_value_ids;
    uint8_t *is_integer_side = n <= MOST_NODES ? oct_arena_alloc(a, (size_t)n + 1) : NULL;

    if (!t->costs || n > MOST_NODES) return OCT_OK;
    if (!is_integer_side) return OCT_ERR_MEMORY;
    OCT_TRY(oct_min_cut_new(a, (int32_t)n, &p.cut));
    for (const oct_node *k = m->g->first; k; k = k->next)
        OCT_TRY(price_node(&p, k));
    for (int32_t i = 0; i < root->n_value_ids; i++)
        if (is_activation(m->g, root->values[i])) OCT_TRY(price_value(&p, root->values[i]));
    OCT_TRY(oct_min_cut_solve(p.cut, is_integer_side));
    for (const oct_node *k = m->g->first; k; k = k->next)
        is_float[k->id] = may_be_integer(&p, k) && !is_integer_side[k->id];
    return OCT_OK;
}
