/* SPDX-License-Identifier: Apache-2.0 */
/* What is quantized around a node, as the limits of NPUs see it. */
#include <math.h>

#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/activation_after.h"
#include "quant/npu/limits.h"

bool oct_npu_is_pow2(const oct_qpoint *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        int e;

        if (!(p->scale[i] > 0) || frexpf(p->scale[i], &e) != 0.5f) return false;
    }
    return p->n > 0;
}

/* The point that decides the scales, whatever they are; NULL: float. */
static const oct_qpoint *decider(const oct_qmap *m, int32_t point)
{
    const oct_qpoint *p = point < 0 ? NULL : &m->points[point];

    if (!p || p->state == OCT_QSTATE_OFF) return NULL;
    p = oct_qmap_root(m, point);
    return p->n > 0 ? p : NULL;
}

static const oct_qpoint *input_of(const oct_qmap *m, const oct_node *n, int32_t i)
{
    return i < n->n_in && n->in[i] ? decider(m, oct_qmap_at(m, n, i)) : NULL;
}

static const oct_qpoint *if_pow2(const oct_qpoint *p)
{
    return p && oct_npu_is_pow2(p) ? p : NULL;
}

/* The point of a value: its own, or that of the copy which a file keeps for an output. */
static const oct_qpoint *point_of(const oct_qmap *m, const oct_value *v)
{
    if (m->of_value[v->id] >= 0) return decider(m, m->of_value[v->id]);
    for (int32_t i = 0; i < v->n_users; i++)
        if (oct_node_is(v->users[i], &oct_op_identity)) return input_of(m, v->users[i], 0);
    return NULL;
}

bool oct_npu_is_pool(const oct_node *n)
{
    return oct_node_is(n, &oct_op_max_pool) || oct_node_is(n, &oct_op_average_pool) ||
           oct_node_is(n, &oct_op_global_average_pool);
}

/* The point of a node's result, or of what is computed together with it. */
static const oct_qpoint *result_of(const oct_qmap *m, const oct_node *n)
{
    const oct_value *v = n->out[0];
    const oct_qpoint *p = point_of(m, v);

    if (p || m->of_value[v->id] >= 0) return p;
    if (oct_npu_is_pool(n))
        return oct_npu_factor_after(v) ? point_of(m, oct_npu_factor_after(v)->out[0]) : NULL;
    return point_of(m, oct_activation_after(v).result);
}

/* Are its codes an output of the network? They are no point then. */
static bool gives_codes(const oct_value *v)
{
    for (int32_t i = 0; i < v->n_users; i++)
        if (oct_node_is(v->users[i], &oct_op_quantize_linear)) return true;
    return false;
}

static int32_t operand_of(const oct_node *n, oct_qrole role)
{
    for (int32_t i = 0; i < OCT_MIN(n->n_in, OCT_MAX_IN); i++)
        if (n->op->quant.in[i] == role) return i;
    return -1;
}

void oct_npu_site_of_node(const oct_qmap *m, float *const *changed, const oct_node *n,
                          oct_npu_site *out)
{
    const int32_t w = operand_of(n, OCT_QROLE_WEIGHT), b = operand_of(n, OCT_QROLE_BIAS);

    *out = (oct_npu_site){.m = m, .changed = changed, .node = n};
    if (n->n_out < 1 || !n->out[0]) return;
    if (w >= 0 && n->in[w] && n->in[w]->data) out->weight = input_of(m, n, w);
    if (b >= 0) out->bias = input_of(m, n, b);
    out->is_layer = out->weight != NULL;
    out->result = result_of(m, n);
    out->has_float_input = n->n_in > 0 && !input_of(m, n, 0);
    out->has_float_result = !out->result && !gives_codes(n->out[0]) &&
                            !gives_codes(oct_activation_after(n->out[0]).result);
    out->has_float_bias = b >= 0 && oct_node_in(n, b) && !out->bias;
    for (int32_t i = 0; i < n->n_in && out->n_in < OCT_NPU_OPERANDS; i++)
        if (n->in[i] && i != b && !(i == w && out->weight) && n->in[i]->type.dtype == OCT_DTYPE_F32)
            out->in[out->n_in++] = if_pow2(input_of(m, n, i));
    out->weight = if_pow2(out->weight);
    out->bias = if_pow2(out->bias);
    out->result = if_pow2(out->result);
}

void oct_npu_site_of_point(const oct_qmap *m, int32_t point, oct_npu_site *out)
{
    const oct_qpoint *p = &m->points[point];

    *out = (oct_npu_site){.m = m, .node = p->node, .weight = p};
}

int oct_npu_exponent(const oct_npu_site *s, const oct_qpoint *p, int64_t k)
{
    const float *changed = s->changed ? s->changed[p - s->m->points] : NULL;

    return -ilogbf((changed ? changed : p->scale)[p->n > 1 ? k % p->n : 0]);
}

int64_t oct_npu_site_channels(const oct_npu_site *s)
{
    int64_t n = 1;

    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i]) n = OCT_MAX(n, s->in[i]->n);
    if (s->weight) n = OCT_MAX(n, s->weight->n);
    if (s->bias) n = OCT_MAX(n, s->bias->n);
    if (s->result) n = OCT_MAX(n, s->result->n);
    return n;
}
