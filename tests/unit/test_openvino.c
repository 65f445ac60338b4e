/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO IR: what is written reads back as it was; broken files are refused with a reason. */
#include "tests/unit/data_files.h"
#include "tests/unit/exec_net.h"
#include "tests/unit/quant_net.h"

/* Layers of most kinds: groups, a bias, pooling, Concat, Split, resizing, a matrix product. */
static void make_network(fixture *f)
{
    oct_value *x = picture(f, 1, 4, 12, 12), *y, *a, *part[2];
    oct_node *n;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    y = conv(f, &rng, x, &(conv_case){4, 8, 3, 2, 1, 1, 1});
    y = emit(f, &oct_op_mul, y, emit(f, &oct_op_sigmoid, y, NULL));
    a = emit(f, &oct_op_relu, conv(f, &rng, y, &(conv_case){8, 8, 3, 1, 1, 1, 4}), NULL);
    y = emit(f, &oct_op_add, y, a);
    n = node(f, &oct_op_max_pool, y, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){3, 3}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){2, 2}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){1, 1, 1, 1}, 4));
    y = infer(f, n);
    n = node(f, &oct_op_resize, y, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_input(n, 1, NULL));
    assert_ok(f->ctx, oct_node_set_input(n, 2, input(f, 4, (const float[]){1, 1, 2, 2})));
    y = infer(f, n);
    n = oct_emit_node(&f->b, &oct_op_split, &y, 1, 2);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    assert_ok(f->ctx, oct_node_set_int(n, "num_outputs", 2));
    (void)infer(f, n);
    part[0] = n->out[1];
    part[1] = n->out[0];
    y = concat(f, part, 2, 1);
    y = emit(f, &oct_op_global_average_pool, y, NULL);
    n = node(f, &oct_op_flatten, y, NULL, NULL);
    y = infer(f, n);
    n = node(f, &oct_op_gemm, y, weights(f, &rng, 2, (int64_t[]){5, 8}),
             weights(f, &rng, 1, (int64_t[]){5}));
    assert_ok(f->ctx, oct_node_set_int(n, "transB", 1));
    output(f, infer(f, n));
}

static void reads_what_it_wrote(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_tensor *want[4] = {NULL}, *got[4] = {NULL};
    oct_graph *own = f->g;

    make_network(f);
    assert_ok(t->ctx, oct_graph_set_metadata(f->g, "names", "{0: 'a & \"b\"', 1: '<c>'}"));
    assert_ok(t->ctx, oct_graph_set_metadata(f->g, "octet.preprocess", "scale=1"));
    assert_ok(t->ctx, oct_graph_set_metadata(f->g, "no name of XML", "left out"));
    run_graph(f, NULL, want);
    assert_ok(t->ctx, oct_openvino_save(f->g, below(t, "net.xml"), NULL));
    assert_ok(t->ctx, oct_openvino_load(t->ctx, below(t, "net.xml"), &f->g));
    assert_string_equal(oct_graph_metadata(f->g, "names"), "{0: 'a & \"b\"', 1: '<c>'}");
    assert_string_equal(oct_graph_metadata(f->g, "octet.preprocess"), "scale=1");
    assert_null(oct_graph_metadata(f->g, "no name of XML"));
    assert_string_equal(f->g->inputs[0]->name, own->inputs[0]->name);
    assert_string_equal(f->g->outputs[0]->name, own->outputs[0]->name);
    run_graph(f, NULL, got);
    assert_same("network", got[0], want[0], 1e-5);
    oct_tensor_unref(want[0]);
    oct_tensor_unref(got[0]);
    oct_graph_free(f->g);
    f->g = own;
}

/* Codes stay codes: the integers of a file are those of the other. */
static void integers_stay_integers(void **state)
{
    static const float scale[] = {.02f, .05f, .01f, .04f};
    files *t = *state;
    fixture *f = t->f;
    oct_graph *own = f->g, *back = NULL;
    oct_tensor *want[4] = {NULL}, *got[4] = {NULL};
    int n_int = 0;
    oct_value *x = picture(f, 1, 4, 6, 6), *w, *y;
    oct_node *n;

    w = codes(f, OCT_DTYPE_I8, 4, (int64_t[]){4, 1, 3, 3}, 5);
    w = dequantize(f, w, scale, NULL, 4, 0);
    y = qdq_u8(f, x, .03f);
    n = node(f, &oct_op_conv, y, w, NULL);
    assert_ok(f->ctx, oct_node_set_int(n, "group", 4));
    output(f, qdq_u8(f, infer(f, n), .1f));
    run_graph(f, NULL, want);
    assert_ok(t->ctx, oct_openvino_save(f->g, below(t, "net.xml"), NULL));
    assert_ok(t->ctx, oct_openvino_load(t->ctx, below(t, "net.xml"), &back));
    for (const oct_node *k = back->first; k; k = k->next)
        n_int += oct_node_is(k, &oct_op_dequantize_linear) && k->in[0]->data &&
                 k->in[0]->type.dtype == OCT_DTYPE_I8;
    assert_int_equal(n_int, 1);
    f->g = back;
    run_graph(f, NULL, got);
    assert_same("integers", got[0], want[0], 1e-6);
    oct_tensor_unref(want[0]);
    oct_tensor_unref(got[0]);
    oct_graph_free(back);
    f->g = own;
}

#define NET(layers, edges)                                                                         \
    "<?xml version=\"1.0\"?><net name=\"n\" version=\"11\"><layers>" layers                        \
    "</layers><edges>" edges "</edges></net>"
#define PARAMETER                                                                                  \
    "<layer id=\"0\" name=\"x\" type=\"Parameter\" version=\"opset1\"><data shape=\"1,2,3\" "      \
    "element_type=\"f32\"/><output><port id=\"0\" precision=\"FP32\"/></output></layer>"
#define RELU(id)                                                                                   \
    "<layer id=\"" id "\" name=\"r" id "\" type=\"ReLU\" version=\"opset1\"><input><port "         \
    "id=\"0\"/></input><output><port id=\"1\" precision=\"FP32\"/></output></layer>"
#define POOL                                                                                       \
    "<layer id=\"1\" name=\"pool\" type=\"MaxPool\" version=\"opset8\"><data kernel=\"1\" "        \
    "strides=\"1\" pads_begin=\"0\" pads_end=\"0\"/><input><port id=\"0\"/></input><output>"       \
    "<port id=\"1\"/><port id=\"2\"/></output></layer>"
#define CONST(size)                                                                                \
    "<layer id=\"0\" name=\"c\" type=\"Const\" version=\"opset1\"><data element_type=\"f32\" "     \
    "shape=\"2\" offset=\"0\" size=\"" size "\"/><output><port id=\"0\" precision=\"FP32\"/>"      \
    "</output></layer>"
#define EDGE(a, p, b)                                                                              \
    "<edge from-layer=\"" a "\" from-port=\"" p "\" to-layer=\"" b "\" to-port=\"0\"/>"

/* The form QOperator has no layers of its own: it is written as Q/DQ. */
static void q_operators_become_fake_quantize(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_tensor *want[4] = {NULL}, *got[4] = {NULL};
    oct_graph *own = f->g;
    oct_value *x = picture(f, 1, 2, 6, 6), *in[8], *q, *y;
    const double codes[] = {90, -40, 7, -120, 33, 64}, u8[] = {128}, i8[] = {0};
    oct_node *n;

    in[1] = oct_scalar(&f->b, 0.02f);
    in[2] = oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_U8, 0, NULL, u8));
    q = oct_emit(&f->b, &oct_op_quantize_linear, x, in[1], in[2]);
    assert_non_null(q);
    in[0] = q;
    in[3] = oct_value_const(f->g, NULL,
                            tensor_of(f->ctx, OCT_DTYPE_I8, 4, (int64_t[]){3, 2, 1, 1}, codes));
    in[4] = oct_scalar(&f->b, 0.01f);
    in[5] = oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_I8, 0, NULL, i8));
    in[6] = oct_scalar(&f->b, 0.03f);
    in[7] = in[2];
    n = oct_emit_node(&f->b, &oct_op_q_linear_conv, in, 8, 1);
    y = infer(f, n);
    output(f, oct_emit(&f->b, &oct_op_dequantize_linear, y, in[6], in[7]));
    run_graph(f, NULL, want);
    assert_ok(t->ctx, oct_openvino_save(f->g, below(t, "q.xml"), NULL));
    assert_ok(t->ctx, oct_openvino_load(t->ctx, below(t, "q.xml"), &f->g));
    run_graph(f, NULL, got);
    for (int64_t i = 0; i < oct_tensor_len(want[0]); i++) /* a tie may round otherwise */
        assert_true(fabs(oct_tensor_get_f64(got[0], i) - oct_tensor_get_f64(want[0], i)) < 0.031);
    oct_tensor_unref(want[0]);
    oct_tensor_unref(got[0]);
    oct_graph_free(f->g);
    f->g = own;
}

/* Ranges that are found at run time, and products of codes: spelt out in float. */
static void dynamic_ranges_are_spelt_out(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_tensor *want[4] = {NULL}, *got[4] = {NULL};
    oct_graph *own = f->g;
    oct_value *x = picture(f, 1, 2, 6, 6), *in[4], *y;
    const double codes[] = {90, -40, 7, -120, 33, 64}, zeros[] = {3, 0, -5},
                 square[] = {9, -7, 20, 4};
    oct_node *n = oct_emit_node(&f->b, &oct_op_dynamic_quantize_linear, &x, 1, 3);

    (void)infer(f, n);
    in[0] = n->out[0];
    in[1] = oct_value_const(f->g, NULL,
                            tensor_of(f->ctx, OCT_DTYPE_I8, 4, (int64_t[]){3, 2, 1, 1}, codes));
    in[2] = n->out[2];
    in[3] = oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_I8, 1, (int64_t[]){3}, zeros));
    x = n->out[1];
    n = oct_emit_node(&f->b, &oct_op_conv_integer, in, 4, 1);
    y = oct_emit(&f->b, &oct_op_mul, cast(f, infer(f, n), OCT_DTYPE_F32), x, NULL);
    output(f, y);
    n = oct_emit_node(&f->b, &oct_op_dynamic_quantize_linear, &y, 1, 3);
    (void)infer(f, n);
    x = oct_emit(&f->b, &oct_op_reshape, n->out[0], oct_ints(&f->b, (int64_t[]){54, 2}, 2), NULL);
    in[1] =
        oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_I8, 2, (int64_t[]){2, 2}, square));
    n = oct_emit_node(&f->b, &oct_op_mat_mul_integer, (oct_value *[]){x, in[1], n->out[2]}, 3, 1);
    output(f, cast(f, infer(f, n), OCT_DTYPE_F32));
    assert_ok(f->ctx, f->b.status);
    run_graph(f, NULL, want);
    assert_ok(t->ctx, oct_openvino_save(f->g, below(t, "dynamic.xml"), NULL));
    assert_ok(t->ctx, oct_openvino_load(t->ctx, below(t, "dynamic.xml"), &f->g));
    run_graph(f, NULL, got);
    for (int i = 0; i < 2; i++) {
        assert_same("dynamic", got[i], want[i], 1e-5);
        oct_tensor_unref(want[i]);
        oct_tensor_unref(got[i]);
    }
    oct_graph_free(f->g);
    f->g = own;
}

static const char split_xml[] =
    "<?xml version=\"1.0\"?><net name=\"n\" version=\"11\"><layers>"
    "<layer id=\"0\" name=\"x\" type=\"Parameter\" version=\"opset1\"><data shape=\"1,5\" "
    "element_type=\"f32\"/><output><port id=\"0\" names=\"x\"><dim>1</dim><dim>5</dim></port>"
    "</output></layer>"
    "<layer id=\"1\" name=\"axis\" type=\"Const\" version=\"opset1\"><data element_type=\"i64\" "
    "shape=\"\" offset=\"0\" size=\"8\"/><output><port id=\"0\"/></output></layer>"
    "<layer id=\"2\" name=\"len\" type=\"Const\" version=\"opset1\"><data element_type=\"i64\" "
    "shape=\"2\" offset=\"8\" size=\"16\"/><output><port id=\"0\"><dim>2</dim></port></output>"
    "</layer>"
    "<layer id=\"3\" name=\"cut\" type=\"VariadicSplit\" version=\"opset1\"><input><port id=\"0\"/>"
    "<port id=\"1\"/><port id=\"2\"/></input><output><port id=\"3\"/><port id=\"4\" "
    "names=\"rest\"/></output></layer>"
    "<layer id=\"4\" name=\"out\" type=\"Result\" version=\"opset1\"><input><port "
    "id=\"0\"/></input>"
    "</layer></layers><edges>"
    "<edge from-layer=\"0\" from-port=\"0\" to-layer=\"3\" to-port=\"0\"/>"
    "<edge from-layer=\"1\" from-port=\"0\" to-layer=\"3\" to-port=\"1\"/>"
    "<edge from-layer=\"2\" from-port=\"0\" to-layer=\"3\" to-port=\"2\"/>"
    "<edge from-layer=\"3\" from-port=\"4\" to-layer=\"4\" to-port=\"0\"/></edges></net>";

/* A length of -1 is what the others leave; the file need not say it. */
static void splits_into_what_is_left(void **state)
{
    files *t = *state;
    oct_graph *g = NULL;

    put_bytes(t, "s.xml", split_xml, sizeof(split_xml) - 1);
    put_bytes(t, "s.bin", (const int64_t[]){1, 2, -1}, 3 * sizeof(int64_t));
    assert_ok(t->ctx, oct_openvino_load(t->ctx, below(t, "s.xml"), &g));
    assert_int_equal(g->n_outputs, 1);
    assert_int_equal(g->outputs[0]->type.dim[1], 3);
    oct_graph_free(g);
}

static void broken_files_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"<net", "broken XML"},
        {"<!DOCTYPE net [<!ENTITY a \"b\">]><net version=\"11\"/>", "DTD"},
        {"<other/>", "not OpenVINO IR"},
        {"<net version=\"12\"/>", "version 12"},
        {NET(PARAMETER PARAMETER, ""), "two layers have the id 0"},
        {NET(PARAMETER RELU("1"), ""), "nothing comes to port 0"},
        {NET(PARAMETER RELU("1"), EDGE("0", "7", "1")), "layer 0, port 7: there is none"},
        {NET(RELU("1") RELU("2"), EDGE("1", "1", "2") EDGE("2", "1", "1")), "part of a circle"},
        {NET(CONST("8"), ""), "net.bin"},
        {NET(PARAMETER "<layer id=\"1\" name=\"odd\" type=\"Odd\" version=\"opset1\"/>", ""),
         "Odd (layer 'odd')"},
        {NET(PARAMETER POOL "<layer id=\"2\" name=\"p\" type=\"PReLU\" version=\"opset1\"><input>"
                            "<port id=\"0\"/><port id=\"1\"/></input><output><port id=\"2\"/>"
                            "</output></layer>",
             EDGE("0", "0", "1") EDGE("0", "0", "2") "<edge from-layer=\"1\" from-port=\"2\" "
                                                     "to-layer=\"2\" to-port=\"1\"/>"),
         "reads result 1 of layer 'pool'"},
    };
    files *t = *state;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = NULL;

        put_text(t, "net.xml", cases[i].text);
        assert_true(oct_openvino_load(t->ctx, below(t, "net.xml"), &g) != OCT_OK);
        if (!strstr(oct_ctx_error(t->ctx), cases[i].why))
            fail_msg("case %zu: \"%s\", want \"%s\"", i, oct_ctx_error(t->ctx), cases[i].why);
    }
    put_text(t, "net.bin", "12345678");
    for (int i = 0; i < 2; i++) {
        oct_graph *g = NULL;

        put_text(t, "net.xml", i ? NET(CONST("800"), "") : NET(CONST("4"), ""));
        assert_fails(t->ctx, oct_openvino_load(t->ctx, below(t, "net.xml"), &g), OCT_ERR_FORMAT,
                     "bytes for a constant of shape 2");
    }
}

static void operators_without_a_form_are_named(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_value *x = picture(f, 1, 4, 6, 6);

    output(f, emit(f, &oct_op_selu, emit(f, &oct_op_hardmax, x, NULL), NULL));
    assert_fails(t->ctx, oct_openvino_save(f->g, below(t, "net.xml"), NULL), OCT_ERR_UNSUPPORTED,
                 "Hardmax");
    assert_non_null(strstr(oct_ctx_error(t->ctx), "Selu"));
    assert_fails(t->ctx, oct_openvino_save(f->g, below(t, "net.onnx"), NULL), OCT_ERR_ARG, ".xml");
}

/* What the tails of detectors count and index with. */
static void indices_come_back(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_tensor *want[8] = {NULL}, *got[8] = {NULL};
    oct_graph *own = f->g;
    oct_value *x = picture(f, 1, 4, 6, 6), *y, *axis, *at, *rows;
    oct_node *n;

    axis = constant_int(f, OCT_DTYPE_I64, 0, NULL, (int32_t[]){1});
    at = constant_int(f, OCT_DTYPE_I64, 2, (int64_t[]){2, 2}, (int32_t[]){0, 1, 0, 3});
    y = infer(f, n = node(f, &oct_op_cum_sum, x, axis, NULL));
    assert_ok(f->ctx, oct_node_set_int(n, "exclusive", 1));
    output(f, y);
    rows = infer(f, node(f, &oct_op_gather_nd, y, at, NULL));
    output(f, infer(f, node(f, &oct_op_scatter_nd, x, at, rows)));
    at = constant_int(f, OCT_DTYPE_I64, 4, (int64_t[]){1, 1, 2, 2}, (int32_t[]){3, 0, 1, 2});
    n = node(f, &oct_op_gather_elements, x, at, NULL);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    output(f, infer(f, n));
    y = infer(f, node(f, &oct_op_non_zero, emit(f, &oct_op_relu, x, NULL), NULL, NULL));
    output(f, y);
    run_graph(f, NULL, want);
    assert_ok(t->ctx, oct_openvino_save(f->g, below(t, "net.xml"), NULL));
    assert_ok(t->ctx, oct_openvino_load(t->ctx, below(t, "net.xml"), &f->g));
    run_graph(f, NULL, got);
    for (int i = 0; i < 4; i++) {
        assert_same(own->outputs[i]->name, got[i], want[i], 1e-6);
        oct_tensor_unref(want[i]);
        oct_tensor_unref(got[i]);
    }
    oct_graph_free(f->g);
    f->g = own;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_what_it_wrote, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(integers_stay_integers, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(q_operators_become_fake_quantize, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(dynamic_ranges_are_spelt_out, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(splits_into_what_is_left, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(indices_come_back, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(broken_files_are_refused, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(operators_without_a_form_are_named, setup_files,
                                        teardown_files),
    };

    return run_test_group(tests);
}
