/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of training plans against plain kernels: weights are inputs, gradients outputs. */
#include "unit/exec_train.h"

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
    {{3, 70, 7, 2, 1, 3, 1}, 2, 37, 71},
};

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

/* Windows that differ down and across, and 1-D; all three convolutions of a step. */
static void uneven_windows(void **state)
{
    static const struct {
        int n; /* spatial dims */
        int64_t size[2], kernel[2], stride[2], pads[4], group;
    } cases[] = {
        {2, {20, 17}, {3, 1}, {2, 1}, {1, 0, 0, 0}, 1},
        {2, {9, 22}, {1, 5}, {1, 3}, {0, 2, 0, 1}, 1},
        {2, {12, 12}, {2, 4}, {3, 2}, {0, 3, 2, 0}, 2},
        {2, {8, 9}, {3, 3}, {1, 2}, {2, 0, 1, 1}, 16},
        {1, {25}, {5}, {2}, {2, 2}, 1},
        {1, {31}, {1}, {1}, {0, 0}, 1},
        {2, {18, 20}, {3, 3}, {1, 1}, {0, 2, 2, 0}, 1},
        {2, {7, 7}, {1, 1}, {2, 2}, {1, 1, 1, 1}, 1},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const int n = cases[i].n;
        int64_t x[4] = {2, 16}, w[4] = {32, 16 / cases[i].group}, y[4] = {2, 32}, more[2];
        fixture *f = *state;
        oct_value *in[3];
        char what[40];

        if (cases[i].group == 16) w[0] = y[1] = 16;
        for (int d = 0; d < n; d++) {
            const int64_t pads = cases[i].pads[d] + cases[i].pads[n + d];

            x[2 + d] = cases[i].size[d];
            w[2 + d] = cases[i].kernel[d];
            y[2 + d] = (x[2 + d] + pads - w[2 + d]) / cases[i].stride[d] + 1;
            more[d] = x[2 + d] - ((y[2 + d] - 1) * cases[i].stride[d] + w[2 + d] - pads);
        }
        restart(f);
        in[0] = given(f, "x", 2 + n, x);
        in[1] = given(f, "w", 2 + n, w);
        in[2] = given(f, "dy", 2 + n, y);
        for (int k = 0; k < 3; k++) {
            oct_node *step = k == 0   ? node(f, &oct_op_conv, in[0], in[1], NULL)
                             : k == 1 ? node(f, &oct_op_conv_transpose, in[2], in[1], NULL)
                                      : node(f, &oct_op_conv_grad_weight, in[0], in[2], NULL);

            assert_ok(f->ctx, oct_node_set_ints(step, "kernel_shape", cases[i].kernel, n));
            assert_ok(f->ctx, oct_node_set_ints(step, "strides", cases[i].stride, n));
            assert_ok(f->ctx, oct_node_set_ints(step, "pads", cases[i].pads, 2 * n));
            assert_ok(f->ctx, oct_node_set_int(step, "group", cases[i].group));
            if (k == 1) assert_ok(f->ctx, oct_node_set_ints(step, "output_padding", more, n));
            output(f, infer(f, step));
            assert_fast(f, step->op->name);
        }
        snprintf(what, sizeof(what), "window %zu", i);
        assert_kernels_agree(f, what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(convolutions, setup, teardown),
        cmocka_unit_test_setup_teardown(fused_convolutions, setup, teardown),
        cmocka_unit_test_setup_teardown(gradients_of_operands, setup, teardown),
        cmocka_unit_test_setup_teardown(gradients_of_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(uneven_windows, setup, teardown),
    };

    return run_test_group(tests);
}
