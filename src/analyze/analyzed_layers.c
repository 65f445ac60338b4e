/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of an analysis: what is known of each layer without running it. */
#include "analyze/analyze_parts.h"

#include <string.h>

#include "graph/op.h"
#include "stat/distance.h"

/* --- weights --- */

/* Computes values that depend on constants only; by value id of the quantized network. */
static oct_status fold(const oct_pair_layer *u, oct_tensor **known)
{
    oct_tensor *in[OCT_MAX_IN] = {NULL}, *out[1] = {NULL};

    for (int32_t k = 0; k < u->n_subgraph; k++) {
        const oct_node *n = u->subgraph[k];
        bool is_const = n->n_in > 0 && n->n_in <= OCT_MAX_IN && n->n_out == 1 && n->op->ref;

        for (int32_t i = 0; i < n->n_in && is_const; i++) {
            in[i] = !n->in[i] ? NULL : n->in[i]->data ? n->in[i]->data : known[n->in[i]->id];
            is_const = in[i] || !n->in[i];
        }
        if (!is_const || !n->out[0] || known[n->out[0]->id]) continue;
        OCT_TRY(oct_node_eval(n, in, out, NULL));
        known[n->out[0]->id] = out[0];
    }
    return OCT_OK;
}

/* The node of the layer's quantized subgraph that corresponds to its anchor. */
static const oct_node *anchor_in(const oct_pair_layer *u)
{
    for (int32_t k = 0; k < u->n_subgraph; k++)
        if (u->subgraph[k]->op == u->anchor->op) return u->subgraph[k];
    return NULL;
}

static double noise_of(const oct_tensor *exact, const oct_tensor *t)
{
    oct_distance d;

    if (!exact || !t || !oct_type_equal(&exact->type, &t->type) || t->type.dtype != OCT_DTYPE_F32)
        return -1;
    oct_distance_init(&d, NULL);
    oct_distance_see(&d, exact->data, t->data, oct_tensor_len(t));
    return oct_distance_noise(&d);
}

static oct_status look_at_weights(const oct_pair *p, const oct_pair_layer *u, oct_analyzed_layer *l)
{
    const oct_node *n = u->has_weights ? anchor_in(u) : NULL;
    const oct_value *w = n ? oct_node_in(n, 1) : NULL;
    oct_tensor **known;
    oct_status st;

    if (!w) return OCT_OK;
    known = oct_calloc(p->ctx, (size_t)p->quantized->n_value_ids + 1, sizeof(*known));
    if (!known) return OCT_ERR_MEMORY;
    st = fold(u, known);
    if (!st)
        l->weight_noise = noise_of(oct_node_const(u->anchor, 1), w->data ? w->data : known[w->id]);
    for (int32_t i = 0; i < p->quantized->n_value_ids; i++)
        oct_tensor_unref(known[i]);
    oct_free(p->ctx, known);
    return st;
}

/* --- rows --- */

static int32_t bits_of(const oct_value *v)
{
    return oct_dtype_get(v->type.dtype)->bits;
}

/* Does the operator only move data, so that codes before it are codes after it? */
static bool moves_only(const oct_op *op)
{
    if (op->flags & OCT_OP_ELEMENTWISE) return false;
    return (op->flags & (OCT_OP_VIEW | OCT_OP_IS_COPY | OCT_OP_PICKS)) ||
           op->flow == OCT_FLOW_CONCAT || op->flow == OCT_FLOW_PASS || !strcmp(op->name, "Split");
}

/* Bits of the codes that v comes from, through operators that move data; 0: it comes from
 * floats. */
static int32_t bits_read(const oct_value *v, int depth)
{
    const oct_node *n = v ? v->producer : NULL;
    int32_t bits = 0;

    if (!n || depth > 8) return 0;
    if (oct_node_is_dequantize(n)) return n->in[0]->data ? 0 : bits_of(n->in[0]);
    if (!moves_only(n->op)) return 0;
    for (int32_t i = 0; i < (n->op->flow == OCT_FLOW_CONCAT ? n->n_in : 1); i++) {
        const int32_t one = bits_read(n->in[i], depth + 1);

        if (!one) return 0;
        bits = OCT_MAX(bits, one);
    }
    return bits;
}

/* Integer constants are weights, unless they are 32-bit biases. */
static void look_at_codes(const oct_pair_layer *u, oct_analyzed_layer *l)
{
    for (int32_t k = 0; k < u->n_subgraph; k++) {
        const oct_node *n = u->subgraph[k];
        const oct_value *codes = oct_node_is_dequantize(n) ? n->in[0] : NULL;

        if (!codes || codes->type.dtype == OCT_DTYPE_I32) continue;
        if (codes->data ||
            (codes->producer && codes->producer->in[0] && codes->producer->in[0]->data))
            l->weight_bits = OCT_MAX(l->weight_bits, bits_of(codes));
        else
            l->input_bits = OCT_MAX(l->input_bits, bits_of(codes));
    }
    if (!l->input_bits && anchor_in(u)) l->input_bits = bits_read(anchor_in(u)->in[0], 0);
}

static oct_status fill_row(const oct_pair *p, const oct_pair_layer *u, oct_analyzed_layer *l)
{
    const oct_node *n = u->anchor;

    *l = (oct_analyzed_layer){.struct_size = sizeof(*l),
                              .name = n->name,
                              .op = n->op->name,
                              .in_tail = u->is_tail,
                              .macs = n->op->macs ? OCT_MAX(n->op->macs(n), (int64_t)0) : 0,
                              .weight_noise = -1,
                              .alone = oct_error_none(),
                              .all = oct_error_none()};
    if (u->has_weights) l->params = oct_tensor_len(n->in[1]->data);
    if (!u->is_integer) {
        l->reason = u->is_tail ? "in the tail, which was left in float" : "left in float";
        l->why = u->is_tail ? OCT_FLOAT_TAIL : OCT_FLOAT_OTHER;
        return OCT_OK;
    }
    look_at_codes(u, l);
    return look_at_weights(p, u, l);
}

/* Rows outlive the graphs of the pair. */
static oct_status keep_names(oct_analysis *a, oct_analyzed_layer *l)
{
    l->name = oct_arena_strdup(a->arena, l->name);
    l->op = oct_arena_strdup(a->arena, l->op);
    return l->name && l->op ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_analyze_layers(oct_analysis *a, const oct_pair *p)
{
    a->layers = oct_arena_array(a->arena, (size_t)p->n_layers + 1, sizeof(*a->layers));
    a->outputs = oct_arena_array(a->arena, (size_t)p->n_slices + 1, sizeof(*a->outputs));
    if (!a->layers || !a->outputs) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_layers; i++) {
        OCT_TRY(fill_row(p, &p->layers[i], &a->layers[i]));
        OCT_TRY(keep_names(a, &a->layers[i]));
        a->n_layers++;
    }
    for (int32_t i = 0; i < p->n_slices; i++) {
        a->outputs[i].error = oct_error_none();
        if (!(a->outputs[i].name = oct_arena_strdup(a->arena, p->slices[i].name)))
            return OCT_ERR_MEMORY;
        a->n_outputs++;
    }
    return OCT_OK;
}
