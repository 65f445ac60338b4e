/* SPDX-License-Identifier: Apache-2.0 */
/* fold-dequantize: dequantizes constant weights where no integer kernel will read them. */
#include "op/op.h"
#include "pass/fold/fold.h"
#include "pass/pass.h"

static oct_status run(oct_graph *g, int *n_changed)
{
    oct_fold_budget budget = oct_fold_budget_for(g);

    /* From 4 bits to 32: large, but no larger than the weights of a float network. */
    budget.ratio = 8;
    budget.growth += 2 * budget.work;
    for (oct_node *n = g->first, *next; n; n = next) {
        bool done = false;

        next = n->next;
        if (!oct_node_is(n, &oct_op_dequantize_linear) && !oct_node_is(n, &oct_op_quantize_linear))
            continue;
        if (!oct_fold_possible(n)) continue;
        OCT_TRY(oct_fold_node(n, &budget, &done));
        *n_changed += done;
    }
    return OCT_OK;
}

const oct_pass oct_pass_fold_dequantize = {
    .name = "fold-dequantize",
    .help = "compute DequantizeLinear and QuantizeLinear of constants",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_FLOAT_PLANS,
};
