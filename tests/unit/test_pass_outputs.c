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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(drops_what_only_others_need, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_names_get_the_nearest, setup, teardown),
    };

    return run_test_group(tests);
}
