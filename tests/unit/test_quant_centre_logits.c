/* SPDX-License-Identifier: Apache-2.0 */
/* Logits that a Softmax alone reads are moved to where symmetric codes are. */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

#include "quant/provenance.h"

enum { BINS = 8 };

/* Logits of about 10 to 30, and their distributions. */
static oct_value *network(fixture *f, oct_value *x)
{
    oct_value *y;
    oct_rng rng;

    oct_rng_init(&rng, 3);
    y = conv(f, &rng, x, &(conv_case){3, 16, 3, 1, 1, 1, 1});
    y = emit(f, &oct_op_relu, y, NULL);
    y = conv(f, &rng, y, &(conv_case){16, BINS, 1, 1, 1, 0, 1});
    y->producer->name = "logits";
    for (int64_t i = 0; i < oct_tensor_len(y->producer->in[1]->data); i++)
        ((float *)y->producer->in[1]->data->data)[i] *= .3f;
    for (int64_t i = 0; i < BINS; i++)
        ((float *)y->producer->in[2]->data->data)[i] += 20;
    y = emit(f, &oct_op_softmax, y, NULL);
    assert_ok(f->ctx, oct_node_set_int(y->producer, "axis", 1));
    y->producer->name = "distribution";
    output(f, y);
    return y->producer->in[0];
}

static oct_quantized *quantize_for(files *t, const oct_dataset *d, const char *target)
{
    oct_quantize_options o;
    oct_quantized *q = NULL;

    oct_quantize_options_init(&o);
    o.target = target;
    o.tail = "distribution";
    o.bias_correction = "none";
    assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
    return q;
}

static const float *bias_of_logits(const oct_graph *g)
{
    return oct_node_const(oct_graph_find_node(g, "logits"), 2)->data;
}

static double scale_of_logits(const oct_graph *g)
{
    const oct_value *y = oct_graph_find_node(g, "logits")->out[0];

    for (int32_t i = 0; i < y->n_users; i++)
        if (oct_node_is(y->users[i], &oct_op_quantize_linear))
            return oct_tensor_get_f64(oct_node_const(y->users[i], 1), 0);
    return 0;
}

static void same_answers(files *t, const oct_graph *a, const oct_graph *b)
{
    oct_tensor *want = answer(t, a), *got = answer(t, b);

    for (int64_t i = 0; i < oct_tensor_len(want); i++)
        assert_true(fabs(oct_tensor_get_f64(want, i) - oct_tensor_get_f64(got, i)) < 1e-5);
    oct_tensor_unref(want);
    oct_tensor_unref(got);
}

/* A copy of the float network, as it was when the file was made. */
static oct_graph *replayed(files *t, const oct_quantized *q)
{
    oct_graph *g = NULL;

    assert_ok(t->ctx, oct_graph_clone(t->f->g, &g));
    assert_ok(t->ctx, oct_origin_replay(oct_quantized_graph(q), g));
    return g;
}

static void logits_are_centred(void **state)
{
    files *t = *state;
    oct_value *x = picture(t->f, 1, 3, 8, 8);
    const float *before;
    oct_quantized *q;
    oct_dataset *d;
    oct_graph *g;
    double by;

    (void)network(t->f, x);
    before = bias_of_logits(t->f->g);
    d = items(t, x, 3);
    q = quantize_for(t, d, "npu-pow2");
    g = replayed(t, q);
    by = (double)before[0] - (double)bias_of_logits(g)[0];
    assert_true(by > 10 && by < 30);
    for (int i = 0; i < BINS; i++)
        assert_true(fabs((double)before[i] - (double)bias_of_logits(g)[i] - by) < 1e-5);
    assert_true(scale_of_logits(oct_quantized_graph(q)) * 127 < by);
    same_answers(t, t->f->g, g);
    oct_graph_free(g);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* A qmap is about the file's own biases. */
static void qmaps_go_with_the_file(void **state)
{
    files *t = *state;
    oct_value *x = picture(t->f, 1, 3, 8, 8);
    oct_graph *again = NULL;
    oct_quantized *q;
    oct_dataset *d;

    (void)network(t->f, x);
    d = items(t, x, 3);
    q = quantize_for(t, d, "npu-pow2");
    assert_ok(t->ctx, oct_quantized_save_qmap(q, below(t, "q.json")));
    assert_ok(t->ctx, oct_qmap_apply(t->f->g, below(t, "q.json"), &again));
    same_answers(t, oct_quantized_graph(q), again);
    oct_graph_free(again);
    oct_quantized_free(q);
    oct_dataset_close(d);
}

/* Zero points do that elsewhere; and what others read has to stay. */
static void others_stay(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, picture(t->f, 1, 3, 8, 8), 3);

    for (int shared = 0; shared < 2; shared++) {
        oct_value *logits;
        oct_quantized *q;
        oct_graph *g;

        restart(t->f);
        logits = network(t->f, picture(t->f, 1, 3, 8, 8));
        if (shared) output(t->f, emit(t->f, &oct_op_sigmoid, logits, NULL));
        q = quantize_for(t, d, shared ? "npu-pow2" : "octet");
        g = replayed(t, q);
        assert_memory_equal(bias_of_logits(g), bias_of_logits(t->f->g), BINS * sizeof(float));
        oct_graph_free(g);
        oct_quantized_free(q);
    }
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(logits_are_centred, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(qmaps_go_with_the_file, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(others_stay, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
