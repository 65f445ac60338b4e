/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byte-codes: activations of other integers become unsigned bytes, the only codes that integer
 * kernels have. Codes and zero points of signed ones are moved up: 128 for 8 bits, 8 for 4. Those
 * of fewer bits than a byte keep their largest code.
 */
#include "op/channels.h"
#include "op/op.h"
#include "op/quant.h"
#include "pass/integer/qdq.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* Nodes between a QuantizeLinear and its DequantizeLinear, one after the other. */
#define MAX_CHAIN 16

static bool fits_byte(oct_dtype t)
{
    return t == OCT_DTYPE_I8 || t == OCT_DTYPE_U4 || t == OCT_DTYPE_I4 || t == OCT_DTYPE_U2 ||
           t == OCT_DTYPE_I2;
}

/* Files with integer operators move codes: Split, MaxPool, Reshape. Adding a number changes no
 * order. */
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
                if (n->out[k] && n->out[k]->type.dtype == v->type.dtype &&
                    !only_dequantized(n->out[k], depth + 1))
                    return false;
            continue;
        }
        if (!oct_codes_of(n, &c) || !oct_node_is_dequantize(n) || n->in[0] != v) return false;
    }
    return true;
}

/* The node gets zero points of bytes, and the largest code if there are fewer. */
static oct_status set_codes(oct_node *n, const oct_codes *c)
{
    oct_value *old = oct_node_in(n, 2), *v;
    int32_t *zero = oct_calloc(n->graph->ctx, (size_t)c->n, sizeof(*zero)), low, high;
    oct_status st;

    if (!zero) return OCT_ERR_MEMORY;
    oct_codes_limits(c, &low, &high);
    for (int64_t i = 0; i < c->n; i++)
        zero[i] = oct_codes_zero(c, i) - low;
    st = oct_qdq_zeros(n, OCT_DTYPE_U8, zero, c->n, &v);
    oct_free(n->graph->ctx, zero);
    if (!st) st = oct_node_set_input(n, 2, v);
    if (!st && high - low < UINT8_MAX) st = oct_node_set_int(n, "last_code", high - low);
    return !st && old ? oct_prune(old) : st;
}

/* What only_dequantized() has found. */
static oct_status change_users(oct_value *v, oct_dtype was)
{
    v->type.dtype = OCT_DTYPE_U8;
    for (int32_t i = 0; i < v->n_users; i++) {
        oct_node *n = v->users[i];
        oct_codes from;

        if (!oct_node_is_dequantize(n)) {
            for (int32_t k = 0; k < n->n_out; k++)
                if (n->out[k] && n->out[k]->type.dtype == was)
                    OCT_TRY(change_users(n->out[k], was));
            continue;
        }
        v->type.dtype = was; /* as its consumer still sees it */
        oct_codes_of(n, &from);
        v->type.dtype = OCT_DTYPE_U8;
        OCT_TRY(set_codes(n, &from));
    }
    return OCT_OK;
}

static oct_status change(oct_node *q, const oct_codes *c)
{
    OCT_TRY(oct_node_set_int(q, "output_dtype", 0));
    OCT_TRY(set_codes(q, c));
    return change_users(q->out[0], c->dtype);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first; n; n = n->next) {
        oct_codes c;

        if (!oct_node_is_quantize(n) || !oct_codes_of(n, &c) || !fits_byte(c.dtype)) continue;
        if (!only_dequantized(n->out[0], 0)) continue;
        OCT_TRY(change(n, &c));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_byte_codes = {
    .name = "byte-codes",
    .help = "make unsigned bytes of activations quantized to other integers of at most 8 bits",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_INTEGER_PLANS,
};
