/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of which random networks are made, to see whether channels are followed through them. */
#ifndef OCT_TESTS_PRUNE_BLOCKS_H
#define OCT_TESTS_PRUNE_BLOCKS_H

#include "prune_case.h"

/* A network in the making: its input is [1,4,8,8], values have an even number of channels. */
typedef struct maker {
    fixture *f;
    oct_rng rng;
} maker;

static inline int64_t any_width(maker *m)
{
    return 4 * (1 + (int64_t)oct_rng_below(&m->rng, 4));
}

static inline oct_value *layer(maker *m, oct_value *x, int64_t c_out, int64_t kernel, int64_t group)
{
    const conv_case c = {x->type.dim[1], c_out, kernel, 1, 1, kernel / 2, group};

    return conv(m->f, &m->rng, x, &c);
}

static inline oct_value *ints(maker *m, const int64_t *v, int64_t n)
{
    oct_value *x = oct_ints(&m->f->b, v, n);

    assert_non_null(x);
    return x;
}

static inline oct_value *reshaped(maker *m, oct_value *x, const int64_t *dims, int64_t n)
{
    return emit(m->f, &oct_op_reshape, x, ints(m, dims, n));
}

static inline oct_value *transposed(maker *m, oct_value *x, const int64_t *perm, int64_t n)
{
    oct_node *t = node(m->f, &oct_op_transpose, x, NULL, NULL);

    assert_ok(m->f->ctx, oct_node_set_ints(t, "perm", perm, n));
    return infer(m->f, t);
}

static inline oct_value *with_axis(maker *m, const oct_op *op, oct_value *x, oct_value *y,
                                   int64_t axis)
{
    oct_node *n = node(m->f, op, x, y, NULL);

    assert_ok(m->f->ctx, oct_node_set_int(n, "axis", axis));
    return infer(m->f, n);
}

/* --- blocks: each takes a value and returns one --- */

static oct_value *plain(maker *m, oct_value *x)
{
    return emit(m->f, &oct_op_relu, layer(m, x, any_width(m), 3, 1), NULL);
}

static oct_value *normalized(maker *m, oct_value *x)
{
    const int64_t c = any_width(m);
    oct_value *in[5] = {layer(m, x, c, 3, 1)};
    oct_node *n;
    oct_value *var;

    for (int i = 1; i < 5; i++)
        in[i] = weights(m->f, &m->rng, 1, &c);
    var = in[4];
    for (int64_t i = 0; i < c; i++)
        ((float *)var->data->data)[i] += 2.0f;
    n = oct_emit_node(&m->f->b, &oct_op_batch_normalization, in, 5, 1);
    assert_non_null(n);
    return emit(m->f, &oct_op_sigmoid, infer(m->f, n), NULL);
}

static oct_value *residual(maker *m, oct_value *x)
{
    oct_value *y = emit(m->f, &oct_op_relu, layer(m, x, any_width(m), 3, 1), NULL);

    return emit(m->f, &oct_op_add, x, layer(m, y, x->type.dim[1], 1, 1));
}

static oct_value *concatenated(maker *m, oct_value *x)
{
    oct_value *a = layer(m, x, any_width(m), 1, 1), *b = layer(m, x, any_width(m), 3, 1);

    return with_axis(m, &oct_op_concat, with_axis(m, &oct_op_concat, a, x, 1), b, -3);
}

/* One part goes on, as in YOLOv8's C2f. */
static oct_value *divided(maker *m, oct_value *x)
{
    const int64_t c = x->type.dim[1], sizes[2] = {c / 4, c - c / 4};
    oct_value *in[2] = {x, ints(m, sizes, 2)};
    oct_node *n = oct_emit_node(&m->f->b, &oct_op_split, in, 2, 2);

    assert_non_null(n);
    assert_ok(m->f->ctx, oct_node_set_int(n, "axis", 1));
    (void)infer(m->f, n);
    return with_axis(m, &oct_op_concat, n->out[0], residual(m, n->out[1]), 1);
}

static oct_value *halves(maker *m, oct_value *x)
{
    oct_node *n = node(m->f, &oct_op_split, x, NULL, NULL);
    oct_value *in[1] = {x};

    oct_node_remove(n);
    n = oct_emit_node(&m->f->b, &oct_op_split, in, 1, 2);
    assert_ok(m->f->ctx, oct_node_set_int(n, "axis", 1));
    assert_ok(m->f->ctx, oct_node_set_int(n, "num_outputs", 2));
    (void)infer(m->f, n);
    return emit(m->f, &oct_op_mul, n->out[0], emit(m->f, &oct_op_sigmoid, n->out[1], NULL));
}

static oct_value *sliced(maker *m, oct_value *x)
{
    const int64_t c = x->type.dim[1], from = 1, to = c / 2 + 1, end = INT64_MAX, axis = 1;
    oct_value *low[4] = {x, ints(m, &from, 1), ints(m, &to, 1), ints(m, &axis, 1)};
    oct_value *high[4] = {x, ints(m, &to, 1), ints(m, &end, 1), ints(m, &axis, 1)};
    oct_node *a = oct_emit_node(&m->f->b, &oct_op_slice, low, 4, 1),
             *b = oct_emit_node(&m->f->b, &oct_op_slice, high, 4, 1);

    return with_axis(m, &oct_op_concat, infer(m->f, b), layer(m, infer(m->f, a), 8, 1, 1), 1);
}

static oct_value *grouped(maker *m, oct_value *x)
{
    return layer(m, layer(m, x, 8, 1, 1), 12, 3, 2);
}

static oct_value *depthwise(maker *m, oct_value *x)
{
    const int64_t twice = oct_rng_below(&m->rng, 2) ? 2 : 1;

    return layer(m, x, x->type.dim[1] * twice, 3, x->type.dim[1]);
}

static oct_value *gated(maker *m, oct_value *x)
{
    oct_value *s = emit(m->f, &oct_op_global_average_pool, x, NULL);

    s = emit(m->f, &oct_op_relu, layer(m, s, 4, 1, 1), NULL);
    s = emit(m->f, &oct_op_hard_sigmoid, layer(m, s, x->type.dim[1], 1, 1), NULL);
    return emit(m->f, &oct_op_mul, x, s);
}

/* The same, spelt with a mean over pixels and two products of matrices. */
static oct_value *gated_by_gemm(maker *m, oct_value *x)
{
    const int64_t c = x->type.dim[1], axes[2] = {2, 3}, a[2] = {c, 6}, b[2] = {c, 6}, six = 6;
    oct_node *n = node(m->f, &oct_op_reduce_mean, x, ints(m, axes, 2), NULL);
    oct_value *s;

    assert_ok(m->f->ctx, oct_node_set_int(n, "keepdims", 0));
    s = infer(m->f, n);
    s = infer(m->f, node(m->f, &oct_op_gemm, s, weights(m->f, &m->rng, 2, a),
                         weights(m->f, &m->rng, 1, &six)));
    n = node(m->f, &oct_op_gemm, s, weights(m->f, &m->rng, 2, b), NULL);
    assert_ok(m->f->ctx, oct_node_set_int(n, "transB", 1));
    s = emit(m->f, &oct_op_sigmoid, infer(m->f, n), NULL);
    return emit(m->f, &oct_op_mul, x, emit(m->f, &oct_op_unsqueeze, s, ints(m, axes, 2)));
}

static oct_value *shuffled(maker *m, oct_value *x)
{
    const int64_t *d = x->type.dim, c = d[1], apart[5] = {d[0], 2, c / 2, d[2], d[3]},
                  perm[5] = {0, 2, 1, 3, 4}, back[4] = {d[0], -1, d[2], d[3]};

    return reshaped(m, transposed(m, reshaped(m, x, apart, 5), perm, 5), back, 4);
}

/* Fewer pixels, then more again, of a quarter of the channels. */
static oct_value *pixels(maker *m, oct_value *x)
{
    oct_node *n = node(m->f, &oct_op_space_to_depth, x, NULL, NULL);
    oct_value *y;

    assert_ok(m->f->ctx, oct_node_set_int(n, "blocksize", 2));
    y = layer(m, infer(m->f, n), 16, 1, 1);
    n = node(m->f, &oct_op_depth_to_space, y, NULL, NULL);
    assert_ok(m->f->ctx, oct_node_set_int(n, "blocksize", 2));
    return infer(m->f, n);
}

static oct_value *sloped(maker *m, oct_value *x)
{
    const int64_t dims[3] = {x->type.dim[1], 1, 1};

    return emit(m->f, &oct_op_p_relu, x, weights(m->f, &m->rng, 3, dims));
}

static oct_value *affine(maker *m, oct_value *x)
{
    const int64_t c = x->type.dim[1], dims[4] = {1, c, 1, 1}, pixels_[2] = {8, 8};

    x = emit(m->f, &oct_op_mul, weights(m->f, &m->rng, 4, dims), x);
    x = emit(m->f, &oct_op_add, x, weights(m->f, &m->rng, 3, dims + 1));
    return emit(m->f, &oct_op_mul, x, weights(m->f, &m->rng, 2, pixels_));
}

static oct_value *upward(maker *m, oct_value *x)
{
    const int64_t c = any_width(m), w[4] = {x->type.dim[1], c, 1, 1};
    oct_node *n = node(m->f, &oct_op_conv_transpose, x, weights(m->f, &m->rng, 4, w),
                       weights(m->f, &m->rng, 1, &c));

    return infer(m->f, n);
}

static oct_value *resized(maker *m, oct_value *x)
{
    const int64_t *d = x->type.dim, sizes[4] = {d[0], d[1], 12, 12}, kernel[2] = {5, 5};
    oct_value *in[4] = {x, NULL, NULL, ints(m, sizes, 4)};
    oct_node *n = oct_emit_node(&m->f->b, &oct_op_resize, in, 4, 1);
    oct_value *y;

    assert_non_null(n);
    assert_ok(m->f->ctx, oct_node_set_str(n, "mode", "linear"));
    y = infer(m->f, n);
    n = node(m->f, &oct_op_max_pool, y, NULL, NULL);
    assert_ok(m->f->ctx, oct_node_set_ints(n, "kernel_shape", kernel, 2));
    return infer(m->f, n);
}

static oct_value *permuted(maker *m, oct_value *x)
{
    int64_t index[64];

    for (int64_t i = 0; i < x->type.dim[1]; i++)
        index[i] = x->type.dim[1] - 1 - i;
    return with_axis(m, &oct_op_gather, x, ints(m, index, x->type.dim[1]), 1);
}

/* Two heads whose channels are the pixels' features. */
static oct_value *attended(maker *m, oct_value *x)
{
    const int64_t heads[4] = {1, 2, 6, 64}, swap[4] = {0, 1, 3, 2}, back[4] = {1, 12, 8, 8};
    oct_value *q = reshaped(m, layer(m, x, 12, 1, 1), heads, 4),
              *k = reshaped(m, layer(m, x, 12, 1, 1), heads, 4),
              *v = reshaped(m, layer(m, x, 12, 1, 1), heads, 4), *a;

    a = emit(m->f, &oct_op_mat_mul, transposed(m, q, swap, 4), k);
    a = emit(m->f, &oct_op_tanh, a, NULL); /* a sharp softmax would enlarge what rounding does */
    a = with_axis(m, &oct_op_softmax, a, NULL, -1);
    return reshaped(m, emit(m->f, &oct_op_mat_mul, v, transposed(m, a, swap, 4)), back, 4);
}

/* Channels last, a hidden layer, a norm over channels. */
static oct_value *tokens(maker *m, oct_value *x)
{
    const int64_t c = x->type.dim[1], last[4] = {0, 2, 3, 1}, first[4] = {0, 3, 1, 2},
                  up[2] = {c, 8}, down[2] = {8, c}, eight = 8;
    oct_value *y = transposed(m, x, last, 4), *n;

    n = infer(m->f,
              node(m->f, &oct_op_layer_normalization, y, weights(m->f, &m->rng, 1, &c), NULL));
    n = emit(m->f, &oct_op_mat_mul, n, weights(m->f, &m->rng, 2, up));
    n = emit(m->f, &oct_op_gelu, emit(m->f, &oct_op_add, n, weights(m->f, &m->rng, 1, &eight)),
             NULL);
    n = emit(m->f, &oct_op_mat_mul, n, weights(m->f, &m->rng, 2, down));
    return transposed(m, emit(m->f, &oct_op_add, y, n), first, 4);
}

static oct_value *(*const blocks[])(maker *m, oct_value *x) = {
    plain,   normalized, residual, concatenated,  divided,  halves,  sliced,
    grouped, depthwise,  gated,    gated_by_gemm, shuffled, pixels,  sloped,
    affine,  upward,     permuted, attended,      tokens,   resized,
};

#endif
