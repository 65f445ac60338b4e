/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of matrix products and of operators that move data. */
#include "tests/unit/grad_case.h"

static void products(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(mat_mul, "AxB BxC", NULL),
        GRAD_CASE(mat_mul, "DxAxB BxC", NULL),
        GRAD_CASE(mat_mul, "ExDxAxB =BxC", NULL),
        GRAD_CASE(mat_mul, "D~xAxB DxBxC", NULL),
        GRAD_CASE(mat_mul, "E~xD~xAxB D~xBxC", NULL),
        GRAD_CASE(mat_mul, "AxB DxBxC", NULL),
        GRAD_CASE(mat_mul, "=AxB D~xBxC", NULL),
        GRAD_CASE(mat_mul, "B BxC", NULL),
        GRAD_CASE(mat_mul, "AxB B", NULL),
        GRAD_CASE(mat_mul, "B B", NULL),
        GRAD_CASE(mat_mul, "B DxBxC", NULL),
        GRAD_CASE(mat_mul, "DxAxB B", NULL),
        GRAD_CASE(ms_fused_mat_mul, "AxB BxC", "alpha=.7"),
        GRAD_CASE(ms_fused_mat_mul, "BxA BxC", "alpha=.7 transA=1"),
        GRAD_CASE(ms_fused_mat_mul, "D~xBxA DxCxB", "transA=1 transB=1"),
        GRAD_CASE(ms_fused_mat_mul, "DxAxB CxB", "transB=1 alpha=2"),
        GRAD_CASE(ms_fused_mat_mul, "DxBxA CxB", "transA=1 transB=1"),
        GRAD_CASE(gemm, "AxB BxC", NULL),
        GRAD_CASE(gemm, "AxB BxC C~", "alpha=.5 beta=-2"),
        GRAD_CASE(gemm, "BxA BxC A~xC~", "transA=1 beta=.5"),
        GRAD_CASE(gemm, "AxB CxB scalar", "transB=1 alpha=3"),
        GRAD_CASE(gemm, "BxA CxB A~xC", "transA=1 transB=1 alpha=.3"),
        GRAD_CASE(gemm, "=AxB =BxC C", NULL),
        GRAD_CASE(gemm, "=AxB BxC =C", NULL),
        GRAD_CASE(ms_fused_gemm, "AxB BxC C", "alpha=.5"),
        GRAD_CASE(ms_fused_gemm, "BxA BxC =C", "transA=1 activation=Relu"),
        GRAD_CASE(ms_fused_gemm, "AxB CxB C",
                  "transB=1 activation=LeakyRelu activation_alpha=.3 beta=2"),
        GRAD_CASE(ms_fused_gemm, "AxB BxC", "activation=Sigmoid"),
        GRAD_CASE(einsum, "AxB BxC", "equation=ij,jk->ik"),
        GRAD_CASE(einsum, "DxAxB DxBxC", "equation=bij,bjk->bki"),
        GRAD_CASE(einsum, "AxB", "equation=ij->j"),
        GRAD_CASE(einsum, "AxBxC", "equation=ijk->"),
        GRAD_CASE(einsum, "AxA", "equation=ii->i"),
        GRAD_CASE(einsum, "AxAxB B", "equation=iij,j->j"),
        GRAD_CASE(einsum, "AxAxA", "equation=iii"),
        GRAD_CASE(einsum, "DxAxB D~xBxC", "equation=...ij,...jk->...ik"),
        GRAD_CASE(einsum, "ExDxAxB BxC", "equation=...ij,jk"),
        GRAD_CASE(einsum, "A B C", "equation=i,j,k->kij"),
        GRAD_CASE(einsum, "AxB =BxC CxA", "equation=ij,jk,ki->i"),
        GRAD_CASE(einsum, "A~xB AxB~", "equation=ij,ij->ij"),
        GRAD_CASE(einsum, "AxBxC CxB", "equation=abc,cd->ad"),
    };

    (void)state;
    check_grads(cases);
}

static void views(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(reshape, "2xAx3 i:3,-1", NULL),
        GRAD_CASE(reshape, "AxBxC i:0,-1", NULL),
        GRAD_CASE(reshape, "2x0x3 i:3,2,0", "allowzero=1"),
        GRAD_CASE(flatten, "AxBxC", "axis=0..3"),
        GRAD_CASE(squeeze, "Ax1xBx1 i:1", NULL),
        GRAD_CASE(squeeze, "2x1x3x1", NULL),
        GRAD_CASE(unsqueeze, "AxB i:0,-1", NULL),
        GRAD_CASE(expand, "AxB i:3,1,1", NULL),
        GRAD_CASE(expand, "3x1 i:2,1,4", NULL),
        GRAD_CASE(expand, "scalar i:2,2", NULL),
        GRAD_CASE(tile, "AxBxC i:2,1,3", NULL),
        GRAD_CASE(tile, "AxB i:1,1", NULL),
        GRAD_CASE(transpose, "AxBxC", NULL),
        GRAD_CASE(transpose, "AxBxCxD", "perm=2,0,3,1"),
        GRAD_CASE(depth_to_space, "Ax8xBxC", "blocksize=2"),
        GRAD_CASE(depth_to_space, "Ax8xBxC", "blocksize=2 mode=CRD"),
        GRAD_CASE(depth_to_space, "1x18x2x1", "blocksize=3 mode=CRD"),
        GRAD_CASE(space_to_depth, "AxBx4x2", "blocksize=2"),
        GRAD_CASE(reverse_sequence, "4x3xC i:1,4,2", "time_axis=0 batch_axis=1"),
    };

    (void)state;
    check_grads(cases);
}

static void parts(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(concat, "AxBxC AxDxC =AxExC", "axis=1"),
        GRAD_CASE(concat, "AxB =AxC AxD", "axis=-1"),
        GRAD_CASE(concat, "AxB", "axis=0"),
        {&oct_op_split, "AxBx7 i:2,4,1", "axis=-1", 3, 0, 0},
        {&oct_op_split, "5xB", "axis=0", 2, 0, 0},
        GRAD_CASE(slice, "5x6xA i:1,0 i:4,6", NULL),
        GRAD_CASE(slice, "5x6xA i:-1,5 i:-9,1 i:0,1 i:-2,-1", NULL),
        GRAD_CASE(slice, "Ax6xB i:1 i:100 i:1 i:2", NULL),
        GRAD_CASE(slice, "Ax6xB i:4 i:2 i:1", NULL),
        GRAD_CASE(pad, "AxB i:1,0,2,3", NULL),
        GRAD_CASE(pad, "3x4 i:-1,2,1,-2", NULL),
        GRAD_CASE(pad, "AxBxC i:2,1 scalar i:1", NULL),
        GRAD_CASE(pad, "=AxBxC i:2,1 1 i:1", NULL),
        GRAD_CASE(pad, "3x4 i:2,0,1,3", "mode=reflect"),
        GRAD_CASE(pad, "3x4xC i:-1,2,0,2,-1,0", "mode=reflect"),
        GRAD_CASE(pad, "2x3xC i:3,1 - i:-2", "mode=edge"),
        GRAD_CASE(pad, "AxBxC i:1,2,0,2,1,1", "mode=edge"),
        GRAD_CASE(pad, "AxB i:2,1,3,2", "mode=wrap"),
        GRAD_CASE(center_crop_pad, "5x2xC i:3,5", "axes=0,1"),
        GRAD_CASE(center_crop_pad, "AxB i:2,3", NULL),
        GRAD_CASE(trilu, "AxBxC", "upper=0..1"),
        GRAD_CASE(trilu, "4x3 i:1", "upper=0..1"),
        GRAD_CASE(cum_sum, "AxBxC i:1", "exclusive=0..1 reverse=0..1"),
        GRAD_CASE(cum_sum, "AxB i:-2", "exclusive=0..1 reverse=0..1"),
    };

    (void)state;
    check_grads(cases);
}

static void indices(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(gather, "4xAxB iCxD<4", NULL),
        GRAD_CASE(gather, "Ax4xB iCxD<4", "axis=1"),
        GRAD_CASE(gather, "AxBx3 i:2,-1,0,2", "axis=-1"),
        GRAD_CASE(gather, "AxBx3 iscalar<3", "axis=-1"),
        GRAD_CASE(gather_elements, "4xB iAxB<4", "axis=0"),
        GRAD_CASE(gather_elements, "Ax3x2 iAx5x2<3", "axis=-2"),
        GRAD_CASE(gather_nd, "3x3xC i4x2<3", NULL),
        GRAD_CASE(gather_nd, "3x3xC i4x2x1<3", NULL),
        GRAD_CASE(gather_nd, "2x3xC i2x4x1<3", "batch_dims=1"),
        GRAD_CASE(gather_nd, "2x3x4 i2x3x1<4", "batch_dims=2"),
        GRAD_CASE(gather_nd, "AxBx3xC iAxBxDx1<3", "batch_dims=2"),
        GRAD_CASE(scatter_elements, "5xB i1xB<5 1xB", NULL),
        GRAD_CASE(scatter_elements, "Ax5 iAx1<5 Ax1", "axis=1"),
        GRAD_CASE(scatter_elements, "Ax5 iAx7<5 Ax7", "axis=1 reduction=add"),
        GRAD_CASE(scatter_elements, "=Ax5 iAx1<5 Ax1", "axis=1"),
        GRAD_CASE(scatter, "5xB i1xB<5 1xB", "axis=0"),
        GRAD_CASE(scatter_nd, "4xB i1x1<4 1xB", NULL),
        GRAD_CASE(scatter_nd, "4x3xB i5x2<3 5xB", "reduction=add"),
        GRAD_CASE(scatter_nd, "4xB i1x1<4 =1xB", NULL),
        {&oct_op_top_k, "Ax5xC i:2", "axis=1 largest=0..1", 2, 0, 0},
        {&oct_op_top_k, "AxBx4 i:3", "largest=0..1", 1, 0, 0},
    };

    (void)state;
    check_grads(cases);
}

static void dropout(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(dropout, "AxB f:.4", NULL),
        GRAD_CASE(dropout, "AxB f:.4 b:0", NULL),
        GRAD_CASE(dropout, "8x9 f:.4 b:1", "seed=3"),
        GRAD_CASE(dropout, "8x9 - b:1", "seed=5"),
        {&oct_op_dropout, "8x9 f:.4 b:1", "seed=3", 2, 0, 0},
        {&oct_op_dropout, "8x9 - b:1", "seed=4", 2, 0, 0},
    };

    (void)state;
    check_grads(cases);
}

/* A reduction that multiplies is refused, and named. */
static void other_reductions_are_refused(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F64, 1, (int64_t[]){3}), *y, *dx;
    oct_node *n = oct_emit_node(&f->b, &oct_op_scatter_elements,
                                (oct_value *[]){x, oct_ints(&f->b, (int64_t[]){1}, 1), x}, 3, 1);

    int32_t n_nodes;

    oct_emit_str(&f->b, n, "reduction", "mul");
    assert_ok(f->ctx, oct_node_set_input(n, 2, oct_grad_part(&f->b, x, 0, 0, 1)));
    oct_node_move_before(n, NULL);
    y = oct_emitted(&f->b, n);
    y = oct_grad_reduce(&f->b, &oct_op_reduce_sum, y, (int64_t[]){0}, 1, false);
    assert_ok(f->ctx, f->b.status);
    n_nodes = f->g->n_nodes;
    assert_fails(f->ctx, oct_grad(f->g, y, &x, 1, &dx), OCT_ERR_UNSUPPORTED, "'mul'");
    assert_int_equal(f->g->n_nodes, n_nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products, setup, teardown),
        cmocka_unit_test_setup_teardown(views, setup, teardown),
        cmocka_unit_test_setup_teardown(parts, setup, teardown),
        cmocka_unit_test_setup_teardown(indices, setup, teardown),
        cmocka_unit_test_setup_teardown(dropout, setup, teardown),
        cmocka_unit_test_setup_teardown(other_reductions_are_refused, setup, teardown),
    };

    return run_test_group(tests);
}
