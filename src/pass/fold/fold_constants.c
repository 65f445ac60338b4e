/* SPDX-License-Identifier: Apache-2.0 */
/* fold-constants: evaluates nodes that depend on constants only. */
#include "op/op.h"
#include "pass/fold/fold.h"
#include "pass/pass.h"

/* Quantized weights are kept small: DequantizeLinear of a constant stays, see fold-dequantize.
 * QuantizeLinear of float weights, as quantization-aware training exports them, becomes codes: a
 * quarter of the bytes, and what integer kernels read. */
static bool is_kept(const oct_node *n)
{
    return oct_node_is(n, &oct_op_dequantize_linear);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    oct_fold_budget budget = oct_fold_budget_for(g);

    for (oct_node *n = g->first, *next; n; n = next) {
        bool done = false;

        next = n->next; /* n may go away, and nodes before it */
        if (!oct_fold_possible(n) || is_kept(n)) continue;
        OCT_TRY(oct_fold_node(n, &budget, &done));
        *n_changed += done;
    }
    return OCT_OK;
}

const oct_pass oct_pass_fold_constants = {
    .name = "fold-constants",
    .help = "evaluate what depends on constants only, as far as it stays small",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_ALL,
};
