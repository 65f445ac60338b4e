/* SPDX-License-Identifier: Apache-2.0 */
/* find-layer-norm: mean, variance, division, scale and bias become LayerNormalization. */
#include "op/op.h"
#include "pass/find/find_norm.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* The x of d = x - mean(x), if d is used only inside the formula. */
static oct_value *centred(const oct_norm *m)
{
    const oct_node *sub = m->d->producer;

    if (!oct_node_is(sub, &oct_op_sub) || m->d->is_output || m->d->n_users != m->n_readers)
        return NULL;
    return oct_is_trailing_mean(sub->in[1], sub->in[0], m->n_axes) ? sub->in[0] : NULL;
}

static bool has_static_dims(const oct_norm *m)
{
    const oct_type *t = &m->d->type;

    for (int i = t->rank - m->n_axes; i < t->rank; i++)
        if (t->dim[i] < 1) return false;
    return true;
}

/* Either way to compute the variance. */
static bool match(oct_node *n, oct_norm *m, oct_value **x)
{
    if (oct_norm_match(n, m)) return has_static_dims(m) && (*x = centred(m));
    return oct_moments_match(n, m, x);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        oct_norm m;
        oct_value *x;

        next = n->next;
        if (!match(n, &m, &x)) continue;
        oct_norm_extend(&m, true);
        next = oct_norm_skip(&m, next);
        OCT_TRY(oct_norm_replace(&m, &oct_op_layer_normalization, x));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_find_layer_norm = {
    .name = "find-layer-norm",
    .help = "make LayerNormalization of one written out in small operators",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .since = 17,
    .in = OCT_IN_ALL,
};
