/* SPDX-License-Identifier: Apache-2.0 */
/* find-rms-norm: division by the root mean square, and a scale, become RMSNormalization. */
#include "op/op.h"
#include "pass/find/find_norm.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        oct_norm m;

        next = n->next;
        if (!oct_norm_match(n, &m)) continue;
        oct_norm_extend(&m, false);
        if (!m.mul) continue; /* RMSNormalization requires a scale, and there is none */
        next = oct_norm_skip(&m, next);
        OCT_TRY(oct_norm_replace(&m, &oct_op_rms_normalization, m.d));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_find_rms_norm = {
    .name = "find-rms-norm",
    .help = "make RMSNormalization of one written out in small operators",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .since = 23,
    .in = OCT_IN_ALL,
};
