/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-conv-affine: constant scales and shifts are absorbed into the weights of the layer before
 * them. */
#include "op/op.h"
#include "pass/fuse/fuse_affine.h"
#include "pass/pass.h"

static bool is_arithmetic(const oct_node *n)
{
    return oct_node_is(n, &oct_op_mul) || oct_node_is(n, &oct_op_add) ||
           oct_node_is(n, &oct_op_sub) || oct_node_is(n, &oct_op_div);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    return oct_fuse_after_layers(g, is_arithmetic, n_changed);
}

const oct_pass oct_pass_fuse_conv_affine = {
    .name = "fuse-conv-affine",
    .help = "put Mul, Div, Add, Sub by constants into the Conv, ConvTranspose or Gemm before them",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_ALL,
};
