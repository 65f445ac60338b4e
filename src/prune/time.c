/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target of time: pruned networks are compiled and run, and the level found by bisection. What a
 * kernel takes does not follow from its multiply-adds, so nothing but a run tells.
 */
#include "prune/time.h"

#include <octet/plan.h>
#include <time.h>

#include "prune/cut.h"

#define N_RUNS   7 /* at least */
#define SPEND_MS 500
#define N_STEPS  6

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The fastest of some runs: others on the machine make runs slower, never faster. */
static oct_status measure(const oct_graph *g, double *ms)
{
    oct_plan *p = NULL;
    oct_run *r = NULL;
    double spent = 0;
    oct_status st = oct_plan_new(g, NULL, &p);

    if (!st) st = oct_run_new(g->ctx, p, &r);
    *ms = 0;
    for (int i = 0; !st && (i < N_RUNS || spent < SPEND_MS); i++) {
        const double start = now_ms();
        double took;

        st = oct_run_execute(r);
        took = now_ms() - start;
        spent += took;
        if (i == 0 || took < *ms) *ms = took;
    }
    oct_run_free(r);
    oct_plan_free(p);
    return st;
}

/* A copy of the graph is cut: units are found again in it, and are the same ones. */
static oct_status measure_level(const oct_graph *g, const oct_prune_options *o,
                                oct_prune_groups *groups, double level, double *ms)
{
    oct_graph *copy = NULL;
    oct_channels *c = NULL;
    oct_status st = oct_prune_choose_level(groups, o, level);

    if (!st) st = oct_graph_clone(g, &copy);
    if (!st) st = oct_channels_find(copy, &c);
    if (!st) st = oct_channels_cut(c, groups->keep);
    oct_channels_free(c);
    if (!st) st = measure(copy, ms);
    oct_graph_free(copy);
    return st;
}

oct_status oct_prune_choose_time(const oct_graph *g, const oct_prune_options *o,
                                 oct_prune_groups *groups, oct_prune_totals *totals)
{
    double low = 0, high = 1, ms, limit;

    OCT_TRY(measure(g, &totals->time_ms));
    limit = totals->time_ms * (1 - o->time_target);
    OCT_TRY(measure_level(g, o, groups, high, &totals->time_ms_left));
    if (totals->time_ms_left > limit)
        return oct_fail(g->ctx, OCT_ERR_ARG,
                        "pruned as much as it can be, a run takes %.2f ms of %.2f, not %.2f",
                        totals->time_ms_left, totals->time_ms, limit);
    for (int i = 0; i < N_STEPS; i++) {
        const double middle = (low + high) / 2;

        OCT_TRY(oct_progress(g->ctx, "measuring pruned networks", i, N_STEPS));
        OCT_TRY(measure_level(g, o, groups, middle, &ms));
        if (ms > limit) {
            low = middle;
        } else {
            high = middle;
            totals->time_ms_left = ms;
        }
    }
    return oct_prune_choose_level(groups, o, high);
}
