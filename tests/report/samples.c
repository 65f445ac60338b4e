/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes reports whose parts are made up, for the tests in a browser: "plain", "hostile" (names
 * that try to get out of the page), "thousand" (layers), "trained" (epochs, resumed after the
 * third), "tuned" (trials of a search) and "empty" (nothing is known). usage: samples DIR
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <octet/octet.h>

#include "analyze/analysis.h"
#include "base/rng.h"
#include "graph/graph.h"
#include "op/op.h"

enum { BINS = 200, PICTURES = 12, CLASSES = 3, SCENES = 2 };

static const char *const hostile[] = {
    "<script>document.title='broken'</script>",
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "\"'><svg onload=document.title='broken'>",
    "--><!-- \\u003c ]]> {{data}} &lt;b&gt;",
    "\x01\x02\n\t\x1b[31m\x7f",
    "\xff\xfe broken \xc3",
    "\xe2\x80\xa8 line separator \xe2\x80\xae right to left",
    "constructor",
    "__proto__",
};

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if (call) {                                                                                \
            (void)fprintf(stderr, "%s: %s\n", #call, oct_ctx_error(s->ctx));                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef struct sample {
    oct_ctx *ctx;
    oct_graph *g;
    oct_analysis *a;
    oct_report_time *times;
    oct_report_step *steps; /* of both networks */
    oct_dataset *truth;
    oct_box_eval *boxes[2];
    oct_box_noise noise;
    oct_eval_result scores[2];
    int n;
} sample;

static const char *name_of(const sample *s, int i, bool is_hostile)
{
    if (is_hostile) return hostile[i % (int)OCT_COUNT(hostile)];
    return oct_arena_printf(s->a->arena, "/model/stage%d/block%d/conv/Conv", i / 8, i);
}

/* --- the graph: x -> (QuantizeLinear -> DequantizeLinear -> Relu)... --- */

static oct_value *number(sample *s, oct_dtype dtype, double v)
{
    const oct_type type = oct_type_make(dtype, 0, NULL);
    oct_tensor *t = NULL;

    MUST(oct_tensor_make(s->ctx, &type, &t));
    oct_store_f64(dtype, t->data, 0, 1, &v);
    return oct_value_const(s->g, NULL, t);
}

static oct_value *add(sample *s, const char *name, const oct_op *op, oct_value **in, int n)
{
    oct_node *node = oct_node_new(s->g, NULL, name, op, in, n, NULL, 1);

    if (!node) exit(1);
    MUST(oct_node_infer(node));
    return node->out[0];
}

static void make_graph(sample *s, bool is_hostile)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){1, 8, 32, 32});
    oct_value *v, *scale, *zero;

    MUST(oct_graph_new(s->ctx, "sample", &s->g));
    v = oct_value_new(s->g, is_hostile ? hostile[1] : "images", &type);
    MUST(oct_graph_add_input(s->g, v));
    scale = number(s, OCT_DTYPE_F32, 0.02);
    zero = number(s, OCT_DTYPE_U8, 0);
    for (int i = 0; i < s->n; i++) {
        if (i % 9 != 8) {
            v = add(s, NULL, &oct_op_quantize_linear, (oct_value *[]){v, scale, zero}, 3);
            v = add(s, NULL, &oct_op_dequantize_linear, (oct_value *[]){v, scale, zero}, 3);
        }
        v = add(s, s->a->layers[i].name, &oct_op_relu, &v, 1);
    }
    MUST(oct_graph_add_output(s->g, v));
}

/* --- the analysis --- */

static oct_error error_of(double noise)
{
    return (oct_error){noise, 1 - noise / 2, noise * 0.3, noise * 0.1};
}

static void make_point(sample *s, oct_rng *rng, int i)
{
    int64_t *bins = oct_arena_array(s->a->arena, BINS, sizeof(*bins));
    const double top = 2 + 6 * oct_rng_f64(rng), width = 0.06 + 0.2 * (double)(i % 3);

    for (int k = 0; k < BINS; k++) {
        const double x = (double)k / BINS;

        bins[k] = (int64_t)(1e6 * exp(-x / width) + (k > BINS - 4 ? 30 : 0));
    }
    if (i == 0)
        bins[BINS - 1] = 1000; /* the largest number has a bin of its own, as 1.0 has in
                                  pictures; nothing is cut off */
    s->a->points[i] = (oct_analyzed_point){.struct_size = sizeof(oct_analyzed_point),
                                           .value = s->a->layers[i].name,
                                           .layer = s->a->layers[i].name,
                                           .type = "uint8",
                                           .n_scales = i % 5 ? 1 : 16,
                                           .scale = top * 0.8 / 255,
                                           .max = top,
                                           .high = i ? top * 0.8 : top - (top + 0.27) * 2.05 / BINS,
                                           .min = -0.27,
                                           .low = -0.27,
                                           .clipped = i ? 2.5e-4 : 0,
                                           .levels = 256,
                                           .used = 251,
                                           .kurtosis = 9.5,
                                           .spread = 3.2,
                                           .noise = 2e-4,
                                           .histogram = bins,
                                           .n_bins = BINS,
                                           .histogram_low = -0.27,
                                           .histogram_high = top};
}

static void make_rows(sample *s, bool is_hostile)
{
    oct_analysis *a = s->a;
    oct_rng rng;

    oct_rng_init(&rng, 7);
    a->layers = oct_arena_array(a->arena, (size_t)s->n, sizeof(*a->layers));
    a->points = oct_arena_array(a->arena, (size_t)s->n, sizeof(*a->points));
    s->times = oct_arena_array(a->arena, (size_t)s->n, sizeof(*s->times));
    s->steps = oct_arena_array(a->arena, 2 * (size_t)s->n, sizeof(*s->steps));
    for (int i = 0; i < s->n; i++) {
        const bool is_float = i % 9 == 8;
        const double noise = 2e-4 * exp(4.0 * i / s->n + 2 * oct_rng_f64(&rng));

        a->layers[i] = (oct_analyzed_layer){
            .struct_size = sizeof(*a->layers),
            .name = name_of(s, i, is_hostile),
            .op = i % 4 ? "Conv" : "Concat",
            .reason = !is_float    ? NULL
                      : is_hostile ? hostile[0]
                                   : "its output reaches the tail, which was left in float",
            .in_tail = is_float,
            .weight_bits = is_float ? 0 : 8,
            .input_bits = is_float ? 0 : 8,
            .macs = 1000000 * (i + 1),
            .params = 1000 * (i + 1),
            .weight_noise = is_float ? -1 : 1e-4,
            .alone = error_of(is_float ? -1 : noise * 0.02 * oct_rng_f64(&rng)),
            .all = error_of(noise)};
        s->times[i] =
            (oct_report_time){a->layers[i].name, 0.2 + 0.01 * (i % 17), 0.07 + 0.01 * (i % 7)};
        for (int k = 0; k < 2; k++)
            s->steps[2 * i + k] =
                (oct_report_step){.layer = a->layers[i].name,
                                  .op = is_hostile ? hostile[i % 3]
                                        : i % 4    ? "Conv+Swish"
                                                   : "Concat",
                                  .kernel = is_hostile ? hostile[1] : "conv:avx2",
                                  .ms = k ? s->times[i].int8_ms : s->times[i].float_ms,
                                  .p10_ms = 0.06,
                                  .p90_ms = 0.5,
                                  .is_int8_network = k};
        make_point(s, &rng, i);
        a->n_layers = a->n_points = i + 1;
    }
    a->images = 16;
}

static void make_advice(sample *s, bool is_hostile)
{
    oct_analysis *a = s->a;
    const char *name = a->layers[2].name;

    a->advice = oct_arena_array(a->arena, 2, sizeof(*a->advice));
    a->outputs = oct_arena_array(a->arena, 1, sizeof(*a->outputs));
    a->advice[0] = (oct_advice){
        sizeof(oct_advice),
        oct_arena_printf(a->arena, "Leave %s in float: a third of the error at the outputs is its.",
                         name),
        oct_arena_printf(a->arena, "--ignore-name '%s'", name), name, 0.34};
    a->advice[1] = (oct_advice){sizeof(oct_advice), "Try another way to find ranges.",
                                "--ranges mse", NULL, -1};
    a->n_advice = 2;
    a->outputs[0] = (oct_analyzed_output){is_hostile ? hostile[3] : "output0", error_of(3e-3)};
    a->n_outputs = 1;
}

/* --- accuracy and pictures --- */

static const char *const class_names[] = {"cat", "dog", "bird"};

/* Labels as a file: twelve pictures with one object each. */
static void open_truth(sample *s, const char *dir, bool is_hostile)
{
    char path[4096];
    oct_dataset_options o;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/truth.json", dir);
    if (!(f = fopen(path, "w"))) exit(1);
    (void)fputs("{\"categories\": [", f);
    for (int i = 0; i < CLASSES; i++)
        (void)fprintf(f, "%s{\"id\": %d, \"name\": \"%s\"}", i ? ", " : "", i + 1,
                      is_hostile ? "</script><img src=x>" : class_names[i]);
    (void)fputs("], \"images\": [", f);
    for (int i = 0; i < PICTURES; i++)
        (void)fprintf(f, "%s{\"id\": %d, \"file_name\": \"%d.jpg\"}", i ? ", " : "", i + 1, i);
    (void)fputs("], \"annotations\": [", f);
    for (int i = 0; i < PICTURES; i++)
        (void)fprintf(f,
                      "%s{\"id\": %d, \"image_id\": %d, \"category_id\": %d, \"bbox\": [10, 10, "
                      "50, 40], \"area\": 2000, \"iscrowd\": 0}",
                      i ? ", " : "", i + 1, i + 1, i % CLASSES + 1);
    (void)fputs("]}", f);
    (void)fclose(f);
    oct_dataset_options_init(&o);
    o.annotations = path;
    MUST(oct_dataset_open(s->ctx, &o, &s->truth));
}

/* The INT8 network misses a dog that the float network sees, and places birds worse. */
static void score(sample *s, const char *dir, bool is_hostile)
{
    open_truth(s, dir, is_hostile);
    for (int k = 0; k < 2; k++) {
        MUST(oct_box_eval_new(s->ctx, s->truth, &s->boxes[k]));
        for (int i = 0; i < PICTURES; i++) {
            const float shift = k && i % CLASSES == 2 ? 4 : 1;
            const oct_detection d = {10 + shift, 10, 50, 40, 0.9f - 0.01f * (float)i, i % CLASSES};

            MUST(oct_box_eval_see(s->boxes[k], i, &d, !(k && i == 4)));
        }
        s->scores[k].struct_size = sizeof(s->scores[k]);
        MUST(oct_box_eval_finish(s->boxes[k], 0, &s->scores[k].box));
    }
    s->noise.struct_size = sizeof(s->noise);
    MUST(oct_box_eval_noise(s->boxes[0], s->boxes[1], 0, 0, 1, &s->noise));
}

/* One pixel, as a PNG file. */
static const unsigned char pixel[] = {
    0x89, 'P',  'N',  'G',  '\r', '\n', 0x1a, '\n', 0,    0,    0,    13,   'I',  'H',
    'D',  'R',  0,    0,    0,    1,    0,    0,    0,    1,    8,    0,    0,    0,
    0,    0x3a, 0x7e, 0x9b, 0x55, 0,    0,    0,    10,   'I',  'D',  'A',  'T',  0x78,
    0x9c, 0x63, 0x68, 0,    0,    0,    0x82, 0,    0x81, 0x77, 0xcd, 0x72, 0xb6, 0,
    0,    0,    0,    'I',  'E',  'N',  'D',  0xae, 0x42, 0x60, 0x82};

/* One the same, one moved, one went; one came. */
static const oct_detection float_found[] = {
    {10, 10, 100, 100, 0.9f, 0}, {300, 200, 100, 100, 0.8f, 1}, {500, 50, 60, 90, 0.4f, 2}};
static const oct_detection int8_found[] = {
    {11, 10, 100, 100, 0.88f, 0}, {325, 200, 100, 100, 0.7f, 1}, {500, 300, 60, 90, 0.35f, 2}};

static void add_scenes(oct_report *r, oct_report_scene scenes[SCENES], bool is_hostile)
{
    for (int i = 0; i < SCENES; i++)
        scenes[i] = (oct_report_scene){.name = is_hostile ? hostile[i]
                                               : i        ? "b.jpg"
                                                          : "a.jpg",
                                       .data = pixel,
                                       .size = sizeof(pixel),
                                       .width = 640,
                                       .height = 480,
                                       .float_found = float_found,
                                       .int8_found = i ? float_found : int8_found,
                                       .n_float = 3,
                                       .n_int8 = 3};
    r->scenes = scenes;
    r->n_scenes = SCENES;
    r->scenes_seen = 48;
    r->scene_score = 0.3f;
    r->class_names = is_hostile ? hostile : class_names;
    r->n_class_names = CLASSES;
}

/* --- the report --- */

static void write_sample(oct_ctx *ctx, const char *dir, const char *kind, int n)
{
    const bool is_hostile = strcmp(kind, "hostile") == 0;
    oct_report_scene scenes[SCENES];
    sample one = {.ctx = ctx, .n = n}, *s = &one;
    oct_report r;
    char path[4096];

    MUST(oct_analysis_new(ctx, &s->a));
    make_rows(s, is_hostile);
    make_advice(s, is_hostile);
    make_graph(s, is_hostile);
    score(s, dir, is_hostile);
    oct_report_init(&r);
    add_scenes(&r, scenes, is_hostile);
    r.title = is_hostile ? hostile[1] : "sample";
    r.float_path = is_hostile ? hostile[2] : "sample.onnx";
    r.int8_path = "sample_int8.onnx";
    r.float_bytes = 12850000;
    r.int8_bytes = 3410000;
    r.float_ms = 21.3;
    r.int8_ms = 7.41;
    r.threads = 2;
    r.float_p10_ms = 20.9;
    r.float_p90_ms = 24.4;
    r.int8_p10_ms = 7.2;
    r.int8_p90_ms = 8.1;
    r.runs = 120;
    r.cpus = 2;
    r.cpu_load = is_hostile ? 0.1 : 6.2;
    r.float_accuracy = &s->scores[0];
    r.int8_accuracy = &s->scores[1];
    r.float_boxes = s->boxes[0];
    r.int8_boxes = s->boxes[1];
    r.noise = &s->noise;
    r.accuracy_set = is_hostile ? hostile[0] : "320 pictures";
    r.graph = s->g;
    r.analysis = s->a;
    r.times = s->times;
    r.n_times = n;
    r.steps = s->steps;
    r.n_steps = 2 * n;
    r.recipe = is_hostile ? hostile[4] : "model: sample.onnx\noutput: sample_int8.onnx\n";
    r.command = is_hostile ? hostile[5] : "octet quantize sample.onnx -o sample_int8.onnx";
    r.machine = is_hostile ? hostile[6] : "a machine";
    r.versions = is_hostile ? hostile[7] : "octet";
    (void)snprintf(path, sizeof(path), "%s/%s", dir, kind);
    MUST(oct_report_write(ctx, &r, path));
    oct_box_eval_free(s->boxes[0]);
    oct_box_eval_free(s->boxes[1]);
    oct_dataset_close(s->truth);
    oct_graph_free(s->g);
    oct_analysis_free(s->a);
}

static void write_trained(oct_ctx *ctx, const char *dir)
{
    enum { FIRST = 4, LAST = 40 };
    static const char *const parts[] = {"cls", "</script><script>document.title='broken'</script>",
                                        NULL};
    sample one = {.ctx = ctx}, *s = &one;
    oct_report_epoch epochs[LAST - FIRST + 1];
    char path[4096];
    oct_report r;

    for (int e = FIRST; e <= LAST; e++)
        epochs[e - FIRST] = (oct_report_epoch){.epoch = e,
                                               .loss = e == 10 ? NAN : 1 + 8.0 / e,
                                               .parts = {1, 8.0 / e},
                                               .rate = 1e-3 / e,
                                               .accuracy = e % 5 ? -1 : .6 - 1.0 / e,
                                               .other_accuracy = e % 5 ? -1 : .9 - 1.0 / e,
                                               .seconds = 2};
    oct_report_init(&r);
    r.title = "trained";
    r.epochs = epochs;
    r.n_epochs = LAST - FIRST + 1;
    r.epochs_planned = 50;
    r.best_epoch = 35;
    r.loss_parts = parts;
    (void)snprintf(path, sizeof(path), "%s/trained", dir);
    MUST(oct_report_write(ctx, &r, path));
}

/* Two rounds; settings that try to get out of the page, and a score that is none. */
static void write_tuned(oct_ctx *ctx, const char *dir)
{
    enum { FIRST = 12, LAST = 4 };
    sample one = {.ctx = ctx}, *s = &one;
    oct_report_trial trials[FIRST + LAST + 2];
    char path[4096];
    oct_report r;
    int n = 0;

    for (int i = 0; i < FIRST; i++)
        trials[n++] = (oct_report_trial){.id = i + 1,
                                         .settings = i ? "ranges.weights=mse\nequalize=true\n" : "",
                                         .score = i == 5 ? NAN : .5 + .01 * i,
                                         .ms = 3,
                                         .bytes = 1000000,
                                         .images = 8};
    for (int i = 0; i < LAST; i++)
        trials[n++] = (oct_report_trial){.id = FIRST + i + 1,
                                         .settings = i == 1 ? "</script><script>document.title="
                                                              "'broken'</script>"
                                                            : "",
                                         .score = .6 - .02 * i,
                                         .ms = 4 - .5 * i + (i == 3),
                                         .bytes = 2000000 - 100000 * i,
                                         .images = 72,
                                         .round = 1,
                                         .is_front = i != 3,
                                         .is_best = i == 0};
    trials[n++] = (oct_report_trial){.id = FIRST + LAST + 1,
                                     .settings = "",
                                     .score = .61,
                                     .ms = 9,
                                     .bytes = 8000000,
                                     .images = 72,
                                     .round = 1,
                                     .is_float = 1};
    oct_report_init(&r);
    r.title = "tuned";
    r.score_name = "AP";
    r.trials = trials;
    r.n_trials = n;
    (void)snprintf(path, sizeof(path), "%s/tuned", dir);
    MUST(oct_report_write(ctx, &r, path));
}

static void write_empty(oct_ctx *ctx, const char *dir)
{
    sample one = {.ctx = ctx}, *s = &one;
    char path[4096];
    oct_report r;

    oct_report_init(&r);
    (void)snprintf(path, sizeof(path), "%s/empty", dir);
    MUST(oct_report_write(ctx, &r, path));
}

int main(int argc, char **argv)
{
    oct_ctx *ctx = oct_ctx_new(NULL);

    if (argc != 2 || !ctx) return 2;
    write_sample(ctx, argv[1], "plain", 60);
    write_sample(ctx, argv[1], "hostile", 20);
    write_sample(ctx, argv[1], "thousand", 1000);
    write_trained(ctx, argv[1]);
    write_tuned(ctx, argv[1]);
    write_empty(ctx, argv[1]);
    oct_ctx_free(ctx);
    return 0;
}
