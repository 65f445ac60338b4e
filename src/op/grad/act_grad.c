/* SPDX-License-Identifier: Apache-2.0 */
/* ActivationGrad: dx from x and dy, for every activation that kernels can apply to their results.
 */
#include "op/grad/act_grad.h"

#include <tgmath.h>

#include "op/elementwise.h"
#include "op/grad/rules.h"

#define T     float
#define FN(f) f##_f32
#include "op/grad/act_grad_kernel.inc"
#undef T
#undef FN
#define T     double
#define FN(f) f##_f64
#include "op/grad/act_grad_kernel.inc"
#undef T
#undef FN

OCT_BINARY_FN(times_slope_f32, float, float, y *oct_act_slope_f32(p, x))
OCT_BINARY_FN(times_slope_f64, double, double, y *oct_act_slope_f64(p, x))

enum { ACT, ACT_A, ACT_B };

static oct_status shape(const oct_infer *q)
{
    const int64_t kind = oct_int(q->node, ACT);
    const oct_type *x, *dy;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &dy));
    if (kind < OCT_ACT_NONE || kind >= OCT_ACT_COUNT)
        return oct_infer_fail(q, OCT_ERR_ARG, "activation %lld is not known", (long long)kind);
    if (oct_type_is_static(x) && oct_type_is_static(dy) && !oct_type_equal(x, dy))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "x and dy differ in type or shape");
    return oct_shape_same_float(q);
}

static oct_status ref(const oct_args *a)
{
    static const oct_binary f = {.f32 = times_slope_f32, .f64 = times_slope_f64};
    const oct_act act = {.kind = (oct_act_kind)oct_int(a->node, ACT),
                         .a = oct_f32(a->node, ACT_A),
                         .b = oct_f32(a->node, ACT_B)};

    return oct_binary_run(a, &f, &act);
}

static const oct_attr_def attrs[] = {
    [ACT] = {"act", OCT_ATTR_INT, .required = true},
    [ACT_A] = {"act_a", OCT_ATTR_F32},
    [ACT_B] = {"act_b", OCT_ATTR_F32},
    {0},
};

const oct_op oct_op_act_grad = {
    .name = "ActivationGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 2,
    .max_in = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flow = OCT_FLOW_TIE,
    .flags = OCT_OP_ELEMENTWISE,
};

oct_status oct_grad_activation(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const oct_act_row *row = n->op->act;
    oct_act act = {.kind = row->kind};
    oct_node *g;

    if (!a->wanted[0]) return OCT_OK;
    if (row->read && !row->read(n, &act))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "it has a gradient only if its parameters are constant");
    g = oct_emit_node(a->b, &oct_op_act_grad, (oct_value *[]){n->in[0], a->dy[0]}, 2, 1);
    oct_emit_int(a->b, g, "act", act.kind);
    oct_emit_f32(a->b, g, "act_a", act.a);
    oct_emit_f32(a->b, g, "act_b", act.b);
    a->dx[0] = oct_emitted(a->b, g);
    return a->b->status;
}
