/* SPDX-License-Identifier: Apache-2.0 */
/* The table of QLinear operators, and how one is expanded. */
#include "pass/integer/qlinear.h"

#include <string.h>

#include "op/op.h"
#include "pass/integer/qdq.h"
#include "pass/rewrite.h"

enum { NONE = -1 };

#define UNARY  1, {0}, NONE, 3, 4, OCT_QLINEAR_NO_AXIS
#define BINARY 2, {0, 3}, NONE, 6, 7

static const oct_qlinear rows[] = {
    {&oct_op_q_linear_conv, &oct_op_conv, 2, {0, 3}, 8, 6, 7, OCT_QLINEAR_FIRST, true},
    {&oct_op_q_linear_mat_mul, &oct_op_mat_mul, BINARY, OCT_QLINEAR_COLUMNS, true},
    {&oct_op_q_gemm, &oct_op_gemm, 2, {0, 3}, 6, 7, 8, OCT_QLINEAR_COLUMNS, false},
    {&oct_op_q_linear_add, &oct_op_add, BINARY, OCT_QLINEAR_NO_AXIS, true},
    {&oct_op_q_linear_mul, &oct_op_mul, BINARY, OCT_QLINEAR_NO_AXIS, true},
    {&oct_op_q_linear_average_pool, &oct_op_average_pool, UNARY, true},
    {&oct_op_q_linear_global_average_pool, &oct_op_global_average_pool, UNARY, true},
    {&oct_op_q_linear_leaky_relu, &oct_op_leaky_relu, UNARY, true},
    {&oct_op_q_linear_sigmoid, &oct_op_sigmoid, UNARY, true},
    {&oct_op_q_linear_softmax, &oct_op_softmax, UNARY, false},
};

const oct_qlinear *oct_qlinear_of(const oct_node *n)
{
    for (size_t i = 0; i < OCT_COUNT(rows); i++)
        if (n->op == rows[i].op) return &rows[i];
    return NULL;
}

bool oct_node_is_qlinear(const oct_node *n)
{
    return strncmp(n->op->name, "QLinear", 7) == 0 || n->op == &oct_op_q_gemm;
}

/* Gives `to` the attributes of `from` that both operators have. */
static oct_status copy_attrs(const oct_node *from, oct_node *to)
{
    for (int i = 0, k = oct_op_n_attrs(from->op); i < k; i++)
        for (int j = 0, m = oct_op_n_attrs(to->op); j < m; j++)
            if (from->attr[i].given && strcmp(to->op->attrs[j].name, from->op->attrs[i].name) == 0)
                OCT_TRY(oct_node_set_attr(to, to->op->attrs[j].name, &from->attr[i]));
    return OCT_OK;
}

/* The axis of operand i's scales; -1: one for all. */
static int64_t axis_of(const oct_node *n, const oct_qlinear *row, int i)
{
    const oct_value *x = n->in[row->data[i]], *scale = n->in[row->data[i] + 1];
    const oct_attr *transposed = oct_node_attr(n, "transB");

    if (i != 1 || row->axis == OCT_QLINEAR_NO_AXIS || oct_tensor_len(scale->data) == 1) return -1;
    if (row->axis == OCT_QLINEAR_FIRST || (transposed && transposed->i)) return 0;
    return x->type.rank > 0 ? x->type.rank - 1 : 1;
}

/* int32 codes whose scale is that of the accumulator: one for each of the weight's. */
static oct_status dequantize_bias(oct_node *n, const oct_qlinear *row, oct_value **out)
{
    const oct_tensor *x = n->in[row->data[0] + 1]->data, *w = n->in[row->data[1] + 1]->data;
    const oct_attr *alpha = oct_node_attr(n, "alpha");
    const int64_t len = oct_tensor_len(w);
    const oct_type type = oct_type_make(OCT_DTYPE_F32, len > 1, &len);
    oct_qdq l = {.axis = len > 1 ? OCT_MAX(n->in[row->bias]->type.rank - 1, 0) : -1};
    oct_tensor *t = NULL;

    if (oct_tensor_len(x) != 1 || x->type.dtype != OCT_DTYPE_F32 || w->type.dtype != OCT_DTYPE_F32)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "its scales are not f32");
    OCT_TRY(oct_tensor_make(n->graph->ctx, &type, &t));
    for (int64_t i = 0; i < len; i++)
        ((float *)t->data)[i] =
            ((const float *)x->data)[0] * ((const float *)w->data)[i] * (alpha ? alpha->f : 1.0f);
    if (!(l.scale = oct_const_for(n, "bias_scale", t))) return OCT_ERR_MEMORY;
    return oct_qdq_new(n->graph, n, false, n->name, n->in[row->bias], &l, NULL, out);
}

oct_status oct_qlinear_replace(oct_node *n, oct_node *plain, const oct_qdq *result)
{
    oct_value *y = n->out[0];

    plain->doc = n->doc;
    OCT_TRY(copy_attrs(n, plain));
    OCT_TRY(oct_node_infer(plain));
    n->out[0] = NULL;
    y->producer = NULL;
    OCT_TRY(oct_qdq_new(n->graph, n, true, n->name, plain->out[0], result, y, NULL));
    oct_node_remove(n);
    return OCT_OK;
}

oct_status oct_qlinear_expand(oct_node *n, const oct_qlinear *row, oct_node **plain)
{
    const oct_qdq result = {n->in[row->scale], oct_node_in(n, row->zero), -1, false};
    oct_value *in[OCT_QLINEAR_MAX_DATA + 1] = {NULL};
    int32_t n_in = row->n_data;

    for (int i = 0; i < row->n_data; i++) {
        const int32_t at = row->data[i];
        const oct_qdq l = {n->in[at + 1], oct_node_in(n, at + 2), axis_of(n, row, i), false};

        OCT_TRY(oct_qdq_new(n->graph, n, false, n->name, n->in[at], &l, NULL, &in[i]));
    }
    if (row->bias >= 0 && oct_node_in(n, row->bias)) OCT_TRY(dequantize_bias(n, row, &in[n_in++]));
    *plain = oct_node_new(n->graph, n, n->name, row->plain, in, n_in, NULL, 1);
    return *plain ? oct_qlinear_replace(n, *plain, &result) : OCT_ERR_MEMORY;
}

oct_status oct_qlinear_expand_concat(oct_node *n, oct_node **plain)
{
    enum { Y_SCALE, Y_ZERO, FIRST };
    const oct_qdq result = {n->in[Y_SCALE], n->in[Y_ZERO], -1, false};
    const int32_t n_parts = (n->n_in - FIRST) / 3;
    oct_value **in = oct_arena_array(n->graph->arena, (size_t)OCT_MAX(n_parts, 1), sizeof(*in));

    if (!in) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n_parts; i++) {
        oct_value *const *part = &n->in[FIRST + 3 * i];
        const oct_qdq l = {part[1], part[2], -1, false};

        OCT_TRY(oct_qdq_new(n->graph, n, false, n->name, part[0], &l, NULL, &in[i]));
    }
    *plain = oct_node_new(n->graph, n, n->name, &oct_op_concat, in, n_parts, NULL, 1);
    return *plain ? oct_qlinear_replace(n, *plain, &result) : OCT_ERR_MEMORY;
}
