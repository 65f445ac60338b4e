/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, Gemm, Einsum and their fused forms. */
#include "op_case.h"

#define F32 OCT_DTYPE_F32

static void matmul_follows_numpy(void **state)
{
    fixture *f = *state;
    oct_value *m = constant(f, F32, DIMS(2, 3), NULL), *v = constant(f, F32, DIMS(3), NULL);
    oct_value *many = constant(f, F32, DIMS(2, 3, 1), NULL);
    oct_node *n = NODE(f, &oct_op_mat_mul, 1, m, v);

    assert_gives(n, DIMS(2), (float[]){5, 14});
    assert_gives(NODE(f, &oct_op_mat_mul, 1, v, v), SCALAR, (float[]){5});
    assert_gives(NODE(f, &oct_op_mat_mul, 1, m, many), DIMS(2, 2, 1), (float[]){5, 14, 14, 50});
    assert_infers(n, DIMS(2));
    assert_int_equal(oct_op_mat_mul.macs(n), 6);
    assert_infers(
        NODE(f, &oct_op_mat_mul, 1, unknown(f, F32, DIMS(-1, 4, 3)), unknown(f, F32, DIMS(3, 2))),
        DIMS(-1, 4, 2));
}

static void matmul_of_integers_wraps(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_I32, DIMS(1, 2), (double[]){65536, 3});
    oct_value *y = constant(f, OCT_DTYPE_I32, DIMS(2, 1), (double[]){65536, -5});

    assert_gives(NODE(f, &oct_op_mat_mul, 1, x, y), DIMS(1, 1), (float[]){-15});
}

static void products_over_nothing_are_zero(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(2, 0), NULL), *y = constant(f, F32, DIMS(0, 2), NULL);

    assert_gives(NODE(f, &oct_op_mat_mul, 1, x, y), DIMS(2, 2), (float[]){0, 0, 0, 0});
    assert_gives(NODE(f, &oct_op_gemm, 1, x, y, constant(f, F32, DIMS(2), NULL)), DIMS(2, 2),
                 (float[]){0, 1, 0, 1});
    assert_gives(NODE(f, &oct_op_mat_mul, 1, y, x), DIMS(0, 0), (float[]){0});
}

static void gemm_scales_and_broadcasts(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(3, 2), NULL), *y = constant(f, F32, DIMS(2, 3), NULL);
    oct_value *c = constant(f, F32, DIMS(2, 1), (double[]){10, 20});
    oct_node *n = NODE(f, &oct_op_gemm, 1, x, y, c);

    assert_ok(f->ctx, oct_node_set_int(n, "transA", 1));
    assert_ok(f->ctx, oct_node_set_int(n, "transB", 1));
    assert_ok(f->ctx, oct_node_set_f32(n, "alpha", 2));
    assert_ok(f->ctx, oct_node_set_f32(n, "beta", 0.5f));
    assert_gives(n, DIMS(2, 2), (float[]){25, 61, 36, 90});

    assert_ok(f->ctx, oct_node_infer(n));
    assert_int_equal(oct_op_gemm.macs(n), 12);
}

static void gemm_of_integers_cuts(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_I64, DIMS(1, 1), (double[]){3});
    oct_node *n = NODE(f, &oct_op_gemm, 1, x, x, x);

    assert_ok(f->ctx, oct_node_set_f32(n, "alpha", 0.5f));
    assert_gives(n, DIMS(1, 1), (float[]){7});
}

static void fused_forms_do_both(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 2), (double[]){1, 2});
    oct_value *y = constant(f, F32, DIMS(2, 2), (double[]){1, -1, 1, -1});
    oct_node *n = NODE(f, &oct_op_ms_fused_gemm, 1, x, y);

    assert_ok(f->ctx, oct_node_set_str(n, "activation", "Relu"));
    assert_gives(n, DIMS(1, 2), (float[]){3, 0});
    assert_ok(f->ctx, oct_node_set_str(n, "activation", "Loud"));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "activation 'Loud'");
    n = NODE(f, &oct_op_ms_fused_mat_mul, 1, x, y);
    assert_ok(f->ctx, oct_node_set_int(n, "transB", 1));
    assert_ok(f->ctx, oct_node_set_f32(n, "alpha", 3));
    assert_gives(n, DIMS(1, 2), (float[]){-3, -3});
    assert_ok(f->ctx, oct_node_set_int(n, "transBatchA", 1));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "transBatchA");
}

static void misfits_are_refused(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(2, 3), NULL);

    assert_refuses(NODE(f, &oct_op_mat_mul, 1, x, x), OCT_ERR_SHAPE, "3 columns on the left");
    assert_refuses(NODE(f, &oct_op_mat_mul, 1, x, constant(f, F32, SCALAR, NULL)), OCT_ERR_SHAPE,
                   "scalar");
    assert_refuses(NODE(f, &oct_op_gemm, 1, x, x), OCT_ERR_SHAPE, "3 columns on the left");
    assert_refuses(NODE(f, &oct_op_gemm, 1, x, constant(f, F32, DIMS(3), NULL)), OCT_ERR_SHAPE,
                   "2 and 1 dims");
    assert_refuses(NODE(f, &oct_op_gemm, 1, x, constant(f, F32, DIMS(3, 1), NULL),
                        constant(f, F32, DIMS(2, 5), NULL)),
                   OCT_ERR_SHAPE, "c does not fit");
    assert_refuses(NODE(f, &oct_op_gemm, 1, x, constant(f, F32, DIMS(3, 1), NULL),
                        constant(f, F32, DIMS(0), NULL)),
                   OCT_ERR_SHAPE, "c does not fit");
}

static oct_node *einsum(fixture *f, const char *equation, oct_value *x, oct_value *y)
{
    oct_node *n = NODE(f, &oct_op_einsum, 1, x, y);

    assert_ok(f->ctx, oct_node_set_str(n, "equation", equation));
    return n;
}

static void einsum_reads_equations(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(2, 2), NULL), *y = constant(f, F32, DIMS(2), NULL);
    oct_value *k = constant(f, OCT_DTYPE_I32, DIMS(2, 2), NULL);

    assert_gives(einsum(f, "ij, j -> i", x, y), DIMS(2), (float[]){1, 3});
    assert_gives(einsum(f, "ij,j", x, y), DIMS(2), (float[]){1, 3});
    assert_gives(einsum(f, "ji", x, NULL), DIMS(2, 2), (float[]){0, 2, 1, 3});
    assert_gives(einsum(f, "ii", x, NULL), SCALAR, (float[]){3});
    assert_gives(einsum(f, "ii->i", k, NULL), DIMS(2), (float[]){0, 3});
    assert_gives(einsum(f, "...->", x, NULL), SCALAR, (float[]){6});
    assert_gives(einsum(f, "a...,...->a...", x, y), DIMS(2, 2), (float[]){0, 1, 0, 3});
    assert_gives(einsum(f, "a,b->ba", y, y), DIMS(2, 2), (float[]){0, 0, 0, 1});
}

static void einsum_refuses_nonsense(void **state)
{
    static const struct {
        const char *equation;
        oct_status status;
        const char *reason;
    } cases[] = {
        {"ij,j->ik", OCT_ERR_FORMAT, "not one of an operand"},
        {"ij,j->ii", OCT_ERR_FORMAT, "given twice"},
        {"i,j->ij", OCT_ERR_SHAPE, "names 1 dims of operand 0"},
        {"ij,jj->i", OCT_ERR_SHAPE, "names 2 dims of operand 1"},
        {"ij->i", OCT_ERR_FORMAT, "differ in number"},
        {"ij,j,k->i", OCT_ERR_FORMAT, "differ in number"},
        {"i1,j->i", OCT_ERR_FORMAT, "'1'"},
        {"......ij,j->i", OCT_ERR_FORMAT, "'.'"},
        {"abcdefghi,j->i", OCT_ERR_UNSUPPORTED, "labels a term"},
        {"ij,i->j", OCT_ERR_SHAPE, "sizes 2 and 3"},
    };
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(2, 3), NULL), *y = constant(f, F32, DIMS(3), NULL);

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        assert_refuses(einsum(f, cases[i].equation, x, y), cases[i].status, cases[i].reason);
    assert_refuses(NODE(f, &oct_op_einsum, 1, x), OCT_ERR_FORMAT, "no equation");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(matmul_follows_numpy, setup, teardown),
        cmocka_unit_test_setup_teardown(matmul_of_integers_wraps, setup, teardown),
        cmocka_unit_test_setup_teardown(products_over_nothing_are_zero, setup, teardown),
        cmocka_unit_test_setup_teardown(gemm_scales_and_broadcasts, setup, teardown),
        cmocka_unit_test_setup_teardown(gemm_of_integers_cuts, setup, teardown),
        cmocka_unit_test_setup_teardown(fused_forms_do_both, setup, teardown),
        cmocka_unit_test_setup_teardown(misfits_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(einsum_reads_equations, setup, teardown),
        cmocka_unit_test_setup_teardown(einsum_refuses_nonsense, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
