/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: what is written, that nothing in it can leave its place, and how failing leaves things.
 */
#include "test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "alloc.h"
#include "analyze/analysis.h"
#include "op/op.h"
#include "report/json.h"

#define EVIL "</script><script>alert(1)</script><img src=x onerror='a'>&\"\\\x01\n\xff\xe2\x80\xa8"

/* x -> QuantizeLinear -> DequantizeLinear -> Relu -> Relu -> y: one integer, one float node */
static void make_graph(fixture *f, const char *name)
{
    oct_value *x = graph_input(f, name, OCT_DTYPE_F32, 1, (int64_t[]){4});
    oct_value *scale =
        oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_F32, 0, NULL, (double[]){0.5}));
    oct_value *zero =
        oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_U8, 0, NULL, (double[]){0}));
    const oct_op *const ops[] = {&oct_op_quantize_linear, &oct_op_dequantize_linear, &oct_op_relu,
                                 &oct_op_quantize_linear, &oct_op_dequantize_linear, &oct_op_relu};
    const char *const names[] = {NULL, NULL, name, NULL, NULL, "second"};
    oct_value *v = x;

    for (size_t i = 0; i < OCT_COUNT(ops); i++) {
        const bool is_relu = ops[i] == &oct_op_relu;
        oct_value *in[] = {v, scale, zero};
        oct_node *n = oct_node_new(f->g, NULL, names[i], ops[i], in, is_relu ? 1 : 3, NULL, 1);

        assert_non_null(n);
        assert_ok(f->ctx, oct_node_infer(n));
        v = n->out[0];
    }
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
}

/* One layer and one point of this name. */
static oct_analysis *make_analysis(fixture *f, const char *name)
{
    static const int64_t bins[300] = {5, 4, 0, 1, [299] = 2};
    oct_analysis *a = NULL;

    assert_ok(f->ctx, oct_analysis_new(f->ctx, &a));
    a->layers = oct_arena_array(a->arena, 1, sizeof(*a->layers));
    a->layers[0] = (oct_analyzed_layer){.struct_size = sizeof(*a->layers),
                                        .name = name,
                                        .op = "Relu",
                                        .weight_noise = -1,
                                        .alone = {.noise = -1},
                                        .all = {.noise = 0.25, .cosine = NAN}};
    a->points = oct_arena_array(a->arena, 1, sizeof(*a->points));
    a->points[0] = (oct_analyzed_point){.struct_size = sizeof(*a->points),
                                        .value = name,
                                        .layer = "",
                                        .type = "uint8",
                                        .high = INFINITY,
                                        .histogram = bins,
                                        .n_bins = 300,
                                        .histogram_high = 3};
    a->n_layers = a->n_points = 1;
    return a;
}

typedef struct written {
    char dir[64], path[96];
    char *html;
} written;

static void write_report(fixture *f, const oct_report *r, written *w)
{
    FILE *file;
    long size;

    snprintf(w->dir, sizeof(w->dir), "/tmp/octet-report-%ld", (long)getpid());
    snprintf(w->path, sizeof(w->path), "%s/index.html", w->dir);
    assert_ok(f->ctx, oct_report_write(f->ctx, r, w->dir));
    file = fopen(w->path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    w->html = calloc(1, (size_t)size + 1);
    assert_int_equal(fread(w->html, 1, (size_t)size, file), size);
    fclose(file);
}

static void drop_report(written *w)
{
    unlink(w->path);
    assert_int_equal(rmdir(w->dir), 0); /* nothing else was left there */
    free(w->html);
}

/* The data of a page; every byte of it must be JSON. */
static json_t *data_of(const written *w)
{
    const char *start = strstr(w->html, "id=\"data\">"), *end;
    json_error_t e;
    json_t *data;

    assert_non_null(start);
    start += strlen("id=\"data\">");
    end = strstr(start, "</script>");
    assert_non_null(end);
    data = json_loadb(start, (size_t)(end - start), 0, &e);
    if (!data) fail_msg("%s at %d", e.text, e.position);
    return data;
}

static int count_of(const char *text, const char *part)
{
    int n = 0;

    while ((text = strstr(text, part))) {
        n++;
        text += strlen(part);
    }
    return n;
}

/* What make_graph() made: conversions are facts of the edges. */
static void check_graph(const json_t *graph)
{
    const json_t *nodes = json_object_get(graph, "nodes"), *n = json_array_get(nodes, 0);
    const json_t *in = json_array_get(json_object_get(n, "in"), 0);
    const json_t *codes = json_object_get(in, "codes");

    assert_int_equal(json_array_size(nodes), 2);
    assert_string_equal(json_string_value(json_object_get(n, "name")), "first");
    assert_int_equal(json_integer_value(json_object_get(n, "integer")), 1);
    assert_int_equal(json_integer_value(json_object_get(in, "from")), -1); /* the input */
    assert_string_equal(json_string_value(json_object_get(in, "kind")), "convert");
    assert_string_equal(json_string_value(json_object_get(in, "shape")), "4");
    assert_string_equal(json_string_value(json_array_get(codes, 0)), "uint8");
    assert_int_equal(json_integer_value(json_array_get(codes, 1)), 1);
    assert_true(json_number_value(json_array_get(codes, 2)) == 0.5);
    assert_true(json_number_value(json_array_get(codes, 4)) == 0);
    n = json_array_get(json_object_get(n, "out"), 0);
    assert_int_equal(json_array_size(json_object_get(n, "codes")), 6);
    n = json_array_get(nodes, 1);
    assert_int_equal(json_integer_value(json_object_get(n, "integer")), 0);
    n = json_array_get(json_object_get(graph, "outputs"), 0);
    assert_string_equal(json_string_value(json_object_get(n, "kind")), "float");
}

static void a_page_holds_what_it_was_given(void **state)
{
    fixture *f = *state;
    oct_analysis *a;
    oct_report r;
    written w;
    json_t *data, *layer, *point;

    make_graph(f, "first");
    a = make_analysis(f, "first");
    oct_report_init(&r);
    r.title = "net";
    r.float_bytes = 4000;
    r.int8_bytes = 1000;
    r.graph = f->g;
    r.analysis = a;
    r.times = (oct_report_time[]){{"first", 0.5, -1}};
    r.n_times = 1;
    r.pictures = (oct_report_picture[]){{"a.jpg", "\xff\xd8\xff", "\x89PNG\r", 3, 5}};
    r.n_pictures = 1;
    write_report(f, &r, &w);
    data = data_of(&w);
    assert_string_equal(json_string_value(json_object_get(data, "title")), "net");
    assert_int_equal(json_number_value(json_array_get(json_object_get(data, "bytes"), 1)), 1000);
    assert_null(json_object_get(data, "ms")); /* not known */
    layer = json_array_get(json_object_get(data, "layers"), 0);
    assert_null(json_object_get(layer, "alone"));
    assert_true(json_is_null(json_array_get(json_object_get(layer, "all"), 1)));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(layer, "reads"), 0)), 0);
    point = json_array_get(json_object_get(data, "points"), 0);
    assert_int_equal(json_array_size(json_object_get(point, "bins")), 100);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(point, "bins"), 0)), 9);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(point, "bins"), 99)), 2);
    point = json_array_get(json_object_get(data, "pictures"), 0);
    assert_string_equal(json_string_value(json_object_get(point, "float")),
                        "data:image/jpeg;base64,/9j/");
    assert_string_equal(json_string_value(json_object_get(point, "int8")),
                        "data:image/png;base64,iVBORw0=");
    check_graph(json_object_get(data, "graph"));
    assert_null(strstr(w.html, "{{"));
    json_decref(data);
    drop_report(&w);
    oct_analysis_free(a);
}

static void hostile_names_stay_text(void **state)
{
    fixture *f = *state;
    oct_report_time time = {EVIL, 1, 1};
    oct_report_picture picture = {EVIL, NULL, NULL, 0, 0};
    oct_quantize_summary summary = {.struct_size = sizeof(summary), .tail = EVIL, .best_for = EVIL};
    oct_eval_result score = {.struct_size = sizeof(score)};
    oct_analysis *a;
    oct_report r;
    written w;
    json_t *data;

    make_graph(f, EVIL);
    a = make_analysis(f, EVIL);
    oct_report_init(&r);
    r.title = r.float_path = r.int8_path = r.accuracy_set = r.recipe = EVIL;
    r.command = r.machine = r.versions = EVIL;
    r.float_accuracy = r.int8_accuracy = &score;
    r.summary = &summary;
    r.graph = f->g;
    r.analysis = a;
    r.times = &time;
    r.n_times = 1;
    r.pictures = &picture;
    r.n_pictures = 1;
    write_report(f, &r, &w);
    assert_int_equal(count_of(w.html, "<script"), 2); /* the page's own */
    assert_int_equal(count_of(w.html, "</script"), 2);
    assert_int_equal(count_of(w.html, "<img"), 0);
    data = data_of(&w);
    assert_non_null(strstr(json_string_value(json_object_get(data, "title")),
                           "</script><script>alert(1)</script><img src=x onerror='a'>&\"\\\x01\n"));
    json_decref(data);
    drop_report(&w);
    oct_analysis_free(a);
}

/* Without labels: the float network's figures are 1. */
static void repeat_stands_for_accuracy(void **state)
{
    fixture *f = *state;
    oct_compare_result c = {.struct_size = sizeof(c),
                            .images = 3,
                            .kind = OCT_COMPARED_BOXES,
                            .sure = 8,
                            .repeat = .875,
                            .ap = .75};
    const json_t *rows;
    json_t *data;
    oct_report r;
    written w;

    oct_report_init(&r);
    r.title = "net";
    r.accuracy_set = "3 pictures";
    r.repeat = &c;
    write_report(f, &r, &w);
    data = data_of(&w);
    rows = json_object_get(json_object_get(data, "accuracy"), "rows");
    assert_int_equal(json_array_size(rows), 2);
    assert_true(json_number_value(json_array_get(json_array_get(rows, 0), 1)) == 1);
    assert_true(json_number_value(json_array_get(json_array_get(rows, 0), 2)) == .875);
    assert_true(json_number_value(json_array_get(json_array_get(rows, 1), 2)) == .75);
    json_decref(data);
    drop_report(&w);
    c.repeat = -1; /* nothing to repeat: no section */
    write_report(f, &r, &w);
    data = data_of(&w);
    assert_null(json_object_get(data, "accuracy"));
    json_decref(data);
    drop_report(&w);
}

static void nothing_known_is_a_page_too(void **state)
{
    fixture *f = *state;
    oct_report r;
    written w;

    oct_report_init(&r);
    write_report(f, &r, &w);
    json_decref(data_of(&w));
    drop_report(&w);
}

static void an_older_page_is_replaced_whole(void **state)
{
    fixture *f = *state;
    char *first;
    oct_report r;
    written w;

    oct_report_init(&r);
    r.title = "one";
    write_report(f, &r, &w);
    first = w.html;
    write_report(f, &r, &w);
    assert_string_equal(first, w.html); /* the same bytes for the same facts */
    free(first);
    drop_report(&w);
}

static void folders_that_cannot_be_made_are_named(void **state)
{
    fixture *f = *state;
    oct_report r;

    oct_report_init(&r);
    assert_fails(f->ctx, oct_report_write(f->ctx, &r, "/nosuchfolder/report"), OCT_ERR_IO,
                 "/nosuchfolder/report: cannot make this folder");
    assert_fails(f->ctx, oct_report_write(f->ctx, &r, "/dev/null"), OCT_ERR_IO, "/dev/null");
}

static void numbers_that_are_none_are_null(void **state)
{
    fixture *f = *state;
    oct_str out;

    oct_str_init(&out, f->ctx);
    oct_json_open(&out, NULL, '[');
    oct_json_num(&out, NULL, NAN);
    oct_json_num(&out, NULL, -INFINITY);
    oct_json_num(&out, NULL, 1e-7);
    oct_json_text(&out, NULL, NULL);
    oct_json_text(&out, NULL, "<\xc3\xa4\xc3");
    oct_json_close(&out, ']');
    assert_string_equal(out.s, "[null,null,1e-07,null,\"\\u003c\xc3\xa4\\ufffd\"]");
    oct_str_fini(&out);
}

static const oct_graph *shared_graph; /* of another context */

static oct_status write_small(oct_ctx *ctx)
{
    const oct_detection box = {1, 2, 30, 40, 0.5f, 0};
    const oct_report_scene scene = {"a.jpg", "\xff\xd8\xff", 3, 640, 480, &box, &box, 1, 1};
    oct_report_time time = {"layer", 1, 1};
    oct_analysis *a = NULL;
    char dir[64], path[96];
    oct_report r;
    oct_status st;

    snprintf(dir, sizeof(dir), "/tmp/octet-report-%ld", (long)getpid());
    snprintf(path, sizeof(path), "%s/index.html", dir);
    if ((st = oct_analysis_new(ctx, &a))) return st;
    a->points = &(oct_analyzed_point){.struct_size = sizeof(*a->points), .value = "v", .layer = ""};
    a->n_points = 1;
    oct_report_init(&r);
    r.analysis = a;
    r.times = &time;
    r.n_times = 1;
    r.graph = shared_graph;
    r.scenes = &scene;
    r.n_scenes = 1;
    st = oct_report_write(ctx, &r, dir);
    oct_analysis_free(a);
    unlink(path);
    rmdir(dir);
    return st;
}

static void no_memory_is_said(void **state)
{
    fixture *f = *state;

    make_graph(f, "first");
    shared_graph = f->g;
    fail_each_allocation(write_small);
}

static void shows_epochs(void **state)
{
    static const char *const parts[] = {EVIL, "iou", NULL};
    static const oct_report_epoch epochs[] = {
        {.epoch = 3, .loss = 2, .parts = {1.5, .5}, .rate = .01, .accuracy = -1, .seconds = 4},
        {.epoch = 4, .loss = NAN, .parts = {INFINITY, .5}, .accuracy = .25, .other_accuracy = .5},
    };
    static const oct_report_network networks[] = {
        {.name = "float",
         .file = "a.onnx",
         .accuracy = .5,
         .other_accuracy = .75,
         .bytes = 12,
         .ms = 3},
        {.name = "folded", .accuracy = -1, .other_accuracy = -1},
    };
    const json_t *t, *rows, *row;
    oct_report r;
    written w;
    json_t *data;

    oct_report_init(&r);
    r.networks = networks;
    r.n_networks = 2;
    r.epochs = epochs;
    r.n_epochs = 2;
    r.epochs_planned = 10;
    r.best_epoch = 4;
    r.loss_parts = parts;
    write_report(*state, &r, &w);
    data = data_of(&w);
    t = json_object_get(data, "training");
    rows = json_object_get(t, "epochs");
    assert_int_equal(json_array_size(rows), 2);
    assert_int_equal(json_array_size(json_object_get(t, "parts")), 2);
    assert_int_equal(json_integer_value(json_object_get(t, "planned")), 10);
    row = json_array_get(rows, 0);
    assert_int_equal(json_array_size(row), 8);
    assert_int_equal(json_integer_value(json_array_get(row, 0)), 3);
    assert_true(json_number_value(json_array_get(row, 6)) > 1.49);
    assert_true(json_number_value(json_array_get(json_array_get(rows, 1), 3)) > .24);
    rows = json_object_get(t, "networks");
    assert_int_equal(json_array_size(rows), 2);
    row = json_array_get(rows, 0);
    assert_string_equal(json_string_value(json_object_get(row, "file")), "a.onnx");
    assert_true(json_number_value(json_object_get(row, "other")) > .74);
    assert_null(json_object_get(json_array_get(rows, 1), "accuracy"));
    json_decref(data);
    drop_report(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_page_holds_what_it_was_given, setup, teardown),
        cmocka_unit_test_setup_teardown(hostile_names_stay_text, setup, teardown),
        cmocka_unit_test_setup_teardown(repeat_stands_for_accuracy, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_known_is_a_page_too, setup, teardown),
        cmocka_unit_test_setup_teardown(an_older_page_is_replaced_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(folders_that_cannot_be_made_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_that_are_none_are_null, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(shows_epochs, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
