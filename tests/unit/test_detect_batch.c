/* SPDX-License-Identifier: Apache-2.0 */
/* Networks made for one picture, bound to several: each picture's result is as if it were alone. */
#include "detect/detector.h"
#include "op/op.h"
#include "tests/test.h"

enum { SIDE = 5, PICTURES = 3 };

/* Channel shuffle of two groups and a flattened output, with the batch of 1 in both shapes. */
static void shuffle(fixture *f)
{
    oct_builder *b = &f->b;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, SIDE, SIDE});
    oct_node *n = oct_emit_node(b, &oct_op_concat, (oct_value *[]){x, x}, 2, 1);

    oct_emit_int(b, n, "axis", 1);
    x = oct_emitted(b, n);
    x = oct_emit(b, &oct_op_reshape, x, oct_ints(b, (int64_t[]){1, 2, 3, SIDE, SIDE}, 5), NULL);
    n = oct_emit_node(b, &oct_op_transpose, &x, 1, 1);
    oct_emit_ints(b, n, "perm", (int64_t[]){0, 2, 1, 3, 4}, 5);
    x = oct_emit(b, &oct_op_reshape, oct_emitted(b, n), oct_ints(b, (int64_t[]){1, 6, -1}, 3),
                 NULL);
    assert_non_null(x);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
}

static oct_tensor *eval(oct_ctx *ctx, const oct_graph *g, int64_t n, int64_t first)
{
    double v[PICTURES * 3 * SIDE * SIDE];
    oct_tensor *x, *y = NULL;

    for (int64_t i = 0; i < n * 3 * SIDE * SIDE; i++)
        v[i] = (double)(i + first * 3 * SIDE * SIDE);
    x = tensor_of(ctx, OCT_DTYPE_F32, 4, (int64_t[]){n, 3, SIDE, SIDE}, v);
    assert_ok(ctx, oct_graph_eval(g, &x, &y, NULL));
    oct_tensor_unref(x);
    return y;
}

/* A small map enlarged to the size of a larger one and added to it, with the batch in the size. */
static void pyramid(fixture *f)
{
    oct_builder *b = &f->b;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, SIDE, SIDE}), *small;
    oct_node *n = oct_emit_node(b, &oct_op_max_pool, &x, 1, 1);

    oct_emit_ints(b, n, "kernel_shape", (int64_t[]){2, 2}, 2);
    oct_emit_ints(b, n, "strides", (int64_t[]){2, 2}, 2);
    small = oct_emitted(b, n);
    n = oct_emit_node(
        b, &oct_op_resize,
        (oct_value *[]){small, NULL, NULL, oct_ints(b, (int64_t[]){1, 3, SIDE, SIDE}, 4)}, 4, 1);
    x = oct_emit(b, &oct_op_add, x, oct_emitted(b, n), NULL);
    assert_ok(f->ctx, b->status);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
}

static void each_as_if_alone(fixture *f, int32_t rank, const int64_t *dims)
{
    oct_graph *bound = NULL;
    oct_tensor *all;

    assert_ok(f->ctx, oct_detector_bind(f->g, PICTURES, SIDE, SIDE, &bound));
    assert_dims(&bound->outputs[0]->type, rank, dims);
    all = eval(f->ctx, bound, PICTURES, 0);
    for (int64_t i = 0; i < PICTURES; i++) {
        oct_tensor *one = eval(f->ctx, f->g, 1, i);

        assert_memory_equal((char *)all->data + (size_t)i * one->size, one->data, one->size);
        oct_tensor_unref(one);
    }
    oct_tensor_unref(all);
    oct_graph_free(bound);
}

static void several_pictures(void **state)
{
    shuffle(*state);
    each_as_if_alone(*state, 3, (int64_t[]){PICTURES, 6, SIDE * SIDE});
}

static void several_pyramids(void **state)
{
    pyramid(*state);
    each_as_if_alone(*state, 4, (int64_t[]){PICTURES, 3, SIDE, SIDE});
}

/* The network as given keeps its shapes. */
static void one_picture(void **state)
{
    fixture *f = *state;
    oct_graph *bound = NULL;
    char why[256];

    shuffle(f);
    assert_ok(f->ctx, oct_detector_bind(f->g, 1, SIDE, SIDE, &bound));
    assert_true(oct_graph_equal(f->g, bound, why, sizeof(why)));
    oct_graph_free(bound);
}

/* A target as exporters write it: sizes concatenated. */
static void computed_targets(void **state)
{
    static const int64_t dims[] = {1, 3, SIDE * SIDE};
    fixture *f = *state;
    oct_builder *b = &f->b;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, SIDE, SIDE}), *part[3];
    oct_graph *bound = NULL;
    oct_node *c;

    for (int i = 0; i < 3; i++)
        part[i] = oct_ints(b, &dims[i], 1);
    c = oct_emit_node(b, &oct_op_concat, part, 3, 1);
    oct_emit_int(b, c, "axis", 0);
    x = oct_emit(b, &oct_op_relu, x, NULL, NULL);
    x = oct_emit(b, &oct_op_reshape, x, oct_emitted(b, c), NULL);
    assert_ok(f->ctx, b->status);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
    assert_ok(f->ctx, oct_graph_infer(f->g));
    assert_ok(f->ctx, oct_detector_bind(f->g, PICTURES, SIDE, SIDE, &bound));
    assert_dims(&bound->outputs[0]->type, 3, (int64_t[]){PICTURES, 3, SIDE * SIDE});
    oct_graph_free(bound);
}

/* What begins with another size than the batch is not touched: that is an error as before. */
static void other_targets_stay(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, SIDE, SIDE});
    oct_graph *bound = NULL;

    x = oct_emit(&f->b, &oct_op_reshape, x, oct_ints(&f->b, (int64_t[]){3, SIDE * SIDE}, 2), NULL);
    assert_ok(f->ctx, f->b.status);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
    assert_fails(f->ctx, oct_detector_bind(f->g, PICTURES, SIDE, SIDE, &bound), OCT_ERR_SHAPE,
                 "batch 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_pictures, setup, teardown),
        cmocka_unit_test_setup_teardown(several_pyramids, setup, teardown),
        cmocka_unit_test_setup_teardown(one_picture, setup, teardown),
        cmocka_unit_test_setup_teardown(computed_targets, setup, teardown),
        cmocka_unit_test_setup_teardown(other_targets_stay, setup, teardown),
    };

    return run_test_group(tests);
}
