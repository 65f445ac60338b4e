/* SPDX-License-Identifier: Apache-2.0 */
/* Real networks are differentiated: every parameter gets a gradient, quantized ones are refused. */
#include "grad/grad.h"
#include "op/grad/rules.h"
#include "tests/test.h"
#include "train/prepare.h"

/* The network prepared for training, with the sum of all its results as loss. */
static oct_value *load(fixture *f, const char *name, oct_graph **g, oct_train_prepared *found)
{
    oct_train_prepare_options o = {0};
    oct_value *loss = NULL;
    oct_builder b = {0};
    char path[512];

    snprintf(path, sizeof(path), "%s/data/%s", getenv("OCTET_SHARED"), name);
    assert_ok(f->ctx, oct_onnx_load(f->ctx, path, g));
    for (int32_t i = 0; i < (*g)->n_inputs; i++) {
        oct_type *t = &(*g)->inputs[i]->type;

        for (int32_t d = 0; d < t->rank; d++)
            if (t->dim[d] < 0) t->dim[d] = 1;
    }
    assert_ok(f->ctx, oct_graph_infer(*g));
    assert_ok(f->ctx, oct_train_prepare(*g, &o, found));
    b.g = *g;
    for (int32_t i = 0; i < (*g)->n_outputs; i++) {
        oct_value *y = (*g)->outputs[i];
        int64_t axes[OCT_MAX_RANK];

        if (y->type.dtype != OCT_DTYPE_F32) continue;
        for (int32_t d = 0; d < y->type.rank; d++)
            axes[d] = d;
        y = oct_grad_reduce(&b, &oct_op_reduce_sum, y, axes, y->type.rank, false);
        loss = loss ? oct_emit(&b, &oct_op_add, loss, y, NULL) : y;
    }
    assert_ok(f->ctx, b.status);
    assert_non_null(loss);
    return loss;
}

static oct_status differentiate(oct_graph *g, oct_value *loss, const oct_train_prepared *found,
                                oct_value ***dwrt)
{
    const size_t n = (size_t)found->n_params;
    oct_value **wrt = oct_arena_array(g->arena, n, sizeof(oct_value *));

    *dwrt = oct_arena_array(g->arena, n, sizeof(oct_value *));
    assert_true(wrt && *dwrt);
    for (size_t i = 0; i < n; i++)
        wrt[i] = found->params[i].value;
    return oct_grad(g, loss, wrt, found->n_params, *dwrt);
}

static void every_parameter_has_a_gradient(void **state)
{
    static const char *const names[] = {
        "models/mobilenet_v1_0.25_224.onnx",
        "models/nanodet_m_416.onnx",
        "models/picodet_s_416.onnx",
        "models/yolov8n.onnx",
        "models/yolox_nano_416.onnx",
        "pt2/mobilenet_v3_small_035.onnx",
        "pt2/resnet_tiny.onnx",
        "pt2/squeezenet1_1.onnx",
        "yolo-nas/yolo_nas_bccd_folded.onnx",
        "yolo-nas/yolo_nas_bccd_train.onnx",
        "conformance/onnx/light/light_densenet121.onnx",
        "conformance/onnx/light/light_inception_v2.onnx",
        "conformance/onnx/light/light_resnet50.onnx",
        "conformance/onnx/light/light_shufflenet.onnx",
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        oct_train_prepared found;
        oct_graph *g = NULL;
        oct_value **dwrt, *loss = load(f, names[i], &g, &found);

        assert_true(found.n_params > 0);
        assert_ok(f->ctx, differentiate(g, loss, &found, &dwrt));
        assert_ok(f->ctx, oct_graph_verify(g));
        for (int32_t k = 0; k < found.n_params; k++) {
            const oct_type *t = &found.params[k].value->type;

            if (dwrt[k]->data) /* a constant: zeros */
                fail_msg("%s: '%s' has no gradient", names[i], found.params[k].value->name);
            assert_dims(&dwrt[k]->type, t->rank, t->dim);
        }
        oct_graph_free(g);
    }
}

static void a_quantized_network_is_refused(void **state)
{
    fixture *f = *state;
    oct_train_prepared found;
    oct_graph *g = NULL;
    oct_value **dwrt, *loss = load(f, "models/yolov8n_qdq_int8.onnx", &g, &found);

    assert_fails(f->ctx, differentiate(g, loss, &found, &dwrt), OCT_ERR_UNSUPPORTED,
                 "(QuantizeLinear): quantized values carry no gradient");
    oct_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_parameter_has_a_gradient, setup, teardown),
        cmocka_unit_test_setup_teardown(a_quantized_network_is_refused, setup, teardown),
    };

    if (!shared_dir("test_grad_models")) return 77;
    return run_test_group(tests);
}
