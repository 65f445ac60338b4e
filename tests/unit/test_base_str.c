/* SPDX-License-Identifier: Apache-2.0 */
/* Growing strings. */
#include "tests/alloc.h"

#include "base/base64.h"
#include "base/sha256.h"
#include "base/str.h"

static void appends(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_str s;

    (void)state;
    oct_str_init(&s, ctx);
    assert_null(s.s);
    oct_str_puts(&s, "");
    assert_string_equal(s.s, "");
    oct_str_puts(&s, "one");
    oct_str_put(&s, "twoX", 3);
    oct_str_printf(&s, "%d%s", 3, "!");
    assert_string_equal(s.s, "onetwo3!");
    assert_int_equal(s.len, 8);
    for (int i = 0; i < 10000; i++)
        oct_str_printf(&s, "%04d", i);
    assert_int_equal(s.len, 40008);
    assert_string_equal(s.s + 40004, "9999");
    assert_false(s.failed);
    oct_str_fini(&s);
    oct_str_fini(&s); /* twice is fine */
    assert_int_equal(atomic_load(&ctx->mem_used), 0);
    oct_ctx_free(ctx);
}

static void failure_is_sticky(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_str s;

    (void)state;
    oct_str_init(&s, ctx);
    oct_str_puts(&s, "start");
    oct_str_put(&s, "", SIZE_MAX - 2);
    assert_true(s.failed);
    oct_str_puts(&s, "more");
    assert_string_equal(s.s, "start");
    oct_str_fini(&s);
    oct_ctx_free(ctx);
}

static oct_status use_str(oct_ctx *ctx)
{
    oct_status st;
    oct_str s;

    oct_str_init(&s, ctx);
    for (int i = 0; i < 100; i++) {
        oct_str_puts(&s, "word");
        oct_str_printf(&s, "%d", i);
    }
    st = s.failed ? OCT_ERR_MEMORY : OCT_OK;
    oct_str_fini(&s);
    return st;
}

static void str_survives_every_failure(void **state)
{
    (void)state;
    fail_each_allocation(use_str);
}

/* Digests that sha256sum prints. */
static void digests(void **state)
{
    char text[OCT_SHA256_TEXT], many[1000];

    (void)state;
    memset(many, 'a', sizeof(many));
    assert_string_equal(oct_sha256("", 0, text),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(oct_sha256("abc", 3, text),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(oct_sha256(many, 55, text), /* the most that fits one block */
                        "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    assert_string_equal(oct_sha256(many, 56, text),
                        "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    assert_string_equal(oct_sha256(many, sizeof(many), text),
                        "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}

static void assert_base64(const char *bytes, size_t n, const char *text)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    char back[16];
    size_t size = 99;
    oct_str s;

    oct_str_init(&s, ctx);
    oct_base64_put(&s, bytes, n);
    assert_string_equal(s.s ? s.s : "", text);
    assert_true(oct_base64_get(text, strlen(text), back, &size));
    assert_int_equal(size, n);
    assert_memory_equal(back, bytes, n);
    oct_str_fini(&s);
    oct_ctx_free(ctx);
}

/* The examples of RFC 4648, and texts that are none. */
static void base64(void **state)
{
    static const char *const bad[] = {
        "Z",        "Zg",   "Zg=",  "====", "Z===",    "Zh==",  "Zm9=",
        "Zg==Zg==", "Zg= ", "Z g=", "=Zg=", "Zm\xff=", "Zm8=\n"};
    char back[16];
    size_t size;

    (void)state;
    assert_base64("", 0, "");
    assert_base64("f", 1, "Zg==");
    assert_base64("fo", 2, "Zm8=");
    assert_base64("foo", 3, "Zm9v");
    assert_base64("foob", 4, "Zm9vYg==");
    assert_base64("fooba", 5, "Zm9vYmE=");
    assert_base64("foobar", 6, "Zm9vYmFy");
    assert_base64("\xff\xef\xbe", 3, "/+++");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (oct_base64_get(bad[i], strlen(bad[i]), back, &size)) fail_msg("'%s' was read", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends),
        cmocka_unit_test(failure_is_sticky),
        cmocka_unit_test(digests),
        cmocka_unit_test(base64),
        cmocka_unit_test(str_survives_every_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
