/* SPDX-License-Identifier: Apache-2.0 */
/* Biases: what correction adds to them, and their codes at the scale of the accumulators. */
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "quant/lower/lower_parts.h"
#include "quant/solve/solve.h"

/* --- nodes that cannot have a bias --- */

/* The node's result becomes an Add of it and the shift, under the same name. */
static oct_status add_behind(oct_lowering *l, oct_node *n, const oct_qshift *s)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &s->n);
    oct_value *sum = n->out[0], *inner, *shift, *in[2];
    oct_tensor *t = NULL;
    const char *name;

    if (!(name = oct_lowering_name(l, n->name, "uncorrected"))) return OCT_ERR_MEMORY;
    if (!(inner = oct_value_new(n->graph, name, &sum->type))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_tensor_make(l->ctx, &type, &t));
    memcpy(t->data, s->shift, (size_t)s->n * sizeof(float));
    OCT_TRY(oct_lowering_const(l, n->graph, n->name, "shift", t, &shift));
    if (!(name = oct_lowering_name(l, n->name, "Add"))) return OCT_ERR_MEMORY;
    in[0] = inner;
    in[1] = shift;
    n->out[0] = inner;
    inner->producer = n;
    return oct_node_new(n->graph, n->next, name, &oct_op_add, in, 2, &sum, 1) ? OCT_OK
                                                                              : OCT_ERR_MEMORY;
}

oct_status oct_lowering_shifts(oct_lowering *l)
{
    for (int32_t i = 0; i < l->m->n_shifts; i++) {
        const oct_qshift *s = &l->m->shifts[i];
        oct_node *n = l->nodes[s->node->id];

        if (oct_operand_of_role(n, OCT_QROLE_BIAS) >= 0) continue;
        if (!oct_node_is(n, &oct_op_mat_mul))
            return oct_node_fail(n, OCT_ERR_STATE, "a shift for an operator without a bias");
        OCT_TRY(add_behind(l, n, s));
    }
    return OCT_OK;
}

/* --- codes --- */

/* A bias at the end of 32 bits would make accumulators wrap around in integer runtimes: half of
 * the range is left to the products. */
#define BIAS_LIMIT (1 << 30)

static int32_t limit_of(const oct_qspec *spec)
{
    return spec->bits < 32 ? (1 << (spec->bits - 1)) - 1 : BIAS_LIMIT;
}

static int32_t code_of(oct_lowering *l, const oct_qspec *spec, float scale, int32_t zero, float x)
{
    const double y = rint((double)x / (double)scale) + zero;
    const int32_t limit = limit_of(spec);

    if (fabs(y) <= limit) return (int32_t)y;
    /* The scale of fewer bits is that of the least error: it clips a little where that is better.
     */
    l->n_saturated += spec->bits == 32 || !(fabs(y) <= 2.0 * limit);
    return y > 0 ? limit : -limit; /* NaN as well */
}

/* v is the constant of that name now; or the one that that constant replaced. */
static oct_status stands_for(oct_lowering *l, const oct_value *v, const char *name)
{
    char *first = oct_map_get(&l->originals, name);

    return oct_map_put(&l->originals, v->name, first ? first : (void *)(uintptr_t)name);
}

/* Operand b of n becomes integers with a DequantizeLinear; the float bias was set before. */
static oct_status quantize_bias(oct_lowering *l, oct_node *n, int32_t b, const oct_qspec *spec,
                                const oct_lowering_params *p)
{
    oct_value *v = n->in[b], *constants[2], *integers, *dq = NULL;
    oct_type type = v->type;
    oct_tensor *codes = NULL;

    type.dtype = p->dtype;
    OCT_TRY(oct_tensor_make(l->ctx, &type, &codes));
    for (int64_t i = 0, len = oct_tensor_len(codes); i < len; i++) {
        const int64_t k = p->n > 1 ? i : 0;
        const int64_t code = code_of(l, spec, p->scale[k], p->zero ? p->zero[k] : 0,
                                     ((const float *)v->data->data)[i]);

        oct_store_i64(p->dtype, codes->data, i, 1, &code);
    }
    OCT_TRY(oct_lowering_const(l, n->graph, v->name, "int", codes, &integers));
    OCT_TRY(oct_lowering_constants(l, n->graph, p, constants));
    OCT_TRY(
        oct_lowering_qdq(l, n->graph, n, &oct_op_dequantize_linear, integers, p, constants, &dq));
    OCT_TRY(stands_for(l, dq, v->name));
    return oct_node_set_input(n, b, dq);
}

/* --- one node --- */

/* The bias with the shift added; made of zeros where there is none. */
static oct_status shift_bias(oct_lowering *l, oct_node *n, int32_t b, const oct_qshift *s)
{
    const oct_value *old = oct_node_in(n, b);
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &s->n);
    oct_tensor *t = NULL;
    oct_value *v;

    if (old &&
        (!old->data || old->type.dtype != OCT_DTYPE_F32 || oct_tensor_len(old->data) != s->n))
        return oct_node_fail(n, OCT_ERR_STATE, "a shift does not fit its bias '%s'", old->name);
    if (old)
        OCT_TRY(oct_tensor_copy(l->ctx, old->data, &t));
    else
        OCT_TRY(oct_tensor_make(l->ctx, &type, &t));
    for (int64_t i = 0; i < s->n; i++)
        ((float *)t->data)[i] += s->shift[i];
    OCT_TRY(oct_lowering_const(l, n->graph, old ? old->name : n->name, old ? "corrected" : "bias",
                               t, &v));
    if (old) OCT_TRY(stands_for(l, v, old->name));
    while (n->n_in < b)
        OCT_TRY(oct_node_set_input(n, n->n_in, NULL));
    return oct_node_set_input(n, b, v);
}

static oct_status lower_bias(oct_lowering *l, oct_node *n, int32_t b, const oct_qshift *s)
{
    static const oct_qspec wide = {
        .bits = 32, .is_signed = true, .is_symmetric = true, .axis = OCT_QSPEC_PER_TENSOR};
    const oct_node *from = l->from[n->id];
    const int32_t k = oct_node_in(from, b) ? oct_qmap_at(l->m, from, b) : -1;
    const oct_qpoint *p = k >= 0 ? oct_qmap_root(l->m, k) : NULL;
    const bool is_new = !oct_node_in(from, b) && s && l->target->bias != OCT_BIAS_FLOAT;
    oct_lowering_params params = {.dtype = OCT_DTYPE_I32, .is_const = true};
    const oct_qspec *spec = p && p->n > 0                      ? &p->spec
                            : l->target->bias == OCT_BIAS_POW2 ? &l->target->bias_spec
                                                               : &wide;
    oct_scales sums = {0};
    int64_t len;

    if (s) OCT_TRY(shift_bias(l, n, b, s));
    if ((!p && !is_new) || (p && p->state == OCT_QSTATE_OFF)) return OCT_OK;
    if (!n->in[b]->data || n->in[b]->type.dtype != OCT_DTYPE_F32) return OCT_OK;
    len = oct_tensor_len(n->in[b]->data);
    if (p && p->n > 0) {
        OCT_TRY(oct_lowering_check(l, p, p, n->in[b], &params));
        params.is_const = true;
    } else {
        OCT_TRY(oct_accumulator_scales(l->m, from, len, l->arena, &sums));
        oct_bias_scales(spec, n->in[b]->data->data, len, &sums);
        params.n = sums.n;
        params.scale = sums.s;
    }
    /* 16 bits are stored in 32: as a type they need opset 21, whose int8 activations ONNX Runtime
     * refuses. */
    params.dtype = spec->bits <= 8 ? oct_qspec_dtype(spec) : OCT_DTYPE_I32;
    params.base = n->in[b]->name;
    params.axis = 0;
    if (params.n < 1 || (params.n > 1 && (n->in[b]->type.rank != 1 || params.n != len)))
        return OCT_OK;
    return quantize_bias(l, n, b, spec, &params);
}

oct_status oct_lowering_biases(oct_lowering *l)
{
    for (int32_t i = 0; i < l->n_nodes; i++) {
        oct_node *n = l->nodes[i];
        const int32_t b = n ? oct_operand_of_role(n, OCT_QROLE_BIAS) : -1;
        const oct_qshift *s = b >= 0 && l->m->n_shifts ? oct_qmap_shift_of(l->m, l->from[i]) : NULL;

        if (b >= 0 && (s || oct_node_in(n, b))) OCT_TRY(lower_bias(l, n, b, s));
    }
    return OCT_OK;
}
