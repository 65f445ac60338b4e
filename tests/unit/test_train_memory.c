/* SPDX-License-Identifier: Apache-2.0 */
/* Training in less memory computes values again, and gives the same bytes. */
#include "tests/unit/train_memory.h"

#include "op/op.h"
#include "tests/unit/detect_net.h"

enum { BATCH = 4, SIDE = 32, CLASSES = 3, CHANNELS = 16, BLOCKS = 6 };

static oct_rng rng;

static oct_value *constant(fixture *f, const char *name, int32_t rank, const int64_t *dims,
                           double low, double high)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *t = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (int64_t i = 0; i < oct_type_len(&type); i++)
        ((float *)t->data)[i] = (float)(low + (high - low) * oct_rng_f64(&rng));
    return oct_value_const(f->g, name, t);
}

static oct_value *emit_n(fixture *f, const oct_op *op, oct_value *const *in, int32_t n)
{
    return oct_emitted(&f->b, oct_emit_node(&f->b, op, in, n, 1));
}

/* Conv 3x3, BatchNormalization, Relu. */
static oct_value *conv(fixture *f, oct_value *x, int64_t in, int64_t out, int i)
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
    return oct_emit(&f->b, &oct_op_relu, x, NULL, NULL);
}

/* A stem, residual blocks, and a block whose branches are concatenated. */
static void make_net(fixture *f)
{
    oct_value *x = picture_input(f, 1, SIDE, SIDE), *y;
    oct_node *n;

    oct_rng_init(&rng, 3);
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

static const oct_train_net_options *options(void)
{
    static oct_train_net_options o = {
        .batch = BATCH, .width = SIDE, .height = SIDE, .max_boxes = 1};

    o.loss = oct_loss_find("classify");
    return &o;
}

static void less_memory_same_bytes(void **state)
{
    fixture *f = *state;

    make_net(f);
    assert_bounded(f->ctx, f->g, *options(), .6);
}

/* Memory that others need counts as well. */
static void counts_what_others_need(void **state)
{
    fixture *f = *state;
    oct_train_net_options o = *options();
    oct_train_net *t = NULL;
    size_t full;

    make_net(f);
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &t));
    full = oct_train_net_bytes(t);
    oct_train_net_free(t);
    t = NULL;
    o.memory.max = full;
    o.memory.others = full / 8;
    o.memory.copies = 2;
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &t));
    assert_true(oct_train_net_bytes(t) + o.memory.others +
                    2 * sizeof(float) * (size_t)oct_train_net_params(t)->len <=
                full);
    oct_train_net_free(t);
}

/* The same bound gives the same plan. */
static void same_bound_same_steps(void **state)
{
    fixture *f = *state;
    oct_train_net_options o = *options();
    oct_train_net *a = NULL, *b = NULL;
    const oct_plan *p, *q;

    make_net(f);
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &a));
    o.memory.max = oct_train_net_bytes(a) * 2 / 3;
    oct_train_net_free(a);
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &a));
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &b));
    p = oct_train_net_plan(a);
    q = oct_train_net_plan(b);
    assert_int_equal(p->n_steps, q->n_steps);
    assert_int_equal(p->block_size, q->block_size);
    for (int32_t i = 0; i < p->n_steps; i++)
        assert_string_equal(p->steps[i].node ? p->steps[i].node->name : "",
                            q->steps[i].node ? q->steps[i].node->name : "");
    oct_train_net_free(a);
    oct_train_net_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(less_memory_same_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_what_others_need, setup, teardown),
        cmocka_unit_test_setup_teardown(same_bound_same_steps, setup, teardown),
    };

    return run_test_group(tests);
}
