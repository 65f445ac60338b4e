/* SPDX-License-Identifier: Apache-2.0 */
/* Types and tensors: sizes, sharing, copying before writing. */
#include "tests/alloc.h"

#include "tensor/tensor.h"

static oct_ctx *new_ctx(void)
{
    oct_ctx *ctx = oct_ctx_new(NULL);

    assert_non_null(ctx);
    return ctx;
}

static void free_ctx(oct_ctx *ctx)
{
    assert_int_equal(atomic_load(&ctx->mem_used), 0);
    oct_ctx_free(ctx);
}

static void types_know_their_size(void **state)
{
    const int64_t dims[] = {1, 3, 640, 640}, open[] = {-1, 3}, none[] = {0, INT64_MAX, INT64_MAX};
    const int64_t empty[] = {7, 0, INT64_MAX / 7};
    const int64_t huge[] = {INT64_MAX, 2}, wide[] = {INT64_MAX};
    const oct_type a = oct_type_make(OCT_DTYPE_F32, 4, dims), b = oct_type_unknown(OCT_DTYPE_I64);
    const oct_type c = oct_type_make(OCT_DTYPE_F32, 2, open);
    const oct_type d = oct_type_make(OCT_DTYPE_F32, 3, none);
    const oct_type e = oct_type_make(OCT_DTYPE_U8, 2, huge);
    const oct_type f = oct_type_make(OCT_DTYPE_F32, 1, wide);
    const oct_type g = oct_type_make(OCT_DTYPE_F32, 3, empty);
    size_t size = 0;

    (void)state;
    assert_int_equal(oct_type_len(&a), 3 * 640 * 640);
    assert_int_equal(oct_type_span(&a, 2, 4), 640 * 640);
    assert_true(oct_type_bytes(&a, &size) && size == 4 * 3 * 640 * 640);
    assert_true(oct_type_is_static(&a) && !oct_type_is_static(&b) && !oct_type_is_static(&c));
    assert_int_equal(oct_type_len(&b), -1);
    assert_int_equal(oct_type_len(&c), -1);
    assert_int_equal(oct_type_len(&d), -1); /* the others have no product */
    assert_int_equal(oct_type_len(&g), 0);
    assert_int_equal(oct_type_len(&e), -1);
    assert_false(oct_type_bytes(&f, &size));
    assert_true(oct_type_equal(&a, &a) && !oct_type_equal(&a, &c) && !oct_type_equal(&b, &c));
}

static void types_have_a_text(void **state)
{
    const int64_t dims[] = {1, 3, -1, 640};
    const int64_t huge[] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
                            INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    oct_type t = oct_type_make(OCT_DTYPE_F32, 4, dims);
    char text[OCT_TYPE_TEXT_SIZE];

    (void)state;
    assert_string_equal(oct_type_text(&t, text), "float32[1x3x?x640]");
    t = oct_type_make(OCT_DTYPE_I64, 0, NULL);
    assert_string_equal(oct_type_text(&t, text), "int64[]");
    t = oct_type_unknown(OCT_DTYPE_NONE);
    assert_string_equal(oct_type_text(&t, text), "?[...]");
    t = oct_type_make(OCT_DTYPE_F8E4M3FNUZ, 8, huge); /* does not fit: cut, terminated */
    assert_int_equal(strlen(oct_type_text(&t, text)), OCT_TYPE_TEXT_SIZE - 1);
}

static void new_tensors_are_zero(void **state)
{
    const int64_t dims[] = {3, 5}, bad[] = {3, -1}, huge[] = {INT64_MAX, INT64_MAX};
    oct_ctx *ctx = new_ctx();
    oct_tensor *t = NULL, *none = NULL;

    (void)state;
    assert_ok(ctx, oct_tensor_new(ctx, OCT_DTYPE_F32, 2, dims, &t));
    assert_int_equal((uintptr_t)oct_tensor_data(t) % 64, 0);
    assert_int_equal(oct_tensor_len(t), 15);
    assert_int_equal(oct_tensor_size(t), 60);
    assert_int_equal(oct_tensor_rank(t), 2);
    assert_int_equal(oct_tensor_dtype(t), OCT_DTYPE_F32);
    assert_int_equal(oct_tensor_dims(t)[1], 5);
    for (int i = 0; i < 15; i++)
        assert_true(oct_tensor_get_f64(t, i) == 0);
    oct_tensor_unref(t);
    oct_tensor_unref(NULL);
    assert_fails(ctx, oct_tensor_new(ctx, OCT_DTYPE_F32, 2, bad, &none), OCT_ERR_SHAPE, "[3x?]");
    assert_fails(ctx, oct_tensor_new(ctx, OCT_DTYPE_F32, 2, huge, &none), OCT_ERR_SHAPE, "type");
    assert_fails(ctx, oct_tensor_new(ctx, OCT_DTYPE_F32, 9, huge, &none), OCT_ERR_SHAPE, "9");
    assert_fails(ctx, oct_tensor_new(ctx, OCT_DTYPE_F32, -1, huge, &none), OCT_ERR_SHAPE, "-1");
    assert_int_equal(oct_tensor_new(ctx, OCT_DTYPE_NONE, 1, dims, &none), OCT_ERR_SHAPE);
    assert_int_equal(oct_tensor_new(ctx, OCT_DTYPE_F32, 1, &(int64_t){1LL << 50}, &none),
                     OCT_ERR_MEMORY);
    assert_null(none);
    free_ctx(ctx);
}

static void a_view_and_its_base_do_not_disturb_each_other(void **state)
{
    const int64_t dims[] = {2, 3}, flat[] = {6}, wrong[] = {7};
    oct_ctx *ctx = new_ctx();
    oct_type type = oct_type_make(OCT_DTYPE_F32, 1, flat);
    oct_tensor *base = NULL, *view = NULL;
    const float *old;
    float *p;

    (void)state;
    assert_ok(ctx, oct_tensor_new(ctx, OCT_DTYPE_F32, 2, dims, &base));
    p = oct_tensor_mutable(base);
    p[5] = 5;
    assert_ptr_equal(p, oct_tensor_data(base)); /* nobody else: no copy */
    assert_ok(ctx, oct_tensor_view(ctx, base, &type, &view));
    old = oct_tensor_data(view);
    assert_ptr_equal(old, p);

    p = oct_tensor_mutable(base); /* the base moves away, the view stays */
    assert_ptr_not_equal(p, old);
    p[5] = 6;
    assert_true(oct_tensor_get_f64(view, 5) == 5 && oct_tensor_get_f64(base, 5) == 6);
    assert_ptr_equal(oct_tensor_mutable(base), p); /* once is enough */
    oct_tensor_unref(base);
    assert_true(oct_tensor_get_f64(view, 5) == 5);
    p = oct_tensor_mutable(view); /* lets the base go */
    p[5] = 7;
    assert_true(oct_tensor_get_f64(view, 5) == 7);

    type = oct_type_make(OCT_DTYPE_F32, 1, wrong);
    assert_fails(ctx, oct_tensor_view(ctx, view, &type, &base), OCT_ERR_SHAPE, "[6]");
    type = oct_type_make(OCT_DTYPE_I32, 2, dims); /* another type of the same size */
    assert_ok(ctx, oct_tensor_view(ctx, view, &type, &base));
    assert_int_equal(oct_tensor_get_i64(base, 5), 0x40e00000);
    oct_tensor_unref(view);
    oct_tensor_unref(base);
    free_ctx(ctx);
}

static void a_mapped_tensor_is_copied_before_writing(void **state)
{
    const int64_t dims[] = {4};
    const oct_type type = oct_type_make(OCT_DTYPE_U8, 1, dims);
    oct_ctx *ctx = new_ctx();
    oct_tensor *t = NULL, *view = NULL;
    oct_writer *w = NULL;
    oct_file *f = NULL;
    char folder[64], path[96];
    uint8_t *p;

    (void)state;
    snprintf(path, sizeof(path), "%s/file", make_folder(folder));
    assert_ok(ctx, oct_writer_open(ctx, path, &w));
    assert_ok(ctx, oct_writer_put(w, "abcdefgh", 8));
    assert_ok(ctx, oct_writer_commit(w));
    assert_ok(ctx, oct_file_map(ctx, path, &f));
    assert_ok(ctx, oct_tensor_from_file(ctx, &type, f, 2, &t));
    oct_file_unref(f); /* the tensor holds it */
    assert_memory_equal(oct_tensor_data(t), "cdef", 4);
    assert_ok(ctx, oct_tensor_view(ctx, t, &type, &view));
    p = oct_tensor_mutable(t);
    assert_non_null(p);
    p[0] = 'X';
    assert_memory_equal(oct_tensor_data(t), "Xdef", 4);
    assert_memory_equal(oct_tensor_data(view), "cdef", 4); /* the mapping is still there */
    oct_tensor_unref(t);
    assert_memory_equal(oct_tensor_data(view), "cdef", 4);
    oct_tensor_unref(view);
    remove_folder(folder);
    free_ctx(ctx);
}

static void borrowed_data_is_the_callers(void **state)
{
    const int64_t dims[] = {2};
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, dims);
    oct_ctx *ctx = new_ctx();
    float mine[2] = {1, 2};
    oct_tensor *t = NULL;

    (void)state;
    assert_ok(ctx, oct_tensor_borrow(ctx, &type, mine, &t));
    ((float *)oct_tensor_mutable(t))[1] = 3;
    assert_true(mine[1] == 3);
    assert_ptr_equal(oct_tensor_ref(t), t);
    oct_tensor_unref(t);
    oct_tensor_unref(t);
    free_ctx(ctx);
}

static void constants_copies_and_casts(void **state)
{
    const int64_t v[] = {-1, 300, 7};
    oct_ctx *ctx = new_ctx();
    oct_tensor *s = NULL, *a = NULL, *b = NULL, *c = NULL, *e = NULL;

    (void)state;
    assert_ok(ctx, oct_tensor_scalar_f32(ctx, 2.5f, &s));
    assert_int_equal(oct_tensor_rank(s), 0);
    assert_true(oct_tensor_get_f64(s, 0) == 2.5 && oct_tensor_get_i64(s, 0) == 2);
    assert_ok(ctx, oct_tensor_vec_i64(ctx, v, 3, &a));
    assert_ok(ctx, oct_tensor_copy(ctx, a, &b));
    assert_true(oct_tensor_equal(a, b));
    ((int64_t *)oct_tensor_mutable(b))[2] = 8;
    assert_false(oct_tensor_equal(a, b));
    assert_false(oct_tensor_equal(a, s));
    assert_ok(ctx, oct_tensor_cast(ctx, a, OCT_DTYPE_U8, &c));
    assert_int_equal(oct_tensor_get_i64(c, 0), 255);
    assert_int_equal(oct_tensor_get_i64(c, 1), 44);
    assert_ok(ctx, oct_tensor_vec_i64(ctx, NULL, 0, &e));
    assert_int_equal(oct_tensor_len(e), 0);
    oct_tensor_unref(b);
    b = NULL;
    assert_fails(ctx, oct_tensor_cast(ctx, a, OCT_DTYPE_STRING, &b), OCT_ERR_UNSUPPORTED, "string");
    assert_null(b);
    oct_tensor_unref(s);
    oct_tensor_unref(a);
    oct_tensor_unref(c);
    oct_tensor_unref(e);
    free_ctx(ctx);
}

static void strings_are_copied_deeply(void **state)
{
    const int64_t dims[] = {3};
    const oct_type type = oct_type_make(OCT_DTYPE_STRING, 1, dims);
    oct_string words[] = {{"one", 3}, {NULL, 0}, {"three", 5}};
    char changing[] = "one";
    oct_ctx *ctx = new_ctx();
    oct_tensor *t = NULL, *copy = NULL, *zero = NULL;
    const oct_string *got;

    (void)state;
    words[0].s = changing;
    assert_ok(ctx, oct_tensor_borrow(ctx, &type, words, &t));
    assert_int_equal(oct_tensor_size(t), sizeof(words));
    assert_ok(ctx, oct_tensor_copy(ctx, t, &copy));
    assert_true(oct_tensor_equal(t, copy));
    changing[0] = 'O';
    assert_false(oct_tensor_equal(t, copy));
    got = oct_tensor_data(copy);
    assert_memory_equal(got[0].s, "one", 3);
    assert_memory_equal(got[2].s, "three", 5);
    assert_ok(ctx, oct_tensor_make(ctx, &type, &zero));
    assert_int_equal(((const oct_string *)oct_tensor_data(zero))[2].len, 0);
    oct_tensor_unref(zero);
    oct_tensor_unref(t);
    copy->read_only = true;
    assert_non_null(oct_tensor_mutable(copy)); /* its characters stay */
    assert_memory_equal(((const oct_string *)oct_tensor_data(copy))[2].s, "three", 5);
    oct_tensor_unref(copy);
    free_ctx(ctx);
}

static oct_status use_tensors(oct_ctx *ctx)
{
    const int64_t dims[] = {2, 3}, flat[] = {6};
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, flat);
    oct_tensor *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    oct_status st;

    if ((st = oct_tensor_new(ctx, OCT_DTYPE_F32, 2, dims, &a))) goto done;
    if ((st = oct_tensor_view(ctx, a, &type, &b))) goto done;
    if (!oct_tensor_mutable(a) || !oct_tensor_mutable(b)) {
        st = OCT_ERR_MEMORY;
        goto done;
    }
    if ((st = oct_tensor_copy(ctx, a, &c))) goto done;
    st = oct_tensor_cast(ctx, a, OCT_DTYPE_F16, &d);
done:
    oct_tensor_unref(a);
    oct_tensor_unref(b);
    oct_tensor_unref(c);
    oct_tensor_unref(d);
    return st;
}

static void tensors_survive_every_failure(void **state)
{
    (void)state;
    fail_each_allocation(use_tensors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_know_their_size),
        cmocka_unit_test(types_have_a_text),
        cmocka_unit_test(new_tensors_are_zero),
        cmocka_unit_test(a_view_and_its_base_do_not_disturb_each_other),
        cmocka_unit_test(a_mapped_tensor_is_copied_before_writing),
        cmocka_unit_test(borrowed_data_is_the_callers),
        cmocka_unit_test(constants_copies_and_casts),
        cmocka_unit_test(strings_are_copied_deeply),
        cmocka_unit_test(tensors_survive_every_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
