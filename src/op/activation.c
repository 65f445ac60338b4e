/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of one operand: y = f(x), with up to two numbers as attributes. */
#include <string.h>
#include <tgmath.h>

#include "op/act.h"
#include "op/elementwise.h"
#include "op/grad/rules.h"

/* Attribute i of the node, which `p` is: in these rows the attributes are the numbers. */
#define A(i) ((real)oct_f32(p, i))

#define SIGMOID(v)  (1 / (1 + exp(-(v))))
#define SOFTPLUS(v) ((v) > 0 ? (v) + log1p(exp(-(v))) : log1p(exp(v)))
#define UNIT(v)     ((v) < 0 ? 0 : (v) > 1 ? 1 : (v))

OCT_UNARY_FLOATS(relu, x < 0 ? 0 : x)
OCT_UNARY_FN(relu_i64, int64_t, int64_t, x < 0 ? 0 : x)
OCT_UNARY_FLOATS(leaky_relu, x < 0 ? A(0) * x : x)
OCT_UNARY_FLOATS(elu, x < 0 ? A(0) * expm1(x) : x)
OCT_UNARY_FLOATS(selu, A(1) * (x > 0 ? x : A(0) * expm1(x)))
OCT_UNARY_FLOATS(celu, x > 0 ? x : A(0) * expm1(x / A(0)))
OCT_UNARY_FLOATS(sigmoid, SIGMOID(x))
OCT_UNARY_FLOATS(tanh, tanh(x))
OCT_UNARY_FLOATS(hard_sigmoid, UNIT(A(0) * x + A(1)))
OCT_UNARY_FLOATS(hard_swish, x *UNIT(x / 6 + (real)0.5))
OCT_UNARY_FLOATS(swish, x *SIGMOID(A(0) * x))
OCT_UNARY_FLOATS(mish, x *tanh(SOFTPLUS(x)))
OCT_UNARY_FLOATS(softplus, SOFTPLUS(x))
OCT_UNARY_FLOATS(softsign, x / (1 + fabs(x)))
OCT_UNARY_FLOATS(thresholded_relu, x > A(0) ? x : 0)
OCT_UNARY_FLOATS(shrink, x<-A(1) ? x + A(0) : x> A(1) ? x - A(0) : 0)
OCT_UNARY_FLOATS(gelu, x *(real)0.5 * (1 + erf(x * (real)0.70710678118654752440)))
OCT_UNARY_FLOATS(gelu_tanh, x *(real)0.5 * (1 + tanh((real)0.79788456080286535588 *
                                                     (x + (real)0.044715 * x * x * x))))

/* Shrink of integers, as its definition in floats gives it; kept inside what an int64 holds. */
static int64_t shrink(int64_t x, float bias, float lambd)
{
    const float v = (float)x;
    const float y = v < -lambd ? v + bias : v > lambd ? v - bias : 0;

    return y >= -0x1p62f && y <= 0x1p62f ? (int64_t)y : 0;
}

OCT_UNARY_FN(shrink_i64, int64_t, int64_t, shrink(x, oct_f32(p, 0), oct_f32(p, 1)))

/* --- gradients of activations that no other kernel applies --- */

static oct_value *emit_scaled_exp(const oct_grad_args *a, double inner, double outer)
{
    oct_value *e = oct_grad_scale(a->b, a->node->in[0], inner);

    e = oct_emit(a->b, &oct_op_exp, e, NULL, NULL);
    e = oct_emit(a->b, &oct_op_mul, a->dy[0], e, NULL);
    return oct_grad_scale(a->b, e, outer);
}

/* dx = v > bound ? yes : no */
static oct_status choose(const oct_grad_args *a, oct_value *v, double bound, oct_value *yes,
                         oct_value *no)
{
    const oct_dtype t = a->dy[0]->type.dtype;
    oct_value *over = oct_emit(a->b, &oct_op_greater, v, oct_scalar_of(a->b, t, bound), NULL);

    a->dx[0] = oct_emit(a->b, &oct_op_where, over, yes, no ? no : oct_scalar_of(a->b, t, 0));
    return a->b->status;
}

static oct_status grad_selu(const oct_grad_args *a)
{
    const double alpha = (double)oct_f32(a->node, 0), gamma = (double)oct_f32(a->node, 1);

    return choose(a, a->node->in[0], 0, oct_grad_scale(a->b, a->dy[0], gamma),
                  emit_scaled_exp(a, 1, alpha * gamma));
}

static oct_status grad_celu(const oct_grad_args *a)
{
    return choose(a, a->node->in[0], 0, a->dy[0],
                  emit_scaled_exp(a, 1 / (double)oct_f32(a->node, 0), 1));
}

static oct_status grad_softplus(const oct_grad_args *a)
{
    oct_value *s = oct_emit(a->b, &oct_op_sigmoid, a->node->in[0], NULL, NULL);

    a->dx[0] = oct_emit(a->b, &oct_op_mul, a->dy[0], s, NULL);
    return a->b->status;
}

/* y = x / (1 + |x|), dy/dx = 1 / (1 + |x|)^2 = (1 - |y|)^2 */
static oct_status grad_softsign(const oct_grad_args *a)
{
    oct_value *one = oct_scalar_of(a->b, a->dy[0]->type.dtype, 1);
    oct_value *s = oct_emit(a->b, &oct_op_abs, a->node->out[0], NULL, NULL);

    s = oct_emit(a->b, &oct_op_sub, one, s, NULL);
    s = oct_emit(a->b, &oct_op_mul, s, s, NULL);
    a->dx[0] = oct_emit(a->b, &oct_op_mul, a->dy[0], s, NULL);
    return a->b->status;
}

static oct_status grad_thresholded_relu(const oct_grad_args *a)
{
    return choose(a, a->node->in[0], (double)oct_f32(a->node, 0), a->dy[0], NULL);
}

static oct_status grad_shrink(const oct_grad_args *a)
{
    oct_value *size = oct_emit(a->b, &oct_op_abs, a->node->in[0], NULL, NULL);

    return choose(a, size, (double)oct_f32(a->node, 1), a->dy[0], NULL);
}

/* --- rows --- */

#define ROW(sym, onnx, domain_, since_, attrs_, shape_, i64_fn, u64_fn, act_, grad_)               \
    static oct_status ref_##sym(const oct_args *a)                                                 \
    {                                                                                              \
        static const oct_unary f = {sym##_f32, sym##_f64, i64_fn, u64_fn, false};                  \
                                                                                                   \
        return oct_unary_run(a, &f, a->node);                                                      \
    }                                                                                              \
                                                                                                   \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .domain = domain_,                                                                         \
        .since = since_,                                                                           \
        .min_in = 1,                                                                               \
        .max_in = 1,                                                                               \
        .attrs = attrs_,                                                                           \
        .shape = shape_,                                                                           \
        .ref = ref_##sym,                                                                          \
        .grad = grad_,                                                                             \
        .quant = {.in = {OCT_QROLE_ACT}},                                                          \
        .flow = OCT_FLOW_PASS,                                                                     \
        .act = act_,                                                                               \
        .flags = OCT_OP_ELEMENTWISE,                                                               \
    }
#define FLOAT_ROW(sym, onnx, since_, attrs_, act_, grad_)                                          \
    ROW(sym, onnx, NULL, since_, attrs_, oct_shape_same_float, NULL, NULL, act_, grad_)

static bool read_alpha(const oct_node *n, oct_act *act)
{
    act->a = oct_f32(n, 0);
    return true;
}

static bool read_alpha_beta(const oct_node *n, oct_act *act)
{
    act->a = oct_f32(n, 0);
    act->b = oct_f32(n, 1);
    return true;
}

static oct_status shape_relu(const oct_infer *q)
{
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT | OCT_SET_SINT));
    return oct_shape_same(q);
}

static const oct_attr_def alpha_001[] = {{"alpha", OCT_ATTR_F32, .def.f = 0.01f}, {0}};
static const oct_attr_def alpha_1[] = {{"alpha", OCT_ATTR_F32, .def.f = 1.0f}, {0}};
static const oct_attr_def alpha_1702[] = {{"alpha", OCT_ATTR_F32, .def.f = 1.702f}, {0}};
static const oct_attr_def selu_attrs[] = {{"alpha", OCT_ATTR_F32, .def.f = 1.6732631921768188f},
                                          {"gamma", OCT_ATTR_F32, .def.f = 1.0507010221481323f},
                                          {0}};
static const oct_attr_def hard_sigmoid_attrs[] = {
    {"alpha", OCT_ATTR_F32, .def.f = 0.2f}, {"beta", OCT_ATTR_F32, .def.f = 0.5f}, {0}};
static const oct_attr_def shrink_attrs[] = {
    {"bias", OCT_ATTR_F32, .def.f = 0.0f}, {"lambd", OCT_ATTR_F32, .def.f = 0.5f}, {0}};

ROW(relu, "Relu", NULL, 7, NULL, shape_relu, relu_i64, NULL, OCT_ACT_ROW(RELU, NULL),
    oct_grad_activation);
FLOAT_ROW(leaky_relu, "LeakyRelu", 7, alpha_001, OCT_ACT_ROW(LEAKY, read_alpha),
          oct_grad_activation);
FLOAT_ROW(elu, "Elu", 7, alpha_1, OCT_ACT_ROW(ELU, read_alpha), oct_grad_activation);
FLOAT_ROW(selu, "Selu", 7, selu_attrs, NULL, grad_selu);
FLOAT_ROW(celu, "Celu", 12, alpha_1, NULL, grad_celu);
FLOAT_ROW(sigmoid, "Sigmoid", 7, NULL, OCT_ACT_ROW(SIGMOID, NULL), oct_grad_activation);
FLOAT_ROW(tanh, "Tanh", 7, NULL, OCT_ACT_ROW(TANH, NULL), oct_grad_activation);
FLOAT_ROW(hard_sigmoid, "HardSigmoid", 7, hard_sigmoid_attrs,
          OCT_ACT_ROW(HARD_SIGMOID, read_alpha_beta), oct_grad_activation);
FLOAT_ROW(hard_swish, "HardSwish", 14, NULL, OCT_ACT_ROW(HARD_SWISH, NULL), oct_grad_activation);
FLOAT_ROW(swish, "Swish", 24, alpha_1, OCT_ACT_ROW(SWISH, read_alpha), oct_grad_activation);
FLOAT_ROW(mish, "Mish", 18, NULL, OCT_ACT_ROW(MISH, NULL), oct_grad_activation);
FLOAT_ROW(softplus, "Softplus", 7, NULL, NULL, grad_softplus);
FLOAT_ROW(softsign, "Softsign", 7, NULL, NULL, grad_softsign);
FLOAT_ROW(thresholded_relu, "ThresholdedRelu", 10, alpha_1, NULL, grad_thresholded_relu);
ROW(shrink, "Shrink", NULL, 9, shrink_attrs, oct_shape_same_numeric, shrink_i64, NULL, NULL,
    grad_shrink);

#define ms_gelu_f32    gelu_f32
#define ms_gelu_f64    gelu_f64
#define quick_gelu_f32 swish_f32
#define quick_gelu_f64 swish_f64
ROW(ms_gelu, "Gelu", "com.microsoft", 1, NULL, oct_shape_same_float, NULL, NULL,
    OCT_ACT_ROW(GELU, NULL), oct_grad_activation);
ROW(quick_gelu, "QuickGelu", "com.microsoft", 1, alpha_1702, oct_shape_same_float, NULL, NULL,
    OCT_ACT_ROW(SWISH, read_alpha), oct_grad_activation);

/* Gelu: its attribute chooses between two formulas. */

static bool is_tanh(const oct_node *n)
{
    return strcmp(n->attr[0].s, "tanh") == 0;
}

static bool read_gelu(const oct_node *n, oct_act *act)
{
    if (is_tanh(n)) act->kind = OCT_ACT_GELU_TANH;
    return true;
}

static oct_status shape_gelu(const oct_infer *q)
{
    const char *mode = q->node->attr[0].s;

    if (!is_tanh(q->node) && strcmp(mode, "none") != 0)
        return oct_infer_fail(q, OCT_ERR_FORMAT, "approximate is '%.40s', not none or tanh", mode);
    return oct_shape_same_float(q);
}

static oct_status ref_gelu(const oct_args *a)
{
    static const oct_unary exact = {.f32 = gelu_f32, .f64 = gelu_f64};
    static const oct_unary approximate = {.f32 = gelu_tanh_f32, .f64 = gelu_tanh_f64};

    return oct_unary_run(a, is_tanh(a->node) ? &approximate : &exact, a->node);
}

static const oct_attr_def gelu_attrs[] = {
    {"approximate", OCT_ATTR_STRING, .def.s = "none", .n_def = 4}, {0}};

const oct_op oct_op_gelu = {
    .name = "Gelu",
    .since = 20,
    .min_in = 1,
    .max_in = 1,
    .attrs = gelu_attrs,
    .shape = shape_gelu,
    .ref = ref_gelu,
    .grad = oct_grad_activation,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
    .act = OCT_ACT_ROW(GELU, read_gelu),
    .flags = OCT_OP_ELEMENTWISE,
};
