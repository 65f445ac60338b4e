/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors files: round trips, the form others expect, hostile headers. */
#include <unistd.h>

#include "tensor/safetensors.h"
#include "tests/test.h"

static char path[64];

static int setup_path(void **state)
{
    snprintf(path, sizeof(path), "/tmp/octet-test-safetensors-%d", (int)getpid());
    return setup(state);
}

static int teardown_path(void **state)
{
    unlink(path);
    return teardown(state);
}

/* A file with this header and `n_data` bytes of data; of exactly its size, so that ASan sees a step
 * too far. */
static uint8_t *make_file(const char *header, size_t n_data, size_t *size)
{
    const size_t len = strlen(header);
    uint8_t *p = calloc(1, 8 + len + n_data);

    assert_non_null(p);
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)((uint64_t)len >> 8 * i);
    memcpy(p + 8, header, len);
    for (size_t i = 0; i < n_data; i++)
        p[8 + len + i] = (uint8_t)(i + 1);
    *size = 8 + len + n_data;
    return p;
}

static oct_status parse(oct_ctx *ctx, const char *header, size_t n_data)
{
    oct_safetensors *s = NULL;
    size_t size;
    uint8_t *p = make_file(header, n_data, &size);
    const oct_status st = oct_safetensors_parse(ctx, p, size, &s);

    oct_safetensors_close(s);
    free(p);
    return st;
}

static void round_trip(void **state)
{
    fixture *f = *state;
    const float w[6] = {1, 2, 3, 4, 5, 6};
    const int64_t steps[1] = {-7};
    const uint8_t bytes[5] = {1, 2, 3, 4, 5}, flags[2] = {0, 1};
    const char odd[] = "a \"quoted\\\" name\n\xc3\xa9\xf0\x9f\x98\x80";
    const oct_safetensors_entry entry[] = {
        {"z", oct_type_make(OCT_DTYPE_F32, 2, (int64_t[]){2, 3}), w},
        {odd, oct_type_make(OCT_DTYPE_U8, 1, (int64_t[]){5}), bytes},
        {"step", oct_type_make(OCT_DTYPE_I64, 0, NULL), steps},
        {"empty", oct_type_make(OCT_DTYPE_F32, 2, (int64_t[]){0, 3}), NULL},
        {"flags", oct_type_make(OCT_DTYPE_BOOL, 1, (int64_t[]){2}), flags},
    };
    const oct_safetensors_text notes[] = {{"recipe", "a: 1\nb: \"x\"\t\x7f"}, {"empty", ""}};
    oct_safetensors *s = NULL;
    oct_tensor *t = NULL;
    size_t size;

    assert_ok(f->ctx, oct_safetensors_save(f->ctx, path, entry, 5, notes, 2));
    assert_ok(f->ctx, oct_safetensors_open(f->ctx, path, &s));
    assert_int_equal(oct_safetensors_count(s), 5);
    assert_string_equal(oct_safetensors_name(s, 0), "step"); /* the widest type is first */
    for (int i = 0; i < 5; i++) {
        const int32_t k = oct_safetensors_find(s, entry[i].name);
        const void *data;

        assert_true(k >= 0);
        assert_string_equal(oct_safetensors_name(s, k), entry[i].name);
        assert_true(oct_type_equal(oct_safetensors_type(s, k), &entry[i].type));
        data = oct_safetensors_data(s, k, &size);
        if (size) assert_memory_equal(data, entry[i].data, size);
        assert_ok(f->ctx, oct_safetensors_tensor(s, k, &t));
        assert_int_equal(t->size, size);
        if (size) assert_memory_equal(t->data, entry[i].data, size);
        oct_tensor_unref(t);
    }
    assert_int_equal(oct_safetensors_find(s, "y"), -1);
    assert_int_equal(oct_safetensors_n_notes(s), 2);
    assert_string_equal(oct_safetensors_note_key(s, 0), "recipe");
    assert_string_equal(oct_safetensors_note(s, "recipe"), notes[0].text);
    assert_string_equal(oct_safetensors_note(s, "empty"), "");
    assert_null(oct_safetensors_note(s, "nothing"));

    /* A tensor outlives what it came from. */
    assert_ok(f->ctx, oct_safetensors_tensor(s, oct_safetensors_find(s, "z"), &t));
    oct_safetensors_close(s);
    assert_memory_equal(t->data, w, sizeof(w));
    oct_tensor_unref(t);
}

/* The bytes of a small file, as the format's description has them. */
static void the_form_is_fixed(void **state)
{
    static const char want[] =
        "\x50\0\0\0\0\0\0\0{\"__metadata__\":{\"k\":\"v\"},\"w\":{\"dtype\":\"U8\",\"shape\":[2],"
        "\"data_offsets\":[0,2]}}  \x0a\x0b";
    fixture *f = *state;
    const oct_safetensors_entry entry = {"w", oct_type_make(OCT_DTYPE_U8, 1, (int64_t[]){2}),
                                         "\x0a\x0b"};
    const oct_safetensors_text note = {"k", "v"};
    oct_file *file = NULL;

    assert_ok(f->ctx, oct_safetensors_save(f->ctx, path, &entry, 1, &note, 1));
    assert_ok(f->ctx, oct_file_map(f->ctx, path, &file));
    assert_int_equal(oct_file_size(file), sizeof(want) - 1);
    assert_memory_equal(oct_file_data(file), want, sizeof(want) - 1);
    oct_file_unref(file);
}

static void reads_what_others_write(void **state)
{
    static const char header[] =
        " \n{ }"; /* must start with the brace: this one is refused below */
    static const char good[] = "{\"a\\u00e9\\ud83d\\ude00\\/\" : {\"data_offsets\":[2,6],\n"
                               "\"shape\":[1,2] ,\"dtype\":\"BF16\"},\"b\":{\"dtype\":\"F4\","
                               "\"shape\":[4],\"data_offsets\":[0,2]}}";
    fixture *f = *state;
    oct_safetensors *s = NULL;
    oct_tensor *t = NULL;
    size_t size;
    uint8_t *p = make_file(good, 6, &size);

    assert_ok(f->ctx, oct_safetensors_parse(f->ctx, p, size, &s));
    assert_string_equal(oct_safetensors_name(s, 0), "b");
    assert_string_equal(oct_safetensors_name(s, 1), "a\xc3\xa9\xf0\x9f\x98\x80/");
    assert_int_equal(oct_safetensors_type(s, 0)->dtype, OCT_DTYPE_F4E2M1);
    for (int i = 0; i < 2; i++) {
        assert_ok(f->ctx, oct_safetensors_tensor(s, i, &t)); /* wherever the data begin */
        assert_int_equal(((uintptr_t)t->data) % (i ? 2 : 1), 0);
        assert_int_equal(*(const uint8_t *)t->data, i ? 3 : 1);
        oct_tensor_unref(t);
    }
    oct_safetensors_close(s);
    free(p);
    assert_ok(f->ctx, parse(f->ctx, "{}", 0));
    assert_ok(f->ctx, parse(f->ctx, "{\"__metadata__\":{}}   ", 0));
    assert_fails(f->ctx, parse(f->ctx, header, 0), OCT_ERR_FORMAT, "brace");
}

static void six_bits_are_told_not_used(void **state)
{
    fixture *f = *state;
    oct_safetensors *s = NULL;
    oct_tensor *t = NULL;
    size_t size;
    uint8_t *p =
        make_file("{\"x\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3, &size);

    assert_ok(f->ctx, oct_safetensors_parse(f->ctx, p, size, &s));
    assert_int_equal(oct_safetensors_type(s, 0)->dtype, OCT_DTYPE_NONE);
    assert_fails(f->ctx, oct_safetensors_tensor(s, 0, &t), OCT_ERR_UNSUPPORTED, "F6_E2M3");
    oct_safetensors_close(s);
    free(p);
}

#define U8(name, shape, at)                                                                        \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":" at "}"

static void hostile_headers_are_refused(void **state)
{
    static const struct {
        const char *header;
        size_t n_data;
        const char *why;
    } cases[] = {
        {"", 0, "brace"},
        {"[]", 0, "brace"},
        {"{", 0, "quoted text is missing"},
        {"{\"a", 0, "not closed"},
        {"{\"a\\", 0, "not closed"},
        {"{\"a\\\"", 0, "not closed"},
        {"{} x", 0, "more after"},
        {"{,}", 0, "quoted"},
        {"{" U8("a", "[2]", "[0,2]") ",}", 2, "quoted"},
        {"{" U8("a", "[2]", "[0,2]") " " U8("b", "[0]", "[2,2]") "}", 2, "comma"},
        {"{" U8("a", "[2]", "[0,2]") "}", 1, "cut off"},
        {"{" U8("a", "[2]", "[0,2]") "}", 3, "the file has 3"},
        {"{" U8("a", "[2]", "[1,3]") "}", 3, "begins at byte 1"},
        {"{" U8("a", "[2]", "[0,2]") "," U8("b", "[2]", "[1,3]") "}", 3, "begins at byte 1"},
        {"{" U8("a", "[2]", "[0,2]") "," U8("b", "[2]", "[3,5]") "}", 5, "begins at byte 3"},
        {"{" U8("a", "[2]", "[2,0]") "}", 2, "ends before"},
        {"{" U8("a", "[3]", "[0,2]") "}", 2, "needs 24 bits"},
        {"{" U8("a", "[2]", "[0,2]") "," U8("a", "[0]", "[2,2]") "}", 2, "twice"},
        {"{" U8("a", "[2]", "[0,2]") "," U8("\\u0061", "[0]", "[2,2]") "}", 2, "twice"},
        {"{" U8("a", "[4294967296,4294967296]", "[0,0]") "}", 0, "too large"},
        {"{" U8("a", "[4611686018427387904]", "[0,0]") "}", 0, "too large"},
        {"{" U8("a", "[99999999999999999999]", "[0,0]") "}", 0, "too large"},
        {"{" U8("a", "[-1]", "[0,0]") "}", 0, "number"},
        {"{" U8("a", "[1.5]", "[0,0]") "}", 0, "not closed"},
        {"{" U8("a", "[01]", "[0,1]") "}", 1, "leading zero"},
        {"{" U8("a", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, "too many"},
        {"{" U8("a", "[1", "[0,1]") "}", 1, "number"},
        {"{\"a\":{\"shape\":[1}}", 1, "list is not closed"},
        {"{" U8("a", "{}", "[0,1]") "}", 1, "list"},
        {"{" U8("a", "[1]", "[0]") "}", 1, "two numbers"},
        {"{" U8("a", "[1]", "[0,1,1]") "}", 1, "too many"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, "twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 0, "lacks"},
        {"{\"a\":{\"dtype\":\"U8\",\"strides\":[]}}", 0, "unknown key"},
        {"{\"a\":{}}", 0, "lacks"},
        {"{\"a\":3}", 0, "description"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "needs 4 bits"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "quoted"},
        {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, "twice"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
        {"{\"__metadata__\":[]}", 0, "not an object"},
        {"{\"\\ud800\":{}}", 0, "not valid JSON"},
        {"{\"\\ude00\\ud83d\":{}}", 0, "not valid JSON"},
        {"{\"\\u0000\":{}}", 0, "not valid JSON"},
        {"{\"\\u12g4\":{}}", 0, "not valid JSON"},
        {"{\"\\x\":{}}", 0, "not valid JSON"},
        {"{\"\xff\":{}}", 0, "not valid JSON"},
        {"{\"a\nb\":{}}", 0, "not valid JSON"},
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        assert_fails(f->ctx, parse(f->ctx, cases[i].header, cases[i].n_data), OCT_ERR_FORMAT,
                     cases[i].why);
    assert_fails(f->ctx, parse(f->ctx, "{\"a\":{\"dtype\":\"F128\"}}", 0), OCT_ERR_UNSUPPORTED,
                 "F128");
}

static void hostile_lengths_are_refused(void **state)
{
    fixture *f = *state;
    const uint8_t huge[9] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{'};
    const uint8_t longer[10] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    oct_safetensors *s = NULL;

    assert_fails(f->ctx, oct_safetensors_parse(f->ctx, huge, 9, &s), OCT_ERR_FORMAT,
                 "a header of 18446744073709551615");
    assert_fails(f->ctx, oct_safetensors_parse(f->ctx, longer, 10, &s), OCT_ERR_FORMAT,
                 "ends after 2");
    for (size_t n = 0; n < 8; n++)
        assert_fails(f->ctx, oct_safetensors_parse(f->ctx, longer, n, &s), OCT_ERR_FORMAT,
                     "not a safetensors file");
    assert_fails(f->ctx, oct_safetensors_open(f->ctx, "/nowhere/x", &s), OCT_ERR_IO, "/nowhere/x");
}

/* Every shorter file, and every file with one byte changed: a reason or a file, never more. */
static void broken_copies(void **state)
{
    static const char header[] =
        "{\"__metadata__\":{\"k\":\"\\u00e9\"}," U8("a", "[2]", "[0,2]") "}";
    fixture *f = *state;
    size_t size;
    uint8_t *p = make_file(header, 2, &size);

    for (size_t at = 8; at < size; at++) {
        for (int k = 0; k < 256; k += 5) {
            oct_safetensors *s = NULL;
            const uint8_t was = p[at];

            p[at] = (uint8_t)k;
            if (oct_safetensors_parse(f->ctx, p, size, &s)) assert_true(oct_ctx_error(f->ctx)[0]);
            oct_safetensors_close(s);
            p[at] = was;
        }
    }
    for (size_t n = 0; n < size; n++) {
        oct_safetensors *s = NULL;
        uint8_t *exact = malloc(n + 1);

        assert_non_null(exact);
        memcpy(exact + 1, p, n);
        assert_int_equal(oct_safetensors_parse(f->ctx, exact + 1, n, &s), OCT_ERR_FORMAT);
        free(exact);
    }
    free(p);
}

static void what_cannot_be_written_is_refused(void **state)
{
    fixture *f = *state;
    const oct_type u8 = oct_type_make(OCT_DTYPE_U8, 1, (int64_t[]){1});
    const oct_safetensors_entry twice[] = {{"a", u8, "x"}, {"a", u8, "y"}};
    const oct_safetensors_entry taken = {"__metadata__", u8, "x"}, bad = {"\xff", u8, "x"};
    const oct_safetensors_entry text = {"t", oct_type_make(OCT_DTYPE_STRING, 0, NULL), NULL};
    const oct_safetensors_text note = {"k", "\x80"};

    assert_fails(f->ctx, oct_safetensors_save(f->ctx, path, twice, 2, NULL, 0), OCT_ERR_ARG,
                 "taken");
    assert_fails(f->ctx, oct_safetensors_save(f->ctx, path, &taken, 1, NULL, 0), OCT_ERR_ARG,
                 "taken");
    assert_fails(f->ctx, oct_safetensors_save(f->ctx, path, &bad, 1, NULL, 0), OCT_ERR_ARG,
                 "UTF-8");
    assert_fails(f->ctx, oct_safetensors_save(f->ctx, path, &text, 1, NULL, 0), OCT_ERR_UNSUPPORTED,
                 "string");
    assert_fails(f->ctx, oct_safetensors_save(f->ctx, path, &twice[0], 1, &note, 1), OCT_ERR_ARG,
                 path);
    assert_int_equal(access(path, F_OK), -1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_path, teardown_path)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(round_trip),
        CASE(the_form_is_fixed),
        CASE(reads_what_others_write),
        CASE(six_bits_are_told_not_used),
        CASE(hostile_headers_are_refused),
        CASE(hostile_lengths_are_refused),
        CASE(broken_copies),
        CASE(what_cannot_be_written_is_refused),
    };

    return run_test_group(tests);
}
