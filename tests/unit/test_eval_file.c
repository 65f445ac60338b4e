/* SPDX-License-Identifier: Apache-2.0 */
/* Results files: what is read, and what is refused with the entry named. */
#include "eval_case.h"

#include "base/file.h"

/* Two pictures (ids 5 and 9), categories 3 and 4, one label of category 3 in each picture. */
typedef struct scene {
    fixture *f;
    char dir[64], path[96];
    oct_dataset *d;
    oct_box_eval *e;
} scene;

static int scene_setup(void **state)
{
    static const int64_t images[] = {5, 9, 0}, categories[] = {3, 4, 0};
    static const truth_row truth[] = {
        {5, 3, 10, 10, 20, 20, 0, 0}, {9, 3, 10, 10, 20, 20, 0, 0}, {0}};
    scene *s = calloc(1, sizeof(*s));
    void *f = NULL;

    if (!s || setup(&f)) return -1;
    s->f = f;
    (void)snprintf(s->path, sizeof(s->path), "%s/results.json", make_folder(s->dir));
    s->d = open_truth(s->f->ctx, images, categories, truth);
    assert_ok(s->f->ctx, oct_box_eval_new(s->f->ctx, s->d, &s->e));
    *state = s;
    return 0;
}

static int scene_teardown(void **state)
{
    scene *s = *state;
    void *f = s->f;

    oct_box_eval_free(s->e);
    oct_dataset_close(s->d);
    remove_folder(s->dir);
    free(s);
    return teardown(&f);
}

static void put(const scene *s, const char *text)
{
    FILE *f = fopen(s->path, "wb");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

#define ENTRY(image, category, box, score)                                                         \
    "{\"image_id\": " image ", \"category_id\": " category ", \"bbox\": " box                      \
    ", \"score\": " score "}"
#define GOOD  ENTRY("5", "3", "[10, 10, 20, 20]", "0.5")
#define OTHER ENTRY("9", "3", "[10, 10, 20, 20]", "0.5")
#define WRONG ENTRY("5", "3", "[90, 10, 20, 20]", "0.5")

/* Precision of one right detection is 1 / (1 + epsilon). */
static void assert_near(double got, double want)
{
    if (!(fabs(got - want) < 1e-12)) fail_msg("%.17g, want %.17g", got, want);
}

static double ap_of(scene *s, const char *text)
{
    oct_box_metrics m;
    oct_box_eval *e = NULL;

    put(s, text);
    assert_ok(s->f->ctx, oct_box_eval_new(s->f->ctx, s->d, &e));
    assert_ok(s->f->ctx, oct_box_eval_see_file(e, s->path));
    assert_ok(s->f->ctx, oct_box_eval_finish(e, 1, &m));
    oct_box_eval_free(e);
    return m.ap;
}

static void reads_entries_in_any_order(void **state)
{
    scene *s = *state;

    assert_near(ap_of(s, "[]"), 0);
    assert_near(ap_of(s, " [ ] \n"), 0);
    assert_near(ap_of(s, "[" GOOD "]"), 51.0 / 101);
    assert_near(ap_of(s, "[" ENTRY("9", "3", "[10,10,20,20]", "1") ",\n" GOOD "]"), 1);
    /* Fields of other names and orders; pictures mixed. */
    assert_near(ap_of(s,
                      "[{\"score\":0.5,\"segmentation\":{\"a\":[1,\"]\"]},\"bbox\":[1e1,10.0,2E+1,"
                      "20.000],\"category_id\":3,\"image_id\":9,\"x\":null}," GOOD "]"),
                1);
    /* Of equal scores in one picture the first in the file comes first; pictures go by id. */
    assert_near(ap_of(s, "[" WRONG ", " GOOD ", " OTHER "]"), 2.0 / 3);
    assert_near(ap_of(s, "[" OTHER ", " GOOD ", " WRONG "]"), (51 + 50 * 2.0 / 3) / 101);
}

/* Decimals mean what strtod makes of them, however they are written. */
static void numbers_are_exact(void **state)
{
    static const char *const same[][2] = {
        {"0.1", "0.1000000000000000055511151231257827"},
        {"0.3", "3e-1"},
        {"0.3", "0.30000000000000000"},
        {"0.123456789012345", "0.12345678901234500"},
        {"0.99999", "99999e-5"},
        {"-0.25", "-25e-2"},
    };
    scene *s = *state;
    char text[512];

    /* Two detections with equal scores: in the order of the file, the wrong one first. */
    for (size_t i = 0; i < OCT_COUNT(same); i++)
        for (int k = 0; k < 2; k++) {
            (void)snprintf(
                text, sizeof(text),
                "[{\"image_id\":5,\"category_id\":3,\"bbox\":[90,10,20,20],\"score\":%s},"
                "{\"image_id\":5,\"category_id\":3,\"bbox\":[10,10,20,20],\"score\":%s}]",
                same[i][k], same[i][!k]);
            assert_near(ap_of(s, text), 51 * 0.5 / 101);
        }
}

static void refuses_and_names_the_entry(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "not a list"},
        {"{}", "not a list"},
        {"[" GOOD, "too early"},
        {"[" GOOD ",", "result 1: not an object"},
        {"[" GOOD " " GOOD "]", "is expected"},
        {"[" GOOD "] x", "end of the file"},
        {"[" GOOD ", 7]", "result 1: not an object"},
        {"[" ENTRY("6", "3", "[1,1,1,1]", "1") "]", "result 0: image_id 6 is not in the annot"},
        {"[" GOOD "," ENTRY("5", "1", "[1,1,1,1]", "1") "]", "result 1: category_id 1 is not in"},
        {"[" ENTRY("5.5", "3", "[1,1,1,1]", "1") "]", "image_id is not a whole number"},
        {"[" ENTRY("\"5\"", "3", "[1,1,1,1]", "1") "]", "image_id is not a number"},
        {"[" ENTRY("1e300", "3", "[1,1,1,1]", "1") "]", "image_id is not a whole number"},
        {"[" ENTRY("5", "3", "[1,1,1]", "1") "]", "bbox is not a list of 4"},
        {"[" ENTRY("5", "3", "[1,1,1,1,1]", "1") "]", "bbox is not a list of 4"},
        {"[" ENTRY("5", "3", "7", "1") "]", "bbox is not a list of 4"},
        {"[" ENTRY("5", "3", "[1,NaN,1,1]", "1") "]", "bbox is not a number"},
        {"[" ENTRY("5", "3", "[1,1,1,1e999]", "1") "]", "bbox is not a number"},
        {"[" ENTRY("5", "3", "[1,1,-1,1]", "1") "]", "negative size"},
        {"[" ENTRY("5", "3", "[1,1,1,-0.5]", "1") "]", "negative size"},
        {"[" ENTRY("5", "3", "[1,1,1,1]", "NaN") "]", "score is not a number"},
        {"[" ENTRY("5", "3", "[1,1,1,1]", "Infinity") "]", "score is not a number"},
        {"[" ENTRY("5", "3", "[1,1,1,1]", "01") "]", "score is not a number"},
        {"[" ENTRY("5", "3", "[1,1,1,1]", "1.") "]", "score is not a number"},
        {"[" ENTRY("5", "3", "[1,1,1,1]", "-") "]", "score is not a number"},
        {"[" ENTRY("5", "3", "[1,1,1,1]", "null") "]", "score is not a number"},
        {"[{\"category_id\":3,\"bbox\":[1,1,1,1],\"score\":1}]", "there is no image_id"},
        {"[{\"image_id\":5,\"bbox\":[1,1,1,1],\"score\":1}]", "there is no category_id"},
        {"[{\"image_id\":5,\"category_id\":3,\"score\":1}]", "there is no bbox"},
        {"[{\"image_id\":5,\"category_id\":3,\"bbox\":[1,1,1,1]}]", "result 0: there is no score"},
    };
    scene *s = *state;
    oct_box_metrics m;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        put(s, cases[i].text);
        assert_fails(s->f->ctx, oct_box_eval_see_file(s->e, s->path), OCT_ERR_FORMAT, cases[i].why);
        assert_non_null(strstr(oct_ctx_error(s->f->ctx), "results.json: "));
    }
    /* Nothing of them was seen. */
    put(s, "[" GOOD "]");
    assert_ok(s->f->ctx, oct_box_eval_see_file(s->e, s->path));
    assert_fails(s->f->ctx, oct_box_eval_see_file(s->e, s->path), OCT_ERR_STATE, "seen before");
    assert_ok(s->f->ctx, oct_box_eval_finish(s->e, 0, &m));
    assert_near(m.ap, 1);
    assert_int_equal(oct_box_eval_see_file(s->e, "/nowhere/r.json"), OCT_ERR_IO);
}

static void left_out_pictures_are_not_scored(void **state)
{
    scene *s = *state;
    oct_box_metrics m;

    put(s, "[" GOOD "," ENTRY("9", "3", "[200,10,20,20]", "1") "]");
    assert_ok(s->f->ctx, oct_box_eval_select(s->e, (int64_t[]){5}, 1));
    assert_ok(s->f->ctx, oct_box_eval_see_file(s->e, s->path));
    assert_ok(s->f->ctx, oct_box_eval_finish(s->e, 1, &m));
    assert_near(m.ap, 1);
}

static int stop(void *user, const char *what, int64_t done, int64_t total)
{
    (void)user;
    (void)what;
    return done <= total;
}

static void reading_can_be_cancelled(void **state)
{
    scene *s = *state;
    FILE *f = fopen(s->path, "wb");

    assert_non_null(f);
    (void)fprintf(f, "[" GOOD);
    for (int i = 0; i < 10000; i++)
        (void)fprintf(f, "," GOOD);
    (void)fprintf(f, "]");
    assert_int_equal(fclose(f), 0);
    oct_ctx_set_progress(s->f->ctx, stop, NULL);
    assert_int_equal(oct_box_eval_see_file(s->e, s->path), OCT_ERR_CANCELLED);
    oct_ctx_set_progress(s->f->ctx, NULL, NULL);
    assert_ok(s->f->ctx, oct_box_eval_see_file(s->e, s->path)); /* the best 100 of one picture */
}

static const scene *shared_scene;

static oct_status work(oct_ctx *ctx)
{
    oct_box_eval *e = NULL;
    oct_status st = oct_box_eval_new(ctx, shared_scene->d, &e);

    if (!st) st = oct_box_eval_see_file(e, shared_scene->path);
    oct_box_eval_free(e);
    return st;
}

static void want_of_memory_is_said(void **state)
{
    scene *s = *state;

    put(s, "[" GOOD "," GOOD "," ENTRY("9", "3", "[200,10,20,20]", "1") "]");
    shared_scene = s;
    fail_each_allocation(work);
}

/* A failure in the middle leaves what was seen before, and the file can be tried again. */
static void a_failed_file_leaves_no_trace(void **state)
{
    scene *s = *state;

    put(s, "[" GOOD "," GOOD "," ENTRY("9", "3", "[10,10,20,20]", "1") "]");
    for (int n = 1;; n++) {
        oct_box_eval *e = NULL;
        oct_box_metrics m;
        failing f;
        oct_ctx *ctx = failing_ctx(&f);
        oct_status st;

        assert_ok(ctx, oct_box_eval_new(ctx, s->d, &e));
        f.n_asked = 0;
        f.fail_at = n;
        st = oct_box_eval_see_file(e, s->path);
        f.fail_at = 0;
        if (st) {
            assert_int_equal(st, OCT_ERR_MEMORY);
            assert_ok(ctx, oct_box_eval_finish(e, 0, &m));
            assert_near(m.ap, -1);
            assert_ok(ctx, oct_box_eval_see_file(e, s->path));
        }
        assert_ok(ctx, oct_box_eval_finish(e, 1, &m));
        assert_near(m.ar100, 1);
        oct_box_eval_free(e);
        oct_ctx_free(ctx);
        if (!st) break;
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(reads_entries_in_any_order),    TEST(numbers_are_exact),
        TEST(refuses_and_names_the_entry),   TEST(left_out_pictures_are_not_scored),
        TEST(reading_can_be_cancelled),      TEST(want_of_memory_is_said),
        TEST(a_failed_file_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
