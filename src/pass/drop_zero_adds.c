/* SPDX-License-Identifier: Apache-2.0 */
/* drop-zero-adds: remove x + 0, which differs from x in the sign of a zero at most. */
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool is_zero(const oct_node *n, int at)
{
    const oct_tensor *c = oct_node_const(n, at);

    return c && oct_keeps_shape(&n->in[1 - at]->type, &c->type) && oct_const_is_all(c, 0.0);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        bool done = false;
        int at;

        next = n->next;
        if (!oct_node_is(n, &oct_op_add) && !oct_node_is(n, &oct_op_sum)) continue;
        at = oct_const_operand(n);
        if (at < 0 || !is_zero(n, at)) continue;
        OCT_TRY(oct_bypass(n, n->in[1 - at], &done));
        *n_changed += done;
    }
    return OCT_OK;
}

const oct_pass oct_pass_drop_zero_adds = {
    .name = "drop-zero-adds",
    .help = "remove additions of zero",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_ALL,
};
