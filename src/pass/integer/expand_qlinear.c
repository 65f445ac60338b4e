/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand-qlinear: QLinearConv and similar operators become DequantizeLinear, the float operator and
 * QuantizeLinear: the form that integer plans are made from.
 */
#include "op/op.h"
#include "pass/integer/qlinear.h"
#include "pass/pass.h"

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
static bool is_signed_border(const oct_node *n, const oct_qlinear *row)
{
    bool border = n->out[0]->is_output;

    if (n->op != &oct_op_q_linear_add && n->op != &oct_op_q_linear_mul) return false;
    for (int i = 0; i < row->n_data; i++)
        border = border || (!n->in[row->data[i]]->producer && !n->in[row->data[i]]->data);
    return border && n->out[0]->type.dtype == OCT_DTYPE_I8;
}

static bool fits(const oct_node *n, const oct_qlinear *row)
{
    const oct_attr *nhwc = oct_node_attr(n, "channels_last");
    const oct_value *zero = oct_node_in(n, row->zero);

    if ((nhwc && nhwc->i) || n->n_out != 1 || !n->out[0]) return false;
    for (int i = 0; i < row->n_data; i++) {
        const oct_value *s = oct_node_in(n, row->data[i] + 1),
                        *z = oct_node_in(n, row->data[i] + 2);

        if (!is_positive(s) || (z && !z->data)) return false;
        if (!is_single(s) && (i != 1 || row->axis == OCT_QLINEAR_NO_AXIS)) return false;
        if (z && oct_tensor_len(z->data) != oct_tensor_len(s->data)) return false;
    }
    /* The type of the result is that of its zero point, or of the first operand. */
    if (!zero && n->in[row->data[0]]->type.dtype != OCT_DTYPE_U8) return false;
    return is_positive(oct_node_in(n, row->scale)) && is_single(n->in[row->scale]) &&
           (!zero || is_single(zero)) && n->out[0]->type.dtype != OCT_DTYPE_NONE;
}

/* Each operand in turn has a scale and a zero point; the result's come first. */
static bool concat_fits(const oct_node *n)
{
    if (!oct_node_is(n, &oct_op_q_linear_concat) || n->n_out != 1 || !n->out[0]) return false;
    for (int32_t i = 0; i < n->n_in; i++) {
        const bool is_data = i >= 2 && (i - 2) % 3 == 0, is_scale = i == 0 || (i - 2) % 3 == 1;

        if (!n->in[i] || (is_data && n->in[i]->data)) return false;
        if (!is_data && !is_single(n->in[i])) return false;
        if (is_scale && !is_positive(n->in[i])) return false;
    }
    return n->out[0]->type.dtype != OCT_DTYPE_NONE;
}

static oct_status expand(oct_node *n, const oct_qlinear *row)
{
    oct_value *y = n->out[0];
    oct_node *plain;

    OCT_TRY(oct_qlinear_expand(n, row, &plain));
    /* ONNX Runtime adds such codes as they are; between Q and DQ it makes them unsigned first. */
    if (y->type.dtype != OCT_DTYPE_I8) return OCT_OK;
    return oct_node_set_int(y->producer, "was_signed", 1);
}

/* For integer plans only what their kernels compute better then; else all. */
static oct_status expand_graph(oct_graph *g, bool for_plans, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        const oct_qlinear *row = oct_qlinear_of(n);

        next = n->next;
        if (concat_fits(n)) {
            oct_node *plain;

            OCT_TRY(oct_qlinear_expand_concat(n, &plain));
            ++*n_changed;
        }
        if (!row || !fits(n, row)) continue;
        if (for_plans && (!row->in_plans || is_signed_border(n, row))) continue;
        OCT_TRY(expand(n, row));
        ++*n_changed;
    }
    return OCT_OK;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    return expand_graph(g, true, n_changed);
}

oct_status oct_qlinear_expand_all(oct_graph *g, int *n_changed)
{
    return expand_graph(g, false, n_changed);
}

const oct_pass oct_pass_expand_qlinear = {
    .name = "expand-qlinear",
    .help = "make DequantizeLinear, the operator and QuantizeLinear of QLinearConv and its like",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_INTEGER_PLANS,
};
