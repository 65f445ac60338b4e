/* SPDX-License-Identifier: Apache-2.0 */
/* Pre- and postprocessing inside networks: the same boxes as octet reads from the outputs. */
#include "tests/unit/detect_net.h"

#include "base/rng.h"

enum { SIDE = 64, BATCH = 2, CELLS = 84, CLASSES = 3, BINS = 17 };

/* --- networks whose outputs are random numbers --- */

static oct_rng numbers;

static float between(float low, float high)
{
    return low + (high - low) * (float)oct_rng_f64(&numbers);
}

static float *random_output(fixture *f, const char *name, int32_t rank, const int64_t *dims,
                            float low, float high)
{
    float *x = NULL;
    const oct_value *v = output(f, name, rank, dims, 0, &x);

    for (int64_t i = 0; i < oct_type_len(&v->type); i++)
        x[i] = between(low, high);
    return x;
}

/* Corners in the right order. */
static void corner_output(fixture *f, const char *name, int64_t n, float size)
{
    float *x = random_output(f, name, 3, (int64_t[]){BATCH, n, 4}, 0, size / 2);

    for (int64_t i = 0; i < BATCH * n; i++)
        for (int k = 0; k < 2; k++)
            x[i * 4 + 2 + k] += x[i * 4 + k] + size / 16;
}

static void make_yolo_nas(fixture *f)
{
    corner_output(f, "boxes", CELLS, SIDE);
    (void)random_output(f, "scores", 3, (int64_t[]){BATCH, CELLS, CLASSES}, 0, 1);
}

static void make_yolo_nas_raw(fixture *f)
{
    (void)random_output(f, "logits", 3, (int64_t[]){BATCH, CELLS, CLASSES}, -4, 3);
    (void)random_output(f, "distances", 3, (int64_t[]){BATCH, CELLS, 4 * BINS}, -3, 3);
}

/* Centre and size, then scores. */
static void row_output(fixture *f, int64_t n, int64_t width, float size)
{
    float *x = random_output(f, "rows", 3, (int64_t[]){BATCH, n, width}, 0, 1);

    for (int64_t i = 0; i < BATCH * n; i++)
        for (int k = 0; k < 4; k++)
            x[i * width + k] *= size;
}

static void make_yolov5(fixture *f)
{
    row_output(f, 3 * CELLS, 5 + CLASSES, SIDE);
}

static void make_yolov5_unit(fixture *f)
{
    row_output(f, 3 * CELLS, 5 + CLASSES, 1);
}

static void make_yolov8(fixture *f)
{
    float *x = random_output(f, "out", 3, (int64_t[]){BATCH, 4 + CLASSES, CELLS}, 0, 1);

    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t i = 0; i < 4 * CELLS; i++)
            x[b * (4 + CLASSES) * CELLS + i] *= SIDE;
}

static void make_yolov8_columns(fixture *f)
{
    row_output(f, CELLS, 4 + CLASSES, SIDE);
}

static void make_yolox(fixture *f)
{
    row_output(f, CELLS, 5 + CLASSES, 1);
}

static void make_levels(fixture *f, int n)
{
    static const int64_t cells[] = {64, 16, 4, 1};
    char name[32];

    for (int l = 0; l < n; l++) {
        (void)snprintf(name, sizeof(name), "scores%d", l);
        (void)random_output(f, name, 3, (int64_t[]){BATCH, cells[l], CLASSES}, 0, 1);
        (void)snprintf(name, sizeof(name), "distances%d", l);
        (void)random_output(f, name, 3, (int64_t[]){BATCH, cells[l], 4 * 8}, -3, 3);
    }
}

static void make_nanodet(fixture *f)
{
    make_levels(f, 3);
}

static void make_picodet(fixture *f)
{
    make_levels(f, 4);
}

static void make_ssd(fixture *f)
{
    float *x = NULL;
    oct_value *v;

    corner_output(f, "boxes", 600, 1);
    v = activated(f, &oct_op_softmax, 3, (int64_t[]){BATCH, 600, 1 + CLASSES}, 0, &x);
    for (int64_t i = 0; i < oct_type_len(&v->type); i++)
        x[i] = between(-2, 2);
}

static void make_detr(fixture *f)
{
    float *x = random_output(f, "boxes", 3, (int64_t[]){BATCH, 20, 4}, 0.2f, 0.5f);

    (void)x;
    (void)random_output(f, "logits", 3, (int64_t[]){BATCH, 20, CLASSES}, -3, 3);
}

static void make_fastestdet(fixture *f)
{
    (void)random_output(f, "map", 4, (int64_t[]){BATCH, 5 + CLASSES, SIDE / 16, SIDE / 16}, 0, 1);
}

static void make_fastestv2(fixture *f)
{
    for (int l = 0; l < 2; l++)
        (void)random_output(f, l ? "map32" : "map16", 4,
                            (int64_t[]){BATCH, SIDE / (16 << l), SIDE / (16 << l), 15 + CLASSES}, 0,
                            1);
}

static void make_fastestv2_apart(fixture *f)
{
    static const char *const names[] = {"b16", "o16", "c16", "b32", "o32", "c32"};
    static const int64_t channels[] = {12, 3, 4};

    for (int i = 0; i < 6; i++)
        (void)random_output(
            f, names[i], 4,
            (int64_t[]){BATCH, channels[i % 3], SIDE / (16 << i / 3), SIDE / (16 << i / 3)}, -2, 3);
}

static const struct {
    const char *family;
    void (*make)(fixture *f);
} nets[] = {
    {"yolo-nas", make_yolo_nas},
    {"yolo-nas", make_yolo_nas_raw},
    {"yolov5", make_yolov5},
    {"yolov5", make_yolov5_unit},
    {"yolov8", make_yolov8},
    {"yolov8", make_yolov8_columns},
    {"yolox", make_yolox},
    {"nanodet", make_nanodet},
    {"picodet", make_picodet},
    {"fastestdet", make_fastestdet},
    {"yolo-fastestv2", make_fastestv2},
    {"yolo-fastestv2", make_fastestv2_apart},
    {"ssd", make_ssd},
    {"detr", make_detr},
};

/* --- comparing --- */

static void empty_graph(fixture *f)
{
    oct_graph_free(f->g);
    f->g = NULL;
    assert_ok(f->ctx, oct_graph_new(f->ctx, "test", &f->g));
    f->b = (oct_builder){.g = f->g};
}

static oct_nms_options nms_of(float score, float iou, int32_t most)
{
    oct_nms_options o;

    oct_nms_options_init(&o);
    o.score = score;
    o.iou = iou;
    o.max_detections = most;
    return o;
}

static void same_boxes(const char *what, const found_boxes *a, const found_boxes *b)
{
    if (a->n != b->n) fail_msg("%s: %d boxes, want %d", what, (int)b->n, (int)a->n);
    assert_true(a->n > 0);
    for (int32_t i = 0; i < a->n; i++) {
        const oct_detection *p = &a->d[i], *q = &b->d[i];
        const float off = fabsf(p->x - q->x) + fabsf(p->y - q->y) + fabsf(p->width - q->width) +
                          fabsf(p->height - q->height);

        if (p->category != q->category || fabsf(p->score - q->score) > 1e-5f || off > 1e-2f)
            fail_msg("%s: box %d is class %d %.6f at %.3f %.3f, want class %d %.6f at %.3f %.3f",
                     what, (int)i, (int)q->category, (double)q->score, (double)q->x, (double)q->y,
                     (int)p->category, (double)p->score, (double)p->x, (double)p->y);
    }
}

/* Two formats, two pictures: the boxes that octet finds in the outputs themselves. */
static void finds_the_same_boxes(void **state)
{
    static const char *const formats[] = {"batch", "flat"};
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(nets); i++)
        for (size_t k = 0; k < OCT_COUNT(formats); k++) {
            const oct_nms_options nms = nms_of(0.45f, 0.5f, 60), all = nms_of(0, 1, 60);
            found_boxes want[BATCH], got;
            oct_attach_options o;
            oct_graph *whole = NULL;
            char what[64];

            empty_graph(f);
            oct_rng_init(&numbers, 7);
            (void)picture_input(f, BATCH, SIDE, SIDE);
            nets[i].make(f);
            for (int32_t b = 0; b < BATCH; b++)
                assert_ok(f->ctx, find_boxes_of(f, nets[i].family, b, &nms, &want[b]));
            oct_attach_options_init(&o);
            o.family = nets[i].family;
            o.preprocess = "none";
            o.format = formats[k];
            o.score = 0.45f;
            o.iou = 0.5f;
            o.max_det = 60;
            assert_ok(f->ctx, oct_graph_attach(f->g, &o, &whole));
            oct_graph_free(f->g);
            f->g = whole;
            assert_string_equal(whole->outputs[0]->name,
                                k ? "flat_predictions" : "num_predictions");
            for (int32_t b = 0; b < BATCH; b++) {
                (void)snprintf(what, sizeof(what), "%s (%zu) %s picture %d", nets[i].family, i,
                               formats[k], (int)b);
                assert_ok(f->ctx, find_boxes_of(f, "auto", b, &all, &got));
                assert_string_equal(got.family, "nms");
                same_boxes(what, &want[b], &got);
            }
        }
}

/* pre_nms leaves the best anchors, max_det the best boxes; places without one hold -1. */
static void keeps_the_best(void **state)
{
    const oct_nms_options nms = nms_of(0.05f, 0.99f, 5), all = nms_of(0, 1, 60);
    fixture *f = *state;
    found_boxes want, got;
    oct_attach_options o;
    oct_graph *whole = NULL;
    oct_tensor *in = NULL, *out[4] = {0};

    oct_rng_init(&numbers, 3);
    (void)picture_input(f, BATCH, SIDE, SIDE);
    make_yolo_nas(f);
    assert_ok(f->ctx, find_boxes_of(f, NULL, 1, &nms, &want));
    oct_attach_options_init(&o);
    o.preprocess = "none";
    o.score = 0.05f;
    o.iou = 0.99f;
    o.max_det = 5;
    o.pre_nms = 10;
    assert_ok(f->ctx, oct_graph_attach(f->g, &o, &whole));
    oct_graph_free(f->g);
    f->g = whole;
    assert_ok(f->ctx, find_boxes_of(f, NULL, 1, &all, &got));
    same_boxes("five of ten", &want, &got);
    empty_graph(f);
    (void)picture_input(f, BATCH, SIDE, SIDE);
    make_yolo_nas(f);
    o.score = 0.9999f;
    assert_ok(f->ctx, oct_graph_attach(f->g, &o, &whole));
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &whole->inputs[0]->type, &in));
    assert_ok(f->ctx, oct_graph_eval(whole, &in, out, NULL));
    assert_dims(&out[1]->type, 3, (int64_t[]){BATCH, 5, 4});
    assert_all_close(out[0], (float[]){0, 0}, 2, 0);
    for (int i = 0; i < 4; i++) {
        for (int64_t k = 0; i && k < oct_tensor_len(out[i]); k++)
            assert_true(oct_tensor_get_f64(out[i], k) == -1);
        oct_tensor_unref(out[i]);
    }
    oct_tensor_unref(in);
    oct_graph_free(whole);
}

static void writes_the_node_of_tensorrt(void **state)
{
    fixture *f = *state;
    oct_attach_options o;
    oct_graph *whole = NULL;
    const oct_node *n = NULL;

    oct_rng_init(&numbers, 3);
    (void)picture_input(f, BATCH, SIDE, SIDE);
    make_yolov8(f);
    oct_attach_options_init(&o);
    o.nms = "tensorrt";
    assert_ok(f->ctx, oct_graph_attach(f->g, &o, &whole));
    for (const oct_node *k = whole->first; k; k = k->next)
        if (strcmp(k->op->name, "EfficientNMS_TRT") == 0) n = k;
    assert_non_null(n);
    assert_int_equal(oct_node_attr(n, "max_output_boxes")->i, 300);
    assert_true(oct_node_attr(n, "iou_threshold")->f == 0.65f);
    assert_string_equal(oct_node_attr(n, "plugin_version")->s, "1");
    assert_int_equal(whole->n_outputs, 4);
    assert_string_equal(whole->outputs[0]->name, "num_dets");
    assert_dims(&whole->outputs[1]->type, 3, (int64_t[]){BATCH, 300, 4});
    assert_int_equal(whole->outputs[3]->type.dtype, OCT_DTYPE_I32);
    oct_graph_free(whole);
    whole = NULL;
    o.format = "flat";
    assert_ok(f->ctx, oct_graph_attach(f->g, &o, &whole));
    assert_int_equal(whole->n_outputs, 1);
    assert_string_equal(whole->outputs[0]->name, "flat_predictions");
    oct_graph_free(whole);
}

/* --- bytes in --- */

static void prepares_bytes(void **state)
{
    static const char words[] =
        "size=8x8,color=bgr,scale=255,mean=.1:.2:.3,std=.5:.25:.2,fit=stretch";
    static const float mean[] = {.1f, .2f, .3f}, std[] = {.5f, .25f, .2f};
    fixture *f = *state;
    oct_value *x = graph_input(f, "images", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 8, 8});
    oct_value *y = oct_emit(&f->b, &oct_op_neg, x, NULL, NULL);
    oct_preprocess p;

    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    for (int nhwc = 0; nhwc < 2; nhwc++) {
        oct_attach_options o;
        oct_graph *whole = NULL;
        oct_tensor *in = NULL, *out = NULL;

        oct_attach_options_init(&o);
        o.preprocess = words;
        o.nms = "none";
        o.layout = nhwc ? OCT_IMAGE_NHWC : OCT_IMAGE_NCHW;
        assert_ok(f->ctx, oct_graph_attach(f->g, &o, &whole));
        assert_string_equal(whole->inputs[0]->name, "images");
        assert_int_equal(whole->inputs[0]->type.dtype, OCT_DTYPE_U8);
        assert_dims(&whole->inputs[0]->type, 4,
                    nhwc ? (int64_t[]){1, 8, 8, 3} : (int64_t[]){1, 3, 8, 8});
        assert_ok(f->ctx, oct_tensor_make(f->ctx, &whole->inputs[0]->type, &in));
        for (int i = 0; i < 192; i++)
            ((uint8_t *)in->data)[i] = (uint8_t)(i + 40);
        assert_ok(f->ctx, oct_graph_eval(whole, &in, &out, NULL));
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < 64; i++) {
                const int rgb = 2 - c, at = nhwc ? i * 3 + rgb : rgb * 64 + i;
                const float want = -(((float)(at + 40) / 255 - mean[c]) / std[c]);

                if (fabsf(((float *)out->data)[c * 64 + i] - want) > 1e-5f)
                    fail_msg("channel %d pixel %d is %g, want %g", c, i,
                             (double)((float *)out->data)[c * 64 + i], (double)want);
            }
        /* What is left to do is known to whoever feeds it: RGB, not scaled, stretched. */
        assert_ok(f->ctx, oct_graph_preprocess(whole, NULL, "pad=7", &p));
        assert_int_equal(p.layout, o.layout);
        oct_tensor_unref(in);
        oct_tensor_unref(out);
        oct_graph_free(whole);
    }
}

/* YOLOX pictures are BGR, at the top left: the note says what is still to be done. */
static void notes_what_is_left(void **state)
{
    fixture *f = *state;
    oct_attach_options o;
    oct_graph *whole = NULL;
    oct_detector *d = NULL;
    oct_preprocess p;

    oct_rng_init(&numbers, 3);
    (void)picture_input(f, BATCH, SIDE, SIDE);
    make_yolox(f);
    for (int inside = 0; inside < 2; inside++) {
        oct_attach_options_init(&o);
        o.family = "yolox";
        o.preprocess = inside ? "auto" : "none";
        assert_ok(f->ctx, oct_graph_attach(f->g, &o, &whole));
        assert_ok(f->ctx, oct_detector_new(whole, NULL, &d));
        assert_string_equal(oct_detector_family(d), "nms");
        assert_int_equal(oct_detector_n_classes(d), CLASSES);
        oct_preprocess_init(&p);
        oct_detector_preprocess(d, &p);
        assert_int_equal(p.fit, OCT_FIT_LETTERBOX_TOP_LEFT);
        assert_int_equal(p.color, inside ? OCT_COLOR_RGB : OCT_COLOR_BGR);
        assert_int_equal(p.width, SIDE);
        oct_detector_free(d);
        oct_graph_free(whole);
    }
}

static void refuses_what_makes_no_sense(void **state)
{
    fixture *f = *state;
    oct_attach_options o;
    oct_graph *whole = NULL, *again = NULL;

    oct_rng_init(&numbers, 3);
    (void)picture_input(f, BATCH, SIDE, SIDE);
    make_yolo_nas(f);
    oct_attach_options_init(&o);
    o.nms = "tensorflow";
    assert_fails(f->ctx, oct_graph_attach(f->g, &o, &whole), OCT_ERR_ARG, "onnx, tensorrt");
    oct_attach_options_init(&o);
    o.format = "long";
    assert_fails(f->ctx, oct_graph_attach(f->g, &o, &whole), OCT_ERR_ARG, "flat and batch");
    oct_attach_options_init(&o);
    o.score = 2;
    assert_fails(f->ctx, oct_graph_attach(f->g, &o, &whole), OCT_ERR_ARG, "from 0 to 1");
    assert_ok(f->ctx, oct_graph_attach(f->g, NULL, &whole));
    assert_fails(f->ctx, oct_graph_attach(whole, NULL, &again), OCT_ERR_UNSUPPORTED,
                 "part of the network already");
    oct_graph_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_the_same_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_the_best, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_the_node_of_tensorrt, setup, teardown),
        cmocka_unit_test_setup_teardown(prepares_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(notes_what_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_what_makes_no_sense, setup, teardown),
    };

    return run_test_group(tests);
}
