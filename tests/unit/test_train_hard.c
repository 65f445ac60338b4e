/* SPDX-License-Identifier: Apache-2.0 */
/* Hard activations: which become them, and what a network that has them is taught. */
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
static double loss_of(files *t, const oct_graph *g, oct_dataset *d, bool is_hard)
{
    oct_train_epoch e = {.struct_size = sizeof(e)};
    oct_quantize_options q;
    oct_train_options o;
    oct_train *train = NULL;

    oct_quantize_options_init(&q);
    q.hard_activations = is_hard;
    oct_train_options_init(&o);
    o.quantize = &q;
    o.loss = "distill";
    o.epochs = 1;
    o.batch = 2;
    o.rate = 1e-12;
    o.augment = "none";
    assert_ok(t->ctx, oct_train_new(g, d, &o, &train));
    assert_ok(t->ctx, oct_train_run(train, &e));
    oct_train_free(train);
    return e.loss;
}

/* Without labels it learns what the network gave that came, not what hard activations make of it.
 */
static void the_teacher_is_soft(void **state)
{
    const char *root = getenv("OCTET_SOURCE_ROOT");
    files *t = *state;
    oct_graph *g = NULL;
    oct_dataset *d = NULL;
    char path[1024];

    if (!root) skip_test("OCTET_SOURCE_ROOT is not set");
    (void)snprintf(path, sizeof(path), "%s/examples/demo/detector.onnx", root);
    assert_ok(t->ctx, oct_onnx_load(t->ctx, path, &g));
    for (oct_node *n = g->first, *next, *made; n; n = next) {
        next = n->next;
        if (n->op == &oct_op_relu)
            assert_ok(t->ctx, oct_node_become(n, &oct_op_swish, n->in, 1, &made));
    }
    put_folder(t, "p");
    put_picture(t, "p/a.png", 128, 128);
    put_picture(t, "p/b.png", 96, 128);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), NULL, false, &d));
    assert_true(loss_of(t, g, d, true) > 3 * loss_of(t, g, d, false));
    oct_dataset_close(d);
    oct_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_tail_keeps_its_own, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(the_teacher_is_soft, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
