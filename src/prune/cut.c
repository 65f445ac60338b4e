/* SPDX-License-Identifier: Apache-2.0 */
/* Surgery and masking: constants lose the slices of units that are not kept, or get zeros there. */
#include "prune/cut.h"

#include <string.h>

#include "op/axes.h"
#include "prune/follow.h"

static bool is_kept(const bool *keep, int32_t unit)
{
    return unit < 0 || keep[unit];
}

/* --- constants --- */

/* Weights are float32, other constants any type of whole bytes. */
static size_t row_bytes(const oct_tensor *x, int64_t n)
{
    size_t bytes = 0;

    (void)oct_dtype_bytes(x->type.dtype, n, &bytes);
    return bytes;
}

/* y = the kept slices of x along an axis. */
static oct_status take(oct_ctx *ctx, const oct_tensor *x, int32_t axis, const int32_t *unit,
                       const bool *keep, oct_tensor **y)
{
    const oct_lanes lanes = oct_lanes_of(&x->type, axis);
    const size_t row = row_bytes(x, lanes.inner);
    oct_type type = x->type;
    const char *from = x->data;
    char *to;

    type.dim[axis] = 0;
    for (int64_t i = 0; i < lanes.n; i++)
        type.dim[axis] += is_kept(keep, unit[i]);
    OCT_TRY(oct_tensor_make(ctx, &type, y));
    to = (*y)->data;
    for (int64_t o = 0; o < lanes.outer; o++)
        for (int64_t i = 0; i < lanes.n; i++, from += row) {
            if (!is_kept(keep, unit[i])) continue;
            memcpy(to, from, row);
            to += row;
        }
    return OCT_OK;
}

static oct_status clear(oct_ctx *ctx, const oct_tensor *x, int32_t axis, const int32_t *unit,
                        const bool *keep, oct_tensor **y)
{
    const oct_lanes lanes = oct_lanes_of(&x->type, axis);
    const size_t row = row_bytes(x, lanes.inner);

    OCT_TRY(oct_tensor_copy(ctx, x, y));
    for (int64_t o = 0; o < lanes.outer; o++)
        for (int64_t i = 0; i < lanes.n; i++)
            if (!is_kept(keep, unit[i]))
                memset((char *)(*y)->data + (size_t)(o * lanes.n + i) * row, 0, row);
    return OCT_OK;
}

static bool loses(const oct_cut *k, const bool *keep)
{
    if (k->axis < 0 || k->is_again) return false;
    for (int64_t i = 0; i < k->n; i++)
        if (!is_kept(keep, k->unit[i])) return true;
    return false;
}

static void set_data(oct_value *v, oct_tensor *t)
{
    oct_tensor_unref(v->data);
    v->data = t;
    v->type = t->type;
}

oct_status oct_channels_mask(const oct_channels *c, const bool *keep)
{
    for (int32_t i = 0; i < c->n_cuts; i++) {
        const oct_cut *k = &c->cuts[i];
        oct_tensor *t = NULL;

        if (k->role == OCT_CUT_FACTOR || !loses(k, keep)) continue;
        OCT_TRY(clear(c->ctx, k->value->data, k->axis, k->unit, keep, &t));
        set_data(k->value, t);
    }
    return OCT_OK;
}

/* --- surgery --- */

oct_status oct_surgery_kept(const oct_surgery *s, const oct_value *v, int32_t *axis,
                            const bool **kept)
{
    const int32_t *unit;
    bool *all, is_whole = true;
    int64_t n;

    *kept = NULL;
    OCT_TRY(oct_channels_of(s->c, v, axis, &unit));
    if (*axis < 0) return OCT_OK;
    n = v->type.dim[*axis];
    if (!(all = oct_arena_array(s->c->arena, (size_t)n, sizeof(*all)))) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        is_whole &= all[i] = is_kept(s->keep, unit[i]);
    if (is_whole)
        *axis = -1;
    else
        *kept = all;
    return OCT_OK;
}

/* What every value will be. */
static oct_status find_types(oct_surgery *s)
{
    const oct_channels *c = s->c;

    for (int32_t id = 0; id < c->n_labels; id++) {
        const oct_value *v = c->g->values[id];
        const bool *kept;
        int32_t axis;
        int64_t n = 0;

        if (!v) continue;
        s->type[id] = v->type;
        if (!c->labels[id]) continue;
        OCT_TRY(oct_surgery_kept(s, v, &axis, &kept));
        if (axis < 0) continue;
        for (int64_t i = 0; i < v->type.dim[axis]; i++)
            n += kept[i];
        s->type[id].dim[axis] = n;
        if (n < 1)
            return oct_fail(c->ctx, OCT_ERR_ARG, "value '%s' would lose all channels", v->name);
    }
    return OCT_OK;
}

/* All inner values at once, so that inference starts from what they will be. */
static oct_status set_types(const oct_surgery *s)
{
    const oct_channels *c = s->c;

    for (int32_t id = 0; id < c->n_labels; id++) {
        oct_value *v = c->g->values[id];

        if (v && v->graph == c->g && !v->data) v->type = s->type[id];
    }
    OCT_TRY(oct_graph_infer(c->g));
    for (int32_t id = 0; id < c->n_labels; id++) {
        const oct_value *v = c->g->values[id];
        char got[OCT_TYPE_TEXT_SIZE], want[OCT_TYPE_TEXT_SIZE];

        if (!v || v->graph != c->g || v->data || oct_type_equal(&v->type, &s->type[id])) continue;
        return oct_fail(c->ctx, OCT_ERR_SHAPE, "value '%s' is %s without its channels, not %s",
                        v->name, oct_type_text(&v->type, got), oct_type_text(&s->type[id], want));
    }
    return oct_graph_verify(c->g);
}

static oct_status cut_nodes(const oct_surgery *s)
{
    for (oct_node *n = s->c->g->first; n; n = n->next)
        OCT_TRY(oct_channel_rule_of(n).cut(s, n));
    return OCT_OK;
}

static oct_status cut_constants(const oct_surgery *s)
{
    for (int32_t i = 0; i < s->c->n_cuts; i++) {
        const oct_cut *k = &s->c->cuts[i];
        oct_tensor *t = NULL;

        if (!loses(k, s->keep)) continue;
        OCT_TRY(take(s->c->ctx, k->value->data, k->axis, k->unit, s->keep, &t));
        set_data(k->value, t);
    }
    return OCT_OK;
}

oct_status oct_channels_cut(const oct_channels *c, const bool *keep)
{
    oct_surgery s = {.c = c, .keep = keep};

    s.type = oct_arena_array(c->arena, (size_t)c->n_labels + 1, sizeof(*s.type));
    if (!s.type) return OCT_ERR_MEMORY;
    OCT_TRY(find_types(&s));
    OCT_TRY(cut_nodes(&s));
    OCT_TRY(cut_constants(&s));
    return set_types(&s);
}
