/* SPDX-License-Identifier: Apache-2.0 */
/* Compression jobs of other tools' configs (tests/recipes), as they are: from the file to the
 * exported network; checkpoints, resuming, and what is refused. */
#include <signal.h>
#include <unistd.h>

#include "cli/train_place.h"

static char detector[1024], recipes[1024];

#define EVAL "--eval-images s/train --eval-annotations s/train.json "
#define FEW  "--batch 2 --augment none --warmup-epochs -1 "

static int run(place *p, const char *command, const char *recipe, const char *more)
{
    char words[3072];

    assert_true(snprintf(words, sizeof(words), "%s %s --recipe %s/%s " DATA "%s", command, detector,
                         recipes, recipe, more) < (int)sizeof(words));
    return octet(p, words);
}

static int system_in(const place *p, const char *command)
{
    char words[1024];

    assert_true(snprintf(words, sizeof(words), "cd %s && %s", p->dir, command) <
                (int)sizeof(words));
    return system(words);
}

static double ap_of(place *p, const char *file)
{
    char words[256];
    json_t *j;
    double ap;

    (void)snprintf(words, sizeof(words), "eval %s " DATA "--json", file);
    assert_int_equal(octet(p, words), 0);
    j = line(p, 0);
    ap = number(j, "ap");
    json_decref(j);
    return ap;
}

static double macs_of(place *p, const char *file)
{
    char words[1200];
    json_t *j;
    double macs;

    (void)snprintf(words, sizeof(words), "inspect %s --json", file);
    assert_int_equal(octet(p, words), 0);
    j = printed_json(p);
    macs = number(j, "macs");
    json_decref(j);
    return macs;
}

/* A checkpoint, what export makes of it, and the file are one network; constants of float ones may
 * be in another order. */
static void must_agree(place *p, const char *checkpoint, const char *file, bool is_float)
{
    const double ap = ap_of(p, file);
    char words[512];

    (void)snprintf(words, sizeof(words), "export %s -o e.onnx --force", checkpoint);
    assert_int_equal(octet(p, words), 0);
    (void)snprintf(words, sizeof(words), "cmp e.onnx %s", file);
    if (!is_float) assert_int_equal(system_in(p, words), 0);
    assert_true(ap_of(p, checkpoint) == ap);
    assert_true(ap_of(p, "e.onnx") == ap);
    assert_true(macs_of(p, "e.onnx") == macs_of(p, file));
}

/* --- configs as people have them --- */

static void quantization_runs_unchanged(void **state)
{
    place *p = *state;

    assert_int_equal(run(p, "train", "mmdetection_ssd_int8.py", "-o q.onnx --augment none"), 0);
    must_contain(p->last.err, "read as a config of MMDetection");
    must_contain(p->last.err, "left out: load_from");
    must_contain(p->last.out, "integer");
    must_agree(p, "output/last.safetensors", "q.onnx", false);
    assert_int_equal(octet(p, "inspect q.onnx"), 0);
    must_contain(p->last.out, "INT8 by octet");
    assert_int_equal(octet(p, "export output/last.safetensors -o q.xml"), 0);
    assert_true(exists(p, "q.bin"));
}

static void pruning_and_quantization_run_in_order(void **state)
{
    place *p = *state;
    const double full = macs_of(p, detector);

    assert_int_equal(run(p, "prune", "mmdetection_atss_pruned_int8.py", "-o q.onnx --augment none"),
                     0);
    assert_true(macs_of(p, "output/atss/float.onnx") <= .7 * full);
    assert_true(macs_of(p, "q.onnx") <= .7 * full);
    must_agree(p, "output/atss/last.safetensors", "output/atss/float.onnx", true);
    must_agree(p, "output/atss/qat/last.safetensors", "q.onnx", false);
    /* NNCF's own form of it; channels go at once. */
    assert_int_equal(run(p, "qat", "nncf_pruning_int8.json", "-o n.onnx --augment none"), 0);
    assert_true(macs_of(p, "n.onnx") < .85 * full);
    must_agree(p, "n.train/qat/last.safetensors", "n.onnx", false);
}

static void sparsity_and_quantization_run_in_order(void **state)
{
    place *p = *state;

    assert_int_equal(
        run(p, "train", "mmdetection_retinanet_sparse_int8.py", "-o q.onnx --augment none"), 0);
    must_agree(p, "output/last.safetensors", "output/float.onnx", true);
    must_agree(p, "output/qat/last.safetensors", "q.onnx", false);
    assert_int_equal(system_in(p, "grep -q 'octet.sparsity' q.onnx"), 0);
    assert_int_equal(system_in(p, "grep -q '0.5000 of' output/float.onnx"), 0);
}

static void accuracy_ends_it(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(run(p, "qat", "nncf_early_exit.json", EVAL FEW "--rate 1e-5 -o q.onnx --json"),
                     0);
    must_contain(p->last.err, "training ends as soon as");
    j = line(p, 1);
    assert_int_equal(json_integer_value(json_object_get(j, "best_epoch")), 1);
    json_decref(j);
    assert_int_equal(run(p, "qat", "nncf_early_exit.json", FEW "-o r.onnx"), 2);
    must_contain(p->last.err, "--eval-images");
}

/* --- going on --- */

/* Killed in both parts of a job, and resumed: the same bytes as without. */
static void goes_on_bit_for_bit(void **state)
{
    place *p = *state;
    char words[4096], start[3072];
    int n_stopped = 0;

    assert_int_equal(run(p, "prune", "mmdetection_atss_pruned_int8.py",
                         "-o whole.onnx --augment none --quiet --checkpoints whole.train"),
                     0);
    (void)snprintf(start, sizeof(start),
                   "prune %s --recipe %s/mmdetection_atss_pruned_int8.py " DATA
                   "-o part.onnx --augment none --quiet --checkpoints part.train",
                   detector, recipes);
    (void)snprintf(words, sizeof(words), "%s", start);
    for (int i = 0; i < 6 && !exists(p, "part.onnx"); i++) {
        n_stopped +=
            octet_interrupted(p, words, 1200 + 500 * i, i % 3 == 1 ? SIGTERM : SIGKILL) != 0;
        if (exists(p, "part.train/qat/last.safetensors"))
            (void)snprintf(words, sizeof(words), "%s --resume part.train/qat/last.safetensors",
                           start);
        else if (exists(p, "part.train/last.safetensors"))
            (void)snprintf(words, sizeof(words), "%s --resume part.train/last.safetensors", start);
    }
    assert_true(n_stopped > 0);
    if (!exists(p, "part.onnx")) assert_int_equal(octet(p, words), 0);
    assert_int_equal(system_in(p, "cmp whole.train/float.onnx part.train/float.onnx"), 0);
    assert_int_equal(system_in(p, "cmp whole.onnx part.onnx"), 0);
}

static void other_configs_are_refused_by_name(void **state)
{
    static const char was[] =
        "load_from = '../x.pth'\nnncf_config = dict(compression=[dict(algorithm='filter_pruning',"
        "params=dict(pruning_target=%s, pruning_steps=1, filter_importance='%s'))])\n"
        "total_epochs = 2\nwork_dir = 'w'\n";
    place *p = *state;
    char text[512], words[1500];

    (void)snprintf(words, sizeof(words), "prune %s --recipe c.py " DATA FEW "-o a.onnx --quiet",
                   detector);
    (void)snprintf(text, sizeof(text), was, "0.3", "L2");
    write_file(p, "c.py", text, strlen(text));
    assert_int_equal(octet(p, words), 0);
    (void)snprintf(words, sizeof(words),
                   "prune %s --recipe c.py " DATA FEW "-o b.onnx --resume w/last.safetensors",
                   detector);
    assert_int_equal(octet(p, words), 0);
    (void)snprintf(text, sizeof(text), was, "0.4", "L2");
    write_file(p, "c.py", text, strlen(text));
    assert_int_not_equal(octet(p, words), 0);
    must_contain(p->last.err, "prune.channels");
    (void)snprintf(text, sizeof(text), was, "0.3", "L1");
    write_file(p, "c.py", text, strlen(text));
    assert_int_not_equal(octet(p, words), 0);
    must_contain(p->last.err, "prune.importance");
}

/* load_from: a compressed checkpoint is trained on, not compressed anew. */
static void compressed_checkpoints_are_trained_on(void **state)
{
    static const char prune_config[] =
        "load_from = '%s'\nnncf_config = dict(compression=dict(algorithm='filter_pruning',"
        "params=dict(pruning_target=.3, pruning_steps=1)))\ntotal_epochs = 1\n";
    static const char int8_config[] =
        "load_from = '%s'\nnncf_config = dict(compression=dict(algorithm='quantization'))\n"
        "total_epochs = 1\n";
    place *p = *state;
    char text[512], words[1500];

    (void)snprintf(text, sizeof(text), prune_config, "x.pth");
    write_file(p, "c.py", text, strlen(text));
    (void)snprintf(words, sizeof(words), "prune %s --recipe c.py " DATA FEW "-o a.onnx --quiet",
                   detector);
    assert_int_equal(octet(p, words), 0);
    (void)snprintf(text, sizeof(text), prune_config, "a.train/last.safetensors");
    write_file(p, "c.py", text, strlen(text));
    assert_int_equal(octet(p, "prune --recipe c.py " DATA FEW "-o b.onnx"), 0);
    must_contain(p->last.err, "compressed already");
    assert_true(macs_of(p, "a.onnx") == macs_of(p, "b.onnx"));
    (void)snprintf(text, sizeof(text), int8_config, "x.pth");
    write_file(p, "c.py", text, strlen(text));
    (void)snprintf(words, sizeof(words), "qat %s --recipe c.py " DATA FEW "-o q.onnx --quiet",
                   detector);
    assert_int_equal(octet(p, words), 0);
    (void)snprintf(text, sizeof(text), int8_config, "q.train/last.safetensors");
    write_file(p, "c.py", text, strlen(text));
    (void)snprintf(words, sizeof(words), "qat %s --recipe c.py " DATA FEW "-o r.onnx --quiet",
                   detector);
    assert_int_equal(octet(p, words), 0);
    assert_int_not_equal(system_in(p, "cmp -s q.onnx r.onnx"), 0);
}

/* --- sparsity alone --- */

static void weights_become_zero(void **state)
{
    place *p = *state;
    char words[1500];
    json_t *j;

    (void)snprintf(words, sizeof(words), "prune %s -o s.onnx --sparsity .5 --json", detector);
    assert_int_equal(octet(p, words), 0);
    j = printed_json(p);
    assert_true(number(j, "zeros") == floor(number(j, "weights") / 2));
    json_decref(j);
    assert_int_equal(system_in(p, "grep -q '0.5000 of' s.onnx"), 0);
    assert_true(macs_of(p, "s.onnx") == macs_of(p, detector));
    (void)snprintf(words, sizeof(words), "prune %s -o p.onnx --sparsity 2:4", detector);
    assert_int_equal(octet(p, words), 0);
    must_contain(p->last.out, "of the weights");
    (void)snprintf(words, sizeof(words),
                   "prune %s -o t.onnx --sparsity .6 --sparsity-epochs 1 --epochs 2 " DATA FEW,
                   detector);
    assert_int_equal(octet(p, words), 0);
    assert_int_equal(system_in(p, "grep -q '0.6000 of' t.onnx"), 0);
    must_agree(p, "t.train/last.safetensors", "t.onnx", true);
    (void)snprintf(words, sizeof(words), "prune %s -o u.onnx --sparsity 3", detector);
    assert_int_equal(octet(p, words), 2);
    must_contain(p->last.err, "2:4");
}

/* --- what is refused --- */

static void nothing_looks_done_that_is_not(void **state)
{
    static const char bad[] = "nncf_config = dict(compression=[dict(algorithm='quantization'),\n"
                              "    dict(algorithm='binarization')])\n";
    place *p = *state;
    char words[1500];

    write_file(p, "bad.py", bad, sizeof(bad) - 1);
    (void)snprintf(words, sizeof(words), "train %s --recipe bad.py " DATA "-o x.onnx", detector);
    assert_int_equal(octet(p, words), 2);
    must_contain(p->last.err, "bad.py:2:20: octet has no compression algorithm 'binarization'");
    assert_int_equal(run(p, "quantize", "nncf_pruning_int8.json", "-o x.onnx"), 2);
    must_contain(p->last.err, "compress: prune,quantize");
    assert_int_equal(run(p, "prune", "mmdetection_ssd_int8.py", "-o x.onnx"), 2);
    must_contain(p->last.err, "does not prune");
    assert_int_equal(
        run(p, "prune", "mmdetection_atss_pruned_int8.py", "-o x.onnx --prune-epochs 9"), 2);
    must_contain(p->last.err, "only 3 epochs are trained");
    assert_false(exists(p, "x.onnx"));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_data, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(quantization_runs_unchanged),
        TEST(pruning_and_quantization_run_in_order),
        TEST(sparsity_and_quantization_run_in_order),
        TEST(accuracy_ends_it),
        TEST(goes_on_bit_for_bit),
        TEST(other_configs_are_refused_by_name),
        TEST(compressed_checkpoints_are_trained_on),
        TEST(weights_become_zero),
        TEST(nothing_looks_done_that_is_not),
    };
    const char *root = getenv("OCTET_SOURCE_ROOT");

    if (argc < 2) return 2;
    place_set_program(argv[1]);
    (void)snprintf(detector, sizeof(detector), "%s/examples/demo/detector.onnx", root ? root : ".");
    (void)snprintf(recipes, sizeof(recipes), "%s/tests/recipes", root ? root : ".");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
