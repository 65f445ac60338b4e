/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-conv-bn: BatchNormalization is absorbed into the weights of the layer before it. */
#include "op/op.h"
#include "pass/fuse/fuse_affine.h"
#include "pass/pass.h"

static bool is_batch_norm(const oct_node *n)
{
    return oct_node_is(n, &oct_op_batch_normalization);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    return oct_fuse_after_layers(g, is_batch_norm, n_changed);
}

const oct_pass oct_pass_fuse_conv_bn = {
    .name = "fuse-conv-bn",
    .help = "put BatchNormalization into the weights of the Conv, ConvTranspose or Gemm before it",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_ALL,
};
