/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks with integer inputs and outputs (octet quantize --int8-io, and other tools' files): the
 * same network with float ones. An input whose only consumer is a DequantizeLinear is quantized
 * with that scale; an output that a QuantizeLinear produces is dequantized with its scale.
 */
#include <string.h>

#include "detect/detector.h"
#include "detect/family.h"
#include "graph/op.h"
#include "op/op.h"

static bool is_codes(const oct_value *v)
{
    const oct_dtype t = v->type.dtype;

    return t == OCT_DTYPE_U8 || t == OCT_DTYPE_I8 || t == OCT_DTYPE_U16 || t == OCT_DTYPE_I16;
}

static bool is_op(const oct_node *n, const char *name)
{
    return n && strcmp(n->op->name, name) == 0 && !oct_op_domain(n->op)[0];
}

static bool has_one_scale(const oct_node *n)
{
    const oct_tensor *scale = oct_node_const(n, 1), *zero = oct_node_const(n, 2);

    if (!scale || (oct_node_in(n, 2) && !zero)) return false;
    return scale->type.dtype == OCT_DTYPE_F32 && oct_tensor_len(scale) == 1;
}

static bool is_same(const oct_value *a, const oct_value *b)
{
    if (a == b) return true;
    return a && b && a->data && b->data && oct_type_equal(&a->data->type, &b->data->type) &&
           memcmp(a->data->data, b->data->data, oct_tensor_size(a->data)) == 0;
}

/* The DequantizeLinear that has the parameters of an input's codes; NULL: there is none. */
static const oct_node *input_scale(const oct_value *v)
{
    const oct_node *first = v->n_users ? v->users[0] : NULL;

    if (!is_codes(v) || v->data || v->is_output) return NULL;
    for (int32_t i = 0; i < v->n_users; i++) {
        const oct_node *n = v->users[i];

        if (!is_op(n, "DequantizeLinear") || n->graph != v->graph || !has_one_scale(n)) return NULL;
        if (!is_same(oct_node_in(n, 1), oct_node_in(first, 1)) ||
            !is_same(oct_node_in(n, 2), oct_node_in(first, 2)))
            return NULL;
    }
    return first;
}

static bool only_moves(const oct_node *n)
{
    static const char *const ops[] = {"Reshape",   "Transpose", "Squeeze",
                                      "Unsqueeze", "Flatten",   "Identity"};

    for (size_t i = 0; i < OCT_COUNT(ops); i++)
        if (is_op(n, ops[i])) return true;
    return false;
}

/* The QuantizeLinear that produces an output's codes. */
static const oct_node *output_scale(const oct_value *v)
{
    enum { MOST_MOVES = 16 };
    const oct_node *n = v->producer;

    if (!is_codes(v)) return NULL;
    for (int i = 0; n && only_moves(n) && i < MOST_MOVES; i++)
        n = oct_node_in(n, 0) ? oct_node_in(n, 0)->producer : NULL;
    return is_op(n, "QuantizeLinear") && n->graph == v->graph && has_one_scale(n) ? n : NULL;
}

/* Float input: consumers of the dequantized codes stay as they are. */
static oct_status open_input(oct_graph *g, oct_value *v)
{
    const oct_node *dq = input_scale(v);
    oct_builder b = {.g = g, .before = g->first};
    oct_value *zero = dq ? oct_node_in(dq, 2) : NULL, *q;
    const oct_dtype codes = v->type.dtype;
    const int32_t n = v->n_users;

    if (!dq || (!zero && codes != OCT_DTYPE_U8)) return OCT_OK;
    v->type.dtype = OCT_DTYPE_F32;
    q = oct_emit(&b, &oct_op_quantize_linear, v, oct_node_in(dq, 1), zero);
    if (!q) return b.status;
    for (int32_t i = n - 1; i >= 0; i--)
        if (v->users[i] != q->producer) OCT_TRY(oct_node_set_input(v->users[i], 0, q));
    return q->type.dtype == codes ? OCT_OK : oct_fail(g->ctx, OCT_ERR_STATE, "codes change type");
}

/* Float output, under the output's name. */
static oct_status open_output(oct_graph *g, int32_t i)
{
    oct_value *v = g->outputs[i], *x;
    const oct_node *q = output_scale(v);
    oct_builder b = {.g = g};
    const char *name = v->name;

    if (!q) return OCT_OK;
    x = oct_emit(&b, &oct_op_dequantize_linear, v, oct_node_in(q, 1), oct_node_in(q, 2));
    if (!x) return b.status;
    v->name = x->name;
    x->name = name;
    v->is_output = false;
    x->is_output = true;
    g->outputs[i] = x;
    return OCT_OK;
}

oct_status oct_graph_float_io(const oct_graph *g, oct_graph **out)
{
    OCT_ENTER(g->ctx);
    oct_graph *copy = NULL;
    bool any = false;
    oct_status st;

    *out = NULL;
    for (int32_t i = 0; i < g->n_inputs; i++)
        any = any || input_scale(g->inputs[i]);
    for (int32_t i = 0; i < g->n_outputs; i++)
        any = any || output_scale(g->outputs[i]);
    if (!any) return OCT_OK;
    OCT_TRY(oct_graph_clone(g, &copy));
    st = OCT_OK;
    for (int32_t i = 0; !st && i < copy->n_inputs; i++)
        st = open_input(copy, copy->inputs[i]);
    for (int32_t i = 0; !st && i < copy->n_outputs; i++)
        st = open_output(copy, i);
    if (st)
        oct_graph_free(copy);
    else
        *out = copy;
    return st;
}

oct_status oct_graph_codes(const oct_graph *g, int32_t is_output, int32_t i, float *scale,
                           int32_t *zero_point)
{
    OCT_ENTER(g->ctx);
    const oct_value *v = is_output ? oct_graph_output(g, i) : oct_graph_input(g, i);
    const oct_node *n = !v ? NULL : is_output ? output_scale(v) : input_scale(v);
    const oct_tensor *zero = n ? oct_node_const(n, 2) : NULL;

    if (!n) return OCT_ERR_STATE;
    *scale = *(const float *)oct_node_const(n, 1)->data;
    *zero_point = zero ? (int32_t)oct_tensor_get_f64(zero, 0) : 0;
    return OCT_OK;
}
