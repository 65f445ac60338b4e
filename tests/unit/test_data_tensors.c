/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of tensors: .npy folders, .npz files, hostile archives. */
#include "tests/unit/data_files.h"

#include <zip.h>

/* Writes a float32 tensor of these dims whose elements count up from `first`. */
static const char *put_npy(files *t, const char *name, int rank, const int64_t *dims, float first)
{
    const char *path = below(t, name);
    oct_tensor *x = NULL;

    assert_ok(t->ctx, oct_tensor_new(t->ctx, OCT_DTYPE_F32, rank, dims, &x));
    for (int64_t i = 0; i < oct_tensor_len(x); i++)
        ((float *)oct_tensor_mutable(x))[i] = first + (float)i;
    assert_ok(t->ctx, oct_tensor_save_npy(t->ctx, x, path));
    oct_tensor_unref(x);
    return path;
}

/* Puts files into an archive under the names given; NULL ends. */
static void put_zip(files *t, const char *zip_name, int method, const char *const *names)
{
    int error = 0;
    zip_t *z = zip_open(below(t, zip_name), ZIP_CREATE | ZIP_TRUNCATE, &error);

    assert_non_null(z);
    for (int i = 0; names[i]; i++) {
        zip_source_t *s = zip_source_file(z, below(t, names[i]), 0, -1);
        zip_int64_t index;

        assert_non_null(s);
        index = zip_file_add(z, names[i], s, 0);
        assert_true(index >= 0);
        assert_int_equal(zip_set_file_compression(z, (zip_uint64_t)index, method, 0), 0);
    }
    assert_int_equal(zip_close(z), 0);
}

static void assert_tensor(files *t, oct_dataset *d, int64_t i, const char *name, int64_t rows,
                          float first)
{
    oct_tensor *x = NULL;

    assert_ok(t->ctx, oct_dataset_tensor(d, i, name, &x));
    assert_int_equal(oct_tensor_dims(x)[0], rows);
    assert_float_equal(((const float *)oct_tensor_data(x))[0], first, 0);
    oct_tensor_unref(x);
}

static void reads_folders_of_npy(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;
    oct_tensor *x = NULL;

    put_folder(t, "one");
    put_npy(t, "one/b.npy", 2, (const int64_t[]){1, 3}, 20);
    put_npy(t, "one/a.npy", 2, (const int64_t[]){1, 3}, 10);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "one"), NULL, false, &d));
    assert_string_equal(oct_dataset_kind(d), "npy");
    assert_true(oct_dataset_is_tensors(d));
    assert_int_equal(oct_dataset_size(d), 2);
    assert_string_equal(oct_dataset_path(d, 1), below(t, "one/b.npy"));
    assert_tensor(t, d, 0, "whatever", 1, 10);
    assert_tensor(t, d, 1, "x", 1, 20);
    assert_fails(t->ctx, oct_dataset_tensor(d, 2, "x", &x), OCT_ERR_ARG, "no item 2");
    oct_dataset_close(d);

    put_folder(t, "many");
    put_folder(t, "many/ids");
    put_folder(t, "many/mask");
    put_npy(t, "many/ids/0.npy", 1, (const int64_t[]){3}, 1);
    put_npy(t, "many/ids/1.npy", 1, (const int64_t[]){3}, 2);
    put_npy(t, "many/mask/0.npy", 1, (const int64_t[]){3}, 3);
    assert_fails(t->ctx, open_dataset(t->ctx, below(t, "many"), NULL, false, &d), OCT_ERR_FORMAT,
                 "1 files, but 2 in 'ids'");
    put_npy(t, "many/mask/1.npy", 1, (const int64_t[]){3}, 4);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "many"), NULL, false, &d));
    assert_tensor(t, d, 1, "ids", 3, 2);
    assert_tensor(t, d, 1, "mask", 3, 4);
    assert_fails(t->ctx, oct_dataset_tensor(d, 0, "masc", &x), OCT_ERR_ARG,
                 "no tensor for input 'masc'; there are 'ids', 'mask'");
    oct_dataset_close(d);

    put_bytes(t, "one/a.npy", "nothing", 7);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "one"), NULL, false, &d));
    assert_fails(t->ctx, oct_dataset_tensor(d, 0, "x", &x), OCT_ERR_FORMAT, "a.npy");
    oct_dataset_close(d);
}

static void reads_npz(void **state)
{
    files *t = *state;
    static const int methods[] = {ZIP_CM_STORE, ZIP_CM_DEFLATE};
    oct_dataset_options o;
    char path[128];

    snprintf(path, sizeof(path), "%s", below(t, "x.npz"));
    put_npy(t, "ids.npy", 2, (const int64_t[]){5, 3}, 0);
    put_npy(t, "mask.npy", 2, (const int64_t[]){5, 3}, 100);
    put_npy(t, "scale.npy", 1, (const int64_t[]){1}, 7);
    put_npy(t, "scalar.npy", 0, NULL, 8);
    put_text(t, "readme.txt", "not an array");
    oct_dataset_options_init(&o);
    o.images = path;
    for (int i = 0; i < 2; i++) {
        oct_dataset *d = NULL;
        oct_tensor *x = NULL;

        put_zip(t, "x.npz", methods[i],
                (const char *const[]){"ids.npy", "mask.npy", "scale.npy", "scalar.npy",
                                      "readme.txt", NULL});
        o.subset_size = 0;
        assert_ok(t->ctx, oct_dataset_open(t->ctx, &o, &d));
        assert_string_equal(oct_dataset_kind(d), "npz");
        assert_int_equal(oct_dataset_size(d), 5);
        assert_tensor(t, d, 0, "ids", 1, 0);
        assert_tensor(t, d, 4, "ids", 1, 12);
        assert_tensor(t, d, 4, "mask", 1, 112);
        assert_tensor(t, d, 3, "scale", 1, 7);
        assert_ok(t->ctx, oct_dataset_tensor(d, 2, "scalar", &x));
        assert_int_equal(oct_tensor_rank(x), 0);
        oct_tensor_unref(x);
        assert_fails(t->ctx, oct_dataset_tensor(d, 0, "idz", &x), OCT_ERR_ARG, "'ids', 'mask'");
        oct_dataset_close(d);

        o.subset_size = 2; /* items 0 and 2 */
        assert_ok(t->ctx, oct_dataset_open(t->ctx, &o, &d));
        assert_int_equal(oct_dataset_size(d), 2);
        assert_tensor(t, d, 1, "ids", 1, 6);
        oct_dataset_close(d);
    }
}

static void reads_numbered_arrays(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;

    put_npy(t, "in0.npy", 2, (const int64_t[]){1, 3}, 10);
    put_npy(t, "in1.npy", 2, (const int64_t[]){1, 3}, 20);
    put_npy(t, "out0.npy", 2, (const int64_t[]){50, 3}, 0);
    put_npy(t, "out1.npy", 2, (const int64_t[]){50, 3}, 0);
    put_zip(t, "x.npz", ZIP_CM_DEFLATE,
            (const char *const[]){"in0.npy", "in1.npy", "out0.npy", "out1.npy", NULL});
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "x.npz"), NULL, false, &d));
    assert_int_equal(oct_dataset_size(d), 2);
    assert_tensor(t, d, 0, "in", 1, 10);
    assert_tensor(t, d, 1, "in", 1, 20);
    oct_dataset_close(d);
}

static void reads_folders_of_npz(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;
    oct_tensor *x = NULL;

    put_npy(t, "ids.npy", 1, (const int64_t[]){3}, 1);
    put_npy(t, "mask.npy", 1, (const int64_t[]){3}, 2);
    put_folder(t, "z");
    put_zip(t, "z/0.npz", ZIP_CM_STORE, (const char *const[]){"ids.npy", "mask.npy", NULL});
    put_zip(t, "z/1.npz", ZIP_CM_STORE, (const char *const[]){"mask.npy", NULL});
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "z"), NULL, false, &d));
    assert_string_equal(oct_dataset_kind(d), "npz folder");
    assert_tensor(t, d, 0, "ids", 3, 1);
    assert_tensor(t, d, 0, "mask", 3, 2);
    assert_tensor(t, d, 1, "ids", 3, 2); /* the only one there is */
    assert_fails(t->ctx, oct_dataset_tensor(d, 0, "x", &x), OCT_ERR_ARG, "0.npz: no tensor");
    oct_dataset_close(d);
}

static void refuses_broken_archives(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;
    uint8_t bytes[4096];
    size_t size;
    FILE *f;

    assert_fails(t->ctx, open_dataset(t->ctx, put_text(t, "x.npy", "x"), NULL, false, &d),
                 OCT_ERR_ARG, "give the folder of .npy files");
    put_text(t, "x.npz", "PK\x03\x04 no archive");
    assert_fails(t->ctx, open_dataset(t->ctx, below(t, "x.npz"), NULL, false, &d), OCT_ERR_FORMAT,
                 "x.npz: not a .npz file");
    put_text(t, "readme.txt", "not an array");
    put_zip(t, "x.npz", ZIP_CM_STORE, (const char *const[]){"readme.txt", NULL});
    assert_fails(t->ctx, open_dataset(t->ctx, below(t, "x.npz"), NULL, false, &d), OCT_ERR_FORMAT,
                 "x.npz: there are no arrays in it");
    put_text(t, "bad.npy", "not an array at all, but long enough");
    put_zip(t, "x.npz", ZIP_CM_STORE, (const char *const[]){"bad.npy", NULL});
    assert_fails(t->ctx, open_dataset(t->ctx, below(t, "x.npz"), NULL, false, &d), OCT_ERR_FORMAT,
                 "x.npz: bad: not a .npy file");

    /* Flipped bytes anywhere: an error or other numbers, never more. */
    put_npy(t, "a.npy", 2, (const int64_t[]){4, 20}, 0);
    put_zip(t, "x.npz", ZIP_CM_DEFLATE, (const char *const[]){"a.npy", NULL});
    f = fopen(below(t, "x.npz"), "rb");
    assert_non_null(f);
    size = fread(bytes, 1, sizeof(bytes), f);
    fclose(f);
    assert_true(size > 100 && size < sizeof(bytes));
    for (size_t i = 0; i < size; i++) {
        oct_tensor *x = NULL;

        bytes[i] ^= 0x81;
        put_bytes(t, "y.npz", bytes, size);
        bytes[i] ^= 0x81;
        d = NULL;
        if (open_dataset(t->ctx, below(t, "y.npz"), NULL, false, &d)) continue;
        if (!oct_dataset_tensor(d, 0, "a", &x)) oct_tensor_unref(x);
        oct_dataset_close(d);
    }
}

static const char *memory_path;

static oct_status open_npz(oct_ctx *ctx)
{
    oct_dataset *d = NULL;
    oct_tensor *x = NULL;
    oct_status st = open_dataset(ctx, memory_path, NULL, false, &d);

    if (!st) st = oct_dataset_tensor(d, 1, "a", &x);
    oct_tensor_unref(x);
    oct_dataset_close(d);
    return st;
}

static void survives_lack_of_memory(void **state)
{
    files *t = *state;
    char path[128];

    put_npy(t, "a.npy", 2, (const int64_t[]){4, 20}, 0);
    put_zip(t, "x.npz", ZIP_CM_DEFLATE, (const char *const[]){"a.npy", NULL});
    snprintf(path, sizeof(path), "%s", below(t, "x.npz"));
    memory_path = path;
    fail_each_allocation(open_npz);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_folders_of_npy, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(reads_npz, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(reads_numbered_arrays, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(reads_folders_of_npz, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(refuses_broken_archives, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(survives_lack_of_memory, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
