/* SPDX-License-Identifier: Apache-2.0 */
/* The commands on small models: what they print, write and refuse. */
#include "cli/program.h"

#include <signal.h>

static double number(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);

    if (!json_is_number(v)) fail_msg("'%s' is not a number", key);
    return json_number_value(v);
}

/* --- inspect --- */

static void inspect_shows_nodes_and_totals(void **state)
{
    static const char *const parts[] = {"/body/conv/Conv", "1x4x6x6", "BatchNormalization",
                                        "float32",         "total",   "124  "};
    place *p = *state;

    make_net(p);
    assert_int_equal(octet(p, "inspect net.onnx"), 0);
    for (size_t i = 0; i < OCT_COUNT(parts); i++)
        must_contain(p->last.out, parts[i]);
    assert_string_equal(p->last.err, "");
}

static void inspect_json_is_complete(void **state)
{
    place *p = *state;
    json_t *j, *conv;

    make_net(p);
    assert_int_equal(octet(p, "inspect net.onnx --json"), 0);
    j = printed_json(p);
    assert_int_equal(json_array_size(json_object_get(j, "inputs")), 1);
    assert_int_equal(json_array_size(json_object_get(j, "outputs")), 1);
    assert_int_equal(json_array_size(json_object_get(j, "nodes")), 4);
    assert_int_equal(number(j, "params"), 4 * 27 + 16);
    assert_int_equal(number(j, "macs"), 4 * 27 * 36);
    conv = json_array_get(json_object_get(j, "nodes"), 0);
    assert_string_equal(json_string_value(json_object_get(conv, "operator")), "Conv");
    assert_int_equal(number(conv, "params"), 108);
    json_decref(j);
}

static void inspect_filter_is_a_search(void **state)
{
    place *p = *state;
    json_t *j;

    make_net(p);
    assert_int_equal(octet(p, "inspect net.onnx --json --filter 'Relu|^Conv$'"), 0);
    j = printed_json(p);
    assert_int_equal(json_array_size(json_object_get(j, "nodes")), 2);
    assert_int_equal(number(j, "n_nodes"), 4);
    json_decref(j);
    assert_int_equal(octet(p, "inspect net.onnx --filter body/cnov"), 2);
    must_contain(p->last.err, "did you mean '/body/conv/Conv'");
}

static void inspect_binds_shapes(void **state)
{
    place *p = *state;

    make_two(p);
    assert_int_equal(octet(p, "inspect two.onnx"), 0);
    must_contain(p->last.out, "?x4");
    assert_int_equal(octet(p, "inspect two.onnx --input-shape first:7x4 --input-shape second:7x4"),
                     0);
    must_contain(p->last.out, "7x4");
    assert_int_equal(octet(p, "inspect two.onnx --input-shape frist:7x4"), 2);
    must_contain(p->last.err, "did you mean 'first'?");
    assert_int_equal(octet(p, "inspect two.onnx --input-shape 7x4"), 2);
    must_contain(p->last.err, "say which input: 'first' (float32 ?x4), 'second'");
    assert_int_equal(octet(p, "inspect two.onnx --input-shape first:7x-4"), 2);
    must_contain(p->last.err, "is not NAME:DIMS");
}

static void inspect_draws(void **state)
{
    place *p = *state;

    make_net(p);
    assert_int_equal(octet(p, "inspect net.onnx --quiet --graph net.dot"), 0);
    assert_string_equal(p->last.out, "");
    assert_true(exists(p, "net.dot"));
    assert_int_equal(octet(p, "inspect net.onnx --quiet --graph net.svg"), 0);
    assert_true(exists(p, "net.svg"));
    assert_int_equal(octet(p, "inspect net.onnx --graph net.gif"), 2);
    must_contain(p->last.err, ".svg");
    assert_int_equal(octet(p, "inspect net.onnx --graph nodir/net.dot"), 2);
    assert_int_equal(count_files(p), 3);
}

/* --- simplify --- */

static void simplify_shows_before_and_after(void **state)
{
    place *p = *state;
    json_t *j;

    make_net(p);
    assert_int_equal(octet(p, "simplify net.onnx out.onnx"), 0);
    must_contain(p->last.out, "BatchNormalization");
    must_contain(p->last.out, "nodes");
    assert_int_equal(octet(p, "simplify net.onnx out.onnx --json"), 0);
    j = printed_json(p);
    assert_int_equal(number(json_object_get(j, "before"), "nodes"), 4);
    assert_int_equal(number(json_object_get(j, "after"), "nodes"), 2);
    json_decref(j);
    assert_int_equal(octet(p, "simplify net.onnx out.onnx --quiet"), 0);
    assert_string_equal(p->last.out, "");
    assert_int_equal(octet(p, "simplify net.onnx out.onnx --quiet"), 0); /* once more */
    assert_int_equal(octet(p, "simplify net.onnx -o out.onnx --quiet"), 0);
    assert_int_equal(octet(p, "simplify net.onnx a.onnx -o out.onnx"), 2);
    assert_int_equal(octet(p, "inspect out.onnx --quiet"), 0);
    assert_int_equal(count_files(p), 2);
}

static void simplify_obeys_only_and_skip(void **state)
{
    place *p = *state;
    json_t *j;

    make_net(p);
    assert_int_equal(octet(p, "simplify net.onnx out.onnx --only drop-copies --json"), 0);
    j = printed_json(p);
    assert_int_equal(number(json_object_get(j, "after"), "nodes"), 3);
    json_decref(j);
}

/* --- run --- */

static void run_writes_outputs_and_inner_values(void **state)
{
    place *p = *state;
    json_t *j;

    make_net(p);
    make_npy(p, "x.npy", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 8, 8});
    assert_int_equal(octet(p, "run net.onnx --input x=x.npy --out res"), 0);
    assert_true(exists(p, "res/y.npy"));
    must_contain(p->last.out, "res/y.npy  float32 1x4x6x6");
    assert_int_equal(octet(p, "run net.onnx --input x.npy --out res --dump 'conv|bn' --json"), 0);
    assert_true(exists(p, "res/_body_conv_Conv_output_0.npy"));
    assert_true(exists(p, "res/_body_bn_0.npy"));
    j = printed_json(p);
    assert_int_equal(json_array_size(json_object_get(j, "written")), 3);
    json_decref(j);
    assert_int_equal(octet(p, "run net.onnx --input x.npy --dump nosuch"), 2);
    must_contain(p->last.err, "no value's name matches 'nosuch'");
}

static void run_binds_open_dimensions(void **state)
{
    place *p = *state;

    make_two(p);
    make_npy(p, "a.npy", OCT_DTYPE_F32, 2, (int64_t[]){5, 4});
    assert_int_equal(octet(p, "run two.onnx --input first=a.npy --input second=a.npy --out r"), 0);
    must_contain(p->last.out, "r/sum.npy  float32 5x4");
}

static void run_says_what_is_wrong_with_inputs(void **state)
{
    static const struct {
        const char *words, *answer;
    } cases[] = {
        {"run two.onnx",
         "input 'first' is not given; say --input 'first=FILE.npy'; inputs: 'first' "
         "(float32 ?x4), 'second' (float32 ?x4)"},
        {"run two.onnx --input a.npy", "'a.npy' is not NAME=FILE"},
        {"run two.onnx --input fisrt=a.npy", "no input 'fisrt'; did you mean 'first'?"},
        {"run two.onnx --input first=b.npy", "b.npy: no such file; did you mean"},
        {"run two.onnx --input first=a.npy --input first=a.npy", "given twice"},
        {"run two.onnx --input first=i.npy --input second=a.npy",
         "holds int32, input 'first' wants"},
        {"run two.onnx --input first=s.npy --input second=a.npy",
         "s.npy: has shape 5x3, input 'first' wants ?x4"},
    };
    place *p = *state;
    int files;

    make_two(p);
    make_npy(p, "a.npy", OCT_DTYPE_F32, 2, (int64_t[]){5, 4});
    make_npy(p, "i.npy", OCT_DTYPE_I32, 2, (int64_t[]){5, 4});
    make_npy(p, "s.npy", OCT_DTYPE_F32, 2, (int64_t[]){5, 3});
    files = count_files(p);
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        must_refuse(p, cases[i].words, 2, cases[i].answer);
    assert_int_equal(count_files(p), files);
    write_file(p, "bad.npy", "\x93NUMPY\x01", 7);
    assert_int_equal(octet(p, "run two.onnx --input first=bad.npy"), 1);
    must_contain(p->last.err, "octet: bad.npy: ");
}

static void odd_names_do_no_harm(void **state)
{
    place *p = *state;

    make_odd(p);
    make_npy(p, "x.npy", OCT_DTYPE_F32, 1, (int64_t[]){2});
    assert_int_equal(octet(p, "inspect odd.onnx"), 0);
    assert_null(strchr(p->last.out, '\x1b'));
    must_contain(p->last.out, "?[31m?y");
    assert_int_equal(octet(p, "inspect odd.onnx --json"), 0);
    json_decref(printed_json(p));
    assert_int_equal(octet(p, "inspect odd.onnx --quiet --graph odd.svg"), 0);
    assert_int_equal(octet(p, "run odd.onnx --input x.npy --out r --dump ."), 0);
    assert_true(exists(p, "r/a_b.npy"));
    assert_true(exists(p, "r/a_b-2.npy"));
    assert_true(exists(p, "r/\x1b[31m\ny.npy"));
    assert_null(strchr(p->last.out, '\x1b'));
    assert_int_equal(octet(p, "profile odd.onnx --runs 1"), 0);
    assert_null(strchr(p->last.out, '\x1b'));
}

/* --- bench and profile --- */

static void bench_prints_the_agreed_keys(void **state)
{
    static const char *const keys[] = {
        "median_ms", "mean_ms", "min_ms",      "p90_ms",        "p99_ms", "runs",    "throughput",
        "load_ms",   "plan_ms", "peak_rss_mb", "activation_mb", "gmac",   "threads", "input_mb"};
    place *p = *state;
    json_t *j;

    make_net(p);
    assert_int_equal(octet(p, "bench net.onnx --runs 7 --warmup 1 --threads 1 --json"), 0);
    j = printed_json(p);
    for (size_t i = 0; i < OCT_COUNT(keys); i++)
        (void)number(j, keys[i]);
    assert_int_equal(json_object_size(j), OCT_COUNT(keys) + 1);
    assert_true(json_array_size(json_object_get(j, "layers")) >= 1);
    assert_int_equal(number(j, "runs"), 7);
    assert_int_equal(number(j, "threads"), 1);
    assert_true(number(j, "min_ms") <= number(j, "median_ms"));
    assert_true(number(j, "median_ms") <= number(j, "p99_ms"));
    assert_true(number(j, "peak_rss_mb") > 1);
    json_decref(j);
}

static void bench_runs_streams_and_batches(void **state)
{
    place *p = *state;
    json_t *j;

    make_net(p);
    make_two(p);
    assert_int_equal(octet(p, "bench net.onnx --streams 3 --runs 4 --threads 1 --json"), 0);
    j = printed_json(p);
    assert_int_equal(number(j, "runs"), 12);
    json_decref(j);
    assert_int_equal(octet(p, "bench two.onnx --batch 4 --seconds 0.05"), 0);
    must_contain(p->last.out, "batch 4");
    must_contain(p->last.out, "GMAC/s");
}

/* A16: "--runs 5" was measured eight times. */
static void bench_makes_the_runs_that_were_asked_for(void **state)
{
    static const int runs[] = {1, 4, 5};
    place *p = *state;
    char words[128], want[64];

    make_net(p);
    for (size_t i = 0; i < OCT_COUNT(runs); i++) {
        snprintf(words, sizeof(words), "bench net.onnx net.onnx --runs %d", runs[i]);
        snprintf(want, sizeof(want), "\n%d runs each", runs[i]);
        assert_int_equal(octet(p, words), 0);
        must_contain(p->last.out, want);
    }
}

/* A layer that is not in both models has no gain; one that has not gained says why. */
static void check_layer(const json_t *layer)
{
    const json_t *gain = json_object_get(layer, "speed_up");

    assert_true(json_is_string(json_object_get(layer, "kernel")));
    assert_true(json_is_number(gain));
    if (json_number_value(gain) < 1.09)
        assert_string_equal(json_string_value(json_object_get(layer, "why")), "stays float");
    if (json_number_value(gain) > 1.11) assert_null(json_object_get(layer, "why"));
}

static void bench_compares_models(void **state)
{
    place *p = *state;
    json_t *j, *models, *layers;

    make_net(p);
    assert_int_equal(octet(p, "simplify net.onnx small.onnx --quiet"), 0);
    assert_int_equal(octet(p, "bench net.onnx small.onnx net.onnx --runs 4 --threads 1 --json"), 0);
    j = printed_json(p);
    models = json_object_get(j, "models");
    assert_int_equal(json_array_size(models), 3);
    assert_true(number(j, "runs") >= 4);
    for (size_t i = 0; i < 3; i++) {
        assert_true(number(json_array_get(models, i), "median_ms") > 0);
        assert_true(number(json_array_get(models, i), "peak_rss_mb") > 1);
        layers = json_object_get(json_array_get(models, i), "layers");
        if (i == 0) assert_null(layers);
        if (i > 0) check_layer(json_array_get(layers, 0));
    }
    json_decref(j);
    assert_int_equal(octet(p, "bench net.onnx small.onnx --seconds 0.05 --threads 1"), 0);
    must_contain(p->last.out, "small.onnx against net.onnx");
    must_contain(p->last.out, "did not gain");
    must_contain(p->last.out, "/body/conv/Conv");
    assert_int_equal(octet(p, "bench net.onnx small.onnx --streams 2"), 2);
    must_contain(p->last.err, "one model at a time");
    assert_int_equal(octet(p, "bench net.onnx gone.onnx"), 2);
}

static void profile_adds_up(void **state)
{
    place *p = *state;
    json_t *j, *nodes, *events;
    double sum = 0;

    make_net(p);
    assert_int_equal(octet(p, "profile net.onnx --runs 3 --threads 1 --json --trace t.json"), 0);
    j = printed_json(p);
    nodes = json_object_get(j, "nodes");
    assert_true(json_array_size(nodes) >= 1);
    for (size_t i = 0; i < json_array_size(nodes); i++)
        sum += number(json_array_get(nodes, i), "share");
    assert_true(fabs(sum - 1) < 1e-3);
    (void)number(j, "reorder_share");
    (void)number(j, "plain_share");

    {
        const size_t per_run = json_array_size(nodes) + 1;
        json_t *trace = file_json(p, "t.json");

        size_t i, n_steps = 0;
        json_t *e;

        events = json_object_get(trace, "traceEvents");
        json_array_foreach(events, i, e) n_steps +=
            strcmp(json_string_value(json_object_get(e, "ph")), "X") == 0;
        assert_int_equal(n_steps, 3 * per_run);
        json_decref(trace);
    }
    json_decref(j);
    assert_int_equal(octet(p, "profile net.onnx --runs 3 --top 1"), 0);
    must_contain(p->last.out, "reorders: ");
    must_contain(p->last.out, "plain kernels: ");
    assert_int_equal(octet(p, "profile net.onnx --trace nodir/t.json"), 2);
    assert_int_equal(count_files(p), 2);
}

/* --- terminals and interrupts --- */

static void narrow_terminals_shorten_names(void **state)
{
    place *p = *state;

    make_net(p);
    assert_int_equal(octet_on_terminal(p, "inspect net.onnx", 70), 0);
    must_contain(p->last.out, "..");
    assert_null(strstr(p->last.out, "/body/bn/BatchNormalization"));
    assert_int_equal(octet_on_terminal(p, "inspect net.onnx", 200), 0);
    must_contain(p->last.out, "/body/bn/BatchNormalization");
    assert_int_equal(octet(p, "inspect net.onnx"), 0); /* a pipe is never narrow */
    must_contain(p->last.out, "/body/bn/BatchNormalization");
}

static void progress_is_for_terminals(void **state)
{
    place *p = *state;

    make_net(p);
    assert_int_equal(octet_on_terminal(p, "bench net.onnx --seconds 0.5", 80), 0);
    must_contain(p->last.out, "measuring");
    assert_int_equal(octet_on_terminal(p, "bench net.onnx --seconds 0.5 --quiet", 80), 0);
    assert_null(strstr(p->last.out, "measuring ["));
    assert_int_equal(octet(p, "bench net.onnx --seconds 0.5"), 0);
    assert_null(strstr(p->last.err, "measuring")); /* not within the first seconds */
}

/* A13: where there is no terminal, a line now and then; here at every step. */
static void progress_is_told_in_lines_elsewhere(void **state)
{
    place *p = *state;

    make_net(p);
    assert_int_equal(setenv("OCTET_PROGRESS_SECONDS", "0", 1), 0);
    assert_int_equal(octet(p, "bench net.onnx --runs 3"), 0);
    must_contain(p->last.err, "octet: measuring: 33%, 1 of 3");
    assert_null(strchr(p->last.err, '\r'));
    assert_null(strchr(p->last.err, '\033'));
    assert_int_equal(octet(p, "bench net.onnx --runs 3 --quiet"), 0);
    assert_string_equal(p->last.err, "");
    assert_int_equal(setenv("OCTET_PROGRESS_SECONDS", "100000", 1), 0);
}

static void count_escapes(place *p, const char *words, bool wanted)
{
    (void)octet_on_terminal(p, words, 70);
    assert_true((strchr(p->last.out, '\033') != NULL) == wanted);
}

static void colours_and_escapes_are_for_terminals_that_want_them(void **state)
{
    place *p = *state;

    make_net(p);
    count_escapes(p, "inspect net.onnx", true);
    count_escapes(p, "inspect nothing.onnx", true);
    assert_int_equal(octet(p, "inspect net.onnx"), 0);
    assert_null(strchr(p->last.out, '\033'));
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    count_escapes(p, "inspect net.onnx", false);
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    assert_int_equal(setenv("TERM", "dumb", 1), 0);
    count_escapes(p, "inspect net.onnx", false);
    count_escapes(p, "bench net.onnx --seconds 0.5", false);
    assert_int_equal(setenv("TERM", "xterm", 1), 0);
}

/* In a narrow terminal the text of a fact keeps its column. */
static void facts_go_on_in_their_column(void **state)
{
    place *p = *state;

    make_net(p);
    assert_int_equal(octet_on_terminal(p, "bench net.onnx --runs 2 --quiet", 60), 0);
    must_contain(p->last.out, "latency     median ");
    must_contain(p->last.out, "\n            "); /* what did not fit */
    must_contain(p->last.out, "memory      ");
}

/* A line of an example is not broken between an option and its value. */
static void examples_keep_options_whole(void **state)
{
    place *p = *state;

    for (int width = 50; width <= 100; width += 5) {
        assert_int_equal(octet_on_terminal(p, "--help", width), 0);
        assert_null(strstr(p->last.out, "--out \\"));
        assert_null(strstr(p->last.out, "--images \\"));
        assert_null(strstr(p->last.out, "--annotations \\"));
    }
}

/* A11: nothing is broken by the terminal itself. */
static void lines_fit_the_terminal(void **state)
{
    static const char *const words[] = {"--help",
                                        "help quantize",
                                        "help eval",
                                        "inspect net.onnx",
                                        "bench net.onnx net.onnx --runs 1",
                                        "profile net.onnx --runs 1 --quiet",
                                        "simplify --list",
                                        "inspect net.onnxx",
                                        "doctor"};
    static const int widths[] = {60, 80, 140};
    place *p = *state;

    make_net(p);
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    for (size_t i = 0; i < OCT_COUNT(words); i++)
        for (size_t k = 0; k < OCT_COUNT(widths); k++) {
            (void)octet_on_terminal(p, words[i], widths[k]);
            for (char *line = strtok(p->last.out, "\r\n"); line; line = strtok(NULL, "\r\n"))
                if ((int)strlen(line) > widths[k] && strchr(line + strspn(line, " "), ' ') &&
                    !strstr(line, "\033[K"))
                    fail_msg("octet %s at %d columns: %s", words[i], widths[k], line);
        }
    assert_int_equal(unsetenv("NO_COLOR"), 0);
}

/* A12: one meaning for all commands: what was asked for stays. */
static void quiet_keeps_results_only(void **state)
{
    static const struct {
        const char *words;
        bool prints;
    } cases[] = {{"inspect net.onnx", true},
                 {"inspect net.onnx --graph g.dot", false},
                 {"bench net.onnx --runs 1", true},
                 {"profile net.onnx --runs 1", true},
                 {"simplify net.onnx out.onnx", false},
                 {"simplify --list", true},
                 {"doctor", true},
                 {"synth --out s --count 1 --size 64", false},
                 {"run net.onnx --input x.npy --out r", false}};
    place *p = *state;
    char words[128];

    make_net(p);
    make_npy(p, "x.npy", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 8, 8});
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        snprintf(words, sizeof(words), "%s --quiet", cases[i].words);
        assert_int_equal(octet(p, words), 0);
        assert_string_equal(p->last.err, "");
        if ((p->last.out[0] != '\0') != cases[i].prints)
            fail_msg("octet %s printed: %s", words, p->last.out);
    }
}

/* A16: a Ctrl-C is told, and leaves no unfinished file. */
static void interrupt_is_told(void **state)
{
    place *p = *state;
    char path[128], text[1024];
    FILE *f;
    int n;

    make_net(p);
    n = count_files(p);
    /* The comment hides where the output would go otherwise. */
    assert_int_equal(
        octet_interrupted(p, "bench net.onnx --seconds 1000 2>said.txt #", 700, SIGINT),
        128 + SIGINT);
    snprintf(path, sizeof(path), "%s/said.txt", p->dir);
    assert_non_null(f = fopen(path, "r"));
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    must_contain(text, "octet: interrupted; no unfinished file is left");
    assert_int_equal(count_files(p), n + 1);
}

static void interrupt_ends_at_once(void **state)
{
    place *p = *state;

    make_net(p);
    assert_int_equal(
        octet_interrupted(p, "profile net.onnx --runs 1000000000 --trace t.json", 300, SIGINT),
        128 + SIGINT);
    assert_int_equal(octet_interrupted(p, "bench net.onnx --seconds 1000", 300, SIGTERM),
                     128 + SIGTERM);
    assert_int_equal(count_files(p), 1);
}

/* At whatever moment it comes: the result is whole or not there, and nothing else is. */
static void interrupt_leaves_nothing_half_written(void **state)
{
    place *p = *state;

    make_net(p);
    for (int ms = 0; ms < 60; ms += 3) {
        const int status =
            octet_interrupted(p, "simplify net.onnx out.onnx", ms, ms % 2 ? SIGINT : SIGTERM);

        assert_true(status == 0 || status == 128 + SIGINT || status == 128 + SIGTERM);
        if (status == 0) assert_true(exists(p, "out.onnx"));
        if (exists(p, "out.onnx")) assert_int_equal(octet(p, "inspect out.onnx && rm out.onnx"), 0);
        assert_int_equal(count_files(p), 1);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(inspect_shows_nodes_and_totals, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(inspect_json_is_complete, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(inspect_filter_is_a_search, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(inspect_binds_shapes, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(inspect_draws, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(simplify_shows_before_and_after, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(simplify_obeys_only_and_skip, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(run_writes_outputs_and_inner_values, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(run_binds_open_dimensions, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(run_says_what_is_wrong_with_inputs, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(odd_names_do_no_harm, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(bench_prints_the_agreed_keys, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(bench_compares_models, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(bench_runs_streams_and_batches, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(profile_adds_up, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(narrow_terminals_shorten_names, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(bench_makes_the_runs_that_were_asked_for, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(progress_is_told_in_lines_elsewhere, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(colours_and_escapes_are_for_terminals_that_want_them,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(lines_fit_the_terminal, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(quiet_keeps_results_only, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(interrupt_is_told, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(facts_go_on_in_their_column, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(examples_keep_options_whole, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(progress_is_for_terminals, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(interrupt_ends_at_once, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(interrupt_leaves_nothing_half_written, place_setup,
                                        place_teardown),
    };

    if (argc != 2) return 2;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
