/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers have to be float for a score to be reached. */
#include "control/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <octet/control.h>

/* A layer that may change, and what its turn depends on. */
typedef struct entry {
    int32_t layer;
    double key;
} entry;

typedef struct walk {
    oct_search *s;
    uint8_t *now, *next; /* sets: where the search stands, what is tried */
    uint8_t *stalled;    /* what did not help */
    double *harm;
    entry *order;
    int32_t n_order;
    double score; /* of `now` */
} walk;

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return x->layer < y->layer ? -1 : x->layer > y->layer;
}

static int32_t count(const uint8_t *set, int32_t n)
{
    int32_t sum = 0;

    for (int32_t i = 0; i < n; i++)
        sum += set[i] != 0;
    return sum;
}

static bool may_score(const oct_search *s)
{
    return s->max_scores <= 0 || s->n_scores < s->max_scores;
}

/* Scores `next`; it is kept if it holds, or before anything holds if it is the best so far. */
static oct_status try_next(walk *w, int32_t kind, int32_t first, int32_t n, double *score)
{
    oct_search *s = w->s;
    oct_search_step step = {.kind = kind, .first = first, .n = n, .floats = count(w->next, s->n)};

    OCT_TRY(s->score(s->user, w->next, score));
    if (isnan(*score)) return oct_fail(s->ctx, OCT_ERR_STATE, "the measure gave no number");
    step.score = *score;
    step.holds = *score >= s->need;
    step.is_kept = step.holds || (!s->holds && (s->n_scores == 0 || *score > s->score_kept));
    s->n_scores++;
    if (step.is_kept) {
        memcpy(s->is_float, w->next, (size_t)s->n);
        s->score_kept = *score;
        s->holds = step.holds;
    }
    return s->step ? s->step(s->user, &step) : OCT_OK;
}

/* --- restoring --- */

static oct_status rank(walk *w)
{
    oct_search *s = w->s;

    for (int32_t i = 0; i < s->n; i++)
        if (!w->now[i]) w->harm[i] = -1; /* what is float keeps what it was restored for */
    OCT_TRY(s->rank(s->user, w->now, w->harm));
    w->n_order = 0;
    for (int32_t i = 0; i < s->n; i++)
        if (!w->now[i] && w->harm[i] >= 0) w->order[w->n_order++] = (entry){i, w->harm[i]};
    qsort(w->order, (size_t)w->n_order, sizeof(*w->order), by_key);
    return OCT_OK;
}

/* Adds the worst layers that are left. Returns how many; *first is the worst. */
static int32_t add_group(walk *w, int32_t size, int32_t *first)
{
    const oct_search *s = w->s;
    int32_t n = 0, left = s->most - count(w->now, s->n);

    *first = -1;
    memcpy(w->next, w->now, (size_t)s->n);
    for (int32_t i = 0; i < w->n_order && n < size && n < left; i++) {
        const int32_t layer = w->order[i].layer;

        if (w->now[layer]) continue;
        if (n++ == 0) *first = layer;
        w->next[layer] = 1;
    }
    return n;
}

static oct_status restore(walk *w)
{
    const oct_search *s = w->s;
    const size_t n_bytes = (size_t)s->n;
    bool is_fresh = true; /* the ranking is that of `now` */
    int32_t size = 1;

    OCT_TRY(rank(w));
    while (!s->holds && may_score(s)) {
        double score;
        int32_t first;
        const int32_t n = add_group(w, size, &first);

        if (!n) return OCT_OK;
        OCT_TRY(try_next(w, OCT_CONTROL_RESTORE, first, n, &score));
        if (score <= w->score && !s->holds && !is_fresh) { /* it stalls: another order may help */
            memcpy(w->stalled, w->next, n_bytes);
            OCT_TRY(rank(w));
            is_fresh = true;
            (void)add_group(w, size, &first);
            if (memcmp(w->stalled, w->next, n_bytes) != 0) continue;
        }
        /* Where a fresh order does not help either, more layers have to. */
        memcpy(w->now, w->next, n_bytes);
        w->score = score;
        is_fresh = false;
        if (size < s->n) size *= 2;
    }
    return OCT_OK;
}

/* Groups went past it: from the best set, single layers that make the score better. */
static oct_status restore_singly(walk *w)
{
    const oct_search *s = w->s;

    memcpy(w->now, s->is_float, (size_t)s->n);
    w->score = s->score_kept;
    OCT_TRY(rank(w));
    for (int32_t i = 0; i < w->n_order && !s->holds && may_score(s); i++) {
        const int32_t layer = w->order[i].layer;
        double score;

        if (count(w->now, s->n) >= s->most) return OCT_OK;
        memcpy(w->next, w->now, (size_t)s->n);
        w->next[layer] = 1;
        OCT_TRY(try_next(w, OCT_CONTROL_RESTORE, layer, 1, &score));
        if (score <= w->score) continue;
        memcpy(w->now, w->next, (size_t)s->n);
        w->score = score;
    }
    return OCT_OK;
}

/* --- giving back --- */

/* Those restored, the most work for their harm first. */
static void list_restored(walk *w)
{
    const oct_search *s = w->s;

    w->n_order = 0;
    for (int32_t i = 0; i < s->n; i++)
        if (w->now[i])
            w->order[w->n_order++] = (entry){i, s->work[i] / (OCT_MAX(w->harm[i], 0.0) + 1e-30)};
    qsort(w->order, (size_t)w->n_order, sizeof(*w->order), by_key);
}

static oct_status give_back_group(walk *w, int32_t from, int32_t size)
{
    const oct_search *s = w->s;
    int32_t n = 0, first = -1;
    double score;

    memcpy(w->next, w->now, (size_t)s->n);
    for (int32_t i = from; i < OCT_MIN(from + size, w->n_order); i++) {
        const int32_t layer = w->order[i].layer;

        if (!w->now[layer]) continue;
        if (n++ == 0) first = layer;
        w->next[layer] = 0;
    }
    if (!n || n == count(w->now, s->n)) return OCT_OK; /* all of it is known not to do */
    OCT_TRY(try_next(w, OCT_CONTROL_GIVE_BACK, first, n, &score));
    if (score >= s->need) memcpy(w->now, w->next, (size_t)s->n);
    return OCT_OK;
}

static oct_status give_back(walk *w)
{
    const oct_search *s = w->s;

    memcpy(w->now, s->is_float, (size_t)s->n);
    list_restored(w);
    for (int32_t size = (w->n_order + 1) / 2; size >= 1; size = size > 1 ? (size + 1) / 2 : 0)
        for (int32_t at = 0; at < w->n_order && may_score(s); at += size)
            OCT_TRY(give_back_group(w, at, size));
    return OCT_OK;
}

/* --- the whole --- */

static oct_status walk_all(walk *w)
{
    oct_search *s = w->s;

    OCT_TRY(try_next(w, OCT_CONTROL_START, -1, 0, &w->score));
    if (s->holds) return OCT_OK;
    OCT_TRY(restore(w));
    if (!s->holds) OCT_TRY(restore_singly(w));
    return s->holds ? give_back(w) : OCT_OK;
}

oct_status oct_search_run(oct_search *s)
{
    const size_t n = (size_t)s->n + 1;
    walk w = {.s = s};
    oct_status st;

    s->n_scores = 0;
    s->holds = false;
    memset(s->is_float, 0, (size_t)s->n);
    w.now = oct_calloc(s->ctx, n, 1);
    w.next = oct_calloc(s->ctx, n, 1);
    w.stalled = oct_calloc(s->ctx, n, 1);
    w.harm = oct_calloc(s->ctx, n, sizeof(*w.harm));
    w.order = oct_calloc(s->ctx, n, sizeof(*w.order));
    st = w.now && w.next && w.stalled && w.harm && w.order ? walk_all(&w) : OCT_ERR_MEMORY;
    oct_free(s->ctx, w.now);
    oct_free(s->ctx, w.next);
    oct_free(s->ctx, w.stalled);
    oct_free(s->ctx, w.harm);
    oct_free(s->ctx, w.order);
    return st;
}
