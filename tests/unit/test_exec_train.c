/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of training plans against the plain ones: weights are inputs, gradients are outputs. */
#include "unit/exec_net.h"

#include "grad/grad.h"
#include "op/act.h"
#include "op/grad/rules.h"

static void output(fixture *f, oct_value *v)
{
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
}

static oct_value *given(fixture *f, const char *name, int32_t rank, const int64_t *dims)
{
    return graph_input(f, name, OCT_DTYPE_F32, rank, dims);
}

typedef struct layer {
    conv_case c;
    int64_t n, h, w;
} layer;

static const layer layers[] = {
    {{3, 16, 3, 2, 1, 1, 1}, 1, 21, 34},   {{16, 16, 3, 1, 1, 1, 1}, 2, 13, 13},
    {{32, 32, 1, 1, 1, 0, 1}, 2, 9, 7},    {{48, 80, 1, 1, 1, 0, 1}, 1, 17, 19},
    {{64, 40, 3, 1, 1, 1, 1}, 2, 10, 10},  {{7, 5, 3, 1, 1, 1, 1}, 2, 6, 5},
    {{5, 33, 5, 2, 1, 2, 1}, 1, 20, 11},   {{8, 58, 3, 1, 2, 2, 1}, 1, 12, 30},
    {{8, 8, 7, 1, 1, 3, 1}, 1, 4, 4},      {{300, 70, 1, 2, 1, 0, 1}, 1, 9, 9},
    {{64, 64, 3, 1, 1, 1, 64}, 1, 15, 15}, {{58, 58, 3, 2, 1, 1, 58}, 2, 14, 9},
    {{24, 24, 5, 1, 1, 2, 24}, 1, 7, 31},  {{7, 7, 3, 1, 1, 1, 7}, 3, 8, 8},
    {{40, 40, 5, 2, 1, 2, 40}, 1, 4, 3},   {{16, 16, 7, 1, 1, 3, 16}, 1, 9, 9},
    {{16, 16, 3, 1, 2, 2, 16}, 1, 11, 12}, {{12, 24, 3, 1, 1, 1, 4}, 2, 8, 8},
    {{8, 16, 3, 1, 1, 0, 8}, 1, 6, 6},     {{4, 20, 2, 2, 1, 0, 1}, 1, 6, 6},
    {{16, 32, 3, 2, 1, 1, 1}, 2, 40, 40},  {{1, 1, 1, 1, 1, 0, 1}, 1, 1, 1},
    {{16, 16, 3, 1, 1, 1, 1}, 2, 17, 19},  {{40, 58, 3, 1, 1, 0, 1}, 2, 19, 18},
    {{33, 44, 3, 1, 1, 2, 1}, 1, 16, 23},  {{20, 24, 3, 3, 1, 1, 1}, 2, 16, 17},
    {{16, 24, 6, 2, 1, 2, 1}, 1, 16, 16},  {{9, 18, 3, 2, 1, 1, 9}, 2, 9, 9},
    {{12, 8, 3, 2, 1, 1, 4}, 2, 9, 8},     {{6, 10, 3, 2, 2, 2, 1}, 1, 12, 11},
};

static void set_window(fixture *f, oct_node *n, const conv_case *c)
{
    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){c->kernel, c->kernel}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){c->stride, c->stride}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "dilations", (int64_t[]){c->dilation, c->dilation}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){c->pad, c->pad, c->pad, c->pad}, 4));
    assert_ok(f->ctx, oct_node_set_int(n, "group", c->group));
}

static oct_value *filters(fixture *f, const conv_case *c)
{
    return given(f, "w", 4, (int64_t[]){c->c_out, c->c_in / c->group, c->kernel, c->kernel});
}

static int64_t out_size(const conv_case *c, int64_t n)
{
    return (n + 2 * c->pad - (c->kernel - 1) * c->dilation - 1) / c->stride + 1;
}

static oct_value *result_of(fixture *f, const layer *l)
{
    return given(f, "dy", 4,
                 (int64_t[]){l->n, l->c.c_out, out_size(&l->c, l->h), out_size(&l->c, l->w)});
}

static oct_value *forward(fixture *f, const layer *l, oct_value *x, bool bias)
{
    oct_node *n =
        node(f, &oct_op_conv, x, filters(f, &l->c), bias ? given(f, "b", 1, &l->c.c_out) : NULL);

    set_window(f, n, &l->c);
    return infer(f, n);
}

static void assert_fast(fixture *f, const char *op)
{
    oct_plan *p = NULL;

    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    for (int32_t i = 0; i < oct_plan_n_steps(p); i++) {
        oct_step_info info = {.struct_size = sizeof(info)};

        oct_plan_step(p, i, &info);
        if (strcmp(info.op, op) == 0 && info.is_plain) fail_msg("%s has a plain kernel", op);
    }
    oct_plan_free(p);
}

/* The same bytes in each run with the same number of threads. */
static void assert_repeatable(fixture *f, int32_t n_threads)
{
    enum { MAX_OUT = 64 };
    oct_tensor *a[MAX_OUT] = {NULL}, *b[MAX_OUT] = {NULL};
    oct_plan_options o;

    oct_plan_options_init(&o);
    o.n_threads = n_threads;
    assert_true(f->g->n_outputs <= MAX_OUT);
    run_graph(f, &o, a);
    run_graph(f, &o, b);
    for (int32_t i = 0; i < f->g->n_outputs; i++) {
        assert_memory_equal(a[i]->data, b[i]->data, a[i]->size);
        oct_tensor_unref(a[i]);
        oct_tensor_unref(b[i]);
    }
}

static void convolutions(void **state)
{
    for (size_t i = 0; i < OCT_COUNT(layers); i++) {
        fixture *f = *state;
        char what[40];

        restart(f);
        output(f,
               forward(f, &layers[i],
                       picture(f, layers[i].n, layers[i].c.c_in, layers[i].h, layers[i].w), i % 2));
        snprintf(what, sizeof(what), "convolution %zu", i);
        assert_kernels_agree(f, what);
        assert_fast(f, "Conv");
    }
}

/* Two convolutions that share weights, an activation, a residual and a Concat. */
static void fused_convolutions(void **state)
{
    static const conv_case same = {20, 20, 3, 1, 1, 1, 1};
    fixture *f = *state;

    for (int64_t size = 9; size <= 18; size += 9) {
        oct_value *x, *w, *y[3];
        oct_node *n, *all;

        restart(f);
        x = picture(f, 2, 20, size, size);
        w = filters(f, &same);
        y[0] = x;
        for (int i = 0; i < 2; i++) {
            n = node(f, &oct_op_conv, y[i], w, NULL);
            set_window(f, n, &same);
            y[i + 1] = emit(f, &oct_op_relu, infer(f, n), NULL);
        }
        y[2] = emit(f, &oct_op_add, y[2], x);
        all = oct_emit_node(&f->b, &oct_op_concat, y, 3, 1);
        assert_ok(f->ctx, oct_node_set_int(all, "axis", 1));
        output(f, infer(f, all));
        assert_kernels_agree(f, "shared weights");
        assert_int_equal(count_kernels(f, NULL, size < 16 ? "conv, packed" : "winograd, packed"),
                         2);
    }
}

/* The gradient with respect to the operand: a ConvTranspose to the operand's size. */
static void gradients_of_operands(void **state)
{
    for (size_t i = 0; i < OCT_COUNT(layers); i++) {
        const layer *l = &layers[i];
        const int64_t size[] = {l->h, l->w};
        fixture *f = *state;
        int64_t more[2];
        char what[40];
        oct_node *n;

        restart(f);
        for (int d = 0; d < 2; d++)
            more[d] = size[d] - ((out_size(&l->c, size[d]) - 1) * l->c.stride +
                                 (l->c.kernel - 1) * l->c.dilation + 1 - 2 * l->c.pad);
        n = node(f, &oct_op_conv_transpose, result_of(f, l), filters(f, &l->c), NULL);
        set_window(f, n, &l->c);
        assert_ok(f->ctx, oct_node_set_ints(n, "output_padding", more, 2));
        output(f, infer(f, n));
        assert_dims(&f->g->outputs[0]->type, 4, (int64_t[]){l->n, l->c.c_in, l->h, l->w});
        snprintf(what, sizeof(what), "gradient of operand %zu", i);
        assert_kernels_agree(f, what);
        if (l->c.stride == 1 || l->c.dilation == 1) assert_fast(f, "ConvTranspose");
    }
}

static void gradients_of_weights(void **state)
{
    for (size_t i = 0; i < OCT_COUNT(layers); i++) {
        const layer *l = &layers[i];
        fixture *f = *state;
        char what[40];
        oct_node *n;

        restart(f);
        n = oct_emit_node(&f->b, &oct_op_conv_grad_weight,
                          (oct_value *[]){picture(f, l->n, l->c.c_in, l->h, l->w), result_of(f, l)},
                          2, 1 + i % 2);
        assert_non_null(n);
        set_window(f, n, &l->c);
        output(f, infer(f, n));
        if (i % 2) output(f, n->out[1]);
        snprintf(what, sizeof(what), "gradient of weights %zu", i);
        assert_kernels_agree(f, what);
        assert_fast(f, "ConvGradWeight");
        assert_repeatable(f, 2);
    }
}

static void set_act(fixture *f, oct_node *n, oct_act_kind kind)
{
    assert_ok(f->ctx, oct_node_set_int(n, "act", kind));
    assert_ok(f->ctx, oct_node_set_f32(n, "act_a", kind == OCT_ACT_CLIP ? -0.5f : 0.25f));
    assert_ok(f->ctx, oct_node_set_f32(n, "act_b", 0.75f));
}

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
        cmocka_unit_test_setup_teardown(convolutions, setup, teardown),
        cmocka_unit_test_setup_teardown(fused_convolutions, setup, teardown),
        cmocka_unit_test_setup_teardown(gradients_of_operands, setup, teardown),
        cmocka_unit_test_setup_teardown(gradients_of_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(normalizations, setup, teardown),
        cmocka_unit_test_setup_teardown(normalizations_of_large_means, setup, teardown),
        cmocka_unit_test_setup_teardown(slopes, setup, teardown),
        cmocka_unit_test_setup_teardown(poolings, setup, teardown),
        cmocka_unit_test_setup_teardown(resizings, setup, teardown),
        cmocka_unit_test_setup_teardown(gradients_of_networks, setup, teardown),
    };

    return run_test_group(tests);
}
