/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of YOLOv8: ultralytics' values, gradients, tiny boxes. */
#include "tests/unit/dfl_head_case.h"

/* By ultralytics 8.4.190 in float64. */
static void values(void **state)
{
    static const expected want = {
        {8.7075525116, 81.5805961022, 12.0436353002}, 68.00999512, 24.72878203};
    dfl_case c;

    make_case(&c, *state, &oct_op_yolov8_loss, 16);
    expect_values(&c, &want, 1e-8);
}

static void slopes(void **state)
{
    static const oct_dfl_loss loss = {
        .tal = {.topk = 10, .alpha = .5, .beta = 6, .is_ciou = true, .min_side = 16},
        .is_ciou = true,
        .weight = {.5, 7.5, 1.5},
        .times_batch = true};
    static double d_reg[PICTURES * ANCHORS * 4 * 16], scrap[PICTURES * ANCHORS * 4 * 16];
    oct_arena *arena;
    oct_dfl_head h;
    dfl_case c;

    make_case(&c, *state, &oct_op_yolov8_loss, 16);
    /* CIoU's weight of the aspect ratio is not differentiated: classes and distances alone. */
    oct_dfl_loss without = loss;
    without.weight[OCT_DFL_BOXES] = 0;
    check_slopes(&c, &without);
    /* Its slopes are tested by themselves; here, that they come through the distributions. */
    arena = oct_arena_new(c.f->ctx);
    assert_non_null(arena);
    without = loss;
    without.weight[OCT_DFL_DISTANCES] = 0;
    held_head(&c, &h, &without, arena, NULL, d_reg);
    const double before = held_loss(&h, &without);
    h.d_reg = scrap;
    double squares = 0;
    for (size_t i = 0; i < OCT_COUNT(d_reg); i++) {
        squares += d_reg[i] * d_reg[i];
        c.reg[i] -= 1e-4 * d_reg[i];
    }
    near("the gain of a step", (before - held_loss(&h, &without)) / (1e-4 * squares), 1, .1);
    oct_arena_free(arena);
}

/* The loss grows with the batch: the same picture twice more is nine times the loss of one. */
static void times_the_batch(void **state)
{
    oct_tensor *out[N_RESULTS];
    double sum = 0;
    dfl_case c;

    make_case(&c, *state, &oct_op_yolov8_loss, 16);
    for (size_t i = 0; i < OCT_COUNT(c.labels); i++)
        c.labels[i] = -1;
    assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F64, out));
    /* Without boxes only the cross entropy with 0 is left, and the normalizer is 1. */
    for (size_t i = 0; i < OCT_COUNT(c.cls); i++)
        sum += log1p(exp(c.cls[i]));
    near("the loss", oct_tensor_get_f64(out[LOSS], 0), .5 * sum * PICTURES, 1e-12);
    assert_true(sum_of(out[D_REG], true) == 0);
    case_free(out);
}

/* A box that holds no anchor's point is enlarged, so that some anchors learn it. */
static void tiny_box(void **state)
{
    oct_tensor *out[N_RESULTS];
    dfl_case c;

    make_case(&c, *state, &oct_op_yolov8_loss, 16);
    for (size_t i = 0; i < OCT_COUNT(c.labels); i++)
        c.labels[i] = -1;
    memcpy(label_of(&c, 1, 0), (double[]){1, 28.5, 28.5, 35.5, 35.5}, 5 * sizeof(double));
    assert_ok(c.f->ctx, case_run(&c, OCT_DTYPE_F64, out));
    assert_true(oct_tensor_get_f64(out[PARTS], 0) > 0);
    assert_true(sum_of(out[D_REG], true) > 0);
    case_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values, setup, teardown),
        cmocka_unit_test_setup_teardown(slopes, setup, teardown),
        cmocka_unit_test_setup_teardown(times_the_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(tiny_box, setup, teardown),
    };

    return run_test_group(tests);
}
