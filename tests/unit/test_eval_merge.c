/* SPDX-License-Identifier: Apache-2.0 */
/* Box metrics in parts: any split gives the same bits; want of memory leaves nothing behind. */
#include "eval_case.h"

#include "base/rng.h"

enum { N_IMAGES = 40, N_CATEGORIES = 5, MAX_LABELS = 12, MAX_FOUND = 150 };

/* A made-up dataset and what was found in its pictures. */
typedef struct made {
    oct_dataset *d;
    oct_detection found[N_IMAGES][MAX_FOUND];
    int32_t n[N_IMAGES];
} made;

static float some(oct_rng *rng, double size)
{
    return (float)(floor(oct_rng_f64(rng) * size * 4) / 4);
}

static void make(made *m, oct_ctx *ctx, uint64_t seed)
{
    static truth_row truth[N_IMAGES * MAX_LABELS + 1];
    int64_t images[N_IMAGES + 1] = {0}, categories[N_CATEGORIES + 1] = {0};
    size_t n = 0;
    oct_rng rng;

    oct_rng_init(&rng, seed);
    for (int i = 0; i < N_CATEGORIES; i++)
        categories[i] = 10 - i;
    for (int i = 0; i < N_IMAGES; i++)
        images[i] = 1 + (i * 17) % N_IMAGES; /* not in order */
    for (int i = 0; i < N_IMAGES; i++)
        for (uint64_t k = oct_rng_below(&rng, MAX_LABELS); k > 0; k--)
            truth[n++] = (truth_row){.image = images[i],
                                     .category = categories[oct_rng_below(&rng, N_CATEGORIES)],
                                     .x = (double)some(&rng, 100),
                                     .y = (double)some(&rng, 100),
                                     .width = 1 + (double)some(&rng, 120),
                                     .height = 1 + (double)some(&rng, 120),
                                     .crowd = oct_rng_below(&rng, 8) == 0};
    truth[n] = (truth_row){0};
    m->d = open_truth(ctx, images, categories, truth);

    for (int64_t i = 0; i < N_IMAGES; i++) {
        int32_t n_labels = 0;
        const oct_label *labels = oct_dataset_labels(m->d, i, &n_labels);

        m->n[i] = (int32_t)oct_rng_below(&rng, MAX_FOUND);
        for (int32_t k = 0; k < m->n[i]; k++) {
            oct_detection *d = &m->found[i][k];

            *d = (oct_detection){.x = some(&rng, 100),
                                 .y = some(&rng, 100),
                                 .width = some(&rng, 100),
                                 .height = some(&rng, 100),
                                 .score = (float)oct_rng_below(&rng, 20) * 0.05f,
                                 .category = (int32_t)oct_rng_below(&rng, N_CATEGORIES)};
            if (n_labels && k % 3) {
                const oct_label *l = &labels[oct_rng_below(&rng, (uint64_t)n_labels)];

                d->x = (float)l->x + some(&rng, 4);
                d->y = (float)l->y;
                d->width = (float)l->width;
                d->height = (float)l->height + some(&rng, 4);
                d->category = l->category;
            }
        }
    }
}

static void same_bits(const oct_box_eval *a, const oct_box_eval *b)
{
    for (int32_t k = 0; k < N_CATEGORIES; k++) {
        const double *x = oct_box_eval_curve(a, k), *y = oct_box_eval_curve(b, k);
        double ap[2], ap50[2];

        oct_box_eval_category(a, k, &ap[0], &ap50[0]);
        oct_box_eval_category(b, k, &ap[1], &ap50[1]);
        assert_memory_equal(&ap[0], &ap[1], sizeof(ap[0]));
        assert_memory_equal(&ap50[0], &ap50[1], sizeof(ap50[0]));
        assert_int_equal(!x, !y);
        if (x) assert_memory_equal(x, y, 101 * sizeof(*x));
    }
}

static void any_split_gives_the_same_bits(void **state)
{
    fixture *f = *state;
    static made m;
    oct_box_eval *whole = NULL, *part[4] = {NULL};
    oct_box_metrics want, got;
    oct_rng rng;

    oct_rng_init(&rng, 3);
    for (uint64_t seed = 0; seed < 8; seed++) {
        const uint64_t n_parts = 2 + seed % 3;

        make(&m, f->ctx, seed);
        assert_ok(f->ctx, oct_box_eval_new(f->ctx, m.d, &whole));
        for (uint64_t p = 0; p < n_parts; p++)
            assert_ok(f->ctx, oct_box_eval_new(f->ctx, m.d, &part[p]));
        for (int64_t i = 0; i < N_IMAGES; i++) {
            const int64_t k = (i * 7 + (int64_t)seed) % N_IMAGES; /* another order */

            assert_ok(f->ctx, oct_box_eval_see(whole, i, m.found[i], m.n[i]));
            assert_ok(f->ctx,
                      oct_box_eval_see(part[oct_rng_below(&rng, n_parts)], k, m.found[k], m.n[k]));
        }
        for (uint64_t p = 1; p < n_parts; p++)
            assert_ok(f->ctx, oct_box_eval_merge(part[0], part[p]));
        assert_ok(f->ctx, oct_box_eval_finish(whole, 1, &want));
        assert_ok(f->ctx, oct_box_eval_finish(part[0], 0, &got));
        assert_true(want.ap > 0 && want.ap < 1 && want.ap_small > 0 && want.ap_large > 0);
        assert_memory_equal(&want, &got, sizeof(want));
        same_bits(whole, part[0]);
        oct_box_eval_free(whole);
        for (uint64_t p = 0; p < n_parts; p++)
            oct_box_eval_free(part[p]);
        oct_dataset_close(m.d);
    }
}

static void merge_refuses_what_does_not_fit(void **state)
{
    fixture *f = *state;
    static made m;
    const truth_row none[] = {{0}};
    const int64_t one[] = {1, 0};
    oct_dataset *other = open_truth(f->ctx, one, one, none);
    oct_box_eval *a = NULL, *b = NULL, *c = NULL;
    oct_box_metrics want, got;

    make(&m, f->ctx, 1);
    assert_ok(f->ctx, oct_box_eval_new(f->ctx, m.d, &a));
    assert_ok(f->ctx, oct_box_eval_new(f->ctx, m.d, &b));
    assert_ok(f->ctx, oct_box_eval_new(f->ctx, other, &c));
    assert_fails(f->ctx, oct_box_eval_merge(a, c), OCT_ERR_ARG, "different datasets");
    assert_ok(f->ctx, oct_box_eval_see(a, 3, m.found[3], m.n[3]));
    assert_ok(f->ctx, oct_box_eval_see(b, 2, m.found[2], m.n[2]));
    assert_ok(f->ctx, oct_box_eval_see(b, 3, m.found[3], m.n[3]));
    assert_ok(f->ctx, oct_box_eval_finish(a, 1, &want));
    assert_fails(f->ctx, oct_box_eval_merge(a, b), OCT_ERR_STATE, "picture 3");
    assert_ok(f->ctx, oct_box_eval_finish(a, 1, &got));
    assert_memory_equal(&want, &got, sizeof(want));
    oct_box_eval_free(a);
    oct_box_eval_free(b);
    oct_box_eval_free(c);
    oct_dataset_close(other);
    oct_dataset_close(m.d);
}

/* --- want of memory --- */

static const made *shared_case; /* made once: only the metric's own memory fails */

static oct_status work(oct_ctx *ctx)
{
    const made *m = shared_case;
    oct_box_eval *a = NULL, *b = NULL;
    oct_box_noise noise = {.struct_size = sizeof(noise)};
    oct_box_metrics out;
    oct_status st;

    if ((st = oct_box_eval_new(ctx, m->d, &a))) goto done;
    if ((st = oct_box_eval_new(ctx, m->d, &b))) goto done;
    for (int64_t i = 0; i < 4; i++)
        if ((st = oct_box_eval_see(i % 2 ? a : b, i, m->found[i], m->n[i]))) goto done;
    if ((st = oct_box_eval_merge(a, b))) goto done;
    if ((st = oct_box_eval_finish(a, 1, &out))) goto done;
    st = oct_box_eval_noise(a, b, 1, 2, 1, &noise);
done:
    oct_box_eval_free(a);
    oct_box_eval_free(b);
    return st;
}

static void want_of_memory_is_said(void **state)
{
    fixture *f = *state;
    static made m;

    make(&m, f->ctx, 5);
    shared_case = &m;
    fail_each_allocation(work);
    oct_dataset_close(m.d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_split_gives_the_same_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(merge_refuses_what_does_not_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(want_of_memory_is_said, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
