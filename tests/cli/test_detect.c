/* SPDX-License-Identifier: Apache-2.0 */
/* octet detect and octet eval on a small network and small pictures. */
#include "cli/program.h"

#include "avi.h"
#include "unit/detect_net.h"

enum { SIDE = 128, CELLS = 336 };

/*
 * dog.onnx: YOLOv8 with 80 classes that finds one dog in the middle of every picture, with half the
 * picture's brightness as its score; its only layer changes nothing. red.onnx: a classifier, whose
 * class is the brightest channel.
 */
static void make_models(place *p)
{
    char path[256];
    void *state = NULL;
    fixture *f;
    oct_tensor *w = NULL;
    oct_value *x, *y;
    oct_node *n;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 3, (int64_t[]){1, 84, CELLS});
    const oct_type same = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){3, 3, 1, 1});

    assert_int_equal(setup(&state), 0);
    f = state;
    x = picture_input(f, 1, SIDE, SIDE);
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &same, &w));
    for (int k = 0; k < 3; k++)
        ((float *)w->data)[k * 4] = 1;
    x = oct_emit(&f->b, &oct_op_conv, x, oct_value_const(f->g, "same", w), NULL);
    assert_non_null(x);
    assert_non_null(n = oct_emit_node(&f->b, &oct_op_reduce_mean, &x, 1, 1));
    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    assert_ok(f->ctx, oct_node_infer(n));
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &w));
    ((float *)w->data)[(4 + 16) * CELLS + 5] = 0.5f;
    y = oct_emit(&f->b, &oct_op_mul, oct_value_const(f->g, "w", w), n->out[0], NULL);
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &w));
    for (int k = 0; k < 4; k++)
        ((float *)w->data)[k * CELLS + 5] = (float[]){64, 64, 64, 32}[k];
    y = oct_emit(&f->b, &oct_op_add, y, oct_value_const(f->g, "boxes", w), NULL);
    assert_non_null(y);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    (void)snprintf(path, sizeof(path), "%s/dog.onnx", p->dir);
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
    assert_int_equal(teardown(&state), 0);

    assert_int_equal(setup(&state), 0);
    f = state;
    x = picture_input(f, 1, 32, 32);
    y = oct_ints(&f->b, (int64_t[]){2, 3}, 2);
    assert_non_null(n = oct_emit_node(&f->b, &oct_op_reduce_mean, (oct_value *[]){x, y}, 2, 1));
    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    assert_ok(f->ctx, oct_node_infer(n));
    assert_ok(f->ctx, oct_graph_add_output(f->g, n->out[0]));
    (void)snprintf(path, sizeof(path), "%s/red.onnx", p->dir);
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
    assert_int_equal(teardown(&state), 0);
}

/* img/a.png and img/b.png, green; their labels in truth.json and classes.txt. */
static void make_data(place *p)
{
    static const char truth[] =
        "{\"images\": [{\"id\": 1, \"file_name\": \"a.png\"}, {\"id\": 2, \"file_name\": "
        "\"b.png\"}],\n\"categories\": [{\"id\": 18, \"name\": \"dog\"}],\n\"annotations\": [\n"
        "{\"id\": 1, \"image_id\": 1, \"category_id\": 18, \"bbox\": [10, 10, 20, 10], \"area\": "
        "200},\n{\"id\": 2, \"image_id\": 2, \"category_id\": 18, \"bbox\": [10, 10, 20, 10], "
        "\"area\": 200}]}";
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_image *im = NULL;
    char path[256];

    (void)snprintf(path, sizeof(path), "mkdir %s/img", p->dir);
    assert_int_equal(system(path), 0);
    assert_ok(ctx, oct_image_new(ctx, 40, 30, &im));
    for (int i = 0; i < 40 * 30; i++)
        memcpy(oct_image_rgb(im) + i * 3, (uint8_t[]){180, 250, 170}, 3);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/img/%c.png", p->dir, 'a' + i);
        assert_ok(ctx, oct_image_save(ctx, im, path));
    }
    oct_image_free(im);
    oct_ctx_free(ctx);
    write_file(p, "truth.json", truth, sizeof(truth) - 1);
    write_file(p, "classes.txt", "a.png 1\nb.png 0\n", 16);
    write_file(p, "names.txt", "red\ngreen\r\nblue\n\n", 17);
}

static int files_setup(void **state)
{
    if (place_setup(state)) return -1;
    make_models(*state);
    make_data(*state);
    return 0;
}

static double number(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);

    if (!json_is_number(v)) fail_msg("'%s' is not a number", key);
    return json_number_value(v);
}

/* --- detect --- */

static void detect_lists_and_draws(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "detect dog.onnx img/a.png img/b.png --out found"), 0);
    must_contain(p->last.out, "img/a.png: 1 found");
    must_contain(p->last.out, "dog");
    must_contain(p->last.err, "family yolov8: output [n, 4 + classes, anchors]");
    assert_true(exists(p, "found/a.png") && exists(p, "found/b.png"));
}

static void detect_prints_json(void **state)
{
    place *p = *state;
    json_t *j, *d;

    assert_int_equal(octet(p, "detect dog.onnx img/a.png --json"), 0);
    j = printed_json(p);
    assert_int_equal(json_array_size(j), 1);
    assert_true(number(json_array_get(j, 0), "width") == 40);
    d = json_array_get(json_object_get(json_array_get(j, 0), "detections"), 0);
    assert_string_equal(json_string_value(json_object_get(d, "class")), "dog");
    assert_true(number(d, "class_index") == 16);
    assert_true(number(d, "score") > 0.25 && number(d, "score") < 0.5);
    d = json_object_get(d, "bbox");
    assert_true(fabs(json_number_value(json_array_get(d, 0)) - 10) < 1e-3);
    assert_true(fabs(json_number_value(json_array_get(d, 3)) - 10) < 1e-3);
    json_decref(j);
    assert_int_equal(octet(p, "detect dog.onnx img/a.png --json --score 0.6"), 0);
    j = printed_json(p);
    d = json_object_get(json_array_get(j, 0), "detections");
    assert_true(json_is_array(d) && json_array_size(d) == 0);
    json_decref(j);
}

static void detect_classifies(void **state)
{
    place *p = *state;
    double sum = 0;
    json_t *j, *list;

    assert_int_equal(octet(p, "detect red.onnx img/a.png --labels names.txt"), 0);
    must_contain(p->last.out, "img/a.png\nclass  number  probability");
    must_contain(p->last.out, "green       1       0.");
    assert_int_equal(octet(p, "detect red.onnx img/a.png --json"), 0);
    j = printed_json(p);
    list = json_object_get(json_array_get(j, 0), "classes");
    for (size_t i = 0; i < json_array_size(list); i++)
        sum += number(json_array_get(list, i), "probability");
    assert_int_equal(json_array_size(list), 3);
    assert_true(fabs(sum - 1) < 1e-4); /* the network has no softmax */
    json_decref(j);
}

static void detect_says_what_is_wrong(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "detect dog.onnx"), 2);
    assert_int_equal(octet(p, "detect dog.onnx img/c.png"), 2);
    must_contain(p->last.err, "img/c.png");
    assert_int_equal(octet(p, "detect dog.onnx names.txt"), 1); /* a list */
    must_contain(p->last.err, "red: there is no such file; of 3 pictures 3 are missing");
    assert_int_equal(octet(p, "detect dog.onnx 'img/*.gif'"), 1);
    must_contain(p->last.err, "img/*.gif: no file has such a name");
    write_file(p, "broken.png", "words", 5);
    assert_int_equal(octet(p, "detect dog.onnx broken.png"), 1);
    must_contain(p->last.err, "broken.png: no picture: neither JPEG nor PNG");
    assert_int_equal(octet(p, "detect dog.onnx broken.png --skip-bad"), 1);
    must_contain(p->last.err, "no picture is left");
    assert_int_equal(octet(p, "detect dog.onnx img/a.png --score 1.5"), 2);
    must_contain(p->last.err, "--score wants a number above 0 and at most 1, not '1.5'");
    assert_int_equal(octet(p, "detect dog.onnx img/a.png --iou 7"), 2);
    must_contain(p->last.err, "--iou wants a number above 0 and at most 1, not '7'");
    assert_int_equal(octet(p, "detect dog.onnx img/a.png --family yolov9"), 2);
    must_contain(p->last.err, "did you mean 'yolov5'");
    assert_int_equal(octet(p, "detect dog.onnx img/a.png --preprocess colour=rgb"), 2);
    must_contain(p->last.err, "--preprocess");
    assert_int_equal(octet(p, "detect dog.onnx img/a.png --labels none.txt"), 2);
}

static void detect_takes_many_ways(void **state)
{
    place *p = *state;
    char command[512];

    (void)snprintf(command, sizeof(command),
                   "cd %s && mkdir img/sub && cp img/a.png img/sub/a.png "
                   "&& cp img/b.png img/sub/c.png && echo words > img/sub/notes.txt && "
                   "printf 'img/b.png\\nimg/sub/c.png\\n' > list.txt",
                   p->dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(octet(p, "detect dog.onnx img --out found"), 0);
    must_contain(p->last.out, "img/a.png: 1 found");
    must_contain(p->last.out, "img/sub/c.png: 1 found");
    must_contain(p->last.err, "img: 1 file is no picture and was left out (notes.txt)");
    /* two of one name are told apart */
    assert_true(exists(p, "found/img_a.png") && exists(p, "found/img_sub_a.png"));
    assert_true(exists(p, "found/b.png") && exists(p, "found/c.png"));
    assert_false(exists(p, "found/a.png"));
    assert_int_equal(octet(p, "detect dog.onnx img/a.png ./img/a.png --out twice"), 0);
    assert_true(exists(p, "twice/img_a.png") && exists(p, "twice/img_a-2.png"));
    assert_int_equal(octet(p, "detect dog.onnx 'img/?.png'"), 0);
    must_contain(p->last.out, "img/b.png: 1 found");
    assert_int_equal(octet(p, "detect dog.onnx list.txt"), 0);
    must_contain(p->last.out, "img/sub/c.png: 1 found");
    assert_int_equal(octet(p, "detect dog.onnx --images - < list.txt"), 0);
    must_contain(p->last.out, "img/b.png: 1 found");
    assert_int_equal(octet(p, "detect dog.onnx - --out typed < img/a.png"), 0);
    must_contain(p->last.out, "-: 1 found");
    assert_true(exists(p, "typed/stdin.jpg"));
    assert_int_equal(octet(p, "detect dog.onnx --images img/a.png --images img/sub"), 0);
    must_contain(p->last.out, "img/sub/a.png: 1 found");
    write_file(p, "img/0.png", "words", 5);
    assert_int_equal(octet(p, "detect dog.onnx img --skip-bad"), 0);
    must_contain(p->last.err, "left out: img/0.png: no picture");
    must_contain(p->last.out, "img/a.png: 1 found");
}

static void detect_takes_videos(void **state)
{
    place *p = *state;
    oct_ctx *ctx = oct_ctx_new(NULL);
    char scratch[300];
    json_t *j;
    avi a;

    (void)snprintf(scratch, sizeof(scratch), "%s/scratch.jpg", p->dir);
    a = make_avi(ctx, 12, 40, 30, scratch);
    write_file(p, "clip.avi", (const char *)a.data, a.size);
    free(a.data);
    oct_ctx_free(ctx);
    assert_int_equal(octet(p, "detect dog.onnx clip.avi --every 5 --out found"), 0);
    must_contain(p->last.out, "clip.avi, frame 5: ");
    must_contain(p->last.out, "clip.avi, frame 10: 1 found"); /* the brightest */
    assert_true(exists(p, "found/clip-000000.jpg") && exists(p, "found/clip-000010.jpg"));
    assert_false(exists(p, "found/clip-000001.jpg"));
    assert_int_equal(octet(p, "detect dog.onnx clip.avi --json"), 0);
    j = printed_json(p);
    assert_int_equal(json_array_size(j), 12);
    assert_true(number(json_array_get(j, 7), "frame") == 7);
    json_decref(j);
}

/* Frames are in no file of their own. */
static void a_report_shows_frames_of_videos(void **state)
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
    if (octet(p, "quantize dog.onnx -o q.onnx --images clip.avi --report r"))
        fail_msg("%s", p->last.err);
    (void)snprintf(scratch, sizeof(scratch), "grep -q 'data:image/jpeg' %s/r/index.html", p->dir);
    assert_int_equal(system(scratch), 0);
    (void)snprintf(scratch, sizeof(scratch), "grep -q 'clip.avi, frame [0-9]' %s/r/index.html",
                   p->dir);
    assert_int_equal(system(scratch), 0);
}

/* --- eval --- */

#define EVAL "eval dog.onnx --images img --annotations truth.json"

static void eval_prints_the_agreed_keys(void **state)
{
    static const char *const keys[] = {"ap",    "ap50",     "ap75",     "ar1",     "ar10",
                                       "ar100", "ap_small", "ar_small", "seconds", "peak_rss_mb"};
    place *p = *state;
    json_t *j, *results;

    assert_int_equal(octet(p, EVAL " --json --results out.json --threads 2"), 0);
    j = printed_json(p);
    for (size_t i = 0; i < OCT_COUNT(keys); i++)
        assert_true(number(j, keys[i]) > (i < 8 ? 0.999 : 0));
    assert_true(json_object_get(j, "ap_medium") && json_object_get(j, "ap_large"));
    assert_true(json_object_get(j, "ar_medium") && json_object_get(j, "ar_large"));
    assert_true(json_object_get(j, "per_class") != NULL);
    assert_true(number(j, "ap_noise") == 0); /* right on both pictures, so on any draw of them */
    assert_true(number(j, "resamples") == 200);
    assert_int_equal(json_array_size(json_object_get(j, "precision50")), 101);
    assert_true(json_real_value(json_array_get(json_object_get(j, "precision"), 100)) > 0.999);
    assert_true(number(j, "images") == 2);
    assert_string_equal(json_string_value(json_object_get(j, "family")), "yolov8");
    json_decref(j);
    results = file_json(p, "out.json");
    assert_int_equal(json_array_size(results), 2);
    assert_true(number(json_array_get(results, 1), "image_id") == 2);
    assert_true(number(json_array_get(results, 1), "category_id") == 18);
    json_decref(results);
    assert_int_equal(octet(p, "score --annotations truth.json --results out.json --json"), 0);
    j = printed_json(p);
    assert_true(number(j, "ap") > 0.999);
    json_decref(j);
}

static void eval_prints_tables(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, EVAL), 0);
    must_contain(p->last.out, "AP50");
    must_contain(p->last.out, "AP 1.0000 (+- 0.0000 on 2 pictures, 95 %)");
    must_contain(p->last.out, "post-process");
    must_contain(p->last.out, "2 images in ");
    must_contain(p->last.err, "family yolov8: ");
    must_contain(p->last.err, "preprocess size=128x128,fit=letterbox");
    assert_int_equal(octet(p, "eval red.onnx --images img --annotations classes.txt"), 0);
    must_contain(p->last.out, "top-1 0.5000\n");
    assert_int_equal(octet(p, EVAL " --limit 1 --quiet"), 0);
    must_contain(p->last.out, "1 images in ");
    assert_string_equal(p->last.err, "");
}

static void eval_scores_classifiers(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(octet(p, "eval red.onnx --images img --annotations classes.txt --json"), 0);
    j = printed_json(p);
    assert_true(number(j, "top1") == 0.5);
    assert_true(json_is_null(json_object_get(j, "top5"))); /* of three classes */
    assert_true(number(j, "images") == 2 && json_object_get(j, "ap") == NULL);
    assert_string_equal(json_string_value(json_object_get(j, "family")), "classifier");
    json_decref(j);
    /* Without green nothing but red is left. */
    assert_int_equal(octet(p, "eval red.onnx --images img --annotations classes.txt --json "
                              "--preprocess mean=0:9:0"),
                     0);
    j = printed_json(p);
    assert_true(number(j, "top1") == 0.5);
    json_decref(j);
}

static void eval_says_what_is_wrong(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "eval dog.onnx --annotations truth.json"), 2);
    must_contain(p->last.err, "--images");
    assert_int_equal(octet(p, "eval dog.onnx --images none --annotations truth.json"), 2);
    must_contain(p->last.err, "none");
    assert_int_equal(octet(p, EVAL " --batch 2"), 1);
    assert_int_equal(octet(p, EVAL " --family nanodet"), 1);
    must_contain(p->last.err, "are not those of family nanodet");
    assert_int_equal(octet(p, "eval dog.onnx --images . --annotations truth.json"), 1);
    must_contain(p->last.err, "a.png: there is no such file; of 2 pictures 2 are missing");
    assert_int_equal(octet(p, "eval dog.onnx --images . --annotations truth.json --skip-bad"), 1);
    must_contain(p->last.err, "of 2 pictures 2 are missing");
    write_file(p, "img/b.png", "no picture", 10);
    assert_int_equal(octet(p, EVAL " --results out.json"), 1);
    must_contain(p->last.err, "b.png");
    assert_false(exists(p, "out.json"));
    assert_int_equal(octet(p, EVAL " --skip-bad"), 0);
    must_contain(p->last.err, "img: 1 picture is broken and was left out (");
    must_contain(p->last.err, "b.png: ");
    must_contain(p->last.out, "1 images in ");
}

/* A4: a photo that was given is not drawn on, nor another that octet did not make. */
static void pictures_of_the_user_stay(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "detect dog.onnx img/a.png --out img --force"), 2);
    must_contain(p->last.err, "is read by this command");
    write_file(p, "a.png", "a photo", 7);
    assert_int_equal(octet(p, "detect dog.onnx img/a.png --out . --quiet"), 2);
    must_contain(p->last.err, "octet did not make it");
    must_contain(p->last.out, "dog"); /* what was asked for */
    assert_int_equal(octet(p, "detect dog.onnx img/a.png --out found --quiet"), 0);
    assert_int_equal(octet(p, "detect dog.onnx img/a.png --out found --quiet"), 0);
}

static void eval_says_what_no_labels_are(void **state)
{
    place *p = *state;

    must_refuse(p, "eval dog.onnx --images img --annotations img/a.png", 2,
                "img/a.png: a PNG picture, no labels; these are COCO .json");
    must_refuse(p, "eval dog.onnx --images img --annotations dog.onnx", 2,
                "dog.onnx: an ONNX network, no labels");
    write_file(p, "l.zip", "PK\x03\x04\x14\0\0\0\0\0", 10);
    must_refuse(p, "eval dog.onnx --images img --annotations l.zip", 2,
                "l.zip: a zip archive, no labels");
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(detect_lists_and_draws),
        TEST(detect_prints_json),
        TEST(detect_classifies),
        TEST(detect_says_what_is_wrong),
        TEST(detect_takes_many_ways),
        TEST(detect_takes_videos),
        TEST(eval_prints_the_agreed_keys),
        TEST(eval_prints_tables),
        TEST(eval_scores_classifiers),
        TEST(eval_says_what_is_wrong),
        TEST(pictures_of_the_user_stay),
        TEST(a_report_shows_frames_of_videos),
        TEST(eval_says_what_no_labels_are),
    };

    if (argc != 2) return 2;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
