/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search: a plan of what to try, trials on few pictures, the best third on more, and so on. All
 * that is known is in the database; a process takes the next trial from there, or begins the next
 * round if none is left. So it does not matter how many processes there are, or how they end.
 */
#include "tune/tune.h"

#include <string.h>
#include <unistd.h>

#include "base/machine.h"
#include "base/sha256.h"
#include "graph/graph.h"
#include "tune/space.h"
#include "tune/tuned.h"

enum {
    TRIALS = 24,
    MAX_TRIALS = 10000,
    IMAGES = 128,
    PAUSE_US = 100000, /* between looks at what others do */
    CROSSED = 4,       /* the best of the first round, pairs of which are tried in the second */
};

/* A round begins no more trials after this part of the time. */
static const double time_part[OCT_TUNE_ROUNDS] = {0.5, 0.8, 1.0};

/* And this part is for finding out which layers are sensitive. */
#define SENSITIVITY_PART 0.15

void oct_tune_options_init_sized(oct_tune_options *o, size_t struct_size)
{
    const oct_tune_options all = {
        .struct_size = struct_size, .trials = TRIALS, .max_drop = -1, .images = IMAGES};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

/* State of one call. */
typedef struct job {
    oct_ctx *ctx;
    oct_tune_options o;
    oct_budget budget;
    oct_tune_bench bench;
    oct_trials *trials;
    oct_arena *arena; /* of one step; reset for the next */
    int64_t start_ns;
} job;

/* --- progress --- */

/* About how long the trials of a round take, from those that are done. */
static double seconds_of(const oct_trial *list, int32_t n, int32_t round, int64_t images)
{
    double sum = 0, pictures = 0;

    for (int32_t i = 0; i < n; i++)
        if (list[i].kind == OCT_TRIAL_INT8 && list[i].state == OCT_TRIAL_DONE &&
            list[i].round <= round)
            sum += list[i].seconds, pictures += (double)list[i].images;
    return pictures > 0 ? sum / pictures * (double)images : -1;
}

/* Those of this round that are left, and the rounds to come. */
static double estimate(const job *j, const oct_trial *list, int32_t n, oct_tune_progress *p)
{
    double left = 0;
    int32_t round = 0, of_round = 0;

    p->done = p->total = 0;
    for (int32_t i = 0; i < n; i++) {
        const oct_trial *t = &list[i];

        if (t->kind == OCT_TRIAL_PLAN) continue;
        if (t->round > round) round = t->round, of_round = 0;
        of_round += t->kind == OCT_TRIAL_INT8;
        p->total++;
        p->done += t->state >= OCT_TRIAL_DONE;
        if (t->state < OCT_TRIAL_DONE) left += seconds_of(list, n, t->round, t->images);
    }
    for (int32_t r = round + 1; of_round && r < OCT_TUNE_ROUNDS; r++) {
        of_round = oct_halving_keep(of_round);
        p->total += of_round + 1;
        left += of_round * seconds_of(list, n, r, oct_halving_images(j->bench.n_score, r));
    }
    if (left < 0) return -1;
    if (j->o.seconds > 0)
        left = OCT_MIN(left, j->o.seconds - (double)(oct_time_ns() - j->start_ns) * 1e-9);
    return OCT_MAX(left, 0);
}

static oct_status tell(job *j, const oct_trial *t, bool has_ended)
{
    oct_tune_progress p = {.struct_size = sizeof(p), .has_ended = has_ended};
    oct_tuned_trial shown;
    oct_trial *list;
    int32_t n;

    if (!j->o.progress) return OCT_OK;
    OCT_TRY(oct_trials_list(j->trials, j->arena, &list, &n));
    if (t->kind != OCT_TRIAL_PLAN) {
        oct_tuned_show(t, &shown);
        p.trial = &shown;
    }
    p.seconds_left = estimate(j, list, n, &p);
    j->o.progress(j->o.user, &p);
    return OCT_OK;
}

/* --- rounds --- */

static oct_status add(job *j, oct_trial_kind kind, int32_t round, const char *settings)
{
    const oct_trial t = {.kind = (int32_t)kind,
                         .round = round,
                         .images = oct_halving_images(j->bench.n_score, round),
                         .settings = settings};

    return oct_trials_add(j->trials, &t);
}

/* The first round, once it is known what can be varied. */
static oct_status add_first_round(job *j, const oct_trial *plan, const char *const *settings,
                                  int32_t n)
{
    oct_trial done = *plan, *list;
    int32_t n_there;

    OCT_TRY(oct_trials_list(j->trials, j->arena, &list, &n_there));
    for (int32_t i = 0; i < n_there; i++)
        if (list[i].kind != OCT_TRIAL_PLAN) return OCT_OK; /* another process was faster */
    OCT_TRY(add(j, OCT_TRIAL_FLOAT, 0, ""));
    for (int32_t i = 0; i < n; i++)
        OCT_TRY(add(j, OCT_TRIAL_INT8, 0, settings[i]));
    done.state = OCT_TRIAL_DONE;
    return oct_trials_finish(j->trials, &done);
}

static oct_status make_plan(job *j, const oct_trial *plan)
{
    oct_space_options s = {.targets = j->o.targets, .slow = j->o.slow, .seed = j->o.seed};
    const char **settings;
    int32_t n = 0;

    OCT_TRY(oct_tune_sensitivity(&j->bench, j->arena, (const char ***)&s.mixed, &s.n_mixed));
    OCT_TRY(oct_recipe_lines(j->bench.base, &s.fixed));
    OCT_TRY(oct_space_list(j->arena, &s, j->o.trials, &settings, &n));
    OCT_TRY(oct_trials_begin(j->trials));
    return oct_trials_end(j->trials, add_first_round(j, plan, settings, n));
}

/* What was good alone may be better together. */
static oct_status add_crosses(job *j, const oct_trial *list, const int32_t *kept, int32_t n)
{
    for (int32_t a = 1; a < OCT_MIN(n, CROSSED); a++)
        for (int32_t b = a + 1; b < OCT_MIN(n, CROSSED); b++) {
            const char *both =
                oct_space_merge(j->arena, list[kept[a]].settings, list[kept[b]].settings);

            if (both) OCT_TRY(add(j, OCT_TRIAL_INT8, 1, both));
        }
    return OCT_OK;
}

/* Begins the next round if this one is over. *is_over: there is none. */
static oct_status go_on(job *j, bool *is_over)
{
    oct_trial *list;
    int32_t n, round = -1, n_kept, *kept;

    OCT_TRY(oct_trials_list(j->trials, j->arena, &list, &n));
    if (n == 0) return add(j, OCT_TRIAL_PLAN, 0, "");
    for (int32_t i = 0; i < n; i++) {
        if (list[i].state < OCT_TRIAL_DONE) return OCT_OK; /* another process was faster */
        round = OCT_MAX(round, list[i].round);
    }
    *is_over = round >= OCT_TUNE_ROUNDS - 1;
    if (*is_over) return OCT_OK;
    if (!(kept = oct_arena_array(j->arena, (size_t)n, sizeof(*kept)))) return OCT_ERR_MEMORY;
    n_kept = oct_halving_select(list, n, round, &j->budget, kept);
    OCT_TRY(add(j, OCT_TRIAL_FLOAT, round + 1, ""));
    for (int32_t i = 0; i < n_kept; i++)
        OCT_TRY(add(j, OCT_TRIAL_INT8, round + 1, list[kept[i]].settings));
    return round == 0 ? add_crosses(j, list, kept, n_kept) : OCT_OK;
}

/* Time is over for this round: what is open is dropped, except for what others are compared
 * with. */
static oct_status keep_time(job *j)
{
    const double spent = (double)(oct_time_ns() - j->start_ns) * 1e-9;

    for (int32_t r = 0; j->o.seconds > 0 && r < OCT_TUNE_ROUNDS; r++)
        if (spent > j->o.seconds * time_part[r]) OCT_TRY(oct_trials_skip(j->trials, r));
    return OCT_OK;
}

/* --- one trial --- */

/* The same network was measured before: its time, and in the same round its score. */
static oct_status recall(job *j, oct_trial *t, bool *has_score)
{
    oct_trial *list;
    int32_t n;

    OCT_TRY(oct_trials_list(j->trials, j->arena, &list, &n));
    for (int32_t i = 0; i < n; i++) {
        const oct_trial *k = &list[i];

        if (k->kind == OCT_TRIAL_FLOAT && k->state == OCT_TRIAL_DONE && j->bench.float_ms <= 0)
            j->bench.float_ms = k->ms;
        if (k->kind != t->kind || k->state != OCT_TRIAL_DONE || strcmp(k->digest, t->digest) != 0)
            continue;
        if (k->ms > 0) t->ms = k->ms;
        if (k->round != t->round) continue;
        t->score = k->score;
        t->measure = k->measure;
        *has_score = true;
    }
    return OCT_OK;
}

/* Score and time of a network, the float one if q is NULL. */
static oct_status measure(job *j, const oct_graph *q, oct_trial *t)
{
    const oct_graph *g = q ? q : j->bench.g;
    bool has_score = false;

    OCT_TRY(oct_tune_weigh(g, j->arena, &t->bytes, &t->digest));
    OCT_TRY(recall(j, t, &has_score));
    OCT_TRY(oct_trials_beat(j->trials, t->id));
    if (!has_score) OCT_TRY(oct_tune_score(&j->bench, g, t));
    OCT_TRY(oct_trials_beat(j->trials, t->id));
    return t->ms > 0 ? OCT_OK : oct_tune_time(&j->bench, q, &t->ms);
}

static oct_status work(job *j, oct_trial *t)
{
    oct_quantized *q = NULL;
    oct_status st;

    if (t->kind == OCT_TRIAL_PLAN) return make_plan(j, t);
    if (t->kind == OCT_TRIAL_FLOAT) return measure(j, NULL, t);
    st = oct_tune_quantize(&j->bench, t->settings, t->round, &q);
    if (!st) st = measure(j, oct_quantized_graph(q), t);
    oct_quantized_free(q);
    return st;
}

/* Settings that this network cannot have are a result; all else ends the search. */
static bool is_refusal(const oct_trial *t, oct_status st)
{
    return t->kind == OCT_TRIAL_INT8 && *t->settings &&
           (st == OCT_ERR_ARG || st == OCT_ERR_UNSUPPORTED || st == OCT_ERR_SHAPE ||
            st == OCT_ERR_TYPE);
}

static oct_status try_one(job *j, oct_trial *t)
{
    const int64_t start = oct_time_ns();
    oct_status st;

    if (t->kind < OCT_TRIAL_PLAN || t->kind > OCT_TRIAL_INT8 || t->round < 0 ||
        t->round >= OCT_TUNE_ROUNDS || t->images < 1)
        return oct_fail(j->ctx, OCT_ERR_FORMAT, "%s: trial %lld is none that octet makes",
                        j->o.database, (long long)t->id);
    OCT_TRY(tell(j, t, false));
    st = work(j, t);
    if (t->kind == OCT_TRIAL_PLAN && !st) return OCT_OK;
    t->state = st ? OCT_TRIAL_FAILED : OCT_TRIAL_DONE;
    t->seconds = (double)(oct_time_ns() - start) * 1e-9;
    if (is_refusal(t, st)) {
        if (!(t->error = oct_arena_strdup(j->arena, oct_ctx_error(j->ctx)))) return OCT_ERR_MEMORY;
        st = OCT_OK;
    }
    if (!st) st = oct_trials_finish(j->trials, t);
    return st ? st : tell(j, t, true);
}

/* --- the loop --- */

/* Claims and does one trial, waits for others, or begins a round. */
static oct_status step(job *j, bool *is_over)
{
    oct_trial t = {0};
    oct_claim how;
    oct_status st;

    OCT_TRY(keep_time(j));
    OCT_TRY(oct_trials_claim(j->trials, j->arena, &t, &how));
    if (how == OCT_CLAIM_WAIT) {
        (void)usleep(PAUSE_US);
        return oct_progress(j->ctx, "waiting for others", 0, 1);
    }
    if (how == OCT_CLAIM_NONE) {
        OCT_TRY(oct_trials_begin(j->trials));
        return oct_trials_end(j->trials, go_on(j, is_over));
    }
    st = try_one(j, &t);
    if (st) { /* why it failed matters more than whether this works */
        char why[1024];
        const size_t len = OCT_MIN(strlen(oct_ctx_error(j->ctx)), sizeof(why) - 1);

        memcpy(why, oct_ctx_error(j->ctx), len);
        why[len] = '\0';
        (void)oct_trials_release(j->trials, t.id);
        return oct_fail(j->ctx, st, "%s", why);
    }
    return OCT_OK;
}

static oct_status finish(job *j, oct_tuned **out)
{
    oct_tuned *t = oct_calloc(j->ctx, 1, sizeof(*t));
    const oct_trial *of_float;
    const char *text;
    oct_status st;

    if (!t) return OCT_ERR_MEMORY;
    t->ctx = j->ctx;
    st = OCT_ERR_MEMORY;
    if (!(t->arena = oct_arena_new(j->ctx))) goto fail;
    if ((st = oct_trials_list(j->trials, t->arena, &t->list, &t->n))) goto fail;
    if ((st = oct_recipe_text(j->bench.base, &text))) goto fail;
    st = OCT_ERR_MEMORY;
    if (!(t->base = oct_arena_strdup(t->arena, text))) goto fail;
    if (!(t->front = oct_arena_array(t->arena, (size_t)t->n + 1, sizeof(*t->front)))) goto fail;
    oct_pareto_front(t->list, t->n, oct_trials_last_round(t->list, t->n), t->front);
    t->best = oct_trials_best(t->list, t->n, &j->budget);
    of_float = oct_trials_float(t->list, t->n, oct_trials_last_round(t->list, t->n));
    t->score_name = of_float ? of_float->measure : "score";
    *out = t;
    return OCT_OK;
fail:
    oct_tuned_free(t);
    return st;
}

static oct_status search(job *j, const oct_graph *g, oct_recipe *recipe, oct_tuned **out)
{
    char what[OCT_SHA256_TEXT];
    bool is_over = false;

    OCT_TRY(oct_tune_bench_init(&j->bench, g, recipe, &j->o));
    if (j->o.seconds > 0)
        j->bench.sensitivity_ends_ns =
            j->start_ns + (int64_t)(OCT_MIN(j->o.seconds, 1e9) * SENSITIVITY_PART * 1e9);
    OCT_TRY(oct_tune_identity(&j->bench, j->arena, what));
    OCT_TRY(oct_trials_open(j->ctx, j->o.database, what, &j->trials));
    while (!is_over) {
        oct_arena_reset(j->arena);
        OCT_TRY(step(j, &is_over));
    }
    return finish(j, out);
}

static oct_status check(const job *j)
{
    const oct_tune_options *o = &j->o;

    if (!o->database) return oct_fail(j->ctx, OCT_ERR_ARG, "a search needs a file for its trials");
    if (o->trials < 1 || o->trials > MAX_TRIALS)
        return oct_fail(j->ctx, OCT_ERR_ARG, "%d trials: 1 to %d are possible", (int)o->trials,
                        (int)MAX_TRIALS);
    return OCT_OK;
}

oct_status oct_tune(const oct_graph *g, oct_recipe *recipe, const oct_tune_options *options,
                    oct_tuned **out)
{
    OCT_ENTER(g->ctx);
    job j = {.ctx = g->ctx, .start_ns = oct_time_ns()};
    oct_status st;

    oct_tune_options_init(&j.o);
    memcpy(&j.o, options, OCT_MIN(options->struct_size, sizeof(j.o)));
    j.budget = (oct_budget){j.o.max_drop, j.o.max_ms, j.o.max_mb};
    j.bench.ctx = j.ctx;
    OCT_TRY(check(&j));
    if (!(j.arena = oct_arena_new(j.ctx))) return OCT_ERR_MEMORY;
    st = search(&j, g, recipe, out);
    oct_trials_close(j.trials);
    oct_tune_bench_fini(&j.bench);
    oct_arena_free(j.arena);
    return st;
}
