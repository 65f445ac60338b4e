/* SPDX-License-Identifier: Apache-2.0 */
/* find-hard-swish: x * Clip(x + 3, 0, 6) / 6 and x * HardSigmoid(x) become HardSwish. */
#include "op/op.h"
#include "pass/find/formula.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool is_gate(const oct_value *v, const oct_value *x, double scale)
{
    const oct_node *n = oct_inner_producer(v);
    oct_value *sum, *from;
    double c;

    if (oct_node_is(n, &oct_op_hard_sigmoid)) {
        const oct_attr *alpha = oct_node_attr(n, "alpha"), *beta = oct_node_attr(n, "beta");

        return n->in[0] == x && scale == 1 && alpha && beta &&
               oct_is_near((double)alpha->f, 1.0 / 6) && beta->f == 0.5f;
    }
    return oct_is_near(scale, 1.0 / 6) && oct_is_clip(v, 0, 6, &sum) &&
           oct_is_plus(sum, &c, &from) && c == 3 && from == x;
}

static oct_value *match(const oct_node *n)
{
    oct_product p;

    if (!oct_product_of_node(n, &p) || p.n != 2) return NULL;
    for (int i = 0; i < 2; i++)
        if (is_gate(p.factor[i], p.factor[1 - i], p.scale)) return p.factor[1 - i];
    return NULL;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        oct_value *x = match(n);
        oct_node *made;

        next = n->next;
        if (!x) continue;
        OCT_TRY(oct_become_unary(n, &oct_op_hard_swish, x, &made));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_find_hard_swish = {
    .name = "find-hard-swish",
    .help = "make HardSwish of x * Clip(x + 3, 0, 6) / 6",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .since = 14,
    .in = OCT_IN_ALL,
};
