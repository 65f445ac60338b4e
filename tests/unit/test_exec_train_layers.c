/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of training plans other than convolutions against plain kernels, and whole networks. */
#include "unit/exec_train.h"

#include "grad/grad.h"

/* Channels and pixels that no vector divides; every activation. */
static void normalizations(void **state)
{
    static const int64_t sizes[][4] = {{2, 3, 5, 7}, {1, 16, 40, 40}, {3, 33, 6, 5}, {2, 64, 9, 9}};

    for (int act = 0; act < OCT_ACT_RATIONAL_SIGMOID; act++) {
        const int64_t *d = sizes[act % 4];
        fixture *f = *state;
        oct_value *x, *in[6];
        oct_node *n;
        char what[40];

        restart(f);
        x = in[0] = picture(f, d[0], d[1], d[2], d[3]);
        in[1] = given(f, "scale", 1, d + 1);
        in[2] = given(f, "bias", 1, d + 1);
        in[3] = given(f, "mean", 1, d + 1);
        in[4] = given(f, "var", 1, d + 1);
        n = oct_emit_node(&f->b, &oct_op_batch_norm_train, in, 5, 5);
        assert_non_null(n);
        set_act(f, n, (oct_act_kind)act);
        output(f, infer(f, n));
        for (int i = 1; i < 5; i++)
            output(f, n->out[i]);
        in[1] = given(f, "dy", 4, d);
        in[2] = f->g->inputs[1];
        in[3] = f->g->inputs[2];
        in[4] = n->out[3];
        in[5] = n->out[4];
        n = oct_emit_node(&f->b, &oct_op_batch_norm_train_grad, in, 6, 3);
        assert_non_null(n);
        set_act(f, n, (oct_act_kind)act);
        output(f, infer(f, n));
        output(f, n->out[1]);
        output(f, n->out[2]);
        assert_ptr_equal(x, f->g->inputs[0]);
        snprintf(what, sizeof(what), "normalization, %s", oct_act_name((oct_act_kind)act));
        assert_kernels_agree(f, what);
        assert_fast(f, "BatchNormTrain");
        assert_fast(f, "BatchNormTrainGrad");
        assert_repeatable(f, 2);
    }
}

/* A mean far from zero: the variance must not be lost in it. */
static void normalizations_of_large_means(void **state)
{
    fixture *f = *state;
    const int64_t c = 5;
    oct_value *in[5], *x = picture(f, 2, c, 30, 30);
    oct_node *n;

    in[0] = emit(f, &oct_op_add, x, oct_scalar_of(&f->b, OCT_DTYPE_F32, 1000));
    in[1] = given(f, "scale", 1, &c);
    in[2] = given(f, "bias", 1, &c);
    in[3] = given(f, "mean", 1, &c);
    in[4] = given(f, "var", 1, &c);
    n = oct_emit_node(&f->b, &oct_op_batch_norm_train, in, 5, 5);
    assert_non_null(n);
    output(f, n->out[4]);
    assert_kernels_agree(f, "large mean");
}

static void slopes(void **state)
{
    for (int act = 1; act < OCT_ACT_RATIONAL_SIGMOID; act++) {
        const int64_t d[] = {2, 13, 5, 6};
        fixture *f = *state;
        oct_value *x, *dy;
        oct_node *n;

        restart(f);
        x = emit(f, &oct_op_mul, picture(f, d[0], d[1], d[2], d[3]),
                 oct_scalar_of(&f->b, OCT_DTYPE_F32, 8));
        dy = given(f, "dy", 4, d);
        n = oct_emit_node(&f->b, &oct_op_act_grad, (oct_value *[]){x, dy}, 2, 1);
        assert_non_null(n);
        set_act(f, n, (oct_act_kind)act);
        output(f, infer(f, n));
        assert_kernels_agree(f, oct_act_name((oct_act_kind)act));
        assert_fast(f, "ActivationGrad");
    }
}

static void poolings(void **state)
{
    static const struct {
        int64_t n, c, h, w, kernel, stride, pad, dilation;
    } cases[] = {
        {2, 13, 9, 11, 5, 1, 2, 1}, {1, 70, 8, 8, 2, 2, 0, 1}, {2, 8, 7, 9, 3, 2, 1, 1},
        {1, 3, 6, 6, 3, 1, 0, 1},   {1, 65, 9, 9, 3, 2, 1, 2},
    };

    for (size_t i = 0; i < 2 * OCT_COUNT(cases); i++) {
        const int64_t k = cases[i / 2].kernel, s = cases[i / 2].stride, p = cases[i / 2].pad;
        const int64_t span = (k - 1) * cases[i / 2].dilation + 1, n = cases[i / 2].n;
        const int64_t size[] = {n, cases[i / 2].c, cases[i / 2].h, cases[i / 2].w};
        const int64_t small[] = {n, size[1], (size[2] + 2 * p - span) / s + 1,
                                 (size[3] + 2 * p - span) / s + 1};
        fixture *f = *state;
        oct_value *in[2];
        oct_node *node_;

        restart(f);
        in[i % 2] = given(f, "dy", 4, small);
        if (i % 2) in[0] = picture(f, n, size[1], size[2], size[3]);
        node_ = oct_emit_node(&f->b, i % 2 ? &oct_op_max_pool_grad : &oct_op_average_pool_grad, in,
                              i % 2 ? 2 : 1, 1);
        assert_non_null(node_);
        assert_ok(f->ctx, oct_node_set_ints(node_, "kernel_shape", (int64_t[]){k, k}, 2));
        assert_ok(f->ctx, oct_node_set_ints(node_, "strides", (int64_t[]){s, s}, 2));
        assert_ok(f->ctx, oct_node_set_ints(node_, "pads", (int64_t[]){p, p, p, p}, 4));
        assert_ok(f->ctx,
                  oct_node_set_ints(node_, "dilations",
                                    (int64_t[]){cases[i / 2].dilation, cases[i / 2].dilation}, 2));
        if (i % 2 == 0) assert_ok(f->ctx, oct_node_set_ints(node_, "shape", size, 4));
        if (i % 4 == 0) assert_ok(f->ctx, oct_node_set_int(node_, "count_include_pad", 1));
        output(f, infer(f, node_));
        assert_dims(&f->g->outputs[0]->type, 4, size);
        assert_kernels_agree(f, node_->op->name);
        assert_fast(f, node_->op->name);
    }
}

static void resizings(void **state)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};

    for (size_t i = 0; i < 2 * OCT_COUNT(modes); i++) {
        const int64_t size[] = {2, 130, 5, 6}, large[] = {2, 130, i % 2 ? 10 : 13, i % 2 ? 12 : 9};
        float scales[4];
        fixture *f = *state;
        oct_value *dy;
        oct_node *n;

        restart(f);
        dy = given(f, "dy", 4, large);
        n = oct_emit_node(&f->b, &oct_op_resize_grad, &dy, 1, 1);
        assert_non_null(n);
        for (int d = 0; d < 4; d++)
            scales[d] = (float)large[d] / (float)size[d];
        assert_ok(f->ctx, oct_node_set_str(n, "mode", modes[i / 2]));
        assert_ok(f->ctx, oct_node_set_str(n, "coordinate_transformation_mode",
                                           i % 2 ? "asymmetric" : "half_pixel"));
        assert_ok(f->ctx, oct_node_set_ints(n, "shape", size, 4));
        assert_ok(f->ctx,
                  oct_node_set_attr(
                      n, "scales",
                      &(oct_attr){.kind = OCT_ATTR_F32S, .given = true, .n = 4, .fs = scales}));
        output(f, infer(f, n));
        assert_kernels_agree(f, modes[i / 2]);
        assert_fast(f, "ResizeGrad");
    }
}

/* --- whole networks --- */

enum { MAX_PARAMS = 40 };

typedef struct trained {
    fixture *f;
    oct_value *param[MAX_PARAMS];
    int32_t n;
} trained;

static oct_value *param(trained *t, int32_t rank, const int64_t *dims)
{
    char name[16];

    assert_true(t->n < MAX_PARAMS);
    snprintf(name, sizeof(name), "p%d", (int)t->n);
    t->param[t->n] = given(t->f, oct_arena_strdup(t->f->g->arena, name), rank, dims);
    return t->param[t->n++];
}

/* Conv, BatchNormTrain with an activation. */
static oct_value *block(trained *t, oct_value *x, const conv_case *c, oct_act_kind act)
{
    fixture *f = t->f;
    const int64_t w[] = {c->c_out, c->c_in / c->group, c->kernel, c->kernel};
    oct_node *n = node(f, &oct_op_conv, x, param(t, 4, w), NULL);
    oct_value *in[5];

    set_window(f, n, c);
    in[0] = infer(f, n);
    for (int i = 1; i < 3; i++)
        in[i] = param(t, 1, &c->c_out);
    for (int i = 3; i < 5; i++)
        in[i] = weights(f, &(oct_rng){0}, 1, &c->c_out);
    n = oct_emit_node(&f->b, &oct_op_batch_norm_train, in, 5, 5);
    assert_non_null(n);
    set_act(f, n, act);
    return infer(f, n);
}

static oct_value *concat(fixture *f, oct_value **v, int n)
{
    oct_node *all = oct_emit_node(&f->b, &oct_op_concat, v, n, 1);

    assert_ok(f->ctx, oct_node_set_int(all, "axis", 1));
    return infer(f, all);
}

/* Branches that are split, concatenated, added, pooled and resized: what is read again by the
 * backward part must not be overwritten, whatever shares memory. */
static oct_value *branches(trained *t, oct_value *x)
{
    static const conv_case first = {3, 20, 3, 2, 1, 1, 1}, same = {10, 10, 3, 1, 1, 1, 1};
    static const conv_case deep = {20, 20, 3, 1, 1, 1, 20}, down = {40, 24, 3, 2, 1, 1, 1};
    static const conv_case last = {64, 16, 1, 1, 1, 0, 1};
    fixture *f = t->f;
    oct_value *v[3], *y = block(t, x, &first, OCT_ACT_SWISH), *low;
    oct_node *n = oct_emit_node(&f->b, &oct_op_split, &y, 1, 2);

    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    assert_ok(f->ctx, oct_node_set_int(n, "num_outputs", 2));
    v[0] = infer(f, n);
    v[1] = n->out[1];
    v[2] = emit(f, &oct_op_add, block(t, v[1], &same, OCT_ACT_RELU), v[1]);
    v[0] = concat(f, v, 3);
    v[1] = max_pool(f, v[2]);
    y = concat(f, v, 2); /* 40 channels */
    low = block(t, y, &down, OCT_ACT_HARD_SWISH);
    n = node(f, &oct_op_resize, low, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_input(n, 1, NULL));
    assert_ok(f->ctx,
              oct_node_set_input(n, 2,
                                 oct_value_const(f->g, NULL,
                                                 tensor_of(f->ctx, OCT_DTYPE_F32, 1, (int64_t[]){4},
                                                           (double[]){1, 1, 2, 2}))));
    assert_ok(f->ctx, oct_node_set_str(n, "coordinate_transformation_mode", "asymmetric"));
    assert_ok(f->ctx, oct_node_set_str(n, "nearest_mode", "floor"));
    v[0] = infer(f, n);
    n = oct_emit_node(&f->b, &oct_op_split, &y, 1, 2);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    assert_ok(f->ctx, oct_node_set_int(n, "num_outputs", 2));
    v[1] = block(t, infer(f, n), &deep, OCT_ACT_SWISH);
    v[2] = emit(f, &oct_op_sigmoid, n->out[1], NULL);
    return block(t, concat(f, v, 3), &last, OCT_ACT_NONE);
}

static void gradients_of_networks(void **state)
{
    fixture *f = *state;
    trained t = {.f = f};
    oct_value *y = branches(&t, picture(f, 2, 3, 40, 40)), *loss, *grad[MAX_PARAMS];
    oct_tensor *want[MAX_PARAMS + 1] = {NULL};
    oct_plan_options o;
    oct_node *n = oct_emit_node(
        &f->b, &oct_op_reduce_mean,
        (oct_value *[]){emit(f, &oct_op_mul, y, emit(f, &oct_op_sigmoid, y, NULL))}, 1, 1);

    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    loss = infer(f, n);
    assert_ok(f->ctx, oct_grad(f->g, loss, t.param, t.n, grad));
    output(f, loss);
    for (int32_t i = 0; i < t.n; i++)
        output(f, emit(f, &oct_op_identity, grad[i], NULL));
    oct_plan_options_init(&o);
    o.plain = 1;
    run_graph(f, &o, want);
    for (int i = 0; i < N_SETS; i++) {
        oct_tensor *got[MAX_PARAMS + 1] = {NULL};

        run_set(f, i, got);
        for (int32_t k = 0; k <= t.n; k++) {
            assert_same(k ? t.param[k - 1]->name : "loss", got[k], want[k], 2e-4);
            oct_tensor_unref(got[k]);
        }
    }
    for (int32_t k = 0; k <= t.n; k++)
        oct_tensor_unref(want[k]);
    assert_repeatable(f, 1);
    assert_repeatable(f, 2);
    assert_int_equal(count_steps(f, NULL, "reorder"), 2); /* the picture, the loss's gradient */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(normalizations, setup, teardown),
        cmocka_unit_test_setup_teardown(normalizations_of_large_means, setup, teardown),
        cmocka_unit_test_setup_teardown(slopes, setup, teardown),
        cmocka_unit_test_setup_teardown(poolings, setup, teardown),
        cmocka_unit_test_setup_teardown(resizings, setup, teardown),
        cmocka_unit_test_setup_teardown(gradients_of_networks, setup, teardown),
    };

    return run_test_group(tests);
}
