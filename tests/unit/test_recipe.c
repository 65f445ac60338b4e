/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes: what is read, what is refused and where, foreign files, and text that reads back. */
#include "tests/alloc.h"
#include "tests/test.h"

#include <octet/detect.h>
#include <octet/quant.h>
#include <octet/recipe.h>

#include "recipe/recipe.h"

typedef struct state {
    oct_ctx *ctx;
    oct_recipe *r;
} state;

static int recipe_setup(void **out)
{
    state *s = calloc(1, sizeof(*s));

    if (!s || !(s->ctx = oct_ctx_new(NULL)) || oct_recipe_new(s->ctx, &s->r)) return -1;
    *out = s;
    return 0;
}

static int recipe_teardown(void **out)
{
    state *s = *out;
    size_t left;

    oct_recipe_free(s->r);
    left = atomic_load(&s->ctx->mem_used);
    oct_ctx_free(s->ctx);
    free(s);
    return left ? -1 : 0;
}

static oct_status load(state *s, const char *text)
{
    return oct_recipe_load_memory(s->r, "r.yaml", text, strlen(text));
}

/* Options as a caller would have initialised them. */
static oct_quantize_options options_of(const oct_recipe *r)
{
    oct_quantize_options o = {.struct_size = sizeof(o)};

    oct_recipe_get_quantize(r, &o);
    return o;
}

static oct_recipe_job job_of(const oct_recipe *r)
{
    oct_recipe_job job = {.struct_size = sizeof(job)};

    oct_recipe_get_job(r, &job);
    return job;
}

static oct_dataset_options data_of(const oct_recipe *r)
{
    oct_dataset_options o;

    oct_dataset_options_init(&o);
    oct_recipe_get_data(r, &o);
    return o;
}

/* --- reading --- */

static const char whole[] =
    "model: yolov8n.onnx\n"
    "data: {images: calib/, annotations: null, subset_size: 128}\n"
    "preprocess: {size: [640, 480], fit: letterbox, pad: 114, mean: [.1, .2, .3]}\n"
    "target: ort                 # a comment\n"
    "preset: MIXED\n"
    "ignored_scope: {names: [], patterns: ['.*/cv2/.*'], types: [Softmax],\n"
    "  subgraphs: [{inputs: [a], outputs: [b, c]}], validate: false}\n"
    "only_scope:\n  names: single\n"
    "ranges: {activations: mse, weights: mse, percentile: 99.9}\n"
    "bias_correction: fast\n"
    "smooth_quant: 0.5\nequalize: true\ntail: [/a/Mul, /b/Concat]\n"
    "overrides:\n  - {name: /x/Conv, weight_bits: 4, symmetric: false}\n"
    "  - pattern: 'head.*'\n    per_tensor: true\n    activation_ranges: kl\n"
    "seed: 9007199254740991\nthreads: 2\noutput: out.onnx\n";

static void check_whole(const oct_recipe *r)
{
    const oct_quantize_options o = options_of(r);
    const oct_recipe_job job = job_of(r);
    const oct_dataset_options d = data_of(r);

    assert_string_equal(job.model, "yolov8n.onnx");
    assert_string_equal(job.output, "out.onnx");
    assert_string_equal(job.preprocess, "size=640x480,fit=letterbox,pad=114,mean=.1:.2:.3");
    assert_int_equal(job.threads, 2);
    assert_int_equal(job.eval, 0);
    assert_string_equal(d.images, "calib/");
    assert_null(d.annotations);
    assert_int_equal(d.subset_size, 128);
    assert_true(d.seed == 9007199254740991u);
    assert_string_equal(o.target, "ort");
    assert_string_equal(o.preset, "mixed");
    assert_string_equal(o.tail, "/a/Mul,/b/Concat");
    assert_int_equal(o.ignored.n_names, 0);
    assert_int_equal(o.ignored.n_patterns, 1);
    assert_string_equal(o.ignored.patterns[0], ".*/cv2/.*");
    assert_string_equal(o.ignored.types[0], "Softmax");
    assert_int_equal(o.ignored.n_subgraphs, 1);
    assert_string_equal(o.ignored.subgraphs[0].inputs[0], "a");
    assert_int_equal(o.ignored.subgraphs[0].n_outputs, 2);
    assert_string_equal(o.ignored.subgraphs[0].outputs[1], "c");
    assert_int_equal(o.ignored.allow_unmatched, 1);
    assert_int_equal(o.only.n_names, 1);
    assert_string_equal(o.activation_ranges, "mse");
    assert_null(o.channel_ranges);
    assert_true(o.percentile == 99.9 && o.smooth_quant == 0.5);
    assert_int_equal(o.equalize, 1);
    assert_int_equal(o.n_overrides, 2);
    assert_string_equal(o.overrides[0].name, "/x/Conv");
    assert_int_equal(o.overrides[0].weight_bits, 4);
    assert_int_equal(o.overrides[0].symmetric, -1);
    assert_int_equal(o.overrides[1].per_tensor, 1);
    assert_string_equal(o.overrides[1].activation_ranges, "kl");
    assert_int_equal(o.seed, 9007199254740991u);
}

static void reads_yaml(void **out)
{
    state *s = *out;

    assert_ok(s->ctx, load(s, whole));
    check_whole(s->r);
}

static void reads_json(void **out)
{
    state *s = *out;

    assert_ok(s->ctx,
              load(s, "{\n\t\"model\": \"m.onnx\", // why\n\t\"data\": {\"subset_size\": 1e2, "
                      "\"images\": \"http://x\"},\n"
                      "\t\"ignored_scope\": {\"names\": [\"a\\u00e9\\/b\"]},\n"
                      "\t\"fast_bias_correction\": false\n}\n"));
    assert_string_equal(job_of(s->r).model, "m.onnx");
    assert_int_equal(data_of(s->r).subset_size, 100);
    assert_string_equal(data_of(s->r).images, "http://x");
    assert_string_equal(options_of(s->r).ignored.names[0], "a\xc3\xa9/b");
    assert_string_equal(options_of(s->r).bias_correction, "full");
}

static void nothing_is_a_recipe_too(void **out)
{
    state *s = *out;

    assert_ok(s->ctx, load(s, ""));
    assert_ok(s->ctx, load(s, "# only this\n"));
    assert_ok(s->ctx, load(s, "data: ~\nranges:\npreset: null\n"));
    assert_int_equal(data_of(s->r).subset_size, 300);
    assert_null(options_of(s->r).preset);
}

/* --- what is refused, and where --- */

static void says_where_and_what(void **out)
{
    state *s = *out;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"model: m\n\nignored_scop: {names: [a]}\n",
         "r.yaml:3:1: unknown key 'ignored_scop'; did you mean 'ignored_scope'?"},
        {"ignored_scope:\n    nams: [a]\n",
         "r.yaml:2:5: unknown key 'ignored_scope.nams'; did you mean 'names'?"},
        {"skip_bad: true\n", "r.yaml:1:1: unknown key 'skip_bad'; 'data.skip_bad'"},
        {"subset_size: 5\nmax_lost: 1\n", "r.yaml:2:1: unknown key 'max_lost'"},
        {"data: {subset_size: many}\n",
         "r.yaml:1:21: 'data.subset_size' wants a whole number from 0 to 1000000000, not 'many'"},
        {"data: {subset_size: '5'}\n", "not '5' in quotes"},
        {"data: {subset_size: 1.5}\n", "r.yaml:1:21: 'data.subset_size' wants a whole number"},
        {"data: {subset_size: -1}\n", "r.yaml:1:21:"},
        {"data: {subset_size: 0x10}\n", "r.yaml:1:21:"},
        {"data: {subset_size: .nan}\n", "r.yaml:1:21:"},
        {"data: calib\n", "r.yaml:1:7: 'data' has keys of its own, as {images: ..}"},
        {"data: {annotations: [a]}\n", "r.yaml:1:21: 'data.annotations' wants a text, not a list"},
        {"data: {images: a, data: b}\n", "r.yaml:1:25: either images or data"},
        {"preset: mixd\n", "r.yaml:1:9: 'preset' is performance|mixed, not 'mixd'; did you mean "
                           "'mixed'?"},
        {"bias_correction: yes\n", "r.yaml:1:18: 'bias_correction' is fast|full|none"},
        {"int8_io: 1\n", "r.yaml:1:10: 'int8_io' wants true or false, not '1'"},
        {"int8_io: 'true'\n", "r.yaml:1:10: 'int8_io' wants true or false, not 'true' in quotes"},
        {"model: a\nmodel: b\n", "r.yaml:2:1: key 'model' is given twice"},
        {"ignored_scope: {names: [{a: b}]}\n", "r.yaml:1:25: 'ignored_scope.names' wants texts"},
        {"ignored_scope: {subgraphs: [{inputs: [a]}]}\n",
         "r.yaml:1:29: a subgraph wants inputs and outputs"},
        {"ignored_scope: {subgraphs: [{inputs: a, output: b}]}\n", "no 'output'"},
        {"overrides: [{weight_bits: 4}]\n", "an override wants either a name or a pattern"},
        {"overrides: [{name: a, pattern: b}]\n", "either"},
        {"overrides: [{name: a, weight_bit: 4}]\n", "did you mean 'weight_bits'?"},
        {"overrides: [{name: a, weight_bits: 33}]\n", "from 2 to 16"},
        {"preprocess: {fit: letterbx}\n", "r.yaml:1:13: preprocess: fit cannot be \"letterbx\""},
        {"preprocess: {fitt: letterbox}\n", "did you mean \"fit\"?"},
        {"ranges: {percentile: 101}\n", "from 50 to 100"},
        {"target: orrt\n", ":1:9: 'target' wants one of octet, ort, "},
        {"target: orrt\n", "not 'orrt'; did you mean 'ort'?"},
        {"family: yolov9\n", ":1:9: 'family' wants one of auto, "},
        {"ranges: {activations: k1}\n", ":1:23: 'ranges.activations' wants one of estimator, "},
        {"overrides: [{name: a, activation_ranges: k1}]\n",
         "'activation_ranges' wants one of estimator, "},
        {"overrides: [{name: a, weight_ranges: maxx}]\n", "did you mean 'max'?"},
        {"- model\n", "r.yaml:1:1: a recipe consists of keys with values"},
        {"just text\n", "a recipe consists of keys with values"},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        assert_fails(s->ctx, load(s, cases[i].text), OCT_ERR_ARG, cases[i].error);
}

static void refuses_broken_and_hostile_text(void **out)
{
    state *s = *out;
    char *deep = calloc(1, 100000), *large = calloc(1, OCT_TREE_MAX_BYTES + 2);
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"a: [1, 2\n", "r.yaml:2:1: flow sequence without a closing bracket"},
        {"a: \"x\n", "r.yaml:1:"},
        {"a: &x [1]\nb: *x\n", "r.yaml:2:4: aliases (*..) are not read"},
        {"model: !!str x\n", "tags"},
        {"model: a\n---\nmodel: b\n", "a second document"},
        {"model: \xff\n", "r.yaml:1:8: this is no text"},
        {"model: a\nx: \x01\n", "r.yaml:2:4: this is no text"},
        {"model: \"a\\0b\"\n", "a zero byte"},
        {"model: 'a''''b'\n", "r.yaml:1:8: two quotes in a row"},
        {"? [a, b]\n: c\n", "a key must be a single word"},
    };

    assert_non_null(deep);
    assert_non_null(large);
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        assert_fails(s->ctx, load(s, cases[i].text), OCT_ERR_FORMAT, cases[i].error);
    memset(deep, '[', 50000);
    assert_fails(s->ctx, load(s, deep), OCT_ERR_FORMAT, "r.yaml:1:17: nested too deep");
    memset(large, ' ', OCT_TREE_MAX_BYTES + 1);
    assert_fails(s->ctx, load(s, large), OCT_ERR_FORMAT, "at most 1048576 are read");
    deep[0] = '\0';
    for (int i = 0; i < 4100; i++)
        snprintf(deep + strlen(deep), 16, "k%d: 1\n", i);
    assert_fails(s->ctx, load(s, deep), OCT_ERR_FORMAT, "more than 4096 keys");
    free(deep);
    free(large);
}

/* --- words of the command line --- */

static void words_override_the_file(void **out)
{
    state *s = *out;
    oct_quantize_options o;

    assert_ok(s->ctx, load(s, whole));
    assert_ok(s->ctx, oct_recipe_set(s->r, "subset-size", "7"));
    assert_ok(s->ctx, oct_recipe_set(s->r, "ignore-pattern", "one"));
    assert_ok(s->ctx, oct_recipe_set(s->r, "ignore-pattern", "two"));
    assert_ok(s->ctx, oct_recipe_set(s->r, "ignore-subgraph", "p,q:r"));
    assert_ok(s->ctx, oct_recipe_set(s->r, "override", "{pattern: 'a{1,2}', weight_bits: 8}"));
    assert_ok(s->ctx, oct_recipe_set(s->r, "ignored_scope.validate", "true"));
    assert_ok(s->ctx, oct_recipe_set(s->r, "seed", "3"));
    assert_ok(s->ctx, oct_recipe_set(s->r, "data", "t.npz"));
    o = options_of(s->r);
    assert_string_equal(data_of(s->r).images, "t.npz");
    assert_fails(s->ctx, oct_recipe_set(s->r, "images", "dir"), OCT_ERR_ARG, "either images or");
    assert_int_equal(data_of(s->r).subset_size, 7);
    assert_int_equal(o.ignored.n_patterns, 2);
    assert_string_equal(o.ignored.patterns[1], "two");
    assert_int_equal(o.ignored.n_types, 1);
    assert_int_equal(o.ignored.n_subgraphs, 1);
    assert_string_equal(o.ignored.subgraphs[0].inputs[1], "q");
    assert_int_equal(o.n_overrides, 1);
    assert_string_equal(o.overrides[0].pattern, "a{1,2}");
    assert_int_equal(o.ignored.allow_unmatched, 0);
    assert_int_equal(o.seed, 3);
}

static void wrong_words_name_the_option(void **out)
{
    state *s = *out;

    assert_fails(s->ctx, oct_recipe_set(s->r, "subset-size", "x"), OCT_ERR_ARG,
                 "option --subset-size: ");
    assert_fails(s->ctx, oct_recipe_set(s->r, "ignore-subgraph", "a"), OCT_ERR_ARG,
                 "option --ignore-subgraph: 'a' is not A:B");
    assert_fails(s->ctx, oct_recipe_set(s->r, "override", "a=b"), OCT_ERR_ARG, "option --override");
    assert_fails(s->ctx, oct_recipe_set(s->r, "subset-sise", "1"), OCT_ERR_ARG,
                 "did you mean 'subset-size'?");
}

/* --- text --- */

static void text_reads_back(void **out)
{
    state *s = *out;
    const char *text = NULL, *again = NULL;
    oct_recipe *copy = NULL;

    assert_ok(s->ctx, load(s, whole));
    assert_ok(s->ctx, oct_recipe_set(s->r, "ignore-name", "it's a ''\"name\"\n\\x"));
    assert_ok(s->ctx, oct_recipe_set(s->r, "ignore-name", "true"));
    assert_ok(s->ctx, oct_recipe_set(s->r, "ignore-name", "12"));
    assert_ok(s->ctx, oct_recipe_set(s->r, "ignore-name", "a, b: {c} # d \xc3\xa9\xef\xbb\xbf"));
    assert_ok(s->ctx, oct_recipe_text(s->r, &text));
    assert_ok(s->ctx, oct_recipe_new(s->ctx, &copy));
    assert_ok(s->ctx, oct_recipe_load_memory(copy, "text", text, strlen(text)));
    assert_ok(s->ctx, oct_recipe_text(copy, &again));
    assert_string_equal(text, again);
    assert_int_equal(options_of(copy).ignored.n_names, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(options_of(copy).ignored.names[i], options_of(s->r).ignored.names[i]);
    assert_string_equal(options_of(copy).ignored.names[0], "it's a ''\"name\"\n\\x");
    oct_recipe_free(copy);
}

/* Every field of the table, set by a word that its row allows, survives being printed and read. */
static void every_field_reads_back(void **out)
{
    state *s = *out;
    const char *text = NULL, *again = NULL;
    oct_recipe *copy = NULL;

    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++) {
        const oct_field *f = &oct_recipe_fields[i];
        char word[64];

        if (i == OCT_RECIPE_DATA) continue; /* there are images already */
        switch (f->kind) {
        case OCT_FIELD_CHOICE:
            snprintf(word, sizeof(word), "%.*s", (int)strcspn(f->metavar, "|"), f->metavar);
            break;
        case OCT_FIELD_INT:
        case OCT_FIELD_SEED:
        case OCT_FIELD_REAL:
            snprintf(word, sizeof(word), "%.16g", f->max);
            break;
        case OCT_FIELD_SWITCH:
        case OCT_FIELD_SWITCH_OFF:
        case OCT_FIELD_FAST_BIAS:
            strcpy(word, "true");
            break;
        case OCT_FIELD_PREPROCESS:
            strcpy(word, "size=640x480,scale=1,std=1:2:3");
            break;
        case OCT_FIELD_SUBGRAPHS:
            strcpy(word, "a:b");
            break;
        case OCT_FIELD_OVERRIDES:
            strcpy(word, "{name: a}");
            break;
        default:
            strcpy(word, i == OCT_RECIPE_TARGET                                     ? "ort"
                         : i == OCT_RECIPE_FAMILY                                   ? "ssd"
                         : i == OCT_RECIPE_RANGES || i == OCT_RECIPE_CHANNEL_RANGES ? "kl"
                         : i == OCT_RECIPE_TRAIN_PRESET                             ? "yolox"
                         : i == OCT_RECIPE_TRAIN_LOSS                               ? "yolo_nas"
                         : i == OCT_RECIPE_TRAIN_OPTIMIZER                          ? "adamw"
                         : i == OCT_RECIPE_TRAIN_SCHEDULE                           ? "cosine"
                         : i == OCT_RECIPE_TRAIN_EMA                                ? "none"
                         : i == OCT_RECIPE_TRAIN_AUGMENT                            ? "light"
                         : i == OCT_RECIPE_PRUNE_IMPORTANCE                         ? "l1"
                         : i == OCT_RECIPE_PRUNE_SCHEDULE                           ? "baseline"
                         : i == OCT_RECIPE_SPARSITY_SCHEDULE                        ? "baseline"
                                                                                    : "some text");
        }
        assert_ok(s->ctx, oct_recipe_set(s->r, f->path, word));
        if (i != OCT_RECIPE_FAST_BIAS) assert_int_not_equal(s->r->origin[i], OCT_ORIGIN_NONE);
    }
    assert_ok(s->ctx, oct_recipe_text(s->r, &text));
    assert_ok(s->ctx, oct_recipe_new(s->ctx, &copy));
    assert_ok(s->ctx, oct_recipe_load_memory(copy, "text", text, strlen(text)));
    assert_ok(s->ctx, oct_recipe_text(copy, &again));
    assert_string_equal(text, again);
    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++)
        assert_int_equal(!copy->origin[i], !s->r->origin[i]);
    oct_recipe_free(copy);
}

/* --- foreign files --- */

static bool has_note(const oct_recipe *r, const char *part)
{
    for (int32_t i = 0; oct_recipe_note(r, i); i++)
        if (strstr(oct_recipe_note(r, i), part)) return true;
    for (int32_t i = 0; oct_recipe_note(r, i); i++)
        print_error("note: %s\n", oct_recipe_note(r, i));
    return false;
}

static void reads_nncf(void **out)
{
    state *s = *out;
    oct_quantize_options o;

    assert_ok(
        s->ctx,
        load(s,
             "{\n  \"input_info\": {\"sample_size\": [8, 3, 300, 300]}, // pictures\n"
             "  \"target_device\": \"CPU\",\n  \"compression\": [{\n"
             "    \"algorithm\": \"quantization\", \"preset\": \"mixed\",\n"
             "    \"initializer\": {\"range\": {\"num_init_steps\": 10, \"type\": "
             "\"mean_min_max\"},\n      \"batchnorm_adaptation\": "
             "{\"num_bn_adaptation_steps\": 30}},\n"
             "    \"weights\": {\"bits\": 4, \"mode\": \"symmetric\"},\n"
             "    \"ignored_scopes\": [\"{re}.*loc.*\", \"SSD/ModuleList[loc]/Conv[0]/conv2d_0\","
             " \"plain\"],\n    \"overflow_fix\": \"disable\"},\n"
             "    ],\n  \"log_dir\": \"x\", \"lr\": 1, \"nncf_compress_postprocessing\": "
             "true\n}\n"));
    assert_true(has_note(s->r, "log_dir x: train.tensorboard"));
    assert_true(has_note(s->r, "nncf_compress_postprocessing true: tail off"));
    assert_string_equal(options_of(s->r).tail, "off");
    o = options_of(s->r);
    assert_string_equal(o.preset, "mixed");
    assert_string_equal(o.target_device, "CPU");
    assert_int_equal(data_of(s->r).subset_size, 80);
    assert_string_equal(o.activation_ranges, "mean_minmax");
    assert_int_equal(o.ignored.n_patterns, 1);
    assert_string_equal(o.ignored.patterns[0], ".*(?:.*loc.*)");
    assert_int_equal(o.ignored.n_names, 2);
    assert_string_equal(o.ignored.names[0], "loc.0");
    assert_string_equal(o.ignored.names[1], "plain");
    assert_int_equal(o.n_overrides, 1);
    assert_int_equal(o.overrides[0].weight_bits, 4);
    assert_true(has_note(s->r, "read as a config of NNCF"));
    assert_true(has_note(s->r, "quantization.overflow_fix disable: overflow_fix disable"));
    assert_string_equal(o.overflow_fix, "disable");
    assert_string_equal(job_of(s->r).sample_size, "8x3x300x300");
    assert_true(has_note(s->r, "left out: lr"));
    assert_true(has_note(s->r, "batches of 8"));
}

static void nncf_needs_quantization(void **out)
{
    state *s = *out;

    assert_fails(s->ctx, load(s, "{\"compression\": {\"algorithm\": \"rb_sparsity\"}}"),
                 OCT_ERR_ARG, "octet has no compression algorithm 'rb_sparsity'");
    assert_fails(s->ctx, load(s, "{\"compression\": [1]}"), OCT_ERR_ARG, "wants an 'algorithm'");
    assert_fails(s->ctx,
                 load(s, "{\"compression\": {\"algorithm\": \"quantization\", \"preset\": 7}}"),
                 OCT_ERR_ARG, "'preset' is performance|mixed");
    assert_ok(s->ctx, load(s, "nncf_config: {compression: {algorithm: quantization, initializer: "
                              "{range: {num_init_samples: 12}}}}\n"));
    assert_int_equal(data_of(s->r).subset_size, 12);
}

/* What was asked for and cannot be done is no quantized file that looks finished. */
static void nncf_of_other_algorithms_is_refused(void **out)
{
    state *s = *out;

    assert_fails(s->ctx,
                 load(s, "compression:\n  - algorithm: quantization\n"
                         "  - algorithm: binarization\n"),
                 OCT_ERR_ARG, "r.yaml:3:16: octet has no compression algorithm 'binarization'");
    assert_ok(s->ctx, load(s, "nncf_config: {compression: {algorithm: quantization}, weird: 1}\n"
                              "nncf_compress_postprocessing: False\n"));
    assert_string_equal(options_of(s->r).tail, "auto");
    assert_true(has_note(s->r, "left out: weird"));
    assert_fails(s->ctx,
                 load(s, "compression: {algorithm: quantization}\n"
                         "nncf_compress_postprocessing: 3\n"),
                 OCT_ERR_ARG, "true or false");
}

/* Each key has a note that is true. */
static void notes_of_super_gradients_are_true(void **out)
{
    state *s = *out;

    assert_ok(s->ctx, load(s, "ptq_only: False\n"
                              "selective_quantizer_params: {calibrator_w: histogram, "
                              "calibrator_i: max}\n"
                              "calib_params: {histogram_calib_method: entropy, percentile: 99}\n"));
    assert_string_equal(options_of(s->r).activation_ranges, "minmax");
    assert_string_equal(options_of(s->r).weight_ranges, "mse");
    assert_true(has_note(s->r, "ptq_only False (octet qat trains"));
    assert_true(has_note(s->r, "left out: histogram_calib_method (calibrator_i is max"));
    assert_true(has_note(s->r, "percentile 99: ranges.percentile, of no effect"));
    assert_false(has_note(s->r, "ranges.activations kl"));
    assert_ok(s->ctx, load(s, "selective_quantizer_params: {calibrator_w: histogram}\n"
                              "calib_params: {histogram_calib_method: percentile}\n"));
    assert_string_equal(options_of(s->r).weight_ranges, "percentile");
    assert_string_equal(options_of(s->r).activation_ranges, "percentile");
}

/* Divisors are of the training that the file describes, or of YOLO-NAS's usual one. */
static void reads_qat_params(void **out)
{
    state *s = *out;
    oct_train_options o;

    oct_train_options_init(&o);
    assert_ok(s->ctx, load(s, "qat_params: {batch_size_divisor: 2, max_epochs_divisor: 10, "
                              "lr_decay_factor: 0.01, warmup_epochs_divisor: 10,\n"
                              "  cosine_final_lr_ratio: 0.02, disable_augmentations: True, "
                              "disable_phase_callbacks: True}\n"
                              "selective_quantizer_params: {learn_amax: True}\n"
                              "training_hyperparams: {max_epochs: 55, initial_lr: 5e-4}\n"));
    oct_recipe_get_train(s->r, &o);
    assert_string_equal(o.preset, "super_gradients");
    assert_int_equal(o.batch, 4);
    assert_int_equal(o.epochs, 5);
    assert_true(o.rate == 5e-6 && o.final_rate == .02 && o.warmup_epochs == .1);
    assert_string_equal(o.augment, "none");
    assert_true(o.scale_rate == 1);
    assert_true(has_note(s->r, "max_epochs_divisor 10: train.epochs 5"));
    assert_true(has_note(s->r, "left out: disable_phase_callbacks"));
    assert_fails(s->ctx, load(s, "qat_params: {lr_decay_factor: none}\n"), OCT_ERR_ARG, "above 0");
    assert_fails(s->ctx, load(s, "qat_params: 3\n"), OCT_ERR_ARG, "keys");
}

static void reads_super_gradients(void **out)
{
    state *s = *out;
    oct_quantize_options o;

    assert_ok(s->ctx,
              load(s,
                   "ptq_only: False\nmodel: own.onnx\n"
                   "selective_quantizer_params:\n"
                   "  calibrator_w: \"max\"\n  calibrator_i: \"histogram\"\n"
                   "  per_channel: False\n  learn_amax: False\n"
                   "  skip_modules:              # optional\n"
                   "    - heads.head1.reg_convs\n"
                   "    - YoloNAS_S/NDFLHeads[heads]/YoloNASDFLHead[head2]/NNCFConv2d[cls_pred]\n"
                   "    - heads.+reg_pred\n"
                   "calib_params:\n  histogram_calib_method: \"entropy\"\n"
                   "  percentile: 99.9\n  num_calib_batches: 2\n  verbose: False\n"));
    o = options_of(s->r);
    assert_string_equal(job_of(s->r).model, "own.onnx");
    assert_int_equal(o.ignored.n_names, 2);
    assert_string_equal(o.ignored.names[0], "heads.head1.reg_convs");
    assert_string_equal(o.ignored.names[1], "heads.head2.cls_pred");
    assert_string_equal(o.ignored.patterns[0], ".*(?:heads.+reg_pred)");
    assert_string_equal(o.activation_ranges, "kl");
    assert_string_equal(o.weight_ranges, "max");
    assert_true(o.percentile == 99.9);
    assert_int_equal(o.overrides[0].per_tensor, 1);
    assert_int_equal(data_of(s->r).subset_size, 2 * OCT_ADAPTER_BATCH);
    assert_true(has_note(s->r, "left out: verbose"));
    assert_ok(s->ctx, load(s, "quantization_params:\n  selective_quantizer_params:\n    "
                              "skip_modules: null\n  calib_params: {percentile: 99}\n"));
    assert_true(options_of(s->r).percentile == 99);
}

/* --- memory, documentation --- */

static oct_status read_and_print(oct_ctx *ctx)
{
    static const char foreign[] = "selective_quantizer_params: {skip_modules: [a.b, c+]}\n"
                                  "calib_params: {num_calib_batches: 2}\n";
    oct_recipe *r = NULL;
    const char *text = NULL;
    oct_status st = oct_recipe_new(ctx, &r);

    if (!st) st = oct_recipe_load_memory(r, "r.yaml", whole, strlen(whole));
    if (!st) st = oct_recipe_load_memory(r, "f.yaml", foreign, strlen(foreign));
    if (!st) st = oct_recipe_set(r, "override", "{name: a}");
    if (!st) st = oct_recipe_text(r, &text);
    oct_recipe_free(r);
    return st;
}

static void survives_want_of_memory(void **out)
{
    (void)out;
    fail_each_allocation(read_and_print);
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);

    assert_non_null(f);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

/* docs/recipe.md has a row for each field, in the table's words. */
static void documentation_has_every_field(void **out)
{
    const char *root = getenv("OCTET_SOURCE_ROOT");
    char path[4096], row[1024], option[96];
    oct_recipe_field f = {.struct_size = sizeof(f)};
    char *text;

    (void)out;
    if (!root) skip_test("OCTET_SOURCE_ROOT is not set");
    snprintf(path, sizeof(path), "%s/docs/recipe.md", root);
    text = read_file(path);
    for (int32_t i = 0; oct_recipe_field_at(i, &f); i++) {
        snprintf(option, sizeof(option), *f.option ? "`--%s`" : "%s", f.option);
        snprintf(row, sizeof(row), "| `%s` | %s | %s | %s |", f.path, option, f.def ? f.def : "",
                 f.help);
        if (!strstr(text, row)) fail_msg("docs/recipe.md lacks the row\n%s", row);
    }
    free(text);
}

/* ... and every name there is to choose from. */
static void documentation_has_every_name(void **out)
{
    static const char *(*const lists[])(int32_t) = {oct_target_name, oct_family_name,
                                                    oct_observer_name};
    const char *root = getenv("OCTET_SOURCE_ROOT");
    char path[4096], word[64], *text;

    (void)out;
    if (!root) skip();
    snprintf(path, sizeof(path), "%s/docs/recipe.md", root);
    text = read_file(path);
    for (size_t k = 0; k < OCT_COUNT(lists); k++)
        for (int32_t i = 0; lists[k](i); i++) {
            snprintf(word, sizeof(word), "`%s`", lists[k](i));
            if (!strstr(text, word)) fail_msg("docs/recipe.md does not name %s", word);
        }
    free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, recipe_setup, recipe_teardown)
    const struct CMUnitTest tests[] = {
        TEST(reads_yaml),
        TEST(reads_json),
        TEST(nothing_is_a_recipe_too),
        TEST(says_where_and_what),
        TEST(refuses_broken_and_hostile_text),
        TEST(words_override_the_file),
        TEST(wrong_words_name_the_option),
        TEST(text_reads_back),
        TEST(every_field_reads_back),
        TEST(reads_nncf),
        TEST(nncf_needs_quantization),
        TEST(nncf_of_other_algorithms_is_refused),
        TEST(notes_of_super_gradients_are_true),
        TEST(reads_qat_params),
        TEST(reads_super_gradients),
        cmocka_unit_test(survives_want_of_memory),
        cmocka_unit_test(documentation_has_every_field),
        cmocka_unit_test(documentation_has_every_name),
    };

    return run_test_group(tests);
}
