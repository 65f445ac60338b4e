/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on networks that leave something open: sizes not known, results not read. */
#include "tests/unit/pass_net.h"

#include "op/conv_geometry.h"

/* --- results nobody reads --- */

static oct_node *wide(fixture *f, const oct_op *op, oct_value *const *in, int32_t n_in,
                      int32_t n_out)
{
    oct_node *n = oct_emit_node(&f->b, op, in, n_in, n_out);

    assert_non_null(n);
    return n;
}

/* Split, TopK, MaxPool and DynamicQuantizeLinear of constants. */
static oct_node *constant_node(fixture *f, int kind)
{
    oct_value *c = constant(f, 4, (int64_t[]){1, 2, 4, 6}, -1, 1), *k = INTS(f, 2);
    oct_node *n;

    if (kind == 0) {
        n = wide(f, &oct_op_split, &c, 1, 3);
        assert_ok(f->ctx, oct_node_set_int(n, "axis", 3));
        assert_ok(f->ctx, oct_node_set_int(n, "num_outputs", 3));
    } else if (kind == 1) {
        n = wide(f, &oct_op_top_k, (oct_value *[]){c, k}, 2, 2);
    } else if (kind == 2) {
        n = wide(f, &oct_op_max_pool, &c, 1, 2);
        assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){2, 2}, 2));
    } else {
        n = wide(f, &oct_op_dynamic_quantize_linear, &c, 1, 3);
    }
    infer(f, n);
    return n;
}

/* Each set of outputs read, by a node or as an output of the network; bit i of `read` for i. */
static void results_nobody_reads_may_be_constant(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (int read = 0; read < 8; read++) {
            fixture *f = NULL;
            oct_graph *g;
            oct_node *n;

            assert_int_equal(setup((void **)&f), 0);
            n = constant_node(f, kind);
            output(f, UN(relu, image(f, 2, 4)));
            for (int32_t i = 0; i < n->n_out && read < 1 << n->n_out; i++) {
                if (!(read >> i & 1)) continue;
                if (i == 1)
                    output(f, n->out[i]);
                else
                    output(f, emit(f, &oct_op_reshape, n->out[i], INTS(f, -1), NULL));
            }
            g = hold_to_promises(f, n->op->name);
            assert_int_equal(g->n_nodes, 1);
            oct_graph_free(g);
            assert_int_equal(teardown((void **)&f), 0);
        }
}

/* --- sizes not known --- */

/* The sizes networks below are evaluated with, one after the other. */
static const int64_t sizes[][4] = {{1, 4, 5, 7}, {2, 4, 6, 8}, {1, 4, 9, 4}};

/* All passes keep what a network says for every size; returns the simplified one. */
static oct_graph *hold_for_sizes(fixture *f, const char *name)
{
    oct_graph *g = NULL;

    for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
        memcpy(open_dims, sizes[i], sizeof(sizes[i]));
        oct_graph_free(g);
        g = hold_to_promises(f, name);
    }
    return g;
}

static oct_value *open_image(fixture *f, int64_t channels)
{
    return graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){-1, channels, -1, -1});
}

/* A convolution, for channels that x may not tell. */
static oct_node *plain_conv(fixture *f, oct_value *x, int64_t c_in, int64_t c_out, int64_t kernel)
{
    oct_value *w = constant(f, 4, (int64_t[]){c_out, c_in, kernel, kernel}, -0.4, 0.4);

    return node(f, &oct_op_conv, (oct_value *[]){x, w}, 2);
}

static oct_value *same_conv(fixture *f, oct_value *x, const char *mode, int64_t kernel,
                            int64_t stride)
{
    oct_node *n = plain_conv(f, x, 4, 4, kernel);

    assert_ok(f->ctx, oct_node_set_str(n, "auto_pad", mode));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){stride, stride}, 2));
    return infer(f, n);
}

static void branches_with_open_channels_are_merged(void **state)
{
    fixture *f = *state;
    oct_value *x = open_image(f, -1), *a, *b;
    oct_node *n = plain_conv(f, x, 4, 4, 3);
    oct_graph *g;

    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){1, 1, 1, 1}, 4));
    a = infer(f, n);
    b = infer(f, plain_conv(f, x, 4, 4, 1));
    output(f, BIN(add, BIN(add, a, b), x));
    g = hold_for_sizes(f, "branches with open channels");
    assert_int_equal(count(g, &oct_op_conv), 1);
    oct_graph_free(g);
}

static const char *const same[] = {"SAME_UPPER", "SAME_LOWER"};

static void shifts_stay_in_front_of_padding(void **state)
{
    fixture *f = *state;
    oct_value *x = open_image(f, 4);
    oct_graph *g;

    for (int i = 0; i < 2; i++) {
        output(f, same_conv(f, batch_norm(f, UN(tanh, x)), same[i], 3, 1));
        output(f, same_conv(f, BIN(sub, UN(relu, x), vec(f, 1, 1, 2)), same[i], 3, 2));
        output(f, same_conv(f, batch_norm(f, UN(neg, x)), same[i], 1, 2)); /* no padding: goes */
    }
    g = hold_for_sizes(f, "shifts, SAME");
    assert_int_equal(count(g, &oct_op_batch_normalization), 2);
    assert_int_equal(count(g, &oct_op_sub), 2);
    oct_graph_free(g);
}

static oct_value *same_pool(fixture *f, const oct_op *op, oct_value *x, const char *mode,
                            int64_t stride)
{
    oct_node *n = node(f, op, &x, 1);

    assert_ok(f->ctx, oct_node_set_str(n, "auto_pad", mode));
    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){3, 3}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){stride, stride}, 2));
    return infer(f, n);
}

static void pads_do_not_vanish_in_open_ones(void **state)
{
    fixture *f = *state;
    oct_value *x = open_image(f, 4), *pads = INTS(f, 0, 0, 1, 0, 0, 0, 2, 1);
    oct_graph *g;

    output(f, same_conv(f, BIN(pad, x, pads), same[0], 3, 2));
    output(f, same_conv(f, BIN(pad, UN(neg, x), pads), same[1], 3, 1)); /* known: goes */
    output(f, same_pool(f, &oct_op_max_pool, emit(f, &oct_op_pad, x, pads, num(f, -INFINITY)),
                        same[0], 2));
    output(f, same_pool(f, &oct_op_average_pool, BIN(pad, UN(tanh, x), pads), same[1], 2));
    g = hold_for_sizes(f, "Pad, SAME");
    assert_int_equal(count(g, &oct_op_pad), 3);
    oct_graph_free(g);
}

static void branches_with_open_padding_stay(void **state)
{
    fixture *f = *state;
    oct_value *x = open_image(f, 4);
    oct_graph *g;

    output(f, BIN(add, same_conv(f, x, same[0], 3, 2), same_conv(f, x, same[1], 3, 2)));
    output(f, BIN(add, same_conv(f, x, same[0], 3, 1), same_conv(f, x, same[1], 1, 1)));
    output(f, BIN(add, same_conv(f, x, same[0], 3, 2), same_conv(f, x, same[0], 1, 2)));
    g = hold_for_sizes(f, "branches, SAME");
    assert_int_equal(count(g, &oct_op_conv), 5);
    oct_graph_free(g);
}

/* What depends on a size that is not known says so: nobody can take it for zero. */
static void open_pads_are_not_zero(void **state)
{
    fixture *f = *state;
    oct_value *x = open_image(f, -1);
    oct_conv_geometry g;
    oct_node *n;

    for (int i = 0; i < 2; i++) {
        n = same_conv(f, x, same[i], 3, 2)->producer;
        assert_ok(f->ctx, oct_conv_geometry_conv(n, &x->type, &n->in[1]->type, &g));
        assert_false(oct_conv_pads_are_known(&g));
        assert_int_equal(g.pad_begin[0], -1);
        assert_int_equal(g.pad_end[1], -1);
        assert_int_equal(g.c_in, 4); /* the weight tells */
        n = same_conv(f, x, same[i], 4, 1)->producer;
        assert_ok(f->ctx, oct_conv_geometry_conv(n, &x->type, &n->in[1]->type, &g));
        assert_true(oct_conv_pads_are_known(&g));
        assert_int_equal(g.pad_begin[0], 1 + i);
        assert_int_equal(g.pad_end[0], 2 - i);
        n = same_pool(f, &oct_op_max_pool, x, same[i], 2)->producer;
        assert_ok(f->ctx, oct_conv_geometry_pool(n, &x->type, &g));
        assert_false(oct_conv_pads_are_known(&g));
        n = node(f, &oct_op_conv_transpose,
                 (oct_value *[]){x, constant(f, 4, (int64_t[]){4, 2, 3, 3}, -1, 1)}, 2);
        assert_ok(f->ctx, oct_node_set_str(n, "auto_pad", same[i]));
        assert_ok(f->ctx, oct_conv_geometry_transpose(n, &x->type, &n->in[1]->type, &g));
        assert_false(oct_conv_pads_are_known(&g));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_nobody_reads_may_be_constant),
        TEST(branches_with_open_channels_are_merged),
        TEST(shifts_stay_in_front_of_padding),
        TEST(pads_do_not_vanish_in_open_ones),
        TEST(branches_with_open_padding_stay),
        TEST(open_pads_are_not_zero),
    };

    oct_rng_init(&rng, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
