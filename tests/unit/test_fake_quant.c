/* SPDX-License-Identifier: Apache-2.0 */
/* FakeQuant and its gradient: known values, QuantizeLinear's codes, fast kernels. */
#include "unit/exec_train.h"

#include "grad/grad.h"
#include "op/grad/fake_quant.h"

static oct_value *fake(fixture *f, oct_value *const in[3], const oct_fake_attrs *a)
{
    oct_node *n = oct_emit_node(&f->b, &oct_op_fake_quant, in, in[2] ? 3 : 2, 1);
    oct_value *y;

    oct_fake_write(&f->b, n, a);
    y = oct_emitted(&f->b, n);
    assert_ok(f->ctx, f->b.status);
    return y;
}

typedef struct known {
    const char *what;
    oct_fake_attrs a;
    int64_t n, n_steps;
    double x[8], step[2], zero[2];
    bool has_zero;
    double y[8], dx[8], dstep[2], dzero[2]; /* with dy = 1 */
} known;

#define LN2 0.69314718055994530942

static const known values[] = {
    {.what = "LSQ as PyTorch's learnable fake quantization has it",
     .a = {.low = -4, .high = 3, .axis = -1, .grad_scale = 1},
     .n = 6,
     .n_steps = 1,
     .x = {-1.3, -.2, .05, .4, .9, 2},
     .step = {.25},
     .y = {-1, -.25, 0, .5, .75, .75},
     .dx = {0, 1, 1, 1, 0, 0},
     .dstep = {2}},
    {.what = "PACT: clipping alone",
     .a = {.low = -4, .high = 3, .axis = -1, .grad_scale = 1, .learns = OCT_FAKE_CLIPS_ONLY},
     .n = 6,
     .n_steps = 1,
     .x = {-1.3, -.2, .05, .4, .9, 2},
     .step = {.25},
     .y = {-1, -.25, 0, .5, .75, .75},
     .dx = {0, 1, 1, 1, 0, 0},
     .dstep = {-4 + 3 + 3}},
    {.what = "its logarithm",
     .a = {.low = -4, .high = 3, .axis = -1, .kind = OCT_STEP_LOG2, .grad_scale = .5},
     .n = 6,
     .n_steps = 1,
     .x = {-1.3, -.2, .05, .4, .9, 2},
     .step = {-2},
     .y = {-1, -.25, 0, .5, .75, .75},
     .dx = {0, 1, 1, 1, 0, 0},
     .dstep = {.5 * 2 * .25 * LN2}},
    {.what = "a power of two",
     .a = {.low = -4, .high = 3, .axis = -1, .kind = OCT_STEP_LOG2_WHOLE, .grad_scale = 1},
     .n = 6,
     .n_steps = 1,
     .x = {-1.3, -.2, .05, .4, .9, 2},
     .step = {-1.7},
     .y = {-1, -.25, 0, .5, .75, .75},
     .dx = {0, 1, 1, 1, 0, 0},
     .dstep = {2 * .25 * LN2}},
    {.what = "zero points of channels",
     .a = {.low = 0, .high = 3, .axis = 0, .grad_scale = 1},
     .n = 2,
     .n_steps = 2,
     .x = {-1, 5},
     .step = {.5, 1},
     .zero = {1.2, .4},
     .has_zero = true,
     .y = {-.5, 3},
     .dx = {0, 0},
     .dstep = {-1, 3},
     .dzero = {-.5, -1}},
};

static void has_known_values(void **state)
{
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(values); i++) {
        const known *k = &values[i];
        oct_value *in[3], *y, *sum, *grad[3];
        oct_tensor *out[4] = {NULL};
        oct_node *r;
        const int n_in = k->has_zero ? 3 : 2;

        restart(f);
        in[0] = graph_input(f, "x", OCT_DTYPE_F64, 1, &k->n);
        in[1] = graph_input(f, "step", OCT_DTYPE_F64, 1, &k->n_steps);
        in[2] = k->has_zero ? graph_input(f, "zero", OCT_DTYPE_F64, 1, &k->n_steps) : NULL;
        y = fake(f, in, &k->a);
        r = oct_emit_node(&f->b, &oct_op_reduce_sum, &y, 1, 1);
        oct_emit_int(&f->b, r, "keepdims", 0);
        sum = oct_emitted(&f->b, r);
        assert_ok(f->ctx, oct_grad(f->g, sum, in, n_in, grad));
        output(f, y);
        for (int g = 0; g < n_in; g++)
            output(f, grad[g]);
        {
            oct_tensor *x[] = {tensor_of(f->ctx, OCT_DTYPE_F64, 1, &k->n, k->x),
                               tensor_of(f->ctx, OCT_DTYPE_F64, 1, &k->n_steps, k->step),
                               tensor_of(f->ctx, OCT_DTYPE_F64, 1, &k->n_steps, k->zero)};
            const double *want[] = {k->y, k->dx, k->dstep, k->dzero};

            assert_ok(f->ctx, oct_graph_eval(f->g, x, out, NULL));
            for (int o = 0; o <= n_in; o++)
                for (int64_t e = 0; e < oct_tensor_len(out[o]); e++)
                    if (fabs(oct_tensor_get_f64(out[o], e) - want[o][e]) > 1e-12)
                        fail_msg("%s: output %d [%d] is %.15g, want %.15g", k->what, o, (int)e,
                                 oct_tensor_get_f64(out[o], e), want[o][e]);
            for (int o = 0; o < 3; o++)
                oct_tensor_unref(x[o]);
            for (int o = 0; o <= n_in; o++)
                oct_tensor_unref(out[o]);
        }
    }
}

/* The same values as QuantizeLinear and DequantizeLinear give, ties and ends included. */
static void agrees_with_quantize_linear(void **state)
{
    enum { N = 4001 };
    fixture *f = *state;
    const oct_fake_attrs a = {.low = -128, .high = 127, .axis = -1};
    const int64_t n = N, one = 1;
    const float scale = 0.037f;
    oct_value *x, *in[3], *q, *s, *z;
    oct_tensor *t, *out[2] = {NULL};
    double v[N];

    for (int i = 0; i < N; i++)
        v[i] = (double)((float)(i - 2000) * .5f * scale * .25f);
    restart(f);
    x = graph_input(f, "x", OCT_DTYPE_F32, 1, &n);
    s = oct_value_const(f->g, NULL,
                        tensor_of(f->ctx, OCT_DTYPE_F32, 1, &one, (double[]){(double)scale}));
    z = oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_F32, 1, &one, (double[]){3}));
    in[0] = x;
    in[1] = s;
    in[2] = z;
    output(f, fake(f, in, &a));
    s = oct_value_const(f->g, NULL,
                        tensor_of(f->ctx, OCT_DTYPE_F32, 0, NULL, (double[]){(double)scale}));
    z = oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_I8, 0, NULL, (double[]){3}));
    q = oct_emit(&f->b, &oct_op_quantize_linear, x, s, z);
    output(f, oct_emit(&f->b, &oct_op_dequantize_linear, q, s, z));
    assert_ok(f->ctx, f->b.status);
    t = tensor_of(f->ctx, OCT_DTYPE_F32, 1, &n, v);
    assert_ok(f->ctx, oct_graph_eval(f->g, &t, out, NULL));
    assert_all_close(out[0], out[1]->data, n, 0); /* -0 and 0 have one code */
    oct_tensor_unref(t);
    oct_tensor_unref(out[0]);
    oct_tensor_unref(out[1]);
}

/* Fast kernels against the plain ones: one grid, one for each filter, one for each channel. */
static void fast_kernels_agree(void **state)
{
    static const struct {
        int64_t dims[4];
        int axis;
        oct_step_kind kind;
        unsigned learns;
    } cases[] = {
        {{2, 13, 9, 7}, -1, OCT_STEP_LOG2},
        {{1, 64, 40, 40}, -1, OCT_STEP_LOG2_WHOLE},
        {{24, 5, 3, 3}, 0, OCT_STEP_LOG2},
        {{70, 300, 1, 1}, 0, OCT_STEP_LOG2},
        {{2, 13, 9, 7}, 1, OCT_STEP_LOG2},
        {{3, 32, 16, 10}, 1, OCT_STEP_LOG2},
        {{1, 1, 1, 1}, -1, OCT_STEP_LOG2_WHOLE},
        {{2, 13, 9, 7}, -1, OCT_STEP_LOG2, OCT_FAKE_CLIPS_ONLY},
        {{2, 13, 9, 7}, 1, OCT_STEP_LOG2, OCT_FAKE_CLIPS_ONLY},
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const oct_fake_attrs a = {.low = -8,
                                  .high = 7,
                                  .axis = cases[i].axis,
                                  .kind = cases[i].kind,
                                  .learns = cases[i].learns,
                                  .grad_scale = .25};
        const int64_t n = a.axis < 0 ? 1 : cases[i].dims[a.axis];
        oct_value *in[4], *y;
        oct_node *g;
        char what[40];

        restart(f);
        in[0] = given(f, "x", 4, cases[i].dims);
        in[1] = given(f, "step", 1, &n);
        in[2] = given(f, "zero", 1, &n);
        y = fake(f, in, &a);
        in[3] = in[2];
        in[2] = in[1];
        in[1] = given(f, "dy", 4, cases[i].dims);
        g = oct_emit_node(&f->b, &oct_op_fake_quant_grad, in, 4, 3);
        oct_fake_write(&f->b, g, &a);
        (void)oct_emitted(&f->b, g);
        assert_ok(f->ctx, f->b.status);
        output(f, y);
        for (int o = 0; o < 3; o++)
            output(f, g->out[o]);
        snprintf(what, sizeof(what), "case %zu", i);
        assert_kernels_agree(f, what);
        assert_fast(f, "FakeQuant");
        assert_fast(f, "FakeQuantGrad");
        assert_repeatable(f, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(has_known_values, setup, teardown),
        cmocka_unit_test_setup_teardown(agrees_with_quantize_linear, setup, teardown),
        cmocka_unit_test_setup_teardown(fast_kernels_agree, setup, teardown),
    };

    return run_test_group(tests);
}
