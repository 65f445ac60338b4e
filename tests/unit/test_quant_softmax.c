/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax is moved to the last axis for runtimes that are slow along others. */
#include "tests/unit/place_net.h"

#include "quant/lower/lower.h"

/* The Softmax of a network for a target, behind lowering. */
static oct_node *lowered(placed *p, const char *target, int64_t axis, oct_graph **g)
{
    oct_node *n;

    start(p, p->f, target);
    n = node(p->f, &oct_op_softmax, image(p, 3), NULL, NULL);
    assert_ok(p->f->ctx, oct_node_set_int(n, "axis", axis));
    output(p, emit(p->f, &oct_op_exp, infer(p->f, n), NULL));
    assert_ok(p->f->ctx, oct_qmap_new(p->f->g, oct_target_named(target), &p->m));
    assert_ok(p->f->ctx, oct_lower(p->m, &(oct_lower_options){0}, g));
    for (n = (*g)->first; n && !oct_node_is(n, &oct_op_softmax);)
        n = n->next;
    assert_non_null(n);
    return n;
}

static void another_axis_becomes_the_last(void **state)
{
    placed p = {.f = *state};
    oct_graph *g = NULL;
    const oct_node *n = lowered(&p, "ort", 1, &g), *back;

    assert_int_equal(oct_node_attr(n, "axis")->i, 3);
    assert_true(oct_node_is(n->in[0]->producer, &oct_op_transpose));
    assert_int_equal(n->out[0]->type.dim[3], 3); /* the channels */
    assert_int_equal(n->out[0]->n_users, 1);
    back = n->out[0]->users[0];
    assert_true(oct_node_is(back, &oct_op_transpose));
    assert_true(oct_type_equal(&back->out[0]->type, &n->in[0]->producer->in[0]->type));
    assert_true(oct_node_is(back->out[0]->users[0], &oct_op_exp));
    oct_graph_free(g);
    finish(&p);
}

static void the_last_axis_stays(void **state)
{
    placed p = {.f = *state};
    oct_graph *g = NULL;
    const oct_node *n = lowered(&p, "ort", -1, &g);

    assert_true(n->in[0]->is_input);
    oct_graph_free(g);
    finish(&p);
}

static void other_targets_keep_the_axis(void **state)
{
    placed p = {.f = *state};
    oct_graph *g = NULL;

    assert_int_equal(oct_node_attr(lowered(&p, "octet", 1, &g), "axis")->i, 1);
    oct_graph_free(g);
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(another_axis_becomes_the_last, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_axis_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(other_targets_keep_the_axis, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
