/* SPDX-License-Identifier: Apache-2.0 */
/* hoist-quantize: moves a QuantizeLinear before the node that only moves data. */
#include "op/channels.h"
#include "op/op.h"
#include "pass/integer/qdq.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* MaxPool and QuantizeLinear commute: rounding never changes an order. */
static bool moves(const oct_node *n)
{
    return n && oct_node_moves_data(n) && n->n_out == 1 && n->op != &oct_op_global_max_pool;
}

static bool can_hoist(const oct_node *q, const oct_node *n, oct_codes *c)
{
    if (!oct_node_is_quantize(q) || !oct_codes_of(q, c) || c->n != 1) return false;
    if (oct_dtype_get(c->dtype)->bits != 8) return false;
    if (!moves(n) || n->graph != q->graph || oct_sole_user(q->in[0]) != q) return false;
    for (int32_t i = 0; i < oct_node_n_data(n); i++)
        if (n->in[i]->type.dtype != OCT_DTYPE_F32 || n->in[i]->graph != n->graph) return false;
    return oct_qdq_pad_fits(n, c);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *q = g->last, *prev; q; q = prev) {
        oct_node *n = q->n_in > 0 && q->in[0] ? q->in[0]->producer : NULL;
        oct_qdq l;
        oct_codes c;

        prev = q->prev;
        if (!n || !can_hoist(q, n, &c)) continue;
        l = oct_qdq_of(q);
        for (int32_t i = 0, k = oct_node_n_data(n); i < k; i++) {
            oct_value *codes;

            OCT_TRY(oct_qdq_new(g, n, true, q->name, n->in[i], &l, NULL, &codes));
            OCT_TRY(oct_node_set_input(n, i, codes));
        }
        OCT_TRY(oct_qdq_fix_pad(n, &c));
        OCT_TRY(oct_node_take_output(n, q));
        prev = n->prev; /* the new ones may be moved further up */
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_hoist_quantize = {
    .name = "hoist-quantize",
    .help = "quantize before data is moved, so that codes are moved",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_INTEGER_PLANS,
};
