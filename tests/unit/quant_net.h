/* SPDX-License-Identifier: Apache-2.0 */
/* Small quantized networks for tests of integer plans. */
#ifndef OCT_TESTS_QUANT_NET_H
#define OCT_TESTS_QUANT_NET_H

#include "tests/unit/exec_net.h"

static inline oct_value *constant_f32(fixture *f, int32_t rank, const int64_t *dims,
                                      const float *data)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *t = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    memcpy(t->data, data, t->size);
    return oct_value_const(f->g, NULL, t);
}

/* Integers of any type from a list; a scalar for rank 0. */
static inline oct_value *constant_int(fixture *f, oct_dtype dtype, int32_t rank,
                                      const int64_t *dims, const int32_t *data)
{
    const oct_type type = oct_type_make(dtype, rank, dims);
    oct_tensor *t = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (int64_t i = 0; i < oct_type_len(&type); i++) {
        const int64_t v = data[i];

        oct_store_i64(dtype, t->data, i, 1, &v);
    }
    return oct_value_const(f->g, NULL, t);
}

/* Random codes over the whole range of an 8-bit type. */
static inline oct_value *codes(fixture *f, oct_dtype dtype, int32_t rank, const int64_t *dims,
                               uint64_t seed)
{
    const oct_type type = oct_type_make(dtype, rank, dims);
    oct_tensor *t = NULL;
    oct_rng rng;

    oct_rng_init(&rng, seed);
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (size_t i = 0; i < t->size; i++)
        ((uint8_t *)t->data)[i] = (uint8_t)(oct_rng_f64(&rng) * 256);
    return oct_value_const(f->g, NULL, t);
}

static inline oct_value *linear(fixture *f, const oct_op *op, oct_value *x, oct_dtype dtype,
                                const float *scale, const int32_t *zero, int64_t n, int64_t axis)
{
    oct_value *s = constant_f32(f, n > 1, &n, scale);
    oct_node *q = node(f, op, x, s, zero ? constant_int(f, dtype, n > 1, &n, zero) : NULL);

    assert_ok(f->ctx, oct_node_set_int(q, "axis", axis));
    return infer(f, q);
}

static inline oct_value *quantize(fixture *f, oct_value *x, oct_dtype dtype, const float *scale,
                                  const int32_t *zero, int64_t n, int64_t axis)
{
    return linear(f, &oct_op_quantize_linear, x, dtype, scale, zero, n, axis);
}

static inline oct_value *dequantize(fixture *f, oct_value *x, const float *scale,
                                    const int32_t *zero, int64_t n, int64_t axis)
{
    return linear(f, &oct_op_dequantize_linear, x, x->type.dtype, scale, zero, n, axis);
}

static inline oct_value *qdq(fixture *f, oct_value *x, oct_dtype dtype, const float *scale,
                             const int32_t *zero, int64_t n, int64_t axis)
{
    return dequantize(f, quantize(f, x, dtype, scale, zero, n, axis), scale, zero, n, axis);
}

static inline oct_value *concat(fixture *f, oct_value *const *in, int32_t n, int64_t axis)
{
    oct_node *c = oct_emit_node(&f->b, &oct_op_concat, in, n, 1);

    assert_non_null(c);
    assert_ok(f->ctx, oct_node_set_int(c, "axis", axis));
    return infer(f, c);
}

static inline void output(fixture *f, oct_value *v)
{
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
}

/* A convolution of quantized weights (and an int32 bias at the scale of its sums). */
typedef struct qconv_case {
    conv_case c;
    float x_scale; /* of its input, for the bias; 0: a bias in float */
    oct_dtype w_type;
    int32_t w_zero;
    const float *factor; /* [c_in] on the weights; NULL: none */
} qconv_case;

static inline oct_value *qweights(fixture *f, const qconv_case *q, int rank, float *scale)
{
    int64_t dims[OCT_MAX_RANK] = {q->c.c_out, q->c.c_in / q->c.group};
    int32_t zero[256];
    oct_value *w;

    for (int i = 2; i < rank; i++)
        dims[i] = q->c.kernel;
    for (int64_t o = 0; o < q->c.c_out; o++) {
        scale[o] = 0.001f + 0.0001f * (float)(o % 7);
        zero[o] = q->w_zero;
    }
    w = codes(f, q->w_type, rank, dims, 11);
    w = dequantize(f, w, scale, q->w_zero ? zero : NULL, q->c.c_out, 0);
    if (q->factor) {
        int64_t ones[OCT_MAX_RANK] = {1, q->c.c_in, 1, 1, 1, 1, 1, 1};

        w = emit(f, &oct_op_mul, w, constant_f32(f, rank, ones, q->factor));
    }
    return w;
}

static inline oct_value *qconv(fixture *f, oct_value *x, const qconv_case *q)
{
    const int n = x->type.rank - 2;
    int64_t stride[3], dilation[3], pads[6];
    float scale[256], bias_f32[256];
    int32_t bias[256];
    oct_value *w = qweights(f, q, x->type.rank, scale), *b;
    oct_node *node_;

    for (int64_t o = 0; o < q->c.c_out; o++) {
        bias[o] = (int32_t)(o * 37 % 500) - 250;
        bias_f32[o] = (float)bias[o] * 0.001f;
        scale[o] *= q->x_scale;
    }
    b = q->x_scale == 0 ? constant_f32(f, 1, &q->c.c_out, bias_f32)
                        : dequantize(f, constant_int(f, OCT_DTYPE_I32, 1, &q->c.c_out, bias), scale,
                                     NULL, q->c.c_out, 0);
    for (int i = 0; i < n; i++) {
        stride[i] = q->c.stride;
        dilation[i] = q->c.dilation;
        pads[i] = pads[n + i] = q->c.pad;
    }
    node_ = node(f, &oct_op_conv, x, w, b);
    assert_ok(f->ctx, oct_node_set_ints(node_, "strides", stride, n));
    assert_ok(f->ctx, oct_node_set_ints(node_, "dilations", dilation, n));
    assert_ok(f->ctx, oct_node_set_ints(node_, "pads", pads, 2 * n));
    assert_ok(f->ctx, oct_node_set_int(node_, "group", q->c.group));
    return infer(f, node_);
}

/* Per tensor, unsigned, the middle code for zero. */
static inline oct_value *qdq_u8(fixture *f, oct_value *x, float scale)
{
    return qdq(f, x, OCT_DTYPE_U8, &scale, &(int32_t){128}, 1, 1);
}

/* At most one step apart, and in less than `share` of all elements. */
static inline void assert_steps(const oct_tensor *a, const oct_tensor *b, float step, double share)
{
    const int64_t n = oct_tensor_len(a);
    int64_t differ = 0;

    assert_true(oct_type_equal(&a->type, &b->type));
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs(oct_tensor_get_f64(a, i) - oct_tensor_get_f64(b, i)) / (double)step;

        if (!(d < 1.01)) fail_msg("element %lld differs by %g steps", (long long)i, d);
        differ += d > 0.01;
    }
    if ((double)differ > share * (double)n)
        fail_msg("%lld of %lld elements differ", (long long)differ, (long long)n);
}

/* The integer plan's outputs against plain evaluation and simulation, in steps of `step`. */
static inline void assert_codes(fixture *f, float step)
{
    oct_plan_options o[3];
    oct_tensor *out[3][4] = {{NULL}};

    for (int i = 0; i < 3; i++) {
        oct_plan_options_init(&o[i]);
        o[i].plain = i == 1;
        o[i].simulate = i == 2;
        run_graph(f, &o[i], out[i]);
    }
    for (int32_t k = 0; k < f->g->n_outputs; k++) {
        assert_steps(out[0][k], out[1][k], step, 0.001);
        assert_steps(out[0][k], out[2][k], step, 0.001);
        for (int i = 0; i < 3; i++)
            oct_tensor_unref(out[i][k]);
    }
}

static inline void assert_integer(fixture *f, const char *kernel, int n, float step)
{
    assert_int_equal(count_kernels(f, NULL, kernel), n);
    assert_codes(f, step);
}

#endif
