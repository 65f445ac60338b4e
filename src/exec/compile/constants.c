/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dequantized weights are computed late. What an integer kernel reads as codes is never converted
 * to float; what a float kernel reads is dequantized once, here.
 */
#include "exec/compile/fuse.h"
#include "op/op.h"

bool oct_fuser_is_constant(const oct_fuser *f, const oct_value *v)
{
    return v->data || (v->producer && v->graph == f->p->g && f->lazy[v->producer->id]);
}

bool oct_node_is_lazy(const oct_fuser *f, const oct_node *n)
{
    static const oct_op *const ops[] = {&oct_op_mul,       &oct_op_reshape, &oct_op_transpose,
                                        &oct_op_unsqueeze, &oct_op_squeeze, &oct_op_flatten,
                                        &oct_op_cast,      &oct_op_identity};
    bool known = oct_node_is_dequantize(n);

    if (n->n_out != 1 || !n->out[0] || !n->in[0]) return false;
    for (size_t i = 0; i < OCT_COUNT(ops) && !known; i++)
        known = n->op == ops[i];
    for (int32_t i = 0; i < n->n_in && known; i++)
        known = !n->in[i] || oct_fuser_is_constant(f, n->in[i]);
    return known;
}

/* Producers come before consumers, so the operands that are needed exist already. */
static oct_status compute(oct_fuser *f, const oct_node *n)
{
    oct_plan *p = f->p;
    oct_tensor **in = oct_calloc(p->ctx, (size_t)n->n_in + 1, sizeof(*in));
    oct_status st;

    if (!in) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) in[i] = n->in[i]->data ? n->in[i]->data : p->computed[n->in[i]->id];
    st = oct_node_eval(n, in, &p->computed[n->out[0]->id], NULL);
    oct_free(p->ctx, in);
    return st;
}

oct_status oct_plan_compute_constants(oct_fuser *f)
{
    oct_plan *p = f->p;

    for (const oct_node *n = p->g->last; n; n = n->prev) /* operands of a node that is read are
                                                          * read */
        for (int32_t i = 0; f->lazy[n->id] && f->is_read[n->out[0]->id] && i < n->n_in; i++)
            if (n->in[i]) f->is_read[n->in[i]->id] = 1;
    for (const oct_node *n = p->g->first; n; n = n->next)
        if (f->lazy[n->id] && f->is_read[n->out[0]->id]) OCT_TRY(compute(f, n));
    for (int32_t i = 0; i < p->n_slots; i++)
        if (!p->slots[i].data) p->slots[i].data = p->computed[p->slots[i].value->id];
    return OCT_OK;
}
