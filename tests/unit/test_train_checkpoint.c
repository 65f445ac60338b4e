/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a run goes on bit for bit, and the network comes out whole. */
#include "tensor/safetensors.h"
#include "tests/unit/checkpoint_case.h"

static void assert_same_trial(const trial *a, const trial *b)
{
    const size_t n = (size_t)a->params.len * sizeof(float);
    const size_t n_stats = (size_t)a->states.len * sizeof(float);

    assert_memory_equal(a->run.weights, b->run.weights, n);
    assert_memory_equal(a->run.stats, b->run.stats, n_stats);
    assert_memory_equal(a->run.ema_weights, b->run.ema_weights, n);
    assert_memory_equal(a->run.ema_stats, b->run.ema_stats, n_stats);
    for (int i = 0; i < a->optimizer.n_states; i++)
        assert_memory_equal(a->optimizer.state[i], b->optimizer.state[i], n);
    assert_int_equal(a->optimizer.t, b->optimizer.t);
    assert_int_equal(a->run.step, b->run.step);
    assert_int_equal(a->run.epoch, b->run.epoch);
    assert_true(a->run.seed == b->run.seed);
}

static void runs_go_on_bit_for_bit(void **state)
{
    static const char *const names[] = {"sgd", "adam", "adamw"};

    (void)state;
    for (int k = 0; k < 3; k++) {
        fixture *f[2];
        oct_checkpoint *c = NULL;
        trial t[2];

        for (int i = 0; i < 2; i++) {
            assert_int_equal(setup((void **)&f[i]), 0);
            make_trial(f[i], &t[i], names[k], k == 1 ? "paddle" : k ? "yolox" : NULL);
        }
        for (int i = 0; i < 3; i++)
            step(&t[0]);
        t[0].run.epoch = 2;
        assert_ok(f[0]->ctx, oct_checkpoint_save(f[0]->ctx, path, &t[0].run));
        for (int i = 0; i < 3; i++)
            step(&t[0]);
        /* Another process. */
        t[1].run.seed = 0;
        assert_true(oct_checkpoint_sniff(f[1]->ctx, path));
        assert_ok(f[1]->ctx, oct_checkpoint_open(f[1]->ctx, path, &c));
        assert_int_equal(oct_checkpoint_step(c), 3);
        assert_int_equal(oct_checkpoint_epoch(c), 2);
        assert_int_equal(oct_checkpoint_has_ema(c), k > 0);
        assert_ok(f[1]->ctx, oct_checkpoint_restore(c, &t[1].run));
        oct_checkpoint_close(c);
        for (int i = 0; i < 3; i++)
            step(&t[1]);
        assert_same_trial(&t[0], &t[1]);
        for (int i = 0; i < 2; i++) {
            free_trial(f[i], &t[i]);
            assert_int_equal(teardown((void **)&f[i]), 0);
        }
    }
}

/* The first output of a network without parameters, on one fixed picture. */
static oct_tensor *answer(oct_ctx *ctx, const oct_graph *g)
{
    oct_tensor *x = NULL, *y = NULL;

    assert_int_equal(g->n_inputs, 1);
    assert_ok(ctx, oct_tensor_make(ctx, &g->inputs[0]->type, &x));
    for (int64_t i = 0; i < oct_tensor_len(x); i++)
        ((float *)x->data)[i] = (float)(i % 7) - 3;
    assert_ok(ctx, oct_graph_eval(g, &x, &y, NULL));
    oct_tensor_unref(x);
    return y;
}

/* What the network in the file answers, against the run's own with these numbers. */
static void check_network(fixture *f, const trial *t, bool ema, const float *w, const float *stats)
{
    oct_checkpoint *c = NULL;
    oct_graph *own = NULL, *read = NULL;
    oct_tensor *want, *got;

    assert_ok(f->ctx, oct_params_store(&t->params, w));
    assert_ok(f->ctx, oct_params_store(&t->states, stats));
    assert_ok(f->ctx, oct_graph_clone(f->g, &own));
    oct_graph_params_to_consts(own);
    want = answer(f->ctx, own);
    assert_ok(f->ctx, oct_checkpoint_open(f->ctx, path, &c));
    assert_ok(f->ctx, oct_checkpoint_graph(c, ema, &read));
    oct_checkpoint_close(c); /* the graph lives on */
    unlink(path);
    for (int32_t i = 0; i < t->params.n; i++) {
        const oct_value *v = oct_graph_find_value(read, t->params.v[i].name);

        assert_non_null(v);
        assert_int_equal(oct_value_kind_of(v), OCT_VALUE_CONST);
        assert_true(oct_type_equal(&v->type, &t->params.v[i].value->type));
    }
    got = answer(f->ctx, read);
    assert_true(oct_tensor_equal(want, got));
    oct_tensor_unref(want);
    oct_tensor_unref(got);
    oct_graph_free(own);
    oct_graph_free(read);
}

static void the_network_is_inside(void **state)
{
    fixture *f = *state;
    float *w, *stats;
    trial t;

    make_trial(f, &t, "sgd", "paddle");
    for (int i = 0; i < 5; i++)
        step(&t);
    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    check_network(f, &t, false, t.run.weights, t.run.stats);

    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    w = oct_params_buffer(&t.params);
    stats = oct_params_buffer(&t.states);
    oct_ema_read(oct_ema_find("paddle"), 0, 5, 100, t.run.ema_weights, t.run.weights, w,
                 t.params.len, 1);
    oct_ema_read(oct_ema_find("paddle"), 0, 5, 100, t.run.ema_stats, t.run.stats, stats,
                 t.states.len, 1);
    assert_memory_not_equal(w, t.run.weights, 4 * sizeof(float));
    check_network(f, &t, true, w, stats);
    oct_free(f->ctx, w);
    oct_free(f->ctx, stats);
    free_trial(f, &t);
}

/* A quantization-aware run has its integer network beside; that of others is left alone. */
static void the_integer_network_is_inside(void **state)
{
    fixture *f = *state;
    oct_checkpoint *c = NULL;
    oct_graph *quantized = NULL, *read = NULL;
    oct_tensor *want, *got;
    trial t;

    make_trial(f, &t, "sgd", NULL);
    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    assert_ok(f->ctx, oct_checkpoint_open(f->ctx, path, &c));
    assert_ok(f->ctx, oct_checkpoint_quantized(c, &read));
    assert_null(read);
    oct_checkpoint_close(c);

    assert_ok(f->ctx, oct_graph_clone(f->g, &quantized));
    oct_graph_params_to_consts(quantized);
    want = answer(f->ctx, quantized);
    t.run.quantized = quantized;
    step(&t);
    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    assert_ok(f->ctx, oct_checkpoint_open(f->ctx, path, &c));
    assert_ok(f->ctx, oct_checkpoint_quantized(c, &read));
    assert_ok(f->ctx, oct_checkpoint_restore(c, &t.run));
    oct_checkpoint_close(c);
    got = answer(f->ctx, read);
    assert_true(oct_tensor_equal(want, got));
    oct_tensor_unref(want);
    oct_tensor_unref(got);
    oct_graph_free(read);
    oct_graph_free(quantized);
    free_trial(f, &t);
}

/* The network that comes out of a checkpoint is the network of the checkpoint, again and again. */
static void the_network_stays_the_same(void **state)
{
    fixture *f = *state;
    oct_checkpoint *c = NULL;
    oct_graph *read = NULL;
    float *before;
    trial t;

    make_trial(f, &t, "sgd", NULL);
    step(&t);
    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    before = oct_params_buffer(&t.params);
    memcpy(before, t.run.weights, (size_t)t.params.len * sizeof(float));
    for (int i = 0; i < 3; i++) {
        oct_graph *last = read;

        assert_ok(f->ctx, oct_checkpoint_open(f->ctx, path, &c));
        assert_ok(f->ctx, oct_checkpoint_graph(c, false, &read));
        oct_graph_free(last);
        t.run.g = read;
        t.run.weights[0] = 0;
        assert_ok(f->ctx, oct_checkpoint_restore(c, &t.run));
        assert_memory_equal(t.run.weights, before, (size_t)t.params.len * sizeof(float));
        oct_checkpoint_close(c);
        assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    }
    t.run.g = f->g; /* the network as it was at first */
    assert_ok(f->ctx, oct_checkpoint_open(f->ctx, path, &c));
    assert_ok(f->ctx, oct_checkpoint_restore(c, &t.run));
    oct_checkpoint_close(c);
    oct_graph_free(read);
    oct_free(f->ctx, before);
    free_trial(f, &t);
}

/* Everybody can read the tensors: their names, shapes and numbers. */
static void others_can_read_it(void **state)
{
    fixture *f = *state;
    const oct_prop notes[] = {{"best", "0.61"}, {"classes", "a\nb"}};
    oct_checkpoint *c = NULL;
    oct_safetensors *s = NULL;
    trial t;
    size_t size;
    int32_t at;

    make_trial(f, &t, "adamw", "yolox");
    step(&t);
    t.run.notes = notes;
    t.run.n_notes = 2;
    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    assert_ok(f->ctx, oct_safetensors_open(f->ctx, path, &s));
    assert_int_equal(oct_safetensors_count(s), 3 + 2 + 5 + 2 * 3 + 1);
    at = oct_safetensors_find(s, "param/conv/weight");
    assert_true(at >= 0);
    assert_dims(oct_safetensors_type(s, at), 4, (int64_t[]){CHANNELS, 3, 1, 1});
    assert_memory_equal(oct_safetensors_data(s, at, &size), t.run.weights, CHANNELS * 3 * 4);
    assert_true(oct_safetensors_find(s, "optimizer/v/shift") >= 0);
    assert_true(oct_safetensors_find(s, "state/variance") >= 0);
    assert_string_equal(oct_safetensors_note(s, "seed"), "18446744073709551615");
    /* The network is small: what is in the tensors is not in it. */
    oct_safetensors_data(s, oct_safetensors_find(s, "octet.network"), &size);
    assert_true(size < 1024);
    oct_safetensors_close(s);

    assert_ok(f->ctx, oct_checkpoint_open(f->ctx, path, &c));
    assert_string_equal(oct_checkpoint_recipe(c), "lr: 0.1\n");
    assert_string_equal(oct_checkpoint_note(c, "best"), "0.61");
    assert_string_equal(oct_checkpoint_note(c, "classes"), "a\nb");
    assert_null(oct_checkpoint_note(c, "step"));
    oct_checkpoint_close(c);
    free_trial(f, &t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(runs_go_on_bit_for_bit),
        CASE(the_network_is_inside),
        CASE(the_integer_network_is_inside),
        CASE(the_network_stays_the_same),
        CASE(others_can_read_it),
    };

    return run_test_group(tests);
}
