/* SPDX-License-Identifier: Apache-2.0 */
/* Random layers with windows: convolutions, transposed ones, poolings, with every form of padding.
 */
#include "tests/random/rows.h"

/* Strides, dilations, pads or auto_pad for `n` spatial dims. */
static void set_window(net *t, oct_node *n, int dims, const int64_t *kernel, bool has_dilations)
{
    static const char *const automatic[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    int64_t strides[3], dilations[3] = {1, 1, 1}, pads[6];

    if (!n) return;
    for (int i = 0; i < dims; i++) {
        strides[i] = net_chance(t, 2) ? 1 : net_between(t, 1, 3);
        if (has_dilations && net_chance(t, 4)) dilations[i] = net_between(t, 1, 3);
    }
    for (int i = 0; i < 2 * dims; i++)
        pads[i] = net_between(t, 0, OCT_MIN(kernel[i % dims] - 1, 2));
    if (net_chance(t, 2)) /* the usual: the same on both sides */
        for (int i = 0; i < dims; i++)
            pads[dims + i] = pads[i];
    net_ints(n, "kernel_shape", kernel, dims);
    if (!net_chance(t, 4)) net_ints(n, "strides", strides, dims);
    if (has_dilations) net_ints(n, "dilations", dilations, dims);
    if (net_chance(t, 5))
        (void)oct_node_set_str(n, "auto_pad", automatic[oct_rng_below(&t->r, 3)]);
    else if (!net_chance(t, 4))
        net_ints(n, "pads", pads, 2 * dims);
}

static int64_t any_divisor(net *t, int64_t n)
{
    int64_t d = net_between(t, 1, n);

    while (n % d)
        d--;
    return d;
}

static bool add_conv(net *t)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 3, 5);
    int64_t w[5], c_out;

    if (!x) return false;
    const int dims = x->type.rank - 2;
    const int64_t c_in = x->type.dim[1];
    const int64_t group = net_chance(t, 3) ? c_in : net_chance(t, 3) ? any_divisor(t, c_in) : 1;

    c_out = group == c_in && !net_chance(t, 3) ? c_in
                                               : group * net_between(t, 1, 24 / OCT_MIN(group, 24));
    w[0] = c_out;
    w[1] = c_in / group;
    for (int i = 0; i < dims; i++)
        w[2 + i] = i && !net_chance(t, 3) ? w[2] : net_between(t, 1, dims > 2 ? 3 : 5);
    oct_value *const in[] = {x, net_const(t, dims + 2, w, -0.5, 0.5),
                             net_chance(t, 3) ? NULL : net_const(t, 1, &c_out, -1, 1)};
    oct_node *n = net_node(t, &oct_op_conv, in, 3, 1);

    set_window(t, n, dims, w + 2, true);
    net_int(n, "group", group);
    return net_keep(t, n);
}

static bool add_conv_transpose(net *t)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 3, 4);
    int64_t w[4], c_out;

    if (!x) return false;
    const int dims = x->type.rank - 2;
    const int64_t group = net_chance(t, 4) ? any_divisor(t, x->type.dim[1]) : 1;

    w[0] = x->type.dim[1];
    w[1] = net_between(t, 1, 6);
    c_out = w[1] * group;
    for (int i = 0; i < dims; i++)
        w[2 + i] = net_between(t, 1, 4);
    oct_value *const in[] = {x, net_const(t, dims + 2, w, -0.5, 0.5),
                             net_chance(t, 3) ? NULL : net_const(t, 1, &c_out, -1, 1)};
    oct_node *n = net_node(t, &oct_op_conv_transpose, in, 3, 1);
    int64_t strides[2] = {net_between(t, 1, 3), net_between(t, 1, 3)};

    net_int(n, "group", group);
    net_ints(n, "kernel_shape", w + 2, dims);
    net_ints(n, "strides", strides, dims);
    if (net_chance(t, 2)) {
        int64_t pads[4];

        for (int i = 0; i < 2 * dims; i++)
            pads[i] = net_between(t, 0, w[2 + i % dims] - 1);
        net_ints(n, "pads", pads, 2 * dims);
    }
    return net_keep(t, n);
}

static bool add_pool(net *t)
{
    static const oct_op *const ops[] = {&oct_op_max_pool, &oct_op_max_pool, &oct_op_average_pool,
                                        &oct_op_lp_pool};
    const oct_op *op = ops[oct_rng_below(&t->r, OCT_COUNT(ops))];
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 3, 5);
    int64_t kernel[3];
    oct_node *n;

    if (!x) return false;
    for (int i = 0; i < 3; i++)
        kernel[i] = net_between(t, 1, 3);
    n = net_node(t, op, &x, 1, op == &oct_op_max_pool && net_chance(t, 6) ? 2 : 1);
    set_window(t, n, x->type.rank - 2, kernel, op == &oct_op_max_pool);
    if (op == &oct_op_average_pool) net_int(n, "count_include_pad", net_between(t, 0, 1));
    return net_keep(t, n);
}

static bool add_global_pool(net *t)
{
    static const oct_op *const ops[] = {&oct_op_global_average_pool, &oct_op_global_max_pool,
                                        &oct_op_global_lp_pool};
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 3, 5);

    return x && net_keep(t, net_node(t, ops[oct_rng_below(&t->r, OCT_COUNT(ops))], &x, 1, 1));
}

static bool add_norm(net *t)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 3, 5);

    if (!x) return false;
    const int64_t c = x->type.dim[1];
    oct_value *in[] = {x, net_const(t, 1, &c, 0.5, 2), net_const(t, 1, &c, -1, 1),
                       net_const(t, 1, &c, -1, 1), net_const(t, 1, &c, 0.3, 2)};

    if (net_chance(t, 4)) return net_keep(t, net_node(t, &oct_op_instance_normalization, in, 3, 1));
    return net_keep(t, net_node(t, &oct_op_batch_normalization, in, 5, 1));
}

/* Two convolutions with norms and the input itself, added: what RepVGG trains. */
static bool add_branches(net *t)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 4, 4), *sum = NULL;

    if (!x) return false;
    const int64_t c = x->type.dim[1];

    for (int k = 1; k <= 3; k += 2) {
        const int64_t w[] = {c, c, k, k}, pads[] = {k / 2, k / 2, k / 2, k / 2};
        oct_value *in[] = {x, net_const(t, 4, w, -0.5, 0.5)};
        oct_node *n = net_node(t, &oct_op_conv, in, 2, 1);

        net_ints(n, "pads", pads, 4);
        if (!net_keep(t, n)) return false;
        in[0] = n->out[0];
        if (sum) {
            in[1] = sum;
            n = net_node(t, &oct_op_add, in, 2, 1);
            if (!net_keep(t, n)) return false;
        }
        sum = n->out[0];
    }
    oct_value *const last[] = {sum, x};

    return net_chance(t, 2) || net_keep(t, net_node(t, &oct_op_add, last, 2, 1));
}

const net_row net_layer_rows[] = {
    {"Conv", add_conv, 10}, {"ConvTranspose", add_conv_transpose, 2},
    {"pool", add_pool, 5},  {"global", add_global_pool, 1},
    {"norm", add_norm, 4},  {"branches", add_branches, 2},
    {NULL, NULL, 0},
};
