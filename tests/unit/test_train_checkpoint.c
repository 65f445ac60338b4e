/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a run goes on bit for bit, the network comes out whole, other files are refused. */
#include <unistd.h>

#include "base/str.h"
#include "onnx/write.h"
#include "tensor/safetensors.h"
#include "tests/unit/exec_net.h"
#include "train/checkpoint_parts.h"
#include "train/ema.h"

enum { CHANNELS = 4 };

static char path[64];

/* A small network and everything a run of it has. */
typedef struct trial {
    oct_params params, states;
    oct_optimizer optimizer;
    oct_run_state run;
} trial;

static int setup_path(void **state)
{
    snprintf(path, sizeof(path), "/tmp/octet-test-checkpoint-%d", (int)getpid());
    return setup(state);
}

static int teardown_path(void **state)
{
    unlink(path);
    return teardown(state);
}

/* x -> Conv(w) -> BatchNormalization -> Mul(2.5), which is not trained. */
static void build(fixture *f, trial *t)
{
    static const char *const names[] = {"scale", "shift", "mean", "variance"};
    const int64_t c = CHANNELS;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 5, 5}), *bn[5], *w, *y;
    oct_node *norm;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    w = weights(f, &rng, 4, (int64_t[]){CHANNELS, 3, 1, 1});
    w->name = "conv/weight";
    bn[0] = infer(f, node(f, &oct_op_conv, x, w, NULL));
    for (int i = 1; i < 5; i++) {
        bn[i] = weights(f, &rng, 1, &c);
        bn[i]->name = names[i - 1];
    }
    for (int i = 0; i < CHANNELS; i++)
        ((float *)bn[4]->data->data)[i] = 1.0f + (float)i;
    norm = oct_emit_node(&f->b, &oct_op_batch_normalization, bn, 5, 1);
    assert_non_null(norm);
    y = emit(f, &oct_op_mul, infer(f, norm), oct_scalar(&f->b, 2.5f));
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));

    oct_params_init(&t->params, f->ctx);
    oct_params_init(&t->states, f->ctx);
    for (int i = 0; i < 5; i++) {
        static const oct_param_kind kinds[] = {OCT_PARAM_WEIGHT, OCT_PARAM_NORM_SCALE,
                                               OCT_PARAM_NORM_BIAS, OCT_PARAM_OTHER,
                                               OCT_PARAM_OTHER};
        oct_value *v = i ? bn[i] : w;

        oct_value_to_param(v, i > 2);
        assert_ok(f->ctx, oct_params_add_value(i > 2 ? &t->states : &t->params, v, kinds[i]));
    }
    assert_ok(f->ctx, oct_params_finish(&t->params));
    assert_ok(f->ctx, oct_params_finish(&t->states));
}

static void make_trial(fixture *f, trial *t, const char *optimizer, const char *ema)
{
    oct_optimizer_options o;

    build(f, t);
    oct_optimizer_options_init(&o);
    assert_ok(f->ctx,
              oct_optimizer_init(&t->optimizer, &t->params, oct_optimizer_find(optimizer), &o));
    t->run = (oct_run_state){.g = f->g,
                             .params = &t->params,
                             .states = &t->states,
                             .weights = oct_params_buffer(&t->params),
                             .stats = oct_params_buffer(&t->states),
                             .ema_weights = oct_params_buffer(&t->params),
                             .ema_stats = oct_params_buffer(&t->states),
                             .optimizer = &t->optimizer,
                             .ema = ema,
                             .ema_total = 100,
                             .seed = UINT64_MAX,
                             .recipe = "lr: 0.1\n"};
    oct_params_load(&t->params, t->run.weights);
    oct_params_load(&t->states, t->run.stats);
    if (!ema) return;
    oct_ema_start(oct_ema_find(ema), t->run.ema_weights, t->run.weights, t->params.len);
    oct_ema_start(oct_ema_find(ema), t->run.ema_stats, t->run.stats, t->states.len);
}

static void free_trial(fixture *f, trial *t)
{
    oct_optimizer_fini(&t->optimizer);
    oct_free(f->ctx, t->run.weights);
    oct_free(f->ctx, t->run.stats);
    oct_free(f->ctx, t->run.ema_weights);
    oct_free(f->ctx, t->run.ema_stats);
    oct_params_fini(&t->params);
    oct_params_fini(&t->states);
}

/* A step with gradients from its number. */
static void step(trial *t)
{
    const oct_ema_row *ema = t->run.ema ? oct_ema_find(t->run.ema) : NULL;
    const oct_rates rates = {.lr = 0.1, .bias_lr = 0.1, .momentum = -1};
    float g[CHANNELS * 3];
    const float *grad[3] = {g, g, g};
    oct_rng rng;

    oct_rng_init(&rng, (uint64_t)t->run.step + t->run.seed);
    for (int i = 0; i < CHANNELS * 3; i++)
        g[i] = (float)oct_rng_normal(&rng);
    oct_optimizer_step(&t->optimizer, t->run.weights, grad, 1.0, &rates, 1);
    for (int32_t i = 0; i < t->states.n; i++)
        t->run.stats[t->states.v[i].offset] += g[i] * g[i];
    t->run.step++;
    if (!ema) return;
    t->run.ema_updates++;
    oct_ema_update(ema, 0, t->run.ema_updates, 100, t->run.ema_weights, t->run.weights,
                   t->params.len, 1);
    oct_ema_update(ema, 0, t->run.ema_updates, 100, t->run.ema_stats, t->run.stats, t->states.len,
                   1);
}

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

/* Restoring `path` into `t` must fail with this reason, and leave `t` alone. */
static void assert_refused(fixture *f, trial *t, const char *why)
{
    const float before = t->run.weights[0];
    oct_checkpoint *c = NULL;

    assert_ok(f->ctx, oct_checkpoint_open(f->ctx, path, &c));
    assert_fails(f->ctx, oct_checkpoint_restore(c, &t->run), OCT_ERR_ARG, why);
    assert_true(t->run.weights[0] == before);
    oct_checkpoint_close(c);
}

static void other_networks_are_refused(void **state)
{
    fixture *f = *state;
    oct_optimizer_options o;
    oct_optimizer other;
    trial t;
    oct_node *conv;

    make_trial(f, &t, "sgd", NULL);
    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    t.run.weights[0] += 1;

    oct_optimizer_options_init(&o);
    assert_ok(f->ctx, oct_optimizer_init(&other, &t.params, oct_optimizer_find("adamw"), &o));
    t.run.optimizer = &other;
    assert_refused(f, &t, "optimizer was sgd, not adamw");
    oct_optimizer_fini(&other);
    t.run.optimizer = &t.optimizer;
    t.run.ema = "yolox";
    assert_refused(f, &t, "average was none, not yolox");
    t.run.ema = NULL;

    t.params.v[1].name = "gamma";
    assert_refused(f, &t, "it has no 'param/gamma'");
    t.params.v[1].name = "scale";
    t.params.v[1].len--;
    assert_refused(f, &t, "'param/scale' is float32[4]");
    t.params.v[1].len++;
    t.params.n--; /* the last one is frozen now */
    assert_refused(f, &t, "'param/shift' is not trained here");
    t.params.n++;
    conv = f->g->first;
    assert_ok(f->ctx, oct_node_set_ints(conv, "strides", (int64_t[]){1, 1}, 2));
    assert_ok(f->ctx, oct_node_set_ints(conv, "pads", (int64_t[]){1, 1, 1, 1}, 4));
    assert_refused(f, &t, "another network: attributes of 'Conv~");
    free_trial(f, &t);
}

static void changed_recipes_are_told(void **state)
{
    static const char was[] = "# made by octet\nlr: 0.1\ndata:\n  train: a.json\n  size: 640\n"
                              "classes:\n- cat\n- dog\nfreeze: [a, b]\n";
    static const struct {
        const char *now, *key, *old_value, *new_value;
    } cases[] = {
        {was, NULL, NULL, NULL},
        {"lr: 0.1   # x\n", "lr", "0.1", "0.1   # x"},
        {"\nlr:   0.1\r\ndata:\n    train: a.json\n    size: 640\nclasses:\n  - cat\n  - dog\n"
         "freeze: [a, b]",
         NULL, NULL, NULL},
        {"lr: 0.1\ndata:\n  train: b.json\n", "data.train", "a.json", "b.json"},
        {"lr: 0.1\nepochs: 3\n", "epochs", "", "3"},
        {"lr: 0.1\ndata:\n  train: a.json\n  size: 640\nclasses:\n- cat\n- cow\n", "classes",
         "- dog", "- cow"},
        {"lr: 0.1\ndata:\n  train: a.json\n  size: 640\nclasses:\n- cat\nfreeze: [a, b]\n",
         "classes", "- dog", ""},
        {"lr: 0.1\ndata:\n  train: a.json\n  size: 640\nclasses:\n- cat\n- dog\n", "freeze",
         "[a, b]", ""},
        {"", "lr", "0.1", ""},
    };
    fixture *f = *state;
    oct_checkpoint *c = NULL;
    trial t;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_arena *a = oct_arena_new(f->ctx);
        oct_recipe_difference d;

        assert_ok(f->ctx, oct_recipe_compare(a, was, cases[i].now, &d));
        assert_int_equal(!d.key, !cases[i].key);
        if (d.key) {
            assert_string_equal(d.key, cases[i].key);
            assert_string_equal(d.old_value, cases[i].old_value);
            assert_string_equal(d.new_value, cases[i].new_value);
        }
        oct_arena_free(a);
    }
    make_trial(f, &t, "sgd", NULL);
    t.run.recipe = was;
    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    assert_ok(f->ctx, oct_checkpoint_open(f->ctx, path, &c));
    assert_ok(f->ctx, oct_checkpoint_check_recipe(c, was));
    assert_fails(f->ctx, oct_checkpoint_check_recipe(c, "lr: 0.2\n"), OCT_ERR_ARG,
                 "'lr' was '0.1' and is now '0.2'");
    oct_checkpoint_close(c);
    free_trial(f, &t);
}

/* Opens a file of these bytes, and what is in it. */
static oct_status try_bytes(fixture *f, trial *t, const void *p, size_t size)
{
    oct_checkpoint *c = NULL;
    oct_graph *g = NULL;
    oct_status st;

    FILE *out;

    unlink(path); /* the file that is mapped stays as it is */
    out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(p, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    OCT_TRY(oct_checkpoint_open(f->ctx, path, &c));
    st = oct_checkpoint_graph(c, false, &g);
    if (!st) oct_graph_free(g);
    if (!st) st = oct_checkpoint_restore(c, &t->run);
    oct_checkpoint_close(c);
    return st;
}

static void broken_files_are_refused(void **state)
{
    fixture *f = *state;
    oct_file *file = NULL;
    oct_rng rng;
    uint8_t *copy;
    trial t;
    size_t size;

    make_trial(f, &t, "sgd", "yolox");
    step(&t);
    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    assert_ok(f->ctx, oct_file_map(f->ctx, path, &file));
    size = oct_file_size(file);
    copy = malloc(size);
    assert_non_null(copy);
    for (size_t n = 0; n < size; n += 97) { /* cut off anywhere */
        assert_int_equal(try_bytes(f, &t, oct_file_data(file), n), OCT_ERR_FORMAT);
        assert_non_null(strstr(oct_ctx_error(f->ctx), path));
    }
    oct_rng_init(&rng, 11);
    for (int i = 0; i < 500; i++) { /* some bytes are other ones: a reason, or a number changed */
        memcpy(copy, oct_file_data(file), size);
        for (uint64_t k = oct_rng_below(&rng, 4) + 1; k; k--)
            copy[oct_rng_below(&rng, size)] = (uint8_t)oct_rng_u64(&rng);
        if (try_bytes(f, &t, copy, size)) assert_true(oct_ctx_error(f->ctx)[0]);
    }
    free(copy);
    oct_file_unref(file);
    free_trial(f, &t);
}

/* Saves the checkpoint that is at `path` once more, with one note or tensor changed or left out. */
static oct_status open_changed(fixture *f, const char *key, const char *text, const char *tensor)
{
    oct_safetensors_entry entry[64];
    oct_safetensors_text note[32];
    oct_safetensors *s = NULL;
    oct_checkpoint *c = NULL;
    oct_graph *g = NULL;
    oct_status st;
    char other[80];
    int n = 0, n_notes = 0;
    size_t size;

    snprintf(other, sizeof(other), "%s.changed", path);
    assert_ok(f->ctx, oct_safetensors_open(f->ctx, path, &s));
    for (int32_t i = 0; i < oct_safetensors_count(s); i++)
        if (!tensor || strcmp(oct_safetensors_name(s, i), tensor) != 0)
            entry[n++] =
                (oct_safetensors_entry){oct_safetensors_name(s, i), *oct_safetensors_type(s, i),
                                        oct_safetensors_data(s, i, &size)};
    for (int32_t i = 0; i < oct_safetensors_n_notes(s); i++) {
        const char *k = oct_safetensors_note_key(s, i);
        const bool is_it = key && strcmp(k, key) == 0;

        if (is_it && !text) continue;
        note[n_notes++] = (oct_safetensors_text){k, is_it ? text : oct_safetensors_note(s, k)};
    }
    assert_ok(f->ctx, oct_safetensors_save(f->ctx, other, entry, n, note, n_notes));
    oct_safetensors_close(s);
    st = oct_checkpoint_open(f->ctx, other, &c);
    if (!st) st = oct_checkpoint_graph(c, true, &g);
    if (!st) oct_graph_free(g);
    oct_checkpoint_close(c);
    unlink(other);
    return st;
}

static void incomplete_files_are_refused(void **state)
{
    fixture *f = *state;
    trial t;

    make_trial(f, &t, "sgd", "yolox");
    step(&t);
    assert_ok(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run));
    assert_ok(f->ctx, open_changed(f, NULL, NULL, NULL));
    assert_fails(f->ctx, open_changed(f, "octet.checkpoint", NULL, NULL), OCT_ERR_FORMAT,
                 "no checkpoint of octet's");
    assert_fails(f->ctx, open_changed(f, "octet.checkpoint", "2", NULL), OCT_ERR_UNSUPPORTED,
                 "version 2");
    assert_fails(f->ctx, open_changed(f, "step", "-1", NULL), OCT_ERR_FORMAT, "'step'");
    assert_fails(f->ctx, open_changed(f, "epoch", "1x", NULL), OCT_ERR_FORMAT, "'epoch'");
    assert_fails(f->ctx, open_changed(f, "epoch", "9223372036854775807", NULL), OCT_ERR_FORMAT,
                 "'epoch'");
    assert_fails(f->ctx, open_changed(f, "seed", "", NULL), OCT_ERR_FORMAT, "'seed'");
    assert_fails(f->ctx, open_changed(f, "ema", "lion", NULL), OCT_ERR_UNSUPPORTED, "'lion'");
    assert_fails(f->ctx, open_changed(f, "ema.decay", "nan", NULL), OCT_ERR_FORMAT, "'ema.decay'");
    assert_fails(f->ctx, open_changed(f, "recipe", NULL, NULL), OCT_ERR_FORMAT, "recipe");
    assert_fails(f->ctx, open_changed(f, NULL, NULL, "octet.network"), OCT_ERR_FORMAT, "network");
    assert_fails(f->ctx, open_changed(f, NULL, NULL, "ema/mean"), OCT_ERR_FORMAT,
                 "average of 'mean'");
    assert_fails(f->ctx, open_changed(f, "ema", NULL, NULL), OCT_ERR_ARG, "no average");
    assert_false(oct_checkpoint_sniff(f->ctx, "/dev/null"));
    free_trial(f, &t);
}

static void parameters_must_be_the_networks(void **state)
{
    fixture *f = *state;
    trial t;

    make_trial(f, &t, "sgd", NULL);
    t.params.v[0].name = "nobody";
    assert_fails(f->ctx, oct_checkpoint_save(f->ctx, path, &t.run), OCT_ERR_ARG, "'nobody'");
    assert_int_equal(access(path, F_OK), -1);
    free_trial(f, &t);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_path, teardown_path)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(runs_go_on_bit_for_bit),          CASE(the_network_is_inside),
        CASE(the_network_stays_the_same),      CASE(others_can_read_it),
        CASE(other_networks_are_refused),      CASE(changed_recipes_are_told),
        CASE(broken_files_are_refused),        CASE(incomplete_files_are_refused),
        CASE(parameters_must_be_the_networks),
    };

    return run_test_group(tests);
}
