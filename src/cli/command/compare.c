/* SPDX-License-Identifier: Apache-2.0 */
/* Measures several models in turns, so that a change of the machine's speed affects all of them. */
#include "cli/command/compare.h"
#include "cli/cpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TURN_RUNS = 4,  /* of a model before the next one has its turn */
    TURN_STEPS = 2, /* further runs of a turn, in which every step is timed */
};

/* --- memory --- */

/* In a process of its own: loads, compiles, runs, and reports its peak memory. */
static void measure_peak(cli *c, const char *path, const cli_session_options *o, int fd)
{
    cli_session s;
    oct_run *r = NULL;
    double mb;

    c->opt.quiet = true; /* the other process says it too */
    if (cli_session_open(c, path, o, &s)) _exit(1);
    if (oct_run_new(c->ctx, s.plan, &r) || cli_session_fill(&s, r, 1) || oct_run_execute(r))
        _exit(1);
    mb = cli_peak_rss_mb();
    _exit(write(fd, &mb, sizeof(mb)) == (ssize_t)sizeof(mb) ? 0 : 1);
}

/*
 * Memory of models in one process cannot be separated. Done before the first model is run here: a
 * process with OpenMP threads must not fork.
 */
static double peak_of(cli *c, const char *path, const cli_session_options *o)
{
    int ends[2], status = 0;
    double mb = 0;
    pid_t child;

    if (pipe(ends)) return 0;
    (void)fflush(NULL);
    child = fork();
    if (child == 0) measure_peak(c, path, o, ends[1]);
    (void)close(ends[1]);
    if (child < 0 || read(ends[0], &mb, sizeof(mb)) != (ssize_t)sizeof(mb)) mb = 0;
    (void)close(ends[0]);
    if (child > 0) (void)waitpid(child, &status, 0);
    return mb;
}

/* --- time --- */

static void step_hook(void *user, int32_t step, int64_t start_ns, int64_t end_ns)
{
    cli_measured *m = user;

    cli_times_add(&m->steps[step].times, end_ns - start_ns);
}

static oct_status warm_up(cli *c, cli_measured *m, int64_t runs)
{
    oct_status st = oct_run_new(c->ctx, m->session.plan, &m->run);

    if (!st) st = cli_session_fill(&m->session, m->run, (uint64_t)c->opt.seed);
    for (int64_t i = 0; !st && i < runs; i++)
        st = oct_run_execute(m->run);
    return st;
}

/* The first run finds the caches full of another model's data and is not counted. */
static oct_status take_turn(cli_measured *m, int64_t runs)
{
    oct_status st = oct_run_execute(m->run);

    for (int64_t i = 0; !st && i < runs; i++) {
        const int64_t start = cli_time_ns();

        st = oct_run_execute(m->run);
        cli_times_add(&m->times, cli_time_ns() - start);
    }
    oct_run_set_step_hook(m->run, step_hook, m);
    for (int i = 0; !st && i < TURN_STEPS; i++)
        st = oct_run_execute(m->run);
    oct_run_set_step_hook(m->run, NULL, NULL);
    return st;
}

static oct_status measure(cli *c, cli_measured *models, int n, const cli_compare_options *o)
{
    const int64_t start = cli_time_ns(), total_ms = (int64_t)(o->seconds * 1e3 * n);
    int64_t passed_ms = 0;
    oct_status st = OCT_OK;

    for (int i = 0; !st && i < n; i++) {
        c->model = models[i].path;
        st = warm_up(c, &models[i], o->warmup);
    }
    if (o->runs) /* the first turn may take a while */
        (void)cli_progress(c, "measuring", 0, o->runs);
    else
        (void)cli_progress(c, "measuring" CLI_PROGRESS_MS, 0, total_ms);
    while (!st) {
        const int64_t left = o->runs ? o->runs - (int64_t)models[0].times.n : TURN_RUNS;

        for (int i = 0; !st && i < n; i++) {
            c->model = models[i].path;
            st = take_turn(&models[i], left < TURN_RUNS ? left : TURN_RUNS);
            if (!st && cli_stopped()) st = OCT_ERR_CANCELLED;
        }
        passed_ms = (cli_time_ns() - start) / 1000000;
        if (o->runs ? (int64_t)models[0].times.n >= o->runs : passed_ms >= total_ms) break;
        if (o->enough && (int64_t)models[0].times.n >= o->enough) break;
        if (o->runs)
            (void)cli_progress(c, "measuring", (int64_t)models[0].times.n, o->runs);
        else
            (void)cli_progress(c, "measuring" CLI_PROGRESS_MS, passed_ms, total_ms);
    }
    cli_progress_end(c);
    return st;
}

/* --- a model --- */

static oct_status open_model(cli *c, const char *path, const cli_session_options *o,
                             cli_measured *m)
{
    const oct_status st = cli_session_open(c, path, o, &m->session);

    if (st) return st;
    m->path = path;
    m->n_steps = oct_plan_n_steps(m->session.plan);
    m->steps = cli_alloc((size_t)m->n_steps, sizeof(*m->steps));
    for (int i = 0; i < m->n_steps; i++) {
        m->steps[i].info.struct_size = sizeof(m->steps[i].info);
        oct_plan_step(m->session.plan, i, &m->steps[i].info);
    }
    return OCT_OK;
}

void cli_measured_close(cli_measured *m)
{
    for (int i = 0; i < m->n_steps; i++)
        cli_times_fini(&m->steps[i].times);
    free(m->steps);
    cli_times_fini(&m->times);
    oct_run_free(m->run);
    cli_session_close(&m->session);
}

static void summarize(cli_measured *m)
{
    m->stats = cli_times_stats(&m->times);
    for (int i = 0; i < m->n_steps; i++)
        m->steps[i].ms = cli_times_stats(&m->steps[i].times).median_ms;
}

oct_status cli_measure_models(cli *c, char **files, int n, const cli_compare_options *o,
                              cli_measured *models)
{
    oct_status st = OCT_OK;
    int opened = 0;

    while (!st && opened < n)
        if (!(st = open_model(c, files[opened], &o->session, &models[opened]))) opened++;
    if (!st) st = measure(c, models, n, o);
    for (int i = 0; !st && i < n; i++)
        summarize(&models[i]);
    while (st && opened > 0)
        cli_measured_close(&models[--opened]);
    return st;
}

oct_status cli_compare(cli *c, char **files, const cli_compare_options *o)
{
    cli_measured *models;
    int n = 0;
    oct_status st;

    while (files[n])
        n++;
    models = cli_alloc((size_t)n, sizeof(*models));
    for (int i = 0; i < n; i++)
        models[i].peak_mb = peak_of(c, files[i], &o->session);
    if ((st = cli_measure_models(c, files, n, o, models))) goto done;
    if (c->opt.json)
        st = cli_compare_json(c, models, n);
    else
        cli_compare_text(models, n, o->top);
    cli_note_busy(c);
    while (n > 0)
        cli_measured_close(&models[--n]);
done:
    free(models);
    return st;
}
