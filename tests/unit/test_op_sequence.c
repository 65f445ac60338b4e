/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, rotary embeddings, recurrent cells and losses. */
#include "op_case.h"

#define F32 OCT_DTYPE_F32

static void attention_weighs_values(void **state)
{
    fixture *f = *state;
    oct_value *q = constant(f, F32, DIMS(1, 1, 2, 1), (double[]){0, 0});
    oct_value *v = constant(f, F32, DIMS(1, 1, 2, 1), (double[]){2, 4});
    oct_value *mask = constant(f, OCT_DTYPE_BOOL, DIMS(2, 2), (double[]){0, 1, 0, 0});
    oct_node *n = NODE(f, &oct_op_attention, 1, q, q, v);

    assert_gives(n, DIMS(1, 1, 2, 1), (float[]){3, 3});
    assert_ok(f->ctx, oct_node_set_int(n, "is_causal", 1));
    assert_gives(n, DIMS(1, 1, 2, 1), (float[]){2, 3});
    /* A query that may look at nothing gives zero. */
    assert_gives(NODE(f, &oct_op_attention, 1, q, q, v, mask), DIMS(1, 1, 2, 1), (float[]){4, 0});
    n = NODE(f, &oct_op_attention, 1, q, q, v);
    assert_ok(f->ctx, oct_node_set_int(n, "left_window_size", 0));
    assert_ok(f->ctx, oct_node_set_int(n, "right_window_size", 0));
    assert_gives(n, DIMS(1, 1, 2, 1), (float[]){2, 4});
}

static void attention_splits_packed_heads(void **state)
{
    fixture *f = *state;
    oct_value *q = constant(f, OCT_DTYPE_F64, DIMS(1, 1, 4), NULL);
    oct_value *kv = constant(f, OCT_DTYPE_F64, DIMS(1, 1, 2), (double[]){5, 6});
    oct_node *n = NODE(f, &oct_op_attention, 1, q, kv, kv);

    assert_refuses(n, OCT_ERR_SHAPE, "q_num_heads");
    assert_ok(f->ctx, oct_node_set_int(n, "q_num_heads", 4));
    assert_ok(f->ctx, oct_node_set_int(n, "kv_num_heads", 2));
    assert_gives(n, DIMS(1, 1, 4), (float[]){5, 5, 6, 6});
    assert_ok(f->ctx, oct_node_set_int(n, "kv_num_heads", 3));
    assert_refuses(n, OCT_ERR_SHAPE, "2 columns do not divide into 3 heads");
    assert_ok(f->ctx, oct_node_set_int(n, "q_num_heads", 1));
    assert_ok(f->ctx, oct_node_set_int(n, "kv_num_heads", 1));
    assert_refuses(n, OCT_ERR_SHAPE, "head size is 4 and 2");
}

static void attention_refuses_misfits(void **state)
{
    fixture *f = *state;
    oct_value *q = constant(f, F32, DIMS(1, 1, 2, 1), NULL);
    oct_value *k = constant(f, F32, DIMS(1, 1, 3, 1), NULL);
    oct_value *mask = constant(f, F32, DIMS(2, 4), NULL);
    oct_node *n = NODE(f, &oct_op_attention, 1, q, k, k, mask);

    assert_refuses(n, OCT_ERR_SHAPE, "mask does not broadcast");
    assert_refuses(NODE(f, &oct_op_attention, 1, q, k, q), OCT_ERR_SHAPE, "sequence length");
    assert_refuses(NODE(f, &oct_op_attention, 1, q, k, k, NULL, k), OCT_ERR_FORMAT, "go together");
    n = NODE(f, &oct_op_attention, 1, q, k, k);
    assert_ok(f->ctx, oct_node_set_int(n, "qk_matmul_output_mode", 4));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "qk_matmul_output_mode is 4");
    n = NODE(f, &oct_op_attention, 1, unknown(f, F32, DIMS(-1, 2, -1, 4)),
             unknown(f, F32, DIMS(3, 2, -1, 4)), unknown(f, F32, DIMS(3, 2, -1, 5)));
    assert_infers(n, DIMS(3, 2, -1, 5));
}

static void rotation_turns_pairs(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 1, 1, 4), (double[]){1, 2, 3, 4});
    oct_value *c = constant(f, F32, DIMS(1, 2), (double[]){0, 0});
    oct_value *s = constant(f, F32, DIMS(1, 2), (double[]){1, 1});
    oct_value *at = constant(f, OCT_DTYPE_I64, DIMS(1, 1), (double[]){0});
    oct_value *far = constant(f, OCT_DTYPE_I64, DIMS(1, 1), (double[]){1});
    oct_node *n = NODE(f, &oct_op_rotary_embedding, 1, x, c, s, at);

    assert_gives(n, DIMS(1, 1, 1, 4), (float[]){-3, -4, 1, 2});
    assert_ok(f->ctx, oct_node_set_int(n, "interleaved", 1));
    assert_gives(n, DIMS(1, 1, 1, 4), (float[]){-2, 1, -4, 3});
    assert_ok(f->ctx, oct_node_set_int(n, "rotary_embedding_dim", 3));
    assert_refuses(n, OCT_ERR_SHAPE, "rotary dim is 3 of 4");
    assert_refuses(NODE(f, &oct_op_rotary_embedding, 1, x, c, s, far), OCT_ERR_SHAPE,
                   "position 1 is outside");
    assert_refuses(NODE(f, &oct_op_rotary_embedding, 1, x, c, s), OCT_ERR_SHAPE, "does not fit");
}

static oct_node *sum_cell(fixture *f, oct_value *lens)
{
    oct_value *x = constant(f, F32, DIMS(3, 2, 1), (double[]){1, 10, 2, 20, 3, 30});
    oct_value *w = constant(f, F32, DIMS(1, 1, 1), (double[]){1});
    oct_node *n = NODE(f, &oct_op_rnn, 2, x, w, w, NULL, lens);
    const char *const act[] = {"Relu"};

    assert_ok(f->ctx, oct_node_set_attr(n, "activations",
                                        &(oct_attr){.kind = OCT_ATTR_STRINGS, .n = 1, .ss = act}));
    return n;
}

static void recurrence_honours_lengths(void **state)
{
    fixture *f = *state;
    oct_value *lens = constant(f, OCT_DTYPE_I32, DIMS(2), (double[]){3, 1});
    oct_node *n = sum_cell(f, lens);
    oct_tensor *out[2] = {NULL};

    assert_gives(n, DIMS(3, 1, 2, 1), (float[]){1, 10, 3, 0, 6, 0});
    assert_ok(f->ctx, oct_node_set_str(n, "direction", "reverse"));
    assert_ok(f->ctx, evaluate(n, out));
    assert_all_close(out[0], (float[]){6, 10, 5, 0, 3, 0}, 6, 0);
    assert_all_close(out[1], (float[]){6, 10}, 2, 0);
    oct_tensor_unref(out[0]);
    oct_tensor_unref(out[1]);
    assert_ok(f->ctx, oct_node_set_str(n, "direction", "sideways"));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "direction 'sideways'");
    lens = constant(f, OCT_DTYPE_I32, DIMS(2), (double[]){4, 1});
    assert_refuses(sum_cell(f, lens), OCT_ERR_SHAPE, "sequence_lens[0] is 4 of 3");
}

static void gates_are_clipped(void **state)
{
    fixture *f = *state;
    oct_node *n = sum_cell(f, NULL);

    assert_ok(f->ctx, oct_node_set_f32(n, "clip", 5));
    assert_gives(n, DIMS(3, 1, 2, 1), (float[]){1, 5, 3, 5, 5, 5});
}

static void recurrent_operands_are_checked(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 1, 2), NULL),
              *w = constant(f, F32, DIMS(1, 4, 2), NULL);
    oct_value *r = constant(f, F32, DIMS(1, 4, 1), NULL);
    oct_node *n = NODE(f, &oct_op_lstm, 3, x, w, r);
    const char *const odd[] = {"Tanh", "Tanh", "Wobble"};

    assert_infers(n, DIMS(1, 1, 1, 1));
    assert_ok(f->ctx, oct_node_set_int(n, "hidden_size", 2));
    assert_refuses(n, OCT_ERR_SHAPE, "operand 1: dim 1 is 4, expected 8");
    assert_refuses(NODE(f, &oct_op_gru, 2, x, w, r), OCT_ERR_SHAPE, "expected 3");
    n = NODE(f, &oct_op_lstm, 1, x, w, r);
    assert_ok(f->ctx, oct_node_set_attr(n, "activations",
                                        &(oct_attr){.kind = OCT_ATTR_STRINGS, .n = 3, .ss = odd}));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "activation 'Wobble'");
    assert_ok(f->ctx, oct_node_set_str(n, "direction", "bidirectional"));
    assert_refuses(n, OCT_ERR_FORMAT, "3 activations, 6 are needed");
}

static void losses_gather_and_reduce(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(2, 2), (double[]){-1, -2, -3, -4});
    oct_value *t = constant(f, OCT_DTYPE_I32, DIMS(2), (double[]){0, 1});
    oct_value *w = constant(f, F32, DIMS(2), (double[]){1, 3});
    oct_node *n = NODE(f, &oct_op_negative_log_likelihood_loss, 1, x, t, w);

    assert_gives(n, SCALAR, (float[]){13.0f / 4});
    assert_ok(f->ctx, oct_node_set_str(n, "reduction", "sum"));
    assert_gives(n, SCALAR, (float[]){13});
    assert_ok(f->ctx, oct_node_set_str(n, "reduction", "none"));
    assert_gives(n, DIMS(2), (float[]){1, 12});
    assert_ok(f->ctx, oct_node_set_int(n, "ignore_index", 1));
    assert_gives(n, DIMS(2), (float[]){1, 0});
    assert_ok(f->ctx, oct_node_set_str(n, "reduction", "most"));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "reduction 'most'");
    n = NODE(f, &oct_op_softmax_cross_entropy_loss, 2, x, t);
    assert_gives(n, SCALAR, (float[]){0.813262f});
    t = constant(f, OCT_DTYPE_I32, DIMS(2), (double[]){0, 2});
    assert_refuses(NODE(f, &oct_op_softmax_cross_entropy_loss, 1, x, t), OCT_ERR_SHAPE,
                   "target 2 of 2 classes");
    assert_refuses(NODE(f, &oct_op_softmax_cross_entropy_loss, 1, x, t, t), OCT_ERR_TYPE, "int32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(attention_weighs_values, setup, teardown),
        cmocka_unit_test_setup_teardown(attention_splits_packed_heads, setup, teardown),
        cmocka_unit_test_setup_teardown(attention_refuses_misfits, setup, teardown),
        cmocka_unit_test_setup_teardown(rotation_turns_pairs, setup, teardown),
        cmocka_unit_test_setup_teardown(recurrence_honours_lengths, setup, teardown),
        cmocka_unit_test_setup_teardown(gates_are_clipped, setup, teardown),
        cmocka_unit_test_setup_teardown(recurrent_operands_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(losses_gather_and_reduce, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
