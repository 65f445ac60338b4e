/* SPDX-License-Identifier: Apache-2.0 */
/* Random quantized layers: what quantizers of any origin write, and Q and DQ in every other order.
 */
#include "tests/random/rows.h"

static const oct_dtype code_types[] = {OCT_DTYPE_U8, OCT_DTYPE_I8, OCT_DTYPE_U8,  OCT_DTYPE_I8,
                                       OCT_DTYPE_U8, OCT_DTYPE_I8, OCT_DTYPE_U16, OCT_DTYPE_I16};

/*
 * Few scales and zero points, so that equal ones meet often; no ratio of two is so simple that many
 * values lie half-way between two codes, where runtimes may round either way.
 */
static oct_value *any_scale(net *t, oct_dtype type)
{
    static const double scales[] = {0.0203, 0.0203, 0.03137, 0.0497, 0.01309};
    const double s = scales[oct_rng_below(&t->r, OCT_COUNT(scales))];
    const bool wide = type == OCT_DTYPE_U16 || type == OCT_DTYPE_I16;

    return net_const(t, 0, NULL, wide ? s / 64 : s, wide ? s / 64 : s);
}

static oct_value *any_zero(net *t, oct_dtype type)
{
    static const int64_t zeros[] = {0, 0, 1, 128, 100};
    int64_t z = zeros[oct_rng_below(&t->r, OCT_COUNT(zeros))];

    if (type == OCT_DTYPE_I8) z = z == 128 ? -128 : z == 100 ? -28 : z;
    if (type == OCT_DTYPE_U16) z = z > 1 ? 32768 : z;
    return net_const_int(t, type, 0, NULL, z, z);
}

/* The last n results leave the pool: they are the inside of a layer. */
static void forget(net *t, int n)
{
    t->n_pool -= n;
}

/* x -> Q -> DQ with parameters of its own; NULL if x is not float. */
static oct_value *through_codes(net *t, oct_value *x)
{
    const oct_dtype type = code_types[oct_rng_below(&t->r, OCT_COUNT(code_types))];
    oct_value *in[] = {x, any_scale(t, type), any_zero(t, type)};
    oct_node *n = net_node(t, &oct_op_quantize_linear, in, 3, 1);

    if (!net_keep(t, n)) return NULL;
    in[0] = n->out[0];
    forget(t, 1);
    n = net_node(t, &oct_op_dequantize_linear, in, 3, 1);
    return net_keep(t, n) ? n->out[0] : NULL;
}

/* The result of a layer, rounded, or left as it is now and then. */
static bool finish(net *t, oct_node *n)
{
    if (!net_keep(t, n)) return false;
    if (net_chance(t, 8)) return true;
    forget(t, 1);
    return through_codes(t, n->out[0]) != NULL;
}

/* A value that comes out of codes, or is sent through them now. */
static oct_value *operand(net *t, int low, int high)
{
    oct_value *x = net_pick(t, OCT_DTYPE_F32, low, high);

    if (!x || (x->producer && oct_node_is(x->producer, &oct_op_dequantize_linear))) return x;
    return net_chance(t, 10) ? x : through_codes(t, x);
}

/* Constant codes -> DQ: per tensor, or per channel along `axis`. */
static oct_value *weights(net *t, int32_t rank, const int64_t *dims, int64_t axis)
{
    const bool by_channel = net_chance(t, 2);
    const int64_t n = by_channel ? dims[axis] : 1;
    oct_value *in[] = {net_const_int(t, OCT_DTYPE_I8, rank, dims, -127, 127),
                       net_const(t, by_channel, &n, 0.002, 0.006), NULL};
    oct_node *dq;

    if (net_chance(t, 2)) in[2] = net_const_int(t, OCT_DTYPE_I8, by_channel, &n, 0, 0);
    dq = net_node(t, &oct_op_dequantize_linear, in, 3, 1);
    if (by_channel) net_int(dq, "axis", axis);
    if (!net_keep(t, dq)) return NULL;
    forget(t, 1);
    return dq->out[0];
}

static bool add_activation(net *t, oct_node **n)
{
    static const oct_op *const ops[] = {&oct_op_relu, &oct_op_sigmoid, &oct_op_hard_swish,
                                        &oct_op_leaky_relu, &oct_op_tanh};
    oct_value *in[] = {(*n)->out[0], NULL};

    if (net_chance(t, 2)) return true;
    if (net_chance(t, 3)) { /* SiLU */
        oct_node *gate = net_node(t, &oct_op_sigmoid, in, 1, 1);

        if (!net_keep(t, gate)) return false;
        forget(t, 1);
        in[1] = gate->out[0];
        *n = net_node(t, &oct_op_mul, in, 2, 1);
    } else {
        *n = net_node(t, ops[oct_rng_below(&t->r, OCT_COUNT(ops))], in, 1, 1);
    }
    if (!net_keep(t, *n)) return false;
    forget(t, 1);
    return true;
}

static bool add_conv(net *t)
{
    oct_value *x = operand(t, 3, 4);
    int64_t w[4], pads[4], strides[2];
    oct_node *n;

    if (!x) return false;
    const int dims = x->type.rank - 2;
    const int64_t c = x->type.dim[1], group = net_chance(t, 3) ? c : 1;
    const int64_t k = net_between(t, 1, 3), out = group > 1 ? c : net_between(t, 1, 20);

    w[0] = out;
    w[1] = c / group;
    for (int i = 0; i < dims; i++) {
        w[2 + i] = k;
        strides[i] = net_between(t, 1, 2);
        pads[i] = pads[dims + i] = k / 2;
    }
    oct_value *in[] = {x, weights(t, dims + 2, w, 0),
                       net_chance(t, 3) ? NULL : net_const(t, 1, &out, -1, 1)};

    if (!in[1]) return false;
    n = net_node(t, &oct_op_conv, in, 3, 1);
    net_ints(n, "pads", pads, 2 * dims);
    net_ints(n, "strides", strides, dims);
    net_int(n, "group", group);
    if (!net_keep(t, n)) return false;
    forget(t, 1);
    if (!add_activation(t, &n)) return false;
    return net_chance(t, 8) || through_codes(t, n->out[0]) != NULL;
}

static bool add_product(net *t)
{
    oct_value *x = operand(t, 2, 4);

    if (!x) return false;
    const int64_t w[] = {x->type.dim[x->type.rank - 1], net_between(t, 1, 20)};
    oct_value *in[] = {x, weights(t, 2, w, 1)};

    return in[1] && finish(t, net_node(t, &oct_op_mat_mul, in, 2, 1));
}

static bool add_binary(net *t)
{
    oct_value *in[] = {operand(t, 1, 4), operand(t, 1, 4)};

    if (!in[0] || !in[1]) return false;
    return finish(t, net_node(t, net_chance(t, 3) ? &oct_op_mul : &oct_op_add, in, 2, 1));
}

static bool add_concat(net *t)
{
    oct_value *in[] = {operand(t, 2, 4), NULL};
    oct_node *n;

    if (!in[0]) return false;
    in[1] = net_chance(t, 2) ? operand(t, 2, 4) : through_codes(t, in[0]);
    n = in[1] ? net_node(t, &oct_op_concat, in, 2, 1) : NULL;
    net_int(n, "axis", 1);
    return finish(t, n);
}

static bool add_pool(net *t)
{
    static const int64_t kernel[] = {3, 3}, pads[] = {1, 1, 1, 1};
    oct_value *x = operand(t, 4, 4);
    oct_node *n;

    if (!x) return false;
    /* means of an even number of codes lie half-way between two, where either is right */
    if (net_chance(t, 4) && oct_type_span(&x->type, 2, 4) % 2)
        return finish(t, net_node(t, &oct_op_global_average_pool, &x, 1, 1));
    n = net_node(t, net_chance(t, 2) ? &oct_op_max_pool : &oct_op_average_pool, &x, 1, 1);
    net_ints(n, "kernel_shape", kernel, 2);
    /* for the same reason, no pads for averages */
    if (net_chance(t, 2) && oct_node_is(n, &oct_op_max_pool)) net_ints(n, "pads", pads, 4);
    return finish(t, n);
}

/* No Softmax: on codes it is ONNX Runtime's, a step away from the float one (docs/quantization.md).
 */
static bool add_function(net *t)
{
    static const oct_op *const ops[] = {&oct_op_sigmoid,    &oct_op_tanh, &oct_op_relu,
                                        &oct_op_hard_swish, &oct_op_elu,  &oct_op_leaky_relu,
                                        &oct_op_gelu};
    oct_value *x = operand(t, 1, 4);

    return x && finish(t, net_node(t, ops[oct_rng_below(&t->r, OCT_COUNT(ops))], &x, 1, 1));
}

static bool add_move(net *t)
{
    static const int64_t turned[] = {0, 2, 1, 3};
    oct_value *x = operand(t, 3, 4);
    oct_node *n;

    if (!x) return false;
    if (net_chance(t, 2)) {
        n = net_node(t, &oct_op_transpose, &x, 1, 1);
        net_ints(n, "perm", turned, x->type.rank);
    } else {
        const int64_t dims[] = {x->type.dim[0], -1};
        oct_value *in[] = {x, oct_ints(&t->b, dims, 2)};

        n = net_node(t, &oct_op_reshape, in, 2, 1);
    }
    return finish(t, n);
}

const net_row net_code_rows[] = {
    {"Conv", add_conv, 8},     {"MatMul", add_product, 3},
    {"binary", add_binary, 4}, {"Concat", add_concat, 3},
    {"pool", add_pool, 3},     {"function", add_function, 2},
    {"move", add_move, 2},     {NULL, NULL, 0},
};

/* --- corners: one Q or DQ at a time --- */

static oct_dtype any_code(net *t)
{
    return code_types[oct_rng_below(&t->r, OCT_COUNT(code_types))];
}

static oct_value *any_codes(net *t)
{
    for (int i = 0; i < 4; i++) {
        oct_value *x = net_pick(t, any_code(t), 0, 5);

        if (x) return x;
    }
    return NULL;
}

/* With the parameters of a Q or DQ that is there already, now and then. */
static bool add_q_or_dq(net *t, const oct_op *op, oct_value *x, oct_dtype type)
{
    oct_value *in[] = {x, any_scale(t, type), any_zero(t, type)};
    oct_node *n;

    if (!x) return false;
    if (net_chance(t, 5) && x->type.rank > 1) {
        const int64_t c = x->type.dim[1];

        in[1] = net_const(t, 1, &c, 0.01, 0.04);
        in[2] = net_const_int(t, type, 1, &c, 0, 3);
    }
    if (x->producer && net_chance(t, 3) &&
        (oct_node_is(x->producer, &oct_op_quantize_linear) ||
         oct_node_is(x->producer, &oct_op_dequantize_linear))) {
        const oct_node *p = x->producer;

        if (p->n_in == 3 && p->in[2] && p->in[2]->type.dtype == type) {
            in[1] = p->in[1];
            in[2] = p->in[2];
        }
    }
    n = net_node(t, op, in, 3, 1);
    return net_keep(t, n);
}

static bool add_quantize(net *t)
{
    return add_q_or_dq(t, &oct_op_quantize_linear, net_pick(t, OCT_DTYPE_F32, 0, 5), any_code(t));
}

static bool add_dequantize(net *t)
{
    oct_value *x = any_codes(t);

    return x && add_q_or_dq(t, &oct_op_dequantize_linear, x, x->type.dtype);
}

static bool add_const_codes(net *t)
{
    const oct_dtype type = any_code(t);
    const int64_t dims[] = {net_between(t, 1, 4), net_between(t, 1, 5)};
    oct_value *v = net_const_int(t, type, 2, dims,
                                 type == OCT_DTYPE_U8 || type == OCT_DTYPE_U16 ? 0 : -100, 100);

    if (!v || t->n_pool >= NET_POOL) return false;
    t->pool[t->n_pool++] = v;
    return true;
}

/* Float operators between codes, and moves of the codes themselves. */
static bool add_between(net *t)
{
    static const oct_op *const ops[] = {&oct_op_relu, &oct_op_identity, &oct_op_sigmoid,
                                        &oct_op_neg};
    oct_value *x = net_pick(t, OCT_DTYPE_F32, 0, 5);

    return x && net_keep(t, net_node(t, ops[oct_rng_below(&t->r, OCT_COUNT(ops))], &x, 1, 1));
}

static bool add_sum(net *t)
{
    oct_value *in[] = {net_pick(t, OCT_DTYPE_F32, 0, 5), net_pick(t, OCT_DTYPE_F32, 0, 5)};

    return in[0] && in[1] && net_keep(t, net_node(t, &oct_op_add, in, 2, 1));
}

static bool add_code_move(net *t)
{
    oct_value *x = any_codes(t);
    const int64_t all = -1;
    oct_value *in[] = {x, oct_ints(&t->b, &all, 1)};

    if (!x) return false;
    if (net_chance(t, 2)) return net_keep(t, net_node(t, &oct_op_transpose, &x, 1, 1));
    return net_keep(t, net_node(t, &oct_op_reshape, in, 2, 1));
}

const net_row net_corner_rows[] = {
    {"Q", add_quantize, 8},       {"DQ", add_dequantize, 8}, {"codes", add_const_codes, 1},
    {"function", add_between, 2}, {"Add", add_sum, 2},       {"Conv", add_conv, 2},
    {"move", add_code_move, 2},   {"pool", add_pool, 1},     {NULL, NULL, 0},
};
