/* SPDX-License-Identifier: Apache-2.0 */
/* Which trials are best: see select.h. */
#include "tune/select.h"

#include <string.h>

int64_t oct_halving_images(int64_t all, int32_t round)
{
    int64_t n = all;

    for (int32_t r = round; r < OCT_TUNE_ROUNDS - 1; r++)
        n = oct_ceil_div(n, OCT_TUNE_FACTOR);
    return OCT_MIN(all, OCT_MAX(n, OCT_TUNE_FEW));
}

int32_t oct_halving_keep(int32_t n)
{
    return OCT_MIN(n, OCT_MAX(2, (n + OCT_TUNE_FACTOR - 1) / OCT_TUNE_FACTOR));
}

static bool is_result(const oct_trial *t, int32_t round)
{
    return t->kind == OCT_TRIAL_INT8 && t->state == OCT_TRIAL_DONE && t->round == round;
}

bool oct_budget_holds(const oct_budget *b, const oct_trial *t, double float_score)
{
    if (b->max_drop >= 0 && t->score < float_score - b->max_drop) return false;
    if (b->max_ms > 0 && t->ms > b->max_ms) return false;
    return b->max_mb <= 0 || (double)t->bytes <= b->max_mb * 1e6;
}

bool oct_trial_is_better(const oct_budget *b, double float_score, const oct_trial *a,
                         const oct_trial *other)
{
    const bool holds = oct_budget_holds(b, a, float_score);

    if (holds != oct_budget_holds(b, other, float_score)) return holds;
    if (holds && b->max_drop >= 0 && (a->ms < other->ms || a->ms > other->ms))
        return a->ms < other->ms;
    if (a->score < other->score || a->score > other->score) return a->score > other->score;
    return a->id < other->id;
}

const oct_trial *oct_trials_float(const oct_trial *list, int32_t n, int32_t round)
{
    for (int32_t i = 0; i < n; i++)
        if (list[i].kind == OCT_TRIAL_FLOAT && list[i].state == OCT_TRIAL_DONE &&
            list[i].round == round)
            return &list[i];
    return NULL;
}

static double float_score_of(const oct_trial *list, int32_t n, int32_t round)
{
    const oct_trial *f = oct_trials_float(list, n, round);

    return f ? f->score : 0;
}

/* Other settings gave the same network before. */
static bool is_repeated(const oct_trial *list, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (is_result(&list[k], list[i].round) && *list[i].digest &&
            strcmp(list[k].digest, list[i].digest) == 0)
            return true;
    return false;
}

static void move_to_front(int32_t *out, int32_t n, int32_t which)
{
    for (int32_t k = 0, moved = which; k < n; k++) {
        const int32_t was = out[k];

        out[k] = moved;
        moved = was;
        if (was == which) break;
    }
}

/* Is something else both as good and as small? Times vary from run to run, and what is tried must
 * not: they do not count here. */
static bool is_outdone(const oct_trial *list, const int32_t *out, int32_t n, int32_t at)
{
    const oct_trial *t = &list[out[at]];

    for (int32_t k = 0; k < n; k++) {
        const oct_trial *o = &list[out[k]];

        if (k != at && o->score >= t->score && o->bytes <= t->bytes &&
            (o->score > t->score || o->bytes < t->bytes || o->id < t->id))
            return true;
    }
    return false;
}

/* Behind the `keep` best of n: those that are worth it for their size, at most half as many again.
 * Returns how many. */
static int32_t move_small_ones(const oct_trial *list, int32_t *out, int32_t keep, int32_t n)
{
    int32_t moved = 0;

    for (int32_t k = keep; k < n && moved < OCT_MAX(1, keep / 2); k++)
        if (!is_outdone(list, out, n, k)) {
            const int32_t it = out[k];

            for (int32_t to = k; to > keep + moved; to--)
                out[to] = out[to - 1];
            out[keep + moved++] = it;
        }
    return moved;
}

int32_t oct_halving_select(const oct_trial *list, int32_t n, int32_t round, const oct_budget *b,
                           int32_t *out)
{
    const double of_float = float_score_of(list, n, round);
    int32_t count = 0, first = -1, keep;

    for (int32_t i = 0; i < n; i++) {
        int32_t at;

        if (!is_result(&list[i], round) || is_repeated(list, i)) continue;
        if (!*list[i].settings) first = i;
        for (at = count++; at > 0 && oct_trial_is_better(b, of_float, &list[i], &list[out[at - 1]]);
             at--)
            out[at] = out[at - 1];
        out[at] = i;
    }
    if (first >= 0) move_to_front(out, count, first);
    keep = oct_halving_keep(count);
    return keep + move_small_ones(list, out, keep, count);
}

int32_t oct_trials_last_round(const oct_trial *list, int32_t n)
{
    int32_t last = -1;

    for (int32_t i = 0; i < n; i++)
        if (is_result(&list[i], list[i].round) && !*list[i].settings)
            last = OCT_MAX(last, list[i].round);
    return last;
}

int32_t oct_trials_best(const oct_trial *list, int32_t n, const oct_budget *b)
{
    const int32_t round = oct_trials_last_round(list, n);
    const double of_float = float_score_of(list, n, round);
    int32_t best = -1;

    for (int32_t i = 0; i < n; i++)
        if (is_result(&list[i], round) && oct_budget_holds(b, &list[i], of_float) &&
            (best < 0 || oct_trial_is_better(b, of_float, &list[i], &list[best])))
            best = i;
    return best;
}

/* Is a as good as b in everything, and better in something or earlier? */
static bool beats(const oct_trial *a, const oct_trial *b)
{
    if (a->score < b->score || a->ms > b->ms || a->bytes > b->bytes) return false;
    return a->score > b->score || a->ms < b->ms || a->bytes < b->bytes || a->id < b->id;
}

void oct_pareto_front(const oct_trial *list, int32_t n, int32_t round, bool *is)
{
    for (int32_t i = 0; i < n; i++) {
        is[i] = is_result(&list[i], round);
        for (int32_t k = 0; k < n && is[i]; k++)
            if (k != i && is_result(&list[k], round) && beats(&list[k], &list[i])) is[i] = false;
    }
}
