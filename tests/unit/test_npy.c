/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files: all types and orders, round trips, hostile headers. */
#include "tests/alloc.h"

#include "tensor/npy.h"

typedef struct npy_file {
    uint8_t data[1024];
    size_t size;
} npy_file;

/* A file of this version, header and data, the header as it is given. */
static npy_file make_file(int version, const char *header, const void *data, size_t data_size)
{
    const size_t len = strlen(header), start = version == 1 ? 10 : 12;
    npy_file f = {.data = "\x93NUMPY"};

    f.data[6] = (uint8_t)version;
    f.data[8] = (uint8_t)len;
    f.data[9] = (uint8_t)(len >> 8);
    assert_true(start + len + data_size <= sizeof(f.data));
    memcpy(f.data + start, header, len);
    if (data_size) memcpy(f.data + start + len, data, data_size);
    f.size = start + len + data_size;
    return f;
}

/* From a block of exactly its size, so that ASan sees a step too far. */
static oct_status decode(oct_ctx *ctx, const npy_file *f, oct_tensor **out)
{
    uint8_t *exact = malloc(f->size ? f->size : 1);
    oct_status st;

    assert_non_null(exact);
    memcpy(exact, f->data, f->size);
    st = oct_npy_decode(ctx, exact, f->size, out);
    free(exact);
    return st;
}

static void assert_decodes(const char *header, const void *data, size_t size, const char *type,
                           const double *want)
{
    for (int version = 1; version <= 3; version++) {
        const npy_file f = make_file(version, header, data, size);
        oct_ctx *ctx = oct_ctx_new(NULL);
        oct_tensor *t = NULL;
        char text[OCT_TYPE_TEXT_SIZE];

        assert_ok(ctx, decode(ctx, &f, &t));
        assert_string_equal(oct_type_text(&t->type, text), type);
        for (int64_t i = 0; i < oct_tensor_len(t); i++)
            assert_true(oct_tensor_get_f64(t, i) == want[i]);
        oct_tensor_unref(t);
        oct_ctx_free(ctx);
    }
}

static void reads_what_numpy_writes(void **state)
{
    const double one_to_six[] = {1, 2, 3, 4, 5, 6}, turned[] = {1, 3, 5, 2, 4, 6};
    const float f32[] = {1, 2, 3, 4, 5, 6};
    const uint8_t big_i16[] = {0, 1, 0, 2, 0, 3}, bools[] = {0, 1, 7};
    const uint8_t big_f64[] = {0x3f, 0xf0, 0, 0, 0, 0, 0, 0};

    (void)state;
    assert_decodes("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n", f32,
                   24, "float32[2x3]", one_to_six);
    assert_decodes("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", f32, 24,
                   "float32[2x3]", turned);
    assert_decodes("{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }\n", f32, 24,
                   "float32[6]", one_to_six);
    assert_decodes("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", f32, 4, "float32[]",
                   one_to_six);
    assert_decodes("{'shape':(3L,),\"descr\":\">i2\",'fortran_order':False}", big_i16, 6,
                   "int16[3]", one_to_six);
    assert_decodes("{'descr': '>f8', 'fortran_order': True, 'shape': (1, 1), }\n", big_f64, 8,
                   "float64[1x1]", one_to_six);
    assert_decodes("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n", bools, 3,
                   "bool[3]", (double[]){0, 1, 1});
    assert_decodes("{'descr': '<f4', 'fortran_order': True, 'shape': (0, 5), }\n", NULL, 0,
                   "float32[0x5]", NULL);
    /* More bytes than needed are not ours to judge. */
    assert_decodes("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n", "\1\2\3", 3,
                   "uint8[2]", one_to_six);
}

static void complex_bytes_turn_by_halves(void **state)
{
    const uint8_t big[] = {0x3f, 0x80, 0, 0, 0x40, 0, 0, 0};
    const npy_file f =
        make_file(1, "{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }\n", big, 8);
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_tensor *t = NULL;

    (void)state;
    assert_ok(ctx, decode(ctx, &f, &t));
    assert_int_equal(oct_tensor_dtype(t), OCT_DTYPE_C64);
    assert_true(((const float *)oct_tensor_data(t))[0] == 1);
    assert_true(((const float *)oct_tensor_data(t))[1] == 2);
    oct_tensor_unref(t);
    oct_ctx_free(ctx);
}

static void hostile_headers_are_refused(void **state)
{
    const struct {
        const char *header;
        oct_status status;
        const char *text;
    } cases[] = {
        {"", OCT_ERR_FORMAT, "brace"},
        {"{", OCT_ERR_FORMAT, "quoted"},
        {"{}", OCT_ERR_FORMAT, "missing"},
        {"{'descr", OCT_ERR_FORMAT, "quote"},
        {"{'descr'", OCT_ERR_FORMAT, "colon"},
        {"{'descr':", OCT_ERR_FORMAT, "quoted"},
        {"{'descr':'<f4'", OCT_ERR_FORMAT, "brace"},
        {"{'descr':'<f4'}", OCT_ERR_FORMAT, "missing"},
        {"{'descr':'<f4','fortran_order':False}", OCT_ERR_FORMAT, "missing"},
        {"{'descr':'<f4','fortran_order':Maybe,'shape':()}", OCT_ERR_FORMAT, "True or False"},
        {"{'descr':'','fortran_order':False,'shape':()}", OCT_ERR_UNSUPPORTED, "type"},
        {"{'descr':'<','fortran_order':False,'shape':()}", OCT_ERR_UNSUPPORTED, "type"},
        {"{'descr':'|O','fortran_order':False,'shape':()}", OCT_ERR_UNSUPPORTED, "|O"},
        {"{'descr':'<U9','fortran_order':False,'shape':()}", OCT_ERR_UNSUPPORTED, "<U9"},
        {"{'descr':'xf4','fortran_order':False,'shape':()}", OCT_ERR_UNSUPPORTED, "xf4"},
        {"{'descr':'<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4'}", OCT_ERR_UNSUPPORTED, "type"},
        {"{'descr':[('a','<f4')],'shape':()}", OCT_ERR_UNSUPPORTED, "records"},
        {"{'descr':'<f4','fortran_order':False,'shape':(", OCT_ERR_FORMAT, "dimension"},
        {"{'descr':'<f4','fortran_order':False,'shape':(2", OCT_ERR_FORMAT, "closed"},
        {"{'descr':'<f4','fortran_order':False,'shape':(-2,)}", OCT_ERR_FORMAT, "dimension"},
        {"{'descr':'<f4','fortran_order':False,'shape':(,)}", OCT_ERR_FORMAT, "dimension"},
        {"{'descr':'<f4','fortran_order':False,'shape':3}", OCT_ERR_FORMAT, "shape"},
        {"{'descr':'<f4','fortran_order':False,'shape':(1,1,1,1,1,1,1,1,1)}", OCT_ERR_UNSUPPORTED,
         "more than 8"},
        {"{'descr':'<f4','fortran_order':False,'shape':(99999999999999999999,)}", OCT_ERR_FORMAT,
         "large"},
        {"{'descr':'<f4','fortran_order':False,'shape':(9223372036854775807,)}", OCT_ERR_FORMAT,
         "cut off"},
        {"{'descr':'<f4','fortran_order':False,'shape':(4294967296,4294967296)}", OCT_ERR_FORMAT,
         "cut off"},
        {"{'descr':'<f4','fortran_order':False,'shape':(3,)}", OCT_ERR_FORMAT, "cut off"},
        {"{'extra':1}", OCT_ERR_FORMAT, "extra"},
    };
    oct_ctx *ctx = oct_ctx_new(NULL);

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const npy_file f = make_file(1, cases[i].header, "12345678", 8);
        oct_tensor *t = NULL;

        /* The data begins where the header ends: a header must not read on into it. */
        assert_fails(ctx, decode(ctx, &f, &t), cases[i].status, cases[i].text);
        assert_null(t);
    }
    assert_int_equal(atomic_load(&ctx->mem_used), 0);
    oct_ctx_free(ctx);
}

static void every_cut_is_refused(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);

    (void)state;
    for (int version = 1; version <= 3; version++) {
        const npy_file whole = make_file(
            version, "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }\n", "12345678", 8);

        for (size_t size = 0; size < whole.size; size++) {
            npy_file f = whole;
            oct_tensor *t = NULL;

            f.size = size;
            assert_int_equal(decode(ctx, &f, &t), OCT_ERR_FORMAT);
        }
    }
    oct_ctx_free(ctx);
}

static void other_versions_are_refused(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    npy_file f = make_file(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (), }", "1234", 4);
    oct_tensor *t = NULL;

    (void)state;
    f.data[6] = 4;
    assert_fails(ctx, decode(ctx, &f, &t), OCT_ERR_UNSUPPORTED, "version 4");
    f.data[6] = 0;
    assert_fails(ctx, decode(ctx, &f, &t), OCT_ERR_UNSUPPORTED, "version 0");
    f.data[0] = 'X';
    assert_fails(ctx, decode(ctx, &f, &t), OCT_ERR_FORMAT, "not a .npy");
    oct_ctx_free(ctx);
}

static void files_keep_every_type(void **state)
{
    const int64_t shapes[][3] = {{2, 3, 4}, {5, 0, 0}, {0, 0, 0}};
    const int32_t ranks[] = {3, 1, 0};
    oct_ctx *ctx = oct_ctx_new(NULL);
    char folder[64], path[96];

    (void)state;
    snprintf(path, sizeof(path), "%s/a.npy", make_folder(folder));
    for (int dtype = 1; dtype <= OCT_DTYPE_I2; dtype++) {
        for (size_t s = 0; s < OCT_COUNT(ranks) && dtype != OCT_DTYPE_STRING; s++) {
            oct_tensor *t = NULL, *back = NULL, *f32 = NULL;

            assert_ok(ctx, oct_tensor_new(ctx, (oct_dtype)dtype, ranks[s], shapes[s], &t));
            for (size_t i = 0; i < t->size; i++) /* any bytes; no NaN, which is not kept */
                ((uint8_t *)t->data)[i] = dtype == OCT_DTYPE_BOOL ? i & 1 : (uint8_t)(i % 0x38);
            assert_ok(ctx, oct_tensor_save_npy(ctx, t, path));
            assert_ok(ctx, oct_tensor_load_npy(ctx, path, &back));
            if (oct_dtype_get((oct_dtype)dtype)->npy) {
                assert_true(oct_tensor_equal(t, back));
            } else { /* NumPy has no such type */
                assert_ok(ctx, oct_tensor_cast(ctx, t, OCT_DTYPE_F32, &f32));
                assert_true(oct_tensor_equal(f32, back));
            }
            oct_tensor_unref(t);
            oct_tensor_unref(back);
            oct_tensor_unref(f32);
        }
    }
    remove_folder(folder);
    assert_int_equal(atomic_load(&ctx->mem_used), 0);
    oct_ctx_free(ctx);
}

static void written_data_is_aligned(void **state)
{
    const int64_t dims[] = {1, 3, 640, 640};
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_tensor *t = NULL;
    oct_file *f = NULL;
    char folder[64], path[96];

    (void)state;
    snprintf(path, sizeof(path), "%s/a.npy", make_folder(folder));
    assert_ok(ctx, oct_tensor_new(ctx, OCT_DTYPE_U8, 4, dims, &t));
    assert_ok(ctx, oct_tensor_save_npy(ctx, t, path));
    assert_ok(ctx, oct_file_map(ctx, path, &f));
    assert_int_equal((oct_file_size(f) - t->size) % 64, 0);
    assert_memory_equal(oct_file_data(f) + 10,
                        "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3, 640, 640), } ",
                        70);
    assert_int_equal(oct_file_data(f)[oct_file_size(f) - t->size - 1], '\n');
    oct_file_unref(f);
    oct_tensor_unref(t);
    remove_folder(folder);
    oct_ctx_free(ctx);
}

static void errors_name_the_file(void **state)
{
    const int64_t dims[] = {1};
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_tensor *t = NULL, *none = NULL;

    (void)state;
    assert_fails(ctx, oct_tensor_load_npy(ctx, "/nowhere.npy", &none), OCT_ERR_IO, "/nowhere.npy");
    assert_fails(ctx, oct_tensor_load_npy(ctx, "/proc/self/status", &none), OCT_ERR_FORMAT,
                 "/proc/self/status");
    assert_ok(ctx, oct_tensor_new(ctx, OCT_DTYPE_STRING, 1, dims, &t));
    assert_fails(ctx, oct_tensor_save_npy(ctx, t, "/tmp/s.npy"), OCT_ERR_UNSUPPORTED, "/tmp/s.npy");
    oct_tensor_unref(t);
    oct_ctx_free(ctx);
}

static oct_status use_npy(oct_ctx *ctx)
{
    const int64_t dims[] = {2, 3};
    const char *path = getenv("OCTET_TEST_FILE");
    oct_tensor *t = NULL, *back = NULL;
    oct_status st;

    if ((st = oct_tensor_new(ctx, OCT_DTYPE_BF16, 2, dims, &t))) goto done;
    if ((st = oct_tensor_save_npy(ctx, t, path))) goto done;
    st = oct_tensor_load_npy(ctx, path, &back);
done:
    oct_tensor_unref(t);
    oct_tensor_unref(back);
    return st;
}

static void npy_survives_every_failure(void **state)
{
    char folder[64], path[96];

    (void)state;
    snprintf(path, sizeof(path), "%s/a.npy", make_folder(folder));
    setenv("OCTET_TEST_FILE", path, 1);
    fail_each_allocation(use_npy);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_numpy_writes),
        cmocka_unit_test(complex_bytes_turn_by_halves),
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(files_keep_every_type),
        cmocka_unit_test(written_data_is_aligned),
        cmocka_unit_test(errors_name_the_file),
        cmocka_unit_test(npy_survives_every_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
