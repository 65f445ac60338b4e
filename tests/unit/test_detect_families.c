/* SPDX-License-Identifier: Apache-2.0 */
/* Every family: recognised from its outputs, decoded to boxes worked out by hand. */
#include "tests/alloc.h"
#include "tests/unit/detect_net.h"

/* 64x64: 64 + 16 + 4 = 84 cells of strides 8, 16, 32. */
enum { SIDE = 64, CELLS = 84, CLASSES = 3 };

static void yolov8_rows(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *x;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "output0", 3, (int64_t[]){1, 4 + CLASSES, CELLS}, 0, &x);
    for (int k = 0; k < 4; k++)
        x[k * CELLS + 7] = (float[]){30, 20, 10, 8}[k];
    x[(4 + 2) * CELLS + 7] = 0.75f;
    x[(4 + 1) * CELLS + 9] = 0.9f; /* its box has no area */
    find_boxes(f, "yolov8", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 25, 16, 10, 8, 0.75f, 2);
}

/* PP-OCRv4's characters: 6625 scores at 40 places of a line. */
static void rows_without_anchors_are_no_yolov8(void **state)
{
    fixture *f = *state;
    oct_detector *d = NULL;

    picture_input(f, 1, 48, 320);
    output(f, "characters", 3, (int64_t[]){1, 40, 6625}, 0, NULL);
    assert_fails(f->ctx, oct_detector_new(f->g, NULL, &d), OCT_ERR_SHAPE,
                 "no family recognises the outputs");
    assert_ok(f->ctx, oct_detector_new(f->g, "yolov8", &d)); /* who asks for it gets it */
    oct_detector_free(d);
}

/* Strides that no usual network has: what decodes boxes tells. */
static void rows_that_are_decoded_are_yolov8(void **state)
{
    fixture *f = *state;
    oct_detector *d = NULL;

    picture_input(f, 1, 48, 320);
    activated(f, &oct_op_exp, 3, (int64_t[]){1, 40, 6625}, 0, NULL);
    assert_ok(f->ctx, oct_detector_new(f->g, NULL, &d));
    assert_string_equal(oct_detector_family(d), "yolov8");
    oct_detector_free(d);
}

static void yolov8_columns_when_asked(void **state)
{
    fixture *f = *state;
    oct_nms_options o;
    found_boxes b;
    float *x;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "output0", 3, (int64_t[]){1, CELLS, 4 + CLASSES}, 0, &x);
    memcpy(x + 7 * (4 + CLASSES), (float[]){30, 20, 10, 8, 0, 0.5f, 0.75f}, 7 * sizeof(*x));
    oct_nms_options_init(&o);
    assert_ok(f->ctx, find_boxes_of(f, "yolov8", 0, &o, &b));
    assert_int_equal(b.n, 2);
    assert_box(&b.d[0], 25, 16, 10, 8, 0.75f, 2);
    assert_box(&b.d[1], 25, 16, 10, 8, 0.5f, 1);
}

static void yolov5_in_pixels_and_in_parts(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *x;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "output", 3, (int64_t[]){1, 3 * CELLS, 5 + CLASSES}, 0, &x);
    memcpy(x + 100 * 8, (float[]){30, 20, 10, 8, 0.5f, 0, 0.8f, 0}, 8 * sizeof(*x));
    find_boxes(f, "yolov5", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 25, 16, 10, 8, 0.4f, 1);
    for (int k = 0; k < 4; k++)
        x[100 * 8 + k] /= SIDE;
    find_boxes(f, "yolov5", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 25, 16, 10, 8, 0.4f, 1);
}

static void yolox_decodes_grid_and_exponents(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *x;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "output", 3, (int64_t[]){1, CELLS, 5 + CLASSES}, 0, &x);
    /* Cell 64 + 5 is of stride 16: column 1, row 1. */
    memcpy(x + 69 * 8, (float[]){0.5f, -0.25f, logf(2), 0, 0.9f, 0.5f, 0, 0}, 8 * sizeof(*x));
    find_boxes(f, "yolox", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 24 - 16, 12 - 8, 32, 16, 0.45f, 0);
}

/* A grid added behind the last layers: the boxes are decoded, it is no YOLOX. */
static void decoded_rows_are_no_yolox(void **state)
{
    fixture *f = *state;
    const int64_t dims[] = {1, 4 * CELLS, 85};
    oct_detector *d = NULL;
    oct_value *x, *y;
    oct_tensor *t = NULL;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 3, dims);

    picture_input(f, 1, 2 * SIDE, 2 * SIDE);
    x = output(f, "raw", 3, dims, 0, NULL);
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    y = oct_emit(&f->b, &oct_op_add, x, oct_value_const(f->g, "grid", t), NULL);
    assert_non_null(y);
    f->g->outputs[0] = y; /* instead of the raw one */
    x->is_output = false;
    y->is_output = true;
    assert_ok(f->ctx, oct_detector_new(f->g, "auto", &d));
    assert_string_equal(oct_detector_family(d), "yolov5");
    assert_int_equal(oct_detector_n_classes(d), 80);
    oct_detector_free(d);
}

static void yolo_nas_decoded(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *boxes, *scores;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "boxes", 3, (int64_t[]){1, CELLS, 4}, 0, &boxes);
    output(f, "scores", 3, (int64_t[]){1, CELLS, CLASSES}, 0, &scores);
    output(f, "anchors", 2, (int64_t[]){CELLS, 4}, 0, NULL);
    memcpy(boxes + 11 * 4, (float[]){3, 4, 20, 30}, 4 * sizeof(float));
    scores[11 * CLASSES + 1] = 0.5f;
    find_boxes(f, "yolo-nas", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 3, 4, 17, 26, 0.5f, 1);
}

static void yolo_nas_raw(void **state)
{
    enum { BINS = 17 };
    fixture *f = *state;
    found_boxes b;
    float *logits, *bins;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "cls", 3, (int64_t[]){1, CELLS, CLASSES}, -9, &logits);
    output(f, "reg", 3, (int64_t[]){1, CELLS, 4 * BINS}, -99, &bins);
    /* Cell 64 + 16 + 1 is of stride 32: column 1, row 0; centre 48, 16. Distances in strides. */
    logits[81 * CLASSES + 2] = 2;
    bins[(81 * 4 + 0) * BINS + 1] = 9;
    bins[(81 * 4 + 1) * BINS + 0] = bins[(81 * 4 + 1) * BINS + 1] = 9; /* a half */
    bins[(81 * 4 + 2) * BINS + 2] = 9;
    bins[(81 * 4 + 3) * BINS + 3] = 9;
    find_boxes(f, "yolo-nas", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 16, 0, 96, 112, 1 / (1 + expf(-2)), 2);
}

/* NanoDet and PicoDet: the number of feature maps, and the centre. */
static void level_networks(void **state)
{
    enum { BINS = 8 };

    for (int n_levels = 3; n_levels <= 4; n_levels++) {
        const float shift = n_levels == 3 ? -0.5f : 0;
        float *scores = NULL, *bins = NULL;
        void *own = NULL;
        fixture *f;
        found_boxes b;

        (void)state;
        assert_int_equal(setup(&own), 0);
        f = own;
        picture_input(f, 1, SIDE, SIDE);
        for (int l = 0; l < n_levels; l++) {
            const int64_t side = SIDE / (8 << l);

            output(f, NULL, 3, (int64_t[]){1, side * side, CLASSES}, 0, l == 1 ? &scores : NULL);
        }
        for (int l = 0; l < n_levels; l++) {
            const int64_t side = SIDE / (8 << l);

            output(f, NULL, 3, (int64_t[]){1, side * side, 4 * BINS}, 0, l == 1 ? &bins : NULL);
        }
        /* Stride 16, cell 6: column 2, row 1; all bins equal: the mean is 3.5. */
        (void)bins;
        scores[6 * CLASSES] = 4; /* a logit: there is no sigmoid */
        for (int i = 0; i < 16 * CLASSES; i++)
            if (i != 6 * CLASSES) scores[i] = -20;
        for (int i = 0; i < f->g->n_outputs; i++) {
            oct_tensor *t = f->g->outputs[i]->data;

            if (t->type.dim[2] == CLASSES && t->data != scores)
                for (int64_t k = 0; k < oct_tensor_len(t); k++)
                    ((float *)t->data)[k] = -20;
        }
        find_boxes(f, n_levels == 3 ? "nanodet" : "picodet", &b);
        assert_int_equal(b.n, 1);
        assert_box(&b.d[0], 0, 0, 40 + 56 + shift, 24 + 56 + shift, 1 / (1 + expf(-4)), 0);
        assert_int_equal(teardown(&own), 0);
    }
}

static void ssd_with_background(void **state)
{
    enum { ANCHORS = 600 };
    fixture *f = *state;
    found_boxes b;
    float *logits, *boxes;

    picture_input(f, 1, SIDE, SIDE);
    activated(f, &oct_op_softmax, 3, (int64_t[]){1, ANCHORS, 3}, 0, &logits);
    output(f, "boxes", 3, (int64_t[]){1, ANCHORS, 4}, 0, &boxes);
    for (int i = 0; i < ANCHORS; i++)
        logits[i * 3] = 20; /* background */
    logits[17 * 3] = 0;
    logits[17 * 3 + 2] = 20;
    memcpy(boxes + 17 * 4, (float[]){0.25f, 0.5f, 0.5f, 1}, 4 * sizeof(float));
    find_boxes(f, "ssd", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 16, 32, 16, 32, 1, 1);
}

static void nms_counted(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *n, *boxes, *scores, *classes;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "num_dets", 2, (int64_t[]){1, 1}, 2, &n);
    output(f, "boxes", 3, (int64_t[]){1, 5, 4}, 0, &boxes);
    output(f, "scores", 2, (int64_t[]){1, 5}, 0.9f, &scores);
    output(f, "classes", 2, (int64_t[]){1, 5}, 1, &classes);
    for (int i = 0; i < 5; i++)
        memcpy(boxes + i * 4, (float[]){1, 2, 11, 22}, 4 * sizeof(float));
    scores[1] = 0.5f;
    find_boxes(f, "nms", &b); /* the same box twice: the network meant it */
    assert_int_equal(b.n, 2);
    assert_box(&b.d[0], 1, 2, 10, 20, 0.9f, 1);
    assert_box(&b.d[1], 1, 2, 10, 20, 0.5f, 1);
}

static void nms_rows(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *x;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "out", 3, (int64_t[]){1, 300, 6}, 0, &x);
    memcpy(x + 6, (float[]){1, 2, 11, 22, 0.7f, 4}, 6 * sizeof(float));
    find_boxes(f, "nms", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 1, 2, 10, 20, 0.7f, 4);
}

static void nms_rows_with_picture(void **state)
{
    fixture *f = *state;
    oct_nms_options o;
    found_boxes b;
    float *x;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "out", 2, (int64_t[]){2, 7}, 0, &x);
    memcpy(x, (float[]){0, 1, 2, 11, 22, 4, 0.75f}, 7 * sizeof(float));
    memcpy(x + 7, (float[]){1, 1, 2, 11, 22, 5, 0.5f}, 7 * sizeof(float));
    oct_nms_options_init(&o);
    assert_ok(f->ctx, find_boxes_of(f, "nms", 1, &o, &b));
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 1, 2, 10, 20, 0.5f, 5);
    /* Score before class. */
    memcpy(x, (float[]){0, 1, 2, 11, 22, 0.75f, 4}, 7 * sizeof(float));
    memcpy(x + 7, (float[]){0, 30, 2, 41, 22, 0.5f, 5}, 7 * sizeof(float));
    assert_ok(f->ctx, find_boxes_of(f, "nms", 0, &o, &b));
    assert_int_equal(b.n, 2);
    assert_box(&b.d[0], 1, 2, 10, 20, 0.75f, 4);
}

static oct_value *integers(fixture *f, int32_t rank, const int64_t *dims, const double *v)
{
    oct_value *x = oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_I64, rank, dims, v));

    assert_non_null(x);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
    return x;
}

static void nms_indices_and_split(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *boxes, *scores;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "boxes", 3, (int64_t[]){1, 6, 4}, 0, &boxes);
    output(f, "scores", 3, (int64_t[]){1, 2, 6}, 0.5f, &scores);
    integers(f, 2, (int64_t[]){1, 3}, (double[]){0, 1, 4});
    memcpy(boxes + 4 * 4, (float[]){1, 2, 11, 22}, 4 * sizeof(float));
    scores[6 + 4] = 0.8f;
    find_boxes(f, "nms", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 1, 2, 10, 20, 0.8f, 1);
}

static void nms_split(void **state)
{
    fixture *f = *state;
    found_boxes b;
    float *boxes;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "boxes", 2, (int64_t[]){2, 4}, 0, &boxes);
    integers(f, 1, (int64_t[]){2}, (double[]){7, 8});
    output(f, "scores", 1, (int64_t[]){2}, 0.5f, NULL);
    memcpy(boxes + 4, (float[]){1, 2, 11, 22}, 4 * sizeof(float));
    find_boxes(f, "nms", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 1, 2, 10, 20, 0.5f, 8);
}

/* --- classifiers --- */

static void classifier(void **state)
{
    fixture *f = *state;
    oct_detector *d = NULL;
    oct_preprocess p;
    oct_plan *plan = NULL;
    oct_run *r = NULL;
    const float *s = NULL;
    int32_t n = 0;
    float *x;

    picture_input(f, 2, SIDE, SIDE);
    output(f, "logits", 2, (int64_t[]){2, 10}, 0, &x);
    x[13] = 5;
    assert_ok(f->ctx, oct_detector_new(f->g, NULL, &d));
    assert_string_equal(oct_detector_family(d), "classifier");
    assert_int_equal(oct_detector_is_classifier(d), 1);
    oct_preprocess_init(&p);
    oct_detector_preprocess(d, &p);
    assert_int_equal(p.fit, OCT_FIT_CROP);
    assert_int_equal(p.width, SIDE);
    assert_true(p.mean[0] == 0.485f && p.std[2] == 0.225f);
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &plan));
    assert_ok(f->ctx, oct_run_new(f->ctx, plan, &r));
    assert_ok(f->ctx, oct_run_execute(r));
    assert_ok(f->ctx, oct_detector_scores(d, r, 1, &s, &n));
    assert_int_equal(n, 10);
    assert_true(s[3] == 5);
    assert_fails(f->ctx, oct_detector_scores(d, r, 2, &s, &n), OCT_ERR_SHAPE, "output 0");
    oct_run_free(r);
    oct_plan_free(plan);
    oct_detector_free(d);
}

static void classifiers_of_keras_want_minus_one_to_one(void **state)
{
    fixture *f = *state;
    oct_detector *d = NULL;
    oct_preprocess p;

    f->g->info.producer_name = "keras2onnx";
    picture_input(f, 1, SIDE, SIDE);
    output(f, "logits", 2, (int64_t[]){1, 10}, 0, NULL);
    assert_ok(f->ctx, oct_detector_new(f->g, NULL, &d));
    oct_preprocess_init(&p);
    oct_detector_preprocess(d, &p);
    assert_true(p.scale == 127.5f && p.mean[1] == 1 && p.std[1] == 1);
    oct_detector_free(d);
}

/* --- what is refused --- */

static void refuses(void **state)
{
    fixture *f = *state;
    oct_detector *d = NULL;

    output(f, "out", 3, (int64_t[]){1, 7, CELLS}, 0, NULL);
    assert_fails(f->ctx, oct_detector_new(f->g, NULL, &d), OCT_ERR_UNSUPPORTED,
                 "no input takes a picture");
    picture_input(f, 1, SIDE, SIDE);
    assert_fails(f->ctx, oct_detector_new(f->g, "yolov9", &d), OCT_ERR_ARG,
                 "no family 'yolov9', did you mean 'yolov5'?; there are: auto, yolo-nas, ");
    assert_fails(f->ctx, oct_detector_new(f->g, "nanodet", &d), OCT_ERR_SHAPE,
                 "(out float32[1x7x84]) are not those of family nanodet: for each of 3");
    graph_input(f, "config", OCT_DTYPE_F32, 1, (int64_t[]){3});
    assert_fails(f->ctx, oct_detector_new(f->g, NULL, &d), OCT_ERR_UNSUPPORTED,
                 "input 'config' is wanted besides the picture 'images'");
    assert_null(d);
}

static void lists_the_choices(void **state)
{
    fixture *f = *state;
    oct_detector *d = NULL;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "features", 5, (int64_t[]){1, 7, 3, 3, 2}, 0, NULL);
    assert_fails(f->ctx, oct_detector_new(f->g, NULL, &d), OCT_ERR_SHAPE,
                 "no family recognises the outputs (features float32[1x7x3x3x2]); name one of: "
                 "yolo-nas, yolov5, yolov8, yolox, nanodet, picodet, fastestdet, yolo-fastestv2, "
                 "ssd, detr, nms, classifier");
}

/* A decoded network with one row a cell: 4 + 11 classes, or 5 + 10. */
static void says_when_it_is_ambiguous(void **state)
{
    fixture *f = *state;
    oct_detector *d = NULL;
    oct_value *x;

    picture_input(f, 1, SIDE, SIDE);
    x = oct_emit(&f->b, &oct_op_exp,
                 oct_value_const(f->g, "raw",
                                 tensor_of(f->ctx, OCT_DTYPE_F32, 3, (int64_t[]){1, CELLS, 15},
                                           (double[CELLS * 15]){0})),
                 NULL, NULL);
    assert_non_null(x);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
    assert_fails(f->ctx, oct_detector_new(f->g, NULL, &d), OCT_ERR_SHAPE,
                 "fit more than one family; name one: yolov5 (");
    assert_non_null(strstr(oct_ctx_error(f->ctx), ") or yolov8 ("));
    assert_ok(f->ctx, oct_detector_new(f->g, "yolov8", &d));
    assert_int_equal(oct_detector_n_classes(d), 11);
    oct_detector_free(d);
}

/* Open sizes are bound: batch 1, 640x640. */
static void open_sizes(void **state)
{
    fixture *f = *state;
    oct_detector *d = NULL;
    oct_preprocess p;

    graph_input(f, "images", OCT_DTYPE_F32, 4, (int64_t[]){-1, 3, -1, -1});
    output(f, "out", 3, (int64_t[]){1, 7, 8400}, 0, NULL);
    assert_ok(f->ctx, oct_detector_new(f->g, NULL, &d));
    oct_preprocess_init(&p);
    oct_detector_preprocess(d, &p);
    assert_int_equal(p.width, 640);
    assert_int_equal(p.height, 640);
    oct_detector_free(d);
}

/* A network for lines of text: its Reshape allows one size only. */
static void open_sizes_are_those_of_the_words(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "images", OCT_DTYPE_F32, 4, (int64_t[]){-1, 3, -1, -1}), *y;
    oct_preprocess p;

    y = oct_emit(&f->b, &oct_op_reshape, x, oct_ints(&f->b, (int64_t[]){1, 3, 320 * 48}, 3), NULL);
    assert_non_null(y);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    oct_preprocess_init(&p);
    assert_fails(f->ctx, oct_graph_preprocess(f->g, NULL, "fit=stretch", &p), OCT_ERR_SHAPE,
                 "cannot become");
    assert_ok(f->ctx, oct_graph_preprocess(f->g, NULL, "fit=stretch, size=320x48", &p));
    assert_int_equal(p.width, 320);
    assert_int_equal(p.height, 48);
    assert_fails(f->ctx, oct_graph_preprocess(f->g, NULL, "crop_resize=64", &p), OCT_ERR_SHAPE,
                 "cannot become");
    /* What octet notes in the files it writes. */
    assert_ok(f->ctx, oct_graph_set_metadata(f->g, "octet.preprocess", "size=320x48"));
    assert_ok(f->ctx, oct_graph_preprocess(f->g, NULL, "fit=stretch", &p));
    assert_int_equal(p.width, 320);
}

/* A graph with an int32 output (so that it is converted), recognised, run and decoded. */
static oct_status whole_way(oct_ctx *ctx)
{
    const oct_mapping same = {1, 1, 0, 0, 100, 100};
    const oct_type picture = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){-1, 3, SIDE, SIDE});
    const oct_type rows = oct_type_make(OCT_DTYPE_I32, 3, (int64_t[]){1, 7, CELLS});
    oct_graph *g = NULL;
    oct_detector *d = NULL;
    oct_plan *p = NULL;
    oct_run *r = NULL;
    oct_tensor *t = NULL;
    oct_value *v;
    oct_detection found[100];
    int32_t n = 0;
    oct_status st;

    if ((st = oct_graph_new(ctx, "g", &g))) return st;
    st = (v = oct_value_new(g, "x", &picture)) ? oct_graph_add_input(g, v) : OCT_ERR_MEMORY;
    if (!st) st = oct_tensor_make(ctx, &rows, &t);
    if (!st)
        for (int i = 0; i < 7 * CELLS; i++)
            ((int32_t *)t->data)[i] = 20;
    if (!st) {
        v = oct_value_const(g, "y", t);
        if (!v) oct_tensor_unref(t);
        st = v ? oct_graph_add_output(g, v) : OCT_ERR_MEMORY;
    }
    if (!st) st = oct_detector_new(g, NULL, &d);
    if (!st) st = oct_plan_new(g, NULL, &p);
    if (!st) st = oct_run_new(ctx, p, &r);
    if (!st) st = oct_run_execute(r);
    if (!st) st = oct_detector_decode(d, r, 0, &same, NULL, found, &n);
    if (!st) assert_int_equal(n, 3);
    oct_run_free(r);
    oct_plan_free(p);
    oct_detector_free(d);
    oct_graph_free(g);
    return st;
}

static void survives_want_of_memory(void **state)
{
    (void)state;
    fail_each_allocation(whole_way);
}

static void tables_can_be_looked_at(void **state)
{
    int32_t n = 0;

    (void)state;
    for (; oct_family_name(n); n++)
        assert_non_null(oct_family_help(oct_family_name(n)));
    assert_int_equal(n, 12);
    assert_null(oct_family_help("none"));
    assert_null(oct_family_name(-1));
    assert_string_equal(oct_coco_name(0), "person");
    assert_string_equal(oct_coco_name(79), "toothbrush");
    assert_null(oct_coco_name(80));
    assert_null(oct_coco_name(-1));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(yolov8_rows),
        TEST(rows_without_anchors_are_no_yolov8),
        TEST(rows_that_are_decoded_are_yolov8),
        TEST(yolov8_columns_when_asked),
        TEST(yolov5_in_pixels_and_in_parts),
        TEST(yolox_decodes_grid_and_exponents),
        TEST(decoded_rows_are_no_yolox),
        TEST(yolo_nas_decoded),
        TEST(yolo_nas_raw),
        TEST(level_networks),
        TEST(ssd_with_background),
        TEST(nms_counted),
        TEST(nms_rows),
        TEST(nms_rows_with_picture),
        TEST(nms_indices_and_split),
        TEST(nms_split),
        TEST(classifier),
        TEST(classifiers_of_keras_want_minus_one_to_one),
        TEST(refuses),
        TEST(lists_the_choices),
        TEST(says_when_it_is_ambiguous),
        TEST(open_sizes),
        TEST(open_sizes_are_those_of_the_words),
        TEST(tables_can_be_looked_at),
        TEST(survives_want_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
