/* SPDX-License-Identifier: Apache-2.0 */
/* Box metrics: every rule on a case small enough to compute by hand. */
#include "eval_case.h"

static const int64_t one[] = {1, 0}, two[] = {1, 2, 0};

/* Precision 1 up to half of the labels: recall points 0, 0.01 .. 0.50 of 101. */
static const double half_recall = 51.0 / 101;

/* Scores detections of pictures 0, 1, ..: rows with their picture in front. */
typedef struct found_row {
    int64_t image; /* index */
    oct_detection d;
} found_row;

static void see_rows(oct_ctx *ctx, oct_box_eval *e, const found_row *rows, size_t n)
{
    oct_detection d[256];
    size_t k = 0;

    while (k < n) {
        const int64_t image = rows[k].image;
        int32_t m = 0;

        for (; k < n && rows[k].image == image; k++)
            d[m++] = rows[k].d;
        assert_ok(ctx, oct_box_eval_see(e, image, d, m));
    }
}

#define score(f, images, categories, truth, rows)                                                  \
    score_rows((f)->ctx, images, categories, truth, rows, OCT_COUNT(rows))

static oct_box_metrics score_rows(oct_ctx *ctx, const int64_t *images, const int64_t *categories,
                                  const truth_row *truth, const found_row *rows, size_t n)
{
    oct_dataset *d = open_truth(ctx, images, categories, truth);
    oct_box_eval *e = NULL;
    oct_box_metrics m;

    assert_ok(ctx, oct_box_eval_new(ctx, d, &e));
    see_rows(ctx, e, rows, n);
    assert_ok(ctx, oct_box_eval_finish(e, 1, &m));
    oct_box_eval_free(e);
    oct_dataset_close(d);
    return m;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) < 1e-12)) fail_msg("%.17g, want %.17g", got, want);
}

/* --- precision and recall --- */

static void perfect_is_one(void **state)
{
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {0}};
    const found_row rows[] = {{0, {10, 10, 20, 20, 0.9f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, one, truth, rows);

    assert_near(m.ap, 1);
    assert_near(m.ap50, 1);
    assert_near(m.ap75, 1);
    assert_near(m.ap_small, 1);
    assert_near(m.ar1, 1);
    assert_near(m.ar10, 1);
    assert_near(m.ar100, 1);
    assert_near(m.ar_small, 1);
    assert_near(m.voc_map50, 1);
    assert_near(m.ap_medium, -1); /* nothing to measure */
    assert_near(m.ap_large, -1);
    assert_near(m.ar_medium, -1);
    assert_near(m.ar_large, -1);
}

static void half_of_the_labels(void **state)
{
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {1, 1, 100, 100, 20, 20}, {0}};
    const found_row rows[] = {{0, {10, 10, 20, 20, 0.9f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, one, truth, rows);

    assert_near(m.ap, half_recall);
    assert_near(m.ar100, 0.5);
    assert_near(m.voc_map50, 0.5);
}

static void overlap_of_one_half_counts_at_one_half_only(void **state)
{
    const truth_row truth[] = {{1, 1, 0, 0, 10, 10}, {0}};
    const found_row rows[] = {{0, {0, 0, 10, 5, 0.9f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, one, truth, rows);

    assert_near(m.ap, 0.1);
    assert_near(m.ap50, 1);
    assert_near(m.ap75, 0);
    assert_near(m.ar100, 0.1);
    assert_near(m.voc_map50, 1);
}

static void a_better_wrong_one_halves_precision(void **state)
{
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {0}};
    const found_row rows[] = {{0, {200, 10, 20, 20, 0.95f, 0}}, {0, {10, 10, 20, 20, 0.9f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, one, truth, rows);

    assert_near(m.ap, 0.5);
    assert_near(m.ar1, 0); /* only the best of the picture */
    assert_near(m.ar10, 1);
    assert_near(m.voc_map50, 0.5);
}

/* Right, wrong, right: precision 1, 1/2, 2/3, of which the envelope is 1 and 2/3. */
static void precision_is_the_best_from_there_on(void **state)
{
    fixture *f = *state;
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {1, 1, 100, 100, 20, 20}, {0}};
    const found_row rows[] = {{0, {10, 10, 20, 20, 0.9f, 0}},
                              {0, {300, 10, 20, 20, 0.8f, 0}},
                              {0, {100, 100, 20, 20, 0.7f, 0}}};
    oct_dataset *d = open_truth(f->ctx, one, two, truth);
    oct_box_eval *e = NULL;
    oct_box_metrics m;
    const double *curve;
    double ap, ap50;

    assert_ok(f->ctx, oct_box_eval_new(f->ctx, d, &e));
    assert_null(oct_box_eval_curve(e, 0)); /* not finished */
    see_rows(f->ctx, e, rows, 3);
    assert_ok(f->ctx, oct_box_eval_finish(e, 1, &m));
    assert_near(m.ap, (51 + 50 * 2.0 / 3) / 101);
    assert_near(m.voc_map50, (1 + 2.0 / 3) / 2);
    curve = oct_box_eval_curve(e, 0);
    assert_non_null(curve);
    for (int r = 0; r < 101; r++)
        assert_near(curve[r], r <= 50 ? 1 : 2.0 / 3);
    oct_box_eval_category(e, 0, &ap, &ap50);
    assert_near(ap, m.ap);
    assert_near(ap50, m.ap);
    oct_box_eval_category(e, 1, &ap, &ap50); /* no labels */
    assert_near(ap, -1);
    assert_near(ap50, -1);
    assert_null(oct_box_eval_curve(e, 1));
    assert_null(oct_box_eval_curve(e, 2));
    assert_null(oct_box_eval_curve(e, -2));
    for (int r = 0; r < 101; r++) { /* the mean of the one that has labels */
        assert_near(oct_box_eval_curve(e, -1)[r], curve[r]);
        assert_near(oct_box_eval_mean_curve(e, -1)[r], curve[r]);
    }
    assert_int_equal(oct_box_eval_labels(e, 0), 2);
    assert_int_equal(oct_box_eval_labels(e, 1), 0);
    assert_int_equal(oct_box_eval_labels(e, -1), 0);
    oct_box_eval_free(e);
    oct_dataset_close(d);
}

static void categories_without_labels_do_not_count(void **state)
{
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {0}};
    const found_row rows[] = {{0, {10, 10, 20, 20, 0.9f, 0}}, {0, {10, 10, 20, 20, 0.9f, 1}}};

    assert_near(score((fixture *)*state, one, two, truth, rows).ap, 1);
}

static void categories_are_averaged(void **state)
{
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {1, 2, 100, 10, 20, 20}, {0}};
    const found_row rows[] = {{0, {10, 10, 20, 20, 0.9f, 0}}, {0, {100, 10, 20, 20, 0.9f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, two, truth, rows);

    assert_near(m.ap, 0.5); /* the second was found, but as another category */
    assert_near(m.ar100, 0.5);
}

static void nothing_found_is_zero_and_no_labels_is_minus_one(void **state)
{
    fixture *f = *state;
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {0}}, none[] = {{0}};
    const found_row rows[] = {{0, {10, 10, 20, 20, 0.9f, 0}}};
    oct_box_metrics m = score_rows(f->ctx, one, one, truth, NULL, 0);

    assert_near(m.ap, 0);
    assert_near(m.ar100, 0);
    assert_near(m.voc_map50, 0);
    m = score(f, one, one, none, rows);
    assert_near(m.ap, -1);
    assert_near(m.ar1, -1);
    assert_near(m.voc_map50, -1);
}

/* --- matching --- */

static void a_label_is_found_once(void **state)
{
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {1, 1, 100, 100, 20, 20}, {0}};
    const found_row rows[] = {{0, {10, 10, 20, 20, 0.9f, 0}},
                              {0, {10, 10, 20, 20, 0.8f, 0}},
                              {0, {100, 100, 20, 20, 0.7f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, one, truth, rows);

    assert_near(m.ap, (51 + 50 * 2.0 / 3) / 101); /* the double is wrong */
    assert_near(m.voc_map50, (1 + 2.0 / 3) / 2);
}

/* COCO: the second detection takes the label that is still free. VOC: it wants the nearest. */
static void a_taken_label_leaves_the_next_best(void **state)
{
    const truth_row truth[] = {{1, 1, 0, 0, 10, 10}, {1, 1, 2, 0, 10, 10}, {0}};
    const found_row rows[] = {{0, {0, 0, 10, 10, 0.9f, 0}}, {0, {0, 0, 10, 10, 0.8f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, one, truth, rows);

    assert_near(m.ap50, 1); /* overlap 80 / 120 with the second */
    assert_near(m.ap75, half_recall);
    assert_near(m.voc_map50, 0.5);
}

static void of_equal_overlaps_the_later_label_is_taken(void **state)
{
    const truth_row truth[] = {{1, 1, 0, 0, 10, 10}, {1, 1, 4, 0, 10, 10}, {0}};
    const found_row rows[] = {{0, {2, 0, 10, 10, 0.9f, 0}},  /* 80 / 120 with both */
                              {0, {5, 0, 10, 10, 0.8f, 0}}}; /* fits the second only */

    assert_near(score((fixture *)*state, one, one, truth, rows).ap50, half_recall);
}

static void equal_scores_keep_their_order(void **state)
{
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {0}};
    const found_row right_first[] = {{0, {10, 10, 20, 20, 0.5f, 0}},
                                     {0, {200, 10, 20, 20, 0.5f, 0}}};
    const found_row wrong_first[] = {{0, {200, 10, 20, 20, 0.5f, 0}},
                                     {0, {10, 10, 20, 20, 0.5f, 0}}};

    assert_near(score((fixture *)*state, one, one, truth, right_first).ap, 1);
    assert_near(score((fixture *)*state, one, one, truth, wrong_first).ap, 0.5);
}

/* Whatever order the file lists pictures in, and the caller shows them. */
static void equal_scores_of_pictures_go_by_id(void **state)
{
    fixture *f = *state;
    const int64_t images[] = {7, 5, 0};
    const truth_row truth[] = {{5, 1, 10, 10, 20, 20}, {0}};
    const oct_detection right = {10, 10, 20, 20, 0.5f, 0};
    oct_dataset *d = open_truth(f->ctx, images, one, truth);
    oct_box_eval *e = NULL;
    oct_box_metrics m;

    assert_ok(f->ctx, oct_box_eval_new(f->ctx, d, &e));
    for (int64_t i = 1; i >= 0; i--)
        assert_ok(f->ctx, oct_box_eval_see(e, i, &right, 1)); /* wrong in picture 7 */
    assert_ok(f->ctx, oct_box_eval_finish(e, 1, &m));
    assert_near(m.ap, 1);
    oct_box_eval_free(e);
    oct_dataset_close(d);
}

static void only_the_best_hundred_count(void **state)
{
    fixture *f = *state;
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {0}};
    found_row rows[102];

    for (int i = 0; i < 102; i++)
        rows[i] = (found_row){0, {200, 10, 20, 20, 0.9f - (float)i * 0.001f, 0}};
    rows[101].d.x = 10;
    assert_near(score(f, one, one, truth, rows).ar100, 0);
    rows[99].d.x = 10;
    assert_near(score(f, one, one, truth, rows).ar100, 1);
}

static void recall_with_one_and_ten(void **state)
{
    fixture *f = *state;
    truth_row truth[13] = {{0}};
    found_row rows[12];
    oct_box_metrics m;

    for (int i = 0; i < 12; i++) {
        truth[i] = (truth_row){1, 1, 30 * i, 0, 20, 20, 0, 0};
        rows[i] = (found_row){0, {(float)(30 * i), 0, 20, 20, 0.9f - (float)i * 0.01f, 0}};
    }
    m = score(f, one, one, truth, rows);
    assert_near(m.ar1, 1.0 / 12);
    assert_near(m.ar10, 10.0 / 12);
    assert_near(m.ar100, 1);
}

/* --- crowds and areas --- */

static void what_lies_in_a_crowd_is_ignored(void **state)
{
    const truth_row truth[] = {{1, 1, 100, 100, 200, 200, 0, 1}, {1, 1, 10, 10, 20, 20}, {0}};
    const found_row rows[] = {{0, {110, 110, 10, 10, 0.99f, 0}}, /* overlap of its own area: 1 */
                              {0, {150, 150, 10, 10, 0.98f, 0}}, /* a crowd is not used up */
                              {0, {95, 150, 10, 10, 0.97f, 0}},  /* half of it is inside */
                              {0, {10, 10, 20, 20, 0.9f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, one, truth, rows);

    assert_near(m.ap50, 1);
    assert_near(m.ap75, 0.5); /* the third counts as wrong above 0.5 */
    assert_near(m.ap, 0.55);
    assert_near(m.ar100, 1); /* the crowd need not be found */
}

static void a_crowd_alone_is_nothing_to_measure(void **state)
{
    const truth_row truth[] = {{1, 1, 100, 100, 200, 200, 0, 1}, {0}};
    const found_row rows[] = {{0, {110, 110, 10, 10, 0.99f, 0}}};

    assert_near(score((fixture *)*state, one, one, truth, rows).ap, -1);
}

static void areas_are_those_of_the_labels(void **state)
{
    /* The borders belong to both ranges. */
    const truth_row truth[] = {{1, 1, 0, 0, 100, 100, 1024},
                               {1, 1, 200, 0, 100, 100, 9216},
                               {1, 1, 400, 0, 100, 100, 500},
                               {0}};
    const found_row rows[] = {{0, {0, 0, 100, 100, 0.9f, 0}}, {0, {200, 0, 100, 100, 0.8f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, one, truth, rows);

    assert_near(m.ar_small, 0.5);
    assert_near(m.ar_medium, 1);
    assert_near(m.ar_large, 1);
    assert_near(m.ap_small, half_recall);
    assert_near(m.ap_medium, 1);
    assert_near(m.ap_large, 1);
}

static void unmatched_ones_of_other_areas_are_ignored(void **state)
{
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {0}};
    const found_row rows[] = {{0, {200, 10, 40, 40, 0.95f, 0}}, /* medium, wrong */
                              {0, {10, 10, 20, 20, 0.9f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, one, truth, rows);

    assert_near(m.ap, 0.5);
    assert_near(m.ap_small, 1);
}

/* 2/3 with the small label, all of the medium one. */
static void labels_that_count_come_before_ignored_ones(void **state)
{
    const truth_row truth[] = {{1, 1, 0, 0, 10, 10, 5000}, {1, 1, 2, 0, 10, 10, 500}, {0}};
    const found_row rows[] = {{0, {0, 0, 10, 10, 0.9f, 0}}};
    const oct_box_metrics m = score((fixture *)*state, one, one, truth, rows);

    assert_near(m.ap_small, 0.4); /* at 0.5, 0.55, 0.6, 0.65; above it takes the ignored one */
    assert_near(m.ap_medium, 1);
}

/* --- which pictures --- */

static void pictures_never_seen_count_if_wanted(void **state)
{
    fixture *f = *state;
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {2, 1, 10, 10, 20, 20}, {0}};
    const oct_detection right = {10, 10, 20, 20, 0.5f, 0};
    oct_dataset *d = open_truth(f->ctx, two, one, truth);
    oct_box_eval *e = NULL;
    oct_box_metrics m;

    assert_ok(f->ctx, oct_box_eval_new(f->ctx, d, &e));
    assert_ok(f->ctx, oct_box_eval_finish(e, 0, &m));
    assert_near(m.ap, -1);
    assert_ok(f->ctx, oct_box_eval_see(e, 0, &right, 1));
    assert_ok(f->ctx, oct_box_eval_finish(e, 0, &m));
    assert_near(m.ap, 1);
    assert_ok(f->ctx, oct_box_eval_finish(e, 1, &m));
    assert_near(m.ap, half_recall);
    assert_ok(f->ctx, oct_box_eval_see(e, 1, &right, 1));
    assert_ok(f->ctx, oct_box_eval_finish(e, 1, &m));
    assert_near(m.ap, 1);
    oct_box_eval_free(e);
    oct_dataset_close(d);
}

static void selected_pictures_only(void **state)
{
    fixture *f = *state;
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {2, 1, 10, 10, 20, 20}, {0}};
    const oct_detection wrong = {300, 10, 20, 20, 0.9f, 0}, right = {10, 10, 20, 20, 0.5f, 0};
    oct_dataset *d = open_truth(f->ctx, two, one, truth);
    oct_box_eval *e = NULL;
    oct_box_metrics m;

    assert_ok(f->ctx, oct_box_eval_new(f->ctx, d, &e));
    assert_fails(f->ctx, oct_box_eval_select(e, (int64_t[]){2, 3}, 2), OCT_ERR_ARG, "id 3");
    assert_ok(f->ctx, oct_box_eval_select(e, (int64_t[]){2}, 1));
    assert_ok(f->ctx, oct_box_eval_see(e, 0, &wrong, 1));
    assert_ok(f->ctx, oct_box_eval_see(e, 1, &right, 1));
    assert_ok(f->ctx, oct_box_eval_finish(e, 1, &m));
    assert_near(m.ap, 1);
    assert_ok(f->ctx, oct_box_eval_select(e, NULL, 0));
    assert_ok(f->ctx, oct_box_eval_finish(e, 1, &m));
    assert_near(m.ap, half_recall);
    oct_box_eval_free(e);
    oct_dataset_close(d);
}

/* --- refusals --- */

static void nonsense_is_refused(void **state)
{
    fixture *f = *state;
    const truth_row truth[] = {{1, 1, 10, 10, 20, 20}, {0}};
    const struct {
        oct_detection d;
        const char *why;
    } cases[] = {
        {{NAN, 0, 1, 1, 0.5f, 0}, "detection 0: its box is not a number"},
        {{0, INFINITY, 1, 1, 0.5f, 0}, "not a number"},
        {{0, 0, -1, 1, 0.5f, 0}, "negative"},
        {{0, 0, 1, -1, 0.5f, 0}, "negative"},
        {{0, 0, 1, 1, NAN, 0}, "its score is not a number"},
        {{0, 0, 1, 1, 0.5f, 1}, "category"},
        {{0, 0, 1, 1, 0.5f, -1}, "category"},
    };
    const oct_detection right = {10, 10, 20, 20, 0.5f, 0};
    oct_dataset *d = open_truth(f->ctx, one, one, truth);
    oct_box_eval *e = NULL;

    assert_ok(f->ctx, oct_box_eval_new(f->ctx, d, &e));
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        assert_fails(f->ctx, oct_box_eval_see(e, 0, &cases[i].d, 1), OCT_ERR_ARG, cases[i].why);
    assert_fails(f->ctx, oct_box_eval_see(e, -1, &right, 1), OCT_ERR_ARG, "picture -1");
    assert_fails(f->ctx, oct_box_eval_see(e, 1, &right, 1), OCT_ERR_ARG, "picture 1");
    assert_ok(f->ctx, oct_box_eval_see(e, 0, &right, 1));
    assert_fails(f->ctx, oct_box_eval_see(e, 0, &right, 1), OCT_ERR_STATE, "seen before");
    oct_box_eval_free(e);
    oct_box_eval_free(NULL);
    oct_dataset_close(d);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(perfect_is_one),
        TEST(half_of_the_labels),
        TEST(overlap_of_one_half_counts_at_one_half_only),
        TEST(a_better_wrong_one_halves_precision),
        TEST(precision_is_the_best_from_there_on),
        TEST(categories_without_labels_do_not_count),
        TEST(categories_are_averaged),
        TEST(nothing_found_is_zero_and_no_labels_is_minus_one),
        TEST(a_label_is_found_once),
        TEST(a_taken_label_leaves_the_next_best),
        TEST(of_equal_overlaps_the_later_label_is_taken),
        TEST(equal_scores_keep_their_order),
        TEST(equal_scores_of_pictures_go_by_id),
        TEST(only_the_best_hundred_count),
        TEST(recall_with_one_and_ten),
        TEST(what_lies_in_a_crowd_is_ignored),
        TEST(a_crowd_alone_is_nothing_to_measure),
        TEST(areas_are_those_of_the_labels),
        TEST(unmatched_ones_of_other_areas_are_ignored),
        TEST(labels_that_count_come_before_ignored_ones),
        TEST(pictures_never_seen_count_if_wanted),
        TEST(selected_pictures_only),
        TEST(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
