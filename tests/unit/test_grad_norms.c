/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of normalisations, of attention and of the losses that ONNX has. */
#include "tests/unit/grad_case.h"

static void rows(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(layer_normalization, "AxBx5 5 5", NULL),
        GRAD_CASE(layer_normalization, "Ax3x4 3x4 4", "axis=1 epsilon=.01"),
        GRAD_CASE(layer_normalization, "AxBx5 B~x5 5", "axis=-1"),
        GRAD_CASE(layer_normalization, "AxBx5 =5", NULL),
        GRAD_CASE(layer_normalization, "=AxBx5 5 5", NULL),
        GRAD_CASE(layer_normalization, "=AxBx5 =5 5", NULL),
        GRAD_CASE(layer_normalization, "2x3x4 scalar", "axis=0"),
        GRAD_CASE(rms_normalization, "AxBx5 5", NULL),
        GRAD_CASE(rms_normalization, "Ax3xC C~", "axis=1 epsilon=.1"),
        GRAD_CASE(rms_normalization, "AxBx5 =5", NULL),
        {&oct_op_ms_skip_layer_normalization, "AxBx5 AxBx5 5 5 5", NULL, 1, 0, 0},
        {&oct_op_ms_skip_layer_normalization, "AxBx5 =AxBx5 5", "epsilon=.01", 1, 0, 0},
        GRAD_CASE(lp_normalization, "AxBx4", "axis=-3..2 p=2"),
        GRAD_CASE(lp_normalization, "3x4xC", "axis=-3..1 p=1"),
        GRAD_CASE(mean_variance_normalization, "2xBx3xD", NULL),
        GRAD_CASE(mean_variance_normalization, "AxBx4", "axes=-1"),
    };

    (void)state;
    check_grads(cases);
}

static void channels(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(instance_normalization, "AxBx3x3 B B", NULL),
        GRAD_CASE(instance_normalization, "AxBx5 =B B", "epsilon=.1"),
        GRAD_CASE(instance_normalization, "AxBx2x2x2 B =B", NULL),
        GRAD_CASE(group_normalization, "Ax6x2xD 6 6", "num_groups=3"),
        GRAD_CASE(group_normalization, "Ax4x3 4 4", "num_groups=1 epsilon=.01"),
        GRAD_CASE(group_normalization, "Ax4 4 4", "num_groups=2"),
        GRAD_CASE(group_normalization, "=Ax4x3 4 =4", "num_groups=2"),
        GRAD_CASE(lrn, "AxBxCxD", "size=3 alpha=.4 beta=.6 bias=1.5"),
        GRAD_CASE(lrn, "Ax5xC", "size=4 alpha=.9"),
        GRAD_CASE(lrn, "Ax3", "size=1 alpha=.9"),
    };

    (void)state;
    check_grads(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows, setup, teardown),
        cmocka_unit_test_setup_teardown(channels, setup, teardown),
    };

    return run_test_group(tests);
}
