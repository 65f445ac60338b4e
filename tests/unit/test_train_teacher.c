/* SPDX-License-Identifier: Apache-2.0 */
/* What a network is taught that quantization changed: hard activations, learned weights. */
#include <octet/onnx.h>
#include <octet/train.h>
#include <stdlib.h>

#include "pass/rewrite.h"
#include "quant/correct/correct.h"
#include "tests/unit/data_files.h"
#include "tests/unit/exec_net.h"

static int count(const oct_graph *g, const oct_op *op)
{
    int n = 0;

    for (const oct_node *k = g->first; k; k = k->next)
        n += k->op == op;
    return n;
}

/* conv, SiLU, conv, squeeze and excitation by a Sigmoid, conv; a Sigmoid of scores at the end. */
static void the_tail_keeps_its_own(void **state)
{
    static const conv_case k = {8, 8, 3, 1, 1, 1, 1};
    files *t = *state;
    fixture *f = t->f;
    oct_value *x = picture(f, 1, 8, 8, 8), *y;
    int32_t n = 0;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    y = emit(f, &oct_op_swish, conv(f, &rng, x, &k), NULL);
    y = emit(f, &oct_op_mul, y, emit(f, &oct_op_sigmoid, conv(f, &rng, y, &k), NULL));
    y = emit(f, &oct_op_sigmoid, conv(f, &rng, y, &k), NULL);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    assert_ok(f->ctx, oct_harden(f->g, "auto", &n));
    assert_int_equal(n, 2);
    assert_int_equal(count(f->g, &oct_op_hard_swish), 1);
    assert_int_equal(count(f->g, &oct_op_hard_sigmoid), 1);
    assert_int_equal(count(f->g, &oct_op_sigmoid), 1);
    for (const oct_node *q = f->g->first; q; q = q->next)
        if (q->op == &oct_op_hard_sigmoid)
            assert_true(fabsf(oct_node_attr(q, "alpha")->f * 6 - 1) < 1e-6f);
    assert_ok(f->ctx, oct_graph_verify(f->g));
}

/* The loss of the first epoch, of weights that hardly move. */
static double loss_of(files *t, const oct_graph *g, oct_dataset *d, const oct_quantize_options *q,
                      const oct_graph *teacher)
{
    oct_train_epoch e = {.struct_size = sizeof(e)};
    oct_train_options o;
    oct_train *train = NULL;

    oct_train_options_init(&o);
    o.quantize = q;
    o.loss = "distill";
    o.teacher = teacher;
    o.epochs = 1;
    o.batch = 2;
    o.rate = 1e-12;
    o.augment = "none";
    assert_ok(t->ctx, oct_train_new(g, d, &o, &train));
    assert_ok(t->ctx, oct_train_run(train, &e));
    oct_train_free(train);
    return e.loss;
}

static void open_pictures(files *t, oct_dataset **d)
{
    static const char *const names[] = {"p/a.png", "p/b.png", "p/c.png", "p/d.png"};

    put_folder(t, "p");
    for (int i = 0; i < 4; i++)
        put_picture(t, names[i], 128 - 8 * i, 128);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), NULL, false, d));
}

/* Without labels it learns what the network gave that came, not what hard activations make of it.
 */
static void the_teacher_is_soft(void **state)
{
    const char *root = getenv("OCTET_SOURCE_ROOT");
    files *t = *state;
    oct_quantize_options soft, hard;
    oct_graph *g = NULL;
    oct_dataset *d = NULL;
    char path[1024];

    if (!root) skip_test("OCTET_SOURCE_ROOT is not set");
    (void)snprintf(path, sizeof(path), "%s/examples/demo/detector.onnx", root);
    assert_ok(t->ctx, oct_onnx_load(t->ctx, path, &g));
    open_pictures(t, &d);
    oct_quantize_options_init(&soft);
    hard = soft;
    hard.hard_activations = 1;
    for (oct_node *n = g->first, *next, *made; n; n = next) {
        next = n->next;
        if (n->op == &oct_op_relu)
            assert_ok(t->ctx, oct_node_become(n, &oct_op_swish, n->in, 1, &made));
    }
    assert_true(loss_of(t, g, d, &hard, NULL) > 3 * loss_of(t, g, d, &soft, NULL));
    oct_dataset_close(d);
    oct_graph_free(g);
}

static void add_classifier(fixture *f)
{
    static const conv_case layers[] = {
        {3, 16, 3, 2, 1, 1, 1}, {16, 16, 3, 2, 1, 1, 1}, {16, 16, 3, 1, 1, 1, 1}};
    oct_value *y = picture(f, 1, 3, 32, 32);
    oct_rng rng;

    oct_rng_init(&rng, 3);
    for (size_t i = 0; i < OCT_COUNT(layers); i++)
        y = emit(f, &oct_op_relu, conv(f, &rng, y, &layers[i]), NULL);
    y = emit(f, &oct_op_flatten, emit(f, &oct_op_global_average_pool, y, NULL), NULL);
    y = emit(f, &oct_op_gemm, y, weights(f, &rng, 2, (int64_t[]){16, 10}));
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
}

/* ... and not what its weights are after blocks learned few bits. */
static void the_teacher_has_its_own_weights(void **state)
{
    files *t = *state;
    const oct_graph *g = t->f->g;
    oct_quantize_options q;
    oct_dataset *d = NULL;
    double loss, given;

    add_classifier(t->f);
    open_pictures(t, &d);
    oct_quantize_options_init(&q);
    q.weight_bits = 3;
    q.lsq = 1;
    q.reconstruct_steps = 1;
    loss = loss_of(t, g, d, &q, NULL);
    given = loss_of(t, g, d, &q, g);
    assert_true(given > 0);
    assert_true(fabs(loss - given) < 1e-3 * given);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_tail_keeps_its_own, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(the_teacher_is_soft, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(the_teacher_has_its_own_weights, setup_files,
                                        teardown_files),
    };

    return run_test_group(tests);
}
