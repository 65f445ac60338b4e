/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of rows: an operator that is not in the table, but whose row says what it is, is moved
 * past, fused and quantized like those that are. */
#include "op/act.h"
#include "op/channels.h"
#include "quant/place/place.h"
#include "tests/unit/exec_net.h"

static oct_rng rng;

/* A new operator that moves data: Identity under another name. */
static const oct_op *mover(void)
{
    static oct_op row;

    row = oct_op_identity;
    row.name = "Mirror";
    row.flags = 0;
    return &row;
}

/* A new activation: it is HardSwish, but only its row says so. */
static const oct_op *activation(void)
{
    static oct_op row;

    row = oct_op_hard_swish;
    row.name = "Bent";
    return &row;
}

/* A new operator with weights: Conv under another name. */
static const oct_op *weighted(void)
{
    static oct_op row;

    row = oct_op_conv;
    row.name = "Filter";
    return &row;
}

static oct_value *filters(fixture *f, const oct_op *op, oct_value *x, int64_t c)
{
    oct_value *w = weights(f, &rng, 4, (int64_t[]){c, x->type.dim[1], 1, 1});

    return infer(f, node(f, op, x, w, NULL));
}

static void a_new_mover_carries_labels(void **state)
{
    fixture *f = *state;
    const oct_op *row = mover();
    oct_value *x = picture(f, 1, 8, 4, 4), *y = emit(f, row, x, NULL);
    oct_tensor *in = NULL, *out = NULL;
    int32_t label[8];

    assert_true(oct_node_moves_data(y->producer));
    assert_int_equal(oct_node_n_data(y->producer), 1);
    assert_ok(f->ctx, oct_labels_new(f->ctx, &x->type, 5, true, &in));
    assert_ok(f->ctx, oct_labels_through(y->producer, (const oct_tensor *[]){in}, 0, &out));
    assert_true(oct_labels_channels(out, 8, label));
    assert_int_equal(label[7], 12);
    oct_tensor_unref(in);
    oct_tensor_unref(out);
}

static void a_new_activation_is_fused(void **state)
{
    fixture *f = *state;
    const oct_op *row = activation();
    oct_value *y = emit(f, row, filters(f, &oct_op_conv, picture(f, 1, 8, 4, 4), 16), NULL);
    oct_act act;

    assert_true(oct_act_of(y->producer, &act));
    assert_int_equal(act.kind, OCT_ACT_HARD_SWISH);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    assert_int_equal(count_steps(f, NULL, "Bent"), 0); /* the convolution applies it */
    assert_kernels_agree(f, "a fused activation");
}

static void a_new_weighted_operator_leads_a_group(void **state)
{
    fixture *f = *state;
    const oct_op *filter = weighted(), *bent = activation();
    oct_value *c = filters(f, filter, picture(f, 1, 8, 4, 4), 16), *y = emit(f, bent, c, NULL);
    oct_weight_axes ax;
    oct_arena *a = oct_arena_new(f->ctx);
    const oct_target *t = NULL;
    oct_fusion_groups groups;

    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    assert_true(oct_weight_axes_of(c->producer, &ax));
    assert_int_equal(ax.n_out, 16);
    assert_int_equal(ax.n_in, 8);
    assert_non_null(a);
    assert_ok(f->ctx, oct_target_find(f->ctx, "octet", &t));
    assert_ok(f->ctx, oct_fusion_groups_find(f->g, t, a, &groups));
    assert_int_equal(groups.n, 1);
    assert_ptr_equal(groups.item[0].anchor, c->producer);
    assert_ptr_equal(groups.item[0].last, y->producer);
    oct_arena_free(a);
}

/* Every activation that a row names has a name and a value of its own. */
static void activations_of_rows_are_complete(void **state)
{
    const oct_op *op;
    int n = 0;

    (void)state;
    for (int i = 0; (op = oct_op_at(i)); i++) {
        if (!op->act) continue;
        assert_in_range(op->act->kind, OCT_ACT_NONE + 1, OCT_ACT_COUNT - 1);
        assert_non_null(oct_act_name(op->act->kind));
        assert_true(op->flags & OCT_OP_ELEMENTWISE);
        n++;
    }
    assert_in_range(n, 11, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_mover_carries_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_activation_is_fused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_weighted_operator_leads_a_group, setup, teardown),
        cmocka_unit_test(activations_of_rows_are_complete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
