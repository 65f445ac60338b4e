/* SPDX-License-Identifier: Apache-2.0 */
/* Strided copies, and the rows that only move elements or change shapes. */
#include "op_case.h"

#include "base/rng.h"
#include "op/move.h"

/* The same loops without any cleverness. */
static void slow_copy(int rank, const int64_t *n, const int64_t *src, const int64_t *dst,
                      const uint8_t *from, uint8_t *to, int64_t size)
{
    int64_t total = 1;

    for (int d = 0; d < rank; d++)
        total *= n[d];
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i, s = 0, t = 0;

        for (int d = rank - 1; d >= 0; d--) {
            s += rest % n[d] * src[d];
            t += rest % n[d] * dst[d];
            rest /= n[d];
        }
        memcpy(to + t * size, from + s * size, (size_t)size);
    }
}

static void moves_as_simple_loops_do(void **state)
{
    static const oct_dtype types[] = {OCT_DTYPE_U8, OCT_DTYPE_F16, OCT_DTYPE_F32, OCT_DTYPE_F64,
                                      OCT_DTYPE_C128};
    static uint8_t from[1 << 20], a[1 << 20], b[1 << 20];
    oct_rng rng;

    (void)state;
    oct_rng_init(&rng, 7);
    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (uint8_t)oct_rng_u64(&rng);
    for (int round = 0; round < 400; round++) {
        const oct_dtype t = types[oct_rng_below(&rng, 5)];
        const int rank = (int)oct_rng_below(&rng, 6);
        int64_t n[6], src[6], dst[6], perm[6], s = 1;
        oct_move m;

        for (int d = 0; d < rank; d++) {
            n[d] = 1 + (int64_t)oct_rng_below(&rng, rank < 3 ? 70 : 6);
            perm[d] = d;
        }
        for (int d = rank - 1; d > 0; d--) {
            const int64_t k = (int64_t)oct_rng_below(&rng, (uint64_t)d + 1), tmp = perm[d];
            perm[d] = perm[k];
            perm[k] = tmp;
        }
        for (int d = rank - 1; d >= 0; d--) { /* dense where it goes */
            dst[d] = s;
            s *= n[d];
        }
        s = 1;
        for (int d = rank - 1; d >= 0; d--) { /* permuted, or repeated, where it comes from */
            src[perm[d]] = oct_rng_below(&rng, 5) == 0 ? 0 : s;
            s *= n[perm[d]];
        }
        oct_move_init(&m);
        for (int d = 0; d < rank; d++)
            oct_move_add(&m, n[d], src[d], dst[d]);
        memset(a, 0, sizeof(a));
        memset(b, 0, sizeof(b));
        oct_move_run(&m, t, from, 0, a, 0, 2);
        slow_copy(rank, n, src, dst, from, b, (int64_t)oct_dtype_size(t));
        assert_memory_equal(a, b, sizeof(a));
    }
}

static void packed_elements_move_one_by_one(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_I4, DIMS(3, 3), (double[]){1, 2, 3, -4, 5, 6, 7, -8, 0});
    oct_node *n = NODE(f, &oct_op_transpose, 1, x);

    assert_gives(n, DIMS(3, 3), (float[]){1, -4, 7, 2, 5, -8, 3, 6, 0});
    n = NODE(f, &oct_op_concat, 1, x, x);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    assert_gives(n, DIMS(3, 6),
                 (float[]){1, 2, 3, 1, 2, 3, -4, 5, 6, -4, 5, 6, 7, -8, 0, 7, -8, 0});
    n = NODE(f, &oct_op_gather, 1, x, INTS(f, 2, -3));
    assert_gives(n, DIMS(2, 3), (float[]){7, -8, 0, 1, 2, 3});
}

static void slice_clamps_and_steps_backwards(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(2, 5), NULL);

    assert_gives(NODE(f, &oct_op_slice, 1, x, INTS(f, 4), INTS(f, -100), INTS(f, 1), INTS(f, -2)),
                 DIMS(2, 3), (float[]){4, 2, 0, 9, 7, 5});
    assert_gives(NODE(f, &oct_op_slice, 1, x, INTS(f, INT64_MIN, 2), INTS(f, INT64_MAX, INT64_MAX)),
                 DIMS(2, 3), (float[]){2, 3, 4, 7, 8, 9});
    assert_gives(NODE(f, &oct_op_slice, 1, x, INTS(f, INT64_MAX), INTS(f, INT64_MIN), INTS(f, -1),
                      INTS(f, INT64_MIN)),
                 DIMS(2, 1), (float[]){4, 9});
    assert_gives(NODE(f, &oct_op_slice, 1, x, INTS(f, 3), INTS(f, 1), INTS(f, 1)), DIMS(2, 0),
                 NULL);
    assert_refuses(NODE(f, &oct_op_slice, 1, x, INTS(f, 0), INTS(f, 1), INTS(f, 1), INTS(f, 0)),
                   OCT_ERR_SHAPE, "step");
    assert_refuses(NODE(f, &oct_op_slice, 1, x, INTS(f, 0, 0), INTS(f, 1, 1), INTS(f, 1, -1)),
                   OCT_ERR_SHAPE, "twice");
    assert_refuses(NODE(f, &oct_op_slice, 1, x, INTS(f, 0), INTS(f, 1), INTS(f, 2)), OCT_ERR_SHAPE,
                   "axis");
}

static void slice_of_unknown_bounds_keeps_other_dims(void **state)
{
    fixture *f = *state;
    oct_value *x = unknown(f, OCT_DTYPE_F32, DIMS(2, -1, 7));
    oct_value *starts = unknown(f, OCT_DTYPE_I64, DIMS(1)), *ends = INTS(f, 3);

    assert_infers(NODE(f, &oct_op_slice, 1, x, starts, ends, INTS(f, 2)), DIMS(2, -1, -1));
    assert_infers(NODE(f, &oct_op_slice, 1, x, INTS(f, 0), ends, INTS(f, 2)), DIMS(2, -1, 3));
    assert_infers(NODE(f, &oct_op_slice, 1, x, INTS(f, 0), ends, starts), DIMS(-1, -1, -1));
}

static void split_takes_uneven_parts(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(7), NULL);
    oct_node *n = NODE(f, &oct_op_split, 4, x);
    oct_tensor *out[4] = {NULL};

    assert_ok(f->ctx, evaluate(n, out));
    assert_all_close(out[2], (float[]){4, 5}, 2, 0);
    assert_all_close(out[3], (float[]){6}, 1, 0);
    for (int i = 0; i < 4; i++)
        oct_tensor_unref(out[i]);
    assert_gives(NODE(f, &oct_op_split, 2, x, INTS(f, 1, 6)), DIMS(1), (float[]){0});
    assert_refuses(NODE(f, &oct_op_split, 2, x, INTS(f, 1, 5)), OCT_ERR_SHAPE, "sum");
    assert_refuses(NODE(f, &oct_op_split, 2, x, INTS(f, -1, 8)), OCT_ERR_SHAPE, "part 0");
}

static void reshape_solves_what_is_left_open(void **state)
{
    fixture *f = *state;
    oct_value *x = unknown(f, OCT_DTYPE_F32, DIMS(-1, 3, 4));
    oct_value *y = unknown(f, OCT_DTYPE_F32, DIMS(2, 3, 4));
    oct_node *n;

    assert_infers(NODE(f, &oct_op_reshape, 1, x, INTS(f, 0, -1)), DIMS(-1, 12));
    assert_infers(NODE(f, &oct_op_reshape, 1, x, INTS(f, -1, 12)), DIMS(-1, 12));
    assert_infers(NODE(f, &oct_op_reshape, 1, y, INTS(f, -1, 6)), DIMS(4, 6));
    assert_infers(NODE(f, &oct_op_reshape, 1, y, unknown(f, OCT_DTYPE_I64, DIMS(3))),
                  DIMS(-1, -1, -1));
    n = NODE(f, &oct_op_reshape, 1, y, INTS(f, -1, -1));
    assert_fails(f->ctx, oct_node_infer(n), OCT_ERR_SHAPE, "two -1");
    n = NODE(f, &oct_op_reshape, 1, y, INTS(f, 5, 5));
    assert_fails(f->ctx, oct_node_infer(n), OCT_ERR_SHAPE, "cannot become");
    n = NODE(f, &oct_op_reshape, 1, y, INTS(f, -1, INT64_MAX, INT64_MAX));
    assert_fails(f->ctx, oct_node_infer(n), OCT_ERR_SHAPE, "too many");
}

static void eight_dims_and_none(void **state)
{
    fixture *f = *state;
    oct_value *one = constant(f, OCT_DTYPE_F32, SCALAR, (double[]){5});
    oct_value *deep = constant(f, OCT_DTYPE_F32, DIMS(1, 2, 1, 1, 2, 1, 1, 2), NULL);

    assert_gives(NODE(f, &oct_op_transpose, 1, one), SCALAR, (float[]){5});
    assert_gives(NODE(f, &oct_op_transpose, 1, deep), DIMS(2, 1, 1, 2, 1, 1, 2, 1),
                 (float[]){0, 4, 2, 6, 1, 5, 3, 7});
    assert_gives(NODE(f, &oct_op_expand, 1, one, INTS(f, 2, 2)), DIMS(2, 2), (float[]){5, 5, 5, 5});
    assert_gives(NODE(f, &oct_op_tile, 1, deep, INTS(f, 1, 1, 1, 1, 1, 1, 1, 2)),
                 DIMS(1, 2, 1, 1, 2, 1, 1, 4),
                 (float[]){0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7});
    assert_refuses(NODE(f, &oct_op_unsqueeze, 1, deep, INTS(f, 0)), OCT_ERR_UNSUPPORTED, "rank");
    assert_refuses(NODE(f, &oct_op_concat, 1, one, one), OCT_ERR_SHAPE, "axis");
}

static void pad_folds_far_positions(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(3), NULL);
    oct_node *n = NODE(f, &oct_op_pad, 1, x, INTS(f, 5, 3));

    assert_ok(f->ctx, oct_node_set_str(n, "mode", "reflect"));
    assert_gives(n, DIMS(11), (float[]){1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1});
    assert_ok(f->ctx, oct_node_set_str(n, "mode", "wrap"));
    assert_gives(n, DIMS(11), (float[]){1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
    assert_ok(f->ctx, oct_node_set_str(n, "mode", "edge"));
    assert_gives(n, DIMS(11), (float[]){0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2});
    assert_gives(NODE(f, &oct_op_pad, 1, x, INTS(f, -2, 2)), DIMS(3), (float[]){2, 0, 0});
    assert_gives(NODE(f, &oct_op_pad, 1, x, INTS(f, -5, 5)), DIMS(3), (float[]){0, 0, 0});
    assert_refuses(NODE(f, &oct_op_pad, 1, x, INTS(f, -2, -2)), OCT_ERR_SHAPE, "padded");
    assert_refuses(NODE(f, &oct_op_pad, 1, x, INTS(f, INT64_MIN, INT64_MAX)), OCT_ERR_SHAPE,
                   "padded");
    n = NODE(f, &oct_op_pad, 1, x, INTS(f, -3, 4));
    assert_ok(f->ctx, oct_node_set_str(n, "mode", "edge"));
    assert_refuses(n, OCT_ERR_SHAPE, "nothing to pad");
}

static void sizes_that_overflow_are_refused(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(4), NULL);
    oct_value *s[3] = {constant(f, OCT_DTYPE_I64, SCALAR, (double[]){-9e18}),
                       constant(f, OCT_DTYPE_I64, SCALAR, (double[]){9e18}),
                       constant(f, OCT_DTYPE_I64, SCALAR, (double[]){1})};

    assert_refuses(NODE(f, &oct_op_tile, 1, x, INTS(f, INT64_MAX)), OCT_ERR_SHAPE, "long");
    assert_refuses(NODE(f, &oct_op_tile, 1, x, INTS(f, -1)), OCT_ERR_SHAPE, "repeated");
    assert_refuses(NODE(f, &oct_op_range, 1, s[0], s[1], s[2]), OCT_ERR_SHAPE, "too long");
    assert_gives(NODE(f, &oct_op_range, 1, s[1], s[0], s[2]), DIMS(0), NULL);
    assert_refuses(NODE(f, &oct_op_expand, 1, x, INTS(f, 3)), OCT_ERR_SHAPE, "broadcast");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_as_simple_loops_do),
        cmocka_unit_test_setup_teardown(packed_elements_move_one_by_one, setup, teardown),
        cmocka_unit_test_setup_teardown(slice_clamps_and_steps_backwards, setup, teardown),
        cmocka_unit_test_setup_teardown(slice_of_unknown_bounds_keeps_other_dims, setup, teardown),
        cmocka_unit_test_setup_teardown(split_takes_uneven_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(reshape_solves_what_is_left_open, setup, teardown),
        cmocka_unit_test_setup_teardown(eight_dims_and_none, setup, teardown),
        cmocka_unit_test_setup_teardown(pad_folds_far_positions, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_that_overflow_are_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
