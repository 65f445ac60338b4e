/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds every pass of the table to its promise on graphs built here, and each to what it is for.
 */
#include "tests/unit/pass_net.h"

/* --- folding --- */

static void constants_are_folded(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 4, 5);
    oct_value *c = BIN(mul, BIN(add, num(f, 2), num(f, 3)), vec(f, 1, 1, 2));
    oct_graph *g;

    output(f, BIN(mul, x, BIN(pow, c, num(f, 2))));
    g = hold_to_promises(f, "constants");
    assert_int_equal(g->n_nodes, 1);
    oct_graph_free(g);
}

static void constant_outputs_keep_their_names(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 4, 5), *sum = BIN(add, vec(f, 3, 0, 1), vec(f, 3, 0, 1));
    const char *name = sum->name;
    oct_graph *g;

    output(f, UN(relu, x));
    output(f, sum);
    output(f, UN(shape, x));
    g = hold_to_promises(f, "constant outputs");
    assert_int_equal(g->n_nodes, 1);
    assert_string_equal(g->outputs[1]->name, name);
    assert_non_null(g->outputs[1]->data);
    assert_non_null(g->outputs[2]->data);
    oct_graph_free(g);
}

static void large_results_are_not_folded(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (int64_t[]){1});
    oct_value *big = BIN(expand, num(f, 1), INTS(f, 1024, 1024));
    oct_graph *g;

    output(f, BIN(add, x, UN(reduce_sum, big)));
    g = hold_to_promises(f, "large");
    assert_int_equal(count(g, &oct_op_expand), 1);
    oct_graph_free(g);
}

static void random_numbers_stay(void **state)
{
    fixture *f = *state;
    oct_value *c = vec(f, 4, 0, 1);
    int n_changed = 0;

    output(f, UN(random_normal_like, c));
    output(f, UN(random_normal_like, c));
    assert_ok(f->ctx, oct_pass_run(&oct_pass_fold_constants, f->g, &n_changed));
    assert_ok(f->ctx, oct_pass_run(&oct_pass_merge_equal, f->g, &n_changed));
    assert_int_equal(n_changed, 0);
}

static oct_value *quantized(fixture *f, int64_t n)
{
    const oct_type t = oct_type_make(OCT_DTYPE_I8, 1, &n);
    oct_tensor *w = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &t, &w));
    for (int64_t i = 0; i < n; i++)
        ((int8_t *)w->data)[i] = (int8_t)(i * 37 % 127);
    return BIN(dequantize_linear, oct_value_const(f->g, NULL, w), num(f, 0.125f));
}

static void quantized_weights_stay_in_files(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 1, (int64_t[]){8});
    oct_graph *g;

    output(f, BIN(mul, x, quantized(f, 8)));
    g = hold_to_promises(f, "quantized");
    assert_int_equal(count(g, &oct_op_dequantize_linear), 1);
    assert_ok(f->ctx, oct_pipeline_run(g, "execute", NULL, NULL));
    assert_int_equal(count(g, &oct_op_dequantize_linear), 0);
    oct_graph_free(g);
}

/* Reshape(x, [Shape(x)[0], 4, -1]) and the like, where the batch is not known. */
static void open_batch_sizes_leave_shapes_constant(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){-1, 4, 3, 3});
    oct_value *shape = UN(shape, x), *c = BIN(gather, shape, INTS(f, 1));
    oct_value *hw = BIN(mul, BIN(gather, shape, INTS(f, 2)), BIN(gather, shape, INTS(f, 3)));
    oct_value *in[] = {BIN(gather, shape, INTS(f, 0)), c, hw};
    oct_node *concat = node(f, &oct_op_concat, in, 3);
    oct_graph *g;

    assert_ok(f->ctx, oct_node_set_int(concat, "axis", 0));
    output(f, BIN(reshape, x, infer(f, concat)));
    g = hold_to_promises(f, "open batch");
    assert_int_equal(g->n_nodes, 1);
    assert_int_equal(oct_tensor_get_i64(g->first->in[1]->data, 0), -1);
    assert_int_equal(oct_tensor_get_i64(g->first->in[1]->data, 2), 9);
    oct_graph_free(g);
}

/* Shape arithmetic of several kinds, none of it on the open dimension. */
static void shape_arithmetic_is_computed(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){-1, 6, 4, 8});
    oct_value *c = constant(f, 3, (int64_t[]){2, 3, 4}, 0, 1), *shape = UN(shape, x), *half, *v;
    oct_node *cast, *concat;
    oct_graph *g;

    v = emit(f, &oct_op_slice, shape, INTS(f, -3), INTS(f, 100)); /* 6, 4, 8 */
    half = BIN(div, v, INTS(f, 2));                               /* 3, 2, 4 */
    half = BIN(sub, BIN(add, half, UN(shape, c)), UN(shape, c));
    cast = node(f, &oct_op_cast, &half, 1);
    assert_ok(f->ctx, oct_node_set_int(cast, "to", OCT_DTYPE_I32));
    half = infer(f, cast);
    cast = node(f, &oct_op_cast, &half, 1);
    assert_ok(f->ctx, oct_node_set_int(cast, "to", OCT_DTYPE_I64));
    half = infer(f, cast);
    v = BIN(unsqueeze, BIN(squeeze, BIN(unsqueeze, UN(size, c), INTS(f, 0)), INTS(f, 0)),
            INTS(f, 0));
    concat =
        node(f, &oct_op_concat, (oct_value *[]){INTS(f, -1), half, BIN(div, v, INTS(f, 3))}, 3);
    assert_ok(f->ctx, oct_node_set_int(concat, "axis", 0));
    output(f, BIN(reshape, x, infer(f, concat))); /* -1, 3, 2, 4, 8 */
    g = hold_to_promises(f, "shape arithmetic");
    assert_int_equal(g->n_nodes, 1);
    oct_graph_free(g);
}

static void what_nobody_needs_is_dropped(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 2, 3), *unused = vec(f, 3, 0, 1);
    oct_graph *g;
    int n_changed = 0;

    BIN(add, UN(neg, UN(neg, x)), vec(f, 3, 0, 1));
    output(f, UN(relu, x));
    g = hold_to_promises(f, "dead");
    assert_int_equal(g->n_nodes, 1);
    oct_graph_free(g);
    assert_ok(f->ctx, oct_pass_run(&oct_pass_drop_dead, f->g, &n_changed));
    assert_int_equal(n_changed, 5);
    assert_null(oct_graph_find_value(f->g, unused->name));
}

/* --- what does nothing --- */

static void copies_are_dropped(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 4, 6), *v = UN(relu, x);
    oct_node *n;
    oct_graph *g;

    v = UN(dropout, UN(identity, v));
    n = node(f, &oct_op_cast, &v, 1);
    assert_ok(f->ctx, oct_node_set_int(n, "to", OCT_DTYPE_F32));
    v = infer(f, n);
    n = node(f, &oct_op_transpose, &v, 1);
    assert_ok(f->ctx, oct_node_set_ints(n, "perm", (int64_t[]){0, 1, 2, 3}, 4));
    v = BIN(reshape, infer(f, n), INTS(f, 0, 4, -1, 6));
    v = BIN(expand, v, INTS(f, 1, 1, 6, 1));
    v = emit(f, &oct_op_slice, v, INTS(f, 0), INTS(f, 100));
    v = BIN(pad, v, INTS(f, 0, 0, 0, 0, 0, 0, 0, 0));
    n = node(f, &oct_op_concat, &v, 1);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    v = BIN(tile, infer(f, n), INTS(f, 1, 1, 1, 1));
    v = emit(f, &oct_op_resize, v, NULL, constant(f, 1, (int64_t[]){4}, 1, 1));
    v = BIN(div, BIN(mul, BIN(pow, v, num(f, 1)), num(f, 1)), num(f, 1));
    v = BIN(add, num(f, -0.0f), BIN(sub, v, num(f, 0)));
    output(f, UN(tanh, v));
    g = hold_to_promises(f, "copies");
    assert_int_equal(g->n_nodes, 2);
    oct_graph_free(g);
}

static void copies_that_change_the_shape_stay(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){1, 3});
    oct_graph *g;

    output(f, BIN(mul, x, constant(f, 2, (int64_t[]){4, 1}, 1, 1)));
    output(f, BIN(mul, x, constant(f, 4, (int64_t[]){1, 1, 1, 1}, 1, 1)));
    output(f, emit(f, &oct_op_slice, x, INTS(f, 1), INTS(f, 3)));
    g = hold_to_promises(f, "not copies");
    assert_int_equal(g->n_nodes, 3);
    oct_graph_free(g);
}

static void inputs_that_are_outputs_stay(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 2, 3);
    oct_graph *g;

    output(f, UN(identity, x));
    output(f, UN(identity, UN(identity, x)));
    g = hold_to_promises(f, "copies of an input");
    assert_int_equal(g->n_outputs, 2);
    oct_graph_free(g);
}

static void zero_is_not_added(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 2, 3);
    oct_graph *g;

    output(f, UN(neg,
                 BIN(add, BIN(sum, UN(relu, x), num(f, 0)), constant(f, 1, (int64_t[]){3}, 0, 0))));
    g = hold_to_promises(f, "zero adds");
    assert_int_equal(g->n_nodes, 2);
    oct_graph_free(g);
}

static void chains_of_views_become_one(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 4, 6), *v = x;
    oct_graph *g;

    v = BIN(reshape, v, INTS(f, 2, -1));
    v = BIN(unsqueeze, v, INTS(f, 0));
    v = BIN(reshape, v, INTS(f, 4, 36));
    v = BIN(unsqueeze, UN(flatten, v), INTS(f, 1));
    output(f, v);
    v = BIN(reshape, UN(neg, x), INTS(f, 8, -1));
    output(f, BIN(reshape, v, INTS(f, 0, 3, 6)));
    output(f, UN(sigmoid, v));
    g = hold_to_promises(f, "views");
    assert_int_equal(g->n_nodes, 5);
    oct_graph_free(g);
}

static oct_value *transpose(fixture *f, oct_value *x, int64_t a, int64_t b, int64_t c)
{
    oct_node *n = node(f, &oct_op_transpose, &x, 1);

    assert_ok(f->ctx, oct_node_set_ints(n, "perm", (int64_t[]){a, b, c}, 3));
    return infer(f, n);
}

static void chains_of_transposes_become_one(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){2, 3, 4});
    oct_graph *g;

    output(f, transpose(f, UN(transpose, transpose(f, x, 1, 0, 2)), 1, 2, 0));
    output(f, UN(neg, transpose(f, transpose(f, x, 1, 2, 0), 2, 0, 1)));
    g = hold_to_promises(f, "transposes");
    assert_int_equal(g->n_nodes, 2);
    oct_graph_free(g);
}

static void chains_of_slices_become_one(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){6, 5, 8}), *v;
    oct_node *n;
    oct_graph *g;

    v = emit(f, &oct_op_slice, x, INTS(f, 1, 1), INTS(f, -1, 4)); /* axes 0 and 1 */
    n = node(f, &oct_op_slice,
             (oct_value *[]){v, INTS(f, 7), INTS(f, -100), INTS(f, -1), INTS(f, -2)}, 5);
    output(f, infer(f, n));
    output(f, emit(f, &oct_op_slice, v, INTS(f, 1), INTS(f, 3))); /* axis 0 again: stays */
    g = hold_to_promises(f, "slices");
    assert_int_equal(g->n_nodes, 3);
    oct_graph_free(g);
}

/* Every other row and column, four times: the stem of YOLOv5 and YOLOX. */
static oct_value *focus(fixture *f, oct_value *x)
{
    oct_value *parts[4];
    oct_node *cat;

    for (int i = 0; i < 4; i++)
        parts[i] = infer(f, node(f, &oct_op_slice,
                                 (oct_value *[]){x, INTS(f, i % 2, i / 2), INTS(f, 1000, 1000),
                                                 INTS(f, 2, 3), INTS(f, 2, 2)},
                                 5));
    cat = node(f, &oct_op_concat, parts, 4);
    assert_ok(f->ctx, oct_node_set_int(cat, "axis", 1));
    return infer(f, cat);
}

static void focus_stems_become_one_convolution(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 12, 8});
    oct_value *y = graph_input(f, "y", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 6, 8});
    oct_graph *g;
    int n_changed = 0;

    output(f, conv(f, focus(f, x), (conv_spec){.c_out = 5, .kernel = 3, .has_bias = true}));
    output(f, conv(f, focus(f, y), (conv_spec){.c_out = 4, .kernel = 3, .stride = 2}));
    g = hold_to_promises(f, "focus");
    assert_ok(f->ctx, oct_pass_run(&oct_pass_fuse_focus, g, &n_changed));
    assert_int_equal(n_changed, 1); /* the second has a stride of its own */
    assert_int_equal(count(g, &oct_op_concat), 1);
    oct_graph_free(g);
}

static void equal_nodes_become_one(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 3, 4), *y = graph_input(f, "y", OCT_DTYPE_F32, 1, (int64_t[]){4});
    oct_value *a = emit(f, &oct_op_slice, x, INTS(f, 1), INTS(f, 2));
    oct_value *b = emit(f, &oct_op_slice, x, INTS(f, 1), INTS(f, 2));
    oct_graph *g;

    output(f, BIN(sub, BIN(mul, a, y), BIN(mul, y, b)));
    output(f, BIN(sub, a, y));
    output(f, BIN(sub, y, a));
    g = hold_to_promises(f, "equal nodes");
    assert_int_equal(g->n_nodes, 5);
    oct_graph_free(g);
}

/* --- If --- */

static oct_graph *branch(fixture *f, const char *name, oct_value *x, const oct_op *op)
{
    oct_graph *body = NULL;
    oct_builder b = {0};
    oct_value *v;

    assert_ok(f->ctx, oct_graph_new_sub(f->g, name, &body));
    b.g = body;
    v = oct_emit(&b, op, x, NULL, NULL);
    v = oct_emit(&b, &oct_op_mul, v, oct_scalar(&b, 3), NULL);
    assert_ok(f->ctx, b.status);
    assert_ok(f->ctx, oct_graph_add_output(body, v));
    return body;
}

static void if_with_a_constant_condition_is_inlined(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 3, 4), *cond = BIN(greater, num(f, 2), num(f, 1));
    oct_graph *then = branch(f, "then", x, &oct_op_relu);
    oct_graph *otherwise = branch(f, "else", x, &oct_op_neg), *g;
    oct_node *n = node(f, &oct_op_if, &cond, 1);
    const char *name;

    assert_ok(f->ctx,
              oct_node_set_attr(n, "then_branch", &(oct_attr){.kind = OCT_ATTR_GRAPH, .g = then}));
    assert_ok(f->ctx, oct_node_set_attr(n, "else_branch",
                                        &(oct_attr){.kind = OCT_ATTR_GRAPH, .g = otherwise}));
    output(f, infer(f, n));
    name = f->g->outputs[0]->name;
    g = hold_to_promises(f, "if");
    assert_int_equal(g->n_nodes, 2);
    assert_int_equal(count(g, &oct_op_relu), 1);
    assert_string_equal(g->outputs[0]->name, name);
    oct_graph_free(g);
}

/* Branches that return a constant, a value twice, a value from around them; a false condition. */
static void branches_may_return_anything(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 3, 4), *y = UN(neg, x), *cond = BIN(less, num(f, 2), num(f, 1)), *v;
    oct_graph *bodies[2] = {NULL}, *g;
    oct_builder b = {0};
    oct_node *n;

    for (int i = 0; i < 2; i++) {
        assert_ok(f->ctx, oct_graph_new_sub(f->g, i ? "else" : "then", &bodies[i]));
        b.g = bodies[i];
        v = oct_emit(&b, i ? &oct_op_tanh : &oct_op_relu, y, NULL, NULL);
        assert_ok(f->ctx, oct_graph_add_output(bodies[i], v));
        assert_ok(f->ctx, oct_graph_add_output(bodies[i], v));
        assert_ok(f->ctx, oct_graph_add_output(bodies[i], oct_scalar(&b, 3)));
        assert_ok(f->ctx, b.status);
    }
    n = oct_emit_node(&f->b, &oct_op_if, &cond, 1, 3);
    assert_ok(f->ctx, oct_node_set_attr(n, "then_branch",
                                        &(oct_attr){.kind = OCT_ATTR_GRAPH, .g = bodies[0]}));
    assert_ok(f->ctx, oct_node_set_attr(n, "else_branch",
                                        &(oct_attr){.kind = OCT_ATTR_GRAPH, .g = bodies[1]}));
    infer(f, n);
    for (int i = 0; i < 3; i++)
        output(f, n->out[i]);
    g = hold_to_promises(f, "if with odd branches");
    assert_int_equal(count(g, &oct_op_if), 0);
    assert_int_equal(count(g, &oct_op_tanh), 1);
    oct_graph_free(g);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(constants_are_folded),
        TEST(constant_outputs_keep_their_names),
        TEST(large_results_are_not_folded),
        TEST(random_numbers_stay),
        TEST(quantized_weights_stay_in_files),
        TEST(open_batch_sizes_leave_shapes_constant),
        TEST(shape_arithmetic_is_computed),
        TEST(what_nobody_needs_is_dropped),
        TEST(copies_are_dropped),
        TEST(copies_that_change_the_shape_stay),
        TEST(inputs_that_are_outputs_stay),
        TEST(zero_is_not_added),
        TEST(chains_of_views_become_one),
        TEST(chains_of_transposes_become_one),
        TEST(chains_of_slices_become_one),
        TEST(focus_stems_become_one_convolution),
        TEST(equal_nodes_become_one),
        TEST(if_with_a_constant_condition_is_inlined),
        TEST(branches_may_return_anything),
    };

    oct_rng_init(&rng, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
