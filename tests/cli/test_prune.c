/* SPDX-License-Identifier: Apache-2.0 */
/* octet prune: what it prints, writes and refuses. */
#include <signal.h>

#include "cli/quantize_net.h"

static char detector[1024];

static int prune(place *p, const char *more)
{
    char words[1024];

    assert_true(snprintf(words, sizeof(words), "prune %s %s", detector, more) < (int)sizeof(words));
    return octet(p, words);
}

/* The file has fewer channels, loads and runs, and says the same numbers as the command did. */
static void writes_less(void **state)
{
    place *p = *state;
    json_t *j, *first;
    json_int_t macs, left;

    assert_int_equal(prune(p, "-o small.onnx --flops-target 0.4 --json"), 0);
    j = printed_json(p);
    macs = json_integer_value(json_object_get(j, "macs"));
    left = json_integer_value(json_object_get(j, "macs_left"));
    assert_true(left > 0 && (double)left <= .6 * (double)macs);
    assert_true((double)left > .4 * (double)macs);
    first = json_array_get(json_object_get(j, "layers"), 0);
    assert_non_null(json_object_get(first, "channels_left"));
    json_decref(j);
    assert_int_equal(octet(p, "inspect small.onnx --json"), 0);
    j = printed_json(p);
    assert_int_equal(json_integer_value(json_object_get(j, "macs")), left);
    json_decref(j);
    assert_int_equal(octet(p, "bench small.onnx --runs 1"), 0);
}

/* The page has the layers, full and left. */
static void reports_layers(void **state)
{
    place *p = *state;
    size_t n = 0;
    char *page;

    assert_int_equal(prune(p, "-o small.onnx --flops-target 0.4 --report r"), 0);
    page = contents(p, "r/index.html", &n);
    assert_non_null(strstr(page, "\"pruned\":{\"macs\":["));
    assert_non_null(strstr(page, "it is an output of the network"));
    free(page);
}

static void says_why(void **state)
{
    place *p = *state;

    assert_int_equal(prune(p, "-o small.onnx --channels 0.3"), 0);
    assert_non_null(strstr(p->last.out, "it is an output of the network"));
    assert_non_null(strstr(p->last.out, "had to stay"));
}

static void refuses(void **state)
{
    place *p = *state;

    assert_int_equal(prune(p, "-o small.onnx"), 2);
    assert_non_null(strstr(p->last.err, "--flops-target"));
    assert_int_equal(prune(p, "--channels 0.5"), 2);
    assert_non_null(strstr(p->last.err, "--output"));
    assert_int_equal(prune(p, "-o small.onnx --channels 0.5 --flops-target 0.5"), 2);
    assert_non_null(strstr(p->last.err, "more than one target"));
    assert_int_equal(prune(p, "-o small.onnx --channels 0.5 --importance best"), 2);
    assert_non_null(strstr(p->last.err, "best"));
    assert_int_equal(prune(p, "-o small.onnx --flops-target 0.999"), 2);
    assert_non_null(strstr(p->last.err, "at most"));
    assert_int_equal(prune(p, "-o small.onnx --channels 0.5 --keep ."), 1);
    assert_non_null(strstr(p->last.err, "no channel can be removed"));
}

/* --- while training --- */

#define FEW                                                                                        \
    "--images s/train --annotations s/train.json --labels s/names.txt --epochs 3 --batch 2 "       \
    "--augment none --warmup-epochs -1 "

static int setup_data(void **state)
{
    place *p;

    if (place_setup(state)) return -1;
    p = *state;
    return octet(p, "synth --out s --split train --count 4 --size 128 --seed 3");
}

/* MACs that a file has, by inspect. */
static double macs_of(place *p, const char *file)
{
    char words[256];
    json_t *j;
    double macs;

    (void)snprintf(words, sizeof(words), "inspect %s --json", file);
    assert_int_equal(octet(p, words), 0);
    j = printed_json(p);
    macs = number(j, "macs");
    json_decref(j);
    return macs;
}

/* Channels go in two of three epochs, and are not in the file. */
static void trains_what_is_left(void **state)
{
    place *p = *state;
    const double full = macs_of(p, detector);
    double left;

    assert_int_equal(prune(p, FEW "-o small.onnx --flops-target 0.4 --prune-epochs 2"), 0);
    assert_non_null(strstr(p->last.out, "had to stay"));
    assert_non_null(strstr(p->last.out, "the network of the last epoch"));
    left = macs_of(p, "small.onnx");
    if (!(left <= .6 * full && left > .4 * full)) fail_msg("%g of %g MACs are left", left, full);
    assert_int_equal(octet(p, "bench small.onnx --runs 1"), 0);
    /* The masks are in the checkpoint's weights: a job that goes on gives the same file. */
    assert_int_equal(prune(p, FEW "-o again.onnx --flops-target 0.4 --prune-epochs 2 "
                                  "--resume small.train/last.safetensors"),
                     0);
    assert_true(macs_of(p, "again.onnx") == left);
    /* All at once: cut first, then trained. */
    assert_int_equal(prune(p, FEW "-o once.onnx --flops-target 0.4 --prune-schedule baseline"), 0);
    assert_non_null(strstr(p->last.out, "the network of the last epoch"));
    assert_true(macs_of(p, "once.onnx") <= .6 * full);
    assert_int_equal(prune(p, FEW "-o no.onnx --flops-target 0.4 --prune-schedule slow"), 2);
    assert_non_null(strstr(p->last.err, "slow"));
    assert_int_equal(prune(p, FEW "-o no.onnx --time-target 0.4 --prune-epochs 2"), 2);
    assert_non_null(strstr(p->last.err, "flops"));
}

static bool differ(place *p, const char *a, const char *b)
{
    size_t n = 0, m = 0;
    char *x = contents(p, a, &n), *y = contents(p, b, &m);
    const bool same = n == m && memcmp(x, y, n) == 0;

    free(x);
    free(y);
    return !same;
}

/* Only the statistics of norms differ from what is cut without pictures. */
static void adapts_norms(void **state)
{
    place *p = *state;
    double macs;

    assert_int_equal(prune(p, "-o cut.onnx --channels 0.3"), 0);
    macs = macs_of(p, "cut.onnx");
    assert_int_equal(prune(p, FEW "-o adapted.onnx --channels 0.3 --importance l2 --bn-adapt 4"),
                     0);
    assert_null(strstr(p->last.out, "last epoch"));
    assert_true(macs_of(p, "adapted.onnx") == macs);
    assert_true(differ(p, "adapted.onnx", "cut.onnx"));
}

/* Layers are fitted to pictures without labels: as many MACs go, other weights are left, and any
 * number of threads gives the same ones. Training may follow. */
static void fits_layers(void **state)
{
#define SOME  "--channels 0.3 --only /s4/ "
#define REFIT SOME "--refit f/train "
    place *p = *state;
    const double full = macs_of(p, detector);

    assert_int_equal(octet(p, "synth --out f --split train --count 16 --size 64 --seed 5"), 0);
    assert_int_equal(prune(p, REFIT "-o fit.onnx --threads 1"), 0);
    assert_int_equal(prune(p, REFIT "-o two.onnx --threads 2"), 0);
    assert_int_equal(prune(p, REFIT "-o l2.onnx --importance l2 --global"), 0);
    assert_int_equal(prune(p, SOME "-o plain.onnx --importance l2 --global"), 0);
    assert_true(macs_of(p, "fit.onnx") < full);
    assert_true(macs_of(p, "l2.onnx") == macs_of(p, "plain.onnx"));
    assert_false(differ(p, "fit.onnx", "two.onnx"));
    assert_true(differ(p, "l2.onnx", "plain.onnx"));
    assert_int_equal(prune(p, FEW REFIT "-o trained.onnx --epochs 1 --loss distill"), 0);
    assert_true(macs_of(p, "trained.onnx") == macs_of(p, "fit.onnx"));
    assert_int_equal(prune(p, "-o no.onnx --channels 0.3 --refit nowhere"), 2);
    assert_non_null(strstr(p->last.err, "nowhere"));
    assert_int_equal(prune(p, "-o no.onnx --channels 0.3 --refit s/train"), 2);
    assert_non_null(strstr(p->last.err, "too few"));
    assert_int_equal(prune(p, FEW REFIT "-o no.onnx --prune-epochs 2"), 2);
    assert_non_null(strstr(p->last.err, "while the network is trained"));
}

/* Killed in the midst of epochs in which channels go, and resumed: the same bytes as without. What
 * is asked for must be the same, down to each setting of pruning. */
static void goes_on_bit_for_bit(void **state)
{
#define RUN FEW "--flops-target 0.4 --prune-epochs 3 --prune-start 1 --epochs 5 --quiet "
    place *p = *state;
    char words[2048];

    assert_int_equal(prune(p, RUN "-o whole.onnx"), 0);
    (void)snprintf(words, sizeof(words), "prune %s " RUN "-o part.onnx", detector);
    for (int i = 0; i < 4; i++) {
        (void)octet_interrupted(p, words, 500 + 250 * i, i % 2 ? SIGTERM : SIGKILL);
        if (exists(p, "part.onnx")) break;
        if (!exists(p, "part.train/last.safetensors")) continue;
        (void)snprintf(words, sizeof(words),
                       "prune %s " RUN "-o part.onnx --resume part.train/last.safetensors",
                       detector);
    }
    if (!exists(p, "part.onnx")) assert_int_equal(octet(p, words), 0);
    assert_false(differ(p, "whole.onnx", "part.onnx"));
    assert_int_not_equal(prune(p, FEW "--flops-target 0.3 --prune-epochs 3 --prune-start 1 "
                                      "--epochs 5 -o b.onnx --resume part.train/last.safetensors"),
                         0);
    assert_non_null(strstr(p->last.err, "prune.flops_target"));
    assert_int_not_equal(prune(p, RUN "--importance l1 -o b.onnx "
                                      "--resume part.train/last.safetensors"),
                         0);
    assert_non_null(strstr(p->last.err, "prune.importance"));
}

/* The settings of pruning as a recipe, and layers that are kept by what they are. */
static void recipes_say_it_too(void **state)
{
    static const char recipe[] =
        "prune: {channels: 0.3, keep_first: true, keep_strided: true, only: conv}\n";
    place *p = *state;

    write_file(p, "r.yaml", recipe, sizeof(recipe) - 1);
    assert_int_equal(prune(p, "-o r.onnx --recipe r.yaml --print-recipe"), 0);
    assert_non_null(strstr(p->last.out, "# octet prune"));
    assert_non_null(strstr(p->last.out, "keep_strided: true"));
    assert_int_equal(prune(p, "-o s.onnx --channels 0.3 --keep-first --keep-strided"), 0);
    assert_non_null(strstr(p->last.out, "it is a first layer"));
    assert_non_null(strstr(p->last.out, "its layer has a stride"));
}

int main(int argc, char **argv)
{
    const char *root = getenv("OCTET_SOURCE_ROOT");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_less, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(reports_layers, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(says_why, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(refuses, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(trains_what_is_left, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(adapts_norms, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(fits_layers, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(goes_on_bit_for_bit, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(recipes_say_it_too, place_setup, place_teardown),
    };

    if (argc < 2) return 2;
    place_set_program(argv[1]);
    (void)snprintf(detector, sizeof(detector), "%s/examples/demo/detector.onnx", root ? root : ".");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
