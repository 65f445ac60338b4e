/* SPDX-License-Identifier: Apache-2.0 */
/* octet quantize on a small classifier and small pictures: results and recipes. */
#include "cli/quantize_net.h"

/* --- it works --- */

static void quantizes_and_tells(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, QUANTIZE), 0);
    assert_true(exists(p, "out.onnx") && exists(p, "out.quant_cfg.json"));
    must_contain(p->last.out, "written    out.onnx, for target octet");
    must_contain(p->last.out, "of 3 layers");
    must_contain(p->last.out, "times smaller");
    must_contain(p->last.out, " s to run the float network over 4 pictures");
    must_contain(p->last.out, "largest error");
    must_contain(p->last.out, "next       measure it: octet eval out.onnx");
    assert_int_equal(octet(p, "inspect out.onnx"), 0);
    must_contain(p->last.out, "QuantizeLinear");
}

/* A file that is quantized already needs no pictures. */
static void makes_files_for_other_targets(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, QUANTIZE), 0);
    assert_int_equal(octet(p, "quantize out.onnx -o twice.onnx --target tensorrt"), 0);
    must_contain(p->last.err, "layers of out.onnx are quantized already: their scales and codes");
    must_contain(p->last.out, "written    twice.onnx, for target tensorrt");
    must_contain(p->last.out, "scales     ");
    assert_int_equal(octet(p, "quantize twice.onnx -o third.xml --target openvino --json"), 0);
    must_contain(p->last.out, "\"scales_kept\": ");
    assert_int_equal(octet(p, "quantize third.xml -o fourth.onnx --target ort"), 0);
    assert_int_equal(octet(p, "quantize out.onnx -o x.onnx --report r"), 2);
    must_contain(p->last.err, "--report shows pictures");
}

static void prints_json(void **state)
{
    static const char *const keys[] = {"layers_total",
                                       "layers_quantized",
                                       "macs_quantized_share",
                                       "weights_quantized_share",
                                       "float_layers",
                                       "tail",
                                       "bytes_before",
                                       "bytes_after",
                                       "seconds",
                                       "peak_rss_mb",
                                       "float_pass_seconds",
                                       "ap_before",
                                       "ap_after",
                                       "worst_layers"};
    place *p = *state;
    json_t *j, *l;

    assert_int_equal(octet(p, QUANTIZE "--annotations classes.txt --ignore-name /head/Conv --json"),
                     0);
    j = printed_json(p);
    for (size_t i = 0; i < OCT_COUNT(keys); i++)
        if (!json_object_get(j, keys[i])) fail_msg("there is no '%s'", keys[i]);
    assert_true(number(j, "layers_total") == 3 && number(j, "layers_quantized") == 2);
    assert_true(number(j, "bytes_after") < number(j, "bytes_before"));
    assert_true(json_is_null(json_object_get(j, "ap_before")));
    assert_true(number(j, "top1_before") == 1 && number(j, "top1_after") == 1);
    l = json_array_get(json_object_get(j, "float_layers"), 0);
    assert_string_equal(json_string_value(json_object_get(l, "name")), "/head/Conv");
    assert_non_null(json_string_value(json_object_get(l, "reason")));
    json_decref(j);
}

/* --- for NPUs --- */

static void files_for_npus_keep_their_limits(void **state)
{
    place *p = *state;
    json_t *j, *rows;

    assert_int_equal(octet(p, QUANTIZE "--target npu-pow2 --json"), 0);
    j = printed_json(p);
    assert_true(json_is_array(json_object_get(j, "moved")));
    json_decref(j);
    assert_int_equal(octet(p, "inspect out.onnx --npu"), 0);
    must_contain(p->last.out, "out.onnx keeps all limits");
    assert_int_equal(octet(p, "inspect out.onnx --npu --json"), 0);
    j = printed_json(p);
    assert_int_equal(json_array_size(json_object_get(j, "broken")), 0);
    json_decref(j);
    assert_int_equal(octet(p, QUANTIZE), 0);
    assert_int_equal(octet(p, "inspect out.onnx --npu"), 1);
    must_contain(p->last.out, "power of two");
    must_contain(p->last.err, "breaks limits of NPUs in");
    assert_int_equal(octet(p, "inspect out.onnx --npu --json"), 1);
    j = printed_json(p);
    rows = json_object_get(j, "broken");
    assert_true(json_array_size(rows) > 3);
    assert_non_null(json_string_value(json_object_get(json_array_get(rows, 0), "right")));
    json_decref(j);
    assert_int_equal(octet(p, "inspect net.onnx --npu"), 2);
    must_contain(p->last.err, "there is nothing to check");
    assert_int_equal(octet(p, QUANTIZE "--bias-bits 8"), 2);
    must_contain(p->last.err, "target octet are 32 bits");
}

static void outputs_are_chosen(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, QUANTIZE "--outputs nothing"), 2);
    must_contain(p->last.err, "there is no output 'nothing'; did you mean '");
    assert_int_equal(octet(p, "simplify net.onnx small.onnx --outputs nothing"), 2);
    must_contain(p->last.err, "option --outputs: there is no output 'nothing'");
    assert_int_equal(octet(p, "export net.onnx -o same.onnx --outputs nothing"), 2);
    must_contain(p->last.err, "option --outputs: there is no output 'nothing'");
}

static void same_inputs_same_bytes(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, QUANTIZE), 0);
    assert_int_equal(octet(p, "quantize net.onnx -o again.onnx --images img --quiet"), 0);
    assert_string_equal(p->last.out, "");
    assert_same_file(p, "out.onnx", "again.onnx");
    assert_same_file(p, "out.quant_cfg.json", "again.quant_cfg.json");
}

/* The file says who made it, how and of what; not when, and not where. */
static void the_file_says_who_made_it(void **state)
{
    place *p = *state;
    char path[4096], *data;
    size_t size = 0;
    json_t *j, *q;

    assert_int_equal(octet(p, QUANTIZE "--ranges kl --subset-size 3 --quiet"), 0);
    assert_int_equal(octet(p, "inspect out.onnx --json"), 0);
    j = printed_json(p);
    q = json_object_get(j, "quantization");
    assert_string_equal(json_string_value(json_object_get(j, "producer")), "octet");
    assert_string_equal(json_string_value(json_object_get(q, "octet_version")), oct_version());
    assert_string_equal(json_string_value(json_object_get(q, "target")), "octet");
    assert_string_equal(json_string_value(json_object_get(q, "source")), "net.onnx");
    assert_int_equal(strlen(json_string_value(json_object_get(q, "source_sha256"))), 64);
    assert_string_equal(json_string_value(json_object_get(q, "settings")),
                        "{data: {subset_size: 3}, ranges: {activations: kl}}");
    assert_int_equal(json_integer_value(json_object_get(q, "layers_total")), 3);
    json_decref(j);
    assert_int_equal(octet(p, "inspect out.onnx"), 0);
    must_contain(p->last.out, "INT8 by octet ");
    must_contain(p->last.out, " layers quantized, from net.onnx\n");
    assert_int_equal(octet(p, "inspect net.onnx"), 0);
    must_contain(p->last.out, "float: 3 layers with weights");

    (void)snprintf(path, sizeof(path), "%s/sub", p->dir); /* the same from another folder */
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(octet(p, "quantize $PWD/net.onnx -o $PWD/sub/out.onnx --images $PWD/img "
                              "--ranges kl --subset-size 3 --quiet"),
                     0);
    assert_same_file(p, "out.onnx", "sub/out.onnx");
    data = contents(p, "out.onnx", &size);
    for (size_t i = 0; i + strlen(p->dir) <= size; i++)
        assert_int_not_equal(memcmp(data + i, p->dir, strlen(p->dir)), 0);
    free(data);
}

/* What a file says of its settings, as a recipe, makes the same file. */
static void settings_of_a_file_are_a_recipe(void **state)
{
    place *p = *state;
    const char *text;
    json_t *j;

    write_file(p, "names.txt", "round\nsquare\n", 13);
    assert_int_equal(octet(p, QUANTIZE "--ignore-pattern '/head/.*' --override \"{name: "
                                       "/body/a/Conv, weight_bits: 4}\" --equalize --quiet "
                                       "--labels names.txt"),
                     0);
    assert_int_equal(octet(p, "inspect out.onnx --json"), 0);
    j = printed_json(p);
    text = json_string_value(json_object_get(json_object_get(j, "quantization"), "settings"));
    assert_non_null(text);
    assert_null(strstr(text, "names.txt")); /* no files */
    write_file(p, "line.yaml", text, strlen(text));
    json_decref(j);
    assert_int_equal(octet(p, "quantize net.onnx -o again.onnx --images img --recipe line.yaml "
                              "--quiet"),
                     0);
    assert_same_file(p, "out.onnx", "again.onnx");
}

static void chooses_files_to_write(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, QUANTIZE "--quant-cfg none --save-qmap q.json"), 0);
    assert_true(exists(p, "q.json") && !exists(p, "out.quant_cfg.json"));
    assert_int_equal(octet(p, "eval net.onnx --qmap q.json --images img --annotations classes.txt "
                              "--json"),
                     0);
    must_contain(p->last.out, "\"top1\": 1.0");
    assert_int_equal(octet(p, "eval net.onnx --qmap q.json --images img --annotations classes.txt "
                              "--in-float --json"),
                     0);
    must_contain(p->last.out, "\"top1\": 1.0");
    assert_int_equal(octet(p, "eval net.onnx --qmap no.json --images img --annotations "
                              "classes.txt"),
                     1);
    must_contain(p->last.err, "no.json");
}

static void takes_tensors(void **state)
{
    place *p = *state;
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/t", p->dir);
    assert_int_equal(mkdir(path, 0777), 0);
    make_npy(p, "t/0.npy", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, SIDE, SIDE});
    assert_int_equal(octet(p, "quantize net.onnx -o out.onnx --data t"), 0);
    must_contain(p->last.out, "over 1 item;");
    must_contain(p->last.err, "calibration on 1 tensor\n");
}

/* A map of the picture: no family knows what that is. */
static void make_map(place *p, const char *file)
{
    void *state = NULL;
    fixture *f;
    oct_value *x;
    char path[256];

    assert_int_equal(setup(&state), 0);
    f = state;
    x = picture_input(f, 1, SIDE, SIDE);
    x = convolution(f, "/a/Conv", x, 3, N_HIDDEN, 0);
    x = convolution(f, "/b/Conv", x, N_HIDDEN, 5, 0);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
    (void)snprintf(path, sizeof(path), "%s/%s", p->dir, file);
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
    assert_int_equal(teardown(&state), 0);
}

/* half.onnx: net.onnx in float16, its picture too. */
static void make_half(place *p)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_graph *g = NULL;
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/net.onnx", p->dir);
    assert_ok(ctx, oct_onnx_load(ctx, path, &g));
    for (int32_t i = 0; i < g->n_value_ids; i++) {
        oct_value *v = g->values[i];
        oct_tensor *t = NULL;
        oct_type type;

        if (!v || v->type.dtype != OCT_DTYPE_F32) continue;
        type = v->type;
        type.dtype = v->type.dtype = OCT_DTYPE_F16;
        if (!v->data) continue;
        assert_ok(ctx, oct_tensor_make(ctx, &type, &t));
        for (int64_t k = 0; k < oct_tensor_len(t); k++) {
            const double x = oct_tensor_get_f64(v->data, k);

            oct_store_f64(OCT_DTYPE_F16, t->data, k, 1, &x);
        }
        oct_tensor_unref(v->data);
        v->data = t;
    }
    (void)snprintf(path, sizeof(path), "%s/half.onnx", p->dir);
    assert_ok(ctx, oct_onnx_save(g, path, NULL));
    oct_graph_free(g);
    oct_ctx_free(ctx);
}

static void takes_float16_networks(void **state)
{
    place *p = *state;

    make_half(p);
    assert_int_equal(octet(p, "inspect half.onnx"), 0);
    must_contain(p->last.out, "float16: 3 layers with weights");
    assert_int_equal(octet(p, "eval half.onnx --images img --annotations classes.txt --json"), 0);
    must_contain(p->last.out, "\"top1\": 1.0");
    assert_int_equal(octet(p, "detect half.onnx img/0.png"), 0);
    assert_int_equal(octet(p, "quantize half.onnx -o out.onnx --images img --annotations "
                              "classes.txt"),
                     0);
    must_contain(p->last.out, "of 3 layers");
    must_contain(p->last.out, "top-1 1.0000 -> 1.0000");
    assert_int_equal(octet(p, "eval out.onnx --images img --annotations classes.txt --json"), 0);
    must_contain(p->last.out, "\"top1\": 1.0");
}

#define MAP "quantize map.onnx -o out.onnx --images img "

/* A fixed size is believed, whatever is usual elsewhere. */
static void the_size_of_the_network_counts(void **state)
{
    place *p = *state;

    make_map(p, "map.onnx");
    assert_int_equal(octet(p, MAP), 1); /* what to do with pictures has to be said */
    must_contain(p->last.err, "No family is needed here: say how pictures are prepared");
    assert_int_equal(octet(p, "eval map.onnx --images img --annotations labels.json"), 1);
    must_contain(p->last.err, "--against FLOAT.onnx compares networks of any kind");
    assert_null(strstr(p->last.err, "needed"));
    assert_int_equal(octet(p, MAP "--preprocess fit=stretch,scale=255"), 0);
    must_contain(p->last.err, "preprocess size=32x32,fit=stretch");
    assert_int_equal(octet(p, MAP "--preprocess fit=stretch,size=64x64"), 2);
    must_contain(p->last.err, "pictures of 64x64 do not fit input 'images', which is fixed at "
                              "32x32");
    must_contain(p->last.err, "octet simplify IN.onnx OUT.onnx --input-shape 1x3x64x64");
    assert_int_equal(octet(p, "simplify map.onnx larger.onnx --input-shape 1x3x64x64"), 0);
    assert_int_equal(octet(p, "quantize net.onnx -o out.onnx --images img --preprocess "
                              "size=64x64"),
                     2);
    assert_int_equal(octet(p, MAP "--preprocess fit=stretch,size=64x64 --input-shape 1x3x64x64"),
                     0);
    must_contain(p->last.err, "preprocess size=64x64,fit=stretch");
    assert_int_equal(octet(p, MAP "--preprocess fit=stretch --input-shape 1x3x48x64"), 0);
    must_contain(p->last.err, "preprocess size=64x48,fit=stretch");
}

/* What is taken for granted is said first; a wrong guess would show nowhere else. */
static void says_what_it_assumes(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(octet(p, QUANTIZE "--annotations classes.txt --eval-limit 2"), 0);
    must_contain(p->last.err, "calibration on 4 pictures\n");
    must_contain(p->last.err, "note: 4 pictures are few");
    must_contain(p->last.err, "family classifier: ");
    must_contain(p->last.err, "preprocess size=32x32,");
    must_contain(p->last.out, ", 2 pictures\n"); /* accuracy */
    assert_int_equal(octet(p, QUANTIZE "--json --limit 1"), 0);
    must_contain(p->last.err, "calibration on 1 picture\n");
    j = printed_json(p);
    assert_string_equal(json_string_value(json_object_get(j, "family")), "classifier");
    must_contain(json_string_value(json_object_get(j, "preprocess")), "size=32x32,");
    assert_true(number(j, "images") == 1 && number(j, "left_out") == 0);
    json_decref(j);
}

/* Options that find nothing to do, or can do nothing, say so. */
static void options_without_effect_say_so(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(octet(p, QUANTIZE "--align-channels --smooth-quant 0.5 --equalize "
                                       "--target-device GPU"),
                     0);
    must_contain(p->last.err, "target_device GPU has no effect for target octet");
    must_contain(p->last.out, "corrected  equalization: 2 pairs of layers\n");
    must_contain(p->last.out, "SmoothQuant: 0 products matched; nothing changed\n");
    must_contain(p->last.out, "channel alignment: ");
    assert_int_equal(octet(p, QUANTIZE "--equalize --json"), 0);
    j = printed_json(p);
    assert_true(number(j, "equalized") == 2);
    assert_true(json_is_null(json_object_get(j, "aligned")));
    json_decref(j);
    assert_int_equal(octet(p, QUANTIZE "--target-device VPU"), 2); /* place.c has no such word */
}

/* What blocks learned is told, and is the same again. */
static void blocks_learn_on_request(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(octet(p, QUANTIZE "--lsq --steps 8 --weight-bits 4 --seed 3"), 0);
    must_contain(p->last.out, "block by block, from 4 pictures\n");
    must_contain(p->last.out, "block that learned, from");
    assert_int_equal(octet(p, "quantize net.onnx -o other.onnx --images img --lsq --steps 8 "
                              "--weight-bits 4 --seed 3 --json"),
                     0);
    assert_same_file(p, "out.onnx", "other.onnx");
    j = printed_json(p);
    assert_true(number(j, "learned") >= 0);
    assert_true(json_array_size(json_object_get(j, "blocks")) > 0);
    assert_true(number(j, "learned_after") <= number(j, "learned_before"));
    json_decref(j);
    assert_int_equal(octet(p, QUANTIZE "--lsq --steps 8 --gamma 0.1 --fix-activation-scales"), 0);
    assert_int_equal(octet(p, QUANTIZE "--adaround --steps 8"), 0);
    assert_int_equal(octet(p, QUANTIZE "--adaround --lsq"), 2);
    must_contain(p->last.err, "one of them only");
    assert_int_equal(octet(p, QUANTIZE "--lsq --limit 2"), 2);
    must_contain(p->last.err, "2 pictures are too few");
}

/* --- recipes --- */

static void recipe_equals_command_line(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p,
                           QUANTIZE "--ranges minmax --ignore-pattern '/head/.*' --subset-size 3 "
                                    "--seed 7 --int8-io --report page --print-recipe"),
                     0);
    assert_false(exists(p, "out.onnx"));
    must_contain(p->last.out, "subset_size: 3");
    must_contain(p->last.out, "patterns: ['/head/.*']");
    must_contain(p->last.out, "report: page\n");
    write_file(p, "r.yaml", p->last.out, strlen(p->last.out));
    assert_int_equal(octet(p, "quantize --recipe r.yaml --print-recipe > again.yaml"), 0);
    assert_same_file(p, "r.yaml", "again.yaml");

    assert_int_equal(octet(p,
                           QUANTIZE "--ranges minmax --ignore-pattern '/head/.*' --subset-size 3 "
                                    "--seed 7 --int8-io"),
                     0);
    assert_int_equal(octet(p, "quantize --recipe r.yaml -o other.onnx"), 0);
    assert_same_file(p, "out.onnx", "other.onnx");
    assert_true(exists(p, "page/index.html"));
    assert_int_equal(octet(p, "quantize --recipe r.yaml --seed 0 --print-recipe"), 0);
    must_contain(p->last.out, "seed: 0\n");
}

/* Options whose word in a recipe is false. */
static void switches_turn_off(void **state)
{
    static const struct row {
        const char *word, *option, *kind;
    } rows[] = {
#define OCT_FIELD(sym, path, option, kind, ...) {path, option, #kind},
#include <octet/recipe.def>
#undef OCT_FIELD
    };
    place *p = *state;
    int n = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char words[200];

        if (strcmp(rows[i].kind, "SWITCH_OFF") != 0) continue;
        (void)snprintf(words, sizeof(words), QUANTIZE "--%s --print-recipe", rows[i].option);
        assert_int_equal(octet(p, words), 0);
        (void)snprintf(words, sizeof(words), "%s: false\n", strrchr(rows[i].word, '.') + 1);
        must_contain(p->last.out, words);
        n++;
    }
    assert_true(n >= 3);
}

static void foreign_files_are_explained(void **state)
{
    static const char config[] =
        "{\"compression\": {\"algorithm\": \"quantization\", \"preset\": \"mixed\",\n"
        "  \"ignored_scopes\": [\"Net/Head[head]/conv2d_0\"], \"overflow_fix\": \"disable\"}}\n";
    place *p = *state;

    write_file(p, "nncf.json", config, sizeof(config) - 1);
    assert_int_equal(octet(p, QUANTIZE "--recipe nncf.json --print-recipe"), 0);
    must_contain(p->last.err, "nncf.json: read as a config of NNCF");
    must_contain(p->last.err, "quantization.overflow_fix disable: overflow_fix disable");
    must_contain(p->last.out, "names: [head]");
    assert_int_equal(octet(p, QUANTIZE "--recipe nncf.json"), 0);
    must_contain(p->last.out, "1 layer ignored by name: /head/Conv\n");
}

/* A4: what octet made is made again, and a device has nothing beside it. */
static void files_are_replaced_only_if_octet_made_them(void **state)
{
    place *p = *state;
    const int n = count_files(p);

    assert_int_equal(octet(p, QUANTIZE "--save-qmap q.json --report r"), 0);
    assert_int_equal(octet(p, QUANTIZE "--save-qmap q.json --report r"), 0);
    assert_int_equal(count_files(p), n + 4);
    assert_int_equal(octet(p, "quantize net.onnx -o /dev/null --images img"), 0);
    assert_int_equal(access("/dev/null.quant_cfg.json", F_OK), -1);
    write_file(p, "r/index.html", "mine", 4);
    must_refuse(p, QUANTIZE "--report r", 2, "r/index.html: is there already, and octet did not");
    write_file(p, "out.quant_cfg.json", "mine", 4);
    must_refuse(p, QUANTIZE, 2, "out.quant_cfg.json: is there already, and octet did not make it");
}

/* What has no blanks ends a line behind a comma, not where the terminal does. */
static void long_words_wrap_behind_commas(void **state)
{
    place *p = *state;
    char *line;

    (void)octet_on_terminal(p, QUANTIZE, 40);
    must_contain(p->last.out, "preprocess");
    line = strtok(strstr(p->last.out, "octet: preprocess"), "\r\n");
    for (int i = 0; i < 3; i++, line = strtok(NULL, "\r\n")) {
        assert_non_null(line);
        if (strlen(line) > 40 || (i < 2 && line[strlen(line) - 1] != ',' && strchr(line, ',')))
            fail_msg("line %d of the preprocessing: %s", i, line);
    }
}

static void a_report_is_written_with_the_network(void **state)
{
    place *p = *state;
    json_t *j;
    size_t size;
    char *page;

    assert_int_equal(octet(p, QUANTIZE "--annotations classes.txt --report r --json --quiet"), 0);
    j = printed_json(p);
    assert_string_equal(json_string_value(json_object_get(j, "report")), "r/index.html");
    json_decref(j);
    page = contents(p, "r/index.html", &size);
    must_contain(page, "<title>net \xc2\xb7 octet report</title>");
    must_contain(page, "\"name\":\"/body/b/Conv\"");
    must_contain(page, "\"accuracy\":{");
    must_contain(page, "\"ms\":[");
    must_contain(page, "octet quantize net.onnx -o out.onnx --images img --annotations classes.txt "
                       "--report r --json --quiet");
    must_contain(page, "\"graph\":{\"nodes\":[{");
    must_contain(page, "\"steps\":[[0,\"");
    must_contain(page, "\"p10\":[");
    free(page);
    assert_int_equal(octet(p, QUANTIZE "--json --quiet"), 0);
    j = printed_json(p);
    assert_true(json_is_null(json_object_get(j, "report")));
    json_decref(j);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(quantizes_and_tells),
        TEST(makes_files_for_other_targets),
        TEST(prints_json),
        TEST(a_report_is_written_with_the_network),
        TEST(long_words_wrap_behind_commas),
        TEST(same_inputs_same_bytes),
        TEST(files_for_npus_keep_their_limits),
        TEST(outputs_are_chosen),
        TEST(the_file_says_who_made_it),
        TEST(settings_of_a_file_are_a_recipe),
        TEST(chooses_files_to_write),
        TEST(takes_tensors),
        TEST(the_size_of_the_network_counts),
        TEST(options_without_effect_say_so),
        TEST(blocks_learn_on_request),
        TEST(says_what_it_assumes),
        TEST(takes_float16_networks),
        TEST(recipe_equals_command_line),
        TEST(switches_turn_off),
        TEST(foreign_files_are_explained),
        TEST(files_are_replaced_only_if_octet_made_them),
    };

    if (argc < 2) return 1;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
