/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-matmul-add: a MatMul of two matrices and the Add after it become a Gemm. */
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* Which operand of an Add is the product: its index, or -1. */
static int product_operand(const oct_node *n)
{
    if (!oct_node_is(n, &oct_op_add) || n->n_in != 2 || !n->in[0] || !n->in[1]) return -1;
    for (int i = 0; i < 2; i++) {
        const oct_node *m = oct_inner_producer(n->in[i]);

        if (!oct_node_is(m, &oct_op_mat_mul) || m->graph != n->graph) continue;
        if (!oct_dtype_is_float(n->in[i]->type.dtype)) continue;
        if (m->in[0]->type.rank != 2 || m->in[1]->type.rank != 2) continue;
        if (oct_keeps_shape(&n->in[i]->type, &n->in[1 - i]->type)) return i;
    }
    return -1;
}

static oct_status fuse(oct_node *n, int at)
{
    const oct_node *product = n->in[at]->producer;
    oct_value *const in[] = {product->in[0], product->in[1], n->in[1 - at]};
    const char *name = product->name; /* the layer's name is kept, not the addition's */
    oct_node *made;

    OCT_TRY(oct_node_become(n, &oct_op_gemm, in, 3, &made));
    made->name = name;
    return oct_node_infer(made);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        const int at = product_operand(n);

        next = n->next;
        if (at < 0) continue;
        OCT_TRY(fuse(n, at));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_fuse_matmul_add = {
    .name = "fuse-matmul-add",
    .help = "make a Gemm of a MatMul of matrices and the Add after it",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_ALL,
};
