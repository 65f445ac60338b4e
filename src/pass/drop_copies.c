/* SPDX-License-Identifier: Apache-2.0 */
/* drop-copies: remove nodes whose result is their first operand, bit by bit. */
#include <string.h>

#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool has_other_results(const oct_node *n)
{
    for (int32_t i = 1; i < n->n_out; i++)
        if (n->out[i] && (n->out[i]->n_users > 0 || n->out[i]->is_output)) return true;
    return false;
}

static bool is_whole(const oct_node *n)
{
    return (n->op->flags & OCT_OP_IS_COPY) != 0;
}

/* Inference mode, or a drop ratio of 0. */
static bool is_idle_dropout(const oct_node *n)
{
    const oct_tensor *ratio = oct_node_const(n, 1), *train = oct_node_const(n, 2);

    if (ratio && oct_const_is_all(ratio, 0)) return true;
    return !oct_node_in(n, 2) || (train && oct_const_is_all(train, 0));
}

static bool is_same_cast(const oct_node *n)
{
    return n->in[0]->type.dtype != OCT_DTYPE_NONE && n->in[0]->type.dtype == n->out[0]->type.dtype;
}

static bool is_identity_transpose(const oct_node *n)
{
    const oct_attr *perm = oct_node_attr(n, "perm");

    if (!perm) return n->in[0]->type.rank >= 0 && n->in[0]->type.rank <= 1;
    for (int64_t i = 0; i < perm->n; i++)
        if (perm->is[i] != i) return false;
    return true;
}

static bool is_whole_slice(const oct_node *n)
{
    const oct_tensor *steps = oct_node_const(n, 4);

    if (oct_node_in(n, 4) && !steps) return false;
    for (int64_t i = 0, len = steps ? oct_tensor_len(steps) : 0; i < len; i++)
        if (oct_tensor_get_i64(steps, i) < 1) return false; /* reversed */
    return oct_same_static(&n->in[0]->type, &n->out[0]->type);
}

static bool is_empty_pad(const oct_node *n)
{
    const oct_tensor *pads = oct_node_const(n, 1);

    return pads && oct_const_is_all(pads, 0);
}

static bool is_single_tile(const oct_node *n)
{
    const oct_tensor *repeats = oct_node_const(n, 1);

    return repeats && oct_const_is_all(repeats, 1);
}

/* Every sample falls on a pixel. Cubic is left alone: its weights are sums that need not cancel. */
static bool is_same_resize(const oct_node *n)
{
    const oct_attr *mode = oct_node_attr(n, "mode");
    const oct_attr *at = oct_node_attr(n, "coordinate_transformation_mode");
    const oct_tensor *scales = oct_node_const(n, 2);

    if (mode && strcmp(mode->s, "cubic") == 0) return false;
    if (at && strcmp(at->s, "tf_crop_and_resize") == 0) return false;
    if (!oct_same_static(&n->in[0]->type, &n->out[0]->type)) return false;
    if (oct_node_in(n, 3)) return true;
    return scales && oct_const_is_all(scales, 1);
}

static bool same_type(const oct_node *n)
{
    return oct_same_static(&n->in[0]->type, &n->out[0]->type);
}

static bool has_one_operand(const oct_node *n)
{
    return n->n_in == 1;
}

/* x * 1, x / 1, x ^ 1, x - 0, x + -0: exact, signed zeros included. x + 0 is not: drop-zero-adds.
 */
static bool is_neutral(const oct_node *n, int at, double x)
{
    const oct_tensor *c = oct_node_const(n, at);

    return c && n->n_in == 2 && n->in[1 - at] && oct_keeps_shape(&n->in[1 - at]->type, &c->type) &&
           oct_const_is_all(c, x);
}

typedef struct copier {
    const oct_op *op;
    bool (*is_copy)(const oct_node *n);
} copier;

static const copier copiers[] = {
    {&oct_op_dropout, is_idle_dropout},
    {&oct_op_cast, is_same_cast},
    {&oct_op_transpose, is_identity_transpose},
    {&oct_op_slice, is_whole_slice},
    {&oct_op_pad, is_empty_pad},
    {&oct_op_tile, is_single_tile},
    {&oct_op_resize, is_same_resize},
    {&oct_op_reshape, same_type},
    {&oct_op_flatten, same_type},
    {&oct_op_squeeze, same_type},
    {&oct_op_unsqueeze, same_type},
    {&oct_op_expand, same_type},
    {&oct_op_concat, has_one_operand},
    {&oct_op_sum, has_one_operand},
    {&oct_op_max, has_one_operand},
    {&oct_op_min, has_one_operand},
    {&oct_op_mean, has_one_operand},
};

typedef struct neutral {
    const oct_op *op;
    double x;
    bool commutes;
} neutral;

static const neutral neutrals[] = {
    {&oct_op_mul, 1.0, true},  {&oct_op_div, 1.0, false}, {&oct_op_pow, 1.0, false},
    {&oct_op_sub, 0.0, false}, {&oct_op_add, -0.0, true},
};

/* Which operand the result is a copy of; -1: of none. */
static int copied_operand(const oct_node *n)
{
    if (n->n_in < 1 || n->n_out < 1 || !n->in[0] || !n->out[0]) return -1;
    if (has_other_results(n)) return -1;
    if (is_whole(n)) return 0;
    for (size_t i = 0; i < OCT_COUNT(copiers); i++)
        if (n->op == copiers[i].op && copiers[i].is_copy(n)) return 0;
    for (size_t i = 0; i < OCT_COUNT(neutrals); i++) {
        if (n->op != neutrals[i].op) continue;
        if (is_neutral(n, 1, neutrals[i].x)) return 0;
        if (neutrals[i].commutes && is_neutral(n, 0, neutrals[i].x)) return 1;
    }
    return -1;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        const int at = copied_operand(n);
        bool done = false;

        next = n->next; /* n may go away */
        if (at < 0) continue;
        OCT_TRY(oct_bypass(n, n->in[at], &done));
        *n_changed += done;
    }
    return OCT_OK;
}

const oct_pass oct_pass_drop_copies = {
    .name = "drop-copies",
    .help =
        "remove Identity, Dropout, and Cast, Transpose, Reshape, Slice, Mul... that change nothing",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_ALL,
};
