/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and names of classes, as people have them: VOC, YOLO, data.yaml, --labels, metadata. */
#include "cli/program.h"

#include "unit/detect_net.h"

enum { SIDE = 128, CELLS = 336, CLASSES = 3 };

static void save(fixture *f, const place *p, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
}

/* Codes in: the picture's bytes, of which the network says what they mean. */
static oct_value *code_input(fixture *f)
{
    const int64_t dims[] = {1, 3, SIDE, SIDE};
    oct_value *x = graph_input(f, "images", OCT_DTYPE_U8, 4, dims);

    return oct_emit(&f->b, &oct_op_dequantize_linear, x, oct_scalar(&f->b, 1 / 255.f), NULL);
}

/* YOLOv8 that finds one box in the middle of every picture, of class 2; its score is about 0.7. */
static void make_model(const place *p, const char *name, const char *names, bool codes)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 3, (int64_t[]){1, 4 + CLASSES, CELLS});
    void *state = NULL;
    fixture *f;
    oct_tensor *w = NULL;
    oct_value *x, *y;
    oct_node *n;

    assert_int_equal(setup(&state), 0);
    f = state;
    x = codes ? code_input(f) : picture_input(f, 1, SIDE, SIDE);
    assert_non_null(n = oct_emit_node(&f->b, &oct_op_reduce_mean, &x, 1, 1));
    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    assert_ok(f->ctx, oct_node_infer(n));
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &w));
    ((float *)w->data)[(4 + 2) * CELLS + 5] = 1;
    y = oct_emit(&f->b, &oct_op_mul, oct_value_const(f->g, "w", w), n->out[0], NULL);
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &w));
    for (int k = 0; k < 4; k++)
        ((float *)w->data)[k * CELLS + 5] = (float[]){64, 64, 64, 32}[k];
    y = oct_emit(&f->b, &oct_op_add, y, oct_value_const(f->g, "boxes", w), NULL);
    if (codes) y = oct_emit(&f->b, &oct_op_quantize_linear, y, oct_scalar(&f->b, 0.5f), NULL);
    assert_non_null(y);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    if (names) assert_ok(f->ctx, oct_graph_set_metadata(f->g, "names", names));
    save(f, p, name);
    assert_int_equal(teardown(&state), 0);
}

/* Two pictures with one box each, of class "ant", in VOC's and YOLO's form. */
static void make_data(place *p)
{
    static const char xml[] =
        "<annotation><filename>%c.png</filename><object><name>ant</name><bndbox><xmin>10</xmin>"
        "<ymin>10</ymin><xmax>30</xmax><ymax>20</ymax></bndbox></object></annotation>";
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_image *im = NULL;
    char path[256], text[512];

    (void)snprintf(path, sizeof(path), "mkdir -p %s/images/val %s/labels/val %s/voc", p->dir,
                   p->dir, p->dir);
    assert_int_equal(system(path), 0);
    assert_ok(ctx, oct_image_new(ctx, 40, 30, &im));
    memset(oct_image_rgb(im), 180, 40 * 30 * 3);
    for (int i = 'a'; i <= 'b'; i++) {
        (void)snprintf(path, sizeof(path), "%s/images/val/%c.png", p->dir, i);
        assert_ok(ctx, oct_image_save(ctx, im, path));
        (void)snprintf(path, sizeof(path), "voc/%c.xml", i);
        (void)snprintf(text, sizeof(text), xml, i);
        write_file(p, path, text, strlen(text));
        (void)snprintf(path, sizeof(path), "labels/val/%c.txt", i);
        write_file(p, path, "2 .5 .5 .5 .3333333333\n", 23);
    }
    oct_image_free(im);
    oct_ctx_free(ctx);
    write_file(p, "names.txt", "bee\ncow\nant\n", 12);
    write_file(p, "data.yaml", "path: .\nval: images/val\nnames: [bee, cow, ant]\n", 47);
}

static int labels_setup(void **state)
{
    if (place_setup(state)) return -1;
    make_model(*state, "plain.onnx", NULL, false);
    make_model(*state, "named.onnx", "{0: 'bee', 1: 'cow', 2: 'ant'}", false);
    make_model(*state, "codes.onnx", NULL, true);
    make_data(*state);
    return 0;
}

/* AP of a command that prints JSON; -1: null. */
static double ap_of(place *p, const char *words)
{
    json_t *j;
    double ap;

    if (octet(p, words)) fail_msg("octet %s: %s", words, p->last.err);
    j = printed_json(p);
    ap = json_number_value(json_object_get(j, "ap"));
    json_decref(j);
    return ap;
}

/* A5, D8: with three classes and one category, nothing says which is meant. */
static void voc_needs_names(void **state)
{
    place *p = *state;

    must_refuse(p, "eval plain.onnx --images images/val --annotations voc --quiet", 2,
                "the network has no names; give --labels FILE");
    assert_true(ap_of(p, "eval plain.onnx --images images/val --annotations voc --labels names.txt "
                         "--json --quiet") > 0.999);
    assert_true(ap_of(p, "eval plain.onnx --images images/val --annotations voc --labels data.yaml "
                         "--json --quiet") > 0.999);
    assert_true(ap_of(p, "eval named.onnx --images images/val --annotations voc --json --quiet") >
                0.999);
    assert_true(ap_of(p, "eval named.onnx --images images/val --annotations voc --labels data.yaml "
                         "--json --quiet") > 0.999);
}

static void labels_are_checked(void **state)
{
    place *p = *state;

    write_file(p, "two.txt", "bee\nant\n", 8);
    must_refuse(p, "eval plain.onnx --images images/val --annotations voc --labels two.txt --quiet",
                2, "option --labels: two.txt: 2 names are given, but the network has 3 classes");
    must_refuse(p,
                "eval plain.onnx --images images/val --annotations voc --labels nams.txt --quiet",
                2, "did you mean 'names.txt'");
}

/* A6: the number is the class; the last one seen says nothing about how many there are. */
static void yolo_has_the_networks_numbers(void **state)
{
    place *p = *state;

    assert_true(ap_of(p, "eval plain.onnx --images images/val --annotations labels/val --json "
                         "--quiet") > 0.999);
    write_file(p, "labels/val/b.txt", "2 .5 .5 .5 .3333333333\n3 .5 .5 .1 .1\n", 37);
    assert_int_equal(
        octet(p, "eval plain.onnx --images images/val --annotations labels/val --quiet"), 1);
    must_contain(p->last.err,
                 "labels/val/b.txt: line 2: class 3, but the network's classes are 0 to "
                 "2");
}

static void data_yaml_says_where_all_is(void **state)
{
    place *p = *state;

    assert_true(ap_of(p, "eval plain.onnx --annotations data.yaml --json --quiet") > 0.999);
    assert_true(ap_of(p, "eval plain.onnx --images images/val --annotations data.yaml --json "
                         "--quiet") > 0.999);
}

static void a_table_shows_which_is_which(void **state)
{
    static const char wrong[] = "path: .\nval: images/val\nnames: [ant, cow, bee]\n";
    place *p = *state;
    json_t *j, *classes;

    assert_int_equal(octet(p, "eval named.onnx --annotations data.yaml"), 0);
    assert_null(strstr(p->last.err, "which")); /* names agree: nothing to say */
    assert_null(strstr(p->last.err, "check the table"));
    write_file(p, "data.yaml", wrong, sizeof(wrong) - 1);
    assert_int_equal(octet(p, "eval named.onnx --annotations data.yaml"), 0);
    must_contain(p->last.err, "matched by number, as YOLO's labels have it; check the table");
    must_contain(p->last.err, "0  bee      ant");
    must_contain(p->last.err, "2  ant      bee");
    assert_int_equal(octet(p, "eval named.onnx --annotations data.yaml --json --quiet"), 0);
    j = printed_json(p);
    classes = json_object_get(j, "classes");
    assert_int_equal(json_array_size(classes), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(classes, 2), "name")),
                        "ant");
    assert_string_equal(json_string_value(json_object_get(json_array_get(classes, 2), "category")),
                        "bee");
    json_decref(j);
}

/* A8: the most frequent mistake. */
static void missing_labels_are_said_to_be_missing(void **state)
{
    place *p = *state;

    must_refuse(p, "eval plain.onnx --images images/val --quiet", 2,
                "labels are missing: give --annotations FILE|DIR");
    must_refuse(p, "eval plain.onnx --images images/val --annotations names.txt --quiet", 2,
                "names.txt: \"bee\" is no picture, so these are no labels");
    write_file(p, "list.txt", "a.png\nb.png\n", 12);
    must_refuse(p, "eval plain.onnx --images images/val --annotations list.txt --quiet", 2,
                "the labels are a list of pictures");
    must_refuse(p, "eval plain.onnx --images images/val --annotations labels/val/a.txt --quiet", 2,
                "YOLO's labels of one picture; give the folder");
    must_refuse(p, "eval plain.onnx --images images/val --annotations none.json --quiet", 2,
                "none.json: no such file or folder");
    must_refuse(p, "eval plain.onnx --images images/vall --annotations voc --quiet", 2,
                "did you mean 'images/val'");
    must_refuse(p, "eval plain.onnx --quiet", 2, "Try 'octet eval --help'");
    must_refuse(p, "quantize plain.onnx -o q.onnx --images images/val --eval --quiet", 2,
                "labels are missing: give --annotations FILE|DIR");
    must_refuse(p, "quantize plain.onnx -o q.onnx --images images/val --annotations voc --quiet", 2,
                "the network has no names; give --labels FILE");
    must_refuse(p, "analyze plain.onnx named.onnx --quiet", 2, "Try 'octet analyze --help'");
    must_refuse(p, "analyze plain.onnx named.onnx --images nowhere --quiet", 2,
                "nowhere: no such file or folder");
}

/* D9: a network that is fed with codes and gives codes is fed and read by its own scales. */
static void codes_are_read_as_the_network_means_them(void **state)
{
    place *p = *state;
    json_t *j, *found;

    assert_true(ap_of(p, "eval codes.onnx --images images/val --annotations labels/val --json "
                         "--quiet") > 0.999);
    assert_int_equal(octet(p, "detect codes.onnx images/val/a.png --json"), 0);
    must_contain(p->last.err, "inputs or outputs are codes");
    j = printed_json(p);
    found = json_object_get(json_array_get(j, 0), "detections");
    assert_int_equal(json_array_size(found), 1);
    assert_true(json_number_value(json_object_get(json_array_get(found, 0), "score")) == 0.5);
    json_decref(j);
}

static void detect_shows_the_names_of_the_file(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "detect named.onnx images/val/a.png"), 0);
    must_contain(p->last.out, "\nant ");
    assert_int_equal(octet(p, "detect plain.onnx images/val/a.png"), 0);
    must_contain(p->last.out, "\nclass 2 ");
    assert_int_equal(octet(p, "detect plain.onnx images/val/a.png --labels data.yaml"), 0);
    must_contain(p->last.out, "\nant ");
}

static void ruined_networks_are_told_apart_from_empty_pictures(void **state)
{
    place *p = *state;
    char words[8192];

    if (!getenv("OCTET_SHARED")) skip();
    (void)snprintf(words, sizeof(words),
                   "detect '%s/data/models/yolov8n_qdq_allops_broken.onnx' images/val/a.png",
                   getenv("OCTET_SHARED"));
    assert_int_equal(octet(p, words), 0);
    must_contain(p->last.err, "under one scale");
}

/* A5 on the project's own data: VOC's labels of blood cells. */
static void blood_cells_are_scored_by_name(void **state)
{
    place *p = *state;
    char words[8192];

    if (!getenv("OCTET_SHARED")) skip();
    write_file(p, "cells.txt", "RBC\nWBC\nPlatelets\n", 18);
    (void)snprintf(
        words, sizeof(words),
        "eval '%s/data/yolo-nas/yolo_nas_bccd_folded.onnx' --images '%s/data/bccd/images' "
        "--annotations '%s/data/bccd/annotations' --labels cells.txt --limit 12 --json "
        "--quiet",
        getenv("OCTET_SHARED"), getenv("OCTET_SHARED"), getenv("OCTET_SHARED"));
    assert_true(ap_of(p, words) > 0.4);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, labels_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        T(voc_needs_names),
        T(labels_are_checked),
        T(yolo_has_the_networks_numbers),
        T(data_yaml_says_where_all_is),
        T(a_table_shows_which_is_which),
        T(missing_labels_are_said_to_be_missing),
        T(codes_are_read_as_the_network_means_them),
        T(detect_shows_the_names_of_the_file),
        T(ruined_networks_are_told_apart_from_empty_pictures),
        T(blood_cells_are_scored_by_name),
    };

    if (argc > 1) place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
