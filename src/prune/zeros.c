/* SPDX-License-Identifier: Apache-2.0 */
/* Channels that are zero already: masked networks, as training leaves them. */
#include "op/axes.h"
#include "prune/groups.h"

static bool is_zero(const oct_tensor *t, int32_t axis, int64_t i)
{
    const oct_lanes l = oct_lanes_of(&t->type, axis);
    const float *x = t->data;

    for (int64_t o = 0; o < l.outer; o++)
        for (int64_t k = 0; k < l.inner; k++)
            if (x[(o * l.n + i) * l.inner + k] != 0.0f) return false;
    return true;
}

/* A unit may go if nothing makes it, and nothing reads it: what lies between does not matter. */
oct_status oct_prune_choose_zeros(oct_prune_groups *g)
{
    const oct_channels *c = g->c;

    for (int32_t i = 0; i < g->n; i++)
        for (int32_t k = 0; k < g->groups[i].n; k++)
            g->keep[g->groups[i].units[k]] = g->groups[i].why != NULL;
    for (int32_t i = 0; i < c->n_cuts; i++) {
        const oct_cut *k = &c->cuts[i];

        if (k->axis < 0 || k->is_again || k->role == OCT_CUT_FACTOR) continue;
        if (k->value->data->type.dtype != OCT_DTYPE_F32) continue;
        for (int64_t j = 0; j < k->n; j++)
            if (k->unit[j] >= 0 && !g->keep[k->unit[j]])
                g->keep[k->unit[j]] = !is_zero(k->value->data, k->axis, j);
    }
    oct_prune_keep_one_each(g);
    return OCT_OK;
}
