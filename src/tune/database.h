/* SPDX-License-Identifier: Apache-2.0 */
/* An SQLite database of octet's own, which several processes may write to. */
#ifndef OCT_TUNE_DATABASE_H
#define OCT_TUNE_DATABASE_H

#include "base/mem.h"

typedef struct oct_db oct_db;

/* What tells octet's databases from others. */
typedef struct oct_db_schema {
    int32_t application_id, version;
    const char *const *tables; /* CREATE TABLE statements; NULL at the end */
} oct_db_schema;

/*
 * Opens the file, or makes it. A file that is no database, one of another program, of a newer octet
 * or with other tables, triggers or views than the schema's is refused and not changed.
 */
oct_status oct_db_open(oct_ctx *ctx, const char *path, const oct_db_schema *schema, oct_db **out);
void oct_db_close(oct_db *db); /* accepts NULL */

typedef struct oct_db_value {
    enum { OCT_DB_NULL, OCT_DB_INT, OCT_DB_REAL, OCT_DB_TEXT } kind;
    int64_t i;
    double d;
    const char *s;
} oct_db_value;

static inline oct_db_value oct_db_int(int64_t i)
{
    return (oct_db_value){.kind = OCT_DB_INT, .i = i};
}

static inline oct_db_value oct_db_real(double d)
{
    return (oct_db_value){.kind = OCT_DB_REAL, .d = d};
}

static inline oct_db_value oct_db_text(const char *s)
{
    return (oct_db_value){.kind = s ? OCT_DB_TEXT : OCT_DB_NULL, .s = s};
}

/* A row of a result, valid during the call. Columns of another type are converted; text is never
 * NULL. */
typedef struct oct_db_row oct_db_row;
typedef oct_status (*oct_db_row_fn)(void *user, const oct_db_row *row);

int64_t oct_db_row_int(const oct_db_row *row, int column);
double oct_db_row_real(const oct_db_row *row, int column);
const char *oct_db_row_text(const oct_db_row *row, int column);

/* Runs one statement with its arguments ?1, ?2 ..; `row` (may be NULL) is called for each row. */
oct_status oct_db_run(oct_db *db, const char *sql, const oct_db_value *args, int n_args,
                      oct_db_row_fn row, void *user);
int64_t oct_db_changed(const oct_db *db); /* rows, by the last statement */

/* All that is done between them is done at once, and by one process at a time. Ends with what `st`
 * says: nothing was done unless it is OCT_OK. Returns st, or why the end failed. */
oct_status oct_db_begin(oct_db *db);
oct_status oct_db_end(oct_db *db, oct_status st);

oct_ctx *oct_db_ctx(const oct_db *db);
const char *oct_db_path(const oct_db *db);

#endif
