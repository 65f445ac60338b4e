/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters and states: known before the first step, but nothing is baked in from them. */
#include <octet/graph.h>
#include <stdlib.h>
#include <unistd.h>

#include "pass/pass.h"
#include "tests/unit/exec_net.h"

static oct_rng rng;

/* x -> Conv(w) -> BatchNormalization -> Add(b) -> Add(b2), where b and b2 have the same bytes */
typedef struct net {
    oct_value *w, *scale, *b, *b2;
} net;

static net build(fixture *f)
{
    const int64_t c = 4;
    oct_value *x = picture(f, 1, 3, 5, 5), *bn[5], *y;
    net n = {.w = weights(f, &rng, 4, (int64_t[]){4, 3, 1, 1})};
    oct_tensor *same = NULL;
    oct_node *norm;

    bn[0] = infer(f, node(f, &oct_op_conv, x, n.w, NULL));
    for (int i = 1; i < 5; i++)
        bn[i] = weights(f, &rng, 1, &c);
    for (int i = 0; i < 4; i++) /* a variance is positive */
        ((float *)bn[4]->data->data)[i] = 1.0f + (float)i;
    n.scale = bn[1];
    norm = oct_emit_node(&f->b, &oct_op_batch_normalization, bn, 5, 1);
    assert_non_null(norm);
    y = infer(f, norm);
    n.b = weights(f, &rng, 4, (int64_t[]){1, 4, 1, 1});
    assert_ok(f->ctx, oct_tensor_copy(f->ctx, n.b->data, &same));
    n.b2 = oct_value_const(f->g, NULL, same);
    y = emit(f, &oct_op_add, y, n.b);
    y = emit(f, &oct_op_add, y, n.b2);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    return n;
}

static int n_known(const oct_graph *g)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_value_ids; i++)
        n += g->values[i] && oct_value_known(g->values[i]);
    return n;
}

static void kinds_are_told(void **state)
{
    fixture *f = *state;
    net n = build(f);

    assert_int_equal(oct_value_kind_of(n.w), OCT_VALUE_CONST);
    oct_value_to_param(n.w, false);
    oct_value_to_param(n.scale, true);
    assert_int_equal(oct_value_kind_of(n.w), OCT_VALUE_PARAM);
    assert_int_equal(oct_value_kind_of(n.scale), OCT_VALUE_STATE);
    assert_int_equal(oct_value_kind_of(f->g->inputs[0]), OCT_VALUE_INPUT);
    assert_int_equal(oct_value_kind_of(f->g->outputs[0]), OCT_VALUE_INNER);
    assert_null(oct_node_const(n.w->users[0], 1));
    assert_ok(f->ctx, oct_graph_verify(f->g));
    oct_graph_params_to_consts(f->g);
    assert_int_equal(oct_value_kind_of(n.w), OCT_VALUE_CONST);
    assert_int_equal(oct_value_kind_of(n.scale), OCT_VALUE_CONST);
}

/* As constants they all become the weights and the bias of one convolution. */
static void passes_leave_parameters_alone(void **state)
{
    fixture *f = *state;
    net n = build(f);
    oct_graph *copy = NULL;

    assert_ok(f->ctx, oct_graph_clone(f->g, &copy));
    assert_ok(f->ctx, oct_pipeline_run(copy, "simplify", NULL, NULL));
    assert_int_equal(copy->n_nodes, 1);
    oct_graph_free(copy);

    oct_value_to_param(n.w, false);
    oct_value_to_param(n.scale, false);
    oct_value_to_param(n.b, false);
    oct_value_to_param(n.b2, false);
    assert_ok(f->ctx, oct_pipeline_run(f->g, "simplify", NULL, NULL));
    assert_int_equal(f->g->n_nodes, 4);
    assert_int_equal(oct_value_kind_of(n.b2), OCT_VALUE_PARAM); /* equal bytes do not merge */
    assert_ok(f->ctx, oct_graph_verify(f->g));
}

static void copies_runs_and_files_keep_them(void **state)
{
    fixture *f = *state;
    net n = build(f);
    char path[] = "/tmp/octet-test-XXXXXX";
    oct_graph *copy = NULL, *back = NULL;
    oct_tensor *want = NULL, *got = NULL;
    const int known = n_known(f->g);

    run_graph(f, NULL, &want);
    oct_value_to_param(n.w, false);
    oct_value_to_param(n.b, true);
    assert_ok(f->ctx, oct_graph_clone(f->g, &copy));
    assert_int_equal(oct_value_kind_of(copy->values[n.w->id]), OCT_VALUE_PARAM);
    assert_int_equal(oct_value_kind_of(copy->values[n.b->id]), OCT_VALUE_STATE);
    run_graph(f, NULL, &got);
    assert_true(oct_tensor_equal(want, got));
    assert_int_equal(oct_value_kind_of(n.w), OCT_VALUE_PARAM); /* the plan froze its own copy */
    close(mkstemp(path));
    unlink(path); /* an existing file would not be replaced */
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
    assert_ok(f->ctx, oct_onnx_load(f->ctx, path, &back));
    unlink(path);
    assert_int_equal(n_known(back), known);
    oct_tensor_unref(want);
    oct_tensor_unref(got);
    oct_graph_free(copy);
    oct_graph_free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kinds_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(passes_leave_parameters_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_runs_and_files_keep_them, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
