/* SPDX-License-Identifier: Apache-2.0 */
/* PicoDet's losses, SimOTA and v2, against a second implementation. */
#include "tests/unit/gfl_plain.h"

static plain *first(uint64_t seed)
{
    static plain p;

    p = (plain){.levels = 4,
                .assigner = "simota",
                .topk = 10,
                .radius = 2.5,
                .is_varifocal = true,
                .counts_each = true,
                .at_least_1 = true,
                .offset = .5,
                .margin = 1e-9,
                .weight = {1, 2, .25}};
    fill(&p, seed);
    return &p;
}

static plain *v2(uint64_t seed)
{
    static plain p;

    p = (plain){.levels = 4,
                .assigner = "tal",
                .topk = 13,
                .is_varifocal = true,
                .is_probability = true,
                .at_least_1 = true,
                .offset = .5,
                .margin = 1e-9,
                .weight = {1, 2.5, .5}};
    fill(&p, seed);
    return &p;
}

static void several(void **state, const char *row, plain *(*make)(uint64_t), const char *assigner,
                    int topk)
{
    for (uint64_t seed = 1; seed < 4; seed++) {
        plain *p = make(seed);
        loss_case c;

        p->assigner = assigner;
        p->topk = topk;
        begin(&c, state, row, p);
        loss_set(&c, "assigner", 0, assigner);
        loss_set(&c, "topk", topk, NULL);
        assert_true(compare(&c, p) > PICTURES);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

static void with_simota(void **state)
{
    several(state, "picodet", first, "simota", 10);
}

static void v2_with_tal(void **state)
{
    several(state, "picodet_v2", v2, "tal", 13);
}

static void v2_with_atss(void **state)
{
    several(state, "picodet_v2", v2, "atss", 9);
}

static void pictures_without_boxes(void **state)
{
    static plain *(*const make[])(uint64_t) = {first, v2};
    static const char *const rows[] = {"picodet", "picodet_v2"};

    for (int k = 0; k < 4; k++) {
        plain *p = make[k / 2](5);
        loss_case c;
        int n;

        p->label[0][0][0] = -1;
        if (k % 2) p->label[1][0][0] = -1;
        begin(&c, state, rows[k / 2], p);
        n = compare(&c, p);
        assert_true(k % 2 ? n == 0 : n > 0);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

static void equal_boxes(void **state)
{
    plain *p = first(6);
    loss_case c;

    memcpy(p->label[0][1], p->label[0][0], sizeof(p->label[0][0]));
    begin(&c, state, "picodet", p);
    assert_true(compare(&c, p) > 0);
    for (int k = 0; k < p->n_anchors; k++)
        assert_int_not_equal(p->match[0][k], 1);
}

/* Scores 0 and 1: no infinities. */
static void extreme_scores(void **state)
{
    plain *p = v2(7);
    loss_case c;

    for (int i = 0; i < PICTURES * p->n_anchors * CLASSES; i++)
        p->x[i] = i % 2;
    begin(&c, state, "picodet_v2", p);
    loss_attach(&c);
    loss_run(&c);
    assert_true(isfinite(c.loss) && c.loss > 0);
    for (int64_t i = 0; i < oct_tensor_len(c.grad[0]); i++)
        assert_true(isfinite(oct_tensor_get_f64(c.grad[0], i)));
    loss_end(&c);
}

/* Scores as v2 has them, sqrt(sigmoid * sigmoid): the first loss says which one fits. */
static void aligned_scores(void **state)
{
    const int64_t dims[] = {PICTURES, MAX_ANCHORS, CLASSES};

    for (int k = 0; k < 2; k++) {
        loss_case c = loss_begin(state, k ? "picodet_v2" : "picodet");
        oct_builder *b = &c.f->b;
        oct_value *x, *y;

        loss_input(&c, "images", OCT_DTYPE_F32, 4, (int64_t[]){PICTURES, 3, SIDE, SIDE}, NULL);
        x = oct_emit(b, &oct_op_sigmoid, loss_input(&c, "x", OCT_DTYPE_F64, 3, dims, NULL), NULL,
                     NULL);
        y = oct_emit(b, &oct_op_sigmoid, loss_input(&c, "y", OCT_DTYPE_F64, 3, dims, NULL), NULL,
                     NULL);
        x = oct_emit(b, &oct_op_sqrt, oct_emit(b, &oct_op_mul, x, y, NULL), NULL, NULL);
        assert_ok(c.f->ctx, oct_graph_add_output(c.f->g, x));
        loss_pred(&c, "z", &oct_op_identity, 3,
                  (int64_t[]){PICTURES, MAX_ANCHORS, (int64_t)4 * BINS}, NULL);
        c.job.labels = loss_input(&c, "labels", OCT_DTYPE_F32, 3,
                                  (int64_t[]){PICTURES, BOXES, OCT_LABEL_SIZE}, NULL);
        if (!k)
            assert_fails(c.f->ctx, c.row->attach(&c.job, &c.found), OCT_ERR_UNSUPPORTED,
                         "picodet_v2");
        else {
            loss_attach(&c);
            loss_run(&c);
            assert_ptr_equal(c.found.loss->producer->in[0], x);
        }
        loss_end(&c);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

static void other_networks_are_refused(void **state)
{
    loss_case c = loss_begin(state, "picodet");

    loss_input(&c, "images", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, SIDE, SIDE}, NULL);
    loss_pred(&c, "x", &oct_op_identity, 2, (int64_t[]){1, 10}, NULL);
    c.job.labels =
        loss_input(&c, "labels", OCT_DTYPE_F32, 3, (int64_t[]){1, BOXES, OCT_LABEL_SIZE}, NULL);
    assert_fails(c.f->ctx, c.row->attach(&c.job, &c.found), OCT_ERR_UNSUPPORTED, "4 * bins");
    loss_end(&c);
}

static void any_number_of_threads(void **state)
{
    plain *p = v2(20);
    loss_case c;

    begin(&c, state, "picodet_v2", p);
    loss_attach(&c);
    loss_check_threads(&c);
    loss_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(with_simota, setup, teardown),
        cmocka_unit_test_setup_teardown(v2_with_tal, setup, teardown),
        cmocka_unit_test_setup_teardown(v2_with_atss, setup, teardown),
        cmocka_unit_test_setup_teardown(pictures_without_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(extreme_scores, setup, teardown),
        cmocka_unit_test_setup_teardown(aligned_scores, setup, teardown),
        cmocka_unit_test_setup_teardown(other_networks_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(any_number_of_threads, setup, teardown),
    };

    return run_test_group(tests);
}
