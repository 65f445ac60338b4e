/* SPDX-License-Identifier: Apache-2.0 */
/* Training in less memory computes values again, and gives the same bytes. */
#include "tests/unit/train_memory.h"

#include "tests/unit/train_blocks.h"

static void less_memory_same_bytes(void **state)
{
    fixture *f = *state;

    make_net(f);
    assert_bounded(f->ctx, f->g, *options(), .6);
}

/* Memory that others need counts as well. */
static void counts_what_others_need(void **state)
{
    fixture *f = *state;
    oct_train_net_options o = *options();
    oct_train_net *t = NULL;
    size_t full;

    make_net(f);
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &t));
    full = oct_train_net_bytes(t);
    oct_train_net_free(t);
    t = NULL;
    o.memory.max = full;
    o.memory.others = full / 8;
    o.memory.copies = 2;
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &t));
    assert_true(oct_train_net_bytes(t) + o.memory.others +
                    2 * sizeof(float) * (size_t)oct_train_net_params(t)->len <=
                full);
    oct_train_net_free(t);
}

/* The same bound gives the same plan. */
static void same_bound_same_steps(void **state)
{
    fixture *f = *state;
    oct_train_net_options o = *options();
    oct_train_net *a = NULL, *b = NULL;
    const oct_plan *p, *q;

    make_net(f);
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &a));
    o.memory.max = oct_train_net_bytes(a) * 2 / 3;
    oct_train_net_free(a);
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &a));
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &b));
    p = oct_train_net_plan(a);
    q = oct_train_net_plan(b);
    assert_int_equal(p->n_steps, q->n_steps);
    assert_int_equal(p->block_size, q->block_size);
    for (int32_t i = 0; i < p->n_steps; i++)
        assert_string_equal(p->steps[i].node ? p->steps[i].node->name : "",
                            q->steps[i].node ? q->steps[i].node->name : "");
    oct_train_net_free(a);
    oct_train_net_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(less_memory_same_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_what_others_need, setup, teardown),
        cmocka_unit_test_setup_teardown(same_bound_same_steps, setup, teardown),
    };

    return run_test_group(tests);
}
