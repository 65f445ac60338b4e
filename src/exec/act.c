/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes are activations: one row for each. */
#include "exec/act.h"

#include <math.h>
#include <string.h>

#include "op/op.h"

static float attr_f32(const oct_node *n, const char *name)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a ? a->f : 0.0f;
}

static bool with_alpha(const oct_node *n, oct_act *act)
{
    act->a = attr_f32(n, "alpha");
    return true;
}

static bool hard_sigmoid(const oct_node *n, oct_act *act)
{
    act->a = attr_f32(n, "alpha");
    act->b = attr_f32(n, "beta");
    return true;
}

static bool clip(const oct_node *n, oct_act *act)
{
    act->a = -INFINITY;
    act->b = INFINITY;
    for (int i = 1; i < n->n_in; i++) {
        const oct_tensor *t = oct_node_const(n, i);

        if (!n->in[i]) continue;
        if (!t || oct_tensor_len(t) != 1) return false;
        *(i == 1 ? &act->a : &act->b) = (float)oct_tensor_get_f64(t, 0);
    }
    return act->a <= act->b; /* also refuses NaN */
}

static bool gelu(const oct_node *n, oct_act *act)
{
    const oct_attr *a = oct_node_attr(n, "approximate");

    if (a && strcmp(a->s, "tanh") == 0) act->kind = OCT_ACT_GELU_TANH;
    return true;
}

static const struct row {
    const oct_op *op;
    oct_act_kind kind;
    bool (*read)(const oct_node *n, oct_act *act);
} rows[] = {
    {&oct_op_relu, OCT_ACT_RELU, NULL},
    {&oct_op_clip, OCT_ACT_CLIP, clip},
    {&oct_op_leaky_relu, OCT_ACT_LEAKY, with_alpha},
    {&oct_op_swish, OCT_ACT_SWISH, with_alpha},
    {&oct_op_hard_swish, OCT_ACT_HARD_SWISH, NULL},
    {&oct_op_sigmoid, OCT_ACT_SIGMOID, NULL},
    {&oct_op_hard_sigmoid, OCT_ACT_HARD_SIGMOID, hard_sigmoid},
    {&oct_op_tanh, OCT_ACT_TANH, NULL},
    {&oct_op_gelu, OCT_ACT_GELU, gelu},
    {&oct_op_elu, OCT_ACT_ELU, with_alpha},
    {&oct_op_mish, OCT_ACT_MISH, NULL},
};

bool oct_act_of(const oct_node *n, oct_act *act)
{
    if (!n->in[0] || n->in[0]->type.dtype != OCT_DTYPE_F32) return false;
    for (size_t i = 0; i < OCT_COUNT(rows); i++) {
        oct_act a = {.kind = rows[i].kind};

        if (n->op != rows[i].op) continue;
        if (rows[i].read && !rows[i].read(n, &a)) return false;
        *act = a;
        return true;
    }
    return false;
}

/* Fused multiplications, so that the last bit is what machines with such an instruction give. */
static float rational_sigmoid(float x)
{
    static const float odd[] = OCT_ACT_LOGISTIC_ODD, even[] = OCT_ACT_LOGISTIC_EVEN;
    const float y = fminf(fmaxf(x, -OCT_ACT_LOGISTIC_LIMIT), OCT_ACT_LOGISTIC_LIMIT);
    float p = odd[0], q = even[0];

    for (size_t i = 1; i < OCT_COUNT(odd); i++)
        p = fmaf(p, y * y, odd[i]);
    for (size_t i = 1; i < OCT_COUNT(even); i++)
        q = fmaf(q, y * y, even[i]);
    return fminf(fmaxf(p * y / q + 0.5f, 0), 1);
}

float oct_act_apply(const oct_act *act, float x)
{
    const float a = act->a, b = act->b;

    switch (act->kind) {
    case OCT_ACT_RELU:
        return x > 0 ? x : 0;
    case OCT_ACT_CLIP:
        return fminf(fmaxf(x, a), b);
    case OCT_ACT_LEAKY:
        return x < 0 ? a * x : x;
    case OCT_ACT_SWISH:
        return x / (1 + expf(-a * x));
    case OCT_ACT_HARD_SWISH:
        return x * fminf(fmaxf(x / 6 + 0.5f, 0), 1);
    case OCT_ACT_SIGMOID:
        return 1 / (1 + expf(-x));
    case OCT_ACT_HARD_SIGMOID:
        return fminf(fmaxf(a * x + b, 0), 1);
    case OCT_ACT_TANH:
        return tanhf(x);
    case OCT_ACT_GELU:
        return 0.5f * x * (1 + erff(x * 0.70710678f));
    case OCT_ACT_GELU_TANH:
        return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case OCT_ACT_ELU:
        return x < 0 ? a * expm1f(x) : x;
    case OCT_ACT_MISH:
        return x * tanhf(log1pf(expf(x)));
    case OCT_ACT_RATIONAL_SIGMOID:
        return rational_sigmoid(x);
    case OCT_ACT_RATIONAL_SWISH:
        return x * rational_sigmoid(a * x);
    default:
        return x;
    }
}

const char *oct_act_name(oct_act_kind kind)
{
    static const char *const names[OCT_ACT_COUNT] = {
        [OCT_ACT_NONE] = "none",
        [OCT_ACT_RELU] = "Relu",
        [OCT_ACT_CLIP] = "Clip",
        [OCT_ACT_LEAKY] = "LeakyRelu",
        [OCT_ACT_SWISH] = "Swish",
        [OCT_ACT_HARD_SWISH] = "HardSwish",
        [OCT_ACT_SIGMOID] = "Sigmoid",
        [OCT_ACT_HARD_SIGMOID] = "HardSigmoid",
        [OCT_ACT_TANH] = "Tanh",
        [OCT_ACT_GELU] = "Gelu",
        [OCT_ACT_GELU_TANH] = "Gelu(tanh)",
        [OCT_ACT_ELU] = "Elu",
        [OCT_ACT_MISH] = "Mish",
        [OCT_ACT_RATIONAL_SIGMOID] = "Sigmoid",
        [OCT_ACT_RATIONAL_SWISH] = "Swish",
    };

    return names[kind];
}
