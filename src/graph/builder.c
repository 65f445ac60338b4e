/* SPDX-License-Identifier: Apache-2.0 */
/* Building graphs in code: a chain of emits with one check at its end. */
#include "graph/op.h"

oct_node *oct_emit_node(oct_builder *b, const oct_op *op, oct_value *const *in, int32_t n_in,
                        int32_t n_out)
{
    oct_node *n;
    const char *name = NULL;

    if (b->status) return NULL;
    if (b->prefix && !(name = oct_graph_fresh_name(b->g, b->prefix))) {
        b->status = OCT_ERR_MEMORY;
        return NULL;
    }
    n = oct_node_new(b->g, b->before, name, op, in, n_in, NULL, n_out);
    if (!n) b->status = OCT_ERR_MEMORY;
    return n;
}

oct_value *oct_emit(oct_builder *b, const oct_op *op, oct_value *x, oct_value *y, oct_value *z)
{
    oct_value *const in[] = {x, y, z};
    const int32_t n_in = z ? 3 : y ? 2 : x ? 1 : 0;

    return oct_emitted(b, oct_emit_node(b, op, in, n_in, 1));
}

oct_value *oct_emitted(oct_builder *b, oct_node *n)
{
    if (b->status || !n) return NULL;
    b->status = oct_node_infer(n);
    return b->status ? NULL : n->out[0];
}

void oct_emit_int(oct_builder *b, oct_node *n, const char *name, int64_t v)
{
    if (!b->status) b->status = oct_node_set_int(n, name, v);
}

void oct_emit_ints(oct_builder *b, oct_node *n, const char *name, const int64_t *v, int64_t n_v)
{
    if (!b->status) b->status = oct_node_set_ints(n, name, v, n_v);
}

void oct_emit_f32(oct_builder *b, oct_node *n, const char *name, float v)
{
    if (!b->status) b->status = oct_node_set_f32(n, name, v);
}

void oct_emit_str(oct_builder *b, oct_node *n, const char *name, const char *v)
{
    if (!b->status) b->status = oct_node_set_str(n, name, v);
}

void oct_emit_attrs_of(oct_builder *b, oct_node *n, const oct_node *from)
{
    if (b->status) return;
    for (int i = 0; i < oct_op_n_attrs(n->op) && !b->status; i++) {
        const oct_attr *v = oct_node_attr(from, n->op->attrs[i].name);

        if (v) b->status = oct_node_set_attr(n, n->op->attrs[i].name, v);
    }
}

static oct_value *constant(oct_builder *b, oct_tensor *t)
{
    oct_value *v = NULL;

    if (!b->status && !(v = oct_value_const(b->g, NULL, t))) b->status = OCT_ERR_MEMORY;
    return v;
}

oct_value *oct_scalar(oct_builder *b, float v)
{
    oct_tensor *t = NULL;

    if (b->status) return NULL;
    b->status = oct_tensor_scalar_f32(b->g->ctx, v, &t);
    return constant(b, t);
}

oct_value *oct_scalar_of(oct_builder *b, oct_dtype dtype, double v)
{
    const oct_type type = oct_type_make(dtype, 0, NULL);
    oct_tensor *t = NULL;

    if (b->status) return NULL;
    b->status = oct_tensor_make(b->g->ctx, &type, &t);
    if (!b->status) oct_store_f64(dtype, t->data, 0, 1, &v);
    return constant(b, t);
}

oct_value *oct_ints(oct_builder *b, const int64_t *v, int64_t n)
{
    oct_tensor *t = NULL;

    if (b->status) return NULL;
    b->status = oct_tensor_vec_i64(b->g->ctx, v, n, &t);
    return constant(b, t);
}
