/* SPDX-License-Identifier: Apache-2.0 */
/* If, Loop and Scan: bodies, captured values, carried state, stacked results, endless loops. */
#include "op_case.h"

static oct_graph *body_of(fixture *f)
{
    oct_graph *g = NULL;

    assert_ok(f->ctx, oct_graph_new_sub(f->g, "body", &g));
    return g;
}

static oct_value *body_input(oct_graph *g, oct_dtype t, const int64_t *dims)
{
    const oct_type type = oct_type_make(t, rank_of(dims), dims);
    oct_value *v = oct_value_new(g, NULL, &type);

    assert_non_null(v);
    assert_ok(g->ctx, oct_graph_add_input(g, v));
    return v;
}

/* A node in the body; its result is the body's next output if `out`. */
static oct_value *body_node(oct_graph *g, const oct_op *op, oct_value *x, oct_value *y, bool out)
{
    oct_builder b = {.g = g};
    oct_value *v = oct_emit(&b, op, x, y, NULL);

    assert_int_equal(b.status, OCT_OK);
    if (out) assert_ok(g->ctx, oct_graph_add_output(g, v));
    return v;
}

static void set_body(oct_node *n, const char *name, oct_graph *body)
{
    const oct_attr a = {.kind = OCT_ATTR_GRAPH, .given = true, .g = body};

    assert_ok(n->graph->ctx, oct_node_set_attr(n, name, &a));
}

static oct_value *flag(fixture *f, bool v)
{
    return constant(f, OCT_DTYPE_BOOL, SCALAR, (double[]){v});
}

static void if_runs_one_branch(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){1, -2});
    oct_graph *yes = body_of(f), *no = body_of(f);
    oct_node *n[2];

    body_node(yes, &oct_op_neg, x, NULL, true); /* x is captured */
    body_node(no, &oct_op_add, x, x, true);
    for (int i = 0; i < 2; i++) {
        n[i] = NODE(f, &oct_op_if, 1, flag(f, i == 0));
        set_body(n[i], "then_branch", yes);
        set_body(n[i], "else_branch", no);
    }
    assert_gives(n[0], DIMS(2), (float[]){-1, 2});
    assert_gives(n[1], DIMS(2), (float[]){2, -4});
}

/* sum += i, and sum + i is stacked. */
static oct_graph *sum_body(fixture *f, oct_value *keep_going)
{
    oct_graph *g = body_of(f);
    oct_value *i = body_input(g, OCT_DTYPE_I64, SCALAR);
    oct_value *cond = body_input(g, OCT_DTYPE_BOOL, SCALAR);
    oct_value *sum = body_input(g, OCT_DTYPE_I64, DIMS(1));

    body_node(g, &oct_op_and, cond, keep_going, true);
    sum = body_node(g, &oct_op_add, sum, i, true);
    body_node(g, &oct_op_add, sum, i, true);
    return g;
}

static void loop_carries_and_stacks(void **state)
{
    fixture *f = *state;
    oct_value *trips = constant(f, OCT_DTYPE_I64, SCALAR, (double[]){4});
    oct_node *n = NODE(f, &oct_op_loop, 2, trips, flag(f, true), INTS(f, 10));
    oct_tensor *out[2] = {NULL};

    set_body(n, "body", sum_body(f, flag(f, true)));
    assert_ok(f->ctx, evaluate(n, out));
    assert_all_close(out[0], (float[]){16}, 1, 0);
    assert_dims(&out[1]->type, 2, DIMS(4, 1));
    assert_all_close(out[1], (float[]){10, 12, 15, 19}, 4, 0);
    oct_tensor_unref(out[0]);
    oct_tensor_unref(out[1]);
}

static void loop_that_never_runs_gives_its_start(void **state)
{
    fixture *f = *state;
    oct_node *n = NODE(f, &oct_op_loop, 2, NULL, flag(f, false), INTS(f, 10));
    oct_tensor *out[2] = {NULL};

    set_body(n, "body", sum_body(f, flag(f, true)));
    assert_ok(f->ctx, evaluate(n, out));
    assert_all_close(out[0], (float[]){10}, 1, 0);
    assert_dims(&out[1]->type, 2, DIMS(0, 1));
    oct_tensor_unref(out[0]);
    oct_tensor_unref(out[1]);
}

static int cancel(void *user, const char *what, int64_t done, int64_t total)
{
    (void)what;
    (void)total;
    return done > *(const int64_t *)user;
}

static void endless_loop_can_be_cancelled(void **state)
{
    fixture *f = *state;
    const int64_t enough = 3000;
    oct_node *n = NODE(f, &oct_op_loop, 2, NULL, NULL, INTS(f, 10));
    oct_tensor *out[2] = {NULL}, *in[3] = {NULL, NULL, NULL};

    set_body(n, "body", sum_body(f, flag(f, true)));
    oct_ctx_set_progress(f->ctx, cancel, (void *)(uintptr_t)&enough);
    in[2] = n->in[2]->data;
    assert_int_equal(oct_node_eval(n, in, out, NULL), OCT_ERR_CANCELLED);
    oct_ctx_set_progress(f->ctx, NULL, NULL);
}

static void loop_checks_its_body(void **state)
{
    fixture *f = *state;
    oct_node *n = NODE(f, &oct_op_loop, 1, NULL, NULL, INTS(f, 10));

    set_body(n, "body", sum_body(f, flag(f, true)));
    assert_refuses(n, OCT_ERR_FORMAT, "the body has 3 inputs and 3 outputs");
}

static void scan_goes_backwards_along_any_axis(void **state)
{
    fixture *f = *state;
    oct_graph *g = body_of(f);
    oct_value *sum = body_input(g, OCT_DTYPE_F32, DIMS(2));
    oct_value *x = body_input(g, OCT_DTYPE_F32, DIMS(2));
    oct_node *n = NODE(f, &oct_op_scan, 2, constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){0, 0}),
                       constant(f, OCT_DTYPE_F32, DIMS(2, 3), NULL));
    oct_tensor *out[2] = {NULL};

    sum = body_node(g, &oct_op_add, sum, x, true);
    body_node(g, &oct_op_identity, sum, NULL, true);
    set_body(n, "body", g);
    assert_ok(f->ctx, oct_node_set_int(n, "num_scan_inputs", 1));
    assert_ok(f->ctx, oct_node_set_ints(n, "scan_input_axes", (int64_t[]){1}, 1));
    assert_ok(f->ctx, oct_node_set_ints(n, "scan_input_directions", (int64_t[]){1}, 1));
    assert_ok(f->ctx, oct_node_set_ints(n, "scan_output_axes", (int64_t[]){-1}, 1));
    assert_ok(f->ctx, oct_node_set_ints(n, "scan_output_directions", (int64_t[]){1}, 1));
    assert_ok(f->ctx, evaluate(n, out));
    assert_all_close(out[0], (float[]){3, 12}, 2, 0);
    assert_dims(&out[1]->type, 2, DIMS(2, 3));
    assert_all_close(out[1], (float[]){3, 3, 2, 12, 9, 5}, 6, 0);
    oct_tensor_unref(out[0]);
    oct_tensor_unref(out[1]);
    assert_ok(f->ctx, oct_node_set_int(n, "num_scan_inputs", 3));
    assert_refuses(n, OCT_ERR_FORMAT, "num_scan_inputs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(if_runs_one_branch, setup, teardown),
        cmocka_unit_test_setup_teardown(loop_carries_and_stacks, setup, teardown),
        cmocka_unit_test_setup_teardown(loop_that_never_runs_gives_its_start, setup, teardown),
        cmocka_unit_test_setup_teardown(endless_loop_can_be_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(loop_checks_its_body, setup, teardown),
        cmocka_unit_test_setup_teardown(scan_goes_backwards_along_any_axis, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
