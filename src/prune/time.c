/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target of time: pruned networks are compiled and run, and the level found by bisection. What a
 * kernel takes does not follow from its multiply-adds, so nothing but a run tells.
 */
#include "prune/time.h"

#include <octet/plan.h>
#include <time.h>

#include "prune/cut.h"

#define N_RUNS   25 /* of each, at least: on a busy machine few of them are undisturbed */
#define SPEND_MS 1000
#define N_STEPS  6

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The network as it is, to measure others beside. */
typedef struct stopwatch {
    oct_plan *plan;
    oct_run *run;
    double ms[2]; /* of the last measurement: of this network, and of the other */
} stopwatch;

static oct_status start(const oct_graph *g, stopwatch *s)
{
    OCT_TRY(oct_plan_new(g, NULL, &s->plan));
    return oct_run_new(g->ctx, s->plan, &s->run);
}

/*
 * The fastest of some runs of each, in turns: others on the machine make runs slower, never faster,
 * and both alike.
 */
static oct_status run_in_turns(stopwatch *s, oct_run *other)
{
    oct_run *const runs[] = {s->run, other};
    double spent = 0;

    for (int i = 0; i < N_RUNS || spent < SPEND_MS; i++)
        for (int k = 0; k < 2; k++) {
            const double begin = now_ms();
            double took;

            OCT_TRY(oct_run_execute(runs[k]));
            took = now_ms() - begin;
            spent += took;
            if (i == 0 || took < s->ms[k]) s->ms[k] = took;
        }
    return OCT_OK;
}

static oct_status measure(const oct_graph *g, stopwatch *s)
{
    stopwatch other = {0};
    oct_status st = start(g, &other);

    if (!st) st = run_in_turns(s, other.run);
    oct_run_free(other.run);
    oct_plan_free(other.plan);
    return st;
}

/* A copy of the graph is cut: units are found again in it, and are the same ones. */
static oct_status measure_level(const oct_graph *g, const oct_prune_options *o,
                                oct_prune_groups *groups, double level, stopwatch *s)
{
    oct_graph *copy = NULL;
    oct_channels *c = NULL;
    oct_status st = oct_prune_choose_level(groups, o, level);

    if (!st) st = oct_graph_clone(g, &copy);
    if (!st) st = oct_channels_find(copy, &c);
    if (!st) st = oct_channels_cut(c, groups->keep);
    oct_channels_free(c);
    if (!st) st = measure(copy, s);
    oct_graph_free(copy);
    return st;
}

static oct_status search(const oct_graph *g, const oct_prune_options *o, oct_prune_groups *groups,
                         stopwatch *s, oct_prune_totals *totals)
{
    const double share = 1 - o->time_target;
    double low = 0, high = 1;

    OCT_TRY(measure_level(g, o, groups, high, s));
    if (s->ms[1] > share * s->ms[0])
        return oct_fail(g->ctx, OCT_ERR_ARG,
                        "pruned as much as it can be, a run takes %.2f ms of %.2f, not %.2f",
                        s->ms[1], s->ms[0], share * s->ms[0]);
    totals->time_ms = s->ms[0];
    totals->time_ms_left = s->ms[1];
    for (int i = 0; i < N_STEPS; i++) {
        const double middle = (low + high) / 2;

        OCT_TRY(oct_progress(g->ctx, "measuring pruned networks", i, N_STEPS));
        OCT_TRY(measure_level(g, o, groups, middle, s));
        if (s->ms[1] > share * s->ms[0]) {
            low = middle;
            continue;
        }
        high = middle;
        totals->time_ms = s->ms[0];
        totals->time_ms_left = s->ms[1];
    }
    return oct_prune_choose_level(groups, o, high);
}

oct_status oct_prune_choose_time(const oct_graph *g, const oct_prune_options *o,
                                 oct_prune_groups *groups, oct_prune_totals *totals)
{
    stopwatch s = {0};
    oct_status st = start(g, &s);

    if (!st) st = search(g, o, groups, &s, totals);
    oct_run_free(s.run);
    oct_plan_free(s.plan);
    return st;
}
