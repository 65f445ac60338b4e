/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvInteger and MatMulInteger fused with what follows them in dynamically quantized networks:
 * Cast to float, Mul with the scales, Add of the bias, an activation.
 */
#include "exec/compile/fuse_dynamic_quant.h"

#include "exec/compile/fuse.h"
#include "op/op.h"

/* The other operand of u, if u is this operator on v and something. */
static const oct_value *other(const oct_node *u, const oct_op *op, const oct_value *v)
{
    if (!u || u->op != op || u->n_in != 2 || !u->in[0] || !u->in[1] || u->in[0] == u->in[1])
        return NULL;
    return u->in[0] == v ? u->in[1] : u->in[1] == v ? u->in[0] : NULL;
}

/* Filters are the second axis of a convolution's result, the last axis of a matrix product's. */
static int64_t n_filters(const oct_node *n)
{
    const oct_type *t = &n->out[0]->type;

    return t->dim[n->op == &oct_op_conv_integer ? 1 : t->rank - 1];
}

/* A scalar, or one element for each filter, broadcast along all other axes. */
static bool is_per_filter(const oct_node *n, const oct_value *v)
{
    const int from_end = n->op == &oct_op_conv_integer ? n->out[0]->type.rank - 1 : 1;
    const oct_type *t = &v->type;

    if (t->dtype != OCT_DTYPE_F32 || !oct_type_is_static(t) || t->rank > n->out[0]->type.rank)
        return false;
    if (oct_type_len(t) == 1) return true;
    return oct_type_len(t) == n_filters(n) && t->rank >= from_end &&
           t->dim[t->rank - from_end] == n_filters(n);
}

static const oct_value *take(const oct_fuser *f, oct_group *g, const oct_op *op, bool is_const)
{
    const oct_value *v = g->last->out[0];
    const oct_node *u = oct_fuser_only_user(f, v);
    const oct_value *x = other(u, op, v);

    if (!x || (is_const && !x->data) || !is_per_filter(g->anchor, x)) return NULL;
    if (!oct_type_equal(&u->out[0]->type, &v->type)) return NULL;
    return oct_group_add(g, u) ? x : NULL;
}

/* Cast and Mul are fused together or not at all: without the scale the result is the
 * accumulator. */
static void grow(const oct_fuser *f, oct_group *g, const oct_value **scale, const oct_value **bias)
{
    const oct_group bare = *g;
    const oct_node *cast = oct_fuser_only_user(f, g->last->out[0]), *act;

    if (!oct_node_is(cast, &oct_op_cast) || cast->out[0]->type.dtype != OCT_DTYPE_F32) return;
    if (!oct_group_add(g, cast) || !(*scale = take(f, g, &oct_op_mul, false))) {
        *g = bare;
        return;
    }
    *bias = take(f, g, &oct_op_add, true);
    act = oct_fuser_only_user(f, g->last->out[0]);
    if (act && act->in[0] == g->last->out[0] && oct_act_of(act, &g->fuse.act[0]))
        oct_group_add(g, act);
}

static oct_status make_step(oct_fuser *f, oct_group *g, const oct_value *scale,
                            const oct_value *bias)
{
    oct_plan *p = f->p;
    const oct_node *n = g->anchor;
    const oct_value *in[OCT_DYNAMIC_N_IN] = {n->in[0],          n->in[1], oct_node_in(n, 2),
                                             oct_node_in(n, 3), scale,    bias};
    oct_integer *integer = oct_plan_alloc(p, 1, sizeof(*integer));
    oct_step *s = oct_plan_alloc(p, 1, sizeof(*s));

    if (!integer || !s) return OCT_ERR_MEMORY;
    integer->is_dynamic = true;
    integer->in = oct_plan_alloc(p, OCT_DYNAMIC_N_IN, sizeof(oct_codes));
    *s = (oct_step){.node = n,
                    .last = g->last,
                    .fuse = g->fuse,
                    .integer = integer,
                    .n_in = OCT_DYNAMIC_N_IN,
                    .n_out = 1,
                    .macs = n->op->macs ? OCT_MAX(n->op->macs(n), 0) : 0};
    s->in = oct_plan_alloc(p, OCT_DYNAMIC_N_IN, sizeof(int32_t));
    s->out = oct_plan_alloc(p, 1, sizeof(int32_t));
    s->label = oct_group_label(p, g);
    if (!integer->in || !s->in || !s->out || !s->label) return OCT_ERR_MEMORY;
    for (int i = 0; i < OCT_DYNAMIC_N_IN; i++) {
        s->in[i] = -1;
        if (in[i]) OCT_TRY(oct_fuser_slot(p, in[i], &s->in[i]));
    }
    g->step = s;
    return oct_fuser_slot(p, g->last->out[0], &s->out[0]);
}

oct_status oct_fuser_dynamic(oct_fuser *f, const oct_node *n, oct_group **out)
{
    const oct_value *scale = NULL, *bias = NULL;
    oct_layout layout;
    oct_group *g;

    if ((n->op != &oct_op_conv_integer && n->op != &oct_op_mat_mul_integer) || !n->out[0] ||
        n->out[0]->type.rank < 1)
        return OCT_OK;
    if (!(g = oct_plan_alloc(f->p, 1, sizeof(*g)))) return OCT_ERR_MEMORY;
    *g = (oct_group){.anchor = n, .last = n, .fuse = {.residual = -1}};
    grow(f, g, &scale, &bias);
    OCT_TRY(make_step(f, g, scale, bias));
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !n->in[i]->data && oct_fuser_is_constant(f, n->in[i])) return OCT_OK;
    if (oct_kernel_int8_dynamic_conv.accepts(f->p, g->step, &layout)) *out = g;
    return OCT_OK;
}
