/* SPDX-License-Identifier: Apache-2.0 */
/* The table of trials: see trials.h. */
#include "tune/trials.h"

#include <math.h>
#include <string.h>

#include "base/machine.h"
#include "tune/database.h"
#include "tune/owner.h"

enum {
    MAX_TRIALS = 100000,
    MAX_WATCHED = 256, /* claims of other machines */
};

#define SILENT_NS                                                                                  \
    (1800LL * 1000000000) /* without a beat: longer than any stage of a trial takes                \
                           */

static const char *const tables[] = {
    "CREATE TABLE search (what TEXT NOT NULL)",
    "CREATE TABLE trial (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, state INTEGER NOT NULL, "
    "round INTEGER NOT NULL, images INTEGER NOT NULL, settings TEXT NOT NULL, measure TEXT NOT "
    "NULL, "
    "score REAL NOT NULL, ms REAL NOT NULL, bytes INTEGER NOT NULL, seconds REAL NOT NULL, digest "
    "TEXT NOT NULL, "
    "error TEXT NOT NULL, owner TEXT NOT NULL, beat INTEGER NOT NULL)",
    NULL,
};

static const oct_db_schema schema = {.application_id = 0x6f637474, .version = 1, .tables = tables};

/* A claim of another machine: how long has nothing been heard of it? */
typedef struct watched {
    int64_t id, beat, since_ns;
} watched;

struct oct_trials {
    oct_db *db;
    char owner[OCT_OWNER_TEXT];
    watched watched[MAX_WATCHED];
    int n_watched;
};

/* --- opening --- */

/* Which search a file holds. */
typedef struct held {
    const char *wanted;
    int n;
    bool same;
} held;

static oct_status see_search(void *user, const oct_db_row *row)
{
    held *h = user;

    h->n++;
    h->same = strcmp(oct_db_row_text(row, 0), h->wanted) == 0;
    return OCT_OK;
}

static oct_status check_search(oct_db *db, const char *search)
{
    const oct_db_value what = oct_db_text(search);
    held h = {.wanted = search};

    OCT_TRY(oct_db_run(db, "SELECT what FROM search", NULL, 0, see_search, &h));
    if (h.n == 0) return oct_db_run(db, "INSERT INTO search VALUES (?1)", &what, 1, NULL, NULL);
    if (h.n == 1 && h.same) return OCT_OK;
    return oct_fail(oct_db_ctx(db), OCT_ERR_ARG,
                    "%s: it holds the trials of another search (network, pictures, settings, seed "
                    "or version of octet differ); give another file, or remove this one",
                    oct_db_path(db));
}

oct_status oct_trials_open(oct_ctx *ctx, const char *path, const char *search, oct_trials **out)
{
    oct_trials *t = oct_calloc(ctx, 1, sizeof(*t));
    oct_status st;

    if (!t) return OCT_ERR_MEMORY;
    oct_owner_self(t->owner);
    if ((st = oct_db_open(ctx, path, &schema, &t->db))) goto fail;
    if ((st = oct_db_begin(t->db))) goto fail;
    if ((st = oct_db_end(t->db, check_search(t->db, search)))) goto fail;
    *out = t;
    return OCT_OK;
fail:
    oct_db_close(t->db);
    oct_free(ctx, t);
    return st;
}

void oct_trials_close(oct_trials *t)
{
    oct_ctx *ctx;

    if (!t) return;
    ctx = oct_db_ctx(t->db);
    oct_db_close(t->db);
    oct_free(ctx, t);
}

oct_status oct_trials_begin(oct_trials *t)
{
    return oct_db_begin(t->db);
}

oct_status oct_trials_end(oct_trials *t, oct_status st)
{
    return oct_db_end(t->db, st);
}

/* --- reading --- */

#define COLUMNS                                                                                    \
    "id, kind, state, round, images, settings, measure, score, ms, bytes, seconds, digest, "       \
    "error, owner, beat"
enum { OWNER_COLUMN = 13, BEAT_COLUMN = 14 };

static oct_status read_trial(const oct_db_row *row, oct_arena *arena, oct_trial *t)
{
    *t = (oct_trial){.id = oct_db_row_int(row, 0),
                     .kind = (int32_t)oct_db_row_int(row, 1),
                     .state = (int32_t)oct_db_row_int(row, 2),
                     .round = (int32_t)oct_db_row_int(row, 3),
                     .images = oct_db_row_int(row, 4),
                     .settings = oct_arena_strdup(arena, oct_db_row_text(row, 5)),
                     .measure = oct_arena_strdup(arena, oct_db_row_text(row, 6)),
                     .score = oct_db_row_real(row, 7),
                     .ms = oct_db_row_real(row, 8),
                     .bytes = oct_db_row_int(row, 9),
                     .seconds = oct_db_row_real(row, 10),
                     .digest = oct_arena_strdup(arena, oct_db_row_text(row, 11)),
                     .error = oct_arena_strdup(arena, oct_db_row_text(row, 12))};
    return t->settings && t->measure && t->digest && t->error ? OCT_OK : OCT_ERR_MEMORY;
}

/* A growing list of trials. */
typedef struct reader {
    oct_db *db;
    oct_arena *arena;
    oct_trial *list;
    size_t n, cap;
} reader;

static oct_status see_trial(void *user, const oct_db_row *row)
{
    reader *r = user;
    oct_trial *t;

    if (r->n == MAX_TRIALS)
        return oct_fail(oct_db_ctx(r->db), OCT_ERR_FORMAT, "%s: it holds more than %d trials",
                        oct_db_path(r->db), (int)MAX_TRIALS);
    if (r->n == r->cap) {
        const size_t cap = r->cap ? 2 * r->cap : 64;
        oct_trial *more = oct_arena_array(r->arena, cap, sizeof(*more));

        if (!more) return OCT_ERR_MEMORY;
        if (r->n) memcpy(more, r->list, r->n * sizeof(*more));
        r->list = more;
        r->cap = cap;
    }
    t = &r->list[r->n];
    OCT_TRY(read_trial(row, r->arena, t));
    /* A file may hold anything: what is ranked has to be a number, and a round one of ours. */
    if (!isfinite(t->score) || !isfinite(t->ms) || !isfinite(t->seconds) || t->round < 0 ||
        t->images < 0 || t->bytes < 0)
        return oct_fail(oct_db_ctx(r->db), OCT_ERR_FORMAT,
                        "%s: trial %lld holds numbers that cannot be", oct_db_path(r->db),
                        (long long)t->id);
    r->n++;
    return OCT_OK;
}

oct_status oct_trials_list(oct_trials *t, oct_arena *arena, oct_trial **list, int32_t *n)
{
    reader r = {.db = t->db, .arena = arena};

    OCT_TRY(oct_db_run(t->db, "SELECT " COLUMNS " FROM trial ORDER BY id", NULL, 0, see_trial, &r));
    *list = r.list;
    *n = (int32_t)r.n;
    return OCT_OK;
}

/* --- writing --- */

oct_status oct_trials_add(oct_trials *t, const oct_trial *trial)
{
    const oct_db_value args[] = {oct_db_int(trial->kind), oct_db_int(trial->round),
                                 oct_db_int(trial->images), oct_db_text(trial->settings)};

    return oct_db_run(t->db,
                      "INSERT INTO trial (kind, state, round, images, settings, measure, score, "
                      "ms, bytes, seconds, digest, error, owner, beat) "
                      "VALUES (?1, 0, ?2, ?3, ?4, '', 0, 0, 0, 0, '', '', '', 0)",
                      args, OCT_COUNT(args), NULL, NULL);
}

oct_status oct_trials_finish(oct_trials *t, const oct_trial *trial)
{
    const oct_db_value args[] = {oct_db_int(trial->id),       oct_db_text(t->owner),
                                 oct_db_int(trial->state),    oct_db_real(trial->score),
                                 oct_db_real(trial->ms),      oct_db_int(trial->bytes),
                                 oct_db_real(trial->seconds), oct_db_text(trial->digest),
                                 oct_db_text(trial->error),   oct_db_text(trial->measure)};

    return oct_db_run(
        t->db,
        "UPDATE trial SET state=?3, score=?4, ms=?5, bytes=?6, seconds=?7, "
        "digest=?8, error=?9, measure=?10, owner='' WHERE id=?1 AND state=1 AND owner=?2",
        args, OCT_COUNT(args), NULL, NULL);
}

oct_status oct_trials_release(oct_trials *t, int64_t id)
{
    const oct_db_value args[] = {oct_db_int(id), oct_db_text(t->owner)};

    return oct_db_run(t->db,
                      "UPDATE trial SET state=0, owner='' WHERE id=?1 AND state=1 AND owner=?2",
                      args, OCT_COUNT(args), NULL, NULL);
}

oct_status oct_trials_skip(oct_trials *t, int32_t round)
{
    const oct_db_value arg = oct_db_int(round);

    return oct_db_run(
        t->db, "UPDATE trial SET state=4 WHERE state=0 AND kind=2 AND round=?1 AND settings<>''",
        &arg, 1, NULL, NULL);
}

oct_status oct_trials_beat(oct_trials *t, int64_t id)
{
    const oct_db_value args[] = {oct_db_int(id), oct_db_text(t->owner)};

    return oct_db_run(t->db, "UPDATE trial SET beat=beat+1 WHERE id=?1 AND owner=?2", args,
                      OCT_COUNT(args), NULL, NULL);
}

/* --- claiming --- */

/* Has a claim of another machine been silent for too long? */
static bool is_silent(oct_trials *t, int64_t id, int64_t beat)
{
    const int64_t now = oct_time_ns();
    watched *w = NULL;

    for (int i = 0; i < t->n_watched && !w; i++)
        if (t->watched[i].id == id) w = &t->watched[i];
    if (w && w->beat == beat) return now - w->since_ns > SILENT_NS;
    if (!w && t->n_watched < MAX_WATCHED) w = &t->watched[t->n_watched++];
    if (w) *w = (watched){id, beat, now};
    return false;
}

/* Looks for the first trial that nobody works at. */
typedef struct search_state {
    oct_trials *t;
    oct_arena *arena;
    oct_trial *out;
    bool found, waits;
} search_state;

static oct_status see_candidate(void *user, const oct_db_row *row)
{
    search_state *s = user;
    bool is_free = oct_db_row_int(row, 2) == OCT_TRIAL_OPEN;

    if (s->found) return OCT_OK;
    if (!is_free) {
        const oct_owner_state o = oct_owner_look(oct_db_row_text(row, OWNER_COLUMN));

        is_free = o == OCT_OWNER_DEAD ||
                  (o == OCT_OWNER_ELSEWHERE &&
                   is_silent(s->t, oct_db_row_int(row, 0), oct_db_row_int(row, BEAT_COLUMN)));
    }
    if (!is_free) {
        s->waits = true;
        return OCT_OK;
    }
    s->found = true;
    return read_trial(row, s->arena, s->out);
}

static oct_status take(oct_trials *t, search_state *s)
{
    oct_db_value args[2];

    OCT_TRY(oct_db_run(t->db, "SELECT " COLUMNS " FROM trial WHERE state IN (0, 1) ORDER BY id",
                       NULL, 0, see_candidate, s));
    if (!s->found) return OCT_OK;
    args[0] = oct_db_int(s->out->id);
    args[1] = oct_db_text(t->owner);
    return oct_db_run(t->db, "UPDATE trial SET state=1, owner=?2, beat=0 WHERE id=?1", args,
                      OCT_COUNT(args), NULL, NULL);
}

oct_status oct_trials_claim(oct_trials *t, oct_arena *arena, oct_trial *out, oct_claim *how)
{
    search_state s = {.t = t, .arena = arena, .out = out};

    OCT_TRY(oct_db_begin(t->db));
    OCT_TRY(oct_db_end(t->db, take(t, &s)));
    *how = s.found ? OCT_CLAIM_GOT : s.waits ? OCT_CLAIM_WAIT : OCT_CLAIM_NONE;
    return OCT_OK;
}
