/* SPDX-License-Identifier: Apache-2.0 */
/* Random movement of data: reshape, transpose, concat, split, slice, pad, gather, resize. */
#include "tests/random/rows.h"

static oct_value *any(net *t, int low, int high)
{
    return net_pick(t, OCT_DTYPE_F32, low, high);
}

/* Constants among the operands: what folding works on. Split, TopK and MaxPool of them too. */
static bool add_const(net *t)
{
    int64_t dims[4];
    const int32_t rank = (int32_t)net_between(t, 1, 4);
    oct_value *v;

    for (int i = 0; i < rank; i++)
        dims[i] = net_between(t, 1, 6);
    if (t->n_pool >= NET_POOL || !(v = net_const(t, rank, dims, -2, 2))) return false;
    t->pool[t->n_pool++] = v;
    return true;
}

/* Two dims joined, one cut in two, or all in one row; a dim left open (-1) or copied (0). */
static bool add_reshape(net *t)
{
    oct_value *x = any(t, 1, 5);
    int64_t dims[OCT_MAX_RANK + 1] = {0};
    int32_t rank = 0;

    if (!x) return false;
    const int32_t at = (int32_t)net_between(t, 0, x->type.rank - 1);

    for (int32_t i = 0; i < x->type.rank; i++) {
        const int64_t d = x->type.dim[i];

        if (i == at && d % 2 == 0) {
            dims[rank++] = 2;
            dims[rank++] = d / 2;
        } else if (i == at && i + 1 < x->type.rank) {
            dims[rank++] = d * x->type.dim[++i];
        } else {
            dims[rank++] = d;
        }
    }
    if (net_chance(t, 3)) dims[oct_rng_below(&t->r, (uint64_t)rank)] = -1;
    if (net_chance(t, 6)) dims[0] = rank == x->type.rank && at > 0 ? 0 : dims[0];
    oct_value *in[] = {x, oct_ints(&t->b, dims, rank)};

    return net_keep(t, net_node(t, &oct_op_reshape, in, 2, 1));
}

static bool add_transpose(net *t)
{
    oct_value *x = any(t, 2, 5);
    int64_t perm[OCT_MAX_RANK];
    oct_node *n;

    if (!x) return false;
    for (int32_t i = 0; i < x->type.rank; i++)
        perm[i] = i;
    for (int32_t i = x->type.rank - 1; i > 0; i--) {
        const int64_t k = net_between(t, 0, i), kept = perm[i];

        perm[i] = perm[k];
        perm[k] = kept;
    }
    n = net_node(t, &oct_op_transpose, &x, 1, 1);
    net_ints(n, "perm", perm, x->type.rank);
    return net_keep(t, n);
}

static bool add_concat(net *t)
{
    oct_value *x = any(t, 1, 5), *in[4] = {NULL};
    int n_in = 0;
    oct_node *n;

    if (!x) return false;
    const int axis = (int)net_between(t, 0, x->type.rank - 1);

    in[n_in++] = x;
    for (int i = t->n_pool - 1; i >= 0 && n_in < 4; i--) {
        const oct_type *type = &t->pool[i]->type;
        bool fits = type->rank == x->type.rank && type->dtype == OCT_DTYPE_F32;

        for (int d = 0; fits && d < type->rank; d++)
            fits = d == axis || type->dim[d] == x->type.dim[d];
        if (fits && !net_chance(t, 3)) in[n_in++] = t->pool[i];
    }
    n = net_node(t, &oct_op_concat, in, n_in, 1);
    net_int(n, "axis", net_chance(t, 3) ? axis - x->type.rank : axis);
    return net_keep(t, n);
}

static bool add_split(net *t)
{
    oct_value *x = any(t, 1, 5);
    int64_t sizes[3];
    oct_node *n;

    if (!x) return false;
    const int axis = (int)net_between(t, 0, x->type.rank - 1);
    const int64_t d = x->type.dim[axis];
    const int64_t parts = d < 3 ? d : net_between(t, 2, 3);

    if (d < 2) return false;
    for (int i = 0; i < parts; i++)
        sizes[i] = d / parts + (i < d % parts);
    oct_value *in[] = {x, oct_ints(&t->b, sizes, parts)};

    n = net_node(t, &oct_op_split, in, 2, (int32_t)parts);
    net_int(n, "axis", axis);
    return net_keep(t, n);
}

static bool add_slice(net *t)
{
    oct_value *x = any(t, 1, 5);

    if (!x) return false;
    const int64_t axis = net_between(t, 0, x->type.rank - 1), d = x->type.dim[axis];
    const bool backwards = net_chance(t, 5);
    const int64_t start = backwards ? -1 : net_between(t, -d, d - 1);
    const int64_t end = backwards ? -d - 1 : net_chance(t, 2) ? INT64_MAX : net_between(t, 1, d);
    const int64_t step = backwards ? -net_between(t, 1, 2) : net_between(t, 1, 2);
    oct_value *in[] = {x, oct_ints(&t->b, &start, 1), oct_ints(&t->b, &end, 1),
                       oct_ints(&t->b, &axis, 1), oct_ints(&t->b, &step, 1)};

    return net_keep(t, net_node(t, &oct_op_slice, in, 5, 1));
}

static bool add_pad(net *t)
{
    static const char *const modes[] = {"constant", "constant", "constant", "reflect", "edge"};
    oct_value *x = any(t, 2, 5);
    int64_t pads[2 * OCT_MAX_RANK] = {0};
    oct_node *n;

    if (!x) return false;
    for (int32_t i = 0; i < 2 * x->type.rank; i++)
        if (i % x->type.rank > 1 || net_chance(t, 8))
            pads[i] = net_between(t, 0, OCT_MIN(2, x->type.dim[i % x->type.rank] - 1));
    oct_value *in[] = {x, oct_ints(&t->b, pads, 2 * x->type.rank),
                       net_chance(t, 3) ? net_const(t, 0, NULL, -1, 1) : NULL};

    n = net_node(t, &oct_op_pad, in, 3, 1);
    if (n) (void)oct_node_set_str(n, "mode", modes[oct_rng_below(&t->r, OCT_COUNT(modes))]);
    return net_keep(t, n);
}

static bool add_gather(net *t)
{
    oct_value *x = any(t, 1, 4);
    int64_t index[3];
    oct_node *n;

    if (!x) return false;
    const int64_t axis = net_between(t, 0, x->type.rank - 1), d = x->type.dim[axis];

    for (int i = 0; i < 3; i++)
        index[i] = net_between(t, -d, d - 1);
    oct_value *in[] = {x, oct_ints(&t->b, index, net_between(t, 1, 3))};

    n = net_node(t, &oct_op_gather, in, 2, 1);
    net_int(n, "axis", axis);
    return net_keep(t, n);
}

static bool add_resize(net *t)
{
    static const char *const coordinates[] = {"asymmetric", "half_pixel", "align_corners",
                                              "pytorch_half_pixel"};
    static const char *const nearest[] = {"floor", "round_prefer_floor", "ceil",
                                          "round_prefer_ceil"};
    oct_value *x = any(t, 4, 4);
    const int64_t dims[] = {4};
    oct_node *n;

    if (!x) return false;
    oct_value *in[] = {x, NULL, net_const(t, 1, dims, 1, 1)};

    if (!in[2]) return false;
    for (int i = 2; i < 4; i++)
        ((float *)in[2]->data->data)[i] = (float)net_between(t, 1, 6) * 0.5f;
    n = net_node(t, &oct_op_resize, in, 3, 1);
    if (!n) return false;
    (void)oct_node_set_str(n, "coordinate_transformation_mode",
                           coordinates[oct_rng_below(&t->r, 4)]);
    if (net_chance(t, 2))
        (void)oct_node_set_str(n, "mode", "linear");
    else
        (void)oct_node_set_str(n, "nearest_mode", nearest[oct_rng_below(&t->r, 4)]);
    return net_keep(t, n);
}

/* Depth to space and back, Flatten, Unsqueeze, Tile. */
static bool add_block(net *t)
{
    oct_value *x = any(t, 4, 4);
    oct_node *n =
        x ? net_node(t, net_chance(t, 2) ? &oct_op_depth_to_space : &oct_op_space_to_depth, &x, 1,
                     1)
          : NULL;

    net_int(n, "blocksize", 2);
    return net_keep(t, n);
}

static bool add_flatten(net *t)
{
    oct_value *x = any(t, 1, 5);
    oct_node *n = x ? net_node(t, &oct_op_flatten, &x, 1, 1) : NULL;

    if (x) net_int(n, "axis", net_between(t, 0, x->type.rank));
    return net_keep(t, n);
}

static bool add_unsqueeze(net *t)
{
    oct_value *x = any(t, 0, 4);
    const int64_t axis = net_between(t, 0, 1);
    oct_value *in[] = {x, oct_ints(&t->b, &axis, 1)};

    return x && net_keep(t, net_node(t, &oct_op_unsqueeze, in, 2, 1));
}

/* x reshaped to its own shape, computed from Shape: what exporters write for flatten(). */
static bool add_shape_chain(net *t)
{
    oct_value *x = any(t, 2, 5), *in[2];
    const int64_t zero = 0, rest = -1;
    oct_node *n;

    if (!x || !net_keep(t, n = net_node(t, &oct_op_shape, &x, 1, 1))) return false;
    t->n_pool--; /* shapes are no operands of float rows */
    in[0] = n->out[0];
    in[1] = oct_ints(&t->b, &zero, 1);
    if (!net_keep(t, n = net_node(t, &oct_op_gather, in, 2, 1))) return false;
    t->n_pool--;
    in[0] = n->out[0];
    in[1] = oct_ints(&t->b, &rest, 1);
    n = net_node(t, &oct_op_concat, in, 2, 1);
    net_int(n, "axis", 0);
    if (!net_keep(t, n)) return false;
    t->n_pool--;
    in[0] = x;
    in[1] = n->out[0];
    return net_keep(t, net_node(t, &oct_op_reshape, in, 2, 1));
}

const net_row net_shape_rows[] = {
    {"constant", add_const, 2},
    {"Reshape", add_reshape, 4},
    {"Transpose", add_transpose, 4},
    {"Concat", add_concat, 5},
    {"Split", add_split, 4},
    {"Slice", add_slice, 3},
    {"Pad", add_pad, 3},
    {"Gather", add_gather, 1},
    {"Resize", add_resize, 2},
    {"block", add_block, 1},
    {"Flatten", add_flatten, 1},
    {"Unsqueeze", add_unsqueeze, 1},
    {"Shape", add_shape_chain, 2},
    {NULL, NULL, 0},
};
