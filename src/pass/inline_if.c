/* SPDX-License-Identifier: Apache-2.0 */
/* inline-if: an If whose condition is constant becomes the nodes of the branch it takes. */
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static oct_graph *taken_branch(const oct_node *n)
{
    const oct_tensor *cond = oct_node_const(n, 0);
    const oct_attr *a;

    if (!oct_node_is(n, &oct_op_if) || !cond || oct_tensor_len(cond) != 1) return NULL;
    a = oct_node_attr(n, oct_tensor_get_i64(cond, 0) ? "then_branch" : "else_branch");
    return a && a->kind == OCT_ATTR_GRAPH && a->g->n_outputs == n->n_out ? a->g : NULL;
}

/* Bodies inside the moved nodes get the new parent graph. */
static void adopt(oct_attr *a, oct_graph *g)
{
    if (a->kind == OCT_ATTR_GRAPH) a->g->parent = g;
}

static void move_nodes(oct_graph *from, oct_graph *g, oct_node *before)
{
    for (oct_node *n = from->first, *next; n; n = next) {
        next = n->next;
        n->graph = g;
        n->prev = before->prev;
        n->next = before;
        *(n->prev ? &n->prev->next : &g->first) = n;
        before->prev = n;
        g->n_nodes++;
        for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++)
            adopt(&n->attr[i], g);
        for (int i = 0; i < n->n_extra; i++)
            adopt(&n->extra[i].value, g);
    }
    from->first = from->last = NULL;
    from->n_nodes = 0;
}

static void move_values(oct_graph *from, oct_graph *g)
{
    const oct_graph *root = g->root;

    for (int32_t i = 0; i < root->n_value_ids; i++)
        if (root->values[i] && root->values[i]->graph == from) root->values[i]->graph = g;
}

/* Results of the branch replace those of the If: directly where possible, else by a copy. */
static oct_status connect(oct_node *n, int32_t i, oct_value *v)
{
    oct_value *out = n->out[i];

    if (!out) return OCT_OK;
    if (v->graph == n->graph && oct_value_can_replace(out, v)) {
        OCT_TRY(oct_value_replace_uses(out, v));
        return OCT_OK;
    }
    n->out[i] = NULL;
    if (!oct_node_new(n->graph, n, NULL, &oct_op_identity, &v, 1, &out, 1)) return OCT_ERR_MEMORY;
    return OCT_OK;
}

static oct_status inline_branch(oct_node *n, oct_graph *body)
{
    oct_graph *g = n->graph;
    oct_value *cond = n->in[0];

    for (int32_t i = 0; i < body->n_outputs; i++)
        if (body->outputs[i]->graph == body) body->outputs[i]->is_output = false;
    move_nodes(body, g, n);
    move_values(body, g);
    for (int32_t i = 0; i < n->n_out; i++)
        OCT_TRY(connect(n, i, body->outputs[i]));
    oct_node_remove(n);
    return oct_prune(cond);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        oct_graph *body = taken_branch(n);

        next = n->next;
        if (!body) continue;
        if (body->first) next = body->first; /* it may contain such an If as well */
        OCT_TRY(inline_branch(n, body));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_inline_if = {
    .name = "inline-if",
    .help = "put the taken branch in place of an If with a constant condition",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_ALL,
};
