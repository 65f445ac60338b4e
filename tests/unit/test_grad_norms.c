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

static void attention(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(attention, "AxBxCxD AxBxExD AxBxExF", NULL),
        GRAD_CASE(attention, "Ax4xCx3 Ax2xEx3 Ax2xExF", "scale=.4"),
        GRAD_CASE(attention, "AxBxCxD =AxBxExD AxBxExF AxBxCxE", "softcap=1.5"),
        GRAD_CASE(attention, "AxBxCxD AxBxExD =AxBxExF CxE", NULL),
        GRAD_CASE(attention, "AxBx4xD AxBx4xD AxBx4xF", "is_causal=1"),
        GRAD_CASE(attention, "AxBx4xD AxBx5xD AxBx5xF",
                  "left_window_size=1 right_window_size=0..2"),
        GRAD_CASE(attention, "AxBx3xD AxBx4xD AxBx4xF b3x4", "softcap=0.8"),
        GRAD_CASE(attention, "AxBx3xD AxBx4xD AxBx4xF bAx1x3x4", "is_causal=1"),
        GRAD_CASE(attention, "AxBx6 AxCx6 AxCx9", "q_num_heads=3 kv_num_heads=3"),
        GRAD_CASE(attention, "AxBx8 AxCx4 AxCx6", "q_num_heads=4 kv_num_heads=2 is_causal=1"),
        {&oct_op_attention, "AxBx2xD AxBx3xD AxBx3xF - AxBxGxD AxBxGxF", "is_causal=1", 3, 0, 0},
        {&oct_op_attention, "AxBx2xD =AxBx3xD =AxBx3xF - AxBxGxD AxBxGxF", NULL, 3, 0, 0},
        GRAD_CASE(rotary_embedding, "AxBxCx4 =AxCx2 =AxCx2", "interleaved=0..1"),
        GRAD_CASE(rotary_embedding, "AxCx12 =AxCx1 =AxCx1", "num_heads=2 rotary_embedding_dim=2"),
        GRAD_CASE(rotary_embedding, "AxBxCx4 =5x2 =5x2 iAxC<5", "interleaved=0..1"),
    };

    (void)state;
    check_grads(cases);
}

static void losses(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(softmax_cross_entropy_loss, "Ax4 iA<4", NULL),
        GRAD_CASE(softmax_cross_entropy_loss, "Ax4 iA<4 =4", "reduction=sum"),
        {&oct_op_softmax_cross_entropy_loss, "Ax4xCxD iAxCxD<4", "reduction=none", 2, 0, 0},
        {&oct_op_softmax_cross_entropy_loss, "3x4xD i3xD<4", "ignore_index=2", 2, 0, 0},
        GRAD_CASE(softmax_cross_entropy_loss, "3x4 i:1,-100,3", "ignore_index=-100"),
        GRAD_CASE(negative_log_likelihood_loss, "Ax4 iA<4", NULL),
        GRAD_CASE(negative_log_likelihood_loss, "Ax4xC iAxC<4 =4", "reduction=none"),
        GRAD_CASE(negative_log_likelihood_loss, "5x4xC i5xC<4 =4", "ignore_index=1"),
        GRAD_CASE(negative_log_likelihood_loss, "Ax4xC iAxC<4", "reduction=sum ignore_index=0"),
    };

    (void)state;
    check_grads(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows, setup, teardown),
        cmocka_unit_test_setup_teardown(channels, setup, teardown),
        cmocka_unit_test_setup_teardown(attention, setup, teardown),
        cmocka_unit_test_setup_teardown(losses, setup, teardown),
    };

    return run_test_group(tests);
}
