/* SPDX-License-Identifier: Apache-2.0 */
/* A small classifier with residual blocks, for tests of training. */
#ifndef OCT_TESTS_TRAIN_BLOCKS_H
#define OCT_TESTS_TRAIN_BLOCKS_H

#include "base/rng.h"
#include "op/op.h"
#include "tests/unit/detect_net.h"
#include "train/net.h"

enum { BATCH = 4, SIDE = 32, CLASSES = 3, CHANNELS = 16, BLOCKS = 6 };

static oct_rng block_rng;
static const oct_op *block_act = &oct_op_relu;

static inline oct_value *constant(fixture *f, const char *name, int32_t rank, const int64_t *dims,
                                  double low, double high)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *t = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (int64_t i = 0; i < oct_type_len(&type); i++)
        ((float *)t->data)[i] = (float)(low + (high - low) * oct_rng_f64(&block_rng));
    return oct_value_const(f->g, name, t);
}

static inline oct_value *emit_n(fixture *f, const oct_op *op, oct_value *const *in, int32_t n)
{
    return oct_emitted(&f->b, oct_emit_node(&f->b, op, in, n, 1));
}

/* Conv 3x3, BatchNormalization, block_act. */
static inline oct_value *conv(fixture *f, oct_value *x, int64_t in, int64_t out, int i)
{
    oct_value *w = constant(f, oct_arena_printf(f->g->arena, "conv%d.weight", i), 4,
                            (int64_t[]){out, in, 3, 3}, -.2, .2);
    oct_node *n = oct_emit_node(&f->b, &oct_op_conv, (oct_value *[]){x, w}, 2, 1);

    oct_emit_ints(&f->b, n, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    x = oct_emitted(&f->b, n);
    x = emit_n(f, &oct_op_batch_normalization,
               (oct_value *[]){
                   x,
                   constant(f, oct_arena_printf(f->g->arena, "bn%d.weight", i), 1, &out, .9, 1.1),
                   constant(f, oct_arena_printf(f->g->arena, "bn%d.bias", i), 1, &out, -.1, .1),
                   constant(f, oct_arena_printf(f->g->arena, "bn%d.mean", i), 1, &out, -.1, .1),
                   constant(f, oct_arena_printf(f->g->arena, "bn%d.var", i), 1, &out, .9, 1.1)},
               5);
    return oct_emit(&f->b, block_act, x, NULL, NULL);
}

/* A stem, residual blocks, and a block whose branches are concatenated. */
static inline void make_net(fixture *f)
{
    oct_value *x = picture_input(f, 1, SIDE, SIDE), *y;
    oct_node *n;

    oct_rng_init(&block_rng, 3);
    x = conv(f, x, 3, CHANNELS, 0);
    for (int i = 0; i < BLOCKS; i++) {
        y = conv(f, x, CHANNELS, CHANNELS, 2 * i + 1);
        y = conv(f, y, CHANNELS, CHANNELS, 2 * i + 2);
        x = oct_emit(&f->b, &oct_op_add, x, y, NULL);
    }
    y = conv(f, x, CHANNELS, CHANNELS, 100);
    n = oct_emit_node(&f->b, &oct_op_concat, (oct_value *[]){x, y}, 2, 1);
    oct_emit_int(&f->b, n, "axis", 1);
    x = conv(f, oct_emitted(&f->b, n), 2 * CHANNELS, CHANNELS, 101);
    x = oct_emit(&f->b, &oct_op_global_average_pool, x, NULL, NULL);
    x = oct_emit(&f->b, &oct_op_flatten, x, NULL, NULL);
    y = emit_n(f, &oct_op_gemm,
               (oct_value *[]){x,
                               constant(f, "fc.weight", 2, (int64_t[]){CHANNELS, CLASSES}, -.3, .3),
                               constant(f, "fc.bias", 1, (int64_t[]){CLASSES}, 0, 0)},
               3);
    assert_ok(f->ctx, f->b.status);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
}

static inline const oct_train_net_options *options(void)
{
    static oct_train_net_options o = {
        .batch = BATCH, .width = SIDE, .height = SIDE, .max_boxes = 1};

    o.loss = oct_loss_find("classify");
    return &o;
}

#endif
