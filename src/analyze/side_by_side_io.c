/* SPDX-License-Identifier: Apache-2.0 */
/* Networks with integer inputs or outputs: QuantizeLinear after the inputs, DequantizeLinear
 * before the outputs. */
#include <string.h>

#include "analyze/side_by_side.h"
#include "op/op.h"

/* The first consumer that has the quantization parameters of v, or NULL. */
static oct_node *dequantizer_of(const oct_value *v)
{
    oct_codes c;

    for (int32_t i = 0; i < v->n_users; i++)
        if (oct_node_is_dequantize(v->users[i]) && v->users[i]->in[0] == v &&
            oct_codes_of(v->users[i], &c))
            return v->users[i];
    return NULL;
}

static oct_node *convert(oct_graph *g, oct_node *before, const oct_op *op, oct_value *x,
                         const oct_node *like)
{
    oct_value *in[3] = {x, like->in[1], oct_node_in(like, 2)};
    const oct_attr *axis = oct_node_attr(like, "axis");
    oct_node *n =
        oct_node_new(g, before, oct_graph_fresh_name(g, "border"), op, in, in[2] ? 3 : 2, NULL, 1);

    if (n && axis && axis->kind == OCT_ATTR_INT && oct_node_set_int(n, "axis", axis->i))
        return NULL;
    return n;
}

static oct_status feed_numbers(oct_graph *g, oct_value *v)
{
    oct_node *dq = dequantizer_of(v), *q;

    if (!dq) return OCT_OK; /* then it stays an integer input */
    v->type.dtype = OCT_DTYPE_F32;
    if (!(q = convert(g, g->first, &oct_op_quantize_linear, v, dq))) return OCT_ERR_MEMORY;
    for (int32_t k = v->n_users - 1; k >= 0; k--) {
        oct_node *u = v->users[k];

        if (u == q) continue;
        for (int32_t i = 0; i < u->n_in; i++)
            if (u->in[i] == v) OCT_TRY(oct_node_set_input(u, i, q->out[0]));
        k = v->n_users; /* the list has changed */
    }
    return oct_node_infer(q);
}

/* The dequantized values get the output's name. */
static oct_status give_numbers(oct_graph *g, int32_t at)
{
    oct_value *v = g->outputs[at];
    oct_codes c;
    oct_node *dq;

    if (!v->producer || !oct_node_is_quantize(v->producer) || !oct_codes_of(v->producer, &c))
        return OCT_OK;
    if (!(dq = convert(g, NULL, &oct_op_dequantize_linear, v, v->producer))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_node_infer(dq));
    g->outputs[at] = dq->out[0];
    dq->out[0]->is_output = true;
    v->is_output = false;
    {
        const char *name = v->name;

        v->name = dq->out[0]->name;
        dq->out[0]->name = name;
    }
    return OCT_OK;
}

static bool is_float(const oct_value *v)
{
    return v && v->type.dtype == OCT_DTYPE_F32;
}

oct_status oct_pair_float_io(oct_graph *quantized, const oct_graph *exact)
{
    for (int32_t i = 0; i < OCT_MIN(quantized->n_inputs, exact->n_inputs); i++)
        if (is_float(exact->inputs[i]) && !is_float(quantized->inputs[i]))
            OCT_TRY(feed_numbers(quantized, quantized->inputs[i]));
    for (int32_t i = 0; i < OCT_MIN(quantized->n_outputs, exact->n_outputs); i++)
        if (is_float(exact->outputs[i]) && !is_float(quantized->outputs[i]))
            OCT_TRY(give_numbers(quantized, i));
    return OCT_OK;
}
