/* SPDX-License-Identifier: Apache-2.0 */
/* Composes a report: an analysis, times, accuracy, pictures, and how it was made. */
#include "cli/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command/compare.h"
#include "cli/guard.h"
#include "cli/model.h"

enum { WARMUP_RUNS = 3, ENOUGH_RUNS = 400, REPEAT_IMAGES = 64 };

#define SECONDS 3.0 /* for each network */

char *cli_report_path(const char *dir)
{
    const size_t len = strlen(dir);

    return cli_format("%s%sindex.html", dir, len && dir[len - 1] == '/' ? "" : "/");
}

/* --- before the work --- */

/* Creates and removes a file: shows missing rights, full disks and read-only ones. */
static oct_status try_writing(cli *c, const char *dir)
{
    char *path = cli_format("%s/.octet-report-XXXXXX", dir);
    const int fd = mkstemp(path);
    oct_status st = OCT_OK;

    if (fd < 0)
        st = cli_fail(c, OCT_ERR_IO, "option --report: cannot write into %s: %s", dir,
                      strerror(errno));
    else
        (void)close(fd), (void)unlink(path);
    free(path);
    return st;
}

oct_status cli_report_check(cli *c, const char *dir, bool is_rewritten)
{
    char *parent = cli_format("%s", dir), *page = cli_report_path(dir), *slash;
    struct stat sb;
    oct_status st;

    for (size_t len = strlen(parent); len > 1 && parent[len - 1] == '/';)
        parent[--len] = '\0';
    slash = strrchr(parent, '/');
    if (is_rewritten) (void)mkdir(dir, 0777); /* if that fails, what follows says why */
    if (stat(dir, &sb) == 0) {
        if (!S_ISDIR(sb.st_mode))
            st = cli_fail(c, OCT_ERR_ARG, "option --report: %s is not a folder", dir);
        else if (stat(page, &sb) == 0 && S_ISDIR(sb.st_mode))
            st = cli_fail(c, OCT_ERR_ARG, "option --report: %s is a folder", page);
        else if (!(st = is_rewritten ? cli_rewrites(c, "--report", page)
                                     : cli_writes(c, "--report", page)))
            st = try_writing(c, dir);
    } else {
        if (slash) slash[slash == parent] = '\0'; /* the root keeps its name */
        st = try_writing(c, slash ? parent : ".");
    }
    free(parent);
    free(page);
    return st;
}

/* --- analysis --- */

static oct_status analyze(const cli_report *in, oct_analysis **out)
{
    oct_analyze_options o;
    oct_status st;

    if (in->analysis) return OCT_OK;
    oct_analyze_options_init(&o);
    o.preprocess = in->preprocess;
    o.family = in->family;
    in->c->model = in->float_path;
    st = oct_analyze(in->exact, in->quantized, in->images, &o, out);
    cli_progress_end(in->c);
    return st;
}

/* --- times --- */

static int fill_steps(cli_measured *m, bool is_int8, oct_report_step *out)
{
    for (int i = 0; i < m->n_steps; i++) {
        cli_step *s = &m->steps[i];
        const cli_time_stats t = cli_times_stats(&s->times);

        out[i] = (oct_report_step){.layer = s->info.name,
                                   .op = s->info.op,
                                   .kernel = s->info.kernel,
                                   .ms = t.median_ms,
                                   .p10_ms = t.p10_ms,
                                   .p90_ms = t.p90_ms,
                                   .is_int8_network = is_int8,
                                   .is_move = s->info.is_reorder || s->info.is_conversion};
    }
    return m->n_steps;
}

/* The steps of both networks, and how much their times varied. */
static void fill_spread(cli_measured models[2], oct_report *r)
{
    oct_report_step *steps =
        cli_alloc((size_t)models[0].n_steps + (size_t)models[1].n_steps + 1, sizeof(*steps));

    r->n_steps = fill_steps(&models[0], false, steps);
    r->n_steps += fill_steps(&models[1], true, steps + r->n_steps);
    r->steps = steps;
    r->float_p10_ms = models[0].stats.p10_ms;
    r->float_p90_ms = models[0].stats.p90_ms;
    r->int8_p10_ms = models[1].stats.p10_ms;
    r->int8_p90_ms = models[1].stats.p90_ms;
    r->runs = (int32_t)models[0].times.n;
}

static oct_status measure(const cli_report *in, oct_report *r, cli_measured models[2],
                          cli_layers *layers)
{
    char *files[] = {(char *)in->float_path, (char *)in->int8_path, NULL};
    const cli_compare_options o = {.session = {.shapes = in->shapes},
                                   .warmup = WARMUP_RUNS,
                                   .seconds = SECONDS,
                                   .enough = ENOUGH_RUNS};
    oct_report_time *times;
    oct_status st;

    r->cpus = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (getloadavg(&r->cpu_load, 1) != 1) r->cpu_load = -1; /* before our own work counts as load */
    if ((st = cli_measure_models(in->c, files, 2, &o, models))) return st;
    fill_spread(models, r);
    cli_layers_init(layers, &models[0], &models[1]);
    times = cli_alloc((size_t)layers->n + 1, sizeof(*times));
    for (int i = 0; i < layers->n; i++) {
        const cli_layer *l = &layers->list[i];

        times[i] = (oct_report_time){(l->first ? l->first : l->other)->info.name,
                                     l->first ? l->first_ms : -1, l->other ? l->other_ms : -1};
    }
    r->times = times;
    r->n_times = layers->n;
    r->float_ms = models[0].stats.median_ms;
    r->int8_ms = models[1].stats.median_ms;
    r->threads = models[0].session.n_threads;
    return OCT_OK;
}

/* --- without labels --- */

/* How much of what the float network finds is found by the other, on the first pictures. */
static oct_status compare(const cli_report *in, oct_compare_result *r)
{
    oct_compare_options o;
    oct_status st;

    oct_compare_options_init(&o);
    o.family = in->family;
    o.preprocess = in->preprocess;
    o.limit = REPEAT_IMAGES;
    st = oct_compare(in->exact, in->quantized, in->images, &o, r);
    cli_progress_end(in->c);
    return st;
}

/* --- all of it --- */

/* A part that this network or these pictures do not allow is omitted, with a message. */
static oct_status or_without(cli *c, oct_status st, const char *part)
{
    if (!st || st == OCT_ERR_MEMORY || st == OCT_ERR_CANCELLED) return st;
    cli_note(c, "note: the report has no %s: %s", part,
             c->error[0] ? c->error : oct_ctx_error(c->ctx));
    c->error[0] = '\0';
    return OCT_OK;
}

/* Strings that the report borrows. */
typedef struct words {
    char *title, *command, *machine, *versions, *set;
} words;

static void fill_words(const cli_report *in, words *w, oct_report *r)
{
    w->title = cli_report_title(in->float_path);
    w->command = cli_report_command(in->c);
    w->machine = cli_report_machine(in->c);
    w->versions = cli_report_versions();
    if (in->after) w->set = cli_format("%lld pictures", (long long)in->after->images);
    r->title = w->title;
    r->command = w->command;
    r->machine = w->machine;
    r->versions = w->versions;
    r->accuracy_set = w->set;
}

static void free_words(words *w)
{
    free(w->title);
    free(w->command);
    free(w->machine);
    free(w->versions);
    free(w->set);
}

static void fill_facts(const cli_report *in, oct_quantize_summary *summary, oct_report *r)
{
    r->float_path = in->float_path;
    r->int8_path = in->int8_path;
    r->float_bytes = cli_file_size(in->float_path);
    if (in->int8_path) r->int8_bytes = cli_file_size(in->int8_path);
    r->float_accuracy = in->before;
    r->int8_accuracy = in->after;
    r->is_classifier = in->is_classifier;
    r->graph = in->quantized;
    r->recipe = in->recipe;
    r->float_boxes = in->boxes[0];
    r->int8_boxes = in->boxes[1];
    r->noise = in->noise;
    r->pruned = in->pruned;
    if (in->q) {
        oct_quantized_summary(in->q, summary);
        r->summary = summary;
    }
}

/* Ctrl-C is delayed: the report is written whole, or the old one stays. */
static oct_status write_page(const cli_report *in, const oct_report *r)
{
    oct_status st;

    in->c->model = NULL;
    cli_hold_interrupts();
    st = oct_report_write(in->c->ctx, r, in->dir);
    cli_release_interrupts();
    return st;
}

oct_status cli_report_write(const cli_report *in)
{
    oct_quantize_summary summary = {.struct_size = sizeof(summary)};
    cli_measured models[2] = {{0}};
    cli_report_pictures pictures = {.n = 0};
    oct_compare_result repeat = {.struct_size = sizeof(repeat)};
    oct_analysis *made = NULL;
    cli_layers layers = {0};
    words w = {0};
    bool measured = false;
    oct_report r;
    oct_status st;

    oct_report_init(&r);
    fill_words(in, &w, &r);
    fill_facts(in, &summary, &r);
    if ((st = or_without(in->c, analyze(in, &made), "analysis"))) goto done;
    r.analysis = made ? made : in->analysis;
    if (in->int8_path) {
        if ((st = measure(in, &r, models, &layers))) goto done;
        measured = true;
    }
    if ((st = or_without(in->c, cli_report_draw(in, &pictures), "pictures"))) goto done;
    if (!in->after && in->images && in->exact) {
        if ((st = or_without(in->c, compare(in, &repeat), "comparison"))) goto done;
        w.set = cli_format("%lld pictures without labels, against what the float network finds "
                           "with a score above 0.3",
                           (long long)repeat.images);
        r.accuracy_set = w.set;
        r.repeat = repeat.images ? &repeat : NULL;
    }
    r.scenes = pictures.list;
    r.n_scenes = pictures.n;
    r.scenes_seen = pictures.n_seen;
    r.scene_score = pictures.score;
    r.class_names = (const char *const *)pictures.names;
    r.n_class_names = pictures.n_names;
    st = write_page(in, &r);
done:
    cli_report_pictures_fini(&pictures);
    free((void *)r.times);
    free((void *)r.steps);
    cli_layers_fini(&layers);
    for (int i = 0; i < 2 && measured; i++)
        cli_measured_close(&models[i]);
    oct_analysis_free(made);
    free_words(&w);
    return st;
}
