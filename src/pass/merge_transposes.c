/* SPDX-License-Identifier: Apache-2.0 */
/* merge-transposes: a Transpose of a Transpose becomes one. */
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* The permutation, also where it is the default, which reverses. */
static bool perm_of(const oct_node *n, int64_t *perm, int *rank)
{
    const oct_attr *a = oct_node_attr(n, "perm");
    const int32_t r = n->in[0]->type.rank;

    *rank = a ? (int)OCT_MIN(a->n, OCT_MAX_RANK + 1) : r;
    if (*rank < 0 || *rank > OCT_MAX_RANK) return false;
    for (int i = 0; i < *rank; i++) {
        perm[i] = a ? a->is[i] : *rank - 1 - i;
        if (perm[i] < 0 || perm[i] >= *rank) return false;
    }
    return true;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        int64_t outer[OCT_MAX_RANK], inner[OCT_MAX_RANK], both[OCT_MAX_RANK];
        int rank, inner_rank;
        oct_node *before;
        oct_value *mid;

        next = n->next;
        if (!oct_node_is(n, &oct_op_transpose)) continue;
        mid = n->in[0];
        before = mid->producer;
        if (!oct_node_is(before, &oct_op_transpose) || before->graph != g) continue;
        if (!perm_of(n, outer, &rank) || !perm_of(before, inner, &inner_rank)) continue;
        if (rank != inner_rank) continue;
        for (int i = 0; i < rank; i++)
            both[i] = inner[outer[i]];
        OCT_TRY(oct_node_set_ints(n, "perm", both, rank));
        OCT_TRY(oct_node_set_input(n, 0, before->in[0]));
        OCT_TRY(oct_prune(mid));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_merge_transposes = {
    .name = "merge-transposes",
    .help = "merge consecutive Transposes",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_ALL,
};
