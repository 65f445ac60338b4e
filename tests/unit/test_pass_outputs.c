/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing outputs: the others go, and what only they need. */
#include "tests/unit/pass_net.h"

/* x -> Conv -> Relu = a; a -> Conv = b; Sigmoid(b) = c. Outputs a, b, c. */
static void make(fixture *f)
{
    oct_value *x = image(f, 3, 8);
    oct_value *a = emit(f, &oct_op_relu, conv(f, x, (conv_spec){4, 3, 1, 1, true}), NULL, NULL);
    oct_value *b = conv(f, a, (conv_spec){2, 1, 1, 1, true});
    oct_value *c = emit(f, &oct_op_sigmoid, b, NULL, NULL);

    a->name = "features";
    b->name = "logits";
    c->name = "scores";
    output(f, a);
    output(f, b);
    output(f, c);
}

static void drops_what_only_others_need(void **state)
{
    static const struct {
        const char *names, *first;
        int n_outputs, n_conv, n_sigmoid, n_consts;
    } cases[] = {
        {"features", "features", 1, 1, 0, 2},
        {"logits", "logits", 1, 2, 0, 4},
        {"scores,features", "features", 2, 2, 1, 4}, /* in the network's own order */
        {"scores,scores", "scores", 1, 2, 1, 4},
    };
    fixture *f = *state;

    make(f);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = NULL;
        int n_consts = 0;

        assert_ok(f->ctx, oct_graph_clone(f->g, &g));
        assert_ok(f->ctx, oct_graph_keep_outputs(g, cases[i].names));
        assert_int_equal(g->n_outputs, cases[i].n_outputs);
        assert_string_equal(g->outputs[0]->name, cases[i].first);
        assert_int_equal(count(g, &oct_op_conv), cases[i].n_conv);
        assert_int_equal(count(g, &oct_op_sigmoid), cases[i].n_sigmoid);
        for (int32_t v = 0; v < g->n_value_ids; v++)
            n_consts += g->values[v] && g->values[v]->data;
        assert_int_equal(n_consts, cases[i].n_consts);
        oct_graph_free(g);
    }
}

static void unknown_names_get_the_nearest(void **state)
{
    fixture *f = *state;

    make(f);
    assert_fails(f->ctx, oct_graph_keep_outputs(f->g, "scors"), OCT_ERR_ARG,
                 "no output 'scors'; did you mean 'scores'?");
    assert_fails(f->ctx, oct_graph_keep_outputs(f->g, "scores,"), OCT_ERR_ARG, "an empty name");
    assert_fails(f->ctx, oct_graph_keep_outputs(f->g, ""), OCT_ERR_ARG, "an empty name");
    assert_int_equal(f->g->n_outputs, 3); /* nothing was changed */
}

static const oct_value *at(const oct_graph *g, bool is_output, int32_t i)
{
    const oct_value *v = is_output ? oct_graph_output(g, i) : oct_graph_input(g, i);

    assert_non_null(v);
    return v;
}

static void cuts_at_any_value(void **state)
{
    static const struct {
        const char *inputs, *outputs, *in, *out;
        int n_outputs, n_nodes;
    } cases[] = {
        {NULL, "logits", "x", "logits", 1, 3},
        {"features", "scores", "features", "scores", 1, 2},
        {"logits", "scores", "logits", "scores", 1, 1},
        {"x", NULL, "x", "features", 3, 4},
        {"features", "scores,logits", "features", "scores", 2, 2}, /* in the order of the list */
    };
    fixture *f = *state;

    make(f);
    f->g->inputs[0]->name = "x";
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = NULL;

        assert_ok(f->ctx, oct_graph_clone(f->g, &g));
        assert_ok(f->ctx, oct_graph_extract(g, cases[i].inputs, cases[i].outputs));
        assert_int_equal(g->n_inputs, 1);
        assert_string_equal(at(g, false, 0)->name, cases[i].in);
        assert_int_equal(at(g, false, 0)->type.dtype, OCT_DTYPE_F32);
        assert_int_equal(at(g, false, 0)->type.rank, 4);
        assert_int_equal(g->n_outputs, cases[i].n_outputs);
        assert_string_equal(at(g, true, 0)->name, cases[i].out);
        assert_int_equal(g->n_nodes, cases[i].n_nodes);
        oct_graph_free(g);
    }
}

/* A part computes what the whole network computes there. */
static void parts_make_the_whole(void **state)
{
    fixture *f = *state;
    oct_tensor *x = NULL, *mid = NULL, *whole[3] = {0}, *last = NULL;
    oct_graph *head = NULL, *tail = NULL;

    make(f);
    assert_ok(f->ctx, oct_graph_clone(f->g, &head));
    assert_ok(f->ctx, oct_graph_clone(f->g, &tail));
    assert_ok(f->ctx, oct_graph_extract(head, NULL, "features"));
    assert_ok(f->ctx, oct_graph_extract(tail, "features", "scores"));
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &f->g->inputs[0]->type, &x));
    for (int64_t i = 0; i < oct_tensor_len(x); i++)
        ((float *)x->data)[i] = (float)(i % 7) - 3;
    assert_ok(f->ctx, oct_graph_eval(f->g, &x, whole, NULL));
    assert_ok(f->ctx, oct_graph_eval(head, &x, &mid, NULL));
    assert_ok(f->ctx, oct_graph_eval(tail, &mid, &last, NULL));
    assert_all_close(last, whole[2]->data, oct_tensor_len(whole[2]), 0);
    for (int i = 0; i < 3; i++)
        oct_tensor_unref(whole[i]);
    oct_tensor_unref(x);
    oct_tensor_unref(mid);
    oct_tensor_unref(last);
    oct_graph_free(head);
    oct_graph_free(tail);
}

static void refuses_cuts_that_do_not_close(void **state)
{
    static const struct {
        const char *inputs, *outputs, *why;
    } cases[] = {
        {"featurs", NULL, "no value 'featurs'; did you mean 'features'?"},
        {NULL, "scors", "no value 'scors'; did you mean 'scores'?"},
        {"logits", "features", "also need input"},
        {"logits", "logits", "an input and an output"},
        {NULL, "logits,logits", "named twice"},
        {"logits", NULL, "name the outputs to keep"},
        {NULL, "logits,", "an empty name"},
    };
    fixture *f = *state;

    make(f);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = NULL;

        assert_ok(f->ctx, oct_graph_clone(f->g, &g));
        assert_fails(f->ctx, oct_graph_extract(g, cases[i].inputs, cases[i].outputs), OCT_ERR_ARG,
                     cases[i].why);
        oct_graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cuts_at_any_value, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_make_the_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_cuts_that_do_not_close, setup, teardown),
        cmocka_unit_test_setup_teardown(drops_what_only_others_need, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_names_get_the_nearest, setup, teardown),
    };

    return run_test_group(tests);
}
