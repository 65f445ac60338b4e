/* SPDX-License-Identifier: Apache-2.0 */
/* find-silu: x * Sigmoid(alpha * x) becomes Swish. */
#include "op/op.h"
#include "pass/find/formula.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* The x and alpha of the formula that n ends; NULL: it is none. */
static oct_value *match(const oct_node *n, double *alpha)
{
    oct_product p, inner;

    if (!oct_product_of_node(n, &p) || p.n != 2 || p.scale != 1) return NULL;
    for (int i = 0; i < 2; i++) {
        const oct_node *s = oct_inner_producer(p.factor[i]);

        if (!oct_node_is(s, &oct_op_sigmoid)) continue;
        *alpha = 1;
        if (s->in[0] == p.factor[1 - i]) return s->in[0];
        if (!oct_product_of(s->in[0], &inner) || inner.n != 1) continue;
        *alpha = inner.scale;
        if (inner.factor[0] == p.factor[1 - i]) return p.factor[1 - i];
    }
    return NULL;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        double alpha;
        oct_value *x = match(n, &alpha);
        oct_node *made;

        next = n->next;
        if (!x) continue;
        OCT_TRY(oct_become_unary(n, &oct_op_swish, x, &made));
        if (alpha != 1) OCT_TRY(oct_node_set_f32(made, "alpha", (float)alpha));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_find_silu = {
    .name = "find-silu",
    .help = "make Swish of x * Sigmoid(x)",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .since = 24,
    .in = OCT_IN_ALL,
};
