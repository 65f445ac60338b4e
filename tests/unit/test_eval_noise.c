/* SPDX-License-Identifier: Apache-2.0 */
/* Noise of AP: pictures that count several times, and the bootstrap made of that. */
#include "eval_case.h"

#include "base/rng.h"
#include "eval/box_eval.h"

enum { N_IMAGES = 30, N_COPIES = 3, N_CATEGORIES = 4, N_LABELS = 6, N_FOUND = 40 };

static const int64_t categories[] = {3, 5, 8, 9, 0};

/* What one picture of the made-up set has: scores that are equal to those of other pictures only.
 */
typedef struct scene {
    truth_row labels[N_LABELS];
    oct_detection found[N_FOUND];
} scene;

static void make_scene(scene *s, oct_rng *rng)
{
    for (int k = 0; k < N_LABELS; k++)
        s->labels[k] = (truth_row){.category = categories[oct_rng_below(rng, N_CATEGORIES - 1)],
                                   .x = (double)oct_rng_below(rng, 300),
                                   .y = (double)oct_rng_below(rng, 300),
                                   .width = 4 + (double)oct_rng_below(rng, 120),
                                   .height = 4 + (double)oct_rng_below(rng, 120),
                                   .crowd = oct_rng_below(rng, 7) == 0};
    for (int k = 0; k < N_FOUND; k++) {
        const truth_row *l = &s->labels[oct_rng_below(rng, N_LABELS)];

        s->found[k] = (oct_detection){.x = (float)l->x + (float)oct_rng_below(rng, 9),
                                      .y = (float)l->y + (float)oct_rng_below(rng, 9),
                                      .width = (float)l->width,
                                      .height = (float)l->height,
                                      .score = 0.02f * (float)(k * 7 % N_FOUND)};
        for (int32_t c = 0; c < N_CATEGORIES; c++)
            if (categories[c] == l->category) s->found[k].category = c;
        if (oct_rng_below(rng, 3) == 0)
            s->found[k].category = (int32_t)oct_rng_below(rng, N_CATEGORIES);
    }
}

/* A set with copies[i] pictures that are scene i, all seen. */
static oct_box_eval *score_copies(oct_ctx *ctx, const scene *scenes, const uint32_t *copies,
                                  oct_dataset **d)
{
    static truth_row truth[N_IMAGES * N_COPIES * N_LABELS + 1];
    int64_t ids[N_IMAGES * N_COPIES + 1] = {0};
    oct_box_eval *e = NULL;
    size_t n = 0;
    int at = 0;

    for (int i = 0; i < N_IMAGES; i++)
        for (uint32_t c = 0; c < copies[i]; c++, at++) {
            ids[at] = at + 1;
            for (int k = 0; k < N_LABELS; k++) {
                truth[n] = scenes[i].labels[k];
                truth[n++].image = at + 1;
            }
        }
    truth[n] = (truth_row){0};
    *d = open_truth(ctx, ids, categories, truth);
    assert_ok(ctx, oct_box_eval_new(ctx, *d, &e));
    at = 0;
    for (int i = 0; i < N_IMAGES; i++)
        for (uint32_t c = 0; c < copies[i]; c++)
            assert_ok(ctx, oct_box_eval_see(e, at++, scenes[i].found, N_FOUND));
    return e;
}

static void weights_equal_copies(void **state)
{
    fixture *f = *state;
    static scene scenes[N_IMAGES];
    uint32_t once[N_IMAGES];
    oct_box_weighing *w = NULL;
    oct_dataset *d = NULL;
    oct_box_eval *e;
    oct_rng rng;

    oct_rng_init(&rng, 11);
    for (int i = 0; i < N_IMAGES; i++) {
        make_scene(&scenes[i], &rng);
        once[i] = 1;
    }
    e = score_copies(f->ctx, scenes, once, &d);
    assert_ok(f->ctx, oct_box_weighing_new(e, &w));
    for (int round = 0; round < 12; round++) {
        oct_dataset *d_copies = NULL;
        uint32_t copies[N_IMAGES];
        oct_box_eval *with_copies;
        oct_box_metrics m;

        for (int i = 0; i < N_IMAGES; i++)
            copies[i] = round ? (uint32_t)oct_rng_below(&rng, N_COPIES + 1) : 1;
        with_copies = score_copies(f->ctx, scenes, copies, &d_copies);
        assert_ok(f->ctx, oct_box_eval_finish(with_copies, 1, &m));
        assert_true(m.ap > 0.05 && m.ap < 0.95);
        assert_true(fabs(oct_box_weighing_ap(w, copies) - m.ap) < 1e-12);
        oct_box_eval_free(with_copies);
        oct_dataset_close(d_copies);
    }
    oct_box_weighing_free(w);
    oct_box_eval_free(e);
    oct_dataset_close(d);
}

/* n pictures with one object each, which is found in those where `found` says so. */
static oct_box_eval *score_simple(oct_ctx *ctx, int n, bool (*found)(int i), oct_dataset **d)
{
    const oct_detection box = {10, 10, 20, 20, 0.5f, 0};
    truth_row truth[401] = {{0}};
    int64_t ids[401] = {0};
    oct_box_eval *e = NULL;

    assert_true(n <= 400);
    for (int i = 0; i < n; i++) {
        ids[i] = i + 1;
        truth[i] = (truth_row){i + 1, categories[0], 10, 10, 20, 20};
    }
    *d = open_truth(ctx, ids, categories, truth);
    assert_ok(ctx, oct_box_eval_new(ctx, *d, &e));
    for (int i = 0; i < n; i++)
        assert_ok(ctx, oct_box_eval_see(e, i, &box, found(i)));
    return e;
}

static bool three_of_five(int i)
{
    return i % 5 < 3;
}

static bool one_more_of_twenty(int i)
{
    return i % 5 < 3 || i % 20 == 19;
}

/* AP is the share of pictures where the object is found: its deviation is that of a coin. */
static void noise_is_that_of_a_coin(void **state)
{
    fixture *f = *state;
    oct_box_noise few = {.struct_size = sizeof(few)}, many = few, again = few, other = few;
    oct_dataset *d[2];
    oct_box_eval *e[2] = {score_simple(f->ctx, 100, three_of_five, &d[0]),
                          score_simple(f->ctx, 400, three_of_five, &d[1])};

    assert_ok(f->ctx, oct_box_eval_noise(e[0], NULL, 0, 2000, 1, &few));
    assert_ok(f->ctx, oct_box_eval_noise(e[0], NULL, 0, 2000, 1, &again));
    assert_ok(f->ctx, oct_box_eval_noise(e[0], NULL, 0, 2000, 2, &other));
    assert_ok(f->ctx, oct_box_eval_noise(e[1], NULL, 0, 0, 1, &many));
    assert_int_equal(few.images, 100);
    assert_int_equal(few.resamples, 2000);
    assert_int_equal(many.resamples, 200);
    assert_true(fabs(few.ap - 1.96 * sqrt(0.6 * 0.4 / 100)) < 0.008);
    assert_true(fabs(many.ap - 1.96 * sqrt(0.6 * 0.4 / 400)) < 0.009);
    assert_memory_equal(&few, &again, sizeof(few));
    assert_true(few.ap != other.ap);
    assert_true(few.other_ap < 0 && few.difference < 0);
    for (int i = 0; i < 2; i++) {
        oct_box_eval_free(e[i]);
        oct_dataset_close(d[i]);
    }
}

static void a_difference_is_paired(void **state)
{
    fixture *f = *state;
    oct_box_noise same = {.struct_size = sizeof(same)}, near = same;
    oct_dataset *d[3];
    oct_box_eval *e[3] = {score_simple(f->ctx, 400, three_of_five, &d[0]),
                          score_simple(f->ctx, 400, one_more_of_twenty, &d[1]),
                          score_simple(f->ctx, 20, three_of_five, &d[2])};

    assert_ok(f->ctx, oct_box_eval_noise(e[0], e[0], 0, 0, 1, &same));
    assert_true(same.difference == 0 && same.ap == same.other_ap && same.ap > 0.02);
    assert_ok(f->ctx, oct_box_eval_noise(e[0], e[1], 0, 1000, 1, &near));
    /* one picture of twenty differs */
    assert_true(fabs(near.difference - 1.96 * sqrt(0.05 * 0.95 / 400)) < 0.004);
    assert_true(near.difference < near.ap / 2);
    assert_fails(f->ctx, oct_box_eval_noise(e[0], e[2], 0, 0, 1, &near), OCT_ERR_ARG, "different");
    assert_fails(f->ctx, oct_box_eval_noise(e[0], NULL, 0, 1 << 30, 1, &near), OCT_ERR_ARG,
                 "at most");
    for (int i = 0; i < 3; i++) {
        oct_box_eval_free(e[i]);
        oct_dataset_close(d[i]);
    }
}

static void too_little_is_not_known(void **state)
{
    fixture *f = *state;
    oct_box_noise r = {.struct_size = sizeof(r)};
    oct_dataset *d = NULL;
    oct_box_eval *e = score_simple(f->ctx, 1, three_of_five, &d);

    assert_ok(f->ctx, oct_box_eval_noise(e, e, 0, 0, 1, &r));
    assert_true(r.ap < 0 && r.other_ap < 0 && r.difference < 0 && r.images == 1);
    oct_box_eval_free(e);
    assert_ok(f->ctx, oct_box_eval_new(f->ctx, d, &e));
    assert_ok(f->ctx, oct_box_eval_noise(e, NULL, 0, 0, 1, &r)); /* nothing was seen */
    assert_true(r.ap < 0 && r.images == 0);
    oct_box_eval_free(e);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(weights_equal_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(noise_is_that_of_a_coin, setup, teardown),
        cmocka_unit_test_setup_teardown(a_difference_is_paired, setup, teardown),
        cmocka_unit_test_setup_teardown(too_little_is_not_known, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
