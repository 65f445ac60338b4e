/* SPDX-License-Identifier: Apache-2.0 */
/* Finds DFL heads: the expected value of a distribution over bins. */
#include "pass/find/dfl.h"

#include "op/conv_geometry.h"
#include "op/op.h"
#include "pass/rewrite.h"

/* Is it a Softmax over the second axis? */
static bool is_softmax_of_bins(const oct_node *n)
{
    const oct_attr *axis = oct_node_is(n, &oct_op_softmax) ? oct_node_attr(n, "axis") : NULL;

    return axis && (axis->i == 1 || axis->i == -3);
}

/* Is it a 1x1 convolution of all channels to one? */
static bool is_weighted_sum(const oct_node *n)
{
    const oct_tensor *w = oct_node_is(n, &oct_op_conv) ? oct_node_const(n, 1) : NULL;
    oct_conv_geometry g;

    return w && oct_node_in(n, 0) && w->type.dtype == OCT_DTYPE_F32 && w->type.dim[0] == 1 &&
           !oct_conv_geometry_conv(n, &n->in[0]->type, &w->type, &g) && g.n == 2 &&
           oct_conv_is_pointwise(&g) && g.group == 1;
}

bool oct_dfl_is_sum(const oct_node *n)
{
    return is_weighted_sum(n) && is_softmax_of_bins(n->in[0]->producer);
}

bool oct_dfl_find(const oct_node *split, oct_dfl *out)
{
    static const int64_t by_side[] = {0, 2, 1, 3}, by_pixel[] = {0, 2, 3, 1};
    const oct_type *x, *y;
    oct_dfl m = {.split = split};

    if (!oct_node_is(split, &oct_op_reshape) || split->in[0]->data) return false;
    x = &split->in[0]->type;
    y = &split->out[0]->type;
    if (x->rank < 3 || x->dtype != OCT_DTYPE_F32 || oct_type_len(x) < 1) return false;
    if (y->rank != 4 || y->dim[0] != x->dim[0] || y->dim[1] * y->dim[2] != x->dim[1]) return false;
    m.sides = y->dim[1];
    m.bins = y->dim[2];
    m.transpose = oct_sole_user(split->out[0]);
    m.by_pixel = oct_node_transposes(m.transpose, by_pixel, 4);
    if (!m.by_pixel && !oct_node_transposes(m.transpose, by_side, 4)) return false;
    m.softmax = oct_sole_user(m.transpose->out[0]);
    if (!is_softmax_of_bins(m.softmax)) return false;
    m.sum = oct_sole_user(m.softmax->out[0]);
    if (!oct_dfl_is_sum(m.sum) || oct_node_in(m.sum, 2)) return false;
    if (m.sum->in[1]->type.dim[1] != m.bins) return false;
    *out = m;
    return true;
}
