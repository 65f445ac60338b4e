/* SPDX-License-Identifier: Apache-2.0 */
/* Files that other tools quantized, raised and lowered again: the same comes out. */
#include "tests/alloc.h"
#include "tests/unit/quant_net.h"

#include "op/qparams.h"
#include <octet/quant.h>

#include "quant/diagnose.h"
#include "quant/lower/lower.h"

#define MAX_IO 32 /* inputs or outputs of a file */

/* What is expected of a file. */
typedef struct expected {
    const char *name;
    int n_points; /* 0: nothing to raise */
    int n_left;   /* Q and DQ nodes that stay: at integer inputs and outputs, in half floats */
} expected;

// clang-format off
static const expected conformance[] = {
    {"constant_folding_dequantizelinear.onnx", 3, 0},
    {"constant_folding_dequantizelinear.qdq16.onnx", 3, 0},
    {"constant_folding_dequantizelinear.qdq16_contrib.onnx", 3, 0},
    {"constant_folding_dequantizelinear.qdq_contrib.onnx", 3, 0},
    {"constant_folding_qdq_node_unit.graph_output.onnx", 3, 0},
    {"constant_folding_qdq_node_unit.graph_output.qdq16_contrib.onnx", 3, 0},
    {"constant_folding_qdq_node_unit.graph_output.qdq_contrib.onnx", 3, 0},
    {"constant_folding_qdq_node_unit.onnx", 4, 2},
    {"constant_folding_qdq_node_unit.qdq16_contrib.onnx", 4, 2},
    {"constant_folding_qdq_node_unit.qdq_contrib.onnx", 4, 2},
    {"conv.int4_weights.qdq.onnx", 4, 0},
    {"conv_qdq_s8s8.onnx", 4, 0},
    {"conv_qdq_s8s8_perchannel.onnx", 4, 0},
    {"conv_qdq_u8u8.onnx", 4, 0},
    {"dup_qdq.onnx", 4, 0},
    {"dup_qdq_bfloat16.onnx", 0, 9},
    {"dup_qdq_float16.onnx", 0, 9},
    {"dynamic_quantize_matmul.onnx", 0, 0},
    {"dynamic_quantize_matmul_bias.onnx", 0, 0},
    {"dynamic_quantize_matmul_bias_ND.onnx", 0, 0},
    {"dynamic_quantize_matmul_bias_b_no_zp.onnx", 0, 0},
    {"dynamic_quantize_matmul_int8.onnx", 0, 0},
    {"dynamic_quantize_matmul_int8_bias.onnx", 0, 0},
    {"dynamic_quantize_matmul_uint8.onnx", 0, 0},
    {"dynamic_quantize_matmul_uint8_bias.onnx", 0, 0},
    {"layout_transform_const_folding.qdq.onnx", 9, 0},
    {"layout_transform_fix_transpose_without_dq.qdq.onnx", 7, 0},
    {"layout_transform_reshape.qdq.onnx", 22, 0},
    {"nhwc_resize_sizes_opset18.quant.onnx", 7, 0},
    {"qdq_conv.onnx", 3, 2},
    {"qdq_convs.onnx", 9, 6},
    {"qdq_fusion_int8.onnx", 1, 0},
    {"qdq_fusion_uint8.onnx", 1, 0},
    {"qdq_fusion_zp_not_provided.onnx", 1, 0},
    {"qdq_minimal_model.onnx", 0, 0},
    {"qdq_with_multi_consumer_dq_nodes.fixed.onnx", 23, 0},
    {"qdq_with_multi_consumer_dq_nodes.fixed.qdq16.onnx", 23, 0},
    {"qdq_with_multi_consumer_dq_nodes.fixed.qdq16_contrib.onnx", 23, 0},
    {"qdq_with_multi_consumer_dq_nodes.fixed.qdq_contrib.onnx", 23, 0},
    {"qdq_with_multi_consumer_dq_nodes.onnx", 21, 0},
    {"qdq_with_multi_consumer_q_dq_axis.onnx", 9, 5},
    {"transpose_optimizer_qdq_fixup_unsqueeze_per_axis_dq.onnx", 4, 1},
};
// clang-format on

static int count_linear(const oct_graph *g)
{
    int n = 0;

    for (const oct_node *k = g->first; k; k = k->next)
        n += oct_node_is_quantize(k) || oct_node_is_dequantize(k);
    return n;
}

static oct_tensor *fill(oct_ctx *ctx, const oct_value *v, oct_rng *rng)
{
    oct_type type = v->type;
    oct_tensor *t = NULL;

    type.rank = OCT_MAX(type.rank, 0);
    for (int i = 0; i < type.rank; i++)
        if (type.dim[i] < 0) type.dim[i] = 2;
    assert_ok(ctx, oct_tensor_make(ctx, &type, &t));
    for (int64_t i = 0; i < oct_tensor_len(t); i++) {
        const double u = oct_rng_f64(rng);
        const double x = oct_dtype_is_float(type.dtype) ? u * 2 - 0.5 : floor(u * 100);

        oct_store_f64(type.dtype, t->data, i, 1, &x);
    }
    return t;
}

typedef struct raised {
    oct_graph *file, *plain, *again;
    oct_qmap *m;
} raised;

static void raise_graph(oct_ctx *ctx, oct_graph *file, raised *r)
{
    *r = (raised){.file = file};
    assert_ok(ctx, oct_raise(file, &r->plain, &r->m));
    assert_ok(ctx, oct_lower(r->m, NULL, &r->again));
}

static void raised_free(raised *r)
{
    oct_qmap_free(r->m);
    oct_graph_free(r->again);
    oct_graph_free(r->plain);
    oct_graph_free(r->file);
}

static void run_both(oct_ctx *ctx, const raised *r, oct_tensor **a, oct_tensor **b)
{
    oct_tensor *in[MAX_IO] = {0};
    oct_rng rng;

    oct_rng_init(&rng, 3);
    assert_true(r->file->n_inputs <= MAX_IO && r->file->n_outputs <= MAX_IO);
    for (int32_t i = 0; i < r->file->n_inputs; i++)
        in[i] = fill(ctx, r->file->inputs[i], &rng);
    assert_ok(ctx, oct_graph_eval(r->file, in, a, NULL));
    assert_ok(ctx, oct_graph_eval(r->again, in, b, NULL));
    for (int32_t i = 0; i < r->file->n_inputs; i++)
        oct_tensor_unref(in[i]);
}

/* The file and what was raised from it compute the same numbers, bit for bit. */
static void assert_same_outputs(oct_ctx *ctx, const raised *r, const char *what)
{
    oct_tensor *a[MAX_IO] = {0}, *b[MAX_IO] = {0};

    run_both(ctx, r, a, b);
    for (int32_t i = 0; i < r->file->n_outputs; i++) {
        if (!oct_tensor_equal(a[i], b[i])) fail_msg("%s: output %d differs", what, i);
        oct_tensor_unref(a[i]);
        oct_tensor_unref(b[i]);
    }
}

static oct_graph *load(fixture *f, const char *folder, const char *name)
{
    const char *shared = getenv("OCTET_SHARED");
    oct_graph *g = NULL;
    char path[512];

    if (!shared || !*shared) skip_test("../shared is not there");
    snprintf(path, sizeof(path), "%s/data/%s/%s", shared, folder, name);
    assert_ok(f->ctx, oct_onnx_load(f->ctx, path, &g));
    return g;
}

/* --- files --- */

static void round_trip(fixture *f, const char *folder, const expected *e)
{
    raised r;

    raise_graph(f->ctx, load(f, folder, e->name), &r);
    if (r.m->n_points != e->n_points || count_linear(r.plain) != e->n_left)
        fail_msg("%s: %d points, %d nodes left", e->name, r.m->n_points, count_linear(r.plain));
    assert_same_outputs(f->ctx, &r, e->name);
    raised_free(&r);
}

static void round_trips(void **state)
{
    for (size_t i = 0; i < OCT_COUNT(conformance); i++)
        round_trip(*state, "conformance/ort-qdq", &conformance[i]);
}

/* Its weights are in a file that is not there. */
static void says_what_is_missing(void **state)
{
    fixture *f = *state;
    const char *shared = getenv("OCTET_SHARED");
    oct_graph *g = NULL;
    char path[512];

    if (!shared || !*shared) skip_test("../shared is not there");
    snprintf(path, sizeof(path), "%s/data/conformance/ort-qdq/conv_qdq_external_ini.onnx", shared);
    assert_fails(f->ctx, oct_onnx_load(f->ctx, path, &g), OCT_ERR_IO, "conv_qdq_external_ini.bin");
}

static void round_trips_a_network(void **state)
{
    round_trip(*state, "models", &(expected){"mobilenetv2_qdq_244.onnx", 172, 0});
}

/* Large ones: every code, every scale comes back; running them would take minutes here. */
static void raises_detectors(void **state)
{
    static const expected files[] = {
        {"yolov8n_qdq_int8.onnx", 250, 0},
        {"yolov8n_qdq_allops_broken.onnx", 372, 0},
        {"yolov8n_dynint8.onnx", 0, 0},
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(files); i++) {
        raised r;

        raise_graph(f->ctx, load(f, "models", files[i].name), &r);
        assert_int_equal(r.m->n_points, files[i].n_points);
        assert_int_equal(count_linear(r.plain), files[i].n_left);
        assert_int_equal(count_linear(r.again), count_linear(r.file));
        for (const oct_node *n = r.file->first; n; n = n->next) {
            const oct_node *k;

            if (!oct_node_is(n, &oct_op_conv)) continue;
            assert_non_null(k = oct_graph_find_node(r.again, n->name));
            for (int32_t j = 1; j < n->n_in; j++) {
                oct_codes was, is;

                assert_true(oct_tensor_equal(n->in[j]->producer->in[0]->data,
                                             k->in[j]->producer->in[0]->data));
                assert_true(oct_codes_of(n->in[j]->producer, &was));
                assert_true(oct_codes_of(k->in[j]->producer, &is));
                assert_true(oct_codes_equal(&was, &is));
            }
        }
        raised_free(&r);
    }
}

static void keeps_dynamic_quantization(void **state)
{
    fixture *f = *state;
    int n_kept = 0;
    raised r;

    raise_graph(f->ctx, load(f, "models", "yolov8n_dynint8.onnx"), &r);
    for (const oct_node *n = r.plain->first; n; n = n->next) {
        if (!oct_node_is(n, &oct_op_conv_integer)) continue;
        assert_non_null(strstr(r.m->float_reason[n->id], "while running"));
        n_kept++;
    }
    assert_int_equal(n_kept, 64);
    raised_free(&r);
}

/* Float sums round otherwise than integer ones: a tie now and then, and what follows from it. */
static void raises_integer_operators(void **state)
{
    fixture *f = *state;
    oct_tensor *a[MAX_IO] = {0}, *b[MAX_IO] = {0};
    double ab = 0, aa = 0, bb = 0;
    raised r;

    raise_graph(f->ctx, load(f, "models", "mobilenetv2_qoperator.onnx"), &r);
    for (const oct_node *n = r.plain->first; n; n = n->next)
        assert_null(strstr(n->op->name, "Linear"));
    assert_non_null(oct_graph_find_node(r.plain, r.file->first->next->name)); /* names stay */
    run_both(f->ctx, &r, a, b);
    for (int64_t i = 0; i < oct_tensor_len(a[0]); i++) {
        const double x = oct_tensor_get_f64(a[0], i), y = oct_tensor_get_f64(b[0], i);

        ab += x * y, aa += x * x, bb += y * y;
    }
    assert_true(ab / sqrt(aa * bb) > 0.98);
    oct_tensor_unref(a[0]);
    oct_tensor_unref(b[0]);
    raised_free(&r);
}

/* --- the fault that makes every score zero --- */

static void says_what_is_wrong(void **state)
{
    static const char *const files[] = {"yolov8n_qdq_allops_broken.onnx", "yolov8n_qdq_int8.onnx",
                                        "mobilenetv2_qdq_244.onnx"};
    fixture *f = *state;

    for (int i = 0; i < 3; i++) {
        oct_qfault *faults = NULL;
        raised r;
        int n = -1;

        raise_graph(f->ctx, load(f, "models", files[i]), &r);
        assert_ok(f->ctx, oct_qmap_faults(r.m, r.m->arena, &faults, &n));
        assert_int_equal(n, i == 0);
        if (n) {
            assert_non_null(strstr(faults[0].text, "'/model.22/Concat_3'"));
            assert_non_null(strstr(faults[0].text, "(up to 637)"));
            assert_non_null(strstr(faults[0].text, "(up to 0.89)"));
            assert_non_null(strstr(faults[0].text, "one scale of 2.5"));
        }
        raised_free(&r);
    }
}

/* From a Sigmoid's nature alone, when all operands share the scale. */
static void knows_probabilities(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){1, 6});
    const float scale = 2.5f;
    const int32_t zero = 0;
    oct_value *boxes = qdq(f, emit(f, &oct_op_relu, x, NULL), OCT_DTYPE_U8, &scale, &zero, 1, 1);
    oct_value *s = emit(f, &oct_op_sigmoid, x, NULL);
    oct_value *const in[] = {boxes, qdq(f, s, OCT_DTYPE_U8, &scale, &zero, 1, 1)};
    oct_fault_list *faults = NULL;

    output(f, qdq(f, concat(f, in, 2, 1), OCT_DTYPE_U8, &scale, &zero, 1, 1));
    assert_ok(f->ctx, oct_graph_diagnose(f->g, &faults));
    assert_non_null(strstr(oct_fault_list_at(faults, 0), "nothing but zeros"));
    assert_null(oct_fault_list_at(faults, 1));
    assert_null(oct_fault_list_at(faults, -1));
    oct_fault_list_free(faults);
    oct_fault_list_free(NULL);
}

/* --- operators on integers, each alone --- */

static oct_value *scalar(fixture *f, float v)
{
    return constant_f32(f, 0, NULL, &v);
}

static oct_value *zero_point(fixture *f, oct_dtype t, int32_t v)
{
    return constant_int(f, t, 0, NULL, &v);
}

/* The one output is the same but for ties. */
static void assert_raises(fixture *f, const oct_op *gone)
{
    oct_tensor *a[MAX_IO] = {0}, *b[MAX_IO] = {0};
    raised r;

    raise_graph(f->ctx, f->g, &r);
    for (const oct_node *n = r.plain->first; n; n = n->next)
        assert_ptr_not_equal(n->op, gone);
    assert_true(r.m->n_points > 0);
    run_both(f->ctx, &r, a, b);
    assert_steps(a[0], b[0], 1, 0.01);
    oct_tensor_unref(a[0]);
    oct_tensor_unref(b[0]);
    r.file = NULL; /* the fixture's */
    raised_free(&r);
}

static oct_node *integer_node(fixture *f, const oct_op *op, oct_value *const *in, int32_t n)
{
    oct_node *k = oct_emit_node(&f->b, op, in, n, 1);

    assert_non_null(k);
    return k;
}

static void raises_convolution(void **state)
{
    fixture *f = *state;
    const float w_scale[3] = {0.01f, 0.02f, 0.005f};
    const int32_t w_zero[3] = {0}, b[3] = {100, -200, 3000};
    const int64_t three = 3, w_dims[] = {3, 2, 3, 3};
    oct_value *x = graph_input(f, "x", OCT_DTYPE_U8, 4, (int64_t[]){1, 2, 9, 9});
    oct_value *const in[] = {x,
                             scalar(f, 0.05f),
                             zero_point(f, OCT_DTYPE_U8, 100),
                             codes(f, OCT_DTYPE_I8, 4, w_dims, 4),
                             constant_f32(f, 1, &three, w_scale),
                             constant_int(f, OCT_DTYPE_I8, 1, &three, w_zero),
                             scalar(f, 0.4f),
                             zero_point(f, OCT_DTYPE_U8, 128),
                             constant_int(f, OCT_DTYPE_I32, 1, &three, b)};
    oct_node *n = integer_node(f, &oct_op_q_linear_conv, in, 9);

    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){1, 0, 1, 2}, 4));
    output(f, infer(f, n));
    assert_raises(f, &oct_op_q_linear_conv);
}

static void raises_products(void **state)
{
    static const oct_op *const ops[] = {&oct_op_q_linear_mat_mul, &oct_op_q_gemm,
                                        &oct_op_q_linear_add, &oct_op_q_linear_mul};
    fixture *f = *state;

    for (int i = 0; i < 4; i++) {
        const int64_t dims[] = {6, 6};
        oct_value *x, *in[9];
        int k = 0;

        teardown(state), setup(state);
        f = *state;
        x = graph_input(f, "x", OCT_DTYPE_U8, 2, dims);
        in[k++] = x;
        in[k++] = scalar(f, 0.0513f);
        in[k++] = zero_point(f, OCT_DTYPE_U8, 50);
        in[k++] = codes(f, OCT_DTYPE_U8, 2, dims, 4);
        in[k++] = scalar(f, 0.0217f);
        in[k++] = zero_point(f, OCT_DTYPE_U8, 128);
        if (ops[i] == &oct_op_q_gemm) in[k++] = NULL;
        in[k++] = scalar(f, 0.097f);
        in[k++] = zero_point(f, OCT_DTYPE_U8, 120);
        output(f, infer(f, integer_node(f, ops[i], in, k)));
        assert_raises(f, ops[i]);
    }
}

/* alpha multiplies the bias too; the scales go along the columns of the transposed matrix. */
static void raises_transposed_product(void **state)
{
    fixture *f = *state;
    const int64_t four = 4, dims[] = {4, 6};
    const float w_scale[4] = {0.01f, 0.03f, 0.005f, 0.02f};
    const int32_t w_zero[4] = {0}, bias[4] = {500, -900, 4000, 100};
    oct_value *const in[] = {graph_input(f, "x", OCT_DTYPE_U8, 2, (int64_t[]){5, 6}),
                             scalar(f, 0.05f),
                             zero_point(f, OCT_DTYPE_U8, 100),
                             codes(f, OCT_DTYPE_I8, 2, dims, 4),
                             constant_f32(f, 1, &four, w_scale),
                             constant_int(f, OCT_DTYPE_I8, 1, &four, w_zero),
                             constant_int(f, OCT_DTYPE_I32, 1, &four, bias),
                             scalar(f, 0.1f),
                             zero_point(f, OCT_DTYPE_U8, 128)};
    oct_node *n = integer_node(f, &oct_op_q_gemm, in, 9);

    assert_ok(f->ctx, oct_node_set_int(n, "transB", 1));
    assert_ok(f->ctx, oct_node_set_f32(n, "alpha", 0.5f));
    output(f, infer(f, n));
    assert_raises(f, &oct_op_q_gemm);
}

static void raises_functions(void **state)
{
    static const oct_op *const ops[] = {&oct_op_q_linear_sigmoid, &oct_op_q_linear_leaky_relu,
                                        &oct_op_q_linear_global_average_pool};
    fixture *f = *state;

    for (int i = 0; i < 3; i++) {
        oct_value *x, *in[5];

        teardown(state), setup(state);
        f = *state;
        x = graph_input(f, "x", OCT_DTYPE_U8, 4, (int64_t[]){1, 3, 5, 5});
        in[0] = x;
        in[1] = scalar(f, 0.05f);
        in[2] = zero_point(f, OCT_DTYPE_U8, 50);
        in[3] = scalar(f, i == 0 ? 1 / 256.0f : 0.04f);
        in[4] = zero_point(f, OCT_DTYPE_U8, i == 0 ? 0 : 60);
        output(f, infer(f, integer_node(f, ops[i], in, 5)));
        assert_raises(f, ops[i]);
    }
}

static void raises_concat(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_U8, 2, (int64_t[]){3, 4});
    oct_value *const in[] = {scalar(f, 0.1f),  zero_point(f, OCT_DTYPE_U8, 10), x,
                             scalar(f, 0.05f), zero_point(f, OCT_DTYPE_U8, 3),  x,
                             scalar(f, 0.12f), zero_point(f, OCT_DTYPE_U8, 20)};
    oct_node *n = integer_node(f, &oct_op_q_linear_concat, in, 8);

    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    output(f, infer(f, n));
    assert_raises(f, &oct_op_q_linear_concat);
}

/* Codes that are moved become numbers that are moved. */
static void moves_numbers(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){3, 4});
    const float scale = 0.05f;
    const int32_t zero = 30;
    oct_value *q = quantize(f, x, OCT_DTYPE_U8, &scale, &zero, 1, 1);
    oct_value *t = emit(f, &oct_op_transpose, q, NULL);
    raised r;

    output(f, emit(f, &oct_op_relu, dequantize(f, t, &scale, &zero, 1, 1), NULL));
    raise_graph(f->ctx, f->g, &r);
    assert_int_equal(count_linear(r.plain), 0);
    assert_same_outputs(f->ctx, &r, "raised");
    r.file = NULL;
    raised_free(&r);
}

/* --- what octet writes itself --- */

/* A weight that was folded: factors come back, codes stay. */
static void unfolds_weights(void **state)
{
    fixture *f = *state;
    const int64_t dims[] = {3, 2, 1, 1}, fold_dims[] = {1, 2, 1, 1};
    const float x_scale[2] = {0.02f, 0.01f}, w_scale[3] = {0.01f, 0.02f, 0.03f};
    const float inverse[2] = {1, 2};
    const int32_t x_zero[2] = {100, 50}, zero[3] = {0};
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 2, 4, 4});
    oct_value *w = dequantize(f, codes(f, OCT_DTYPE_I8, 4, dims, 6), w_scale, zero, 3, 0);
    oct_value *y = node(f, &oct_op_conv, qdq(f, x, OCT_DTYPE_U8, x_scale, x_zero, 2, 1),
                        emit(f, &oct_op_mul, w, constant_f32(f, 4, fold_dims, inverse)), NULL)
                       ->out[0];
    const oct_qpoint *p = NULL;
    raised r;

    infer(f, y->producer);
    output(f, y);
    raise_graph(f->ctx, f->g, &r);
    for (int32_t i = 0; i < r.m->n_points; i++)
        if (r.m->points[i].role == OCT_QROLE_WEIGHT) p = &r.m->points[i];
    assert_non_null(p);
    assert_non_null(p->fold);
    assert_true(p->fold[0] == 1 && p->fold[1] == 0.5f && p->fold_rows == 1 && p->fold_columns == 2);
    assert_float_equal(p->fold_scale, 0.02f, 1e-9);
    assert_same_outputs(f->ctx, &r, "raised");
    r.file = NULL;
    raised_free(&r);
}

/* Two pairs in a row with different scales round twice, before and after. */
static void keeps_rounding_twice(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){3, 4});
    const float coarse = 0.3f, fine = 0.07f;
    const int32_t zero = 30;
    oct_value *twice =
        qdq(f, qdq(f, x, OCT_DTYPE_U8, &coarse, &zero, 1, 1), OCT_DTYPE_U8, &fine, &zero, 1, 1);
    raised r;

    output(f, emit(f, &oct_op_relu, twice, NULL));
    output(f, emit(f, &oct_op_sigmoid, x, NULL)); /* somebody reads the float value */
    raise_graph(f->ctx, f->g, &r);
    assert_int_equal(r.m->n_points, 2);
    assert_same_outputs(f->ctx, &r, "raised");
    r.file = NULL;
    raised_free(&r);
}

/* --- no memory --- */

static oct_status small_job(oct_ctx *ctx)
{
    const oct_type t = oct_type_make(OCT_DTYPE_F32, 2, (int64_t[]){2, 2});
    oct_graph *g = NULL, *plain = NULL;
    oct_qmap *m = NULL;
    oct_status st;
    oct_value *x, *y;

    if ((st = oct_graph_new(ctx, "g", &g))) return st;
    st = OCT_ERR_MEMORY;
    if (!(x = oct_value_new(g, "x", &t)) || oct_graph_add_input(g, x)) goto done;
    {
        oct_builder b = {.g = g};
        oct_value *s = oct_scalar(&b, 0.5f);

        y = oct_emit(&b, &oct_op_quantize_linear, x, s, NULL);
        y = oct_emit(&b, &oct_op_dequantize_linear, y, s, NULL);
        y = oct_emit(&b, &oct_op_relu, y, NULL, NULL);
        if ((st = b.status) || (st = oct_graph_add_output(g, y))) goto done;
        st = oct_raise(g, &plain, &m);
    }
done:
    oct_qmap_free(m);
    oct_graph_free(plain);
    oct_graph_free(g);
    return st;
}

static void survives_without_memory(void **state)
{
    (void)state;
    fail_each_allocation(small_job);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(round_trips),
        TEST(says_what_is_missing),
        TEST(round_trips_a_network),
        TEST(raises_detectors),
        TEST(keeps_dynamic_quantization),
        TEST(raises_integer_operators),
        TEST(says_what_is_wrong),
        TEST(knows_probabilities),
        TEST(raises_convolution),
        TEST(raises_products),
        TEST(raises_transposed_product),
        TEST(raises_functions),
        TEST(raises_concat),
        TEST(moves_numbers),
        TEST(unfolds_weights),
        TEST(keeps_rounding_twice),
        TEST(survives_without_memory),
    };

    return run_test_group(tests);
}
