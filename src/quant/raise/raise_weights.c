/* SPDX-License-Identifier: Apache-2.0 */
/* Integer constants before a DequantizeLinear become float constants with a point. */
#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/raise/raise_parts.h"

oct_qrole oct_raise_role(const oct_value *v)
{
    oct_qrole role = OCT_QROLE_NONE;

    for (int32_t k = 0; k < v->n_users; k++) {
        const oct_node *u = v->users[k];

        for (int32_t i = 0; i < u->n_in; i++) {
            const oct_qrole here = i < OCT_MAX_IN ? u->op->quant.in[i] : OCT_QROLE_NONE;

            if (u->in[i] != v) continue;
            if (role != OCT_QROLE_NONE && here != role) return OCT_QROLE_ACT;
            role = here == OCT_QROLE_NONE ? OCT_QROLE_ACT : here;
        }
    }
    return role == OCT_QROLE_WEIGHT || role == OCT_QROLE_BIAS ? role : OCT_QROLE_ACT;
}

/* A constant times a constant with one consumer: the factor folded into the weight is taken out. */
static oct_node *unfolding(const oct_value *v, oct_tensor **by)
{
    oct_node *mul = oct_sole_user(v);
    const oct_type *t = &v->type;

    if (!oct_node_is(mul, &oct_op_mul) || mul->in[0] != v || !(*by = oct_node_const(mul, 1)))
        return NULL;
    if ((*by)->type.dtype != OCT_DTYPE_F32 || (*by)->type.rank != t->rank || t->rank < 2)
        return NULL;
    for (int32_t i = 0; i < t->rank; i++)
        if ((*by)->type.dim[i] != 1 && (i > 1 || (*by)->type.dim[i] != t->dim[i])) return NULL;
    for (int64_t i = 0, n = oct_tensor_len(*by); i < n; i++) {
        const float f = ((const float *)(*by)->data)[i];

        if (!(f > 0 && 1 / f > 0 && f < 1e30f)) return NULL;
    }
    return oct_raise_role(mul->out[0]) == OCT_QROLE_WEIGHT && !mul->out[0]->is_output ? mul : NULL;
}

static oct_status freeze(oct_node *n)
{
    oct_tensor *t = NULL, **in;

    if (!(in = oct_arena_array(n->graph->arena, (size_t)n->n_in, sizeof(*in))))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n->n_in; i++)
        in[i] = oct_node_const(n, i);
    OCT_TRY(oct_node_eval(n, in, &t, NULL));
    return oct_value_freeze(n->out[0], t);
}

static oct_status raise_weight(oct_raising *r, oct_node *dq, const oct_codes *c)
{
    oct_value *v = dq->out[0];
    oct_tensor *by = NULL;
    oct_node *mul = unfolding(v, &by);
    oct_value *weight = mul ? mul->out[0] : v;
    oct_raised_point p = {
        .value = weight, .role = oct_raise_role(weight), .state = OCT_QSTATE_BAKED};

    if (c->dtype == OCT_DTYPE_I32) {
        if (p.role != OCT_QROLE_BIAS) return OCT_OK; /* 32 bits are for biases only */
        p.state = OCT_QSTATE_PASSIVE;
    }
    if (mul) p.unfold = by;
    OCT_TRY(oct_raise_point(r, c, &p));
    if (!mul) return freeze(dq);
    OCT_TRY(freeze(dq));
    return freeze(mul);
}

oct_status oct_raise_weights(oct_raising *r)
{
    for (oct_node *n = r->g->first, *next; n; n = next) {
        oct_codes c;

        next = n->next;
        if (!oct_node_is_dequantize(n) || !oct_node_const(n, 0) || !oct_codes_of(n, &c)) continue;
        /* There is no 2-bit type in a spec: codes of 2 bits are stored in 4. */
        if (oct_dtype_get(c.dtype)->bits == 2) continue;
        while (next && next->n_in == 2 && next->in[0] == n->out[0])
            next = next->next; /* the multiplication may go as well */
        OCT_TRY(raise_weight(r, n, &c));
    }
    return OCT_OK;
}
