/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: order, errors, bounds, being stopped at any time. */
#include <unistd.h>

#include "tests/unit/data_files.h"

#include "data/dataset.h"

#define N_PICTURES 23
#define BROKEN     11

/* Pictures of 1, 2, ... columns; one of them broken, one of them goes away. */
static oct_dataset *make(files *t, bool skip_bad)
{
    char text[1024] = "", name[32];
    oct_dataset *d = NULL;

    put_folder(t, "p");
    for (int i = 0; i < N_PICTURES; i++) {
        snprintf(name, sizeof(name), "p/%02d.png", i);
        if (i == BROKEN)
            put_text(t, name, "broken");
        else
            put_picture(t, name, i + 1, 3);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%02d.png\n", i);
    }
    strcat(text, "missing.png\n");
    put_text(t, "list.txt", text);
    put_text(t, "p/missing.png", "");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), below(t, "list.txt"), skip_bad, &d));
    assert_int_equal(unlink(below(t, "p/missing.png")), 0);
    return d;
}

static oct_dataset *make_pictures(files *t)
{
    return make(t, false);
}

static oct_preprocess small(void)
{
    oct_preprocess p;

    oct_preprocess_init(&p);
    p.width = p.height = 16;
    p.fit = OCT_FIT_STRETCH;
    p.scale = 1;
    return p;
}

static void check_item(const oct_loaded *item, int64_t i)
{
    assert_int_equal(item->index, i);
    if (i == BROKEN) {
        assert_int_equal(item->status, OCT_ERR_FORMAT);
        assert_non_null(strstr(item->error, "11.png: no picture: neither JPEG nor PNG"));
    } else if (i == N_PICTURES) {
        assert_int_equal(item->status, OCT_ERR_IO);
        assert_non_null(strstr(item->error, "missing.png"));
    } else {
        const float *v = item->data;

        assert_int_equal(item->status, OCT_OK);
        assert_int_equal(item->map.image_width, i + 1);
        assert_true(v[0] == (float)(i + 1) && v[16 * 16 * 3 - 1] == (float)(i + 1));
        assert_true(item->decode_ns > 0 && item->preprocess_ns > 0);
    }
}

static void delivers_in_order(void **state)
{
    static const int32_t cases[][2] = {{0, 0}, {1, 1}, {1, 3}, {3, 2}, {4, 0}, {7, 64}};
    files *t = *state;
    const oct_preprocess p = small();
    oct_dataset *d = make_pictures(t);

    for (size_t k = 0; k < OCT_COUNT(cases); k++) {
        oct_loader *l = NULL;
        const oct_loaded *item = NULL;

        assert_ok(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_F32, cases[k][0], cases[k][1], &l));
        for (int64_t i = 0; i <= N_PICTURES; i++) {
            assert_ok(t->ctx, oct_loader_next(l, &item));
            check_item(item, i);
            oct_loader_done(l, item);
        }
        assert_fails(t->ctx, oct_loader_next(l, &item), OCT_ERR_STATE, "no more pictures");
        oct_loader_free(l);
    }
    oct_dataset_close(d);
}

/* What is broken is an error for those who run networks, or left out and noted, once. */
static void takes_what_is_not_broken(void **state)
{
    files *t = *state;
    const oct_preprocess p = small();
    oct_dataset *d = make(t, true);

    for (int pass = 0; pass < 2; pass++) {
        oct_loader *l = NULL;
        const oct_loaded *item = NULL;
        int64_t n = 0;

        assert_ok(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_F32, 3, 0, &l));
        for (;; n++) {
            assert_ok(t->ctx, oct_loader_take(l, t->ctx, &item));
            if (!item) break;
            assert_int_equal(item->index, n < BROKEN ? n : n + 1);
            assert_int_equal(item->status, OCT_OK);
            oct_loader_done(l, item);
        }
        assert_int_equal(n, N_PICTURES - 1);
        assert_non_null(strstr(oct_dataset_note(d, 0), "2 pictures are broken and were left out"));
        assert_non_null(strstr(oct_dataset_note(d, 0), "11.png: no picture"));
        assert_non_null(strstr(oct_dataset_note(d, 0), "missing.png: "));
        assert_null(oct_dataset_note(d, 1));
        oct_loader_free(l);
    }
    oct_dataset_close(d);
}

static void takes_nothing_from_nothing(void **state)
{
    files *t = *state;
    const oct_preprocess p = small();
    const oct_loaded *item = NULL;
    oct_dataset *d = NULL;
    oct_loader *l = NULL;

    put_folder(t, "p");
    put_text(t, "p/a.png", "");
    put_text(t, "p/b.jpg", "no picture");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), NULL, true, &d));
    assert_ok(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_F32, 1, 0, &l));
    assert_fails(t->ctx, oct_loader_take(l, t->ctx, &item), OCT_ERR_FORMAT,
                 "no picture is left: 2 pictures are broken");
    oct_loader_free(l);
    oct_dataset_close(d);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), NULL, false, &d));
    assert_ok(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_F32, 1, 0, &l));
    assert_fails(t->ctx, oct_loader_take(l, t->ctx, &item), OCT_ERR_FORMAT,
                 "a.png: the file is empty");
    oct_loader_free(l);
    oct_dataset_close(d);
}

/* Several at once, given back in another order. */
static void lends_as_many_as_it_has(void **state)
{
    files *t = *state;
    const oct_preprocess p = small();
    oct_dataset *d = make_pictures(t);
    oct_loader *l = NULL;
    const oct_loaded *items[4] = {NULL}, *more = NULL;

    assert_ok(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_F32, 2, 4, &l));
    for (int64_t i = 0; i < N_PICTURES + 1; i += 4) {
        for (int64_t k = 0; k < 4; k++)
            assert_ok(t->ctx, oct_loader_next(l, &items[k]));
        for (int64_t k = 0; k < 4; k++)
            check_item(items[k], i + k);
        if (i + 4 < N_PICTURES)
            assert_fails(t->ctx, oct_loader_next(l, &more), OCT_ERR_STATE, "all 4 pictures");
        for (int64_t k = 3; k >= 0; k--)
            oct_loader_done(l, items[k ^ 1]);
    }
    oct_loader_free(l);
    oct_dataset_close(d);
}

static void stops_at_any_time(void **state)
{
    files *t = *state;
    const oct_preprocess p = small();
    oct_dataset *d = make_pictures(t);

    for (int n = 0; n < 40; n++) {
        oct_loader *l = NULL;

        assert_ok(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_U8, 1 + n % 4, 1 + n % 5, &l));
        for (int i = 0; i < n % 10; i++) {
            const oct_loaded *item = NULL;

            assert_ok(t->ctx, oct_loader_next(l, &item));
            if (i + 1 < n % 10 || n % 2) oct_loader_done(l, item); /* the last may be kept */
        }
        oct_loader_free(l);
    }
    oct_dataset_close(d);
}

static void refuses_nonsense(void **state)
{
    files *t = *state;
    oct_preprocess p = small();
    oct_dataset *d = make_pictures(t), *tensors = NULL;
    oct_tensor *x = NULL;
    oct_loader *l = NULL;

    assert_fails(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_I64, 1, 1, &l), OCT_ERR_TYPE,
                 "int64");
    assert_fails(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_F32, -1, 1, &l), OCT_ERR_ARG,
                 "-1 threads");
    p.width = 0;
    assert_fails(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_F32, 1, 1, &l), OCT_ERR_ARG,
                 "size 0x16");
    p.width = 16;
    put_folder(t, "t");
    assert_ok(t->ctx, oct_tensor_new(t->ctx, OCT_DTYPE_F32, 0, NULL, &x));
    assert_ok(t->ctx, oct_tensor_save_npy(t->ctx, x, below(t, "t/a.npy")));
    oct_tensor_unref(x);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "t"), NULL, false, &tensors));
    assert_fails(t->ctx, open_loader(t->ctx, tensors, &p, OCT_DTYPE_F32, 1, 1, &l), OCT_ERR_ARG,
                 "tensors, not pictures");
    oct_dataset_close(tensors);
    assert_fails(t->ctx, oct_dataset_tensor(d, 0, "x", &x), OCT_ERR_STATE, "pictures");
    oct_ctx_set_memory_limit(t->ctx, 100000);
    p.width = p.height = 4096;
    assert_fails(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_F32, 1, 1, &l), OCT_ERR_MEMORY,
                 "limit");
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(delivers_in_order, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(takes_what_is_not_broken, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(takes_nothing_from_nothing, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(lends_as_many_as_it_has, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(stops_at_any_time, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(refuses_nonsense, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
