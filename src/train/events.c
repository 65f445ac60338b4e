/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorBoard's event files: records with checksums, each a protobuf message Event, which is so
 * small that it is written down by hand.
 */
#include "train/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/* Wire types of protobuf, and the fields that are written. */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SCALAR = 2, VALUE_IMAGE = 4 };
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH = 2, IMAGE_CHANNELS = 3, IMAGE_DATA = 4 };

struct oct_events {
    oct_ctx *ctx;
    int fd;
    int64_t size; /* of whole records */
    oct_str path;
    oct_str value, summary, record; /* kept, so that a record needs no new memory */
};

/* --- checksums --- */

uint32_t oct_crc32c(const void *p, size_t size)
{
    const uint8_t *bytes = p;
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0u);
    }
    return crc ^ 0xffffffffu;
}

uint32_t oct_crc32c_masked(const void *p, size_t size)
{
    const uint32_t crc = oct_crc32c(p, size);

    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* --- protobuf --- */

static void put_little(oct_str *b, uint64_t v, int n_bytes)
{
    char bytes[8];

    for (int i = 0; i < n_bytes; i++)
        bytes[i] = (char)(v >> 8 * i);
    oct_str_put(b, bytes, (size_t)n_bytes);
}

static void put_varint(oct_str *b, uint64_t v)
{
    char bytes[10];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (char)(v | 0x80);
    bytes[n++] = (char)v;
    oct_str_put(b, bytes, n);
}

static void put_tag(oct_str *b, int field, int type)
{
    put_varint(b, (uint64_t)(field << 3 | type));
}

static void put_number(oct_str *b, int field, int64_t v)
{
    put_tag(b, field, VARINT);
    put_varint(b, (uint64_t)v);
}

static void put_bytes(oct_str *b, int field, const void *p, size_t size)
{
    put_tag(b, field, BYTES);
    put_varint(b, size);
    oct_str_put(b, p, size);
}

static void put_time(oct_str *b)
{
    struct timespec now;
    double seconds;
    uint64_t bits;

    clock_gettime(CLOCK_REALTIME, &now);
    seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    memcpy(&bits, &seconds, sizeof(bits));
    put_tag(b, EVENT_TIME, FIXED64);
    put_little(b, bits, 8);
}

/* --- records --- */

/* Room for the length and its checksum, which are known at the end. */
static void begin_record(oct_str *b)
{
    b->len = 0;
    put_little(b, 0, 8);
    put_little(b, 0, 4);
    put_time(b);
}

static void set_little(char *at, uint64_t v, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        at[i] = (char)(v >> 8 * i);
}

/* Appends the record, whole or not at all. */
static oct_status end_record(oct_events *e)
{
    oct_str *b = &e->record;
    const size_t head = 12, size = b->len - head;
    size_t done = 0;

    if (b->failed || e->value.failed || e->summary.failed) return OCT_ERR_MEMORY;
    set_little(b->s, size, 8);
    set_little(b->s + 8, oct_crc32c_masked(b->s, 8), 4);
    put_little(b, oct_crc32c_masked(b->s + head, size), 4);
    if (b->failed) return OCT_ERR_MEMORY;
    while (done < b->len) {
        const ssize_t n = write(e->fd, b->s + done, b->len - done);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            const int error = errno;
            char text[128];

            (void)!ftruncate(e->fd,
                             (off_t)e->size); /* readers skip a torn record only at the end */
            return oct_fail(e->ctx, OCT_ERR_IO, "%s: cannot write: %s", e->path.s,
                            strerror_r(error, text, sizeof(text)));
        }
        done += (size_t)n;
    }
    e->size += (int64_t)b->len;
    return OCT_OK;
}

/* An event whose summary is what e->value has. */
static oct_status put_summary(oct_events *e, int64_t step)
{
    e->summary.len = 0;
    put_bytes(&e->summary, SUMMARY_VALUE, e->value.s, e->value.len);
    begin_record(&e->record);
    put_number(&e->record, EVENT_STEP, step);
    if (!e->summary.failed) put_bytes(&e->record, EVENT_SUMMARY, e->summary.s, e->summary.len);
    return end_record(e);
}

oct_status oct_events_scalar(oct_events *e, const char *tag, int64_t step, double value)
{
    const float number = (float)value;
    uint32_t bits;

    memcpy(&bits, &number, sizeof(bits));
    e->value.len = 0;
    put_bytes(&e->value, VALUE_TAG, tag, strlen(tag));
    put_tag(&e->value, VALUE_SCALAR, FIXED32);
    put_little(&e->value, bits, 4);
    return put_summary(e, step);
}

oct_status oct_events_picture(oct_events *e, const char *tag, int64_t step, int32_t width,
                              int32_t height, int32_t n_channels, const void *data, size_t size)
{
    oct_str image;
    oct_status st;

    oct_str_init(&image, e->ctx);
    put_number(&image, IMAGE_HEIGHT, height);
    put_number(&image, IMAGE_WIDTH, width);
    put_number(&image, IMAGE_CHANNELS, n_channels);
    put_bytes(&image, IMAGE_DATA, data, size);
    e->value.len = 0;
    put_bytes(&e->value, VALUE_TAG, tag, strlen(tag));
    if (!image.failed) put_bytes(&e->value, VALUE_IMAGE, image.s, image.len);
    st = image.failed ? OCT_ERR_MEMORY : put_summary(e, step);
    oct_str_fini(&image);
    return st;
}

/* --- files --- */

/* The folder and those around it. What cannot be made is told when the file is opened in it. */
static oct_status make_folder(oct_ctx *ctx, const char *dir)
{
    char *path = oct_strdup(ctx, dir);

    if (!path) return OCT_ERR_MEMORY;
    for (char *p = path; (p = strchr(p + 1, '/'));) {
        *p = '\0';
        (void)mkdir(path, 0777);
        *p = '/';
    }
    (void)mkdir(path, 0777);
    oct_free(ctx, path);
    return OCT_OK;
}

/* A new file: nothing that is there is touched. */
static oct_status open_file(oct_events *e, const char *dir)
{
    char host[65] = "";
    const long long now = (long long)time(NULL);

    if (gethostname(host, sizeof(host) - 1) || !*host) strcpy(host, "localhost");
    for (char *p = host; *p; p++)
        if (*p == '/') *p = '-';
    for (int n = 0;; n++) {
        char text[128];

        e->path.len = 0;
        oct_str_printf(&e->path, "%s/events.out.tfevents.%010lld.%s.%ld.%d", dir, now, host,
                       (long)getpid(), n);
        if (e->path.failed) return OCT_ERR_MEMORY;
        e->fd = open(e->path.s, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (e->fd >= 0) return OCT_OK;
        if (errno == EEXIST && n < 10000) continue;
        return oct_fail(e->ctx, OCT_ERR_IO, "%s: cannot create: %s", e->path.s,
                        strerror_r(errno, text, sizeof(text)));
    }
}

oct_status oct_events_open(oct_ctx *ctx, const char *dir, oct_events **out)
{
    static const char version[] = "brain.Event:2";
    oct_events *e = oct_calloc(ctx, 1, sizeof(*e));
    oct_status st;

    if (!e) return OCT_ERR_MEMORY;
    e->ctx = ctx;
    e->fd = -1;
    oct_str_init(&e->path, ctx);
    oct_str_init(&e->value, ctx);
    oct_str_init(&e->summary, ctx);
    oct_str_init(&e->record, ctx);
    st = make_folder(ctx, dir);
    if (!st) st = open_file(e, dir);
    if (!st) {
        begin_record(&e->record);
        put_bytes(&e->record, EVENT_VERSION, version, sizeof(version) - 1);
        st = end_record(e);
    }
    if (st)
        oct_events_close(e);
    else
        *out = e;
    return st;
}

void oct_events_close(oct_events *e)
{
    if (!e) return;
    if (e->fd >= 0) close(e->fd);
    oct_str_fini(&e->path);
    oct_str_fini(&e->value);
    oct_str_fini(&e->summary);
    oct_str_fini(&e->record);
    oct_free(e->ctx, e);
}

const char *oct_events_path(const oct_events *e)
{
    return e->path.s;
}
