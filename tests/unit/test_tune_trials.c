/* SPDX-License-Identifier: Apache-2.0 */
/* The file of trials: several connections, claims of the dead, files of others. */
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "tune/owner.h"
#include "tune/trials.h"

static char folder[] = "/tmp/octet-tune-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void remove_files(void)
{
    char name[128];

    (void)unlink(path);
    (void)snprintf(name, sizeof(name), "%s-wal", path);
    (void)unlink(name);
    (void)snprintf(name, sizeof(name), "%s-shm", path);
    (void)unlink(name);
}

static int begin(void **state)
{
    (void)snprintf(path, sizeof(path), "%s/trials.db", folder);
    return setup(state);
}

static int end(void **state)
{
    remove_files();
    return teardown(state);
}

static oct_trials *open_trials(fixture *f)
{
    oct_trials *t = NULL;

    assert_ok(f->ctx, oct_trials_open(f->ctx, path, "this search", &t));
    return t;
}

static void add(fixture *f, oct_trials *t, const char *settings)
{
    const oct_trial k = {.kind = OCT_TRIAL_INT8, .images = 8, .settings = settings};

    assert_ok(f->ctx, oct_trials_add(t, &k));
}

static oct_claim claim(fixture *f, oct_trials *t, oct_arena *arena, oct_trial *out)
{
    oct_claim how;

    assert_ok(f->ctx, oct_trials_claim(t, arena, out, &how));
    return how;
}

/* Two connections, as of two processes: no trial twice, and one sees what the other wrote. */
static void work_is_shared(void **state)
{
    fixture *f = *state;
    oct_arena *arena = oct_arena_new(f->ctx);
    oct_trials *a = open_trials(f), *b = open_trials(f);
    oct_trial x, y, z, *list;
    int32_t n;

    assert_int_equal(claim(f, a, arena, &x), OCT_CLAIM_NONE);
    add(f, a, "");
    add(f, a, "equalize=true\n");
    assert_int_equal(claim(f, a, arena, &x), OCT_CLAIM_GOT);
    assert_int_equal(claim(f, b, arena, &y), OCT_CLAIM_GOT);
    assert_string_equal(x.settings, "");
    assert_string_equal(y.settings, "equalize=true\n");
    assert_int_equal(claim(f, b, arena, &z), OCT_CLAIM_WAIT);
    x.state = OCT_TRIAL_DONE;
    x.score = .75;
    x.ms = 3.5;
    x.bytes = 12345;
    x.digest = "abc";
    x.measure = "AP";
    assert_ok(f->ctx, oct_trials_beat(a, x.id));
    assert_ok(f->ctx, oct_trials_finish(a, &x));
    assert_ok(f->ctx, oct_trials_release(b, y.id));
    assert_int_equal(claim(f, a, arena, &z), OCT_CLAIM_GOT);
    assert_int_equal(z.id, y.id);
    assert_ok(f->ctx, oct_trials_list(b, arena, &list, &n));
    assert_int_equal(n, 2);
    assert_int_equal(list[0].state, OCT_TRIAL_DONE);
    assert_true(list[0].score == .75 && list[0].ms == 3.5 && list[0].bytes == 12345);
    assert_string_equal(list[0].digest, "abc");
    assert_string_equal(list[0].measure, "AP");
    assert_int_equal(list[1].state, OCT_TRIAL_CLAIMED);
    oct_trials_close(a);
    oct_trials_close(b);
    oct_arena_free(arena);
}

/* A transaction that fails leaves nothing. */
static void rounds_come_whole(void **state)
{
    fixture *f = *state;
    oct_arena *arena = oct_arena_new(f->ctx);
    oct_trials *t = open_trials(f);
    oct_trial *list;
    int32_t n;

    assert_ok(f->ctx, oct_trials_begin(t));
    add(f, t, "");
    assert_int_equal(oct_trials_end(t, OCT_ERR_CANCELLED), OCT_ERR_CANCELLED);
    assert_ok(f->ctx, oct_trials_list(t, arena, &list, &n));
    assert_int_equal(n, 0);
    assert_ok(f->ctx, oct_trials_begin(t));
    add(f, t, "");
    add(f, t, "lsq=true\n");
    assert_ok(f->ctx, oct_trials_end(t, OCT_OK));
    assert_ok(f->ctx, oct_trials_skip(t, 0)); /* the default stays */
    assert_ok(f->ctx, oct_trials_list(t, arena, &list, &n));
    assert_int_equal(n, 2);
    assert_int_equal(list[0].state, OCT_TRIAL_OPEN);
    assert_int_equal(list[1].state, OCT_TRIAL_SKIPPED);
    oct_trials_close(t);
    oct_arena_free(arena);
}

/* A process takes a trial and dies with it. */
static void claims_of_the_dead_are_taken(void **state)
{
    fixture *f = *state;
    oct_arena *arena = oct_arena_new(f->ctx);
    oct_trials *t = open_trials(f);
    int status = 0;
    oct_trial x;
    pid_t pid;

    add(f, t, "");
    oct_trials_close(t);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        oct_trials *own = NULL;
        oct_claim how = OCT_CLAIM_NONE;

        if (oct_trials_open(f->ctx, path, "this search", &own)) _exit(2);
        if (oct_trials_claim(own, arena, &x, &how)) _exit(3);
        _exit(how == OCT_CLAIM_GOT ? 0 : 4); /* without closing: as if killed */
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    t = open_trials(f);
    assert_int_equal(claim(f, t, arena, &x), OCT_CLAIM_GOT);
    assert_int_equal(claim(f, t, arena, &x), OCT_CLAIM_WAIT); /* this process is alive */
    oct_trials_close(t);
    oct_arena_free(arena);
}

static void owners_are_recognised(void **state)
{
    char self[OCT_OWNER_TEXT], other[OCT_OWNER_TEXT + 4];

    (void)state;
    oct_owner_self(self);
    assert_int_equal(oct_owner_look(self), OCT_OWNER_ALIVE);
    (void)snprintf(other, sizeof(other), "%s1", self); /* the same number, begun at another time */
    assert_int_equal(oct_owner_look(other), OCT_OWNER_DEAD);
    (void)snprintf(other, sizeof(other), "x%s", self);
    assert_int_equal(oct_owner_look(other), OCT_OWNER_ELSEWHERE);
    assert_int_equal(oct_owner_look(""), OCT_OWNER_ELSEWHERE);
}

/* --- files that are not ours --- */

static void write_bytes(const char *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void sql(const char *statements)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, statements, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void files_of_others_are_refused(void **state)
{
    static const char text[] = "This is a letter, and no database at all; it is long enough to be "
                               "looked at, and stays as it is.";
    fixture *f = *state;
    oct_trials *t = NULL;
    char back[sizeof(text)];
    FILE *file;

    write_bytes(text, sizeof(text));
    assert_fails(f->ctx, oct_trials_open(f->ctx, path, "this search", &t), OCT_ERR_FORMAT, path);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(back, 1, sizeof(back), file), sizeof(back));
    assert_int_equal(fclose(file), 0);
    assert_memory_equal(back, text, sizeof(text));
    remove_files();
    sql("CREATE TABLE mine (a)");
    assert_fails(f->ctx, oct_trials_open(f->ctx, path, "this search", &t), OCT_ERR_FORMAT,
                 "another program");
    assert_fails(f->ctx, oct_trials_open(f->ctx, "/nonexistent/t.db", "this search", &t),
                 OCT_ERR_IO, "/nonexistent/t.db");
}

static void changed_files_are_refused(void **state)
{
    fixture *f = *state;
    oct_arena *arena = oct_arena_new(f->ctx);
    oct_trials *t = open_trials(f);
    oct_trial *list;
    int32_t n;

    add(f, t, "");
    oct_trials_close(t);
    t = NULL;
    assert_fails(f->ctx, oct_trials_open(f->ctx, path, "another search", &t), OCT_ERR_ARG,
                 "another search");
    sql("UPDATE trial SET score=9e999");
    t = open_trials(f);
    assert_fails(f->ctx, oct_trials_list(t, arena, &list, &n), OCT_ERR_FORMAT, "numbers");
    oct_trials_close(t);
    t = NULL;
    sql("CREATE TRIGGER x AFTER UPDATE ON trial BEGIN DELETE FROM trial; END");
    assert_fails(f->ctx, oct_trials_open(f->ctx, path, "this search", &t), OCT_ERR_FORMAT,
                 "tables");
    sql("DROP TRIGGER x; PRAGMA user_version=99");
    assert_fails(f->ctx, oct_trials_open(f->ctx, path, "this search", &t), OCT_ERR_FORMAT,
                 "version 99");
    oct_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(work_is_shared, begin, end),
        cmocka_unit_test_setup_teardown(rounds_come_whole, begin, end),
        cmocka_unit_test_setup_teardown(claims_of_the_dead_are_taken, begin, end),
        cmocka_unit_test(owners_are_recognised),
        cmocka_unit_test_setup_teardown(files_of_others_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(changed_files_are_refused, begin, end),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
