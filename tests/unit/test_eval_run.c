/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating small networks on small datasets: figures, results files, order, errors. */
#include "tests/unit/data_files.h"
#include "tests/unit/detect_net.h"

enum { SIDE = 128, CELLS = 336, N_PICTURES = 11 };

/* A picture of one colour. */
static void put_color(files *t, const char *name, int r, int g, int b)
{
    oct_image *im = NULL;

    assert_ok(t->ctx, oct_image_new(t->ctx, 40, 30, &im));
    for (int i = 0; i < 40 * 30; i++)
        memcpy(oct_image_rgb(im) + i * 3, (uint8_t[]){(uint8_t)r, (uint8_t)g, (uint8_t)b}, 3);
    assert_ok(t->ctx, oct_image_save(t->ctx, im, below(t, name)));
    oct_image_free(im);
}

/* --- detectors --- */

/*
 * YOLOv8 with 80 classes that finds one dog in each picture, in the same place; its score is half
 * the picture's brightness.
 */
static void make_detector(files *t)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 3, (int64_t[]){1, 84, CELLS});
    fixture *f = t->f;
    oct_tensor *w = NULL;
    oct_value *x, *scores, *boxes;
    oct_node *n;

    x = picture_input(f, 1, SIDE, SIDE);
    n = oct_emit_node(&f->b, &oct_op_reduce_mean, &x, 1, 1);
    assert_non_null(n);
    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    assert_ok(f->ctx, oct_node_infer(n));
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &w));
    ((float *)w->data)[(4 + 16) * CELLS + 5] = 0.5f;
    scores = oct_emit(&f->b, &oct_op_mul, oct_value_const(f->g, "w", w), n->out[0], NULL);
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &w));
    for (int k = 0; k < 4; k++) /* the picture is 128 x 96 of the input, 16 from above */
        ((float *)w->data)[k * CELLS + 5] = (float[]){64, 64, 64, 32}[k];
    boxes = oct_value_const(f->g, "boxes", w);
    x = oct_emit(&f->b, &oct_op_add, scores, boxes, NULL);
    assert_non_null(x);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
}

/* Pictures of rising brightness, a dog in each; ids fall. */
static oct_dataset *make_dogs(files *t, bool is_broken, bool skip_bad)
{
    char text[8192] = "{\"images\":[", name[32];
    oct_dataset *d = NULL;

    put_folder(t, "p");
    for (int i = 0; i < N_PICTURES; i++) {
        snprintf(name, sizeof(name), "p/%02d.png", i);
        put_color(t, name, 100 + i, 100 + i, 100 + i);
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "%s{\"id\":%d,\"file_name\":\"%02d.png\",\"width\":40,\"height\":30}",
                 i ? "," : "", 100 - i, i);
    }
    if (is_broken) put_text(t, "p/07.png", "broken");
    strcat(text, "],\"categories\":[{\"id\":18,\"name\":\"dog\"},{\"id\":1,\"name\":\"person\"}],"
                 "\"annotations\":[");
    for (int i = 0; i < N_PICTURES; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "%s{\"id\":%d,\"image_id\":%d,\"category_id\":18,\"bbox\":[10,10,20,10],"
                 "\"area\":200,\"iscrowd\":0}",
                 i ? "," : "", i + 1, 100 - i);
    strcat(text, "]}");
    put_text(t, "dogs.json", text);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), below(t, "dogs.json"), skip_bad, &d));
    return d;
}

static char *read_all(const char *path)
{
    static char text[16384];
    FILE *file = fopen(path, "rb");
    size_t n;

    assert_non_null(file);
    n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

static void finds_all_dogs(void **state)
{
    files *t = *state;
    oct_dataset *d = make_dogs(t, false, false);
    oct_eval_result r = {.struct_size = sizeof(r)};
    oct_box_eval *e = NULL;
    oct_eval_options o;
    oct_plan_options po;
    double ap, ap50;
    char *first;

    make_detector(t);
    oct_eval_options_init(&o);
    oct_plan_options_init(&po);
    o.plan = &po;
    po.n_threads = 1;
    o.results = below(t, "r1.json");
    assert_ok(t->ctx, oct_eval_run(t->f->g, d, &o, &r, &e));
    assert_int_equal(r.images, N_PICTURES);
    assert_int_equal(r.skipped, 0);
    assert_true(fabs(r.box.ap - 1) < 1e-9 && fabs(r.box.ar1 - 1) < 1e-9);
    assert_true(r.seconds > 0 && r.network_seconds > 0 && r.decode_seconds > 0);
    oct_box_eval_category(e, 1, &ap, &ap50); /* by rising ids */
    assert_true(fabs(ap - 1) < 1e-9);
    oct_box_eval_category(e, 0, &ap, &ap50);
    assert_true(ap == -1);
    oct_box_eval_free(e);
    first = strdup(read_all(below(t, "r1.json")));
    assert_non_null(strstr(first, "[\n{\"image_id\":90,\"category_id\":18,"
                                  "\"bbox\":[10.000,10.000,20.000,10.000],\"score\":0."));
    /* The same bytes however many threads do it. */
    for (int n = 2; n <= 5; n++) {
        po.n_threads = n;
        o.loader_threads = n;
        o.results = below(t, "r2.json");
        assert_ok(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL));
        assert_string_equal(first, read_all(below(t, "r2.json")));
    }
    free(first);
    oct_dataset_close(d);
}

static void given_categories_are_used(void **state)
{
    files *t = *state;
    oct_dataset *d = make_dogs(t, false, false);
    oct_eval_result r = {.struct_size = sizeof(r)};
    oct_eval_options o;
    int32_t map[80];

    make_detector(t);
    oct_eval_options_init(&o);
    for (int i = 0; i < 80; i++)
        map[i] = i == 16 ? 0 : -1; /* dogs are taken for people */
    o.category_map = map;
    assert_ok(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL));
    assert_true(r.box.ap == 0);
    map[3] = 2;
    assert_fails(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL), OCT_ERR_ARG,
                 "class 3 has no category 2");
    oct_dataset_close(d);
}

static void broken_pictures(void **state)
{
    files *t = *state;
    oct_dataset *d = make_dogs(t, true, false);
    oct_eval_result r = {.struct_size = sizeof(r)};
    oct_eval_options o;

    make_detector(t);
    oct_eval_options_init(&o);
    o.results = below(t, "r.json");
    assert_fails(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL), OCT_ERR_FORMAT, "07.png");
    assert_null(fopen(below(t, "r.json"), "rb")); /* nothing half done is left */
    oct_dataset_close(d);
    d = NULL;
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), below(t, "dogs.json"), true, &d));
    assert_ok(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL));
    assert_int_equal(r.images + r.skipped + oct_dataset_skipped(d), N_PICTURES);
    assert_int_equal(r.images, N_PICTURES - 1);
    assert_true(fabs(r.box.ap - 1) < 1e-9);
    oct_dataset_close(d);
}

static int cancel_after_three(void *user, const char *what, int64_t done, int64_t total)
{
    assert_true(strlen(what) > 0);
    assert_int_equal(total, N_PICTURES);
    ++*(int *)user;
    return done >= 3;
}

static void can_be_cancelled(void **state)
{
    files *t = *state;
    oct_dataset *d = make_dogs(t, false, false);
    oct_eval_result r = {.struct_size = sizeof(r)};
    oct_eval_options o;
    int n_calls = 0;

    make_detector(t);
    oct_eval_options_init(&o);
    oct_ctx_set_threads(t->ctx, 2);
    oct_ctx_set_progress(t->ctx, cancel_after_three, &n_calls);
    assert_int_equal(oct_eval_run(t->f->g, d, &o, &r, NULL), OCT_ERR_CANCELLED);
    assert_true(n_calls >= 1);
    oct_ctx_set_progress(t->ctx, NULL, NULL);
    oct_dataset_close(d);
}

static void refuses_what_does_not_fit(void **state)
{
    files *t = *state;
    oct_dataset *d = make_dogs(t, false, false);
    oct_eval_result r = {.struct_size = sizeof(r)};
    oct_eval_options o;
    oct_nms_options nms;

    make_detector(t);
    oct_eval_options_init(&o);
    o.batch = 0;
    assert_fails(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL), OCT_ERR_ARG, "batch 0");
    o.batch = 1;
    o.family = "classifier";
    assert_fails(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL), OCT_ERR_SHAPE, "classifier");
    o.family = NULL;
    o.results = below(t, "no/such/folder.json");
    assert_fails(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL), OCT_ERR_IO, "folder.json");
    o.results = NULL;
    oct_nms_options_init(&nms);
    nms.max_detections = 0;
    o.nms = &nms;
    assert_fails(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL), OCT_ERR_ARG, "max_detections");
    oct_dataset_close(d);
}

/* --- classifiers --- */

/* The brightest channel is the class. */
static void make_classifier(files *t)
{
    fixture *f = t->f;
    oct_value *in[2] = {picture_input(f, -1, 32, 32), oct_ints(&f->b, (int64_t[]){2, 3}, 2)};
    oct_node *n = oct_emit_node(&f->b, &oct_op_reduce_mean, in, 2, 1);

    assert_non_null(n);
    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    assert_ok(f->ctx, oct_node_infer(n));
    assert_ok(f->ctx, oct_graph_add_output(f->g, n->out[0]));
}

static oct_dataset *make_colors(files *t, int n)
{
    char text[1024] = "", name[32];
    oct_dataset *d = NULL;

    put_folder(t, "c");
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "c/%02d.png", i);
        put_color(t, name, i % 3 == 0 ? 250 : 99, i % 3 == 1 ? 250 : 99, i % 3 == 2 ? 250 : 99);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%02d.png %d\n", i,
                 i == 4 ? 0 : i % 3); /* one is wrong */
    }
    put_text(t, "colors.txt", text);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "c"), below(t, "colors.txt"), false, &d));
    return d;
}

static void classifies_in_batches(void **state)
{
    files *t = *state;
    oct_dataset *d = make_colors(t, 10);
    oct_eval_result r = {.struct_size = sizeof(r)};
    oct_eval_options o;

    make_classifier(t);
    oct_eval_options_init(&o);
    for (o.batch = 1; o.batch <= 12; o.batch++) {
        oct_ctx_set_threads(t->ctx, 1 + o.batch % 3);
        assert_ok(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL));
        assert_int_equal(r.images, 10);
        assert_true(fabs(r.top1 - 0.9) < 1e-12 && r.top5 == -1);
    }
    oct_dataset_close(d);
}

static void classifiers_need_classes(void **state)
{
    files *t = *state;
    oct_dataset *d = make_colors(t, 3);
    oct_eval_result r = {.struct_size = sizeof(r)};
    oct_eval_options o;

    make_classifier(t);
    oct_eval_options_init(&o);
    o.results = below(t, "r.json");
    assert_fails(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL), OCT_ERR_ARG,
                 "a classifier has no detections");
    oct_dataset_close(d);
    d = NULL;
    o.results = NULL;
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "c"), NULL, false, &d));
    assert_fails(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL), OCT_ERR_ARG,
                 "no class is known of it");
    oct_dataset_close(d);
    d = NULL;
    put_text(t, "far.txt", "00.png 7\n");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "c"), below(t, "far.txt"), false, &d));
    assert_fails(t->ctx, oct_eval_run(t->f->g, d, &o, &r, NULL), OCT_ERR_ARG,
                 "the dataset has a class 7, the network only 3");
    oct_dataset_close(d);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_files, teardown_files)
    const struct CMUnitTest tests[] = {
        TEST(finds_all_dogs),
        TEST(given_categories_are_used),
        TEST(broken_pictures),
        TEST(can_be_cancelled),
        TEST(refuses_what_does_not_fit),
        TEST(classifies_in_batches),
        TEST(classifiers_need_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
