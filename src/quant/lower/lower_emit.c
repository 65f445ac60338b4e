/* SPDX-License-Identifier: Apache-2.0 */
/* Q and DQ nodes and their constants, with unused names. */
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "op/quant.h"
#include "quant/lower/lower_parts.h"

#define OPSET_LEAST  13 /* scales for each index of an axis */
#define OPSET_16_BIT 21 /* and 4 bits */
#define OPSET_2_BIT  25

const char *oct_lowering_name(oct_lowering *l, const char *base, const char *suffix)
{
    const char *name = oct_arena_printf(l->g->arena, "%s_%s", base, suffix);

    if (name && oct_map_get(&l->names, name)) name = oct_graph_fresh_name(l->g, name);
    if (name && oct_map_put(&l->names, name, l)) name = NULL;
    return name;
}

oct_status oct_lowering_const(oct_lowering *l, oct_graph *g, const char *base, const char *suffix,
                              oct_tensor *t, oct_value **out)
{
    const char *name = oct_lowering_name(l, base, suffix);

    if (!name) {
        oct_tensor_unref(t);
        return OCT_ERR_MEMORY;
    }
    *out = oct_value_const(g, name, t);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

static int opset_of(oct_dtype t)
{
    const oct_dtype_info *info = oct_dtype_get(t);

    if (info->bits == 2) return OPSET_2_BIT;
    return info->bits == 16 || info->bits == 4 ? OPSET_16_BIT : OPSET_LEAST;
}

static bool is_all_zero(const oct_lowering_params *p)
{
    for (int64_t i = 0; p->zero && i < p->n; i++)
        if (p->zero[i] != 0) return false;
    return true;
}

/* Constants have a type, so a zero point of 0 can be left out. */
static bool zero_is_plain(const oct_lowering_params *p)
{
    return p->is_const && is_all_zero(p);
}

/* Arrays of zeros of one length and type share one constant, in the outermost graph. */
static oct_status shared_zeros(oct_lowering *l, const oct_type *type, oct_value **out)
{
    const char *name = oct_arena_printf(l->arena, "zeros_%s_%lld", oct_dtype_name(type->dtype),
                                        (long long)type->dim[0]);
    oct_tensor *t = NULL;

    if (!name) return OCT_ERR_MEMORY;
    if ((*out = oct_map_get(&l->common, name))) return OCT_OK;
    OCT_TRY(oct_tensor_make(l->ctx, type, &t));
    OCT_TRY(oct_lowering_const(l, l->g, "zeros", name + strlen("zeros_"), t, out));
    return oct_map_put(&l->common, name, *out);
}

oct_status oct_lowering_constants(oct_lowering *l, oct_graph *g, const oct_lowering_params *p,
                                  oct_value *out[2])
{
    const int32_t rank = p->n > 1;
    const oct_type scale_type = oct_type_make(OCT_DTYPE_F32, rank, &p->n);
    const oct_type zero_type = oct_type_make(p->dtype, rank, &p->n);
    oct_tensor *scale = NULL, *zero = NULL;

    OCT_TRY(oct_tensor_make(l->ctx, &scale_type, &scale));
    memcpy(scale->data, p->scale, (size_t)p->n * sizeof(float));
    OCT_TRY(oct_lowering_const(l, g, p->base, "scale", scale, &out[0]));
    out[1] = NULL;
    l->opset = OCT_MAX(l->opset, opset_of(p->dtype));
    if (zero_is_plain(p)) return OCT_OK;
    if (p->n > 1 && is_all_zero(p)) return shared_zeros(l, &zero_type, &out[1]);
    OCT_TRY(oct_tensor_make(l->ctx, &zero_type, &zero));
    for (int64_t i = 0; p->zero && i < p->n; i++) {
        const int64_t z = p->zero[i];

        oct_store_i64(p->dtype, zero->data, i, 1, &z);
    }
    return oct_lowering_const(l, g, p->base, "zero_point", zero, &out[1]);
}

oct_status oct_lowering_qdq(oct_lowering *l, oct_graph *g, oct_node *before, const oct_op *op,
                            oct_value *x, const oct_lowering_params *p,
                            oct_value *const constants[2], oct_value **out)
{
    oct_value *const in[] = {x, constants[0], constants[1]};
    const char *suffix = op == &oct_op_quantize_linear ? "q" : "dq";
    const char *name = oct_lowering_name(l, p->base, suffix); /* of the node and its result */
    oct_value *y = name ? oct_value_new(g, name, NULL) : NULL;
    oct_node *n = y ? oct_node_new(g, before, name, op, in, constants[1] ? 3 : 2, &y, 1) : NULL;

    if (!n) return OCT_ERR_MEMORY;
    if (p->n > 1 && p->axis != 1) OCT_TRY(oct_node_set_int(n, "axis", p->axis));
    OCT_TRY(oct_node_infer(n));
    *out = y;
    return OCT_OK;
}

oct_value *oct_lowering_transpose(oct_builder *b, oct_value *x, const int64_t *perm)
{
    oct_node *n = x ? oct_emit_node(b, &oct_op_transpose, &x, 1, 1) : NULL;

    if (n) b->status = oct_node_set_ints(n, "perm", perm, x->type.rank);
    if (n && !b->status) b->status = oct_node_infer(n);
    return n && !b->status ? n->out[0] : NULL;
}

oct_status oct_lowering_check(oct_lowering *l, const oct_qpoint *p, const oct_qpoint *root,
                              const oct_value *v, oct_lowering_params *out)
{
    const oct_type *t = &v->type;
    int32_t low, high;

    *out = (oct_lowering_params){
        v->name, oct_qspec_dtype(&root->spec), p->spec.axis, root->n, root->scale, root->zero};
    if (root->n < 1 || !root->scale)
        return oct_fail(l->ctx, OCT_ERR_STATE, "value '%s' has no scale yet", v->name);
    if (t->dtype != OCT_DTYPE_F32)
        return oct_fail(l->ctx, OCT_ERR_TYPE, "value '%s' is %s; only float32 becomes integers",
                        v->name, oct_dtype_name(t->dtype));
    if (root->n > 1 && (out->axis < 0 || out->axis >= t->rank ||
                        (t->dim[out->axis] >= 0 && t->dim[out->axis] != root->n)))
        return oct_fail(l->ctx, OCT_ERR_SHAPE, "value '%s': %lld scales do not fit axis %d",
                        v->name, (long long)root->n, out->axis);
    oct_quant_limits(out->dtype, &low, &high);
    for (int64_t i = 0; i < root->n; i++) {
        if (!(root->scale[i] > 0 && root->scale[i] < INFINITY))
            return oct_fail(l->ctx, OCT_ERR_STATE, "value '%s': scale %lld is %g", v->name,
                            (long long)i, (double)root->scale[i]);
        if (root->zero && (root->zero[i] < low || root->zero[i] > high))
            return oct_fail(l->ctx, OCT_ERR_STATE, "value '%s': zero point %d does not fit %s",
                            v->name, (int)root->zero[i], oct_dtype_name(out->dtype));
    }
    return OCT_OK;
}
