/* SPDX-License-Identifier: Apache-2.0 */
/* EfficientNMS_TRT by hand. */
#include "op_case.h"

enum { ROWS = 3 };

static oct_node *nms(fixture *f, const double *scores, const char *attr, int64_t v)
{
    /* Two boxes that overlap by more than a half, and one beside them. */
    static const double corners[] = {0, 0, 10, 10, 10, 10, 1, 1, 20, 20, 30, 30};
    oct_value *in[] = {constant(f, OCT_DTYPE_F32, DIMS(1, 3, 4), corners),
                       constant(f, OCT_DTYPE_F32, DIMS(1, 3, 2), scores)};
    oct_node *n = oct_emit_node(&f->b, &oct_op_trt_efficient_nms, in, 2, 4);

    assert_non_null(n);
    assert_ok(f->ctx, oct_node_set_int(n, "max_output_boxes", ROWS));
    if (attr) assert_ok(f->ctx, oct_node_set_int(n, attr, v));
    assert_ok(f->ctx, oct_node_infer(n));
    return n;
}

/* Number, scores and classes of what is left. */
static void check(oct_node *n, int32_t count, const float *scores, const int32_t *classes)
{
    oct_tensor *in[] = {n->in[0]->data, n->in[1]->data}, *out[4] = {NULL};

    assert_ok(n->graph->ctx, oct_node_eval(n, in, out, NULL));
    assert_int_equal(((int32_t *)out[0]->data)[0], count);
    for (int i = 0; i < ROWS; i++) {
        assert_float_equal(((float *)out[2]->data)[i], scores[i], 1e-6);
        assert_int_equal(((int32_t *)out[3]->data)[i], classes[i]);
        for (int k = 0; k < 4 && i >= count; k++) /* rows beyond are zero */
            assert_float_equal(((float *)out[1]->data)[4 * i + k], 0, 0);
    }
    for (int i = 0; i < 4; i++)
        oct_tensor_unref(out[i]);
}

static void boxes_are_suppressed_within_their_class(void **state)
{
    static const double scores[] = {.9, .1, .8, .7, .5, .2};

    /* 0.5 is kept: the threshold itself counts. The second box stays as class 1. */
    check(nms(*state, scores, NULL, 0), 3, (float[]){.9f, .7f, .5f}, (int32_t[]){0, 1, 0});
    check(nms(*state, scores, "class_agnostic", 1), 2, (float[]){.9f, .5f, 0},
          (int32_t[]){0, 0, 0});
    check(nms(*state, scores, "background_class", 0), 1, (float[]){.7f, 0, 0},
          (int32_t[]){1, 0, 0});
}

static void logits_are_compared_as_logits(void **state)
{
    static const double scores[] = {0, -.1, -5, -5, 2, -5};

    check(nms(*state, scores, "score_activation", 1), 2, (float[]){.880797f, .5f, 0},
          (int32_t[]){0, 0, 0});
}

static void shapes_must_fit(void **state)
{
    fixture *f = *state;
    oct_value *in[] = {constant(f, OCT_DTYPE_F32, DIMS(1, 3, 4), NULL),
                       constant(f, OCT_DTYPE_F32, DIMS(1, 2, 2), NULL)};
    oct_node *n = oct_emit_node(&f->b, &oct_op_efficient_nms, in, 2, 4);

    assert_int_equal(oct_node_infer(n), OCT_ERR_SHAPE);
    in[1] = constant(f, OCT_DTYPE_F32, DIMS(1, 3, 2), NULL);
    n = oct_emit_node(&f->b, &oct_op_efficient_nms, in, 2, 4);
    assert_ok(f->ctx, oct_node_set_int(n, "max_output_boxes", -1));
    assert_int_equal(oct_node_infer(n), OCT_ERR_SHAPE);
    in[0] = constant(f, OCT_DTYPE_F32, DIMS(1, 3, 0, 4), NULL); /* boxes of no class */
    n = oct_emit_node(&f->b, &oct_op_efficient_nms, in, 2, 4);
    assert_int_equal(oct_node_infer(n), OCT_ERR_SHAPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(boxes_are_suppressed_within_their_class, setup, teardown),
        cmocka_unit_test_setup_teardown(logits_are_compared_as_logits, setup, teardown),
        cmocka_unit_test_setup_teardown(shapes_must_fit, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
