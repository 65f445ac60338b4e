/* SPDX-License-Identifier: Apache-2.0 */
/* Points of constants: weights, biases, operands of Add and Mul. And pre-activation points, which a
 * runtime may do without. */
#include "op/channels.h"
#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/activation_after.h"
#include "quant/place/place_parts.h"

/* The axis of the output channels; OCT_QSPEC_PER_TENSOR if no axis is. */
static int weight_axis(const oct_node *n, const oct_type *w)
{
    int axis = n->op->quant.weight_axis;

    if (oct_node_is(n, &oct_op_gemm) && oct_node_attr(n, "transB")->i) axis = 0;
    if (oct_node_is(n, &oct_op_conv_transpose) && w->rank > 1 && w->dim[1] == 1 &&
        oct_node_attr(n, "group")->i > 1)
        axis = 0; /* each input channel makes one output channel */
    if (axis < 0) axis += w->rank;
    if (oct_node_is(n, &oct_op_mat_mul) && w->rank < 2) axis = OCT_QSPEC_PER_TENSOR;
    return axis >= 0 && axis < w->rank ? axis : OCT_QSPEC_PER_TENSOR;
}

static oct_status add_weight(oct_placer *p, const oct_node *n, int32_t i)
{
    oct_qpoint q = {.value = n->in[i],
                    .node = n,
                    .operand = i,
                    .role = OCT_QROLE_WEIGHT,
                    .spec = p->t->weight,
                    .state = OCT_QSTATE_ACTIVE,
                    .dominator = -1};

    if (q.spec.axis != OCT_QSPEC_PER_TENSOR) q.spec.axis = weight_axis(n, &n->in[i]->type);
    return oct_qmap_add(p->m, &q, NULL);
}

/* Is the bias one value for each output channel, added without a factor? */
static bool is_plain_bias(const oct_node *n, const oct_type *b)
{
    int wide = 0;

    for (int32_t d = 0; d < b->rank; d++)
        wide += b->dim[d] != 1;
    if (oct_node_is(n, &oct_op_gemm) &&
        (oct_node_attr(n, "alpha")->f != 1.0f || oct_node_attr(n, "beta")->f != 1.0f))
        return false;
    return b->dtype == OCT_DTYPE_F32 && (wide == 0 || (wide == 1 && b->dim[b->rank - 1] != 1));
}

static oct_status add_bias(oct_placer *p, const oct_node *n, int32_t i)
{
    oct_qpoint q = {.value = n->in[i],
                    .node = n,
                    .operand = i,
                    .role = OCT_QROLE_BIAS,
                    .spec = p->t->bias_spec,
                    .state = OCT_QSTATE_PASSIVE,
                    .dominator = -1};

    if (p->t->bias == OCT_BIAS_FLOAT || !n->in[i]->data || !is_plain_bias(n, &n->in[i]->type))
        return OCT_OK;
    if (q.spec.axis != OCT_QSPEC_PER_TENSOR) q.spec.axis = OCT_MAX(n->in[i]->type.rank - 1, 0);
    return oct_qmap_add(p->m, &q, NULL);
}

/* The constant operand of an integer Add or Mul. */
static oct_status add_constant(oct_placer *p, const oct_node *n, int32_t i)
{
    const oct_qpoint q = {.value = n->in[i],
                          .node = n,
                          .operand = i,
                          .role = OCT_QROLE_ACT,
                          .spec = p->t->act,
                          .state = OCT_QSTATE_ACTIVE,
                          .dominator = -1};

    if (!(p->t->flags & OCT_TARGET_CONST_OPERANDS) || n->in[i]->type.dtype != OCT_DTYPE_F32)
        return OCT_OK;
    return oct_qmap_add(p->m, &q, NULL);
}

oct_status oct_placer_weights(oct_placer *p)
{
    for (int32_t k = 0; k < p->groups.n; k++) {
        const oct_node *n = p->groups.item[k].anchor;

        for (int32_t i = 0; i < n->n_in && p->is_integer[k]; i++) {
            const oct_qrole role = oct_operand_role(n, i);

            if (!n->in[i]) continue;
            if (role == OCT_QROLE_WEIGHT && n->in[i]->data) OCT_TRY(add_weight(p, n, i));
            if (role == OCT_QROLE_BIAS) OCT_TRY(add_bias(p, n, i));
            if (role == OCT_QROLE_ACT && n->in[i]->data) OCT_TRY(add_constant(p, n, i));
        }
    }
    return OCT_OK;
}

/* --- points that a runtime may do without --- */

/* Is x * sigmoid(x) or x * hardsigmoid(x), as two nodes, the only consumer of v? */
static bool is_before_gate(const oct_value *v, const oct_node *gate)
{
    const oct_following_act b = oct_activation_after(v);

    return b.gate && b.gate->producer == gate;
}

static bool is_read_as_integers(const oct_qmap *m, const oct_value *v)
{
    for (int32_t i = 0; i < v->n_users; i++) {
        const oct_node *u = v->users[i];

        if (oct_node_moves_data(u)) {
            for (int32_t k = 0; k < u->n_out; k++)
                if (u->out[k] && m->of_value[u->out[k]->id] >= 0) return true;
        } else if (oct_target_computes(m->target, u->op) && !m->float_reason[u->id]) {
            return true;
        }
    }
    return false;
}

const oct_node *oct_place_preact(const oct_qmap *m, int32_t point)
{
    const oct_qpoint *p = &m->points[point];
    const oct_node *n = p->value->producer;

    if (p->role != OCT_QROLE_ACT || p->node || !n) return NULL;
    if (!(m->target->flags & OCT_TARGET_MAY_PREACT)) return NULL;
    if (n->n_in > 0 && n->in[0] && is_before_gate(n->in[0], n) &&
        oct_qmap_conv_is_integer(m, n->in[0]->producer))
        return n->in[0]->producer;
    if (oct_qmap_conv_is_integer(m, n) && oct_activation_after(p->value).act.kind != OCT_ACT_NONE)
        return n;
    if (is_read_as_integers(m, p->value)) return NULL;
    if (oct_node_is(n, &oct_op_relu) || oct_node_is(n, &oct_op_clip)) n = n->in[0]->producer;
    return n && oct_qmap_conv_is_integer(m, n) ? n : NULL;
}
