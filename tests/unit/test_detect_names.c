/* SPDX-License-Identifier: Apache-2.0 */
/* What a file says about its network: names, task, size; and families that need it. */
#include "tests/alloc.h"
#include "tests/unit/detect_net.h"

#include "data/labels/class_names.h"
#include "detect/detector.h"

enum { SIDE = 64, CELLS = 84 };

static void say(fixture *f, const char *key, const char *value)
{
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, key, value));
}

static oct_detector *recognise(fixture *f)
{
    oct_detector *d = NULL;

    assert_ok(f->ctx, oct_detector_new(f->g, NULL, &d));
    return d;
}

/* [1, channels, CELLS] with one box whose scores all are in channel `at`. */
static void rows(fixture *f, int channels, int at, float score)
{
    float *x;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "output0", 3, (int64_t[]){1, channels, CELLS}, 0, &x);
    for (int k = 0; k < 4; k++)
        x[k * CELLS + 7] = (float[]){30, 20, 10, 8}[k];
    x[at * CELLS + 7] = score;
}

static void names_come_from_metadata(void **state)
{
    fixture *f = *state;
    oct_detector *d, *copy = NULL;

    rows(f, 4 + 2, 5, 0.5f);
    say(f, "names", "{0: 'cell', 1: \"it's\"}");
    d = recognise(f);
    assert_int_equal(oct_detector_n_classes(d), 2);
    assert_string_equal(oct_detector_names_from(d), "metadata");
    assert_string_equal(oct_detector_class_name(d, 1), "it's");
    assert_null(oct_detector_class_name(d, 2));
    assert_ok(f->ctx, oct_detector_copy(f->ctx, d, &copy));
    oct_detector_free(d);
    assert_string_equal(oct_detector_class_name(copy, 0), "cell");
    oct_detector_free(copy);
}

static void names_that_do_not_fit_are_left_aside(void **state)
{
    fixture *f = *state;
    static const char *const texts[] = {"{0: 'a'}", "{0: 'a', 1: 'b', 2: 'c'}", "rubbish",
                                        "{0: 'class0', 1: 'class1'}", "{1: 'a', 2: 'b'}"};

    rows(f, 4 + 2, 5, 0.5f);
    for (size_t i = 0; i < OCT_COUNT(texts); i++) {
        oct_detector *d;

        say(f, "names", texts[i]);
        d = recognise(f);
        assert_int_equal(oct_detector_n_classes(d), 2);
        assert_null(oct_detector_names_from(d));
        assert_null(oct_detector_class_name(d, 0));
        oct_detector_free(d);
    }
}

static void eighty_without_names_are_like_coco(void **state)
{
    fixture *f = *state;
    oct_detector *d;

    picture_input(f, 1, 128, 128);
    output(f, "output0", 3, (int64_t[]){1, 4 + 80, 336}, 0, NULL);
    d = recognise(f);
    assert_string_equal(oct_detector_names_from(d), "COCO");
    assert_string_equal(oct_detector_class_name(d, 16), "dog");
    oct_detector_free(d);
}

static void names_can_be_set(void **state)
{
    fixture *f = *state;
    oct_class_names *c = NULL;
    oct_detector *d;

    rows(f, 4 + 2, 5, 0.5f);
    d = recognise(f);
    assert_ok(f->ctx, oct_class_names_new(f->ctx, &c));
    assert_ok(f->ctx, oct_class_names_literal(c, "x", "['a']"));
    assert_fails(f->ctx, oct_detector_set_names(d, c), OCT_ERR_ARG,
                 "1 names are given, but the network has 2 classes");
    assert_ok(f->ctx, oct_class_names_set(c, 1, "b", 1));
    assert_ok(f->ctx, oct_detector_set_names(d, c));
    oct_class_names_free(c);
    assert_string_equal(oct_detector_names_from(d), "labels");
    assert_string_equal(oct_detector_class_name(d, 1), "b");
    oct_detector_free(d);
}

static void a_pose_network_has_its_own_classes_only(void **state)
{
    fixture *f = *state;
    found_boxes b;
    oct_detector *d;

    rows(f, 4 + 1 + 51, 4, 0.75f);
    for (int i = 0; i < 2; i++) { /* from the keypoints' shape, then from the names */
        say(f, "task", "pose");
        say(f, "kpt_shape", i ? NULL : "[17, 3]");
        say(f, "names", i ? "{0: 'person'}" : NULL);
        d = recognise(f);
        assert_int_equal(oct_detector_n_classes(d), 1);
        assert_non_null(
            strstr(oct_detector_why(d), "a network for poses: only its boxes are read"));
        oct_detector_free(d);
        find_boxes(f, "yolov8", &b);
        assert_int_equal(b.n, 1);
        assert_box(&b.d[0], 25, 16, 10, 8, 0.75f, 0);
    }
    say(f, "names", NULL);
    assert_fails(f->ctx, find_boxes_of(f, NULL, 0, NULL, &b), OCT_ERR_UNSUPPORTED,
                 "boxes cannot be told from keypoints");
}

static void mask_coefficients_are_no_classes(void **state)
{
    fixture *f = *state;
    oct_detector *d;

    rows(f, 4 + 2 + 32, 4, 0.75f);
    output(f, "output1", 4, (int64_t[]){1, 32, 16, 16}, 0, NULL);
    d = recognise(f);
    assert_int_equal(oct_detector_n_classes(d), 2);
    assert_non_null(strstr(oct_detector_why(d), "a network for masks"));
    oct_detector_free(d);
}

static void masks_of_yolov5_are_no_classes(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *x;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "output0", 3, (int64_t[]){1, 3 * CELLS, 5 + 2 + 32}, 0.9f, &x);
    for (int i = 0; i < 3 * CELLS; i++)
        x[i * 39 + 4] = 0; /* no object */
    memcpy(x + 100 * 39, (float[]){30, 20, 10, 8, 0.5f, 0, 0.8f}, 7 * sizeof(*x));
    output(f, "output1", 4, (int64_t[]){1, 32, 16, 16}, 0, NULL);
    find_boxes(f, "yolov5", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 25, 16, 10, 8, 0.4f, 1);
}

static void rotated_boxes_are_refused(void **state)
{
    fixture *f = *state;
    oct_detector *d;
    found_boxes b;

    rows(f, 4 + 2 + 1, 4, 0.75f);
    say(f, "task", "obb");
    d = recognise(f); /* how it is fed is known */
    assert_int_equal(oct_detector_n_classes(d), 2);
    assert_fails(f->ctx, oct_detector_check(d), OCT_ERR_UNSUPPORTED, "rotated (task obb)");
    oct_detector_free(d);
    assert_fails(f->ctx, find_boxes_of(f, NULL, 0, NULL, &b), OCT_ERR_UNSUPPORTED, "rotated");
}

static void an_open_size_is_what_the_file_says(void **state)
{
    fixture *f = *state;
    oct_preprocess p;
    oct_detector *d;

    graph_input(f, "images", OCT_DTYPE_F32, 4, (int64_t[]){-1, 3, -1, -1});
    output(f, "output0", 3, (int64_t[]){1, 4 + 2, CELLS}, 0, NULL);
    say(f, "imgsz", "[64, 96]");
    d = recognise(f);
    oct_preprocess_init(&p);
    oct_detector_preprocess(d, &p);
    assert_int_equal(p.height, 64);
    assert_int_equal(p.width, 96);
    oct_detector_free(d);
    say(f, "imgsz", "[-1, 99999999999]");
    d = recognise(f);
    oct_detector_preprocess(d, &p);
    assert_int_equal(p.width, 640);
    oct_detector_free(d);
}

/* --- NonMaxSuppression's indices --- */

/* Boxes and scores [1, CELLS, 3] of YOLO-NAS, with the operator that chose among them. */
static void suppressed(fixture *f, bool centred)
{
    oct_value *boxes, *scores, *turned, *chosen;
    float *b, *s;
    oct_node *n;

    picture_input(f, 1, SIDE, SIDE);
    boxes = output(f, "boxes", 3, (int64_t[]){1, CELLS, 4}, 0, &b);
    scores = output(f, "scores", 3, (int64_t[]){1, CELLS, 3}, 0, &s);
    memcpy(b + 7 * 4, centred ? (float[]){30, 20, 10, 8} : (float[]){25, 16, 35, 24}, 16);
    s[7 * 3 + 2] = 0.75f;
    assert_non_null(n = oct_emit_node(&f->b, &oct_op_transpose, &scores, 1, 1));
    assert_ok(f->ctx, oct_node_set_ints(n, "perm", (int64_t[]){0, 2, 1}, 3));
    assert_ok(f->ctx, oct_node_infer(n));
    turned = n->out[0];
    n = oct_emit_node(&f->b, &oct_op_non_max_suppression,
                      (oct_value *[]){boxes, turned, oct_ints(&f->b, (int64_t[]){10}, 1),
                                      oct_scalar(&f->b, 0.5f), oct_scalar(&f->b, 0.3f)},
                      5, 1);
    assert_non_null(n);
    if (centred) assert_ok(f->ctx, oct_node_set_int(n, "center_point_box", 1));
    assert_ok(f->ctx, oct_node_infer(n));
    chosen = n->out[0];
    assert_ok(f->ctx, oct_graph_add_output(f->g, chosen));
}

static void indices_with_scores_of_cells_first(void **state)
{
    fixture *f = *state;
    oct_detector *d;
    found_boxes b;

    suppressed(f, false);
    d = recognise(f);
    assert_int_equal(oct_detector_n_classes(d), 3);
    oct_detector_free(d);
    find_boxes(f, "nms", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 25, 16, 10, 8, 0.75f, 2);
}

static void indices_with_centres(void **state)
{
    fixture *f = *state;
    found_boxes b;

    suppressed(f, true);
    find_boxes(f, "nms", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 25, 16, 10, 8, 0.75f, 2);
}

/* --- DETR --- */

static void queries_with_logits(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *x, *s;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "logits", 3, (int64_t[]){1, 30, 3}, -9, &s);
    output(f, "pred_boxes", 3, (int64_t[]){1, 30, 4}, 0.1f, &x);
    for (int i = 7; i < 9; i++) { /* the same box twice: nothing is suppressed */
        memcpy(x + i * 4, (float[]){0.5f, 0.25f, 0.25f, 0.125f}, 16);
        s[i * 3 + 1] = i == 7 ? logf(3) : 0;
    }
    find_boxes(f, "detr", &b);
    assert_int_equal(b.n, 2);
    assert_box(&b.d[0], 24, 12, 16, 8, 0.75f, 1);
    assert_box(&b.d[1], 24, 12, 16, 8, 0.5f, 1);
}

static void queries_that_may_be_nothing(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *x, *s;

    picture_input(f, 1, SIDE, SIDE);
    say(f, "names", "['a', 'b']");
    output(f, "logits", 3, (int64_t[]){1, 30, 3}, 0, &s);
    output(f, "boxes", 3, (int64_t[]){1, 30, 4}, 0.1f, &x);
    for (int i = 0; i < 30; i++)
        s[i * 3 + 2] = 9; /* nothing */
    memcpy(x + 7 * 4, (float[]){0.5f, 0.25f, 0.25f, 0.125f}, 16);
    memcpy(s + 7 * 3, (float[]){logf(2), logf(7), 0}, 12);
    find_boxes(f, "detr", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 24, 12, 16, 8, 0.7f, 1);
}

static void queries_joined(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *x;

    picture_input(f, 1, SIDE, SIDE);
    say(f, "names", "['a', 'b', 'c']");
    activated(f, &oct_op_sigmoid, 3, (int64_t[]){1, 30, 7}, -9, &x);
    memcpy(x + 7 * 7, (float[]){0, -logf(3), -logf(3), -logf(7), -9, logf(3), -9}, 28);
    find_boxes(f, "detr", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 24, 12, 16, 8, 0.75f, 1);
}

/* For fail_each_allocation(). */
static oct_status whole_way(oct_ctx *ctx)
{
    oct_detector *d = NULL, *copy = NULL;
    oct_graph *g = NULL;
    oct_value *v;
    oct_type t = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){1, 3, SIDE, SIDE});
    oct_status st = oct_graph_new(ctx, "g", &g);

    if (st) return st;
    st = OCT_ERR_MEMORY;
    if (!(v = oct_value_new(g, "x", &t)) || oct_graph_add_input(g, v)) goto done;
    t = oct_type_make(OCT_DTYPE_F32, 3, (int64_t[]){1, 6, CELLS});
    if (!(v = oct_value_new(g, "y", &t)) || oct_graph_add_output(g, v)) goto done;
    if ((st = oct_graph_set_metadata(g, "names", "['a', 'b']"))) goto done;
    if ((st = oct_detector_new(g, NULL, &d))) goto done;
    st = oct_detector_copy(ctx, d, &copy);
done:
    oct_detector_free(copy);
    oct_detector_free(d);
    oct_graph_free(g);
    return st;
}

static void survives_want_of_memory(void **state)
{
    (void)state;
    fail_each_allocation(whole_way);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(names_come_from_metadata),
        TEST(names_that_do_not_fit_are_left_aside),
        TEST(eighty_without_names_are_like_coco),
        TEST(names_can_be_set),
        TEST(a_pose_network_has_its_own_classes_only),
        TEST(mask_coefficients_are_no_classes),
        TEST(masks_of_yolov5_are_no_classes),
        TEST(rotated_boxes_are_refused),
        TEST(an_open_size_is_what_the_file_says),
        TEST(indices_with_scores_of_cells_first),
        TEST(indices_with_centres),
        TEST(queries_with_logits),
        TEST(queries_that_may_be_nothing),
        TEST(queries_joined),
        TEST(survives_want_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
