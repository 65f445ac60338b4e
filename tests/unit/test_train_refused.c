/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of other networks and recipes, broken and hostile ones: refused with a reason. */
#include "tensor/safetensors.h"
#include "tests/unit/checkpoint_case.h"
#include "train/checkpoint_parts.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(other_networks_are_refused),      CASE(changed_recipes_are_told),
        CASE(broken_files_are_refused),        CASE(incomplete_files_are_refused),
        CASE(parameters_must_be_the_networks),
    };

    return run_test_group(tests);
}
