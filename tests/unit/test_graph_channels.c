/* SPDX-License-Identifier: Apache-2.0 */
/* Labels on channels, carried through nodes that move data. */
#include "op/channels.h"
#include "tests/unit/exec_net.h"

static oct_value *ints(fixture *f, int64_t n, const int64_t *v)
{
    return oct_ints(&f->b, v, n);
}

static oct_value *image(fixture *f, const char *name, int64_t channels)
{
    return graph_input(f, name, OCT_DTYPE_F32, 4, (int64_t[]){1, channels, 6, 8});
}

static oct_tensor *label(fixture *f, const oct_value *v, int32_t first, bool per_channel)
{
    oct_tensor *t = NULL;

    assert_ok(f->ctx, oct_labels_new(f->ctx, &v->type, first, per_channel, &t));
    return t;
}

/* Labels of v, whose producers up to `x` have one data operand each. */
static oct_tensor *carry(fixture *f, const oct_value *v, const oct_value *x, const oct_tensor *lx)
{
    oct_tensor *in, *out = NULL;

    if (v == x) return oct_tensor_ref((oct_tensor *)(uintptr_t)lx);
    assert_true(oct_node_moves_data(v->producer));
    assert_int_equal(oct_node_n_data(v->producer), 1);
    in = carry(f, v->producer->in[0], x, lx);
    if (!in) return NULL;
    assert_ok(f->ctx,
              oct_labels_through(v->producer, (const oct_tensor *[]){in}, v->out_index, &out));
    oct_tensor_unref(in);
    return out;
}

/* The labels along axis 1 must be these. */
static void assert_labels(fixture *f, const oct_value *v, const oct_value *x, bool per_channel,
                          const int32_t *want)
{
    oct_tensor *lx = label(f, x, 10, per_channel), *got = carry(f, v, x, lx);
    const int64_t n = v->type.dim[1];
    int32_t *labels = calloc((size_t)n, sizeof(*labels));

    assert_non_null(got);
    assert_true(oct_labels_channels(got, n, labels));
    for (int64_t c = 0; c < n; c++)
        if (labels[c] != want[c])
            fail_msg("channel %d has label %d, want %d", (int)c, labels[c], want[c]);
    free(labels);
    oct_tensor_unref(got);
    oct_tensor_unref(lx);
}

static void pooling_and_nearest_resizing_keep_channels(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, "x", 3);
    oct_node *p = node(f, &oct_op_max_pool, x, NULL, NULL), *r;
    oct_value *y;

    assert_ok(f->ctx, oct_node_set_ints(p, "kernel_shape", (int64_t[]){2, 2}, 2));
    y = infer(f, p);
    r = oct_emit_node(&f->b, &oct_op_resize,
                      (oct_value *[]){y, NULL, NULL, ints(f, 4, (int64_t[]){1, 3, 10, 14})}, 4, 1);
    assert_labels(f, infer(f, r), x, true, (int32_t[]){10, 11, 12});
    assert_ok(f->ctx, oct_node_set_str(r, "mode", "linear"));
    assert_false(oct_node_moves_data(r));
}

static void a_channel_shuffle_permutes_labels(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, "x", 6), *y;
    oct_node *t;

    y = emit(f, &oct_op_reshape, x, ints(f, 5, (int64_t[]){1, 2, 3, 6, 8}));
    t = node(f, &oct_op_transpose, y, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_ints(t, "perm", (int64_t[]){0, 2, 1, 3, 4}, 5));
    y = emit(f, &oct_op_reshape, infer(f, t), ints(f, 4, (int64_t[]){1, 6, 6, 8}));
    assert_labels(f, y, x, true, (int32_t[]){10, 13, 11, 14, 12, 15});
}

static void slices_and_splits_pick_channels(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, "x", 6);
    oct_node *s = oct_emit_node(
        &f->b, &oct_op_slice,
        (oct_value *[]){x, ints(f, 2, (int64_t[]){5, 1}), ints(f, 2, (int64_t[]){0, 6}),
                        ints(f, 2, (int64_t[]){1, 2}), ints(f, 2, (int64_t[]){-2, 2})},
        5, 1);
    oct_node *p = oct_emit_node(&f->b, &oct_op_split,
                                (oct_value *[]){x, ints(f, 2, (int64_t[]){2, 4})}, 2, 2);

    assert_labels(f, infer(f, s), x, true, (int32_t[]){15, 13, 11});
    assert_ok(f->ctx, oct_node_set_int(p, "axis", 1));
    infer(f, p);
    assert_labels(f, p->out[1], x, true, (int32_t[]){12, 13, 14, 15});
    assert_labels(f, p->out[1], x, false, (int32_t[]){10, 10, 10, 10});
}

static void concat_keeps_each_segment(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, "x", 2), *y = image(f, "y", 3);
    oct_node *c = oct_emit_node(&f->b, &oct_op_concat, (oct_value *[]){x, y}, 2, 1);
    oct_tensor *in[2], *out = NULL;
    int32_t got[5];

    assert_ok(f->ctx, oct_node_set_int(c, "axis", 1));
    infer(f, c);
    assert_int_equal(oct_node_n_data(c), 2);
    in[0] = label(f, x, 0, false);
    in[1] = label(f, y, 7, true);
    assert_ok(f->ctx, oct_labels_through(c, (const oct_tensor *const *)in, 0, &out));
    assert_dims(&out->type, 4, (int64_t[]){1, 5, 1, 1});
    assert_true(oct_labels_channels(out, 5, got));
    assert_memory_equal(got, ((int32_t[]){0, 0, 7, 8, 9}), sizeof(got));
    oct_tensor_unref(out);
    oct_tensor_unref(in[1]);
    in[1] = label(f, y, 0, false);
    assert_ok(f->ctx, oct_labels_through(c, (const oct_tensor *const *)in, 0, &out));
    assert_dims(&out->type, 4, (int64_t[]){1, 1, 1, 1}); /* the smallest form */
    oct_tensor_unref(out);
    oct_tensor_unref(in[1]);
    oct_tensor_unref(in[0]);
}

static void flattened_channels_repeat(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 2, 1, 2});
    oct_value *y = emit(f, &oct_op_flatten, x, NULL);

    assert_labels(f, y, x, true, (int32_t[]){10, 10, 11, 11});
}

static void space_to_depth_is_followed(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, "x", 2);
    oct_node *s = node(f, &oct_op_space_to_depth, x, NULL, NULL), *d;
    oct_value *y;

    assert_ok(f->ctx, oct_node_set_int(s, "blocksize", 2));
    y = infer(f, s);
    assert_labels(f, y, x, true, (int32_t[]){10, 11, 10, 11, 10, 11, 10, 11});
    d = node(f, &oct_op_depth_to_space, y, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_int(d, "blocksize", 2));
    assert_labels(f, infer(f, d), x, true, (int32_t[]){10, 11});
}

static void repeated_values_keep_their_labels(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){2, 1, 1});
    oct_value *y = emit(f, &oct_op_expand, x, ints(f, 4, (int64_t[]){1, 2, 5, 7}));
    oct_value *z = emit(f, &oct_op_tile, y, ints(f, 4, (int64_t[]){1, 2, 1, 3}));
    const oct_type t = oct_type_make(OCT_DTYPE_I32, 3, (int64_t[]){2, 1, 1});
    oct_tensor *lx = NULL, *got;
    int32_t labels[4];

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &t, &lx));
    ((int32_t *)lx->data)[1] = 1;
    got = carry(f, z, x, lx);
    assert_non_null(got);
    assert_true(oct_labels_channels(got, 4, labels));
    assert_memory_equal(labels, ((int32_t[]){0, 1, 0, 1}), sizeof(labels));
    oct_tensor_unref(got);
    oct_tensor_unref(lx);
}

static void padded_channels_come_from_nowhere(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, "x", 2);
    oct_value *y = emit(f, &oct_op_pad, x, ints(f, 8, (int64_t[]){0, 1, 2, 2, 0, 2, 0, 0}));

    assert_labels(f, y, x, true, (int32_t[]){-1, 10, 11, -1, -1});
    assert_labels(f, y, x, false, (int32_t[]){10, 10, 10, 10, 10});
}

static void tokens_have_no_channel_axis(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, "x", 3), *y;
    oct_tensor *lx = label(f, x, 0, true), *got;
    oct_node *t;
    int32_t labels[48];

    y = emit(f, &oct_op_reshape, x, ints(f, 3, (int64_t[]){1, 3, 48}));
    t = node(f, &oct_op_transpose, y, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_ints(t, "perm", (int64_t[]){0, 2, 1}, 3));
    got = carry(f, infer(f, t), x, lx);
    assert_non_null(got);
    assert_dims(&got->type, 3, (int64_t[]){1, 1, 3});
    assert_false(oct_labels_channels(got, 48, labels));
    oct_tensor_unref(got);
    oct_tensor_unref(lx);
}

static void what_computes_does_not_move(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, "x", 3);
    oct_value *y = emit(f, &oct_op_relu, x, NULL);
    oct_value *z =
        oct_emit(&f->b, &oct_op_pad, x, ints(f, 8, (int64_t[8]){0}), oct_scalar(&f->b, 1.0f));
    oct_value *table = input(f, 3, (float[]){1, 2, 3});
    oct_value *e = emit(f, &oct_op_gather, table, ints(f, 1, (int64_t[]){1}));

    assert_false(oct_node_moves_data(y->producer));
    assert_false(oct_node_moves_data(z->producer)); /* 1 may have no code */
    assert_false(oct_node_moves_data(e->producer)); /* constants are no source of codes */
}

static void a_value_without_channels_is_refused(void **state)
{
    fixture *f = *state;
    const oct_type t = oct_type_make(OCT_DTYPE_F32, 1, (int64_t[]){4});
    oct_tensor *out = NULL;

    assert_fails(f->ctx, oct_labels_new(f->ctx, &t, 0, true, &out), OCT_ERR_SHAPE, "channels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pooling_and_nearest_resizing_keep_channels, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_channel_shuffle_permutes_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(slices_and_splits_pick_channels, setup, teardown),
        cmocka_unit_test_setup_teardown(concat_keeps_each_segment, setup, teardown),
        cmocka_unit_test_setup_teardown(flattened_channels_repeat, setup, teardown),
        cmocka_unit_test_setup_teardown(space_to_depth_is_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(repeated_values_keep_their_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(padded_channels_come_from_nowhere, setup, teardown),
        cmocka_unit_test_setup_teardown(tokens_have_no_channel_axis, setup, teardown),
        cmocka_unit_test_setup_teardown(what_computes_does_not_move, setup, teardown),
        cmocka_unit_test_setup_teardown(a_value_without_channels_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
