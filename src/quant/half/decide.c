/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes compute in float16: those that runtimes have such kernels for, up to the last layers
 * with weights. What follows them decodes boxes or scores, costs little and loses most: pixels
 * above 512 have a step of half a pixel in float16. What overflows stays float32, too.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "op/op.h"
#include "quant/half/half.h"

/* Operators of one type of numbers, which convert as a whole; of Resize only the picture. */
static const char *const narrow_ops[] = {"Abs",
                                         "Add",
                                         "AveragePool",
                                         "BatchNormalization",
                                         "Clip",
                                         "Concat",
                                         "Conv",
                                         "ConvTranspose",
                                         "DepthToSpace",
                                         "Div",
                                         "Dropout",
                                         "Elu",
                                         "Erf",
                                         "Exp",
                                         "Expand",
                                         "Flatten",
                                         "Gather",
                                         "Gelu",
                                         "Gemm",
                                         "GlobalAveragePool",
                                         "GlobalMaxPool",
                                         "GroupNormalization",
                                         "HardSigmoid",
                                         "HardSwish",
                                         "Identity",
                                         "InstanceNormalization",
                                         "LayerNormalization",
                                         "LeakyRelu",
                                         "Log",
                                         "LogSoftmax",
                                         "MatMul",
                                         "MaxPool",
                                         "Mish",
                                         "Mul",
                                         "Neg",
                                         "PRelu",
                                         "Pad",
                                         "Pow",
                                         "Reciprocal",
                                         "ReduceMean",
                                         "ReduceSum",
                                         "Relu",
                                         "Reshape",
                                         "Resize",
                                         "Selu",
                                         "Sigmoid",
                                         "Slice",
                                         "Softmax",
                                         "Softplus",
                                         "Softsign",
                                         "SpaceToDepth",
                                         "Split",
                                         "Sqrt",
                                         "Squeeze",
                                         "Sub",
                                         "Swish",
                                         "Tanh",
                                         "Tile",
                                         "Transpose",
                                         "Unsqueeze"};

static bool is_listed(const oct_node *n)
{
    if (oct_op_domain(n->op)[0]) return false;
    for (size_t i = 0; i < OCT_COUNT(narrow_ops); i++)
        if (strcmp(n->op->name, narrow_ops[i]) == 0) return true;
    return false;
}

static bool is_float(const oct_value *v)
{
    return v && v->type.dtype == OCT_DTYPE_F32;
}

bool oct_half_takes(const oct_node *n, int32_t i)
{
    if (strcmp(n->op->name, "Resize") == 0 && i > 0) return false;
    return is_float(oct_node_in(n, i));
}

static bool computes(const oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (is_float(n->in[i])) return true;
    return false;
}

static bool is_quantizer(const oct_node *n)
{
    return n && strstr(n->op->name, "QuantizeLinear");
}

/* Beside integers numbers stay float32, as runtimes expect where they compute in integers. */
static bool meets_integers(const oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && is_quantizer(n->in[i]->producer)) return true;
    for (int32_t i = 0; i < n->n_out; i++)
        for (int32_t k = 0; n->out[i] && k < n->out[i]->n_users; k++)
            if (is_quantizer(n->out[i]->users[k])) return true;
    return false;
}

/* --- overflow --- */

static float largest_of(const oct_tensor *t)
{
    float most = 0;

    for (int64_t i = 0, n = oct_tensor_len(t); i < n; i++) {
        const float x = fabsf((float)oct_tensor_get_f64(t, i));

        if (isfinite(x)) most = fmaxf(most, x); /* -Inf masks stay -Inf */
    }
    return most;
}

static void tell(const oct_half_options *o, const oct_node *n, const char *what, const char *name,
                 float most)
{
    char why[320];

    if (!o->kept) return;
    (void)snprintf(why, sizeof(why), "%s '%.160s' reaches %g, float16 ends at 65504", what, name,
                   (double)most);
    o->kept(o->user, n->name && *n->name ? n->name : n->op->name, why);
}

/* Does an operand or a result not fit? */
static bool overflows(const oct_node *n, const oct_half_options *o, const oct_half_plan *p)
{
    for (int32_t i = 0; i < n->n_in + n->n_out; i++) {
        const oct_value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        float most;

        if (!is_float(v) || (i < n->n_in && !oct_half_takes(n, i))) continue;
        most = v->data ? largest_of(v->data) : p->largest ? p->largest[v->id] : 0;
        if (!(most > OCT_HALF_MOST)) continue;
        tell(o, n, v->data ? "constant" : i < n->n_in ? "operand" : "result", v->name, most);
        return true;
    }
    return false;
}

/* --- what follows the last layers --- */

/* before[id]: a layer with weights is reached from the node, or it is one. */
static oct_status find_layers(const oct_graph *g, bool *before)
{
    for (const oct_node *n = g->last; n; n = n->prev) {
        before[n->id] = n->op->flow == OCT_FLOW_SOURCE && oct_node_const(n, 1);
        for (int32_t i = 0; i < n->n_out && !before[n->id]; i++)
            for (int32_t k = 0; n->out[i] && k < n->out[i]->n_users && !before[n->id]; k++)
                before[n->id] = n->out[i]->users[k]->graph == g && before[n->out[i]->users[k]->id];
    }
    return OCT_OK;
}

oct_status oct_half_decide(const oct_graph *g, const oct_half_options *o, oct_half_plan *p)
{
    bool *before = oct_arena_array(g->arena, (size_t)g->n_node_ids + 1, sizeof(*before));

    p->n_nodes = g->n_node_ids;
    p->narrow = oct_arena_array(g->arena, (size_t)g->n_node_ids + 1, sizeof(*p->narrow));
    if (!before || !p->narrow) return OCT_ERR_MEMORY;
    OCT_TRY(find_layers(g, before));
    for (const oct_node *n = g->first; n; n = n->next)
        p->narrow[n->id] = before[n->id] && computes(n) && is_listed(n) && !meets_integers(n) &&
                           !overflows(n, o, p);
    return OCT_OK;
}
