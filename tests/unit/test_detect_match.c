/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of two networks on one picture: which are the same thing. */
#include "test.h"

static void match(const oct_detection *a, int32_t n_a, const oct_detection *b, int32_t n_b,
                  const int32_t *want)
{
    int32_t partner[8];

    oct_detections_match(a, n_a, b, n_b, 0.5f, partner);
    for (int32_t i = 0; i < n_a; i++)
        assert_int_equal(partner[i], want[i]);
}

static void overlap_is_shared_over_joined(void **state)
{
    const oct_detection a = {0, 0, 10, 10, 1, 0}, half = {0, 0, 10, 5, 1, 0};
    const oct_detection shifted = {5, 0, 10, 10, 1, 0}, away = {20, 20, 1, 1, 1, 0}, none = {0};

    (void)state;
    assert_true(oct_detections_iou(&a, &a) == 1);
    assert_true(oct_detections_iou(&a, &half) == 0.5f);
    assert_true(fabsf(oct_detections_iou(&a, &shifted) - 1 / 3.0f) < 1e-6f);
    assert_true(oct_detections_iou(&a, &away) == 0);
    assert_true(oct_detections_iou(&none, &none) == 0);
}

static void the_nearest_of_the_class_is_the_same_thing(void **state)
{
    const oct_detection a[] = {{0, 0, 10, 10, 0.9f, 1}, {50, 0, 10, 10, 0.8f, 1}};
    const oct_detection b[] = {{1, 0, 10, 10, 0.9f, 2}, /* another class */
                               {2, 0, 10, 10, 0.7f, 1},
                               {1, 0, 10, 10, 0.6f, 1},
                               {57, 0, 10, 10, 0.5f, 1}}; /* overlaps too little */

    (void)state;
    match(a, 2, b, 4, (int32_t[]){2, -1});
    match(b, 4, a, 2, (int32_t[]){-1, 0, -1, -1});
    match(a, 2, b, 0, (int32_t[]){-1, -1});
    match(a, 0, b, 4, NULL);
}

static void a_box_has_one_partner(void **state)
{
    const oct_detection a[] = {
        {0, 0, 10, 10, 0.9f, 1}, {0, 0, 10, 10, 0.8f, 1}, {0, 0, 10, 10, 0.7f, 1}};
    const oct_detection b[] = {{0, 0, 10, 9, 0.9f, 1}, {0, 0, 10, 10, 0.8f, 1}};

    (void)state;
    match(a, 3, b, 2, (int32_t[]){1, 0, -1}); /* the best score chooses first */
    match(a, 3, a, 3, (int32_t[]){0, 1, 2});  /* of equals the first */
}

static void what_is_no_number_has_no_partner(void **state)
{
    const oct_detection a = {NAN, 0, 10, 10, 0.9f, 1}, b = {0, 0, INFINITY, 10, 0.9f, 1};

    (void)state;
    match(&a, 1, &a, 1, (int32_t[]){-1});
    match(&b, 1, &b, 1, (int32_t[]){-1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap_is_shared_over_joined),
        cmocka_unit_test(the_nearest_of_the_class_is_the_same_thing),
        cmocka_unit_test(a_box_has_one_partner),
        cmocka_unit_test(what_is_no_number_has_no_partner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
