/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX Runtime fuses DequantizeLinear, operator and QuantizeLinear into one integer operator
 * whenever the integer types agree, and then refuses the file if a scale is not a scalar. Signed
 * and unsigned codes represent the same values, so around an operator with a scale for each channel
 * the types are made to differ: ONNX Runtime then computes it in float, slower but right. It makes
 * signed codes with a single scale unsigned by itself, so those with a scale for each channel are
 * the signed ones.
 */
#include "op/channels.h"
#include "op/op.h"
#include "quant/solve/solve.h"

/* The active point of a value, or NULL. */
static oct_qpoint *point_of(oct_qmap *m, const oct_value *v)
{
    const int32_t i = v && !v->data ? m->of_value[v->id] : -1;

    return i >= 0 && m->points[i].state == OCT_QSTATE_ACTIVE ? &m->points[i] : NULL;
}

/* The node that Relu and Clip without a point of their own are fused with. */
static const oct_node *anchor_of(oct_qmap *m, const oct_node *n)
{
    while ((oct_node_is(n, &oct_op_relu) || oct_node_is(n, &oct_op_clip)) && n->in[0]->producer &&
           !point_of(m, n->in[0]))
        n = n->in[0]->producer;
    return n;
}

/* Do all operands of n have codes of the same type? has_channels: one has a scale for each. */
static bool agree(oct_qmap *m, const oct_node *n, bool *is_signed, bool *has_channels)
{
    int found = 0;

    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_qpoint *p;

        if (!n->in[i] || n->in[i]->data) continue;
        if (!(p = point_of(m, n->in[i]))) return false;
        if (found++ && p->spec.is_signed != *is_signed) return false;
        *is_signed = p->spec.is_signed;
        *has_channels = *has_channels || p->n > 1;
    }
    return found > 0;
}

/* The same values by codes of the other sign. */
static oct_status change_sign(oct_qmap *m, int32_t i, oct_arena *a)
{
    oct_qpoint *p = &m->points[i];
    const int32_t middle = 1 << (p->spec.bits - 1);
    int32_t *zero = oct_arena_array(a, (size_t)p->n + 1, sizeof(*zero));

    if (!zero) return OCT_ERR_MEMORY;
    for (int64_t c = 0; c < p->n; c++)
        zero[c] = p->zero[c] + (p->spec.is_signed ? middle : -middle);
    p->spec.is_signed = !p->spec.is_signed;
    return oct_qpoint_set(m, i, p->scale, zero, p->n,
                          p->spec.is_signed ? "signed for ORT" : "unsigned for ORT");
}

/* One scale, repeated for each channel: then ONNX Runtime leaves signed codes alone. */
static oct_status spread(oct_qmap *m, int32_t i, oct_arena *a)
{
    oct_qpoint *p = &m->points[i];
    const int64_t n = p->value->type.rank >= 2 ? p->value->type.dim[1] : 0;
    float *scale = oct_arena_array(a, (size_t)OCT_MAX(n, (int64_t)1), sizeof(float));
    int32_t *zero = oct_arena_array(a, (size_t)OCT_MAX(n, (int64_t)1), sizeof(int32_t));

    if (!scale || !zero) return OCT_ERR_MEMORY;
    if (n < 2) return OCT_OK;
    for (int64_t c = 0; c < n; c++) {
        scale[c] = p->scale[0];
        zero[c] = p->zero[0];
    }
    p->spec.axis = 1;
    return oct_qpoint_set(m, i, scale, zero, n, "repeated per channel for ORT");
}

static oct_status differ(oct_qmap *m, const oct_node *n, oct_arena *a)
{
    oct_qpoint *out = n->n_out == 1 ? point_of(m, n->out[0]) : NULL;
    bool is_signed = false, has_channels = out && out->n > 1;

    if (!out || out->spec.is_symmetric || oct_node_moves_data(n)) return OCT_OK;
    if (!agree(m, anchor_of(m, n), &is_signed, &has_channels)) return OCT_OK;
    if (!has_channels || out->spec.is_signed != is_signed) return OCT_OK;
    if (out->n == 1) OCT_TRY(spread(m, (int32_t)(out - m->points), a));
    return out->n > 1 ? change_sign(m, (int32_t)(out - m->points), a) : OCT_OK;
}

oct_status oct_ort_signs(oct_qmap *m)
{
    oct_arena *a = oct_arena_new(m->ctx);
    oct_status st = a ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t i = 0; i < m->n_points && !st; i++) {
        const oct_qpoint *p = &m->points[i];

        if (p->role == OCT_QROLE_ACT && p->state == OCT_QSTATE_ACTIVE && p->n > 1 &&
            !p->spec.is_symmetric && !p->spec.is_signed)
            st = change_sign(m, i, a);
    }
    for (const oct_node *n = m->g->first; n && !st; n = n->next)
        st = differ(m, n, a);
    oct_arena_free(a);
    return st;
}
