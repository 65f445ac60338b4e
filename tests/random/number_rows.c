/* SPDX-License-Identifier: Apache-2.0 */
/* Random arithmetic: activations, operands that broadcast, reductions, softmax, matrix products. */
#include "tests/random/rows.h"

static bool add_unary(net *t)
{
    static const oct_op *const ops[] = {
        &oct_op_relu,         &oct_op_leaky_relu, &oct_op_sigmoid, &oct_op_tanh,
        &oct_op_hard_sigmoid, &oct_op_hard_swish, &oct_op_elu,     &oct_op_selu,
        &oct_op_softplus,     &oct_op_softsign,   &oct_op_mish,    &oct_op_gelu,
        &oct_op_abs,          &oct_op_neg,        &oct_op_erf,     &oct_op_identity,
        &oct_op_sin,          &oct_op_celu,       &oct_op_atan,    &oct_op_dropout,
    };
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 0, 5);

    return x && net_keep(t, net_node(t, ops[oct_rng_below(&t->r, OCT_COUNT(ops))], &x, 1, 1));
}

/* x * sigmoid(x), written out. */
static bool add_silu(net *t)
{
    oct_value *in[] = {net_pick(t, OCT_DTYPE_F32, 1, 5), NULL};
    oct_node *n;

    if (!in[0] || !net_keep(t, n = net_node(t, &oct_op_sigmoid, in, 1, 1))) return false;
    in[1] = n->out[0];
    return net_keep(t, net_node(t, &oct_op_mul, in, 2, 1));
}

/* An operand that broadcasts to x: another value, or a constant with some dims 1 or left out. */
static oct_value *operand_for(net *t, const oct_value *x, double low, double high)
{
    const int32_t cut = net_chance(t, 3) ? (int32_t)net_between(t, 0, x->type.rank) : 0;
    int64_t dims[OCT_MAX_RANK] = {0};

    if (net_chance(t, 3)) {
        oct_value *y = net_pick(t, OCT_DTYPE_F32, 0, 5);

        if (y) return y; /* refused if they do not fit */
    }
    for (int32_t i = cut; i < x->type.rank; i++)
        dims[i - cut] = net_chance(t, 2) ? 1 : x->type.dim[i];
    return net_const(t, x->type.rank - cut, dims, low, high);
}

static bool add_binary(net *t)
{
    static const oct_op *const ops[] = {&oct_op_add, &oct_op_add, &oct_op_mul, &oct_op_mul,
                                        &oct_op_sub, &oct_op_max, &oct_op_min};
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 0, 5), *in[2];

    if (!x) return false;
    in[0] = x;
    in[1] = operand_for(t, x, -1.5, 1.5);
    if (net_chance(t, 4)) {
        in[1] = in[0];
        in[0] = operand_for(t, x, -1.5, 1.5);
    }
    return net_keep(t, net_node(t, ops[oct_rng_below(&t->r, OCT_COUNT(ops))], in, 2, 1));
}

static bool add_division(net *t)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 0, 5);

    if (!x) return false;
    oct_value *in[] = {x, net_const(t, 0, NULL, 0.5, 3)};

    return net_keep(t, net_node(t, &oct_op_div, in, 2, 1));
}

static bool add_prelu(net *t)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 2, 5);
    int64_t dims[OCT_MAX_RANK] = {0};

    if (!x) return false;
    for (int32_t i = 1; i < x->type.rank; i++)
        dims[i - 1] = i == 1 ? x->type.dim[1] : 1;
    oct_value *in[] = {x, net_const(t, x->type.rank - 1, dims, -0.5, 0.5)};

    return net_keep(t, net_node(t, &oct_op_p_relu, in, 2, 1));
}

static bool add_clip(net *t)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 0, 5);

    if (!x) return false;
    oct_value *in[] = {x, net_chance(t, 4) ? NULL : net_const(t, 0, NULL, -2, 0),
                       net_chance(t, 4) ? NULL : net_const(t, 0, NULL, 0.1, 6)};

    return net_keep(t, net_node(t, &oct_op_clip, in, 3, 1));
}

static bool add_reduction(net *t)
{
    static const oct_op *const ops[] = {&oct_op_reduce_mean, &oct_op_reduce_sum, &oct_op_reduce_max,
                                        &oct_op_reduce_min,  &oct_op_reduce_l2,  &oct_op_reduce_l1};
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 1, 5);
    int64_t axes[2];
    oct_node *n;

    if (!x) return false;
    for (int i = 0; i < 2; i++)
        axes[i] = net_between(t, -x->type.rank, x->type.rank - 1);
    oct_value *in[] = {x, net_chance(t, 6) ? NULL : oct_ints(&t->b, axes, net_between(t, 1, 2))};

    n = net_node(t, ops[oct_rng_below(&t->r, OCT_COUNT(ops))], in, 2, 1);
    net_int(n, "keepdims", net_between(t, 0, 1));
    return net_keep(t, n);
}

static bool add_along_axis(net *t)
{
    static const oct_op *const ops[] = {&oct_op_softmax, &oct_op_softmax, &oct_op_log_softmax,
                                        &oct_op_lp_normalization};
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 1, 5);
    oct_node *n = x ? net_node(t, ops[oct_rng_below(&t->r, OCT_COUNT(ops))], &x, 1, 1) : NULL;

    if (x) net_int(n, "axis", net_between(t, -x->type.rank, x->type.rank - 1));
    return net_keep(t, n);
}

static bool add_layer_norm(net *t)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 2, 4);

    if (!x) return false;
    const int64_t last = x->type.dim[x->type.rank - 1];
    oct_value *in[] = {x, net_const(t, 1, &last, 0.5, 2),
                       net_chance(t, 3) ? NULL : net_const(t, 1, &last, -1, 1)};

    return net_keep(t, net_node(t, &oct_op_layer_normalization, in, 3, 1));
}

static bool add_mat_mul(net *t)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 1, 4);

    if (!x) return false;
    const int64_t w[] = {x->type.dim[x->type.rank - 1], net_between(t, 1, 20)};
    oct_value *other = net_chance(t, 4) ? net_pick(t, OCT_DTYPE_F32, 1, 4) : NULL;
    oct_value *in[] = {x, other ? other : net_const(t, 2, w, -0.5, 0.5)};

    return net_keep(t, net_node(t, &oct_op_mat_mul, in, 2, 1));
}

static bool add_gemm(net *t)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 2, 2);
    oct_node *n;

    if (!x) return false;
    const bool turn_a = net_chance(t, 4), turn_b = net_chance(t, 2);
    const int64_t k = x->type.dim[turn_a ? 0 : 1], out = net_between(t, 1, 20);
    const int64_t w[] = {turn_b ? out : k, turn_b ? k : out};
    oct_value *in[] = {x, net_const(t, 2, w, -0.5, 0.5),
                       net_chance(t, 3) ? NULL : net_const(t, 1, &out, -1, 1)};

    n = net_node(t, &oct_op_gemm, in, 3, 1);
    net_int(n, "transA", turn_a);
    net_int(n, "transB", turn_b);
    if (n && net_chance(t, 3)) (void)oct_node_set_f32(n, "alpha", 0.5f);
    if (n && net_chance(t, 3)) (void)oct_node_set_f32(n, "beta", 1.5f);
    return net_keep(t, n);
}

const net_row net_number_rows[] = {
    {"unary", add_unary, 9},      {"SiLU", add_silu, 3},       {"binary", add_binary, 9},
    {"Div", add_division, 1},     {"PRelu", add_prelu, 1},     {"Clip", add_clip, 2},
    {"reduce", add_reduction, 3}, {"axis", add_along_axis, 2}, {"LayerNorm", add_layer_norm, 1},
    {"MatMul", add_mat_mul, 3},   {"Gemm", add_gemm, 2},       {NULL, NULL, 0},
};
