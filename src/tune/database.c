/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite, which only this file sees. */
#include "tune/database.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

enum {
    BUSY_MS = 60000,      /* other processes hold the file for moments only */
    MAX_LENGTH = 1 << 24, /* of a text or a statement */
    MAX_COLUMNS = 64,
};

struct oct_db {
    oct_ctx *ctx;
    sqlite3 *sql;
    char *path;
};

struct oct_db_row {
    sqlite3_stmt *s;
};

static oct_status fail(oct_db *db, const char *what)
{
    const int code = sqlite3_errcode(db->sql);
    const oct_status st = code == SQLITE_NOMEM                              ? OCT_ERR_MEMORY
                          : code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? OCT_ERR_FORMAT
                                                                            : OCT_ERR_IO;

    return oct_fail(db->ctx, st, "%s: %s: %s", db->path, what, sqlite3_errmsg(db->sql));
}

/* --- statements --- */

static int bind(sqlite3_stmt *s, int at, const oct_db_value *v)
{
    switch (v->kind) {
    case OCT_DB_INT:
        return sqlite3_bind_int64(s, at, v->i);
    case OCT_DB_REAL:
        return sqlite3_bind_double(s, at, v->d);
    case OCT_DB_TEXT:
        return sqlite3_bind_text(s, at, v->s, -1, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(s, at);
    }
}

static oct_status step(oct_db *db, sqlite3_stmt *s, oct_db_row_fn row, void *user)
{
    int code;

    while ((code = sqlite3_step(s)) == SQLITE_ROW)
        if (row) OCT_TRY(row(user, &(oct_db_row){s}));
    return code == SQLITE_DONE ? OCT_OK : fail(db, "the database cannot be used");
}

oct_status oct_db_run(oct_db *db, const char *sql, const oct_db_value *args, int n_args,
                      oct_db_row_fn row, void *user)
{
    sqlite3_stmt *s = NULL;
    oct_status st;

    if (sqlite3_prepare_v2(db->sql, sql, -1, &s, NULL) != SQLITE_OK)
        return fail(db, "the database cannot be used");
    for (int i = 0; i < n_args; i++)
        if (bind(s, i + 1, &args[i]) != SQLITE_OK) {
            st = fail(db, "the database cannot be used");
            goto done;
        }
    st = step(db, s, row, user);
done:
    (void)sqlite3_finalize(s);
    return st;
}

int64_t oct_db_row_int(const oct_db_row *row, int column)
{
    return sqlite3_column_int64(row->s, column);
}

double oct_db_row_real(const oct_db_row *row, int column)
{
    return sqlite3_column_double(row->s, column);
}

const char *oct_db_row_text(const oct_db_row *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row->s, column);

    return text ? (const char *)text : "";
}

int64_t oct_db_changed(const oct_db *db)
{
    return sqlite3_changes(db->sql);
}

oct_status oct_db_begin(oct_db *db)
{
    return oct_db_run(db, "BEGIN IMMEDIATE", NULL, 0, NULL, NULL);
}

oct_status oct_db_end(oct_db *db, oct_status st)
{
    if (!st) {
        st = oct_db_run(db, "COMMIT", NULL, 0, NULL, NULL);
        if (!st) return OCT_OK;
    }
    /* What failed may have rolled back already; why it failed is what matters. */
    (void)sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

oct_ctx *oct_db_ctx(const oct_db *db)
{
    return db->ctx;
}

const char *oct_db_path(const oct_db *db)
{
    return db->path;
}

/* --- opening --- */

/* What an existing file says of itself. */
typedef struct identity {
    int64_t application, version, n_objects;
    int64_t n_known; /* of these, tables of the schema, to the letter */
    const oct_db_schema *schema;
} identity;

static oct_status see_number(void *user, const oct_db_row *row)
{
    *(int64_t *)user = oct_db_row_int(row, 0);
    return OCT_OK;
}

/* Indices that SQLite makes itself have no text. */
static oct_status see_object(void *user, const oct_db_row *row)
{
    identity *id = user;
    const char *sql = oct_db_row_text(row, 0);

    if (!*sql) return OCT_OK;
    id->n_objects++;
    for (int i = 0; id->schema->tables[i]; i++)
        id->n_known += strcmp(sql, id->schema->tables[i]) == 0;
    return OCT_OK;
}

static oct_status identify(oct_db *db, identity *id)
{
    OCT_TRY(oct_db_run(db, "PRAGMA application_id", NULL, 0, see_number, &id->application));
    OCT_TRY(oct_db_run(db, "PRAGMA user_version", NULL, 0, see_number, &id->version));
    return oct_db_run(db, "SELECT sql FROM sqlite_master", NULL, 0, see_object, id);
}

static int count_tables(const oct_db_schema *s)
{
    int n = 0;

    while (s->tables[n])
        n++;
    return n;
}

static oct_status make_tables(oct_db *db, const oct_db_schema *s)
{
    char text[64];

    for (int i = 0; s->tables[i]; i++)
        OCT_TRY(oct_db_run(db, s->tables[i], NULL, 0, NULL, NULL));
    (void)snprintf(text, sizeof(text), "PRAGMA application_id=%d", (int)s->application_id);
    OCT_TRY(oct_db_run(db, text, NULL, 0, NULL, NULL));
    (void)snprintf(text, sizeof(text), "PRAGMA user_version=%d", (int)s->version);
    return oct_db_run(db, text, NULL, 0, NULL, NULL);
}

/* Within a transaction, so that two processes do not both make the tables. */
static oct_status check_or_make(oct_db *db, const oct_db_schema *s)
{
    identity id = {.schema = s};

    OCT_TRY(identify(db, &id));
    if (!id.application && !id.version && !id.n_objects) return make_tables(db, s);
    if (id.application != s->application_id)
        return oct_fail(db->ctx, OCT_ERR_FORMAT,
                        "%s: it is a database of another program; give another name", db->path);
    if (id.version != s->version)
        return oct_fail(db->ctx, OCT_ERR_FORMAT,
                        "%s: its form has version %lld, this octet knows %d; give another name",
                        db->path, (long long)id.version, (int)s->version);
    if (id.n_objects != count_tables(s) || id.n_known != id.n_objects)
        return oct_fail(db->ctx, OCT_ERR_FORMAT,
                        "%s: its tables are not those that octet makes; give another name",
                        db->path);
    return OCT_OK;
}

/* A file may be made up to attack who opens it: nothing in it is run, and sizes are bounded. */
static void harden(sqlite3 *sql)
{
    (void)sqlite3_db_config(sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(sql, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(sql, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_db_config(sql, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    (void)sqlite3_limit(sql, SQLITE_LIMIT_LENGTH, MAX_LENGTH);
    (void)sqlite3_limit(sql, SQLITE_LIMIT_SQL_LENGTH, MAX_LENGTH);
    (void)sqlite3_limit(sql, SQLITE_LIMIT_COLUMN, MAX_COLUMNS);
    (void)sqlite3_limit(sql, SQLITE_LIMIT_ATTACHED, 0);
}

static oct_status set_up(oct_db *db, const oct_db_schema *schema)
{
    oct_status st;

    harden(db->sql);
    (void)sqlite3_busy_timeout(db->sql, BUSY_MS);
    OCT_TRY(oct_db_run(db, "PRAGMA cell_size_check=ON", NULL, 0, NULL, NULL));
    OCT_TRY(oct_db_begin(db));
    st = oct_db_end(db, check_or_make(db, schema));
    if (st) return st;
    OCT_TRY(oct_db_run(db, "PRAGMA journal_mode=WAL", NULL, 0, NULL, NULL));
    return oct_db_run(db, "PRAGMA synchronous=NORMAL", NULL, 0, NULL, NULL);
}

oct_status oct_db_open(oct_ctx *ctx, const char *path, const oct_db_schema *schema, oct_db **out)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    oct_db *db = oct_calloc(ctx, 1, sizeof(*db));
    oct_status st;

    if (!db) return OCT_ERR_MEMORY;
    db->ctx = ctx;
    if (!(db->path = oct_strdup(ctx, path))) {
        st = OCT_ERR_MEMORY;
        goto fail;
    }
    if (sqlite3_open_v2(path, &db->sql, flags, NULL) != SQLITE_OK) {
        st = db->sql ? fail(db, "cannot be opened") : OCT_ERR_MEMORY;
        goto fail;
    }
    if ((st = set_up(db, schema))) goto fail;
    *out = db;
    return OCT_OK;
fail:
    oct_db_close(db);
    return st;
}

void oct_db_close(oct_db *db)
{
    if (!db) return;
    (void)sqlite3_close(db->sql);
    oct_free(db->ctx, db->path);
    oct_free(db->ctx, db);
}
