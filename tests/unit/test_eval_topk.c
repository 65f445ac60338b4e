/* SPDX-License-Identifier: Apache-2.0 */
/* Top-1 and top-5, and the stable sort. */
#include "test.h"

#include "base/rng.h"
#include "eval/stable_sort.h"
#include "eval/topk.h"

static void first_and_first_five(void **state)
{
    const float scores[] = {0.1f, 0.9f, 0.3f, 0.8f, 0.2f, 0.7f, 0.05f};
    double top1, top5;
    oct_topk k;

    (void)state;
    oct_topk_init(&k);
    oct_topk_finish(&k, &top1, &top5);
    assert_true(top1 == -1 && top5 == -1);
    for (int32_t i = 0; i < 7; i++) /* 1, 3, 5, 2 and 4 are the first five */
        oct_topk_see(&k, scores, 7, i);
    oct_topk_see(&k, scores, 7, -1);
    oct_topk_see(&k, scores, 7, 7);
    oct_topk_finish(&k, &top1, &top5);
    assert_true(top1 == 1.0 / 9 && top5 == 5.0 / 9);
}

static void equal_scores_are_ordered_by_class(void **state)
{
    const float scores[] = {0.5f, 0.5f, 0.5f};
    oct_topk k;

    (void)state;
    for (int32_t i = 0; i < 3; i++) {
        oct_topk_init(&k);
        oct_topk_see(&k, scores, 3, i);
        assert_int_equal(k.n_top1, i == 0);
        assert_int_equal(k.n_top5, 1);
    }
}

static void not_a_number_never_helps(void **state)
{
    const float scores[] = {0.5f, NAN, 0.1f};
    oct_topk k;

    (void)state;
    oct_topk_init(&k);
    oct_topk_see(&k, scores, 3, 0);
    oct_topk_see(&k, scores, 3, 1);
    assert_int_equal(k.n_top1, 0);
    assert_int_equal(k.n_top5, 1);
}

static void topk_merges(void **state)
{
    const float scores[] = {0.5f, 0.7f};
    oct_topk a, b, both;

    (void)state;
    oct_topk_init(&a);
    oct_topk_init(&b);
    oct_topk_init(&both);
    for (int32_t i = 0; i < 10; i++) {
        oct_topk_see(i % 3 ? &a : &b, scores, 2, i % 2);
        oct_topk_see(&both, scores, 2, i % 2);
    }
    oct_topk_merge(&a, &b);
    assert_memory_equal(&a, &both, sizeof(a));
}

static void sorts_and_keeps_order_of_equals(void **state)
{
    static oct_ranked items[3000], work[3000];
    oct_rng rng;

    (void)state;
    oct_rng_init(&rng, 7);
    for (size_t n = 0; n < 3000; n = n * 5 / 3 + 1) {
        for (size_t i = 0; i < n; i++)
            items[i] = (oct_ranked){(double)oct_rng_below(&rng, 20) - 10,
                                    (int32_t)oct_rng_below(&rng, 4), (uint32_t)i};
        oct_rank(items, work, n);
        for (size_t i = 1; i < n; i++) {
            const oct_ranked *a = &items[i - 1], *b = &items[i];

            assert_true(a->group <= b->group);
            if (a->group < b->group) continue;
            assert_true(a->score >= b->score);
            if (a->score == b->score) assert_true(a->index < b->index);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_and_first_five),
        cmocka_unit_test(equal_scores_are_ordered_by_class),
        cmocka_unit_test(not_a_number_never_helps),
        cmocka_unit_test(topk_merges),
        cmocka_unit_test(sorts_and_keeps_order_of_equals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
