/* SPDX-License-Identifier: Apache-2.0 */
/* From a network to the forward part of training: parameters, statistics, normalization. */
#include "tests/test.h"

#include "data/npz.h"
#include "op/act.h"
#include "op/grad/rules.h"
#include "train/prepare.h"

static const char *shared;

static oct_value *constant(fixture *f, const char *name, int32_t rank, const int64_t *dim)
{
    oct_tensor *t = NULL;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dim);

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (int64_t i = 0; i < oct_type_len(&type); i++)
        ((float *)t->data)[i] = 1 + .25f * (float)i;
    return oct_value_const(f->g, name, t);
}

static oct_value *vector(fixture *f, const char *name)
{
    return constant(f, name, 1, (int64_t[]){4});
}

static oct_value *emit_norm(fixture *f, oct_value *x, const char *name)
{
    static const char *const parts[] = {"scale", "bias", "mean", "var"};
    oct_value *in[5] = {x};
    oct_node *n;

    for (int i = 0; i < 4; i++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "%s.%s", name, parts[i]);
        in[i + 1] = vector(f, text);
    }
    n = oct_emit_node(&f->b, &oct_op_batch_normalization, in, 5, 1);
    oct_emit_f32(&f->b, n, "epsilon", .01f);
    return oct_emitted(&f->b, n);
}

/* conv, bn, Relu; the constants of a formula; another conv with the same weights, bn, LeakyRelu. */
static void make_network(fixture *f)
{
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){2, 4, 3, 3}), *y, *z;
    oct_value *w = constant(f, "w", 4, (int64_t[]){4, 4, 1, 1});
    oct_value *half = oct_scalar(&f->b, .5f), *bins;

    bins = oct_value_const(
        f->g, "dfl.weight",
        tensor_of(f->ctx, OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 1, 1}, (double[]){0, 1, 2, 3}));

    y = oct_emit(&f->b, &oct_op_conv, x, w, vector(f, "b"));
    y = oct_emit(&f->b, &oct_op_relu, emit_norm(f, y, "first"), NULL, NULL);
    y = oct_emit(&f->b, &oct_op_mul, y, half, NULL);
    y = oct_emit(&f->b, &oct_op_mul, y, oct_emit(&f->b, &oct_op_conv, y, bins, NULL), NULL);
    y = oct_emit(&f->b, &oct_op_mul, y, constant(f, "block.alpha", 0, NULL), NULL);
    y = emit_norm(f, oct_emit(&f->b, &oct_op_conv, y, w, NULL), "second");
    z = oct_emit(&f->b, &oct_op_leaky_relu, y, NULL, NULL);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    assert_ok(f->ctx, oct_graph_add_output(f->g, z));
    assert_ok(f->ctx, f->b.status);
}

static const oct_node *find(const fixture *f, const oct_op *op, int skip)
{
    for (const oct_node *n = f->g->first; n; n = n->next)
        if (n->op == op && skip-- == 0) return n;
    return NULL;
}

static void parameters_and_statistics(void **state)
{
    static const struct {
        const char *name;
        oct_param_kind kind;
    } want[] = {
        {"w", OCT_PARAM_WEIGHT},
        {"b", OCT_PARAM_BIAS},
        {"first.scale", OCT_PARAM_NORM_SCALE},
        {"first.bias", OCT_PARAM_NORM_BIAS},
        {"block.alpha", OCT_PARAM_OTHER},
        {"second.scale", OCT_PARAM_NORM_SCALE},
        {"second.bias", OCT_PARAM_NORM_BIAS},
    };
    static const char *const stats[] = {"first.mean", "first.var", "second.mean", "second.var"};
    fixture *f = *state;
    oct_train_prepared p;

    make_network(f);
    assert_ok(f->ctx, oct_train_prepare(f->g, &(oct_train_prepare_options){0}, &p));
    assert_ok(f->ctx, oct_graph_verify(f->g));
    assert_int_equal(p.n_params, OCT_COUNT(want));
    for (int32_t i = 0; i < p.n_params; i++) {
        assert_string_equal(p.params[i].value->name, want[i].name);
        assert_int_equal(p.params[i].kind, want[i].kind);
        assert_int_equal(oct_value_kind_of(p.params[i].value), OCT_VALUE_PARAM);
        assert_non_null(p.params[i].node);
    }
    assert_int_equal(p.n_stats, OCT_COUNT(stats));
    for (int32_t i = 0; i < p.n_stats; i++) {
        const oct_node *n = p.stats[i].next->producer;

        assert_string_equal(p.stats[i].value->name, stats[i]);
        assert_int_equal(oct_value_kind_of(p.stats[i].value), OCT_VALUE_STATE);
        assert_true(oct_node_is(n, &oct_op_batch_norm_train));
        assert_ptr_equal(n->in[3 + i % 2], p.stats[i].value);
        assert_int_equal(p.stats[i].next->out_index, 1 + i % 2);
    }
}

static void activations_are_absorbed(void **state)
{
    fixture *f = *state;
    oct_train_prepared p;
    const oct_node *n;

    make_network(f);
    assert_ok(f->ctx,
              oct_train_prepare(f->g, &(oct_train_prepare_options){.norm_momentum = .97}, &p));
    assert_null(find(f, &oct_op_batch_normalization, 0));
    assert_null(find(f, &oct_op_relu, 0));
    assert_non_null(n = find(f, &oct_op_batch_norm_train, 0));
    assert_int_equal(oct_node_attr(n, "act")->i, OCT_ACT_RELU);
    assert_true(oct_node_attr(n, "epsilon")->f == .01f);
    assert_true(oct_node_attr(n, "momentum")->f == .97f);
    /* What is an output before the activation stays one. */
    assert_non_null(n = find(f, &oct_op_batch_norm_train, 1));
    assert_int_equal(oct_node_attr(n, "act")->i, OCT_ACT_NONE);
    assert_non_null(find(f, &oct_op_leaky_relu, 0));
    assert_ptr_equal(f->g->outputs[0], n->out[0]);
}

static void frozen_statistics_stay(void **state)
{
    fixture *f = *state;
    oct_train_prepared p;

    make_network(f);
    assert_ok(f->ctx,
              oct_train_prepare(f->g, &(oct_train_prepare_options){.freeze_statistics = true}, &p));
    assert_int_equal(p.n_params, 7);
    assert_int_equal(p.n_stats, 0);
    assert_non_null(find(f, &oct_op_batch_normalization, 1));
    assert_null(find(f, &oct_op_batch_norm_train, 0));
}

/* The norm of a layer that is frozen keeps its statistics; others do not. */
static void frozen_layers_keep_statistics(void **state)
{
    fixture *f = *state;
    oct_train_prepare_options o = {0};
    const char *frozen[64] = {NULL};
    oct_train_prepared p;

    make_network(f);
    o.frozen = frozen;
    o.n_frozen = f->g->n_node_ids;
    assert_true(o.n_frozen <= 64);
    frozen[find(f, &oct_op_batch_normalization, 0)->id] = "chosen";
    assert_ok(f->ctx, oct_train_prepare(f->g, &o, &p));
    assert_int_equal(p.n_stats, 2);
    assert_non_null(find(f, &oct_op_batch_normalization, 0));
    assert_null(find(f, &oct_op_batch_normalization, 1));
    assert_non_null(find(f, &oct_op_batch_norm_train, 0));
}

/* Two in a row that share all operands, and one that gives its statistics. */
static void norms_in_a_row(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){2, 4, 3, 3});
    oct_node *first = emit_norm(f, x, "shared")->producer, *last;
    oct_value *in[5] = {first->out[0]};
    oct_train_prepared p;

    memcpy(in + 1, first->in + 1, 4 * sizeof(*in));
    in[0] = oct_emitted(&f->b, oct_emit_node(&f->b, &oct_op_batch_normalization, in, 5, 1));
    last = oct_emit_node(&f->b, &oct_op_batch_normalization, in, 5, 3);
    oct_emit_int(&f->b, last, "training_mode", 1);
    assert_non_null(oct_emitted(&f->b, last));
    for (int i = 0; i < 2; i++)
        assert_ok(f->ctx, oct_graph_add_output(f->g, last->out[i]));
    assert_ok(f->ctx, oct_train_prepare(f->g, &(oct_train_prepare_options){0}, &p));
    assert_ok(f->ctx, oct_graph_verify(f->g));
    assert_int_equal(p.n_params, 2);
    assert_int_equal(p.n_stats, 2);
    assert_non_null(find(f, &oct_op_batch_norm_train, 1));
    assert_non_null(find(f, &oct_op_batch_normalization, 0));
    assert_null(find(f, &oct_op_batch_normalization, 1));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The parameters that PyTorch has in the same network. */
static void names_are_those_of_pytorch(void **state)
{
    fixture *f = *state;
    const char *have[512], *want[512];
    oct_train_prepared p;
    oct_graph *g = NULL;
    oct_npz *z = NULL;
    char path[1024];
    size_t n;

    if (!shared) skip();
    (void)snprintf(path, sizeof(path), "%s/data/yolo-nas/yolo_nas_bccd_train.onnx", shared);
    assert_ok(f->ctx, oct_onnx_load(f->ctx, path, &g));
    (void)snprintf(path, sizeof(path), "%s/data/yolo-nas/training/gradients_tal.npz", shared);
    assert_ok(f->ctx, oct_npz_open(f->ctx, path, &z));
    assert_ok(f->ctx, oct_graph_infer(g));
    assert_ok(f->ctx, oct_train_prepare(g, &(oct_train_prepare_options){0}, &p));
    assert_ok(f->ctx, oct_graph_verify(g));
    n = oct_npz_count(z);
    assert_int_equal(n, 326);
    for (size_t i = 0; i < n; i++)
        want[i] = oct_npz_name(z, i);
    for (int32_t i = 0; i < p.n_params && i < (int32_t)OCT_COUNT(have); i++)
        have[i] = p.params[i].value->name;
    qsort(want, n, sizeof(*want), by_name);
    qsort(have, (size_t)p.n_params, sizeof(*have), by_name);
    for (size_t i = 0; i < n && i < (size_t)p.n_params; i++)
        assert_string_equal(have[i], want[i]);
    assert_int_equal(p.n_params, n);
    oct_npz_close(z);
    oct_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parameters_and_statistics, setup, teardown),
        cmocka_unit_test_setup_teardown(activations_are_absorbed, setup, teardown),
        cmocka_unit_test_setup_teardown(frozen_statistics_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(frozen_layers_keep_statistics, setup, teardown),
        cmocka_unit_test_setup_teardown(norms_in_a_row, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_those_of_pytorch, setup, teardown),
    };

    shared = shared_dir("test_train_prepare");
    return run_test_group(tests);
}
