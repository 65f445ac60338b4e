/* SPDX-License-Identifier: Apache-2.0 */
/* Normalization operators. */
#include "op_case.h"

#define F32 OCT_DTYPE_F32

/* All results of a node against want[], one array each; NULL: not looked at. */
static void assert_all(const oct_node *n, int n_out, const float *const *want)
{
    oct_tensor *out[4] = {NULL};

    assert_ok(n->graph->ctx, evaluate(n, out));
    for (int i = 0; i < n_out; i++) {
        if (want[i]) assert_all_close(out[i], want[i], oct_tensor_len(out[i]), 1e-5f);
        oct_tensor_unref(out[i]);
    }
}

#define ALL(...) ((const float *const[]){__VA_ARGS__})

static void batch_norm_uses_given_or_own_statistics(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(2, 1, 1), (double[]){2, 4});
    oct_value *one = constant(f, F32, DIMS(1), (double[]){1});
    oct_value *two = constant(f, F32, DIMS(1), (double[]){2});
    oct_node *n = NODE(f, &oct_op_batch_normalization, 1, x, two, one, one, one);

    assert_ok(f->ctx, oct_node_set_f32(n, "epsilon", 0));
    assert_gives(n, DIMS(2, 1, 1), (float[]){3, 7});
    n = NODE(f, &oct_op_batch_normalization, 3, x, two, one, one, two);
    assert_ok(f->ctx, oct_node_set_f32(n, "epsilon", 0));
    assert_ok(f->ctx, oct_node_set_int(n, "training_mode", 1));
    assert_all(n, 3, ALL((float[]){-1, 3}, (float[]){1.2f}, (float[]){1.9f}));
    n = NODE(f, &oct_op_batch_normalization, 1, x, two, one, one, INTS(f, 1));
    assert_refuses(n, OCT_ERR_TYPE, "int64");
    n = NODE(f, &oct_op_batch_normalization, 1, x, two, one, one, x);
    assert_refuses(n, OCT_ERR_SHAPE, "operand 4 is not one number");
}

static void layer_norm_gives_its_statistics(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(2, 2), (double[]){1, 3, 2, 10});
    oct_value *scale = constant(f, F32, DIMS(2), (double[]){1, 2});
    oct_value *wide = constant(f, F32, DIMS(2, 1), (double[]){1, 2});
    oct_value *bias = constant(f, F32, DIMS(2), (double[]){0, 1});
    oct_node *n = NODE(f, &oct_op_layer_normalization, 3, x, scale, bias);

    assert_ok(f->ctx, oct_node_set_f32(n, "epsilon", 0));
    assert_all(n, 3, ALL((float[]){-1, 3, -1, 3}, (float[]){2, 6}, (float[]){1, 0.25f}));
    n = NODE(f, &oct_op_layer_normalization, 1, x, wide); /* broadcast over rows */
    assert_ok(f->ctx, oct_node_set_f32(n, "epsilon", 0));
    assert_gives(n, DIMS(2, 2), (float[]){-1, 1, -2, 2});
    assert_refuses(NODE(f, &oct_op_layer_normalization, 1, x, INTS(f, 1)), OCT_ERR_TYPE, "int64");
    n = NODE(f, &oct_op_layer_normalization, 1, x, constant(f, F32, DIMS(3), NULL));
    assert_refuses(n, OCT_ERR_SHAPE, "operand 1 does not broadcast");
    n = NODE(f, &oct_op_layer_normalization, 1, x, scale);
    assert_ok(f->ctx, oct_node_set_int(n, "stash_type", OCT_DTYPE_I8));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "stash_type 3");
}

static void rms_norm_does_not_center(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F64, DIMS(1, 2), (double[]){1, 7});
    oct_value *scale = constant(f, OCT_DTYPE_F64, DIMS(2), (double[]){5, 10});
    oct_node *n = NODE(f, &oct_op_rms_normalization, 1, x, scale);

    assert_ok(f->ctx, oct_node_set_f32(n, "epsilon", 0));
    assert_gives(n, DIMS(1, 2), (float[]){1, 14});
}

static void skip_layer_norm_adds_first(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 2), (double[]){1, 2});
    oct_value *skip = constant(f, F32, DIMS(1, 2), (double[]){0, 1});
    oct_value *gamma = constant(f, F32, DIMS(2), (double[]){1, 1});
    oct_value *bias = constant(f, F32, DIMS(2), (double[]){1, 1});
    oct_node *n = NODE(f, &oct_op_ms_skip_layer_normalization, 4, x, skip, gamma, NULL, bias);

    assert_all(n, 4, ALL((float[]){-1, 1}, (float[]){3}, (float[]){1}, (float[]){2, 4}));
}

static void groups_have_their_own_statistics(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 2, 2), (double[]){1, 3, 2, 10});
    oct_value *scale = constant(f, F32, DIMS(2), (double[]){1, 2});
    oct_value *bias = constant(f, F32, DIMS(2), (double[]){0, 1});
    oct_node *n = NODE(f, &oct_op_instance_normalization, 1, x, scale, bias);

    assert_ok(f->ctx, oct_node_set_f32(n, "epsilon", 0));
    assert_gives(n, DIMS(1, 2, 2), (float[]){-1, 1, -1, 3});
    n = NODE(f, &oct_op_group_normalization, 1, x, scale, bias);
    assert_ok(f->ctx, oct_node_set_int(n, "num_groups", 2));
    assert_ok(f->ctx, oct_node_set_f32(n, "epsilon", 0));
    assert_gives(n, DIMS(1, 2, 2), (float[]){-1, 1, -1, 3});
    assert_ok(f->ctx, oct_node_set_int(n, "num_groups", 0));
    assert_refuses(n, OCT_ERR_SHAPE, "num_groups is 0");
    assert_ok(f->ctx, oct_node_set_int(n, "num_groups", 3));
    assert_refuses(n, OCT_ERR_SHAPE, "do not divide into 3 groups");
}

static void lanes_are_normalized(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 2), (double[]){3, -4});
    oct_node *n = NODE(f, &oct_op_lp_normalization, 1, x);

    assert_gives(n, DIMS(1, 2), (float[]){0.6f, -0.8f});
    assert_ok(f->ctx, oct_node_set_int(n, "p", 1));
    assert_gives(n, DIMS(1, 2), (float[]){3.0f / 7, -4.0f / 7});
    assert_ok(f->ctx, oct_node_set_int(n, "p", 3));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "p is 3");
    for (int64_t p = 1; p <= 2; p++) { /* no length: zeros, not 0 / 0 */
        n = NODE(f, &oct_op_lp_normalization, 1,
                 constant(f, F32, DIMS(2, 2), (double[4]){0, 0, 2}));
        assert_ok(f->ctx, oct_node_set_int(n, "p", p));
        assert_gives(n, DIMS(2, 2), (float[]){0, 0, 1, 0});
    }
    n = NODE(f, &oct_op_mean_variance_normalization, 1, x);
    assert_refuses(n, OCT_ERR_SHAPE, "axis 2"); /* the default is for images */
    assert_ok(f->ctx, oct_node_set_ints(n, "axes", (int64_t[]){1}, 1));
    assert_gives(n, DIMS(1, 2), (float[]){1, -1});
}

static void lrn_looks_at_neighbours(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 3, 1, 1), (double[]){1, 2, 3});
    oct_node *n = NODE(f, &oct_op_lrn, 1, x);

    assert_refuses(n, OCT_ERR_SHAPE, "size is 0");
    assert_ok(f->ctx, oct_node_set_int(n, "size", 3));
    assert_ok(f->ctx, oct_node_set_f32(n, "alpha", 3));
    assert_ok(f->ctx, oct_node_set_f32(n, "beta", 1));
    assert_gives(n, DIMS(1, 3, 1, 1), (float[]){1.0f / 6, 2.0f / 15, 3.0f / 14});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(batch_norm_uses_given_or_own_statistics, setup, teardown),
        cmocka_unit_test_setup_teardown(layer_norm_gives_its_statistics, setup, teardown),
        cmocka_unit_test_setup_teardown(rms_norm_does_not_center, setup, teardown),
        cmocka_unit_test_setup_teardown(skip_layer_norm_adds_first, setup, teardown),
        cmocka_unit_test_setup_teardown(groups_have_their_own_statistics, setup, teardown),
        cmocka_unit_test_setup_teardown(lanes_are_normalized, setup, teardown),
        cmocka_unit_test_setup_teardown(lrn_looks_at_neighbours, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
