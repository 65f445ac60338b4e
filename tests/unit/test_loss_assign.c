/* SPDX-License-Identifier: Apache-2.0 */
/* Assigners: results of the projects themselves on small pictures, and what must not go wrong. */
#include "loss/assign.h"
#include "tests/test.h"

enum { MAX_ANCHORS = 192, MAX_BOXES = 4, N_CLASSES = 2, BG = N_CLASSES };

static const oct_tal tal_sg = {.topk = 4, .alpha = 1, .beta = 6};
static const oct_tal tal_ultralytics = {
    .topk = 4, .alpha = .5, .beta = 6, .is_ciou = true, .min_side = 16};
static const oct_atss atss_sg = {.topk = 9, .side = 5, .margin = 1e-9, .eps = 1e-10};

typedef struct picture {
    oct_anchor_levels levels;
    oct_assign_in in;
    oct_assigned out;
    double point[2 * MAX_ANCHORS], stride[MAX_ANCHORS], pred[4 * MAX_ANCHORS];
    double score[N_CLASSES * MAX_ANCHORS];
    int32_t box[MAX_ANCHORS], label[MAX_ANCHORS];
    double q[MAX_ANCHORS];
    double work[256];
} picture;

/* 4x4 points of stride 8; the predicted boxes lie round their points. */
static void make(picture *p, const double *boxes, const int32_t *labels, int64_t n)
{
    p->levels = (oct_anchor_levels){.n = 1, .height = {4}, .width = {4}, .stride = {8}};
    p->in = (oct_assign_in){&p->levels, 16,       N_CLASSES, n,     p->point,
                            p->stride,  p->score, p->pred,   boxes, labels};
    p->out = (oct_assigned){p->box, p->label, p->q};
    oct_anchors_fill(&p->levels, .5, p->point, p->stride);
    for (int k = 0; k < 16; k++) {
        static const double away[4] = {-7, -6, 6, 7};

        for (int i = 0; i < 4; i++)
            p->pred[4 * k + i] = p->point[2 * k + i % 2] + away[i];
        p->score[2 * k] = .1 + .05 * (7 * k % 11);
        p->score[2 * k + 1] = .6 - .04 * (5 * k % 13);
    }
}

static void run_tal(picture *p, const oct_tal *tal)
{
    assert_true(oct_assign_tal_work(tal, p->in.n_boxes) <= sizeof(p->work));
    oct_assign_tal(tal, &p->in, p->work, &p->out);
}

static void run_atss(picture *p, const oct_atss *atss)
{
    assert_true(oct_assign_atss_work(atss, &p->levels) <= sizeof(p->work));
    oct_assign_atss(atss, &p->in, p->work, &p->out);
}

static void expect(const picture *p, const int32_t *label, const double *q)
{
    for (int i = 0; i < p->in.n_anchors; i++) {
        if (p->label[i] != label[i] || !(fabs(p->q[i] - q[i]) <= 5.1e-6))
            fail_msg("anchor %d: label %d, q %.6f, expected %d, %.6f", i, p->label[i], p->q[i],
                     label[i], q[i]);
        assert_int_equal(p->box[i] < 0, label[i] == BG);
        if (p->box[i] >= 0) assert_int_equal(p->in.label[p->box[i]], label[i]);
    }
}

static const double two_boxes[] = {2, 3, 19, 22, 10, 9, 30, 31};
static const int32_t two_labels[] = {0, 1};

static void task_aligned(void **state)
{
    static const int32_t label[] = {2, 0, 2, 2, 0, 0, 1, 2, 2, 0, 1, 1, 2, 2, 1, 2};
    static const double q[] = {0, .02128, 0,      0,     .01892, .52322, .13146, 0,
                               0, .02364, .38409, .0649, 0,      0,      .05409, 0};
    picture p;

    (void)state;
    make(&p, two_boxes, two_labels, 2);
    run_tal(&p, &tal_sg);
    expect(&p, label, q);
}

/* The squares of all nine candidates hold the box: their overlaps are equal. */
static void atss(void **state)
{
    static const int32_t label[] = {0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2, 2, 2, 2, 2};
    static const double q[] = {.14953, .26804, 0, 0, .26804, .52322, 0, 0,
                               .14953, .26804, 0, 0, 0,      0,      0, 0};
    picture p;

    (void)state;
    make(&p, two_boxes, two_labels, 1);
    run_atss(&p, &atss_sg);
    expect(&p, label, q);
}

/* 96x96 pixels, strides 8, 16 and 32. */
static void make_levels(picture *p, const double *boxes, const int32_t *labels, int64_t n)
{
    static const double away[4] = {-1.1, -.9, 1.2, 1.5};

    make(p, boxes, labels, n);
    p->levels = (oct_anchor_levels){
        .n = 3, .height = {12, 6, 3}, .width = {12, 6, 3}, .stride = {8, 16, 32}};
    p->in.n_anchors = oct_anchors_count(&p->levels);
    oct_anchors_fill(&p->levels, .5, p->point, p->stride);
    for (int k = 0; k < p->in.n_anchors; k++) {
        for (int i = 0; i < 4; i++)
            p->pred[4 * k + i] = p->point[2 * k + i % 2] + away[i] * p->stride[k];
        p->score[2 * k] = .1 + .05 * (7 * k % 11);
        p->score[2 * k + 1] = .6 - .04 * (5 * k % 13);
    }
}

typedef struct positive {
    int anchor, box;
    double q;
} positive;

static void expect_positives(const picture *p, const positive *want, size_t n)
{
    size_t found = 0;

    for (int i = 0; i < p->in.n_anchors; i++) {
        if (p->box[i] < 0) continue;
        assert_true(found < n);
        assert_int_equal(i, want[found].anchor);
        assert_int_equal(p->box[i], want[found].box);
        assert_int_equal(p->label[i], p->in.label[p->box[i]]);
        if (!(fabs(p->q[i] - want[found].q) <= 2e-8))
            fail_msg("anchor %d: q %.9f, expected %.9f", i, p->q[i], want[found].q);
        found++;
    }
    assert_int_equal(found, n);
}

static const double four_boxes[] = {5.3,  7.1,  40.7, 52.9, 21.4, 13.2, 70.6, 61.9,
                                    60.2, 66.3, 75.9, 79.1, 50.1, 20.3, 53.2, 41.4};
static const int32_t four_labels[] = {0, 1, 1, 0};

/* Results of SuperGradients' and ultralytics' own code in float64. */
static void three_levels(void **state)
{
    static const positive by_atss[] = {
        {26, 0, 0.217896536},  {38, 0, 0.217896536}, {39, 0, 0.217896536}, {41, 1, 0.147443280},
        {50, 0, 0.217896536},  {51, 0, 0.217896536}, {52, 1, 0.147443280}, {53, 1, 0.147443280},
        {54, 1, 0.147443280},  {65, 1, 0.147443280}, {66, 1, 0.147443280}, {104, 2, 0.568840563},
        {116, 2, 0.411968499},
    };
    static const positive by_tal[] = {
        {104, 2, 0.568840552}, {116, 2, 0.038303463}, {145, 0, 0.022685992}, {150, 0, 0.027922619},
        {151, 0, 0.766962451}, {152, 1, 0.540099858}, {153, 1, 0.074538570}, {157, 0, 0.119133799},
        {158, 1, 0.441247591}, {159, 1, 0.347909442}, {172, 2, 0.000120360}, {180, 0, 0.005595983},
        {181, 1, 0.144376249}, {184, 1, 0.034523104},
    };
    static const positive by_ultralytics[] = {
        {41, 3, 0.001661498},  {42, 3, 0.140453485},  {54, 3, 0.000006856},  {104, 2, 0.561102043},
        {105, 2, 0.000457647}, {116, 2, 0.032349067}, {117, 2, 0.000019352}, {145, 0, 0.006490893},
        {150, 0, 0.008891147}, {151, 0, 0.765550558}, {152, 1, 0.448844832}, {153, 1, 0.070740699},
        {157, 0, 0.030561373}, {158, 1, 0.524183290}, {159, 1, 0.198682536}, {172, 2, 0.000074479},
        {180, 0, 0.003157740}, {181, 1, 0.142282357}, {184, 1, 0.026832543},
    };
    oct_tal tal = tal_sg;
    picture p;

    (void)state;
    make_levels(&p, four_boxes, four_labels, 3);
    run_atss(&p, &atss_sg);
    expect_positives(&p, by_atss, OCT_COUNT(by_atss));
    tal.topk = 6;
    run_tal(&p, &tal);
    expect_positives(&p, by_tal, OCT_COUNT(by_tal));
    p.in.n_boxes = 4;
    tal = tal_ultralytics;
    tal.topk = 6;
    run_tal(&p, &tal);
    expect_positives(&p, by_ultralytics, OCT_COUNT(by_ultralytics));
}

static int count(const picture *p, int32_t box)
{
    int n = 0;

    for (int i = 0; i < p->in.n_anchors; i++)
        n += p->box[i] == box;
    return n;
}

static void no_boxes(void **state)
{
    picture p;

    (void)state;
    make(&p, NULL, NULL, 0);
    run_tal(&p, &tal_sg);
    assert_int_equal(count(&p, -1), 16);
    for (int i = 0; i < 16; i++)
        assert_int_equal(p.label[i], BG);
    run_atss(&p, &atss_sg);
    assert_int_equal(count(&p, -1), 16);
}

/* No anchor's point lies in the box; ultralytics enlarges it to 16 pixels. */
static void tiny_box(void **state)
{
    static const double box[] = {7, 7, 9.5, 9.5};
    picture p;

    (void)state;
    make(&p, box, two_labels, 1);
    run_tal(&p, &tal_sg);
    assert_int_equal(count(&p, -1), 16);
    run_atss(&p, &atss_sg);
    assert_int_equal(count(&p, -1), 16);
    run_tal(&p, &tal_ultralytics);
    assert_true(count(&p, 0) > 0);
    for (int i = 0; i < 16; i++)
        assert_true(p.box[i] < 0 || i == 0 || i == 1 || i == 4 || i == 5);
}

/* The first of two equal boxes gets all anchors. */
static void equal_boxes(void **state)
{
    static const double boxes[] = {2, 3, 19, 22, 2, 3, 19, 22};
    static const int32_t labels[] = {1, 1};
    picture p;

    (void)state;
    make(&p, boxes, labels, 2);
    for (int kind = 0; kind < 3; kind++) {
        if (kind == 0) run_tal(&p, &tal_sg);
        if (kind == 1) run_tal(&p, &tal_ultralytics);
        if (kind == 2) run_atss(&p, &atss_sg);
        assert_true(count(&p, 0) > 0);
        assert_int_equal(count(&p, 1), 0);
    }
}

/* The second level has one cell, fewer than topk; topk is more than there are anchors. */
static void small_levels(void **state)
{
    const oct_tal tal = {.topk = 13, .alpha = 1, .beta = 6};
    picture p;

    (void)state;
    make(&p, two_boxes, two_labels, 2);
    p.levels = (oct_anchor_levels){.n = 2, .height = {2, 1}, .width = {2, 1}, .stride = {16, 32}};
    p.in.n_anchors = 5;
    oct_anchors_fill(&p.levels, .5, p.point, p.stride);
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < 4; i++)
            p.pred[4 * k + i] = p.point[2 * k + i % 2] + (i < 2 ? -9 : 8);
    run_tal(&p, &tal);
    assert_true(count(&p, 0) > 0 && count(&p, 1) > 0);
    run_atss(&p, &atss_sg);
    for (int i = 0; i < 5; i++)
        assert_true(p.q[i] >= 0 && p.q[i] <= 1);
    /* One candidate alone has no deviation. */
    p.levels.n = 1;
    p.levels.height[0] = p.levels.width[0] = 1;
    p.in.n_anchors = 1;
    p.in.n_boxes = 1;
    run_atss(&p, &atss_sg);
    assert_int_equal(count(&p, 0), 1);
}

/* Scores that underflow leave metrics of 0: candidates of the lowest index are positive, q is 0. */
static void ties_take_the_lowest_index(void **state)
{
    picture p;

    (void)state;
    make(&p, (double[]){0, 0, 32, 32}, two_labels, 1);
    for (int i = 0; i < 2 * 16; i++)
        p.score[i] = 0;
    run_tal(&p, &tal_sg);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(p.box[i], i < 4 ? 0 : -1);
        assert_true(p.q[i] == 0);
    }
}

/* Predictions that are not numbers must not lead to indices that are none. */
static void not_a_number(void **state)
{
    picture p;

    (void)state;
    make(&p, two_boxes, two_labels, 2);
    for (int i = 0; i < 4 * 16; i++)
        p.pred[i] = i % 3 ? NAN : INFINITY;
    for (int i = 0; i < 2 * 16; i++)
        p.score[i] = NAN;
    for (int kind = 0; kind < 3; kind++) {
        if (kind == 0) run_tal(&p, &tal_sg);
        if (kind == 1) run_tal(&p, &tal_ultralytics);
        if (kind == 2) run_atss(&p, &atss_sg);
        for (int i = 0; i < 16; i++)
            assert_true(p.box[i] >= -1 && p.box[i] < 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_aligned),
        cmocka_unit_test(atss),
        cmocka_unit_test(three_levels),
        cmocka_unit_test(no_boxes),
        cmocka_unit_test(tiny_box),
        cmocka_unit_test(equal_boxes),
        cmocka_unit_test(small_levels),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test(ties_take_the_lowest_index),
    };

    return run_test_group(tests);
}
