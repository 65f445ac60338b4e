/* SPDX-License-Identifier: Apache-2.0 */
/* The context: error text, callbacks, checked arithmetic. */
#include "tests/alloc.h"

#include <unistd.h>

#include "base/status.h"

static void error_text_survives_its_own_formatting(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    char long_text[5000];

    (void)state;
    assert_string_equal(oct_ctx_error(ctx), "no reason was recorded"); /* never empty */
    assert_int_equal(oct_fail(ctx, OCT_ERR_IO, "no %s", "disk"), OCT_ERR_IO);
    assert_string_equal(oct_ctx_error(ctx), "no disk");
    oct_fail(ctx, OCT_ERR_IO, "%s, really: %s", oct_ctx_error(ctx), oct_ctx_error(ctx));
    assert_string_equal(oct_ctx_error(ctx), "no disk, really: no disk");
    oct_fail(ctx, OCT_ERR_IO, "x");
    assert_int_equal(oct_fail_at(ctx, OCT_ERR_FORMAT, "a.onnx"), OCT_ERR_FORMAT);
    assert_string_equal(oct_ctx_error(ctx), "a.onnx: x");

    memset(long_text, 'y', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    oct_fail(ctx, OCT_ERR_IO, "%s", long_text);
    assert_int_equal(strlen(oct_ctx_error(ctx)), sizeof(ctx->error) - 1);
    oct_ctx_free(ctx);
}

/* A call that gives no reason of its own must not show that of an earlier one. */
static void reasons_do_not_outlive_the_next_call(void **state)
{
    char path[] = "/tmp/octet-ctx-XXXXXX";
    const int file = mkstemp(path);
    oct_ctx *ctx = oct_ctx_new(NULL);

    (void)state;
    assert_true(file >= 0);
    close(file);
    assert_fails(ctx, oct_write_file(ctx, "/no/such/folder/x", "x", 1), OCT_ERR_IO, "folder");
    assert_ok(ctx, oct_write_file(ctx, path, "x", 1));
    assert_string_equal(oct_ctx_error(ctx), "no reason was recorded");
    {
        OCT_ENTER(ctx);

        oct_fail(ctx, OCT_ERR_IO, "first");
        assert_ok(ctx, oct_write_file(ctx, path, "y", 1)); /* while something is put in order */
        assert_string_equal(oct_ctx_error(ctx), "first");
    }
    assert_string_equal(oct_ctx_error(ctx), "first");
    assert_ok(ctx, oct_write_file(ctx, path, "x", 1));
    assert_string_equal(oct_ctx_error(ctx), "no reason was recorded");
    unlink(path);
    oct_ctx_free(ctx);
}

static void log_line(void *user, oct_log_level level, const char *msg)
{
    snprintf(user, 64, "%d %s", (int)level, msg);
}

static int stop_at_two(void *user, const char *what, int64_t done, int64_t total)
{
    (void)what;
    ++*(int *)user;
    return done >= 2 && total == 3;
}

static void callbacks_are_called(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    char line[64] = "";
    int calls = 0;

    (void)state;
    oct_log(ctx, OCT_LOG_WARN, "unheard");
    assert_int_equal(oct_progress(ctx, "work", 2, 3), OCT_OK);
    oct_ctx_set_log(ctx, log_line, line);
    oct_ctx_set_progress(ctx, stop_at_two, &calls);
    oct_log(ctx, OCT_LOG_WARN, "layer %d", 7);
    assert_string_equal(line, "1 layer 7");
    assert_int_equal(oct_progress(ctx, "work", 1, 3), OCT_OK);
    assert_fails(ctx, oct_progress(ctx, "work", 2, 3), OCT_ERR_CANCELLED, "work");
    assert_int_equal(calls, 2);
    oct_ctx_free(ctx);
}

static void threads_default_to_the_machine(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    const int32_t cores = oct_ctx_threads(ctx);

    (void)state;
    assert_true(cores >= 1);
    oct_ctx_set_threads(ctx, 3);
    assert_int_equal(oct_ctx_threads(ctx), 3);
    oct_ctx_set_threads(ctx, -1);
    assert_int_equal(oct_ctx_threads(ctx), cores);
    oct_ctx_free(ctx);
    oct_ctx_free(NULL);
}

static void no_memory_for_a_context_is_null(void **state)
{
    failing f = {.fail_at = 1};
    const oct_allocator a = {failing_alloc, failing_free, &f};

    (void)state;
    assert_null(oct_ctx_new(&a));
}

static void version_is_three_numbers(void **state)
{
    int major, minor, patch;

    (void)state;
    assert_int_equal(sscanf(oct_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    assert_int_equal(major, OCT_VERSION_MAJOR);
    assert_int_equal(minor, OCT_VERSION_MINOR);
    assert_int_equal(patch, OCT_VERSION_PATCH);
}

static void arithmetic_knows_its_limits(void **state)
{
    size_t s = 1;
    int64_t i = 1;

    (void)state;
    assert_true(oct_mul_size(3, 5, &s) && s == 15);
    assert_false(oct_mul_size(SIZE_MAX / 2, 3, &s));
    assert_false(oct_add_size(SIZE_MAX, 1, &s));
    assert_int_equal(s, 15); /* untouched */
    assert_true(oct_add_size(SIZE_MAX - 1, 1, &s) && s == SIZE_MAX);
    assert_true(oct_mul_i64(-3, 5, &i) && i == -15);
    assert_false(oct_mul_i64(INT64_MIN, -1, &i));
    assert_false(oct_add_i64(INT64_MAX, 1, &i));
    assert_int_equal(i, -15);
    assert_true(oct_add_i64(INT64_MIN, INT64_MAX, &i) && i == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_text_survives_its_own_formatting),
        cmocka_unit_test(reasons_do_not_outlive_the_next_call),
        cmocka_unit_test(callbacks_are_called),
        cmocka_unit_test(threads_default_to_the_machine),
        cmocka_unit_test(no_memory_for_a_context_is_null),
        cmocka_unit_test(version_is_three_numbers),
        cmocka_unit_test(arithmetic_knows_its_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
