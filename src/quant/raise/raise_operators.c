/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer operators expanded: DequantizeLinear on each operand, the float operator, QuantizeLinear
 * on the result.
 */
#include "op/channels.h"
#include "op/op.h"
#include "pass/integer/qdq.h"
#include "pass/integer/qlinear.h"
#include "pass/rewrite.h"
#include "quant/raise/raise_parts.h"

/* The result of the float node is the dequantized value: it is named after the codes. */
static oct_status name_result(oct_raising *r, oct_node *plain, const oct_value *codes)
{
    const char *name = oct_raise_name(r, codes->name);

    if (!name) return OCT_ERR_MEMORY;
    plain->out[0]->name = name;
    return OCT_OK;
}

/* Can the row be applied? Attributes of the Microsoft domain that change the layout prevent it. */
static bool is_plain(const oct_node *n, const oct_qlinear *row)
{
    static const char *const stops[] = {"channels_last", "opset"};

    for (size_t i = 0; i < OCT_COUNT(stops); i++) {
        const oct_attr *a = oct_node_attr(n, stops[i]);

        if (!a || a->kind != OCT_ATTR_INT) continue;
        if (i == 0 ? a->i != 0 : a->i > 0 && a->i < 13) return false;
    }
    for (int i = 0; i < row->n_data; i++)
        if (!oct_node_in(n, row->data[i]) || !oct_node_const(n, row->data[i] + 1)) return false;
    return oct_node_const(n, row->scale) != NULL;
}

static oct_status expand(oct_raising *r, oct_node *n, const oct_qlinear *row)
{
    const oct_value *codes = n->out[0];
    oct_node *plain;

    OCT_TRY(oct_qlinear_expand(n, row, &plain));
    return name_result(r, plain, codes);
}

/* --- Concat: any number of operands --- */

static oct_status expand_concat(oct_raising *r, oct_node *n)
{
    const oct_value *codes = n->out[0];
    oct_node *plain;

    OCT_TRY(oct_qlinear_expand_concat(n, &plain));
    return name_result(r, plain, codes);
}

static bool is_plain_concat(const oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (!n->in[i]) return false;
    return true;
}

/* --- moving integers --- */

/* The DequantizeLinear that all consumers of v are equivalent to. */
static bool read_as(const oct_value *v, oct_node **dq, oct_codes *c)
{
    if (!v || v->n_users == 0 || v->is_output) return false;
    for (int32_t i = 0; i < v->n_users; i++) {
        oct_codes other;

        if (v->users[i]->in[0] != v || !oct_node_is_dequantize(v->users[i])) return false;
        if (!oct_codes_of(v->users[i], &other) || other.n != 1) return false;
        if (i > 0 && !oct_codes_equal(c, &other)) return false;
        *c = other;
        *dq = v->users[i];
    }
    return true;
}

/* Reshape and similar nodes between Q and DQ: floats are moved instead of codes. */
static oct_status move_numbers(oct_raising *r, oct_node *n)
{
    const int32_t n_data = oct_node_n_data(n);
    oct_value *codes = n->n_out == 1 ? n->out[0] : NULL, *numbers;
    oct_node *dq = NULL;
    const char *name;
    oct_qdq l;
    oct_codes c;

    if (!codes || !read_as(codes, &dq, &c)) return OCT_OK;
    /* Padding writes the code 0, which is the value zero only then. */
    if (oct_node_is(n, &oct_op_pad) && oct_codes_zero(&c, 0) != 0) return OCT_OK;
    l = (oct_qdq){dq->in[1], oct_node_in(dq, 2), -1, false};
    for (int32_t i = 0; i < n_data; i++)
        if (!n->in[i] || n->in[i]->data || n->in[i]->type.dtype != c.dtype) return OCT_OK;
    for (int32_t i = 0; i < n_data; i++) {
        oct_value *x = NULL;

        OCT_TRY(oct_qdq_new(n->graph, n, false, n->name, n->in[i], &l, NULL, &x));
        OCT_TRY(oct_node_set_input(n, i, x));
    }
    if (!(name = oct_raise_name(r, codes->name))) return OCT_ERR_MEMORY;
    if (!(numbers = oct_value_new(n->graph, name, &codes->type))) return OCT_ERR_MEMORY;
    numbers->type.dtype = OCT_DTYPE_F32;
    n->out[0] = numbers;
    numbers->producer = n;
    codes->producer = NULL;
    return oct_qdq_new(n->graph, n->next, true, n->name, numbers, &l, codes, NULL);
}

/* From the end, so that a chain of data-movement nodes is seen from the DequantizeLinear after
 * it. */
oct_status oct_raise_operators(oct_raising *r)
{
    for (oct_node *n = r->g->last, *prev; n; n = prev) {
        const oct_qlinear *row = oct_qlinear_of(n);

        prev = n->prev;
        if (row && is_plain(n, row))
            OCT_TRY(expand(r, n, row));
        else if (oct_node_is(n, &oct_op_q_linear_concat) && is_plain_concat(n))
            OCT_TRY(expand_concat(r, n));
    }
    for (oct_node *n = r->g->last, *prev; n; n = prev) {
        prev = n->prev;
        if (oct_node_moves_data(n)) OCT_TRY(move_numbers(r, n));
    }
    return OCT_OK;
}
