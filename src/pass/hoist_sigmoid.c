/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hoist-sigmoid: moves a Sigmoid upstream of nodes that only move data, to the convolutions that
 * produce them: there it is fused, and nothing is stored twice.
 */
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

#define MAX_DEPTH 8

static bool moves(const oct_node *n)
{
    return n->op == &oct_op_reshape || n->op == &oct_op_transpose || n->op == &oct_op_concat;
}

static int32_t n_operands(const oct_node *n)
{
    return n->op == &oct_op_concat ? n->n_in : 1;
}

/* `reader` is the only consumer of v, and convolutions produce all of it. */
static bool comes_from_convs(const oct_value *v, const oct_node *reader, int depth)
{
    const oct_node *n = v->producer;

    if (!n || n->graph != v->graph || oct_sole_user(v) != reader || depth == MAX_DEPTH)
        return false;
    if (n->op == &oct_op_conv) return depth > 0;
    if (!moves(n)) return false;
    for (int32_t i = 0; i < n_operands(n); i++)
        if (!n->in[i] || !comes_from_convs(n->in[i], n, depth + 1)) return false;
    return true;
}

static oct_status put(oct_node *reader, const char *name)
{
    for (int32_t i = 0; i < n_operands(reader); i++) {
        oct_builder b = {.g = reader->graph, .before = reader, .prefix = name};
        oct_value *y;

        if (moves(reader->in[i]->producer)) {
            OCT_TRY(put(reader->in[i]->producer, name));
            continue;
        }
        if (!(y = oct_emit(&b, &oct_op_sigmoid, reader->in[i], NULL, NULL))) return b.status;
        OCT_TRY(oct_node_set_input(reader, i, y));
    }
    return OCT_OK;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        bool done = false;

        next = n->next;
        if (!oct_node_is(n, &oct_op_sigmoid) || !n->in[0] || !comes_from_convs(n->in[0], n, 0))
            continue;
        if (!oct_value_can_replace(n->out[0], n->in[0])) continue;
        OCT_TRY(put(n->in[0]->producer, n->name));
        OCT_TRY(oct_bypass(n, n->in[0], &done));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_hoist_sigmoid = {
    .name = "hoist-sigmoid",
    .help = "apply Sigmoid where convolutions make what it reads",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_PLANS,
};
