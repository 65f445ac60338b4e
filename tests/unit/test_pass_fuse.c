/* SPDX-License-Identifier: Apache-2.0 */
/* Passes that fuse: into convolutions, branches into one, written-out functions into one node; and
 * pipelines as a whole. */
#include "tests/unit/pass_net.h"

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

/* As Flax writes it: mean(x) as a sum times a share, mean(x * x) - mean(x)^2 above a floor. */
typedef struct by_moments {
    int64_t axis;
    float share, floor;
    bool is_reversed; /* mean(x)^2 - mean(x * x) */
} by_moments;

static oct_value *mean_by_sum(fixture *f, oct_value *x, const by_moments *k)
{
    oct_node *n = node(f, &oct_op_reduce_sum, (oct_value *[]){x, INTS(f, k->axis)}, 2);

    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    return BIN(mul, infer(f, n), num(f, k->share));
}

static oct_value *normalise(fixture *f, oct_value *x, const by_moments *k)
{
    oct_value *rows = k->axis == 1 ? INTS(f, 2, 1, 8) : INTS(f, 2, 3, 1);
    oct_value *scale = constant(f, 3, (int64_t[]){1, 1, 8}, 1, 2);
    oct_value *mean = mean_by_sum(f, x, k), *v = mean_by_sum(f, BIN(mul, x, x), k);

    v = k->is_reversed ? BIN(sub, BIN(mul, mean, mean), v) : BIN(sub, v, BIN(mul, mean, mean));
    v = BIN(reshape, BIN(max, num(f, k->floor), v), rows);
    v = UN(reciprocal, UN(sqrt, BIN(add, v, num(f, 1e-3f))));
    v = BIN(mul, BIN(sub, x, BIN(reshape, mean, rows)), BIN(mul, v, scale));
    return BIN(add, v, constant(f, 3, (int64_t[]){1, 1, 8}, -1, 1));
}

static void normalisation_by_moments_is_recognised(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){2, 3, 8}), *mean, *v;
    oct_graph *g;

    output(f, normalise(f, x, &(by_moments){.axis = 2, .share = 1.0f / 8}));
    mean = BIN(reduce_mean, x, INTS(f, -1));
    v = BIN(reduce_mean, BIN(pow, x, num(f, 2)), INTS(f, -1));
    v = BIN(sub, v, BIN(pow, mean, num(f, 2)));
    v = UN(sqrt, BIN(add, UN(relu, v), num(f, 1e-3f)));
    output(f, BIN(div, BIN(sub, x, mean), v));
    g = hold_to_promises(f, "normalisation by moments");
    assert_int_equal(count(g, &oct_op_layer_normalization), 2);
    assert_int_equal(g->n_nodes, 2);
    oct_graph_free(g);
}

/* Other functions: along another axis, of another mean, of another variance. */
static void near_normalisations_stay(void **state)
{
    static const by_moments cases[] = {{.axis = 1, .share = 1.0f / 3},
                                       {.axis = 2, .share = 1.0f / 7},
                                       {.axis = 2, .share = 1.0f / 8, .floor = 0.1f},
                                       {.axis = 2, .share = 1.0f / 8, .is_reversed = true}};
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){2, 3, 8}), *mean, *v;
    oct_value *y = BIN(add, x, num(f, 1)); /* the mean is of x */
    oct_graph *g;

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        output(f, normalise(f, x, &cases[i]));
    mean = BIN(reduce_mean, x, INTS(f, 2));
    v = BIN(sub, BIN(reduce_mean, BIN(mul, y, y), INTS(f, 2)), BIN(mul, mean, mean));
    v = UN(sqrt, BIN(add, UN(relu, v), num(f, 1e-3f)));
    output(f, BIN(div, BIN(sub, x, mean), v));
    g = hold_to_promises(f, "near normalisations");
    assert_int_equal(count(g, &oct_op_layer_normalization), 0);
    assert_int_equal(count(g, &oct_op_sqrt), 5);
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
        TEST(normalisation_by_moments_is_recognised),
        TEST(near_normalisations_stay),
        TEST(unknown_passes_are_refused),
        TEST(only_and_skip_choose),
        TEST(the_table_can_be_read),
        TEST(long_chains_are_quick),
        TEST(no_memory_is_an_error),
    };

    oct_rng_init(&rng, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
