/* SPDX-License-Identifier: Apache-2.0 */
/* unsign-codes: signed 8-bit activations become unsigned, codes and zero points plus 128. */
#include "op/channels.h"
#include "op/op.h"
#include "pass/integer/qdq.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* Nodes between a QuantizeLinear and its DequantizeLinear, one after the other. */
#define MAX_CHAIN 16

/* Files with integer operators move codes: Split, MaxPool, Reshape. Adding 128 changes no order. */
static bool moves_codes(const oct_node *n, const oct_value *v)
{
    if (!oct_node_moves_data(n) || oct_node_n_data(n) != 1 || n->in[0] != v) return false;
    if (oct_node_is(n, &oct_op_pad)) return false; /* it writes the code 0 */
    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i] == v) return false;
    return true;
}

static bool only_dequantized(const oct_value *v, int depth)
{
    oct_codes c;

    if (v->is_output || v->n_users == 0 || depth > MAX_CHAIN) return false;
    for (int32_t i = 0; i < v->n_users; i++) {
        const oct_node *n = v->users[i];

        if (n->graph != v->graph) return false;
        if (moves_codes(n, v)) {
            for (int32_t k = 0; k < n->n_out; k++)
                if (n->out[k] && n->out[k]->type.dtype == OCT_DTYPE_I8 &&
                    !only_dequantized(n->out[k], depth + 1))
                    return false;
            continue;
        }
        if (!oct_codes_of(n, &c) || !oct_node_is_dequantize(n) || n->in[0] != v) return false;
    }
    return true;
}

static oct_status set_zero(oct_node *n, const oct_codes *c)
{
    oct_value *old = oct_node_in(n, 2), *v;
    int32_t *zero = oct_calloc(n->graph->ctx, (size_t)c->n, sizeof(*zero));
    oct_status st;

    if (!zero) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < c->n; i++)
        zero[i] = oct_codes_zero(c, i) + 128;
    st = oct_qdq_zeros(n, OCT_DTYPE_U8, zero, c->n, &v);
    oct_free(n->graph->ctx, zero);
    if (!st) st = oct_node_set_input(n, 2, v);
    return !st && old ? oct_prune(old) : st;
}

/* What only_dequantized() has found, made unsigned. */
static oct_status unsign_users(oct_value *v)
{
    v->type.dtype = OCT_DTYPE_U8;
    for (int32_t i = 0; i < v->n_users; i++) {
        oct_node *n = v->users[i];
        oct_codes from;

        if (!oct_node_is_dequantize(n)) {
            for (int32_t k = 0; k < n->n_out; k++)
                if (n->out[k] && n->out[k]->type.dtype == OCT_DTYPE_I8)
                    OCT_TRY(unsign_users(n->out[k]));
            continue;
        }
        v->type.dtype = OCT_DTYPE_I8; /* as its consumer still sees it */
        oct_codes_of(n, &from);
        v->type.dtype = OCT_DTYPE_U8;
        OCT_TRY(set_zero(n, &from));
    }
    return OCT_OK;
}

static oct_status unsign(oct_node *q, const oct_codes *c)
{
    OCT_TRY(oct_node_set_int(q, "output_dtype", 0));
    OCT_TRY(set_zero(q, c));
    return unsign_users(q->out[0]);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first; n; n = n->next) {
        oct_codes c;

        if (!oct_node_is_quantize(n) || !oct_codes_of(n, &c) || c.dtype != OCT_DTYPE_I8) continue;
        if (!only_dequantized(n->out[0], 0)) continue;
        OCT_TRY(unsign(n, &c));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_unsign_codes = {
    .name = "unsign-codes",
    .help = "make unsigned bytes of activations quantized to signed ones",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_INTEGER_PLANS,
};
