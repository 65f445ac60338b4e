/* SPDX-License-Identifier: Apache-2.0 */
/* drop-requantize: removes a QuantizeLinear after a DequantizeLinear with the same parameters. */
#include "op/qparams.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        const oct_node *back = n->n_in > 0 && n->in[0] ? n->in[0]->producer : NULL;
        oct_codes to, from;
        bool done = false;

        next = n->next;
        if (!oct_node_is_quantize(n) || !back || !oct_node_is_dequantize(back)) continue;
        if (!oct_codes_of(n, &to) || !oct_codes_of(back, &from) || !oct_codes_equal(&to, &from))
            continue;
        OCT_TRY(oct_bypass(n, back->in[0], &done));
        *n_changed += done;
    }
    return OCT_OK;
}

const oct_pass oct_pass_drop_requantize = {
    .name = "drop-requantize",
    .help = "remove QuantizeLinear after a DequantizeLinear with the same parameters",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_INTEGER_PLANS,
};
