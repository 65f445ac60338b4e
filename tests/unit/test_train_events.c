/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard's event files: checksums, the form of records, files that grow. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/test.h"
#include "train/events.h"

static char dir[64];

static int setup_dir(void **state)
{
    snprintf(dir, sizeof(dir), "/tmp/octet-test-events-%d", (int)getpid());
    return setup(state);
}

static void empty_folder(const char *path)
{
    char name[512];
    struct dirent *entry;
    DIR *d = opendir(path);

    while (d && (entry = readdir(d))) {
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.') (void)unlink(name);
    }
    if (d) closedir(d);
    (void)rmdir(path);
}

static int teardown_dir(void **state)
{
    char inner[128];

    snprintf(inner, sizeof(inner), "%s/run/1", dir);
    empty_folder(inner);
    snprintf(inner, sizeof(inner), "%s/run", dir);
    empty_folder(inner);
    empty_folder(dir);
    return teardown(state);
}

static void checksums(void **state)
{
    const uint8_t length[8] = {24};

    (void)state;
    assert_int_equal(oct_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(oct_crc32c_masked("123456789", 9), 0xc78ab0e5);
    assert_int_equal(oct_crc32c_masked(length, 8), 0x224b7fa3);
    assert_int_equal(oct_crc32c("", 0), 0);
}

static uint64_t little(const uint8_t *p, int n)
{
    uint64_t v = 0;

    for (int i = 0; i < n; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* The message of the record at *at, whose checksums must hold; without the time, which differs. */
static const uint8_t *next_record(const oct_file *f, size_t *at, size_t *size)
{
    const uint8_t *p = oct_file_data(f) + *at;

    assert_true(oct_file_size(f) - *at >= 16);
    *size = (size_t)little(p, 8);
    assert_true(*size <= oct_file_size(f) - *at - 16);
    assert_int_equal(little(p + 8, 4), oct_crc32c_masked(p, 8));
    assert_int_equal(little(p + 12 + *size, 4), oct_crc32c_masked(p + 12, *size));
    *at += 16 + *size;
    assert_int_equal(p[12], 0x09); /* field 1, a double */
    assert_true(*size >= 9);
    *size -= 9;
    return p + 12 + 9;
}

static void assert_record(const oct_file *f, size_t *at, const char *want, size_t n)
{
    size_t size;
    const uint8_t *p = next_record(f, at, &size);

    assert_int_equal(size, n);
    assert_memory_equal(p, want, n);
}

#define RECORD(f, at, text) assert_record(f, at, text, sizeof(text) - 1)

static void records_have_the_form(void **state)
{
    fixture *f = *state;
    oct_events *e = NULL;
    oct_file *file = NULL;
    size_t at = 0;
    char inner[128];

    snprintf(inner, sizeof(inner), "%s/run/1", dir);
    assert_ok(f->ctx, oct_events_open(f->ctx, inner, &e)); /* folders are made */
    assert_non_null(strstr(oct_events_path(e), "/events.out.tfevents."));
    assert_ok(f->ctx, oct_events_scalar(e, "loss", 300, 1.5));
    assert_ok(f->ctx, oct_events_picture(e, "p", 1, 2, 1, 3, "PNG", 3));
    /* Nothing waits in memory: all is there while the file is open. */
    assert_ok(f->ctx, oct_file_map(f->ctx, oct_events_path(e), &file));
    RECORD(file, &at,
           "\x1a\x0d"
           "brain.Event:2");
    RECORD(file, &at,
           "\x10\xac\x02"
           "\x2a\x0d\x0a\x0b"
           "\x0a\x04loss\x15\x00\x00\xc0\x3f");
    RECORD(file, &at,
           "\x10\x01"
           "\x2a\x12\x0a\x10"
           "\x0a\x01p\x22\x0b\x08\x01\x10\x02\x18\x03\x22\x03PNG");
    assert_int_equal(at, oct_file_size(file));
    oct_file_unref(file);
    oct_events_close(e);
}

static void files_are_never_overwritten(void **state)
{
    fixture *f = *state;
    oct_events *a = NULL, *b = NULL;

    assert_ok(f->ctx, oct_events_open(f->ctx, dir, &a));
    assert_ok(f->ctx, oct_events_open(f->ctx, dir, &b));
    assert_string_not_equal(oct_events_path(a), oct_events_path(b));
    oct_events_close(a);
    oct_events_close(b);
    oct_events_close(NULL);
}

static void failures_are_told(void **state)
{
    fixture *f = *state;
    oct_events *e = NULL;

    assert_fails(f->ctx, oct_events_open(f->ctx, "/proc/nowhere", &e), OCT_ERR_IO, "/proc/nowhere");
    assert_fails(f->ctx, oct_events_open(f->ctx, "/dev/null", &e), OCT_ERR_IO, "cannot create");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_dir, teardown_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(checksums),
        CASE(records_have_the_form),
        CASE(files_are_never_overwritten),
        CASE(failures_are_told),
    };

    return run_test_group(tests);
}
