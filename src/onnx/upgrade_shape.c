/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades where the rules for shapes changed: broadcasting, flattening, per-channel operands. */
#include <string.h>

#include "onnx/upgrade.h"

/* Input i with `n` dimensions of size 1 appended: its rank must be known. */
static oct_status append_ones(oct_draft *d, int i, int n)
{
    const int rank = oct_draft_rank(d, i);
    oct_value *axes = NULL, *v = NULL;
    int64_t at[OCT_MAX_RANK];

    for (int k = 0; k < n; k++)
        at[k] = rank + k;
    OCT_TRY(oct_draft_ints(d, "axes", at, n, &axes));
    OCT_TRY(oct_draft_emit(d, "unsqueeze", "Unsqueeze", oct_draft_in(d, i), axes, NULL, 0, &v));
    return oct_draft_set_in(d, i, v);
}

/* Opset 7: NumPy's broadcasting. Before, the second operand's shape lay inside the first's,
 * beginning at `axis`, and only if asked for. */
oct_status oct_up_broadcast_7(oct_draft *d)
{
    const int64_t axis = oct_draft_int(d, "axis", -1);
    const bool has_axis = oct_draft_attr_find(d, "axis") && oct_draft_int(d, "broadcast", 0);
    const int a = oct_draft_rank(d, 0), b = oct_draft_rank(d, 1);
    int64_t n;

    oct_draft_drop(d, "axis");
    oct_draft_drop(d, "broadcast");
    if (!has_axis || b == 0) return OCT_OK;
    if (a < 0 || b < 0)
        return oct_draft_fail(d, OCT_ERR_UNSUPPORTED,
                              "broadcasting along an axis as before opset 7, with unknown shapes");
    n = axis < -a || axis > a ? -1 : a - (axis < 0 ? axis + a : axis) - b;
    if (n < 0)
        return oct_draft_fail(d, OCT_ERR_SHAPE, "operands do not fit at axis %lld",
                              (long long)axis);
    return n ? append_ones(d, 1, (int)n) : OCT_OK;
}

/* Opset 7: a slope for each channel has to be broadcast like any operand. */
oct_status oct_up_prelu_7(oct_draft *d)
{
    const oct_value *slope = oct_draft_in(d, 1);
    const int rank = oct_draft_rank(d, 0);

    if (!slope || slope->type.rank != 1 || slope->type.dim[0] == 1) return OCT_OK;
    if (rank < 0)
        return oct_draft_fail(d, OCT_ERR_UNSUPPORTED,
                              "slopes as before opset 7, with an input of unknown shape");
    return rank > 2 ? append_ones(d, 1, rank - 2) : OCT_OK;
}

/* Is everything behind `axis` of size 1? Then flattening changes nothing. */
static bool ends_in_ones(const oct_type *t, int axis)
{
    for (int i = axis + 1; i < t->rank; i++)
        if (t->dim[i] != 1) return false;
    return true;
}

/* Opset 13: along one axis. Before, the input was seen as a matrix, split at `axis` (1 if not
 * given), and each row was worked on. */
oct_status oct_up_softmax_13(oct_draft *d)
{
    const int64_t axis = oct_draft_int(d, "axis", 1);
    const int rank = oct_draft_rank(d, 0);
    const int64_t from_front = axis < 0 && rank >= 0 ? axis + rank : axis;
    const oct_draft_attr flat = {.name = "axis", .value = {.kind = OCT_ATTR_INT, .i = axis}};
    const char *name;
    oct_draft inner;
    oct_value *x = oct_draft_in(d, 0), *matrix = NULL, *shape = NULL;

    if (!x || d->n_out != 1 || !d->out[0]) return OCT_OK; /* verifying will say so */
    if (rank >= 0 && (from_front < 0 || from_front >= OCT_MAX(rank, 1)))
        return oct_draft_fail(d, OCT_ERR_SHAPE, "axis %lld is out of range", (long long)axis);
    if (rank >= 0 && ends_in_ones(&x->type, (int)from_front))
        return oct_draft_set_int(d, "axis", axis);

    inner = *d;
    OCT_TRY(oct_draft_emit(d, "flatten", "Flatten", x, NULL, &flat, 1, &matrix));
    OCT_TRY(oct_draft_emit(d, "shape", "Shape", x, NULL, NULL, 0, &shape));
    inner.in = oct_arena_array(d->s->r->wire.arena, 3, sizeof(oct_value *));
    if (!inner.in) return OCT_ERR_MEMORY;
    inner.in[0] = matrix;
    inner.out = inner.in + 1;
    if (!(inner.out[0] = oct_value_new(d->s->g, NULL, NULL))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_draft_set_int(&inner, "axis", -1));
    OCT_TRY(oct_draft_finish(&inner));

    /* The draft goes on as the node that brings the shape back. */
    name = oct_arena_printf(d->s->r->wire.arena, "%s_reshape", d->name);
    if (!name) return OCT_ERR_MEMORY;
    OCT_TRY(oct_read_node_name(d->s->r, name, &d->name));
    d->op = "Reshape";
    d->n_attr = 0;
    OCT_TRY(oct_draft_set_in(d, 0, inner.out[0]));
    return oct_draft_set_in(d, 1, shape);
}

/* One number for each group repeated for each of its channels. */
static oct_status repeat_for_channels(oct_draft *d, int i, int64_t groups, int64_t per_group)
{
    const int64_t one = 1, all = -1, wide[] = {groups, per_group};
    oct_value *axes = NULL, *dims = NULL, *flat = NULL, *v = oct_draft_in(d, i);

    OCT_TRY(oct_draft_ints(d, "axes", &one, 1, &axes));
    OCT_TRY(oct_draft_ints(d, "dims", wide, 2, &dims));
    OCT_TRY(oct_draft_ints(d, "flat", &all, 1, &flat));
    OCT_TRY(oct_draft_emit(d, "unsqueeze", "Unsqueeze", v, axes, NULL, 0, &v));
    OCT_TRY(oct_draft_emit(d, "expand", "Expand", v, dims, NULL, 0, &v));
    OCT_TRY(oct_draft_emit(d, "reshape", "Reshape", v, flat, NULL, 0, &v));
    return oct_draft_set_in(d, i, v);
}

/* Opset 21: scale and bias are given for each channel; they were for each group. */
oct_status oct_up_group_norm_21(oct_draft *d)
{
    const oct_value *x = oct_draft_in(d, 0);
    const int64_t groups = oct_draft_int(d, "num_groups", 0);

    if (!x || !oct_draft_in(d, 1) || !oct_draft_in(d, 2)) return OCT_OK;
    if (x->type.rank < 2 || x->type.dim[1] < 0)
        return oct_draft_fail(
            d, OCT_ERR_UNSUPPORTED,
            "the form it had before opset 21, with an unknown number of channels");
    if (groups < 1 || x->type.dim[1] % groups)
        return oct_draft_fail(d, OCT_ERR_SHAPE, "%lld channels are not divisible by %lld groups",
                              (long long)x->type.dim[1], (long long)groups);
    if (x->type.dim[1] == groups) return OCT_OK;
    OCT_TRY(repeat_for_channels(d, 1, groups, x->type.dim[1] / groups));
    return repeat_for_channels(d, 2, groups, x->type.dim[1] / groups);
}
