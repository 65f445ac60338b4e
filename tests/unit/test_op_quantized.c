/* SPDX-License-Identifier: Apache-2.0 */
/* Rows on quantized tensors: granularity, rounding, saturation, and what must be refused. */
#include "op/conv_integer.h"
#include "op/idot.h"
#include "op/quant.h"
#include "op_case.h"

enum { MAX_OPERANDS = 12 };

/* A node on n operands (NULL: absent), one result. */
static oct_node *many(fixture *f, const oct_op *op, oct_value *const *in, int32_t n)
{
    oct_node *node = oct_emit_node(&f->b, op, in, n, 1);

    assert_non_null(node);
    return node;
}

#define MANY(f, op, ...)                                                                           \
    many(f, op, (oct_value *const[]){__VA_ARGS__},                                                 \
         (int32_t)OCT_COUNT(((oct_value *const[]){__VA_ARGS__})))

static oct_status run(const oct_node *n, oct_tensor **out)
{
    oct_tensor *in[MAX_OPERANDS] = {NULL};

    for (int32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? n->in[i]->data : NULL;
    return oct_node_eval(n, in, out, NULL);
}

static void gives(const oct_node *n, const int64_t *dims, const float *want)
{
    oct_tensor *out = NULL;

    assert_ok(n->graph->ctx, run(n, &out));
    assert_dims(&out->type, rank_of(dims), dims);
    assert_all_close(out, want, oct_type_len(&out->type), 1e-5f);
    oct_tensor_unref(out);
}

static void refuses(const oct_node *n, oct_status status, const char *text)
{
    oct_tensor *out = NULL;

    assert_fails(n->graph->ctx, run(n, &out), status, text);
    assert_non_null(strstr(oct_ctx_error(n->graph->ctx), n->name));
}

static oct_value *f32(fixture *f, double v)
{
    return constant(f, OCT_DTYPE_F32, SCALAR, &v);
}

static oct_value *code(fixture *f, oct_dtype t, double v)
{
    return constant(f, t, SCALAR, &v);
}

static void halves_go_to_even_and_ends_saturate(void **state)
{
    fixture *f = *state;
    const double v[] = {0.5, 1.5, -0.5, -1.5, 1000, -1000, 2.4, (double)NAN};
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(8), v), *one = f32(f, 1);

    gives(MANY(f, &oct_op_quantize_linear, x, one, code(f, OCT_DTYPE_U8, 10)), DIMS(8),
          (float[]){10, 12, 10, 8, 255, 0, 12, 0});
    gives(MANY(f, &oct_op_quantize_linear, x, one, code(f, OCT_DTYPE_I8, 0)), DIMS(8),
          (float[]){0, 2, 0, -2, 127, -128, 2, -128});
    gives(MANY(f, &oct_op_quantize_linear, x, one, code(f, OCT_DTYPE_I4, 0)), DIMS(8),
          (float[]){0, 2, 0, -2, 7, -8, 2, -8});
    gives(MANY(f, &oct_op_quantize_linear, x, one, code(f, OCT_DTYPE_U16, 0)), DIMS(8),
          (float[]){0, 2, 0, 0, 1000, 0, 2, 0});
    gives(MANY(f, &oct_op_ms_quantize_linear, x, one), DIMS(8),
          (float[]){0, 2, 0, 0, 255, 0, 2, 0});
}

static void scales_go_by_axis_or_block(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_I8, DIMS(2, 4), NULL);
    oct_value *rows = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){1, 10});
    oct_value *blocks = constant(f, OCT_DTYPE_F32, DIMS(2, 2), (double[]){1, 2, 3, 4});
    oct_value *zeros = constant(f, OCT_DTYPE_I8, DIMS(2, 2), (double[]){0, 1, 0, 1});
    oct_node *n = MANY(f, &oct_op_dequantize_linear, x, rows);

    refuses(n, OCT_ERR_SHAPE, "2 scales for 4 elements");
    assert_ok(f->ctx, oct_node_set_int(n, "axis", -2));
    gives(n, DIMS(2, 4), (float[]){0, 1, 2, 3, 40, 50, 60, 70});
    n = MANY(f, &oct_op_dequantize_linear, x, blocks, zeros);
    refuses(n, OCT_ERR_SHAPE, "block_size");
    assert_ok(f->ctx, oct_node_set_int(n, "block_size", 2));
    gives(n, DIMS(2, 4), (float[]){0, 1, 2, 4, 12, 15, 20, 24});
    assert_ok(f->ctx, oct_node_set_int(n, "block_size", 3));
    gives(n, DIMS(2, 4), (float[]){0, 1, 2, 4, 12, 15, 18, 24});
    assert_ok(f->ctx, oct_node_set_int(n, "block_size", 4));
    refuses(n, OCT_ERR_SHAPE, "blocks of 4");
    assert_ok(f->ctx, oct_node_set_int(n, "block_size", -1));
    refuses(n, OCT_ERR_ARG, "block_size");
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 7));
    assert_ok(f->ctx, oct_node_set_int(n, "block_size", 2));
    refuses(n, OCT_ERR_SHAPE, "axis 7");
}

static void quantizing_back_gives_the_codes(void **state)
{
    static const oct_dtype types[] = {OCT_DTYPE_U8, OCT_DTYPE_I8, OCT_DTYPE_U16, OCT_DTYPE_I16,
                                      OCT_DTYPE_U4, OCT_DTYPE_I4, OCT_DTYPE_U2,  OCT_DTYPE_I2};
    fixture *f = *state;
    const double codes[] = {0, 1, 1, 0, 1, 0};
    const float want[] = {0, 1, 1, 0, 1, 0};

    for (size_t i = 0; i < OCT_COUNT(types); i++)
        for (int half = 0; half < 2; half++) {
            const oct_dtype real = half ? OCT_DTYPE_F16 : OCT_DTYPE_F32;
            oct_value *x = constant(f, types[i], DIMS(3, 2), codes);
            oct_value *s = constant(f, real, DIMS(2), (double[]){0.25, 2});
            oct_value *z = constant(f, types[i], DIMS(2), (double[]){1, 0});
            oct_node *n = MANY(f, &oct_op_dequantize_linear, x, s, z);
            oct_tensor *out = NULL;

            assert_ok(f->ctx, run(n, &out));
            assert_int_equal(out->type.dtype, real);
            gives(MANY(f, &oct_op_quantize_linear, oct_value_const(f->g, NULL, out), s, z),
                  DIMS(3, 2), want);
        }
}

static void types_must_fit(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(2), NULL), *one = f32(f, 1);
    oct_node *n = MANY(f, &oct_op_quantize_linear, x, one, code(f, OCT_DTYPE_U8, 0));

    assert_ok(f->ctx, oct_node_set_int(n, "output_dtype", OCT_DTYPE_I8));
    refuses(n, OCT_ERR_TYPE, "zero point");
    n = MANY(f, &oct_op_quantize_linear, x, one);
    assert_ok(f->ctx, oct_node_set_int(n, "output_dtype", OCT_DTYPE_F32));
    refuses(n, OCT_ERR_TYPE, "float32");
    assert_ok(f->ctx, oct_node_set_int(n, "output_dtype", 99));
    refuses(n, OCT_ERR_UNSUPPORTED, "99");
    assert_ok(f->ctx, oct_node_set_int(n, "output_dtype", OCT_DTYPE_F8E4M3FN));
    gives(n, DIMS(2), (float[]){0, 1});
    refuses(MANY(f, &oct_op_dequantize_linear, x, one), OCT_ERR_TYPE, "float32");
}

static void dynamic_ranges_hold_zero(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(3), (double[]){1, 2, 5.1});
    oct_node *n = oct_emit_node(&f->b, &oct_op_dynamic_quantize_linear, &x, 1, 3);
    oct_tensor *out[3] = {NULL};

    assert_ok(f->ctx, evaluate(n, out));
    assert_all_close(out[0], (float[]){50, 100, 255}, 3, 0);
    assert_all_close(out[1], (float[]){0.02f}, 1, 1e-7f);
    assert_all_close(out[2], (float[]){0}, 1, 0);
    for (int i = 0; i < 3; i++)
        oct_tensor_unref(out[i]);
}

static void dot_products_match_plain_sums(void **state)
{
    enum { M = 7, N = 5, K = 83 };
    int16_t a[M * K], b[N * K];
    int32_t c[M * N] = {0};

    (void)state;
    for (int i = 0; i < M * K; i++)
        a[i] = (int16_t)(i * 31 % 511 - 255);
    for (int i = 0; i < N * K; i++)
        b[i] = (int16_t)(i * 17 % 511 - 255);
    oct_idot(M, a, K, N, b, K, K, c, N);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            int32_t want = 0;

            for (int k = 0; k < K; k++)
                want += a[i * K + k] * b[j * K + k];
            assert_int_equal(c[i * N + j], want);
        }
}

static void matrices_multiply_with_their_zero_points(void **state)
{
    fixture *f = *state;
    oct_value *a = constant(f, OCT_DTYPE_U8, DIMS(2, 3), (double[]){1, 2, 3, 4, 5, 6});
    oct_value *b = constant(f, OCT_DTYPE_I8, DIMS(3, 2), (double[]){1, -1, 2, -2, 3, -3});
    oct_value *rows = constant(f, OCT_DTYPE_U8, DIMS(2), (double[]){1, 4});
    oct_value *cols = constant(f, OCT_DTYPE_I8, DIMS(2), (double[]){1, -1});
    oct_value *s = f32(f, 0.5), *y = code(f, OCT_DTYPE_I8, 3);
    oct_value *col_scales = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){0.5, 1});
    oct_value *batch = constant(f, OCT_DTYPE_U8, DIMS(2, 1, 3), (double[]){1, 2, 3, 4, 5, 6});

    gives(MANY(f, &oct_op_mat_mul_integer, a, b), DIMS(2, 2), (float[]){14, -14, 32, -32});
    gives(MANY(f, &oct_op_mat_mul_integer, a, b, rows, cols), DIMS(2, 2), (float[]){5, -5, 5, -5});
    gives(MANY(f, &oct_op_mat_mul_integer, batch, b), DIMS(2, 1, 2), (float[]){14, -14, 32, -32});
    gives(MANY(f, &oct_op_q_linear_mat_mul, a, s, code(f, OCT_DTYPE_U8, 0), b, s,
               code(f, OCT_DTYPE_I8, 0), f32(f, 0.05), y),
          DIMS(2, 2), (float[]){73, -67, 127, -128});
    gives(MANY(f, &oct_op_q_linear_mat_mul, a, s, code(f, OCT_DTYPE_U8, 0), b, col_scales, cols,
               f32(f, 1), y),
          DIMS(2, 2), (float[]){5, -1, 7, -5});
    refuses(MANY(f, &oct_op_mat_mul_integer, a, b, cols), OCT_ERR_TYPE, "zero point");
    refuses(MANY(f, &oct_op_mat_mul_integer, b, b), OCT_ERR_SHAPE, "columns");
}

static void float_results_get_a_bias(void **state)
{
    fixture *f = *state;
    oct_value *a = constant(f, OCT_DTYPE_F32, DIMS(1, 2), (double[]){0, 2.55});
    oct_value *ua = constant(f, OCT_DTYPE_U8, DIMS(1, 2), (double[]){1, 2});
    oct_value *b = constant(f, OCT_DTYPE_U8, DIMS(2, 2), (double[]){1, 2, 3, 4});
    oct_value *bias = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){1, 2}), *s = f32(f, 0.5);

    gives(MANY(f, &oct_op_dynamic_quantize_mat_mul, a, b, s, NULL, bias), DIMS(1, 2),
          (float[]){4.825f, 7.1f});
    gives(MANY(f, &oct_op_mat_mul_integer_to_float, ua, b, s, s, NULL, NULL, bias), DIMS(1, 2),
          (float[]){2.75f, 4.5f});
    refuses(MANY(f, &oct_op_dynamic_quantize_mat_mul, a, b, s, NULL, s), OCT_ERR_SHAPE, "bias");
}

static void gemm_has_all_its_parts(void **state)
{
    fixture *f = *state;
    oct_value *a = constant(f, OCT_DTYPE_U8, DIMS(3, 2), (double[]){1, 4, 2, 5, 3, 6});
    oct_value *b = constant(f, OCT_DTYPE_I8, DIMS(2, 3), (double[]){1, 2, 3, -1, -2, -3});
    oct_value *c = constant(f, OCT_DTYPE_I32, DIMS(2), (double[]){10, 20}), *s = f32(f, 1);
    oct_value *za = code(f, OCT_DTYPE_U8, 0), *zb = code(f, OCT_DTYPE_I8, 0);
    oct_node *n = MANY(f, &oct_op_q_gemm, a, s, za, b, s, zb, c);

    refuses(n, OCT_ERR_SHAPE, "broadcast");
    assert_ok(f->ctx, oct_node_set_int(n, "transA", 1));
    assert_ok(f->ctx, oct_node_set_int(n, "transB", 1));
    assert_ok(f->ctx, oct_node_set_f32(n, "alpha", 0.5f));
    gives(n, DIMS(2, 2), (float[]){12, 3, 21, -6});
    n = MANY(f, &oct_op_q_gemm, a, s, za, b, s, zb, c, f32(f, 2), code(f, OCT_DTYPE_U8, 5));
    assert_ok(f->ctx, oct_node_set_int(n, "transA", 1));
    assert_ok(f->ctx, oct_node_set_int(n, "transB", 1));
    gives(n, DIMS(2, 2), (float[]){17, 8, 26, 0});
}

/* What ConvInteger must give, by definition. */
static int32_t conv_at(const oct_tensor *x, const oct_tensor *w, const oct_conv_geometry *g,
                       int64_t m, int64_t i, int64_t j)
{
    const int64_t c_group = g->c_in / g->group, first = m / (g->c_out / g->group) * c_group;
    int32_t sum = 0;

    for (int64_t c = 0; c < c_group; c++)
        for (int64_t p = 0; p < g->kernel[0]; p++)
            for (int64_t q = 0; q < g->kernel[1]; q++) {
                const int64_t r = i * g->stride[0] + p * g->dilation[0] - g->pad_begin[0];
                const int64_t s = j * g->stride[1] + q * g->dilation[1] - g->pad_begin[1];

                if (r < 0 || s < 0 || r >= g->in[0] || s >= g->in[1]) continue;
                sum +=
                    (((const uint8_t *)x->data)[((first + c) * g->in[0] + r) * g->in[1] + s] - 7) *
                    (((const int8_t *)
                          w->data)[((m * c_group + c) * g->kernel[0] + p) * g->kernel[1] + q] +
                     3);
            }
    return sum;
}

static void integer_convolutions_match_the_definition(void **state)
{
    static const struct {
        int64_t c, m, group, k, stride, dilation, pad;
    } cases[] = {
        {3, 5, 1, 3, 1, 1, 1}, {4, 4, 4, 3, 1, 1, 1}, {4, 8, 4, 3, 2, 1, 1}, {4, 6, 2, 3, 2, 2, 3},
        {8, 4, 1, 1, 1, 1, 0}, {2, 2, 1, 5, 3, 1, 4}, {1, 1, 1, 2, 1, 3, 0},
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const int64_t pads[] = {cases[i].pad, cases[i].pad, cases[i].pad, cases[i].pad};
        oct_value *x = constant(f, OCT_DTYPE_U8, DIMS(1, cases[i].c, 6, 9), NULL);
        oct_value *w =
            constant(f, OCT_DTYPE_I8,
                     DIMS(cases[i].m, cases[i].c / cases[i].group, cases[i].k, cases[i].k), NULL);
        oct_node *n = MANY(f, &oct_op_conv_integer, x, w, code(f, OCT_DTYPE_U8, 7),
                           code(f, OCT_DTYPE_I8, -3));
        oct_conv_geometry g;
        oct_tensor *out = NULL;

        assert_ok(f->ctx, oct_node_set_int(n, "group", cases[i].group));
        assert_ok(f->ctx, oct_node_set_ints(n, "pads", pads, 4));
        assert_ok(f->ctx, oct_node_set_ints(n, "strides",
                                            (int64_t[]){cases[i].stride, cases[i].stride}, 2));
        assert_ok(f->ctx, oct_node_set_ints(n, "dilations",
                                            (int64_t[]){cases[i].dilation, cases[i].dilation}, 2));
        assert_ok(f->ctx, oct_conv_geometry_conv(n, &x->type, &w->type, &g));
        assert_ok(f->ctx, run(n, &out));
        for (int64_t m = 0; m < g.c_out; m++)
            for (int64_t r = 0; r < g.out[0]; r++)
                for (int64_t s = 0; s < g.out[1]; s++)
                    assert_int_equal(
                        ((const int32_t *)out->data)[(m * g.out[0] + r) * g.out[1] + s],
                        conv_at(x->data, w->data, &g, m, r, s));
        oct_tensor_unref(out);
    }
}

static void convolutions_requantize_by_filter(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_U8, DIMS(1, 1, 1, 2), (double[]){10, 20});
    oct_value *w = constant(f, OCT_DTYPE_I8, DIMS(2, 1, 1, 1), (double[]){2, -3});
    oct_value *scales = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){1, 0.5});
    oct_value *zeros = constant(f, OCT_DTYPE_I8, DIMS(2), (double[]){0, 0});
    oct_value *bias = constant(f, OCT_DTYPE_I32, DIMS(2), (double[]){1, 100});
    oct_value *s = f32(f, 0.5), *z = code(f, OCT_DTYPE_U8, 10);

    gives(MANY(f, &oct_op_q_linear_conv, x, s, z, w, scales, zeros, f32(f, 1), z, bias),
          DIMS(1, 2, 1, 2), (float[]){10, 20, 35, 28});
    refuses(MANY(f, &oct_op_q_linear_conv, x, s, z, w, scales, zeros, f32(f, 1), z, s),
            OCT_ERR_TYPE, "float32");
    refuses(MANY(f, &oct_op_q_linear_conv, x, scales, z, w, scales, zeros, f32(f, 1), z),
            OCT_ERR_SHAPE, "operand 1");
}

static void fused_convolutions_add_and_activate(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(1, 1, 1, 3), (double[]){-2, 0, 2});
    oct_value *w = constant(f, OCT_DTYPE_F32, DIMS(1, 1, 1, 1), (double[]){2});
    oct_value *sum = constant(f, OCT_DTYPE_F32, DIMS(1, 1, 1, 3), (double[]){1, -1, 0});
    oct_node *n = MANY(f, &oct_op_fused_conv, x, w, NULL, sum);
    const oct_attr bounds = {.kind = OCT_ATTR_F32S, .n = 2, .fs = (float[]){-2, 2}};

    gives(n, DIMS(1, 1, 1, 3), (float[]){-3, -1, 4});
    assert_ok(f->ctx, oct_node_set_str(n, "activation", "Relu"));
    gives(n, DIMS(1, 1, 1, 3), (float[]){0, 0, 4});
    assert_ok(f->ctx, oct_node_set_str(n, "activation", "Clip"));
    refuses(n, OCT_ERR_FORMAT, "activation_params");
    assert_ok(f->ctx, oct_node_set_attr(n, "activation_params", &bounds));
    gives(n, DIMS(1, 1, 1, 3), (float[]){-2, -1, 2});
    assert_ok(f->ctx, oct_node_set_str(n, "activation", "Magic"));
    refuses(n, OCT_ERR_UNSUPPORTED, "Magic");
}

static void linear_pairs_broadcast(void **state)
{
    fixture *f = *state;
    oct_value *a = constant(f, OCT_DTYPE_I8, DIMS(2, 1), (double[]){10, -10});
    oct_value *b = constant(f, OCT_DTYPE_I8, DIMS(2), (double[]){1, 100}), *s = f32(f, 0.5);
    oct_value *z = code(f, OCT_DTYPE_I8, 0);

    gives(MANY(f, &oct_op_q_linear_add, a, s, NULL, b, f32(f, 1), z, s), DIMS(2, 2),
          (float[]){12, 127, -8, 127});
    /* 2.5 and -2.5: the zero point is added before rounding, as ONNX Runtime does */
    gives(MANY(f, &oct_op_q_linear_mul, a, s, z, b, s, z, f32(f, 1), code(f, OCT_DTYPE_I8, 1)),
          DIMS(2, 2), (float[]){4, 127, -2, -128});
    refuses(MANY(f, &oct_op_q_linear_add, a, s, NULL, b, s), OCT_ERR_FORMAT, "operand 6");
}

static void linear_functions_go_through_tables(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_U8, DIMS(1, 3), (double[]){118, 128, 138});
    oct_value *s = f32(f, 0.1), *zx = code(f, OCT_DTYPE_U8, 128), *sy = f32(f, 1.0 / 256);
    oct_value *z = code(f, OCT_DTYPE_U8, 0);
    oct_node *n = MANY(f, &oct_op_q_linear_softmax, x, s, zx, sy, z);

    gives(MANY(f, &oct_op_q_linear_sigmoid, x, s, zx, sy, z), DIMS(1, 3), (float[]){69, 128, 187});
    gives(MANY(f, &oct_op_q_linear_leaky_relu, x, s, zx, f32(f, 0.01), zx), DIMS(1, 3),
          (float[]){127, 128, 228});
    assert_ok(f->ctx, oct_node_set_int(n, "opset", 13));
    gives(n, DIMS(1, 3), (float[]){23, 63, 170});
    assert_ok(f->ctx, oct_node_set_int(n, "opset", 11));
    gives(n, DIMS(1, 3), (float[]){23, 63, 170});
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 2));
    refuses(n, OCT_ERR_SHAPE, "axis 2");
}

static void linear_pools_average(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_U8, DIMS(1, 1, 2, 2), (double[]){10, 20, 30, 40});
    oct_value *s = f32(f, 0.5), *z = code(f, OCT_DTYPE_U8, 0), *zx = code(f, OCT_DTYPE_U8, 10);
    oct_node *n = MANY(f, &oct_op_q_linear_average_pool, x, s, zx, f32(f, 0.25), z);

    gives(MANY(f, &oct_op_q_linear_global_average_pool, x, s, zx, f32(f, 0.25), z),
          DIMS(1, 1, 1, 1), (float[]){30});
    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){1, 2}, 2));
    gives(n, DIMS(1, 1, 2, 1), (float[]){10, 50});
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){0, 1, 0, 0}, 4));
    gives(n, DIMS(1, 1, 2, 2), (float[]){0, 10, 40, 50});
    assert_ok(f->ctx, oct_node_set_int(n, "count_include_pad", 1));
    gives(n, DIMS(1, 1, 2, 2), (float[]){0, 10, 20, 50});
}

static void linear_parts_join_at_one_scale(void **state)
{
    fixture *f = *state;
    oct_value *a = constant(f, OCT_DTYPE_U8, DIMS(2, 1), (double[]){10, 20});
    oct_value *b = constant(f, OCT_DTYPE_U8, DIMS(2, 2), (double[]){1, 2, 3, 4});
    oct_value *z = code(f, OCT_DTYPE_U8, 0), *s = f32(f, 0.5), *y = f32(f, 1);
    oct_node *n = MANY(f, &oct_op_q_linear_concat, y, z, a, s, z, b, f32(f, 100), z);

    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    gives(n, DIMS(2, 3), (float[]){5, 100, 200, 10, 255, 255});
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 0));
    refuses(n, OCT_ERR_SHAPE, "along axis 0");
    n = MANY(f, &oct_op_q_linear_concat, y, z, a, s, z, b);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    refuses(n, OCT_ERR_FORMAT, "threes");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(halves_go_to_even_and_ends_saturate),
        TEST(scales_go_by_axis_or_block),
        TEST(quantizing_back_gives_the_codes),
        TEST(types_must_fit),
        TEST(dynamic_ranges_hold_zero),
        cmocka_unit_test(dot_products_match_plain_sums),
        TEST(matrices_multiply_with_their_zero_points),
        TEST(float_results_get_a_bias),
        TEST(gemm_has_all_its_parts),
        TEST(integer_convolutions_match_the_definition),
        TEST(convolutions_requantize_by_filter),
        TEST(fused_convolutions_add_and_activate),
        TEST(linear_pairs_broadcast),
        TEST(linear_functions_go_through_tables),
        TEST(linear_pools_average),
        TEST(linear_parts_join_at_one_scale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
