/* SPDX-License-Identifier: Apache-2.0 */
/* If: one of two bodies, chosen by a condition. */
#include "op/body.h"

enum { ELSE_BRANCH, THEN_BRANCH };

static oct_status shape(const oct_infer *q)
{
    const oct_graph *yes = q->node->attr[THEN_BRANCH].g, *no = q->node->attr[ELSE_BRANCH].g;
    const oct_tensor *cond = oct_infer_data(q, 0);
    const oct_type *t;

    OCT_TRY(oct_infer_need(q, 0, &t));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_BOOL));
    OCT_TRY(oct_body_check(q->node, yes, 0, q->node->n_out));
    OCT_TRY(oct_body_check(q->node, no, 0, q->node->n_out));
    for (int32_t i = 0; i < q->node->n_out; i++) {
        if (cond && oct_tensor_len(cond) == 1)
            q->out[i] = (oct_tensor_get_i64(cond, 0) ? yes : no)->outputs[i]->type;
        else
            q->out[i] = oct_type_join(&yes->outputs[i]->type, &no->outputs[i]->type);
    }
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    if (oct_tensor_len(a->in[0]) != 1)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "the condition has %lld elements",
                             (long long)oct_tensor_len(a->in[0]));
    const int branch = oct_tensor_get_i64(a->in[0], 0) ? THEN_BRANCH : ELSE_BRANCH;
    const oct_graph *body = a->node->attr[branch].g;
    OCT_TRY(oct_body_check(a->node, body, 0, a->node->n_out));
    return oct_body_run(a, body, NULL, a->out);
}

static const oct_attr_def attrs[] = {
    [ELSE_BRANCH] = {"else_branch", OCT_ATTR_GRAPH, .def = {.i = 0}, .no_default = true,
                     .required = true},
    [THEN_BRANCH] = {"then_branch", OCT_ATTR_GRAPH, .def = {.i = 0}, .no_default = true,
                     .required = true},
    {0},
};

const oct_op oct_op_if = {
    .name = "If",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = -1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flags = OCT_OP_HAS_BODY | OCT_OP_DATA_SHAPE | OCT_OP_CHOOSES,
};
