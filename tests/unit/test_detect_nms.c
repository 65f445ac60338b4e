/* SPDX-License-Identifier: Apache-2.0 */
/* Non-maximum suppression against boxes worked out by hand, and against a plain loop. */
#include "tests/test.h"

#include "base/rng.h"
#include "detect/nms.h"

static const oct_mapping same = {1, 1, 0, 0, 1000, 1000};

static void push(oct_candidates *c, float x, float y, float w, float h, float score, int32_t k)
{
    oct_candidates_push(c, &(oct_candidate){x, y, x + w, y + h, score, k, (int64_t)c->n, -1});
}

static void start(fixture *f, oct_candidates *c, oct_nms_options *o)
{
    oct_candidates_init(c, f->ctx);
    oct_nms_options_init(o);
    oct_candidates_start(c, o->top_k);
}

static int32_t suppress(fixture *f, oct_candidates *c, const oct_nms_options *o, oct_detection *out)
{
    int32_t n = -1;

    assert_ok(f->ctx, oct_candidates_suppress(c, o, &same, out, &n));
    return n;
}

static void keeps_the_best_of_each_class(void **state)
{
    oct_candidates c;
    oct_nms_options o;
    oct_detection d[100];

    start(*state, &c, &o);
    push(&c, 0, 0, 100, 100, 0.5f, 0);
    push(&c, 0, 0, 100, 90, 0.9f, 0); /* overlap 0.9 */
    push(&c, 0, 0, 100, 90, 0.8f, 1); /* another class */
    push(&c, 0, 0, 100, 50, 0.7f, 0); /* overlap 0.56: stays */
    assert_int_equal(suppress(*state, &c, &o, d), 3);
    assert_true(d[0].score == 0.9f && d[1].score == 0.8f && d[2].score == 0.7f);
    assert_int_equal(d[1].category, 1);
    assert_true(d[2].width == 100 && d[2].height == 50);
    oct_candidates_fini(&c);
}

static void suppresses_across_classes_if_asked(void **state)
{
    oct_candidates c;
    oct_nms_options o;
    oct_detection d[100];

    start(*state, &c, &o);
    o.agnostic = 1;
    push(&c, 0, 0, 100, 90, 0.9f, 0);
    push(&c, 0, 0, 100, 90, 0.8f, 70);
    assert_int_equal(suppress(*state, &c, &o, d), 1);
    assert_int_equal(d[0].category, 0);
    oct_candidates_fini(&c);
}

static void suppresses_only_above_the_threshold(void **state)
{
    oct_candidates c;
    oct_nms_options o;
    oct_detection d[100];

    start(*state, &c, &o);
    o.iou = 0.5f;
    push(&c, 0, 0, 100, 100, 0.9f, 0);
    push(&c, 0, 0, 50, 100, 0.8f, 0); /* exactly 0.5 */
    assert_int_equal(suppress(*state, &c, &o, d), 2);
    oct_candidates_fini(&c);
}

static void breaks_ties_by_index(void **state)
{
    oct_candidates c;
    oct_nms_options o;
    oct_detection d[100];

    start(*state, &c, &o);
    oct_candidates_push(&c, &(oct_candidate){0, 0, 100, 100, 0.5f, 0, .index = 9});
    oct_candidates_push(&c, &(oct_candidate){0, 0, 100, 95, 0.5f, 0, .index = 3});
    oct_candidates_push(&c, &(oct_candidate){0, 0, 100, 90, 0.5f, 0, .index = 5});
    assert_int_equal(suppress(*state, &c, &o, d), 1);
    assert_true(d[0].height == 95);
    oct_candidates_fini(&c);
}

static void bounds_what_goes_in_and_out(void **state)
{
    oct_candidates c;
    oct_nms_options o;
    oct_detection d[100];

    start(*state, &c, &o);
    oct_candidates_start(&c, 4);
    o.max_detections = 3;
    for (int i = 0; i < 500; i++)
        push(&c, (float)(i % 30) * 30, 0, 10, 10, (float)(i % 97) / 100, 0);
    assert_true(c.n <= 9);
    assert_int_equal(suppress(*state, &c, &o, d), 3);
    assert_true(d[0].score == 0.96f && d[1].score == 0.96f && d[2].score == 0.96f);
    oct_candidates_fini(&c);
}

static void leaves_out_nonsense(void **state)
{
    oct_candidates c;
    oct_nms_options o;
    oct_detection d[100];

    start(*state, &c, &o);
    push(&c, 0, 0, -5, 10, 0.9f, 0);
    push(&c, 0, 0, 0, 10, 0.9f, 0);
    push(&c, NAN, 0, 5, 10, 0.9f, 0);
    push(&c, 0, 0, INFINITY, 10, 0.9f, 0);
    push(&c, 0, 0, 10, 10, NAN, 0);
    push(&c, 0, 0, 10, 10, 0.9f, -1);
    push(&c, 0, 0, 10, 10, 0.9f, INT32_MAX);
    push(&c, -3e38f, 0, 3e38f, 10, 0.9f, 0);
    push(&c, 2000, 0, 10, 10, 0.95f, 0); /* outside the picture */
    push(&c, -5, 990, 20, 20, 0.5f, 0);  /* clipped */
    assert_int_equal(suppress(*state, &c, &o, d), 1);
    assert_true(d[0].x == 0 && d[0].y == 990 && d[0].width == 15 && d[0].height == 10);
    oct_candidates_fini(&c);
}

static void maps_back_to_the_picture(void **state)
{
    const oct_mapping map = {0.5f, 0.25f, 10, 20, 640, 480};
    oct_candidates c;
    oct_nms_options o;
    oct_detection d[100];
    int32_t n = 0;

    start(*state, &c, &o);
    push(&c, 20, 40, 30, 50, 0.9f, 2);
    assert_ok(((fixture *)*state)->ctx, oct_candidates_suppress(&c, &o, &map, d, &n));
    assert_int_equal(n, 1);
    assert_true(d[0].x == 20 && d[0].y == 80 && d[0].width == 60 && d[0].height == 200);
    oct_candidates_fini(&c);
}

static void soft_suppression_lowers_scores(void **state)
{
    oct_candidates c;
    oct_nms_options o;
    oct_detection d[100];

    start(*state, &c, &o);
    o.soft_sigma = 0.5f;
    o.score = 0.2f;
    push(&c, 0, 0, 100, 100, 0.9f, 0);
    push(&c, 0, 0, 100, 50, 0.8f, 0);  /* iou 0.5: * exp(-0.5) = 0.485 */
    push(&c, 0, 0, 100, 100, 0.7f, 0); /* iou 1: * exp(-2), then the second: below 0.2 */
    push(&c, 500, 0, 10, 10, 0.6f, 0); /* far away: as it is */
    assert_int_equal(suppress(*state, &c, &o, d), 3);
    assert_true(d[0].score == 0.9f && d[1].score == 0.6f);
    assert_true(fabsf(d[2].score - 0.8f * expf(-0.5f)) < 1e-6f);
    oct_candidates_fini(&c);
}

/* --- against the plain algorithm --- */

static float iou(const oct_candidate *a, const oct_candidate *b)
{
    const float w = fminf(a->x2, b->x2) - fmaxf(a->x1, b->x1);
    const float h = fminf(a->y2, b->y2) - fmaxf(a->y1, b->y1);
    const float both = w > 0 && h > 0 ? w * h : 0;

    return both / ((a->x2 - a->x1) * (a->y2 - a->y1) + (b->x2 - b->x1) * (b->y2 - b->y1) - both);
}

/* Takes the best that is left, removes what overlaps it, again and again. */
static int32_t plain(const oct_candidate *in, size_t n, const oct_nms_options *o, int64_t *kept)
{
    bool gone[2000] = {0};
    int32_t n_kept = 0;

    while (n_kept < o->max_detections) {
        size_t best = n;

        for (size_t i = 0; i < n; i++)
            if (!gone[i] && (best == n || in[i].score > in[best].score)) best = i;
        if (best == n) break;
        kept[n_kept++] = in[best].index;
        for (size_t i = 0; i < n; i++)
            if ((o->agnostic || in[i].category == in[best].category) &&
                (i == best || iou(&in[best], &in[i]) > o->iou))
                gone[i] = true;
    }
    return n_kept;
}

static void equals_the_plain_algorithm(void **state)
{
    static oct_candidate in[2000];
    oct_rng rng;

    oct_rng_init(&rng, 7);
    for (int round = 0; round < 40; round++) {
        const size_t n = (size_t)oct_rng_below(&rng, OCT_COUNT(in));
        oct_candidates c;
        oct_nms_options o;
        oct_detection d[300];
        int64_t kept[300];
        int32_t n_want;

        start(*state, &c, &o);
        o.agnostic = round % 2;
        o.max_detections = round % 3 ? 300 : 20;
        o.iou = (float)(0.2 + 0.6 * oct_rng_f64(&rng));
        for (size_t i = 0; i < n; i++) {
            const float x = (float)oct_rng_below(&rng, 100), y = (float)oct_rng_below(&rng, 100);

            in[i] = (oct_candidate){.x1 = x,
                                    .y1 = y,
                                    .x2 = x + 20 + (float)oct_rng_below(&rng, 40),
                                    .y2 = y + 20 + (float)oct_rng_below(&rng, 40),
                                    .score = (float)oct_rng_below(&rng, 200) / 200,
                                    .category = (int32_t)oct_rng_below(&rng, 5),
                                    .index = (int64_t)i};
            oct_candidates_push(&c, &in[i]);
        }
        n_want = plain(in, n, &o, kept);
        assert_int_equal(suppress(*state, &c, &o, d), n_want);
        for (int32_t i = 0; i < n_want; i++) {
            assert_true(d[i].x == in[kept[i]].x1 && d[i].y == in[kept[i]].y1);
            assert_true(d[i].score == in[kept[i]].score);
        }
        oct_candidates_fini(&c);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(keeps_the_best_of_each_class),
        TEST(suppresses_across_classes_if_asked),
        TEST(suppresses_only_above_the_threshold),
        TEST(breaks_ties_by_index),
        TEST(bounds_what_goes_in_and_out),
        TEST(leaves_out_nonsense),
        TEST(maps_back_to_the_picture),
        TEST(soft_suppression_lowers_scores),
        TEST(equals_the_plain_algorithm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
