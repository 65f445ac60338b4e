/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files and the writer. */
#include "tests/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* What was asked of the system, in order: F a file synced, D a directory, R something renamed. */
static char calls[64];
static bool fsync_fails;

/* In place of the C library's. */
int fsync(int fd)
{
    struct stat info;

    assert_int_equal(fstat(fd, &info), 0);
    if (strlen(calls) < sizeof(calls) - 1) strcat(calls, S_ISDIR(info.st_mode) ? "D" : "F");
    if (fsync_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    if (strlen(calls) < sizeof(calls) - 1) strcat(calls, "R");
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

typedef struct files {
    oct_ctx *ctx;
    char folder[64], path[96];
} files;

static int open_folder(void **state)
{
    files *f = calloc(1, sizeof(*f));

    if (!f || !(f->ctx = oct_ctx_new(NULL))) return -1;
    make_folder(f->folder);
    snprintf(f->path, sizeof(f->path), "%s/file", f->folder);
    *state = f;
    return 0;
}

static int close_folder(void **state)
{
    files *f = *state;
    const size_t left = atomic_load(&f->ctx->mem_used);

    remove_folder(f->folder);
    oct_ctx_free(f->ctx);
    free(f);
    return left ? -1 : 0;
}

static int n_entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void write_text(files *f, const char *path, const char *text)
{
    oct_writer *w = NULL;

    assert_ok(f->ctx, oct_writer_open(f->ctx, path, &w));
    assert_ok(f->ctx, oct_writer_put(w, text, strlen(text)));
    assert_ok(f->ctx, oct_writer_commit(w));
}

static void assert_content(files *f, const char *path, const char *text)
{
    oct_file *map = NULL;

    assert_ok(f->ctx, oct_file_map(f->ctx, path, &map));
    assert_int_equal(oct_file_size(map), strlen(text));
    assert_memory_equal(oct_file_data(map), text, strlen(text));
    oct_file_unref(map);
}

static void what_is_written_can_be_read(void **state)
{
    files *f = *state;
    oct_file *map = NULL;

    write_text(f, f->path, "hello");
    assert_content(f, f->path, "hello");
    write_text(f, f->path, ""); /* an empty file is a file */
    assert_content(f, f->path, "");
    assert_ok(f->ctx, oct_file_map(f->ctx, f->path, &map));
    assert_non_null(oct_file_data(map));
    assert_string_equal(oct_file_path(map), f->path);
    assert_ptr_equal(oct_file_ref(map), map);
    oct_file_unref(map);
    oct_file_unref(map);
    oct_file_unref(NULL);
    assert_int_equal(n_entries(f->folder), 1);
}

static void bad_files_say_why(void **state)
{
    files *f = *state;
    oct_file *map = NULL;
    oct_writer *w = NULL;
    char path[128];

    assert_fails(f->ctx, oct_file_map(f->ctx, f->path, &map), OCT_ERR_IO, "No such file");
    assert_fails(f->ctx, oct_file_map(f->ctx, f->folder, &map), OCT_ERR_IO, "is a directory");
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_fails(f->ctx, oct_file_map(f->ctx, f->path, &map), OCT_ERR_IO, "not a regular file");
    assert_null(map);
    assert_fails(f->ctx, oct_writer_open(f->ctx, f->folder, &w), OCT_ERR_IO, "is a directory");
    snprintf(path, sizeof(path), "%s/nowhere/file", f->folder);
    assert_fails(f->ctx, oct_writer_open(f->ctx, path, &w), OCT_ERR_IO, "No such file");
    assert_null(w);
}

static void an_aborted_file_leaves_the_old_one(void **state)
{
    files *f = *state;
    oct_writer *w = NULL;

    write_text(f, f->path, "old");
    assert_ok(f->ctx, oct_writer_open(f->ctx, f->path, &w));
    assert_ok(f->ctx, oct_writer_printf(w, "new %d", 1));
    assert_int_equal(oct_writer_offset(w), 5);
    assert_content(f, f->path, "old");
    oct_writer_abort(w);
    oct_writer_abort(NULL);
    assert_int_equal(n_entries(f->folder), 1);
    assert_content(f, f->path, "old");
}

static void large_files_pass_the_buffer(void **state)
{
    files *f = *state;
    const size_t n = 3 << 20;
    char *big = malloc(n);
    oct_writer *w = NULL;
    oct_file *map = NULL;
    size_t at = 0;

    assert_non_null(big);
    for (size_t i = 0; i < n; i++)
        big[i] = (char)(i * 7 + i / 251);
    assert_ok(f->ctx, oct_writer_open(f->ctx, f->path, &w));
    for (size_t len = 1; at < n; at += len, len = OCT_MIN(len * 3, n - at))
        assert_ok(f->ctx, oct_writer_put(w, big + at, len));
    for (int i = 0; i < 200000; i++)
        assert_ok(f->ctx, oct_writer_printf(w, "%06d\n", i));
    assert_int_equal(oct_writer_offset(w), n + 1400000);
    assert_ok(f->ctx, oct_writer_commit(w));

    assert_ok(f->ctx, oct_file_map(f->ctx, f->path, &map));
    assert_int_equal(oct_file_size(map), n + 1400000);
    assert_memory_equal(oct_file_data(map), big, n);
    assert_memory_equal(oct_file_data(map) + n + 7 * 149796, "149796\n", 7);
    oct_file_unref(map);
    free(big);
}

/* A full disk, played by a limit on the size of files. */
static void a_failed_write_leaves_the_old_file(void **state)
{
    files *f = *state;
    struct rlimit old, small;
    static char big[2 << 20];
    oct_writer *w = NULL;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);

    write_text(f, f->path, "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){100000, old.rlim_max};
    assert_ok(f->ctx, oct_writer_open(f->ctx, f->path, &w));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_fails(f->ctx, oct_writer_put(w, big, sizeof(big)), OCT_ERR_IO, "File too large");
    assert_int_equal(oct_writer_put(w, "x", 1), OCT_ERR_IO); /* sticky */
    assert_int_equal(oct_writer_printf(w, "x"), OCT_ERR_IO);
    assert_int_equal(oct_writer_commit(w), OCT_ERR_IO);

    assert_ok(f->ctx, oct_writer_open(f->ctx, f->path, &w));
    assert_ok(f->ctx, oct_writer_put(w, big, 200000)); /* fits the buffer: fails later */
    assert_fails(f->ctx, oct_writer_commit(w), OCT_ERR_IO, "File too large");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(n_entries(f->folder), 1);
    assert_content(f, f->path, "old");
}

static void modes_and_links_are_kept(void **state)
{
    files *f = *state;
    const mode_t mask = umask(022);
    struct stat info;
    char link_path[128];

    write_text(f, f->path, "1");
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0644);
    assert_int_equal(chmod(f->path, 0640), 0);
    write_text(f, f->path, "2");
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);

    snprintf(link_path, sizeof(link_path), "%s/link", f->folder);
    assert_int_equal(symlink("file", link_path), 0);
    write_text(f, link_path, "3");
    assert_int_equal(lstat(link_path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_content(f, f->path, "3");
    umask(mask);
}

static void devices_are_written_directly(void **state)
{
    files *f = *state;
    struct stat info;

    write_text(f, "/dev/null", "gone");
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

/* Also for root, whom the system would let. */
static void read_only_files_stay(void **state)
{
    files *f = *state;
    oct_writer *w = NULL;

    write_text(f, f->path, "old");
    assert_int_equal(chmod(f->path, 0444), 0);
    assert_fails(f->ctx, oct_writer_open(f->ctx, f->path, &w), OCT_ERR_IO, "is read-only");
    assert_fails(f->ctx, oct_write_file(f->ctx, f->path, "new", 3), OCT_ERR_IO, "is read-only");
    assert_content(f, f->path, "old");
    assert_int_equal(chmod(f->path, 0644), 0);
    assert_ok(f->ctx, oct_write_file(f->ctx, f->path, "new", 3));
    assert_content(f, f->path, "new");
}

static int not_twice(void *user, const char *path, char *why, size_t size)
{
    int *n = user;

    (void)snprintf(why, size, "was %s already", strrchr(path, '/') + 1);
    return (*n)++ > 0;
}

static void the_program_is_asked_before_a_file_is_written(void **state)
{
    files *f = *state;
    int n = 0;

    oct_ctx_set_write_check(f->ctx, not_twice, &n);
    write_text(f, f->path, "old");
    assert_fails(f->ctx, oct_write_file(f->ctx, f->path, "new", 3), OCT_ERR_ARG,
                 "file: was file already");
    oct_ctx_set_write_check(f->ctx, NULL, NULL);
    assert_content(f, f->path, "old");
    assert_int_equal(n_entries(f->folder), 1);
}

/* Killed while it writes, a process leaves nothing where the file system knows unnamed files. */
static void a_killed_process_leaves_nothing(void **state)
{
    files *f = *state;
    const int fd = open(f->folder, O_WRONLY | O_TMPFILE, 0600);
    oct_writer *w = NULL;
    pid_t child;

    if (fd < 0) skip();
    (void)close(fd);
    child = fork();
    if (child == 0) {
        if (oct_writer_open(f->ctx, f->path, &w) || oct_writer_put(w, "x", 1)) _exit(1);
        (void)raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(n_entries(f->folder), 0);
}

/* A name on the disk for bytes that are not there yet would be a broken file after a power cut. */
static void files_are_synced_before_they_are_renamed(void **state)
{
    files *f = *state;
    oct_writer *w = NULL;

    calls[0] = '\0';
    write_text(f, f->path, "old");
    assert_string_equal(calls, "FRD");
    calls[0] = '\0';
    assert_ok(f->ctx, oct_writer_open(f->ctx, f->path, &w));
    assert_ok(f->ctx, oct_writer_commit_unsynced(w));
    assert_string_equal(calls, "R");
    assert_content(f, f->path, "");

    write_text(f, f->path, "old");
    calls[0] = '\0';
    fsync_fails = true;
    assert_ok(f->ctx, oct_writer_open(f->ctx, f->path, &w));
    assert_ok(f->ctx, oct_writer_put(w, "new", 3));
    assert_fails(f->ctx, oct_writer_commit(w), OCT_ERR_IO, "cannot write");
    fsync_fails = false;
    assert_string_equal(calls, "F");
    assert_int_equal(n_entries(f->folder), 1);
    assert_content(f, f->path, "old");
}

static void what_the_disk_cannot_hold_is_refused(void **state)
{
    files *f = *state;
    struct statvfs disk;
    oct_writer *w = NULL;

    assert_int_equal(statvfs(f->folder, &disk), 0);
    if (disk.f_blocks == 0) return; /* this file system does not say */
    assert_ok(f->ctx, oct_writer_open(f->ctx, f->path, &w));
    assert_ok(f->ctx, oct_writer_expect(w, 0));
    assert_fails(f->ctx, oct_writer_expect(w, (uint64_t)disk.f_blocks * disk.f_frsize * 2),
                 OCT_ERR_IO, "are free on its disk");
    oct_writer_abort(w);
    assert_ok(f->ctx, oct_writer_open(f->ctx, "/dev/null", &w));
    assert_ok(f->ctx, oct_writer_expect(w, UINT64_MAX)); /* no disk */
    oct_writer_abort(w);
    assert_int_equal(n_entries(f->folder), 0);
}

static oct_status use_files(oct_ctx *ctx)
{
    const char *path = getenv("OCTET_TEST_FILE");
    oct_writer *w = NULL;
    oct_file *map = NULL;

    OCT_TRY(oct_writer_open(ctx, path, &w));
    OCT_TRY(oct_writer_put(w, "x", 1));
    OCT_TRY(oct_writer_commit(w));
    OCT_TRY(oct_file_map(ctx, path, &map));
    oct_file_unref(map);
    return OCT_OK;
}

static void files_survive_every_failure(void **state)
{
    files *f = *state;

    setenv("OCTET_TEST_FILE", f->path, 1);
    fail_each_allocation(use_files);
    assert_int_equal(n_entries(f->folder), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_can_be_read, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(bad_files_say_why, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(an_aborted_file_leaves_the_old_one, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(large_files_pass_the_buffer, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(a_failed_write_leaves_the_old_file, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(modes_and_links_are_kept, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(devices_are_written_directly, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(read_only_files_stay, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(the_program_is_asked_before_a_file_is_written, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(a_killed_process_leaves_nothing, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(files_are_synced_before_they_are_renamed, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(what_the_disk_cannot_hold_is_refused, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(files_survive_every_failure, open_folder, close_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
