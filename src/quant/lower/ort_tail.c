/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that are concatenated along channels only to be split again downstream, as Ultralytics'
 * heads do with boxes and scores: Concat, Reshape to rows, Concat of the levels, Split. Each part
 * is computed separately instead; in ONNX Runtime that saves two copies of a detector's whole
 * output.
 */
#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/lower/lower_parts.h"

/* A Concat of at least two values along this axis with a single consumer. */
static bool joins(const oct_node *n, int64_t axis)
{
    int64_t along;

    if (!oct_node_is(n, &oct_op_concat) || n->n_in < 2) return false;
    along = oct_node_attr(n, "axis")->i;
    if (along < 0) along += n->out[0]->type.rank;
    for (int32_t i = 0; i < n->n_in; i++)
        if (!n->in[i] || n->in[i]->type.rank <= axis) return false;
    return along == axis && oct_sole_user(n->out[0]);
}

/* [N,C,H,W] as [N,C,H*W], of a Concat along C with a single consumer. */
static oct_node *joined_rows(const oct_value *v)
{
    const oct_node *r = v ? v->producer : NULL;
    oct_node *c = r && r->n_in > 0 && r->in[0] ? r->in[0]->producer : NULL;

    if (!oct_node_is(r, &oct_op_reshape) || !oct_sole_user(v) || !c || !joins(c, 1)) return NULL;
    if (r->in[0]->type.rank != 4 || v->type.rank != 3) return NULL;
    return v->type.dim[0] == r->in[0]->type.dim[0] && v->type.dim[1] == r->in[0]->type.dim[1] &&
                   oct_type_is_static(&v->type)
               ? c
               : NULL;
}

/* Does the Split undo the Concat along the channels of each level? */
static bool is_undone(const oct_node *split)
{
    const oct_node *levels = split->in[0] ? split->in[0]->producer : NULL;
    int64_t axis = oct_node_attr(split, "axis")->i;

    if (axis < 0) axis += split->in[0]->type.rank;
    if (!levels || axis != 1 || split->in[0]->type.rank != 3 || !joins(levels, 2)) return false;
    for (int32_t i = 0; i < levels->n_in; i++) {
        const oct_node *c = joined_rows(levels->in[i]);

        if (!c || c->n_in != split->n_out) return false;
        for (int32_t k = 0; k < split->n_out; k++)
            if (!split->out[k] || split->out[k]->is_output ||
                c->in[k]->type.dim[1] != split->out[k]->type.dim[1])
                return false;
    }
    return true;
}

/* Part k of all levels, concatenated. */
static oct_value *part(oct_lowering *l, oct_builder *b, const oct_node *levels, int32_t k)
{
    oct_value **in = oct_arena_array(l->arena, (size_t)levels->n_in, sizeof(*in));
    oct_node *n;

    if (!in) b->status = OCT_ERR_MEMORY;
    for (int32_t i = 0; i < levels->n_in && !b->status; i++) {
        const oct_type *rows = &levels->in[i]->type;
        oct_value *x = joined_rows(levels->in[i])->in[k];
        const int64_t shape[] = {rows->dim[0], x->type.dim[1], rows->dim[2]};

        in[i] = oct_emit(b, &oct_op_reshape, x, oct_ints(b, shape, 3), NULL);
    }
    if (b->status || !(n = oct_emit_node(b, &oct_op_concat, in, levels->n_in, 1))) return NULL;
    b->status = oct_node_set_int(n, "axis", 2);
    if (!b->status) b->status = oct_node_infer(n);
    return b->status ? NULL : n->out[0];
}

oct_status oct_lowering_tail(oct_lowering *l)
{
    for (oct_node *n = l->g->first, *next; n; n = next) {
        oct_builder b = {.g = l->g, .before = n, .prefix = n->name};

        next = n->next;
        if (!oct_node_is(n, &oct_op_split) || !is_undone(n)) continue;
        for (int32_t k = 0; k < n->n_out; k++) {
            oct_value *y = part(l, &b, n->in[0]->producer, k);

            if (!y) return b.status;
            OCT_TRY(oct_value_replace_uses(n->out[k], y));
        }
        OCT_TRY(oct_prune(n->out[0]));
    }
    return OCT_OK;
}
