/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand-qlinear: QLinearConv and similar operators become DequantizeLinear, the float operator and
 * QuantizeLinear: the form that integer plans are made from.
 */
#include <string.h>

#include "op/op.h"
#include "pass/integer/qdq.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

#define MAX_DATA 2

/* Where an operator keeps its operands; each data operand is followed by scale and zero point. */
static const struct form {
    const oct_op *op, *becomes;
    int n_data, data[MAX_DATA];
    int bias;         /* -1: none */
    int scale, zero;  /* of the result */
    int weight_axis;  /* scales of operand 1 may go along it */
    const char *only; /* an attribute that must be 0 */
} forms[] = {
    {&oct_op_q_linear_conv, &oct_op_conv, 2, {0, 3}, 8, 6, 7, 0, NULL},
    {&oct_op_q_linear_mat_mul, &oct_op_mat_mul, 2, {0, 3}, -1, 6, 7, 1, NULL},
    {&oct_op_q_linear_add, &oct_op_add, 2, {0, 3}, -1, 6, 7, -1, NULL},
    {&oct_op_q_linear_mul, &oct_op_mul, 2, {0, 3}, -1, 6, 7, -1, NULL},
    {&oct_op_q_linear_sigmoid, &oct_op_sigmoid, 1, {0}, -1, 3, 4, -1, NULL},
    {&oct_op_q_linear_leaky_relu, &oct_op_leaky_relu, 1, {0}, -1, 3, 4, -1, NULL},
    {&oct_op_q_linear_global_average_pool,
     &oct_op_global_average_pool,
     1,
     {0},
     -1,
     3,
     4,
     -1,
     "channels_last"},
    {&oct_op_q_linear_average_pool, &oct_op_average_pool, 1, {0}, -1, 3, 4, -1, "channels_last"},
};

static const struct form *find(const oct_node *n)
{
    for (size_t i = 0; i < OCT_COUNT(forms); i++)
        if (n->op == forms[i].op) return &forms[i];
    return NULL;
}

static bool is_positive(const oct_value *v)
{
    const oct_tensor *t = v ? v->data : NULL;

    if (!t || t->type.dtype != OCT_DTYPE_F32 || t->type.rank > 1) return false;
    for (int64_t i = 0, n = oct_tensor_len(t); i < n; i++)
        if (!(((const float *)t->data)[i] > 0)) return false;
    return true;
}

static bool is_single(const oct_value *v)
{
    return v && v->data && oct_tensor_len(v->data) == 1;
}

/*
 * Signed bytes at inputs and outputs of a graph stay signed, and no integer kernel accepts them. An
 * Add of them in float would round differently from the operator.
 */
static bool is_signed_border(const oct_node *n, const struct form *f)
{
    bool border = n->out[0]->is_output;

    if (n->op != &oct_op_q_linear_add && n->op != &oct_op_q_linear_mul) return false;
    for (int i = 0; i < f->n_data; i++)
        border = border || (!n->in[f->data[i]]->producer && !n->in[f->data[i]]->data);
    return border && n->out[0]->type.dtype == OCT_DTYPE_I8;
}

static bool fits(const oct_node *n, const struct form *f)
{
    const oct_attr *only = f->only ? oct_node_attr(n, f->only) : NULL;
    const oct_value *zero = oct_node_in(n, f->zero);

    if ((only && only->i) || n->n_out != 1 || !n->out[0] || is_signed_border(n, f)) return false;
    for (int i = 0; i < f->n_data; i++) {
        const oct_value *s = oct_node_in(n, f->data[i] + 1), *z = oct_node_in(n, f->data[i] + 2);

        if (!is_positive(s) || (z && !z->data)) return false;
        if (!is_single(s) && (i != 1 || f->weight_axis < 0)) return false;
        if (z && oct_tensor_len(z->data) != oct_tensor_len(s->data)) return false;
    }
    /* The type of the result is that of its zero point, or of the first operand. */
    if (!zero && n->in[f->data[0]]->type.dtype != OCT_DTYPE_U8) return false;
    return is_positive(oct_node_in(n, f->scale)) && is_single(n->in[f->scale]) &&
           (!zero || is_single(zero)) && n->out[0]->type.dtype != OCT_DTYPE_NONE;
}

/* int32 codes whose scale is that of the accumulator. */
static oct_status dequantize_bias(oct_node *n, const struct form *f, oct_value **out)
{
    const oct_tensor *x = n->in[f->data[0] + 1]->data, *w = n->in[f->data[1] + 1]->data;
    const int64_t len = oct_tensor_len(w);
    float *scale = oct_calloc(n->graph->ctx, (size_t)len, sizeof(*scale));
    oct_qdq l = {.axis = len > 1 ? 0 : -1};
    oct_status st;

    if (!scale) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < len; i++)
        scale[i] = ((const float *)x->data)[0] * ((const float *)w->data)[i];
    st = oct_qdq_scales(n, scale, len, &l.scale);
    oct_free(n->graph->ctx, scale);
    if (st) return st;
    return oct_qdq_new(n->graph, n, false, n->name, n->in[f->bias], &l, NULL, out);
}

static oct_status copy_attrs(const oct_node *from, oct_node *to)
{
    for (int i = 0, k = oct_op_n_attrs(from->op); i < k; i++)
        for (int j = 0, m = oct_op_n_attrs(to->op); j < m; j++)
            if (from->attr[i].given && strcmp(to->op->attrs[j].name, from->op->attrs[i].name) == 0)
                OCT_TRY(oct_node_set_attr(to, to->op->attrs[j].name, &from->attr[i]));
    return OCT_OK;
}

static oct_status expand(oct_node *n, const struct form *f)
{
    /* ONNX Runtime adds such codes as they are; between Q and DQ it makes them unsigned first. */
    const oct_qdq out = {n->in[f->scale], oct_node_in(n, f->zero), -1,
                         n->out[0]->type.dtype == OCT_DTYPE_I8};
    oct_value *in[MAX_DATA + 1] = {NULL}, *y = n->out[0];
    oct_node *made;
    int32_t n_in = f->n_data;

    for (int i = 0; i < f->n_data; i++) {
        const oct_qdq l = {n->in[f->data[i] + 1], oct_node_in(n, f->data[i] + 2),
                           is_single(n->in[f->data[i] + 1]) ? -1 : f->weight_axis};

        OCT_TRY(oct_qdq_new(n->graph, n, false, n->name, n->in[f->data[i]], &l, NULL, &in[i]));
    }
    if (f->bias >= 0 && oct_node_in(n, f->bias)) OCT_TRY(dequantize_bias(n, f, &in[n_in++]));
    made = oct_node_new(n->graph, n, n->name, f->becomes, in, n_in, NULL, 1);
    if (!made) return OCT_ERR_MEMORY;
    made->doc = n->doc;
    OCT_TRY(copy_attrs(n, made));
    OCT_TRY(oct_node_infer(made));
    n->out[0] = NULL;
    y->producer = NULL;
    OCT_TRY(oct_qdq_new(n->graph, n, true, n->name, made->out[0], &out, y, NULL));
    oct_node_remove(n);
    return OCT_OK;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        const struct form *f = find(n);

        next = n->next;
        if (!f || !fits(n, f)) continue;
        OCT_TRY(expand(n, f));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_expand_qlinear = {
    .name = "expand-qlinear",
    .help = "make DequantizeLinear, the operator and QuantizeLinear of QLinearConv and its like",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_INTEGER_PLANS,
};
