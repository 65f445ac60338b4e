/* SPDX-License-Identifier: Apache-2.0 */
/* unsign-codes: signed 8-bit activations become unsigned, codes and zero points plus 128. */
#include "op/op.h"
#include "pass/integer/qdq.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool only_dequantized(const oct_value *v)
{
    oct_codes c;

    if (v->is_output || v->n_users == 0) return false;
    for (int32_t i = 0; i < v->n_users; i++)
        if (v->users[i]->graph != v->graph || !oct_codes_of(v->users[i], &c) ||
            !oct_node_is_dequantize(v->users[i]) || v->users[i]->in[0] != v)
            return false;
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

static oct_status unsign(oct_node *q, const oct_codes *c)
{
    oct_value *v = q->out[0];

    v->type.dtype = OCT_DTYPE_U8;
    OCT_TRY(oct_node_set_int(q, "output_dtype", 0));
    OCT_TRY(set_zero(q, c));
    for (int32_t i = 0; i < v->n_users; i++) {
        oct_codes from;

        v->type.dtype = OCT_DTYPE_I8; /* as its consumer still sees it */
        oct_codes_of(v->users[i], &from);
        v->type.dtype = OCT_DTYPE_U8;
        OCT_TRY(set_zero(v->users[i], &from));
    }
    return OCT_OK;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first; n; n = n->next) {
        oct_codes c;

        if (!oct_node_is_quantize(n) || !oct_codes_of(n, &c) || c.dtype != OCT_DTYPE_I8) continue;
        if (!only_dequantized(n->out[0])) continue;
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
