/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds every pass of the table to its promise on graphs built here, and each to what it is for.
 * Over 700 lines: one table, a graph for each pass, and the loop that holds all of them to it.
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

/* --- convolutions --- */

static void scales_go_into_convolutions(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 4, 6), *v;
    const char *name, *value_name;
    oct_graph *g;

    v = conv(f, x, (conv_spec){.c_out = 6, .kernel = 3, .group = 2});
    name = v->producer->name;
    v = BIN(mul, batch_norm(f, v), constant(f, 3, (int64_t[]){6, 1, 1}, 0.5, 2));
    v = BIN(div, BIN(sub, num(f, 2), v), num(f, 3));
    v = BIN(add, constant(f, 4, (int64_t[]){1, 6, 1, 1}, -1, 1), v);
    value_name = v->name;
    output(f, UN(relu, v));
    g = hold_to_promises(f, "conv, scale");
    assert_int_equal(g->n_nodes, 2);
    assert_string_equal(g->first->name, name);
    assert_string_equal(g->first->out[0]->name, value_name);
    oct_graph_free(g);
}

static void shared_weights_are_copied(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 4, 6), *w = constant(f, 4, (int64_t[]){4, 4, 1, 1}, -1, 1);
    oct_value *a = BIN(conv, x, w), *b = BIN(conv, UN(relu, x), w);
    oct_graph *g;

    output(f, batch_norm(f, a));
    output(f, b);
    g = hold_to_promises(f, "shared weights");
    assert_int_equal(g->n_nodes, 3);
    oct_graph_free(g);
}

static void values_read_twice_are_not_fused(void **state)
{
    fixture *f = *state;
    oct_value *v = conv(f, image(f, 4, 6), (conv_spec){.c_out = 4, .kernel = 3});
    oct_graph *g;

    output(f, BIN(mul, UN(sigmoid, v), BIN(mul, v, num(f, 2))));
    g = hold_to_promises(f, "read twice");
    assert_int_equal(g->n_nodes, 4);
    oct_graph_free(g);
}

static void scales_by_pixel_are_not_fused(void **state)
{
    fixture *f = *state;
    oct_value *v = conv(f, image(f, 4, 6), (conv_spec){.c_out = 6, .kernel = 3});
    oct_graph *g;

    output(f, BIN(mul, v, vec(f, 6, 1, 2))); /* along the width, which is 6 as well */
    g = hold_to_promises(f, "by pixel");
    assert_int_equal(g->n_nodes, 2);
    oct_graph_free(g);
}

static void scales_go_into_transposed_convolutions(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 4, 3), *w = constant(f, 4, (int64_t[]){4, 3, 2, 2}, -1, 1);
    oct_node *n = node(f, &oct_op_conv_transpose, (oct_value *[]){x, w}, 2);
    oct_graph *g;

    assert_ok(f->ctx, oct_node_set_int(n, "group", 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){2, 2}, 2));
    output(f, batch_norm(f, infer(f, n)));
    n = node(f, &oct_op_conv_transpose,
             (oct_value *[]){BIN(mul, x, constant(f, 3, (int64_t[]){4, 1, 1}, 1, 2)), w}, 2);
    assert_ok(f->ctx, oct_node_set_int(n, "group", 2));
    output(f, infer(f, n));
    g = hold_to_promises(f, "transposed conv");
    assert_int_equal(g->n_nodes, 2);
    oct_graph_free(g);
}

static void matrix_products_become_gemm_and_take_scales(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){3, 5});
    oct_value *v = BIN(mat_mul, x, constant(f, 2, (int64_t[]){5, 7}, -1, 1));
    const char *name = v->producer->name;
    oct_node *n;
    oct_graph *g;

    v = BIN(mul, BIN(add, vec(f, 7, -1, 1), v), vec(f, 7, 1, 2));
    output(f, v);
    v = BIN(add, BIN(mul, x, vec(f, 5, 1, 2)), num(f, 0.5f));
    n = node(f, &oct_op_gemm,
             (oct_value *[]){v, constant(f, 2, (int64_t[]){6, 5}, -1, 1), num(f, 2)}, 3);
    assert_ok(f->ctx, oct_node_set_int(n, "transB", 1));
    assert_ok(f->ctx, oct_node_set_f32(n, "alpha", 0.5f));
    assert_ok(f->ctx, oct_node_set_f32(n, "beta", 0.25f));
    output(f, BIN(add, infer(f, n), num(f, 1)));
    g = hold_to_promises(f, "gemm");
    assert_int_equal(count(g, &oct_op_gemm), 2);
    assert_int_equal(g->n_nodes, 2);
    assert_string_equal(g->first->name, name);
    oct_graph_free(g);
}

static void scales_in_front_go_into_convolutions(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 4, 6), *v = BIN(div, BIN(mul, x, num(f, 2)), num(f, 3));
    oct_graph *g;

    output(f, conv(f, v, (conv_spec){.c_out = 4, .kernel = 3, .group = 2}));
    output(f, conv(f, batch_norm(f, UN(relu, x)), (conv_spec){.c_out = 5, .kernel = 1}));
    /* The zeros of padding are not shifted: this one stays. */
    output(f, conv(f, batch_norm(f, UN(tanh, x)), (conv_spec){.c_out = 5, .kernel = 3}));
    g = hold_to_promises(f, "scale, conv");
    assert_int_equal(count(g, &oct_op_batch_normalization), 1);
    assert_int_equal(g->n_nodes, 6);
    oct_graph_free(g);
}

static void padding_goes_into_windows(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 3, 6), *pads = INTS(f, 0, 0, 1, 0, 0, 0, 2, 1), *v;
    oct_value *low = num(f, -INFINITY);
    oct_node *n;
    oct_graph *g;

    output(f, conv(f, BIN(pad, x, pads), (conv_spec){.c_out = 2, .kernel = 3}));
    v = emit(f, &oct_op_pad, x, pads, low);
    n = node(f, &oct_op_max_pool, &v, 1);
    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){3, 3}, 2));
    output(f, infer(f, n));
    v = BIN(pad, x, pads);
    n = node(f, &oct_op_average_pool, &v, 1);
    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){3, 3}, 2));
    output(f, infer(f, n));
    v = BIN(pad, x, pads); /* zeros are not what MaxPool pads with */
    n = node(f, &oct_op_max_pool, &v, 1);
    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){3, 3}, 2));
    output(f, infer(f, n));
    g = hold_to_promises(f, "pads");
    assert_int_equal(count(g, &oct_op_pad), 1);
    assert_int_equal(g->n_nodes, 5);
    oct_graph_free(g);
}

/* --- branches --- */

/* The training form of super-gradients' block: 3x3 + BN, 1x1 with bias times alpha, x; BN after. */
static oct_value *qarepvgg(fixture *f, oct_value *x, int64_t c_out, int64_t stride)
{
    oct_value *a =
        batch_norm(f, conv(f, x, (conv_spec){.c_out = c_out, .kernel = 3, .stride = stride}));
    oct_value *b =
        conv(f, x, (conv_spec){.c_out = c_out, .kernel = 1, .stride = stride, .has_bias = true});
    oct_value *sum = BIN(add, a, BIN(mul, b, num(f, 1)));

    sum = BIN(add, sum, c_out == x->type.dim[1] && stride == 1 ? x : num(f, 0));
    return UN(relu, batch_norm(f, sum));
}

static void qarepvgg_chains_become_one_convolution_each(void **state)
{
    fixture *f = *state;
    oct_value *v = image(f, 3, 12);
    oct_graph *g;

    v = qarepvgg(f, v, 8, 2);
    for (int i = 0; i < 4; i++)
        v = qarepvgg(f, v, 8, 1);
    v = qarepvgg(f, v, 12, 2);
    output(f, v);
    g = hold_to_promises(f, "QARepVGG");
    assert_int_equal(count(g, &oct_op_conv), 6);
    assert_int_equal(g->n_nodes, 12);
    oct_graph_free(g);
}

/* RepVGG: all three branches normalised; any order and form of the sum; groups. */
static void repvgg_sums_of_any_form_are_merged(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 8, 7), *v = UN(relu, x), *a, *b, *c;
    oct_graph *g;

    for (int form = 0; form < 5; form++) {
        const int64_t group = form == 4 ? 8 : form == 3 ? 2 : 1;

        a = batch_norm(f, conv(f, v, (conv_spec){.c_out = 8, .kernel = 3, .group = group}));
        b = batch_norm(f, conv(f, v, (conv_spec){.c_out = 8, .kernel = 1, .group = group}));
        c = form == 2 ? BIN(mul, v, num(f, 0.3f)) : batch_norm(f, v);
        if (form == 0) v = BIN(add, a, BIN(add, b, c));
        if (form == 1) v = emit(f, &oct_op_sum, c, b, a);
        if (form == 2) v = BIN(add, BIN(add, c, v), BIN(add, b, a));
        if (form == 3) v = BIN(add, c, BIN(mul, BIN(add, num(f, 1), BIN(add, a, b)), num(f, -2)));
        if (form == 4) v = BIN(add, BIN(add, a, c), b);
        v = UN(tanh, v);
    }
    output(f, v);
    g = hold_to_promises(f, "RepVGG");
    assert_int_equal(count(g, &oct_op_conv), 5);
    assert_int_equal(g->n_nodes, 11);
    oct_graph_free(g);
}

static void branches_that_do_not_fit_stay(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 4, 9), *v = UN(relu, x), *a, *b;
    oct_node *n;
    oct_graph *g;

    /* other inputs */
    a = conv(f, x, (conv_spec){.c_out = 4, .kernel = 3});
    output(f, BIN(add, a, conv(f, v, (conv_spec){.c_out = 4, .kernel = 3})));
    /* other groups */
    a = conv(f, v, (conv_spec){.c_out = 4, .kernel = 3, .group = 2});
    output(f, BIN(add, a, conv(f, v, (conv_spec){.c_out = 4, .kernel = 1})));
    /* a 1x1 kernel that looks at another pixel */
    a = conv(f, v, (conv_spec){.c_out = 4, .kernel = 3, .stride = 2});
    b = conv(f, v, (conv_spec){.c_out = 4, .kernel = 1});
    n = b->producer;
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){2, 2}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){1, 1, 0, 0}, 4));
    assert_ok(f->ctx, oct_node_infer(n));
    output(f, BIN(add, a, b));
    g = hold_to_promises(f, "branches that do not fit");
    assert_int_equal(count(g, &oct_op_conv), 6);
    oct_graph_free(g);
}

/* --- written-out functions --- */

static void activations_are_recognised_for_plans(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 3, 4), *y, *t;
    oct_graph *g;

    y = BIN(mul, x, UN(sigmoid, x));
    y = BIN(mul, UN(sigmoid, BIN(mul, y, num(f, 1.702f))), y);
    t = emit(f, &oct_op_clip, BIN(add, y, num(f, 3)), num(f, 0), num(f, 6));
    y = BIN(div, BIN(mul, y, t), num(f, 6));
    t = emit(f, &oct_op_clip, BIN(add, num(f, 3), y), num(f, 0), num(f, 6));
    y = BIN(mul, BIN(mul, t, num(f, 1.0f / 6)), y);
    t = emit(f, &oct_op_clip, BIN(add, num(f, 3), y), num(f, 0), num(f, 6));
    y = BIN(div, t, num(f, 6));
    t = BIN(add, UN(erf, BIN(div, y, num(f, 1.41421356f))), num(f, 1));
    y = BIN(mul, BIN(mul, y, t), num(f, 0.5f));
    t = BIN(mul, BIN(pow, y, num(f, 3)), num(f, 0.044715f));
    t = BIN(mul, BIN(add, y, t), num(f, 0.79788456f));
    y = BIN(mul, BIN(mul, num(f, 0.5f), y), BIN(add, num(f, 1), UN(tanh, t)));
    output(f, y);
    g = hold_to_promises(f, "activations");
    assert_int_equal(g->n_nodes, 7); /* made in code: no opset to keep to */
    assert_int_equal(count(g, &oct_op_swish), 2);
    assert_int_equal(count(g, &oct_op_hard_swish), 2);
    assert_int_equal(count(g, &oct_op_gelu), 2);
    oct_graph_free(g);
}

static void gelu_has_many_forms(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 3, 4), *y = x, *t;
    oct_graph *g;

    t = BIN(add, BIN(mul, BIN(mul, y, y), num(f, 0.044715f)), num(f, 1));
    t = UN(tanh, BIN(mul, BIN(mul, num(f, 0.79788456f), y), t));
    y = BIN(mul, y, BIN(mul, num(f, 0.5f), BIN(add, t, num(f, 1))));
    t = BIN(mul, BIN(mul, BIN(mul, y, y), y), num(f, 0.044715f));
    t = UN(tanh, BIN(mul, BIN(add, t, y), num(f, 0.79788456f)));
    y = BIN(div, BIN(mul, y, BIN(sub, t, num(f, -1))), num(f, 2));
    output(f, y);
    x = UN(neg, x);
    t = BIN(mul, BIN(mul, BIN(mul, x, x), x), num(f, 0.05f)); /* another function */
    t = UN(tanh, BIN(mul, BIN(add, t, x), num(f, 0.79788456f)));
    output(f, BIN(div, BIN(mul, x, BIN(add, t, num(f, 1))), num(f, 2)));
    g = hold_to_promises(f, "gelu");
    assert_int_equal(count(g, &oct_op_gelu), 2);
    assert_int_equal(count(g, &oct_op_tanh), 1);
    oct_graph_free(g);
}

static void new_operators_do_not_go_into_old_files(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 3, 4);
    oct_opset opset = {.domain = "", .version = 17};

    output(f, BIN(mul, x, UN(sigmoid, x)));
    f->g->info.opsets = &opset;
    f->g->info.n_opsets = 1;
    assert_ok(f->ctx, oct_graph_simplify(f->g, NULL));
    assert_int_equal(f->g->n_nodes, 2);
    assert_ok(f->ctx, oct_pipeline_run(f->g, "execute", NULL, NULL));
    assert_int_equal(f->g->n_nodes, 1);
    f->g->info.n_opsets = 0;
}

static void normalisations_are_recognised(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){2, 3, 8}), *d, *v;
    oct_graph *g;

    d = BIN(sub, x, BIN(reduce_mean, x, INTS(f, -1)));
    v = BIN(reduce_mean, BIN(pow, d, num(f, 2)), INTS(f, -1));
    v = BIN(div, d, UN(sqrt, BIN(add, v, num(f, 1e-5f))));
    v = BIN(add, BIN(mul, v, vec(f, 8, 1, 2)), vec(f, 8, -1, 1));
    d = BIN(sub, v, BIN(reduce_mean, v, INTS(f, 2)));
    v = BIN(reduce_mean, BIN(mul, d, d), INTS(f, 2));
    v = BIN(mul, d, UN(reciprocal, UN(sqrt, BIN(add, v, num(f, 1e-6f)))));
    output(f, v);
    v = BIN(reduce_mean, BIN(pow, x, num(f, 2)), INTS(f, -1));
    v = BIN(mul, x, BIN(div, num(f, 1), UN(sqrt, BIN(add, num(f, 1e-6f), v))));
    output(f, BIN(mul, vec(f, 8, 1, 2), v));
    g = hold_to_promises(f, "normalisations");
    assert_int_equal(count(g, &oct_op_layer_normalization), 2);
    assert_int_equal(count(g, &oct_op_rms_normalization), 1);
    assert_int_equal(g->n_nodes, 3);
    oct_graph_free(g);
}

/* --- pipelines --- */

static void unknown_passes_are_refused(void **state)
{
    fixture *f = *state;
    oct_simplify_options o;

    oct_simplify_options_init(&o);
    o.only = "drop-dead,drop-copys";
    assert_fails(f->ctx, oct_graph_simplify(f->g, &o), OCT_ERR_ARG, "drop-copies");
    o.only = NULL;
    o.skip = "xyzzy-and-more";
    assert_fails(f->ctx, oct_graph_simplify(f->g, &o), OCT_ERR_ARG, "merge-branches");
    assert_fails(f->ctx, oct_pipeline_run(f->g, "nothing", NULL, NULL), OCT_ERR_ARG, "execute");
}

static void only_and_skip_choose(void **state)
{
    fixture *f = *state;
    oct_value *x = image(f, 3, 4);
    oct_simplify_options o;

    output(f, UN(relu, BIN(mul, UN(identity, x), BIN(add, num(f, 1), num(f, 1)))));
    oct_simplify_options_init(&o);
    o.only = "fold-constants,drop-dead";
    assert_ok(f->ctx, oct_graph_simplify(f->g, &o));
    assert_int_equal(f->g->n_nodes, 3);
    o.only = NULL;
    o.skip = "drop-copies";
    assert_ok(f->ctx, oct_graph_simplify(f->g, &o));
    assert_int_equal(f->g->n_nodes, 3);
    assert_ok(f->ctx, oct_graph_simplify(f->g, NULL));
    assert_int_equal(f->g->n_nodes, 2);
}

static void the_table_can_be_read(void **state)
{
    int n = 0;

    (void)state;
    for (; oct_pass_name(n); n++) {
        assert_non_null(oct_pass_help(oct_pass_name(n)));
        assert_non_null(oct_pass_promise(oct_pass_name(n)));
    }
    assert_true(n > 15);
    assert_string_equal(oct_pass_promise("drop-copies"), "bit-exact");
    assert_string_equal(oct_pass_promise("merge-branches"), "close");
    assert_null(oct_pass_help("nothing"));
    assert_null(oct_pass_promise("nothing"));
}

/* Long chains of each kind: time must grow with their length, not its square. */
static void long_chains_are_quick(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){4, 4}), *v = x;

    for (int i = 0; i < 3000; i++) {
        v = BIN(mul, BIN(add, v, num(f, 1)), num(f, 1));
        v = UN(transpose, BIN(reshape, UN(neg, v), INTS(f, 4, 4)));
        v = BIN(add, v, BIN(sum, x, x));
    }
    output(f, v);
    assert_ok(f->ctx, oct_pipeline_run(f->g, "execute", NULL, NULL));
    assert_ok(f->ctx, oct_graph_verify(f->g));
}

/* Runs out of memory at each point in turn (every point costs too much time): an error, no leak. */
static void no_memory_is_an_error(void **state)
{
    oct_status st = OCT_ERR_MEMORY;

    (void)state;
    for (int k = 1; st; k += 1 + k / 16) {
        failing memory;
        fixture own = {.ctx = failing_ctx(&memory)};
        oct_value *v;

        assert_ok(own.ctx, oct_graph_new(own.ctx, "test", &own.g));
        own.b.g = own.g;
        v = qarepvgg(&own, qarepvgg(&own, image(&own, 4, 3), 4, 1), 4, 1);
        v = oct_emit(&own.b, &oct_op_mul, v, oct_emit(&own.b, &oct_op_sigmoid, v, NULL, NULL),
                     NULL);
        v = oct_emit(&own.b, &oct_op_reshape, v, oct_ints(&own.b, (int64_t[]){2, -1}, 2), NULL);
        output(&own, v);
        memory.fail_at = memory.n_asked + k;
        st = oct_pipeline_run(own.g, "execute", NULL, NULL);
        if (memory.n_asked < memory.fail_at) assert_int_equal(st, OCT_OK); /* never short */
        if (st) assert_int_equal(st, OCT_ERR_MEMORY);
        oct_graph_free(own.g);
        assert_int_equal(atomic_load(&own.ctx->mem_used), 0);
        oct_ctx_free(own.ctx);
        assert_int_equal(memory.n_live, 0);
        if (k > 100000) fail_msg("%s: never enough memory", "execute");
    }
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
        TEST(scales_go_into_convolutions),
        TEST(shared_weights_are_copied),
        TEST(values_read_twice_are_not_fused),
        TEST(scales_by_pixel_are_not_fused),
        TEST(scales_go_into_transposed_convolutions),
        TEST(matrix_products_become_gemm_and_take_scales),
        TEST(scales_in_front_go_into_convolutions),
        TEST(padding_goes_into_windows),
        TEST(qarepvgg_chains_become_one_convolution_each),
        TEST(repvgg_sums_of_any_form_are_merged),
        TEST(branches_that_do_not_fit_stay),
        TEST(activations_are_recognised_for_plans),
        TEST(gelu_has_many_forms),
        TEST(new_operators_do_not_go_into_old_files),
        TEST(normalisations_are_recognised),
        TEST(unknown_passes_are_refused),
        TEST(only_and_skip_choose),
        TEST(the_table_can_be_read),
        TEST(long_chains_are_quick),
        TEST(no_memory_is_an_error),
    };

    oct_rng_init(&rng, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
