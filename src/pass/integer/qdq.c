/* SPDX-License-Identifier: Apache-2.0 */
/* Making QuantizeLinear and DequantizeLinear nodes. */
#include "pass/integer/qdq.h"

#include <string.h>

#include "op/op.h"
#include "pass/rewrite.h"

oct_qdq oct_qdq_of(const oct_node *n)
{
    const oct_attr *axis = oct_node_attr(n, "axis"), *was = oct_node_attr(n, "was_signed");
    const oct_attr *last = oct_node_attr(n, "last_code");
    const bool single = n->in[1]->data && oct_tensor_len(n->in[1]->data) == 1;

    return (oct_qdq){.scale = n->in[1],
                     .zero = oct_node_in(n, 2),
                     .axis = single || !axis ? -1 : axis->i,
                     .was_signed = was && was->i,
                     .last = last ? last->i : 0};
}

oct_status oct_qdq_new(oct_graph *g, oct_node *before, bool to_codes, const char *base,
                       oct_value *x, const oct_qdq *l, oct_value *out, oct_value **made)
{
    const oct_op *op = to_codes ? &oct_op_quantize_linear : &oct_op_dequantize_linear;
    oct_value *const in[] = {x, l->scale, l->zero};
    const char *name =
        oct_arena_printf(g->arena, "%s_%s", base, to_codes ? "QuantizeLinear" : "DequantizeLinear");
    oct_node *n;

    if (!name || !(name = oct_graph_fresh_name(g, name))) return OCT_ERR_MEMORY;
    n = oct_node_new(g, before, name, op, in, l->zero ? 3 : 2, out ? &out : NULL, 1);
    if (!n) return OCT_ERR_MEMORY;
    if (l->axis >= 0) OCT_TRY(oct_node_set_int(n, "axis", l->axis));
    if (l->was_signed && to_codes) OCT_TRY(oct_node_set_int(n, "was_signed", 1));
    if (l->last) OCT_TRY(oct_node_set_int(n, "last_code", l->last));
    if (made) *made = n->out[0];
    return oct_node_infer(n);
}

oct_status oct_qdq_dequantize_output(oct_node *n, int32_t k, oct_dtype dtype, const oct_qdq *l)
{
    oct_value *old = n->out[k], *codes;
    const char *name = oct_arena_printf(n->graph->arena, "%s_codes", old->name);
    oct_type type = old->type;

    if (!name || !(name = oct_graph_fresh_name(n->graph, name))) return OCT_ERR_MEMORY;
    type.dtype = dtype;
    if (!(codes = oct_value_new(n->graph, name, &type))) return OCT_ERR_MEMORY;
    n->out[k] = codes;
    codes->producer = n;
    codes->out_index = k;
    old->producer = NULL;
    return oct_qdq_new(n->graph, n->next, false, n->name, codes, l, old, NULL);
}

bool oct_qdq_pad_fits(const oct_node *n, const oct_codes *c)
{
    if (n->op != &oct_op_pad) return true;
    for (int64_t i = 1; i < c->n; i++)
        if (oct_codes_zero(c, i) != oct_codes_zero(c, 0)) return false;
    return true;
}

oct_status oct_qdq_fix_pad(oct_node *n, const oct_codes *c)
{
    const int32_t zero = oct_codes_zero(c, 0);
    oct_value *v, *old = oct_node_in(n, 2);

    if (n->op != &oct_op_pad) return OCT_OK;
    OCT_TRY(oct_qdq_zeros(n, c->dtype, &zero, 1, &v));
    while (n->n_in < 2)
        OCT_TRY(oct_node_set_input(n, n->n_in, NULL));
    OCT_TRY(oct_node_set_input(n, 2, v));
    return old ? oct_prune(old) : OCT_OK;
}

oct_status oct_qdq_scales(oct_node *n, const float *scale, int64_t count, oct_value **out)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, count > 1, &count);
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_make(n->graph->ctx, &type, &t));
    memcpy(t->data, scale, (size_t)count * sizeof(float));
    *out = oct_const_for(n, "scale", t);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_qdq_zeros(oct_node *n, oct_dtype dtype, const int32_t *zero, int64_t count,
                         oct_value **out)
{
    const oct_type type = oct_type_make(dtype, count > 1, &count);
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_make(n->graph->ctx, &type, &t));
    for (int64_t i = 0; i < count; i++) {
        const int64_t z = zero[i];

        oct_store_i64(dtype, t->data, i, 1, &z);
    }
    *out = oct_const_for(n, "zero_point", t);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}
