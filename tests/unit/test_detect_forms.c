/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs as people have them: of mmdetection, of queries with labels, of heads without a batch, of
 * FastestDet and YOLO-FastestV2. Their boxes are known. */
#include "tests/unit/detect_net.h"

#include "detect/detector.h"

enum { SIDE = 64, CLASSES = 3 };

static oct_value *integers(fixture *f, const char *name, int32_t rank, const int64_t *dims,
                           const double *v)
{
    oct_value *x = oct_value_const(f->g, name, tensor_of(f->ctx, OCT_DTYPE_I64, rank, dims, v));

    assert_non_null(x);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
    return x;
}

static void start(fixture **f, void **own)
{
    assert_int_equal(setup(own), 0);
    *f = *own;
    picture_input(*f, 1, SIDE, SIDE);
}

/* mmdetection: dets [1,k,5] and labels [1,k]; older ones without the batch, in either order. */
static void mmdetection(void **state)
{
    (void)state;
    for (int batch = 0; batch < 2; batch++) {
        const int64_t dets[] = {1, 2, 5}, labels[] = {1, 2};
        void *own = NULL;
        float *x = NULL;
        found_boxes b;
        fixture *f;

        start(&f, &own);
        if (!batch) integers(f, "labels", 1, labels + 1, (double[]){7, 2});
        output(f, "dets", 2 + batch, dets + !batch, 0, &x);
        if (batch) integers(f, "labels", 2, labels, (double[]){7, 2});
        memcpy(x + 5, (float[]){1, 2, 11, 22, 0.75f}, 5 * sizeof(*x));
        find_boxes(f, "nms", &b);
        assert_int_equal(b.n, 1);
        assert_box(&b.d[0], 1, 2, 10, 20, 0.75f, 2);
        assert_int_equal(teardown(&own), 0);
    }
}

/* RT-DETR and D-FINE with their post-processing: labels [1,k], boxes [1,k,4], scores [1,k]. */
static void labels_boxes_scores(void **state)
{
    (void)state;
    for (int unit = 0; unit < 2; unit++) {
        const float size = unit ? SIDE : 1;
        void *own = NULL;
        float *x = NULL, *scores = NULL;
        found_boxes b;
        fixture *f;

        start(&f, &own);
        integers(f, "labels", 2, (int64_t[]){1, 2}, (double[]){7, 2});
        output(f, "boxes", 3, (int64_t[]){1, 2, 4}, 0, &x);
        output(f, "scores", 2, (int64_t[]){1, 2}, 0, &scores);
        memcpy(x + 4, (float[]){8 / size, 16 / size, 24 / size, 48 / size}, 4 * sizeof(*x));
        scores[1] = 0.5f;
        find_boxes(f, "nms", &b);
        assert_int_equal(b.n, 1);
        assert_box(&b.d[0], 8, 16, 16, 32, 0.5f, 2);
        assert_int_equal(teardown(&own), 0);
    }
}

/* YOLOv10: [1,300,6], corners, score and class of chosen anchors. */
static void yolov10(void **state)
{
    fixture *f = *state;
    float *x = NULL;
    found_boxes b;

    picture_input(f, 1, 640, 640);
    output(f, "output0", 3, (int64_t[]){1, 300, 6}, 0, &x);
    memcpy(x, (float[]){1, 2, 11, 22, 0.75f, 79}, 6 * sizeof(*x));
    find_boxes(f, "nms", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 1, 2, 10, 20, 0.75f, 79);
}

/* NanoDet without a batch: [cells, classes] and [cells, 4 * bins], levels and kinds in any order.
 */
static void levels_without_a_batch(void **state)
{
    enum { BINS = 8 };
    static const int order[] = {1, 2, 0};
    fixture *f = *state;
    float *scores[3];
    found_boxes b;

    picture_input(f, 1, SIDE, SIDE);
    for (int i = 0; i < 3; i++) {
        const int64_t side = SIDE / (8 << order[i]);

        if (i == 1) output(f, NULL, 2, (int64_t[]){side * side, CLASSES}, -20, &scores[order[i]]);
        output(f, NULL, 2, (int64_t[]){side * side, 4 * BINS}, 0, NULL);
        if (i != 1) output(f, NULL, 2, (int64_t[]){side * side, CLASSES}, -20, &scores[order[i]]);
    }
    scores[1][6 * CLASSES + 1] = 4; /* stride 16, column 2, row 1; the mean of equal bins is 3.5 */
    find_boxes(f, "nanodet", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 0, 0, 40 + 56 - 0.5f, 24 + 56 - 0.5f, 1 / (1 + expf(-4)), 1);
}

/* [1, 5 + classes, 4, 4]: object, box by tanh and sigmoid, classes. */
static void fastestdet(void **state)
{
    enum { CELLS = 16 };
    fixture *f = *state;
    float *x = NULL;
    found_boxes b;
    oct_nms_options o;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "output", 4, (int64_t[]){1, 5 + CLASSES, 4, 4}, 0, &x);
    x[0 * CELLS + 6] = 0.5f;                /* column 2, row 1 */
    x[3 * CELLS + 6] = logf(0.25f / 0.75f); /* a quarter of the picture wide */
    x[(5 + 1) * CELLS + 6] = 0.75f;
    oct_nms_options_init(&o);
    o.score = 0.3f;
    assert_ok(f->ctx, find_boxes_of(f, "fastestdet", 0, &o, &b));
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], 32 - 8, 16 - 16, 16, 32, powf(0.5f, 0.6f) * powf(0.75f, 0.4f), 1);
}

/* One anchor of stride 32, exported with its activations and without. */
static void yolo_fastestv2(void **state)
{
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        /* the second anchor of the second stride, twice as wide and high at 64 of 352 pixels */
        const float w = 131.57f * SIDE / 352, h = 214.55f * SIDE / 352;
        float *box = NULL, *object = NULL, *class = NULL;
        void *own = NULL;
        found_boxes b;
        fixture *f;

        start(&f, &own);
        if (apart) {
            output(f, NULL, 4, (int64_t[]){1, 12, 4, 4}, 0, NULL);
            output(f, NULL, 4, (int64_t[]){1, 3, 4, 4}, -20, NULL);
            output(f, NULL, 4, (int64_t[]){1, 7, 4, 4}, 0, NULL);
            output(f, NULL, 4, (int64_t[]){1, 12, 2, 2}, 0, &box);
            output(f, NULL, 4, (int64_t[]){1, 3, 2, 2}, -20, &object);
            output(f, NULL, 4, (int64_t[]){1, 7, 2, 2}, 0, &class);
            object[1 * 4 + 1] = 2;
            class[5 * 4 + 1] = 30;
        } else {
            output(f, NULL, 4, (int64_t[]){1, 2, 2, 22}, 0, &box);
            output(f, NULL, 4, (int64_t[]){1, 4, 4, 22}, 0, NULL);
            for (int k = 4; k < 8; k++)
                box[22 + k] = 0.5f; /* row 0, column 1, anchor 1 */
            box[22 + 12 + 1] = 0.8f;
            box[22 + 15 + 5] = 1;
        }
        find_boxes(f, "yolo-fastestv2", &b);
        assert_int_equal(b.n, 1);
        assert_box(&b.d[0], fmaxf(48 - w / 2, 0), fmaxf(16 - h / 2, 0),
                   48 + w / 2 - fmaxf(48 - w / 2, 0), 16 + h / 2 - fmaxf(16 - h / 2, 0),
                   apart ? 1 / (1 + expf(-2)) : 0.8f, 5);
        assert_int_equal(teardown(&own), 0);
    }
}

/* D-FINE and RT-DETR as their authors export them: the size of the picture comes in beside it, and
 * boxes leave in its pixels. They are told their own size; the picture is stretched. */
static void sizes_come_beside_the_picture(void **state)
{
    fixture *f = *state;
    oct_preprocess p;
    oct_detector *d = NULL;
    oct_graph *bound = NULL;
    oct_value *sizes, *four[2], *boxes;
    oct_node *n;
    float *x = NULL, *scores = NULL;
    found_boxes b;

    picture_input(f, 1, SIDE, 2 * SIDE);
    sizes = graph_input(f, "orig_target_sizes", OCT_DTYPE_I64, 2, (int64_t[]){-1, 2});
    integers(f, "labels", 2, (int64_t[]){1, 2}, (double[]){7, 2});
    assert_non_null(n = oct_emit_node(&f->b, &oct_op_cast, &sizes, 1, 1));
    assert_ok(f->ctx, oct_node_set_int(n, "to", 1));
    assert_ok(f->ctx, oct_node_infer(n));
    four[0] = four[1] = n->out[0];
    assert_non_null(n = oct_emit_node(&f->b, &oct_op_concat, four, 2, 1));
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    assert_ok(f->ctx, oct_node_infer(n));
    boxes = oct_emit(&f->b, &oct_op_unsqueeze, n->out[0], oct_ints(&f->b, (int64_t[]){1}, 1), NULL);
    boxes =
        oct_emit(&f->b, &oct_op_mul, filled(f, NULL, 3, (int64_t[]){1, 2, 4}, 0, &x), boxes, NULL);
    assert_non_null(boxes);
    assert_ok(f->ctx, oct_graph_add_output(f->g, boxes));
    output(f, "scores", 2, (int64_t[]){1, 2}, 0, &scores);
    memcpy(x + 4, (float[]){0.25f, 0.5f, 0.5f, 0.75f}, 4 * sizeof(*x));
    scores[1] = 0.75f;

    assert_ok(f->ctx, oct_detector_new(f->g, NULL, &d));
    oct_preprocess_init(&p);
    oct_detector_preprocess(d, &p);
    oct_detector_free(d);
    assert_int_equal(p.fit, OCT_FIT_STRETCH);
    assert_ok(f->ctx, oct_detector_bind(f->g, 1, 2 * SIDE, SIDE, &bound));
    oct_graph_free(f->g);
    f->g = bound;
    find_boxes(f, "nms", &b);
    assert_int_equal(b.n, 1);
    assert_box(&b.d[0], SIDE / 2, SIDE / 2, SIDE / 2, SIDE / 4, 0.75f, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sizes_come_beside_the_picture, setup, teardown),
        cmocka_unit_test(mmdetection),
        cmocka_unit_test(labels_boxes_scores),
        cmocka_unit_test_setup_teardown(yolov10, setup, teardown),
        cmocka_unit_test_setup_teardown(levels_without_a_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(fastestdet, setup, teardown),
        cmocka_unit_test(yolo_fastestv2),
    };

    return run_test_group(tests);
}
