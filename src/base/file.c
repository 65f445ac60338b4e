/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files for reading; a temporary file, renamed when whole, for writing. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/ctx.h"
#include "base/machine.h"
#include "base/mem.h"

struct oct_file {
    oct_ctx *ctx;
    void *map; /* NULL: an empty file */
    size_t size;
    atomic_int refs;
    char path[];
};

/* "PATH: what: reason of the system". */
static oct_status fail_errno(oct_ctx *ctx, const char *path, const char *what, int error)
{
    char buf[128];
    const char *reason = strerror_r(error, buf, sizeof(buf));

    return oct_fail(ctx, error == ENOMEM ? OCT_ERR_MEMORY : OCT_ERR_IO, "%s: %s: %s", path, what,
                    reason);
}

/* Opens a regular file and tells its size. */
static oct_status open_regular(oct_ctx *ctx, const char *path, int *fd, size_t *size)
{
    struct stat info;
    /* O_NONBLOCK: opening a pipe must not wait for its other end. */
    const int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (f < 0) return fail_errno(ctx, path, "cannot open", errno);
    if (fstat(f, &info)) {
        const int error = errno;

        close(f);
        return fail_errno(ctx, path, "cannot open", error);
    }
    if (!S_ISREG(info.st_mode)) {
        close(f);
        return oct_fail(ctx, OCT_ERR_IO, "%s: %s", path,
                        S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file");
    }
    *fd = f;
    *size = (size_t)info.st_size;
    return OCT_OK;
}

oct_status oct_file_map(oct_ctx *ctx, const char *path, oct_file **out)
{
    const size_t path_size = strlen(path) + 1;
    size_t size = 0;
    void *map = NULL;
    oct_file *f;
    int fd = -1;

    OCT_TRY(open_regular(ctx, path, &fd, &size));
    if (size) {
        map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED) {
            const int error = errno;

            close(fd);
            return fail_errno(ctx, path, "cannot map", error);
        }
    }
    close(fd);

    f = oct_alloc(ctx, sizeof(*f) + path_size);
    if (!f) {
        if (map) munmap(map, size);
        return OCT_ERR_MEMORY;
    }
    f->ctx = ctx;
    f->map = map;
    f->size = size;
    atomic_init(&f->refs, 1);
    memcpy(f->path, path, path_size);
    *out = f;
    return OCT_OK;
}

const uint8_t *oct_file_data(const oct_file *f)
{
    return f->map ? f->map : (const uint8_t *)"";
}

size_t oct_file_size(const oct_file *f)
{
    return f->size;
}

const char *oct_file_path(const oct_file *f)
{
    return f->path;
}

oct_file *oct_file_ref(oct_file *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void oct_file_unref(oct_file *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) > 1) return;
    if (f->map) munmap(f->map, f->size);
    oct_free(f->ctx, f);
}

#define WRITER_BUFFER ((size_t)1 << 20)
#define TEMP_ENDING   32 /* bytes that a temporary name is longer */

struct oct_writer {
    oct_ctx *ctx;
    char *path;      /* where it goes; symbolic links resolved */
    char *temp;      /* NULL: `path` is a device or a pipe and is written directly */
    bool is_unnamed; /* `temp` is the name it will get: until then it goes away with the process */
    char *buffer;
    size_t used;
    uint64_t offset;
    int fd;
    oct_status status; /* sticky: a file with a hole must not be committed */
};

static void free_writer(oct_writer *w)
{
    if (w->fd >= 0) close(w->fd);
    oct_free(w->ctx, w->buffer);
    oct_free(w->ctx, w->temp);
    oct_free(w->ctx, w->path);
    oct_free(w->ctx, w);
}

/* The file a name stands for: renaming onto a symbolic link would replace the link. */
static char *resolve(oct_ctx *ctx, const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = oct_strdup(ctx, real ? real : path); /* a new file has no real path yet */

    free(real);
    return copy;
}

/* Puts the next name that a temporary file may have into w->temp. */
static void next_temp(oct_writer *w, size_t size, uint64_t *tag)
{
    snprintf(w->temp, size, "%s.%06llx.tmp", w->path, (unsigned long long)(*tag & 0xffffff));
    ++*tag;
}

/* A file without a name, so that a process that is killed leaves nothing. -1: not on this disk. */
static int open_unnamed(const char *path)
{
    char dir[4096];
    const char *slash = strrchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) + 1 : 0;

    if (len >= sizeof(dir) || access("/proc/self/fd", X_OK)) return -1; /* it names it in the end */
    memcpy(dir, path, len);
    dir[len] = '\0';
    return open(len ? dir : ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
}

static oct_status open_named(oct_writer *w, size_t size)
{
    for (uint64_t tag = (uint64_t)oct_time_ns();;) {
        next_temp(w, size, &tag);
        w->fd = open(w->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0) return OCT_OK;
        if (errno != EEXIST) {
            const int error = errno;

            oct_free(w->ctx, w->temp); /* it is not there: nothing to remove */
            w->temp = NULL;
            return fail_errno(w->ctx, w->path, "cannot create", error);
        }
    }
}

/* Gives an unnamed file its temporary name, from which it is renamed. */
static oct_status give_name(oct_writer *w)
{
    const size_t size = strlen(w->path) + TEMP_ENDING;
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", w->fd);
    for (uint64_t tag = (uint64_t)oct_time_ns();;) {
        next_temp(w, size, &tag);
        if (!linkat(AT_FDCWD, link, AT_FDCWD, w->temp, AT_SYMLINK_FOLLOW)) break;
        if (errno != EEXIST) return fail_errno(w->ctx, w->path, "cannot create", errno);
    }
    w->is_unnamed = false;
    return OCT_OK;
}

/* A new file beside w->path, with the mode of the file it will replace. */
static oct_status open_temp(oct_writer *w, const struct stat *old)
{
    const size_t size = strlen(w->path) + TEMP_ENDING;

    w->temp = oct_alloc(w->ctx, size);
    if (!w->temp) return OCT_ERR_MEMORY;
    w->fd = open_unnamed(w->path);
    w->is_unnamed = w->fd >= 0;
    if (!w->is_unnamed) OCT_TRY(open_named(w, size));
    if (old) (void)fchmod(w->fd, old->st_mode & 07777); /* at best: it may be another user's */
    return OCT_OK;
}

/* The descriptor of this process that a name like /dev/stdout stands for; -1: it is no such name.
 */
static int own_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    char *end = NULL;

    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (size_t i = 0; i < OCT_COUNT(folders); i++) {
        const size_t len = strlen(folders[i]);

        if (strncmp(path, folders[i], len)) continue;
        const long fd = strtol(path + len, &end, 10);

        return *end || end == path + len || fd < 0 || fd > INT_MAX ? -1 : (int)fd;
    }
    return -1;
}

static oct_status open_target(oct_writer *w)
{
    struct stat old;
    const bool exists = !stat(w->path, &old);

    if (exists && S_ISDIR(old.st_mode))
        return oct_fail(w->ctx, OCT_ERR_IO, "%s: is a directory", w->path);
    /* A rename does not ask the file, only its folder; and root may write everything. */
    if (exists && S_ISREG(old.st_mode) && !(old.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)))
        return oct_fail(w->ctx, OCT_ERR_IO,
                        "%s: is read-only and stays as it is; choose another name, or make it "
                        "writable first",
                        w->path);
    if (!exists || S_ISREG(old.st_mode)) return open_temp(w, exists ? &old : NULL);
    w->fd = open(w->path, O_WRONLY | O_CLOEXEC);
    if (w->fd < 0) return fail_errno(w->ctx, w->path, "cannot open", errno);
    return OCT_OK;
}

oct_status oct_file_ask_read(oct_ctx *ctx, const char *path)
{
    char why[512] = "";

    if (!ctx->read_check || !ctx->read_check(ctx->read_check_user, path, why, sizeof(why)))
        return OCT_OK;
    return oct_fail(ctx, OCT_ERR_ARG, "%s: %s", path, *why ? why : "may not be read");
}

static oct_status ask(oct_ctx *ctx, const char *path)
{
    char why[512] = "";

    if (!ctx->write_check || !ctx->write_check(ctx->write_check_user, path, why, sizeof(why)))
        return OCT_OK;
    return oct_fail(ctx, OCT_ERR_ARG, "%s: %s", path, *why ? why : "may not be written");
}

oct_status oct_writer_open(oct_ctx *ctx, const char *path, oct_writer **out)
{
    oct_writer *w = oct_calloc(ctx, 1, sizeof(*w));
    oct_status st = OCT_ERR_MEMORY;

    if (!w) return st;
    w->ctx = ctx;
    w->fd = -1;
    if ((st = ask(ctx, path))) goto fail;
    st = OCT_ERR_MEMORY;
    if (!(w->path = resolve(ctx, path))) goto fail;
    if (!(w->buffer = oct_alloc(ctx, WRITER_BUFFER))) goto fail;
    if (own_descriptor(path) >= 0) {
        w->fd = fcntl(own_descriptor(path), F_DUPFD_CLOEXEC, 0);
        st = w->fd < 0 ? fail_errno(ctx, path, "cannot open", errno) : OCT_OK;
    } else {
        st = open_target(w);
    }
    if (st) goto fail;
    *out = w;
    return OCT_OK;
fail:
    oct_writer_abort(w);
    return st;
}

static oct_status write_all(oct_writer *w, const char *p, size_t size)
{
    while (size) {
        const ssize_t n = write(w->fd, p, size);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return w->status = fail_errno(w->ctx, w->path, "cannot write", errno);
        p += n;
        size -= (size_t)n;
    }
    return OCT_OK;
}

static oct_status flush(oct_writer *w)
{
    const size_t used = w->used;

    w->used = 0;
    return write_all(w, w->buffer, used);
}

oct_status oct_writer_put(oct_writer *w, const void *p, size_t size)
{
    if (w->status) return w->status;
    w->offset += size;
    if (size > WRITER_BUFFER - w->used) {
        OCT_TRY(flush(w));
        if (size >= WRITER_BUFFER) return write_all(w, p, size);
    }
    if (size) memcpy(w->buffer + w->used, p, size);
    w->used += size;
    return OCT_OK;
}

oct_status oct_writer_printf(oct_writer *w, const char *fmt, ...)
{
    va_list args;
    int len;

    if (w->status) return w->status;
    for (int attempt = 0; attempt < 2; attempt++) { /* the second with an empty buffer */
        const size_t room = WRITER_BUFFER - w->used;

        va_start(args, fmt);
        len = vsnprintf(w->buffer + w->used, room, fmt, args);
        va_end(args);
        if (len < 0) break;
        if ((size_t)len < room) {
            w->used += (size_t)len;
            w->offset += (uint64_t)len;
            return OCT_OK;
        }
        OCT_TRY(flush(w));
    }
    return w->status = oct_fail(w->ctx, OCT_ERR_ARG, "%s: text too long to write", w->path);
}

uint64_t oct_writer_offset(const oct_writer *w)
{
    return w->offset;
}

oct_status oct_writer_expect(oct_writer *w, uint64_t size)
{
    struct statvfs disk;
    uint64_t left;

    if (!w->temp || fstatvfs(w->fd, &disk) || disk.f_blocks == 0) return OCT_OK; /* not known */
    if (!__builtin_mul_overflow((uint64_t)disk.f_bavail, (uint64_t)disk.f_frsize, &left) &&
        size > left)
        return oct_fail(w->ctx, OCT_ERR_IO,
                        "%s: needs %llu bytes, but only %llu are free on its disk", w->path,
                        (unsigned long long)size, (unsigned long long)left);
    return OCT_OK;
}

/* The new name is on the disk only when its directory is. */
static void sync_directory(const char *path)
{
    char dir[4096];
    const char *slash = strrchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    int fd;

    if (len >= sizeof(dir)) return;
    memcpy(dir, path, len);
    dir[len] = '\0';
    fd = open(len ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd); /* some file systems cannot; the file itself is whole */
    close(fd);
}

static oct_status commit(oct_writer *w, bool sync)
{
    oct_status st = w->status;
    int error = 0;

    if (!st) st = flush(w);
    if (!st && sync && w->temp && fsync(w->fd))
        st = fail_errno(w->ctx, w->path, "cannot write", errno);
    if (!st && w->is_unnamed) st = give_name(w);
    if (!st) {
        error = close(w->fd) ? errno : 0;
        w->fd = -1;
        if (error && error != EINTR) st = fail_errno(w->ctx, w->path, "cannot write", error);
    }
    if (!st && w->temp && rename(w->temp, w->path))
        st = fail_errno(w->ctx, w->path, "cannot rename onto", errno);
    if (st) {
        oct_writer_abort(w);
        return st;
    }
    if (sync && w->temp) sync_directory(w->path);
    free_writer(w);
    return OCT_OK;
}

oct_status oct_writer_commit(oct_writer *w)
{
    return commit(w, true);
}

oct_status oct_writer_commit_unsynced(oct_writer *w)
{
    return commit(w, false);
}

oct_status oct_write_file(oct_ctx *ctx, const char *path, const void *data, size_t size)
{
    OCT_ENTER(ctx);
    oct_writer *w = NULL;
    oct_status st;

    OCT_TRY(oct_writer_open(ctx, path, &w));
    st = oct_writer_put(w, data, size);
    if (!st) return oct_writer_commit(w);
    oct_writer_abort(w);
    return st;
}

void oct_writer_abort(oct_writer *w)
{
    if (!w) return;
    if (w->temp && !w->is_unnamed) (void)unlink(w->temp);
    free_writer(w);
}
