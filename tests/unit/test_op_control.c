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

/* A branch for each length of the input, as networks for several rates of sound have them. */
static void branches_for_other_shapes_are_no_fault(void **state)
{
    fixture *f = *state;
    const oct_type open = oct_type_make(OCT_DTYPE_F32, 1, (int64_t[]){-1}),
                   yes_no = oct_type_make(OCT_DTYPE_BOOL, 0, NULL);
    oct_value *x = oct_value_new(f->g, "x", &open), *cond = oct_value_new(f->g, "c", &yes_no);
    oct_graph *yes = body_of(f), *no = body_of(f);
    oct_node *n;

    assert_ok(f->ctx, oct_graph_add_input(f->g, x));
    assert_ok(f->ctx, oct_graph_add_input(f->g, cond));
    body_node(yes, &oct_op_neg, x, NULL, true);
    body_node(no, &oct_op_add, x, constant(f, OCT_DTYPE_F32, DIMS(3), (double[]){1, 2, 3}), true);
    n = NODE(f, &oct_op_if, 1, cond);
    set_body(n, "then_branch", yes);
    set_body(n, "else_branch", no);
    assert_ok(f->ctx, oct_graph_set_input_shape(f->g, "x", 1, (int64_t[]){2}));
    assert_ok(f->ctx, oct_graph_infer(f->g));
    assert_int_equal(yes->outputs[0]->type.dim[0], 2);
    assert_int_equal(no->outputs[0]->type.rank, -1);
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

/* A body that carries one number and passes the condition on; `inner` runs in each round. */
static oct_node *endless(fixture *f, oct_node **inner)
{
    oct_graph *g = body_of(f);
    oct_value *x, *y;
    oct_builder b = {.g = g};
    oct_node *n = NODE(f, &oct_op_loop, 1, NULL, NULL, INTS(f, 10));

    body_input(g, OCT_DTYPE_I64, SCALAR);
    assert_ok(f->ctx, oct_graph_add_output(g, body_input(g, OCT_DTYPE_BOOL, SCALAR)));
    x = y = body_input(g, OCT_DTYPE_I64, DIMS(1));
    if (inner) {
        oct_value *const in[] = {constant(f, OCT_DTYPE_I64, SCALAR, (double[]){1000}), NULL, x};
        oct_node *old = *inner;
        oct_graph *body = old->attr[0].g;

        *inner = oct_emit_node(&b, &oct_op_loop, in, 3, 1);
        assert_non_null(*inner);
        old->attr[0].g = NULL; /* the body goes over to the new node */
        old->attr[0].kind = OCT_ATTR_NONE;
        set_body(*inner, "body", body);
        y = (*inner)->out[0];
    }
    assert_ok(f->ctx, oct_graph_add_output(g, y));
    set_body(n, "body", g);
    return n;
}

/* The number of trips has a limit of its own, far below that of the work. */
static void loops_that_do_not_end_are_ended(void **state)
{
    fixture *f = *state;

    assert_refuses(endless(f, NULL), OCT_ERR_UNSUPPORTED, "does not end after 1048576 trips");
}

/* A thousand trips of a thousand trips of ...: each loop is within its own limit. */
static void nested_loops_have_one_limit(void **state)
{
    fixture *f = *state;
    oct_node *n = endless(f, NULL);
    char text[160];

    for (int depth = 0; depth < 6; depth++) {
        oct_node *inner = n;

        n = endless(f, &inner);
    }
    oct_ctx_set_work_limit(f->ctx, 100000000);
    snprintf(text, sizeof(text), "node '%s' (Loop): takes more than 100000000 operations", n->name);
    assert_refuses(n, OCT_ERR_UNSUPPORTED, text);
    oct_ctx_set_work_limit(f->ctx, 0);
}

/* What it costs is what is touched: reading a row of a large table is cheap, adding it up is not.
 */
static void work_is_counted_by_elements(void **state)
{
    fixture *f = *state;
    oct_value *table = constant(f, OCT_DTYPE_F32, DIMS(1000, 100), NULL);
    oct_node *pick = NODE(f, &oct_op_gather, 1, table, INTS(f, 5));
    oct_node *sum = NODE(f, &oct_op_reduce_sum, 1, table);
    oct_tensor *out[1] = {NULL};

    oct_ctx_set_work_limit(f->ctx, 50000);
    assert_ok(f->ctx, evaluate(pick, out));
    oct_tensor_unref(out[0]);
    assert_refuses(sum, OCT_ERR_UNSUPPORTED, "more than 50000 operations");
    oct_ctx_set_work_limit(f->ctx, 200000);
    assert_ok(f->ctx, evaluate(sum, out));
    oct_tensor_unref(out[0]);
}

/* Three operands of 100 x 100 are small; all products of their elements are not. */
static void einsum_of_many_indices_is_refused(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(100, 100), NULL);
    oct_node *n = NODE(f, &oct_op_einsum, 1, x, x, x);

    assert_ok(f->ctx, oct_node_set_str(n, "equation", "ij,kl,mn->"));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "operations, the limit for one node");
    assert_ok(f->ctx,
              oct_node_set_str(n, "equation", "ij,jk,kl->il")); /* 3e8: minutes of nothing */
    oct_ctx_set_work_limit(f->ctx, 299999999);
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "operations, the limit for one node");
}

/* Inference and folding look at small constants, and stop where that is work. */
static void inference_and_folding_stop_in_time(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(32, 32), NULL);
    oct_node *n = NODE(f, &oct_op_einsum, 1, x, x, x);

    assert_ok(f->ctx, oct_node_set_str(n, "equation", "ij,kl,mn->"));
    assert_ok(f->ctx, oct_graph_add_output(f->g, n->out[0]));
    assert_ok(f->ctx, oct_graph_infer(f->g));
    assert_dims(&n->out[0]->type, 0, SCALAR);
    assert_ok(f->ctx, oct_graph_simplify(f->g, NULL));
    assert_int_equal(f->g->n_nodes, 1);
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
        cmocka_unit_test_setup_teardown(branches_for_other_shapes_are_no_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(loop_carries_and_stacks, setup, teardown),
        cmocka_unit_test_setup_teardown(loop_that_never_runs_gives_its_start, setup, teardown),
        cmocka_unit_test_setup_teardown(endless_loop_can_be_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(loops_that_do_not_end_are_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(nested_loops_have_one_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(work_is_counted_by_elements, setup, teardown),
        cmocka_unit_test_setup_teardown(einsum_of_many_indices_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(inference_and_folding_stop_in_time, setup, teardown),
        cmocka_unit_test_setup_teardown(loop_checks_its_body, setup, teardown),
        cmocka_unit_test_setup_teardown(scan_goes_backwards_along_any_axis, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
