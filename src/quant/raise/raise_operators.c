/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer operators expanded: DequantizeLinear on each operand, the float operator, QuantizeLinear
 * on the result. One row for each operator says where its operands are.
 */
#include <string.h>

#include "op/channels.h"
#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/raise/raise_parts.h"

enum { NO = -1 };

typedef struct row {
    const oct_op *op, *plain;
    int32_t operands[2][3]; /* value, scale, zero point */
    int32_t bias;           /* int32, scale of both; NO */
    int32_t result[2];      /* scale, zero point */
    int weight_axis;        /* of the second operand's scales, from the end if negative */
} row;

static const row rows[] = {
    {&oct_op_q_linear_conv, &oct_op_conv, {{0, 1, 2}, {3, 4, 5}}, 8, {6, 7}, 0},
    {&oct_op_q_linear_mat_mul, &oct_op_mat_mul, {{0, 1, 2}, {3, 4, 5}}, NO, {6, 7}, -1},
    {&oct_op_q_gemm, &oct_op_gemm, {{0, 1, 2}, {3, 4, 5}}, 6, {7, 8}, -1},
    {&oct_op_q_linear_add, &oct_op_add, {{0, 1, 2}, {3, 4, 5}}, NO, {6, 7}, NO},
    {&oct_op_q_linear_mul, &oct_op_mul, {{0, 1, 2}, {3, 4, 5}}, NO, {6, 7}, NO},
    {&oct_op_q_linear_average_pool, &oct_op_average_pool, {{0, 1, 2}, {NO}}, NO, {3, 4}, NO},
    {&oct_op_q_linear_global_average_pool,
     &oct_op_global_average_pool,
     {{0, 1, 2}, {NO}},
     NO,
     {3, 4},
     NO},
    {&oct_op_q_linear_leaky_relu, &oct_op_leaky_relu, {{0, 1, 2}, {NO}}, NO, {3, 4}, NO},
    {&oct_op_q_linear_sigmoid, &oct_op_sigmoid, {{0, 1, 2}, {NO}}, NO, {3, 4}, NO},
    {&oct_op_q_linear_softmax, &oct_op_softmax, {{0, 1, 2}, {NO}}, NO, {3, 4}, NO},
};

static const row *row_of(const oct_node *n)
{
    for (size_t i = 0; i < OCT_COUNT(rows); i++)
        if (oct_node_is(n, rows[i].op)) return &rows[i];
    return NULL;
}

/* --- making nodes --- */

static oct_value *linear(oct_builder *b, const oct_op *op, oct_value *x, oct_value *scale,
                         oct_value *zero, int64_t axis)
{
    oct_value *const in[] = {x, scale, zero};
    oct_node *n = oct_emit_node(b, op, in, zero ? 3 : 2, 1);

    if (!n) return NULL;
    if (axis >= 0) b->status = oct_node_set_int(n, "axis", axis);
    if (!b->status) b->status = oct_node_infer(n);
    return b->status ? NULL : n->out[0];
}

/* The scale of an accumulator: one for each of the weight's. */
static oct_status bias_scale(oct_node *n, const oct_value *x, const oct_value *w, oct_value **out)
{
    oct_tensor *t = NULL;

    if (!x || !w || !x->data || !w->data || oct_tensor_len(x->data) != 1 ||
        x->type.dtype != OCT_DTYPE_F32 || w->type.dtype != OCT_DTYPE_F32)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "its scales are not constants");
    OCT_TRY(oct_tensor_copy(n->graph->ctx, w->data, &t));
    for (int64_t i = 0, len = oct_tensor_len(t); i < len; i++)
        ((float *)t->data)[i] *= ((const float *)x->data->data)[0];
    *out = oct_const_for(n, "bias_scale", t);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

/* Attributes that both operators have. */
static oct_status copy_attrs(const oct_node *from, oct_node *to)
{
    for (int i = 0, k = oct_op_n_attrs(from->op); i < k; i++) {
        const char *name = from->op->attrs[i].name;
        bool is_known = false;

        for (int j = 0, n = oct_op_n_attrs(to->op); j < n; j++)
            is_known = is_known || strcmp(to->op->attrs[j].name, name) == 0;
        if (is_known && from->attr[i].given) OCT_TRY(oct_node_set_attr(to, name, &from->attr[i]));
    }
    return OCT_OK;
}

/* The float node keeps the operator's name, and its result is the dequantized value. */
static oct_status name_parts(oct_raising *r, oct_node *plain, oct_node *q)
{
    const char *name = plain->name, *value = oct_raise_name(r, q->out[0]->name);

    if (!value) return OCT_ERR_MEMORY;
    plain->name = q->name;
    q->name = name;
    plain->out[0]->name = value;
    return OCT_OK;
}

/* Can the row be applied? Attributes of the Microsoft domain that change the layout prevent it. */
static bool is_plain(const oct_node *n, const row *r)
{
    static const char *const stops[] = {"channels_last", "opset"};

    for (size_t i = 0; i < OCT_COUNT(stops); i++) {
        const oct_attr *a = oct_node_attr(n, stops[i]);

        if (!a || a->kind != OCT_ATTR_INT) continue;
        if (i == 0 ? a->i != 0 : a->i > 0 && a->i < 13) return false;
    }
    for (int i = 0; i < 2; i++)
        if (r->operands[i][0] >= 0 &&
            (!oct_node_in(n, r->operands[i][0]) || !oct_node_const(n, r->operands[i][1])))
            return false;
    return oct_node_const(n, r->result[0]) != NULL;
}

static oct_status operand(oct_builder *b, oct_node *n, const int32_t at[3], int axis,
                          bool is_weight, oct_value **out)
{
    oct_value *x = oct_node_in(n, at[0]);
    const int64_t rank = x->type.rank;

    if (is_weight && axis < 0 && rank > 0) axis += (int)rank;
    *out = linear(b, &oct_op_dequantize_linear, x, oct_node_in(n, at[1]), oct_node_in(n, at[2]),
                  is_weight ? axis : -1);
    return b->status;
}

static oct_status expand(oct_raising *raising, oct_node *n, const row *r)
{
    oct_builder b = {.g = n->graph, .before = n, .prefix = n->name};
    oct_value *in[3] = {0}, *scale = NULL, *y;
    oct_node *plain, *q = NULL;
    int32_t n_in = 0;

    for (int i = 0; i < 2; i++)
        if (r->operands[i][0] >= 0)
            OCT_TRY(operand(&b, n, r->operands[i], r->weight_axis, i == 1, &in[n_in++]));
    if (r->bias >= 0 && oct_node_in(n, r->bias)) {
        OCT_TRY(bias_scale(n, oct_node_in(n, r->operands[0][1]), oct_node_in(n, r->operands[1][1]),
                           &scale));
        in[n_in++] = linear(&b, &oct_op_dequantize_linear, oct_node_in(n, r->bias), scale, NULL, 0);
        OCT_TRY(b.status);
    }
    if (!(plain = oct_emit_node(&b, r->plain, in, n_in, 1))) return b.status;
    OCT_TRY(copy_attrs(n, plain));
    OCT_TRY(oct_node_infer(plain));
    y = plain->out[0];
    {
        oct_value *const q_in[] = {y, oct_node_in(n, r->result[0]), oct_node_in(n, r->result[1])};

        OCT_TRY(oct_node_become(n, &oct_op_quantize_linear, q_in, q_in[2] ? 3 : 2, &q));
    }
    OCT_TRY(name_parts(raising, plain, q));
    return oct_node_infer(q);
}

/* --- Concat: any number of operands --- */

static oct_status expand_concat(oct_raising *r, oct_node *n)
{
    enum { Y_SCALE, Y_ZERO, FIRST };
    oct_builder b = {.g = n->graph, .before = n, .prefix = n->name};
    const int32_t n_parts = (n->n_in - FIRST) / 3;
    oct_value **in = oct_arena_array(n->graph->arena, (size_t)OCT_MAX(n_parts, 1), sizeof(*in));
    oct_node *plain, *q = NULL;

    if (!in) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n_parts; i++)
        in[i] = linear(&b, &oct_op_dequantize_linear, n->in[FIRST + 3 * i],
                       n->in[FIRST + 3 * i + 1], n->in[FIRST + 3 * i + 2], -1);
    if (b.status || !(plain = oct_emit_node(&b, &oct_op_concat, in, n_parts, 1))) return b.status;
    OCT_TRY(copy_attrs(n, plain));
    OCT_TRY(oct_node_infer(plain));
    {
        oct_value *const q_in[] = {plain->out[0], n->in[Y_SCALE], n->in[Y_ZERO]};

        OCT_TRY(oct_node_become(n, &oct_op_quantize_linear, q_in, q_in[2] ? 3 : 2, &q));
    }
    OCT_TRY(name_parts(r, plain, q));
    return oct_node_infer(q);
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
    oct_builder b = {.g = n->graph, .before = n, .prefix = n->name};
    const int32_t n_data = oct_node_n_data(n);
    oct_node *dq = NULL, *q;
    const char *name;
    oct_value *scale, *zero, *codes = n->n_out == 1 ? n->out[0] : NULL, *numbers;
    oct_codes c;

    if (!codes || !read_as(codes, &dq, &c)) return OCT_OK;
    /* Padding writes the code 0, which is the value zero only then. */
    if (oct_node_is(n, &oct_op_pad) && oct_codes_zero(&c, 0) != 0) return OCT_OK;
    scale = dq->in[1];
    zero = oct_node_in(dq, 2);
    for (int32_t i = 0; i < n_data; i++)
        if (!n->in[i] || n->in[i]->data || n->in[i]->type.dtype != c.dtype) return OCT_OK;
    for (int32_t i = 0; i < n_data; i++) {
        oct_value *x = linear(&b, &oct_op_dequantize_linear, n->in[i], scale, zero, -1);

        OCT_TRY(b.status);
        OCT_TRY(oct_node_set_input(n, i, x));
    }
    if (!(name = oct_raise_name(r, codes->name))) return OCT_ERR_MEMORY;
    if (!(numbers = oct_value_new(n->graph, name, &codes->type))) return OCT_ERR_MEMORY;
    numbers->type.dtype = OCT_DTYPE_F32;
    n->out[0] = numbers;
    numbers->producer = n;
    {
        oct_value *const in[] = {numbers, scale, zero};

        q = oct_node_new(n->graph, n->next, oct_graph_fresh_name(n->graph, n->name),
                         &oct_op_quantize_linear, in, zero ? 3 : 2, &codes, 1);
    }
    return q ? oct_node_infer(q) : OCT_ERR_MEMORY;
}

/* From the end, so that a chain of data-movement nodes is seen from the DequantizeLinear after
 * it. */
oct_status oct_raise_operators(oct_raising *r)
{
    for (oct_node *n = r->g->last, *prev; n; n = prev) {
        const row *how = row_of(n);

        prev = n->prev;
        if (how && is_plain(n, how))
            OCT_TRY(expand(r, n, how));
        else if (oct_node_is(n, &oct_op_q_linear_concat) && is_plain_concat(n))
            OCT_TRY(expand_concat(r, n));
    }
    for (oct_node *n = r->g->last, *prev; n; n = prev) {
        prev = n->prev;
        if (oct_node_moves_data(n)) OCT_TRY(move_numbers(r, n));
    }
    return OCT_OK;
}
