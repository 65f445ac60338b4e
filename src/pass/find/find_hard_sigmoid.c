/* SPDX-License-Identifier: Apache-2.0 */
/* find-hard-sigmoid: Clip(x + 3, 0, 6) / 6 becomes HardSigmoid, unless it is part of a HardSwish.
 */
#include "op/op.h"
#include "pass/find/formula.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static oct_value *match(const oct_node *n)
{
    oct_product p;
    oct_value *sum, *x;
    double c;

    if (!oct_product_of_node(n, &p) || p.n != 1 || !oct_is_near(p.scale, 1.0 / 6)) return NULL;
    if (!oct_is_clip(p.factor[0], 0, 6, &sum) || !oct_is_plus(sum, &c, &x) || c != 3) return NULL;
    return x;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        oct_value *x = match(n);
        oct_node *made;

        next = n->next;
        if (!x) continue;
        OCT_TRY(oct_become_unary(n, &oct_op_hard_sigmoid, x, &made));
        OCT_TRY(oct_node_set_f32(made, "alpha", 1.0f / 6));
        OCT_TRY(oct_node_set_f32(made, "beta", 0.5f));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_find_hard_sigmoid = {
    .name = "find-hard-sigmoid",
    .help = "make HardSigmoid of Clip(x + 3, 0, 6) / 6",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_ALL,
};
