/* SPDX-License-Identifier: Apache-2.0 */
/* octet quantize when something is missing, misspelt, broken or interrupted. */
#include "cli/quantize_net.h"

#include <signal.h>

#include "avi.h"

static void says_what_is_missing(void **state)
{
    place *p = *state;
    static const struct {
        const char *words, *error;
        int status;
    } cases[] = {
        {"quantize",
         "MODEL is missing; usage: octet quantize [MODEL] [options]\nTry 'octet quantize", 2},
        {"quantize net.onnx --images img", "--output (-o OUT.onnx) is missing", 2},
        {"quantize net.onnx -o out.onnx", "pictures to calibrate on are missing", 2},
        {"quantize net.onnx -o net.onnx --images img", "is read by this command", 2},
        {"quantize net.onnx -o ./net.onnx --images img", "is the same file as net.onnx", 2},
        {"quantize net.onnx -o no/out.onnx --images img", "does not exist", 2},
        {"quantize net.onnx -o out.onnx --images img --save-qmap no/q",
         "--save-qmap no/q: its folder", 2},
        {"quantize net.onnx -o out.onnx --images img --quant-cfg out.onnx",
         "two results cannot go into one file", 2},
        {"quantize net.onnx -o out.onnx --images img --save-qmap net.onnx",
         "net.onnx: it is read by this command", 2},
        {"quantize net.onnx -o out.onnx --images img --annotations classes.txt --save-qmap "
         "classes.txt --force",
         "classes.txt: it is read by this command", 2},
        {"quantize net.onnx -o classes.txt --images img", "a name that ends in .onnx", 2},
        {"quantize net.onnx -o out.pb --images img", "a name that ends in .onnx", 2},
        {"quantize net.onnx -o - --images img", "a name that ends in .onnx", 2},
        {"quantize net.onnx -o out.onnx --images img --quant-cfg classes.txt",
         "octet did not make it", 2},
        {"quantize ney.onnx -o out.onnx --images img", "did you mean 'net.onnx'?", 2},
        {QUANTIZE "--report net.onnx", "net.onnx is not a folder", 2},
        {QUANTIZE "--report nowhere/r", "cannot write into nowhere", 1},
        {QUANTIZE "--subset-size x", "option --subset-size: ", 2},
        {QUANTIZE "--preset fast", "'preset' is performance|mixed, not 'fast'", 2},
        {QUANTIZE "--ignore-subgraph x", "is not A:B", 2},
        {QUANTIZE "--data x.npz", "either images or data", 2},
        {QUANTIZE "--input-shape 1x3", "net.onnx", 1},
        {QUANTIZE "--recipe no.yaml", "no.yaml: no such file", 2},
        {QUANTIZE "--target orrt", "ort", 2},
        {QUANTIZE "--ignore-nam x", "did you mean '--ignore-name'", 2},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        must_refuse(p, cases[i].words, cases[i].status, cases[i].error);
        assert_false(exists(p, "out.onnx"));
    }
}

static void misspelt_key_has_a_place(void **state)
{
    static const char text[] = "data:\n  images: img\nignored_scop: {names: [a]}\n";
    place *p = *state;

    write_file(p, "r.yaml", text, sizeof(text) - 1);
    assert_int_equal(octet(p, "quantize net.onnx -o out.onnx --recipe r.yaml"), 2);
    must_contain(p->last.err,
                 "r.yaml:3:1: unknown key 'ignored_scop'; did you mean 'ignored_scope'?");
}

static void names_that_match_nothing(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, QUANTIZE "--ignore-name /body/a/Comv"), 2);
    must_contain(p->last.err, "/body/a/Conv");
    assert_int_equal(octet(p, QUANTIZE "--ignore-type Sofmax"), 2);
    assert_int_equal(octet(p, QUANTIZE "--ignore-pattern nothing"), 2);
    assert_int_equal(octet(p, QUANTIZE "--ignore-pattern nothing --ignore-unmatched"), 0);
}

static void unreachable_subgraph(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, QUANTIZE "--ignore-subgraph /head/Conv:/body/a/Conv"), 2);
    must_contain(p->last.err, "no path leads to '/body/a/Conv'");
    assert_false(exists(p, "out.onnx"));
    assert_int_equal(octet(p, QUANTIZE "--ignore-subgraph /body/b/Conv:/head/Conv --json"), 0);
    must_contain(p->last.out, "\"layers_quantized\": 1");
}

static void bad_pictures(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "quantize net.onnx -o out.onnx --images empty"), 1);
    must_contain(p->last.err, "empty");
    assert_int_equal(octet(p, "quantize net.onnx -o out.onnx --images nowhere"), 2);
    must_contain(p->last.err, "nowhere");
    write_file(p, "empty/a.png", "this is no picture", 18);
    assert_int_equal(octet(p, "quantize net.onnx -o out.onnx --images empty"), 1);
    must_contain(p->last.err, "a.png");
    make_npy(p, "empty/b.npy", OCT_DTYPE_F32, 4, (int64_t[]){1, 1, 5, 5});
    assert_int_not_equal(octet(p, "quantize net.onnx -o out.onnx --data empty/b.npy"), 0);
    assert_false(exists(p, "out.onnx"));
}

static void skips_bad_pictures(void **state)
{
    place *p = *state;
    size_t n_clean = 0, n_mixed = 0;
    char *clean, *mixed;

    assert_int_equal(octet(p, QUANTIZE "--bias-correction full"), 0);
    clean = contents(p, "out.quant_cfg.json", &n_clean);
    write_file(p, "img/0a.jpg", "", 0); /* between good ones */
    write_file(p, "img/2a.png", "this is no picture", 18);
    write_file(p, "img/notes.txt", "words", 5);
    assert_int_equal(octet(p, "quantize net.onnx -o x.onnx --images img"), 1);
    must_contain(p->last.err, "img/0a.jpg: the file is empty");
    assert_int_equal(octet(p, "quantize net.onnx -o mix.onnx --images img --bias-correction full "
                              "--skip-bad --threads 1"),
                     0);
    must_contain(p->last.err, "img: 1 file is no picture and was left out (notes.txt)");
    must_contain(p->last.err, "img: 2 pictures are broken and were left out (img/0a.jpg: the file "
                              "is empty; img/2a.png: no picture");
    mixed = contents(p, "mix.quant_cfg.json", &n_mixed); /* as if they had not been there */
    assert_true(n_clean > 100);
    assert_int_equal(n_clean, n_mixed);
    assert_memory_equal(clean, mixed, n_clean);
    free(clean);
    free(mixed);
    assert_int_equal(octet(p, "quantize net.onnx -o y.onnx --images img --skip-bad --json"), 0);
    must_contain(p->last.out, "\"images\": 4");
    write_file(p, "empty/a.png", "this is no picture", 18);
    assert_int_equal(octet(p, "quantize net.onnx -o x.onnx --images empty --skip-bad"), 1);
    must_contain(p->last.err, "no picture is left: 1 picture is broken");
    assert_false(exists(p, "x.onnx"));
}

static void calibrates_on_videos_and_patterns(void **state)
{
    place *p = *state;
    oct_ctx *ctx = oct_ctx_new(NULL);
    char scratch[300];
    avi a;

    (void)snprintf(scratch, sizeof(scratch), "%s/scratch.jpg", p->dir);
    a = make_avi(ctx, 12, 40, 30, scratch);
    write_file(p, "clip.avi", (const char *)a.data, a.size);
    free(a.data);
    oct_ctx_free(ctx);
    assert_int_equal(octet(p, "quantize net.onnx -o v.onnx --images clip.avi --every 3 --json"), 0);
    must_contain(p->last.out, "\"images\": 4,");
    assert_int_equal(octet(p,
                           "quantize net.onnx -o w.onnx --images clip.avi --images 'img/[01].png' "
                           "--json"),
                     0);
    must_contain(p->last.out, "\"images\": 14,");
    assert_int_equal(octet(p, "quantize net.onnx -o x.onnx --images a --images b --every 3 "
                              "--print-recipe"),
                     0);
    must_contain(p->last.out, "images: [a, b]");
    must_contain(p->last.out, "every: 3");
}

static void nothing_to_quantize(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, QUANTIZE "--ignore-type Conv"), 2);
    must_contain(p->last.err, "no layer of this network can be quantized");
    assert_false(exists(p, "out.onnx"));
}

static void weights_that_are_no_numbers(void **state)
{
    place *p = *state;

    make_color(p, "nan.onnx", NAN);
    assert_int_equal(octet(p, "quantize nan.onnx -o out.onnx --images img"), 1);
    must_contain(p->last.err, "/body/b/Conv");
    assert_false(exists(p, "out.onnx"));
}

/* A disk that takes 2 KiB of each file: the old result stays, and nothing else is left. */
static void full_disk_keeps_the_old_file(void **state)
{
    place *p = *state;
    char script[4096 + 128], path[4096 + 16];
    int n;

    write_file(p, "out.onnx", "old", 3);
    write_file(p, "out.quant_cfg.json", "old", 3);
    (void)snprintf(script, sizeof(script),
                   "#!/bin/sh\ntrap '' XFSZ\nulimit -f 4\nexec '%s' \"$@\"\n", p->program);
    write_file(p, "limited", script, strlen(script));
    (void)snprintf(path, sizeof(path), "%s/limited", p->dir);
    assert_int_equal(chmod(path, 0777), 0);
    (void)snprintf(p->program, sizeof(p->program), "%.4000s", path);
    n = count_files(p);
    assert_int_equal(octet(p, QUANTIZE "--force"), 1);
    must_contain(p->last.err, "out.");
    assert_int_equal(octet(p, QUANTIZE "--quant-cfg none --force"), 1);
    must_contain(p->last.err, "out.onnx: ");
    assert_int_equal(count_files(p), n);
    for (int i = 0; i < 2; i++) {
        size_t size = 0;
        char *text = contents(p, i ? "out.quant_cfg.json" : "out.onnx", &size);

        assert_int_equal(size, 3);
        assert_memory_equal(text, "old", 3);
        free(text);
    }
}

static void interrupt_leaves_all_or_nothing(void **state)
{
    place *p = *state;
    const int n = count_files(p);

    for (int ms = 1; ms < 200; ms += 23) {
        char command[128];

        octet_interrupted(p, QUANTIZE, ms, SIGINT);
        assert_true(count_files(p) == n || count_files(p) == n + 2);
        (void)snprintf(command, sizeof(command), "rm -f %s/out.*", p->dir);
        assert_int_equal(system(command), 0);
    }
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(says_what_is_missing),
        TEST(misspelt_key_has_a_place),
        TEST(names_that_match_nothing),
        TEST(unreachable_subgraph),
        TEST(bad_pictures),
        TEST(skips_bad_pictures),
        TEST(calibrates_on_videos_and_patterns),
        TEST(nothing_to_quantize),
        TEST(weights_that_are_no_numbers),
        TEST(full_disk_keeps_the_old_file),
        TEST(interrupt_leaves_all_or_nothing),
    };

    if (argc < 2) return 1;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
