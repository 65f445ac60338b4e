/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized files that are wrong: refused, with the name of the node that is. */
#include "tests/unit/onnx_make.h"

static const int64_t x_dims[] = {1, 3, 4, 4}, w_dims[] = {2, 3, 1, 1};

/* What is wrong with a quantized convolution. */
typedef struct wrong {
    float scale;           /* of the input */
    int zero_type;         /* of the input's zero point */
    int64_t n_scales;      /* of the input */
    size_t weight_bytes;   /* 6 are right */
    bool loops;            /* the convolution's result goes into its own input */
    int64_t weight_scales; /* 2 are right */
} wrong;

static const wrong right = {0.02f, OCT_DTYPE_U8, 1, 6, false, 2};

static pb network(const wrong *w)
{
    const float scales[3] = {w->scale, w->scale, w->scale}, w_scales[3] = {0.1f, 0.2f, 0.3f};
    const uint8_t zeros[16] = {0}, weights[6] = {1, 2, 3, 4, 5, 6};
    pb g = {0};

    add_input(&g, f32("x", 4, x_dims));
    add_init(&g, tensor_raw("s", OCT_DTYPE_F32, w->n_scales > 1, &w->n_scales, scales,
                            (size_t)w->n_scales * sizeof(float)));
    add_init(&g, tensor_raw("z", w->zero_type, w->n_scales > 1, &w->n_scales, zeros,
                            (size_t)w->n_scales * (w->zero_type == OCT_DTYPE_I32 ? 4 : 1)));
    add_init(&g, tensor_raw("w", OCT_DTYPE_I8, 4, w_dims, weights, w->weight_bytes));
    add_init(&g, tensor_raw("ws", OCT_DTYPE_F32, 1, &w->weight_scales, w_scales,
                            (size_t)w->weight_scales * sizeof(float)));
    add_node(&g, named(node("QuantizeLinear", w->loops ? "y s z" : "x s z", "q"), "quantize"));
    add_node(&g, named(node("DequantizeLinear", "q s z", "d"), "dequantize"));
    add_node(&g, named(with_attr(node("DequantizeLinear", "w ws", "wd"), attr_int("axis", 0)),
                       "weights"));
    add_node(&g, named(node("Conv", "d wd", "y"), "conv"));
    add_output(&g, value("y", OCT_DTYPE_F32, -1, NULL));
    return model_of(&g, 13);
}

/* Reading or planning must fail, and name the culprit. */
static void assert_refused(fixture *f, const wrong *w, const char *text)
{
    const pb m = network(w);
    oct_graph *g = NULL;
    oct_plan *p = NULL;
    oct_status st = oct_onnx_load_memory(f->ctx, m.b, m.n, &g);

    if (!st) st = oct_plan_new(g, NULL, &p);
    oct_plan_free(p);
    oct_graph_free(g);
    if (!text) {
        if (st) fail_msg("%s", oct_ctx_error(f->ctx));
        return;
    }
    assert_int_not_equal(st, OCT_OK);
    if (!strstr(oct_ctx_error(f->ctx), text))
        fail_msg("\"%s\" does not name \"%s\"", oct_ctx_error(f->ctx), text);
}

static void wrong_files_are_refused(void **state)
{
    fixture *f = *state;
    wrong w = right;

    assert_refused(f, &w, NULL);
    w.scale = 0;
    assert_refused(f, &w, "node 'quantize'");
    w.scale = NAN;
    assert_refused(f, &w, "node 'quantize'");
    w = right;
    w.zero_type = OCT_DTYPE_I32; /* a zero point that no byte holds */
    assert_refused(f, &w, "node 'quantize'");
    w = right;
    w.n_scales = 2; /* for three channels */
    assert_refused(f, &w, "node 'quantize'");
    w = right;
    w.weight_bytes = 5;
    assert_refused(f, &w, "'w'");
    w = right;
    w.weight_scales = 3;
    assert_refused(f, &w, "node 'weights'");
    w = right;
    w.loops = true;
    assert_refused(f, &w, "node 'quantize'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wrong_files_are_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
