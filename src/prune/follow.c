/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, uniting and setting the labels of values while nodes are followed. */
#include "prune/follow.h"

#include <string.h>

#include "op/channels.h"

static const oct_channel_rule rules[] = {
#define OCT_CHANNELS(row, follow_, cut_) {&oct_op_##row, oct_follow_##follow_, oct_cut_##cut_},
#include "prune/channels.def"
#undef OCT_CHANNELS
};

oct_channel_rule oct_channel_rule_of(const oct_node *n)
{
    for (size_t i = 0; i < OCT_COUNT(rules); i++)
        if (rules[i].op == n->op) return rules[i];
    if (n->op->flags & OCT_OP_ELEMENTWISE)
        return (oct_channel_rule){n->op, oct_follow_elementwise, oct_cut_none};
    if (n->op->flow == OCT_FLOW_PASS)
        return (oct_channel_rule){n->op, oct_follow_spatial, oct_cut_none};
    return (oct_channel_rule){n->op, n->op->moves ? oct_follow_moves : oct_follow_stop,
                              oct_cut_none};
}

bool oct_labels_vary(const oct_tensor *labels, int32_t axis)
{
    return labels->type.dim[axis] > 1;
}

oct_status oct_follow_read(oct_channels *c, const oct_value *v, oct_tensor **out)
{
    oct_tensor *t = v->id < c->n_labels ? c->labels[v->id] : NULL;
    int32_t *label;

    if (!t) return oct_labels_new(c->ctx, &v->type, -1, false, out);
    label = t->data;
    for (int64_t i = 0; i < oct_tensor_len(t); i++)
        label[i] = oct_unit_root(c, label[i]);
    oct_labels_narrow(t);
    *out = oct_tensor_ref(t);
    return OCT_OK;
}

/* Labels without a unit are not kept. */
oct_status oct_follow_set(oct_channels *c, const oct_value *v, oct_tensor *t)
{
    bool has_units = false;

    for (int64_t i = 0; i < oct_tensor_len(t) && !has_units; i++)
        has_units = ((const int32_t *)t->data)[i] >= 0;
    oct_tensor_unref(c->labels[v->id]);
    c->labels[v->id] = NULL;
    if (has_units)
        c->labels[v->id] = t;
    else
        oct_tensor_unref(t);
    return OCT_OK;
}

oct_status oct_follow_copy(oct_channels *c, const oct_value *from, const oct_value *to)
{
    oct_tensor *t = c->labels[from->id], *own = NULL;

    if (!t || from->type.rank != to->type.rank) return OCT_OK;
    OCT_TRY(oct_tensor_copy(c->ctx, t, &own));
    return oct_follow_set(c, to, own);
}

oct_status oct_follow_tie(oct_channels *c, const oct_value *v, int32_t axis)
{
    oct_tensor *t = NULL;
    const int32_t *label;
    int64_t n, inner, len;

    OCT_TRY(oct_follow_read(c, v, &t));
    n = axis < t->type.rank ? t->type.dim[axis] : 1;
    inner = axis < t->type.rank ? oct_type_span(&t->type, axis + 1, t->type.rank) : 1;
    len = oct_tensor_len(t);
    label = t->data;
    for (int64_t i = 0; i < len; i++)
        oct_units_unite(c, label[i / inner % n * inner], label[i]);
    oct_tensor_unref(t);
    OCT_TRY(oct_follow_read(c, v, &t)); /* narrows them */
    oct_tensor_unref(t);
    return OCT_OK;
}

oct_status oct_follow_lane(oct_channels *c, const oct_value *v, int32_t axis, int32_t **unit)
{
    const int64_t n = axis >= 0 && axis < v->type.rank ? v->type.dim[axis] : -1;
    oct_tensor *t = NULL;

    if (n < 1 || n > OCT_MAX_LABELS)
        return oct_fail(c->ctx, OCT_ERR_SHAPE, "value '%s': its channels are not known", v->name);
    if (!(*unit = oct_arena_array(c->arena, (size_t)n, sizeof(**unit)))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_follow_read(c, v, &t));
    for (int64_t i = 0; i < n; i++)
        (*unit)[i] =
            oct_tensor_len(t) == n && t->type.dim[axis] == n ? ((const int32_t *)t->data)[i] : -1;
    oct_tensor_unref(t);
    return OCT_OK;
}

oct_status oct_follow_give(oct_channels *c, const oct_value *v, int32_t axis, const int32_t *unit)
{
    oct_type type = {.dtype = OCT_DTYPE_I32, .rank = v->type.rank};
    oct_tensor *t = NULL;

    for (int32_t d = 0; d < type.rank; d++)
        type.dim[d] = d == axis ? v->type.dim[d] : 1;
    OCT_TRY(oct_tensor_make(c->ctx, &type, &t));
    memcpy(t->data, unit, (size_t)type.dim[axis] * sizeof(*unit));
    return oct_follow_set(c, v, t);
}

oct_status oct_follow_cut(oct_channels *c, oct_node *n, int32_t operand, int32_t axis,
                          const oct_value *of, int32_t of_axis, oct_cut_role role)
{
    OCT_TRY(oct_grow(c->ctx, &c->cuts, &c->cap_cuts, (size_t)c->n_cuts + 1, sizeof(*c->cuts)));
    c->cuts[c->n_cuts++] = (oct_cut){.value = n->in[operand],
                                     .axis = axis,
                                     .of = of,
                                     .of_axis = of_axis,
                                     .node = n,
                                     .operand = operand,
                                     .role = role};
    return OCT_OK;
}

oct_status oct_follow_cut_broadcast(oct_channels *c, oct_node *n, int32_t operand,
                                    const oct_value *of, oct_cut_role role)
{
    const oct_type *t = &n->in[operand]->type;
    const int32_t more = of->type.rank - t->rank;

    OCT_TRY(oct_follow_cut(c, n, operand, -1, of, -1, role));
    for (int32_t d = 0; d < t->rank; d++)
        if (t->dim[d] > 1 && d + more >= 0 && of->type.dim[d + more] == t->dim[d])
            OCT_TRY(oct_follow_cut(c, n, operand, d, of, d + more, role));
    return OCT_OK;
}

oct_status oct_follow_stop(oct_channels *c, oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i])
            oct_units_protect(c, n->in[i], n, "channels cannot be followed through this operator");
    return OCT_OK;
}
