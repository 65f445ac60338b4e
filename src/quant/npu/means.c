/* SPDX-License-Identifier: Apache-2.0 */
/* How NPUs divide: a sum of pixels times k / 2^n, with few bits for k. */
#include <math.h>

#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/npu/limits.h"

enum { MOST_K = 128, MOST_SHIFT = 30 };

/* Sizes for which the hardware has k and n of its own, with fewer bits than the search would
 * find. */
static const struct {
    int64_t pixels;
    int k, n;
} fixed[] = {{9, 7, 6}, {25, 10, 8}, {36, 7, 8}, {49, 21, 10}, {196, 21, 12}};

static double factor_for(int64_t pixels)
{
    const double exact = 1 / (double)pixels;
    double best = 0;

    for (size_t i = 0; i < OCT_COUNT(fixed); i++)
        if (fixed[i].pixels == pixels) return ldexp((double)fixed[i].k, -fixed[i].n) / exact;
    for (int n = 0; n <= MOST_SHIFT; n++) {
        const double k = rint(ldexp(exact, n));

        if (k >= MOST_K) break;
        if (fabs(ldexp(k, -n) - exact) < fabs(best - exact)) best = ldexp(k, -n);
    }
    return best / exact;
}

double oct_npu_mean_factor(const oct_node *pool)
{
    const oct_type *x = pool->n_in > 0 && pool->in[0] ? &pool->in[0]->type : NULL;
    const oct_attr *kernel =
        oct_node_is(pool, &oct_op_average_pool) ? oct_node_attr(pool, "kernel_shape") : NULL;
    int64_t pixels = 1;

    if (!x || x->rank < 3) return 0;
    for (int32_t i = 2; i < x->rank; i++) {
        const int64_t d = !kernel ? x->dim[i] : i - 2 < kernel->n ? kernel->is[i - 2] : 0;

        if (d < 1 || pixels > INT32_MAX / d) return 0;
        pixels *= d;
    }
    return factor_for(pixels);
}

const oct_node *oct_npu_factor_after(const oct_value *v)
{
    const oct_node *u = oct_sole_user(v);

    if (!oct_node_is(u, &oct_op_mul) || u->n_in != 2 || !u->in[0] || !u->in[1]) return NULL;
    for (int32_t i = 0; i < 2; i++)
        if (u->in[i] != v && u->in[i]->data && oct_tensor_len(u->in[i]->data) == 1) return u;
    return NULL;
}
