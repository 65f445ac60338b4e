/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators: elements that meet belong to one unit. */
#include "op/channels.h"
#include "op/op.h"
#include "prune/follow.h"

/* One operand, aligned to the result's axes. */
typedef struct side {
    const oct_value *v;
    oct_tensor *labels;
    bool is_broadcast; /* over axes along which others have different units */
} side;

/* Size of the operand along the result's axis d. */
static int64_t dim_of(const oct_type *t, int32_t rank, int32_t d)
{
    const int32_t i = d - (rank - t->rank);

    return i < 0 ? 1 : t->dim[i];
}

/* The label at a position of the result. */
static int32_t label_at(const side *s, int32_t rank, const int64_t *at)
{
    const oct_type *t = &s->labels->type;
    int64_t i = 0;

    for (int32_t d = 0; d < t->rank; d++)
        i = i * t->dim[d] + (t->dim[d] > 1 ? at[d + rank - t->rank] : 0);
    return ((const int32_t *)s->labels->data)[i];
}

/* The axes along which labels of any operand differ, with their sizes. False: too many labels. */
static bool grid_of(const side *sides, int32_t n, oct_type *grid)
{
    int64_t len = 1;

    for (int32_t d = 0; d < grid->rank; d++) {
        grid->dim[d] = 1;
        for (int32_t i = 0; i < n; i++)
            if (sides[i].labels)
                grid->dim[d] = OCT_MAX(grid->dim[d], dim_of(&sides[i].labels->type, grid->rank, d));
        if (!oct_mul_i64(len, grid->dim[d], &len) || len > OCT_MAX_LABELS) return false;
    }
    return true;
}

/* One number for several channels: it stays when some of them go. */
static void find_broadcast(oct_channels *c, const oct_node *n, side *sides, const oct_type *grid)
{
    for (int32_t i = 0; i < n->n_in; i++) {
        side *s = &sides[i];

        for (int32_t d = 0; s->labels && d < grid->rank; d++)
            s->is_broadcast |= grid->dim[d] > 1 && dim_of(&s->v->type, grid->rank, d) == 1;
        if (s->is_broadcast) oct_units_protect(c, s->v, n, "it is broadcast over channels");
    }
}

static void unite(oct_channels *c, const oct_node *n, const side *sides, const oct_type *grid,
                  int32_t *out)
{
    int64_t at[OCT_MAX_RANK] = {0};
    const int64_t len = oct_type_len(grid);

    for (int64_t i = 0; i < len; i++) {
        bool is_first = true;

        for (int32_t k = 0; k < n->n_in; k++) {
            const int32_t u = sides[k].labels && !sides[k].is_broadcast
                                  ? label_at(&sides[k], grid->rank, at)
                                  : -1;

            if (!sides[k].labels || sides[k].is_broadcast) continue;
            if (!is_first && (out[i] < 0) != (u < 0))
                oct_unit_protect(c, OCT_MAX(out[i], u), n, "it meets channels that cannot go");
            else if (!is_first)
                oct_units_unite(c, out[i], u);
            out[i] = is_first ? u : OCT_MAX(out[i], u);
            is_first = false;
        }
        if (is_first) out[i] = -1;
        for (int32_t d = grid->rank - 1; d >= 0 && ++at[d] == grid->dim[d]; d--)
            at[d] = 0;
    }
}

/* A constant that is added can be a zero in a masked network. */
static oct_cut_role role_of(const oct_node *n)
{
    return oct_node_is(n, &oct_op_add) || oct_node_is(n, &oct_op_sub) ? OCT_CUT_SHIFT
                                                                      : OCT_CUT_FACTOR;
}

static oct_status combine(oct_channels *c, oct_node *n, side *sides)
{
    oct_type grid = {.dtype = OCT_DTYPE_I32, .rank = n->out[0]->type.rank};
    oct_tensor *t = NULL;

    for (int32_t i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        sides[i].v = n->in[i];
        if (n->in[i]->data)
            OCT_TRY(oct_follow_cut_broadcast(c, n, i, n->out[0], role_of(n)));
        else
            OCT_TRY(oct_follow_read(c, n->in[i], &sides[i].labels));
        if (n->in[i]->type.rank < 0 || n->in[i]->type.rank > grid.rank)
            return oct_follow_stop(c, n);
    }
    if (!grid_of(sides, n->n_in, &grid)) return oct_follow_stop(c, n);
    find_broadcast(c, n, sides, &grid);
    OCT_TRY(oct_tensor_make(c->ctx, &grid, &t));
    unite(c, n, sides, &grid, t->data);
    return oct_follow_set(c, n->out[0], t);
}

oct_status oct_follow_elementwise(oct_channels *c, oct_node *n)
{
    side *sides;
    oct_status st;

    if (!n->out[0] || n->out[0]->type.rank < 0 || n->n_in < 1) return oct_follow_stop(c, n);
    if (!(sides = oct_calloc(c->ctx, (size_t)n->n_in, sizeof(*sides)))) return OCT_ERR_MEMORY;
    st = combine(c, n, sides);
    for (int32_t i = 0; i < n->n_in; i++)
        oct_tensor_unref(sides[i].labels);
    oct_free(c->ctx, sides);
    return st;
}
