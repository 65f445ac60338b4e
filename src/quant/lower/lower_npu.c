/* SPDX-License-Identifier: Apache-2.0 */
/* What an NPU computes otherwise than the operator says: means, and slopes of LeakyRelu. */
#include <math.h>

#include "op/op.h"
#include "quant/lower/lower_parts.h"
#include "quant/npu/limits.h"

#define SLOPE_STEPS 256.0f

static bool is_mean(const oct_node *n)
{
    return oct_node_is(n, &oct_op_average_pool) || oct_node_is(n, &oct_op_global_average_pool);
}

static bool is_quantized(const oct_qmap *m, const oct_value *v)
{
    const int32_t k = v ? m->of_value[v->id] : -1;

    return k >= 0 && m->points[k].state != OCT_QSTATE_OFF;
}

/* The mean times what k / 2^n makes of it, before it is quantized. */
static oct_status scale_mean(oct_lowering *l, oct_node *n, double factor)
{
    const oct_type scalar = oct_type_make(OCT_DTYPE_F32, 0, NULL);
    oct_value *y = n->out[0], *inner, *in[2];
    oct_tensor *t = NULL;
    const char *name;

    if (!(name = oct_lowering_name(l, n->name, "mean"))) return OCT_ERR_MEMORY;
    if (!(inner = oct_value_new(n->graph, name, &y->type))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_tensor_make(l->ctx, &scalar, &t));
    ((float *)t->data)[0] = (float)factor;
    in[0] = inner;
    OCT_TRY(oct_lowering_const(l, n->graph, n->name, "factor", t, &in[1]));
    if (!(name = oct_lowering_name(l, n->name, "Mul"))) return OCT_ERR_MEMORY;
    n->out[0] = inner;
    inner->producer = n;
    return oct_node_new(n->graph, n->next, name, &oct_op_mul, in, 2, &y, 1) ? OCT_OK
                                                                            : OCT_ERR_MEMORY;
}

oct_status oct_lowering_npu(oct_lowering *l)
{
    for (int32_t i = 0; i < l->n_nodes; i++) {
        oct_node *n = l->nodes[i];
        const oct_node *from = n ? l->from[i] : NULL;
        double factor;

        if (!n || n->n_out < 1) continue;
        if (is_mean(n) && is_quantized(l->m, from->in[0]) && is_quantized(l->m, from->out[0])) {
            factor = oct_npu_mean_factor(from);
            if (factor > 0 && factor != 1) OCT_TRY(scale_mean(l, n, factor));
        }
        if (oct_node_is(n, &oct_op_leaky_relu) && is_quantized(l->m, from->out[0]))
            OCT_TRY(oct_node_set_f32(
                n, "alpha", rintf(oct_node_attr(n, "alpha")->f * SLOPE_STEPS) / SLOPE_STEPS));
    }
    return OCT_OK;
}
