/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft FusedConv: Conv, plus a tensor of the output's shape, then an activation. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "op/act.h"
#include "op/conv_geometry.h"
#include "op/elementwise.h"
#include "op/grad/layers.h"
#include "op/grad/rules.h"

enum { ACTIVATION, ACTIVATION_PARAMS };
enum { X, W, BIAS, SUM };

/* p: the activation's numbers. */
OCT_UNARY_FN(relu, float, float, x < 0 ? 0 : x)
OCT_UNARY_FN(tanh_, float, float, tanhf(x))
OCT_UNARY_FN(sigmoid, float, float, 1 / (1 + expf(-x)))
OCT_UNARY_FN(leaky_relu, float, float, x < 0 ? ((const float *)p)[0] * x : x)
OCT_UNARY_FN(clip, float, float, fminf(fmaxf(x, ((const float *)p)[0]), ((const float *)p)[1]))
OCT_UNARY_FN(hard_sigmoid, float, float,
             fminf(fmaxf(((const float *)p)[0] * x + ((const float *)p)[1], 0), 1))

static const struct activation {
    const char *name;
    oct_unary_fn fn;
    int n_params;
    oct_act_kind kind;
} activations[] = {
    {"", NULL, 0, OCT_ACT_NONE},
    {"Relu", relu, 0, OCT_ACT_RELU},
    {"Tanh", tanh_, 0, OCT_ACT_TANH},
    {"Sigmoid", sigmoid, 0, OCT_ACT_SIGMOID},
    {"LeakyRelu", leaky_relu, 1, OCT_ACT_LEAKY},
    {"Clip", clip, 2, OCT_ACT_CLIP},
    {"HardSigmoid", hard_sigmoid, 2, OCT_ACT_HARD_SIGMOID},
};

static const struct activation *find(const oct_node *n)
{
    const char *name = oct_has(n, ACTIVATION) ? n->attr[ACTIVATION].s : "";

    for (size_t i = 0; i < OCT_COUNT(activations); i++)
        if (strcmp(activations[i].name, name) == 0) return &activations[i];
    return NULL;
}

static oct_status check_activation(const oct_infer *q)
{
    const oct_node *n = q->node;
    const struct activation *act = find(n);
    const int64_t given = oct_has(n, ACTIVATION_PARAMS) ? n->attr[ACTIVATION_PARAMS].n : 0;

    if (!act)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "the activation '%.40s'",
                              n->attr[ACTIVATION].s);
    if (given < act->n_params)
        return oct_infer_fail(q, OCT_ERR_FORMAT, "%s needs %d activation_params, has %lld",
                              act->name, act->n_params, (long long)given);
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *w, *sum = oct_infer_in(q, SUM), *bias = oct_infer_in(q, BIAS);
    oct_conv_geometry g;

    OCT_TRY(oct_infer_need(q, X, &x));
    OCT_TRY(oct_infer_need(q, W, &w));
    for (int i = X; i <= SUM; i++)
        OCT_TRY(oct_infer_check(q, i, OCT_SET(OCT_DTYPE_F32)));
    OCT_TRY(check_activation(q));
    OCT_TRY(oct_conv_geometry_conv(q->node, x, w, &g));
    if (bias && bias->rank >= 0 &&
        (bias->rank != 1 ||
         (bias->dim[0] >= 0 && g.n >= 0 && g.c_out >= 0 && bias->dim[0] != g.c_out)))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the bias does not have one number per filter");
    q->out[0] = oct_conv_geometry_type(&g, OCT_DTYPE_F32);
    if (sum && sum->rank >= 0 && q->out[0].rank >= 0) {
        bool fits = sum->rank == q->out[0].rank;

        for (int d = 0; d < sum->rank && fits; d++)
            fits = sum->dim[d] < 0 || q->out[0].dim[d] < 0 || sum->dim[d] == q->out[0].dim[d];
        if (!fits) return oct_infer_fail(q, OCT_ERR_SHAPE, "the added tensor has another shape");
    }
    return OCT_OK;
}

typedef struct job {
    float *y;
    const float *sum, *params; /* may be NULL */
    oct_unary_fn fn;           /* may be NULL */
} job;

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t i = begin; i < end && j->sum; i++)
        j->y[i] += j->sum[i];
    if (j->fn) j->fn(j->params, j->y + begin, j->y + begin, end - begin);
}

static oct_status ref(const oct_args *a)
{
    const oct_tensor *sum = oct_args_in(a, SUM);
    job j = {.y = a->out[0]->data,
             .sum = sum ? sum->data : NULL,
             .params = a->node->attr[ACTIVATION_PARAMS].fs,
             .fn = find(a->node)->fn};

    OCT_TRY(
        oct_op_conv.ref(a)); /* looks at the first three operands and finds attributes by name */
    oct_parallel_for(a->n_threads, oct_tensor_len(a->out[0]), OCT_MAP_GRAIN, range, &j);
    return OCT_OK;
}

static int64_t macs(const oct_node *n)
{
    return oct_op_conv.macs ? oct_op_conv.macs(n) : 0;
}

/* The gradient before the activation; what it was applied to is computed anew. */
static oct_value *before_activation(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const struct activation *act = find(n);
    const float *params = n->attr[ACTIVATION_PARAMS].fs;
    oct_value *x, *sum = oct_node_in(n, SUM);
    oct_node *conv, *g;

    if (act->kind == OCT_ACT_NONE) return a->dy[0];
    conv = oct_emit_node(a->b, &oct_op_conv, n->in, OCT_MIN(n->n_in, SUM), 1);
    oct_emit_attrs_of(a->b, conv, n);
    x = oct_emitted(a->b, conv);
    if (sum) x = oct_emit(a->b, &oct_op_add, x, sum, NULL);
    g = oct_emit_node(a->b, &oct_op_act_grad, (oct_value *[]){x, a->dy[0]}, 2, 1);
    oct_emit_int(a->b, g, "act", (int64_t)act->kind);
    if (act->n_params > 0) oct_emit_f32(a->b, g, "act_a", params[0]);
    if (act->n_params > 1) oct_emit_f32(a->b, g, "act_b", params[1]);
    return oct_emitted(a->b, g);
}

static oct_status grad(const oct_grad_args *a)
{
    oct_value *dy = before_activation(a);
    oct_grad_args of_conv = *a;

    OCT_TRY(a->b->status);
    of_conv.dy = &dy;
    if (oct_node_in(a->node, SUM) && a->wanted[SUM]) a->dx[SUM] = dy;
    return oct_grad_conv(&of_conv); /* looks at the first three operands, too */
}

static const oct_attr_def attrs[] = {
    [ACTIVATION] = {"activation", OCT_ATTR_STRING, .no_default = true},
    [ACTIVATION_PARAMS] = {"activation_params", OCT_ATTR_F32S, .no_default = true},
    {"auto_pad", OCT_ATTR_STRING, .def.s = "NOTSET", .n_def = 6},
    {"dilations", OCT_ATTR_INTS, .no_default = true},
    {"group", OCT_ATTR_INT, .def.i = 1},
    {"kernel_shape", OCT_ATTR_INTS, .no_default = true},
    {"pads", OCT_ATTR_INTS, .no_default = true},
    {"strides", OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_fused_conv = {
    .name = "FusedConv",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 2,
    .max_in = 4,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .macs = macs,
    .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_WEIGHT, OCT_QROLE_BIAS, OCT_QROLE_ACT}},
    .flow = OCT_FLOW_SOURCE,
};
