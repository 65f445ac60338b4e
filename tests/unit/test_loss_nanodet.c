/* SPDX-License-Identifier: Apache-2.0 */
/* NanoDet's losses, legacy and Plus, against a second implementation. */
#include "tests/unit/gfl_plain.h"

static plain *legacy(uint64_t seed)
{
    static plain p;

    p = (plain){.levels = 3,
                .assigner = "atss",
                .topk = 9,
                .counts_each = true,
                .among_takers = true,
                .offset = .5,
                .shift = -.5,
                .margin = .01,
                .weight = {1, 2, .25}};
    fill(&p, seed);
    return &p;
}

static plain *plus(uint64_t seed)
{
    static plain p;

    p = (plain){
        .levels = 4, .assigner = "dsl", .topk = 13, .at_least_1 = true, .weight = {1, 2, .25}};
    fill(&p, seed);
    return &p;
}

static void with_atss(void **state)
{
    /* with the last seed, boxes contest an anchor whose square overlaps a third box most */
    static const uint64_t seeds[] = {1, 2, 7};

    for (size_t i = 0; i < OCT_COUNT(seeds); i++) {
        plain *p = legacy(seeds[i]);
        loss_case c;

        begin(&c, state, "nanodet", p);
        assert_true(compare(&c, p) > PICTURES);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

static void with_soft_labels(void **state)
{
    for (uint64_t seed = 4; seed < 7; seed++) {
        plain *p = plus(seed);
        loss_case c;

        begin(&c, state, "nanodet_plus", p);
        assert_true(compare(&c, p) > PICTURES);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

/* And a box that reaches beyond the last bin of an anchor near its corner. */
static void other_weights(void **state)
{
    plain *p = plus(7);
    const int corner = 9; /* of feature map 8, at (8, 8) */
    loss_case c;

    memcpy(p->label[0][0], (double[]){1, .5, .5, 63.5, 63.5}, sizeof(p->label[0][0]));
    for (int e = 0; e < 4; e++)
        p->z[(4 * corner + e) * BINS + (e < 2 ? 1 : BINS - 1)] = 9;
    begin(&c, state, "nanodet_plus", p);
    p->weight[0] = .5;
    p->weight[1] = 3;
    p->weight[2] = 1;
    loss_set(&c, "weight_cls", .5, NULL);
    loss_set(&c, "weight_iou", 3, NULL);
    loss_set(&c, "weight_dfl", 1, NULL);
    assert_true(compare(&c, p) > 0);
    assert_int_equal(p->match[0][corner], 0);
}

static void picture_without_boxes(void **state)
{
    plain *p = legacy(8);
    loss_case c;

    p->label[0][0][0] = -1;
    begin(&c, state, "nanodet", p);
    assert_true(compare(&c, p) > 0);
}

/* The legacy loss of such a batch is 0; Plus pushes all scores down. */
static void batch_without_boxes(void **state)
{
    plain *p = legacy(9);
    loss_case c;

    p->label[0][0][0] = p->label[1][0][0] = -1;
    begin(&c, state, "nanodet", p);
    assert_int_equal(compare(&c, p), 0);
    assert_near(c.loss, 0, 0);
    assert_int_equal(teardown(state), 0);
    assert_int_equal(setup(state), 0);
    p = plus(9);
    p->label[0][0][0] = p->label[1][0][0] = -1;
    begin(&c, state, "nanodet_plus", p);
    assert_int_equal(compare(&c, p), 0);
    assert_true(c.loss > 0);
}

/* Two equal boxes: the first gets all anchors; a tiny one between points gets none. */
static void equal_and_tiny_boxes(void **state)
{
    plain *p = plus(10);
    loss_case c;

    memcpy(p->label[0][1], p->label[0][0], sizeof(p->label[0][0]));
    memcpy(p->label[1][3], (double[]){0, 17, 17, 18, 18}, sizeof(p->label[1][3]));
    p->label[1][0][0] = 0;
    memcpy(p->label[1][1], (double[]){-1, 0, 0, 0, 0}, sizeof(p->label[1][1]));
    begin(&c, state, "nanodet_plus", p);
    assert_true(compare(&c, p) > 0);
    for (int k = 0; k < p->n_anchors; k++)
        assert_int_not_equal(p->match[0][k], 1);
}

/* A picture whose only box is tiny: no candidate at all. */
static void no_candidates(void **state)
{
    plain *p = plus(11);
    loss_case c;

    memcpy(p->label[0][0], (double[]){0, 17, 17, 18, 18}, sizeof(p->label[0][0]));
    p->label[0][1][0] = -1;
    begin(&c, state, "nanodet_plus", p);
    assert_true(compare(&c, p) > 0);
    for (int k = 0; k < p->n_anchors; k++)
        assert_int_equal(p->match[0][k], -1);
}

static void bad_labels_are_refused(void **state)
{
    plain *p = legacy(12);
    loss_case c;

    p->label[0][2][0] = 7;
    begin(&c, state, "nanodet", p);
    loss_attach(&c);
    assert_fails(c.f->ctx, loss_try(&c), OCT_ERR_ARG, "class 7");
    loss_end(&c);
}

/* Values of NanoDet-Plus's only output in its own order: classes, then distances. */
static void one_output(void **state)
{
    plain *p = plus(13);
    double *both = calloc((size_t)PICTURES * MAX_ANCHORS, (CLASSES + 4 * BINS) * sizeof(double));
    const int n = CLASSES + 4 * BINS;
    double parts[3];
    loss_case c = loss_begin(state, "nanodet_plus");

    assert_non_null(both);
    for (int i = 0; i < PICTURES * p->n_anchors; i++) {
        memcpy(both + (ptrdiff_t)i * n, p->x + (ptrdiff_t)i * CLASSES, CLASSES * sizeof(double));
        memcpy(both + (ptrdiff_t)i * n + CLASSES, p->z + (ptrdiff_t)i * 4 * BINS,
               4 * BINS * sizeof(double));
    }
    loss_input(&c, "images", OCT_DTYPE_F32, 4, (int64_t[]){PICTURES, 3, SIDE, SIDE}, NULL);
    loss_pred(&c, "x", &oct_op_identity, 3, (int64_t[]){PICTURES, p->n_anchors, n}, both);
    c.n_pred = 0;
    c.job.labels = loss_input(&c, "labels", OCT_DTYPE_F32, 3,
                              (int64_t[]){PICTURES, BOXES, OCT_LABEL_SIZE}, p->label[0][0]);
    loss_attach(&c);
    loss_run(&c);
    assign(p);
    parts_of(p, parts);
    for (int k = 0; k < 3; k++)
        assert_near(c.parts[k], parts[k], 1e-6);
    loss_end(&c);
    free(both);
}

static void any_number_of_threads(void **state)
{
    plain *p = plus(20);
    loss_case c;

    begin(&c, state, "nanodet_plus", p);
    loss_attach(&c);
    loss_check_threads(&c);
    loss_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(with_atss, setup, teardown),
        cmocka_unit_test_setup_teardown(with_soft_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(other_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(picture_without_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(batch_without_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_and_tiny_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(no_candidates, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_labels_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(one_output, setup, teardown),
        cmocka_unit_test_setup_teardown(any_number_of_threads, setup, teardown),
    };

    return run_test_group(tests);
}
