/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over the bins of DFL: sum(p[i] * i) of probabilities that add up to 1. Rounding moves each
 * of them by up to half a code, and what that does to the sum grows with its weight. Counted from
 * the middle bin, sum(p[i] * (i - c)) + c, weights are half as large, and so is the noise.
 */
#include <math.h>

#include "pass/find/dfl.h"
#include "quant/correct/correct.h"

static float middle(const float *w, int64_t n)
{
    float low = INFINITY, high = -INFINITY;

    for (int64_t i = 0; i < n; i++) {
        low = fminf(low, w[i]);
        high = fmaxf(high, w[i]);
    }
    return (low + high) / 2;
}

/* Operand i of the node becomes a constant of its own, made from `from` or zeros of that type. */
static oct_status own_constant(oct_node *n, int32_t i, const oct_tensor *from, const oct_type *type,
                               float plus)
{
    const char *name = oct_graph_fresh_name(n->graph, i == 1 ? "dfl_bins" : "dfl_middle");
    oct_tensor *t = NULL;
    oct_value *v;

    if (!name) return OCT_ERR_MEMORY;
    OCT_TRY(oct_tensor_make(n->graph->ctx, type, &t));
    for (int64_t k = 0; k < oct_type_len(type); k++)
        ((float *)t->data)[k] = (from ? ((const float *)from->data)[k] : 0) + plus;
    if (!(v = oct_value_const(n->graph, name, t))) return OCT_ERR_MEMORY;
    return oct_node_set_input(n, i, v);
}

static oct_status centre(oct_node *n)
{
    const oct_tensor *w = oct_node_const(n, 1), *bias = oct_node_const(n, 2);
    const oct_type one = oct_type_make(OCT_DTYPE_F32, 1, &w->type.dim[0]);
    const float c = middle(w->data, oct_tensor_len(w));

    if (c == 0 || !isfinite(c)) return OCT_OK;
    if (oct_node_in(n, 2) && (!bias || bias->type.dtype != OCT_DTYPE_F32)) return OCT_OK;
    OCT_TRY(own_constant(n, 2, bias, &one, c));
    return own_constant(n, 1, w, &w->type, -c);
}

oct_status oct_centre_bins(oct_graph *g)
{
    for (oct_node *n = g->first; n; n = n->next)
        if (oct_dfl_is_sum(n)) OCT_TRY(centre(n));
    return OCT_OK;
}
