/* SPDX-License-Identifier: Apache-2.0 */
/* octet bench: how fast a model runs here. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command/compare.h"
#include "cli/command/measure.h"
#include "cli/cpu.h"
#include "cli/model.h"
#include "cli/term/json.h"
#include "cli/term/table.h"

typedef struct args {
    int64_t streams, batch, warmup, runs, top;
    double seconds;
    cli_list shapes;
} args;

static const cli_opt opts[] = {
    {CLI_INT, "streams", offsetof(args, streams), "N",
     .help = "run N copies at the same time on one plan, each with its own threads", .def = "1",
     .min = 1},
    {CLI_INT, "batch", offsetof(args, batch), "N", .help = "set the first dimension of the inputs",
     .min = 1},
    {CLI_INT, "warmup", offsetof(args, warmup), "N", .help = "runs before measuring starts",
     .def = "5"},
    {CLI_INT, "runs", offsetof(args, runs), "N",
     .help = "measure this many runs of each stream, however long they take", .min = 1},
    {CLI_F64, "seconds", offsetof(args, seconds), "S", .help = "without --runs: measure this long",
     .def = "3"},
    {CLI_INT, "top", offsetof(args, top), "N",
     .help = "of several models: list the N slowest layers, and N that did not gain; 0: all",
     .def = "30"},
    CLI_OPT_INPUT_SHAPE(args),
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", "ONNX files; the others are compared with the first", CLI_FILE_IN | CLI_FILE_MANY},
    {0},
};

static const cli_example examples[] = {
    {"bench yolov8n.onnx", "Latency with all physical cores"},
    {"bench yolov8n.onnx yolov8n_int8.onnx", "What INT8 gains, in total and layer by layer"},
    {"bench yolov8n.onnx --threads 1 --streams 2", "Throughput: two copies with one thread each"},
    {"bench net.onnx --input-shape images:1x3x416x416 --batch 4 --runs 50 --json",
     "Four images at once, 50 runs, for other programs"},
    {0},
};

/* What all streams share. */
typedef struct shared {
    cli *c;
    const args *args;
    const cli_session *session;
    pthread_barrier_t start;
} shared;

/* One thread that runs the model again and again. */
typedef struct stream {
    shared *s;
    int index;
    cli_times times;
    int64_t start_ns, end_ns;
    oct_status status;
    char error[1024];
} stream;

static oct_status warm_up(const stream *t, oct_run *r)
{
    oct_status st = cli_session_fill(t->s->session, r, (uint64_t)t->s->c->opt.seed);

    for (int64_t i = 0; !st && i < t->s->args->warmup; i++)
        st = oct_run_execute(r);
    return st;
}

static void show_progress(const stream *t, int64_t now)
{
    const args *a = t->s->args;

    if (t->index) return;
    if (a->runs)
        (void)cli_progress(t->s->c, "measuring", (int64_t)t->times.n, a->runs);
    else
        (void)cli_progress(t->s->c, "measuring" CLI_PROGRESS_MS, (now - t->start_ns) / 1000000,
                           (int64_t)(a->seconds * 1e3));
}

static oct_status measure(stream *t, oct_run *r)
{
    const args *a = t->s->args;
    int64_t now = cli_time_ns();

    t->start_ns = now;
    for (;;) {
        const int64_t begin = cli_time_ns();
        const oct_status st = oct_run_execute(r);

        if (st) return st;
        now = cli_time_ns();
        cli_times_add(&t->times, now - begin);
        if (a->runs ? (int64_t)t->times.n >= a->runs
                    : (double)(now - t->start_ns) * 1e-9 >= a->seconds)
            break;
        show_progress(t, now);
        if (cli_stopped()) return OCT_ERR_CANCELLED;
    }
    t->end_ns = now;
    return OCT_OK;
}

static void *stream_main(void *arg)
{
    stream *t = arg;
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_run *r = NULL;
    oct_status st = ctx ? OCT_OK : OCT_ERR_MEMORY;

    if (!st) oct_ctx_set_threads(ctx, t->s->session->n_threads);
    if (!st) st = oct_run_new(ctx, t->s->session->plan, &r);
    if (!st) st = warm_up(t, r);
    (void)pthread_barrier_wait(&t->s->start); /* also after a failure: the others wait at the
                                               * barrier */
    if (!st) st = measure(t, r);
    t->status = st;
    if (st)
        (void)snprintf(t->error, sizeof(t->error), "%s", ctx ? oct_ctx_error(ctx) : "no memory");
    oct_run_free(r);
    oct_ctx_free(ctx);
    return NULL;
}

/* Stream 0 is this thread: with one stream there is no other. */
static oct_status run_streams(shared *s, stream *streams, int n)
{
    pthread_t *threads = cli_alloc((size_t)n, sizeof(*threads));
    int started = 1;

    if (pthread_barrier_init(&s->start, NULL, (unsigned)n)) {
        free(threads);
        return cli_fail(s->c, OCT_ERR_ARG, "%d streams are more than this machine can start", n);
    }
    for (int i = 0; i < n; i++)
        streams[i] = (stream){.s = s, .index = i};
    for (; started < n; started++)
        if (pthread_create(&threads[started], NULL, stream_main, &streams[started])) {
            /* Streams that have started wait at the barrier and cannot be joined: the program
             * has to exit. */
            (void)fprintf(stderr, "octet: only %d of %d streams could be started\n", started, n);
            exit(1);
        }
    (void)stream_main(&streams[0]);
    for (int i = 1; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_barrier_destroy(&s->start);
    free(threads);
    cli_progress_end(s->c);
    for (int i = 0; i < n; i++)
        if (streams[i].status)
            return cli_fail(s->c, streams[i].status, "%s: %s", s->c->model, streams[i].error);
    return OCT_OK;
}

/* All that is reported, in the units it is reported in. */
typedef struct result {
    cli_time_stats t;
    int64_t runs, batch;
    double throughput, gmac, activation_mb, input_mb;
} result;

static result summarize(const shared *s, stream *streams, int n)
{
    result r = {.batch = s->args->batch ? s->args->batch : 1};
    cli_times all = {0};
    int64_t start = INT64_MAX, end = 0;

    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < streams[i].times.n; k++)
            cli_times_add(&all, streams[i].times.ns[k]);
        start = streams[i].start_ns < start ? streams[i].start_ns : start;
        end = streams[i].end_ns > end ? streams[i].end_ns : end;
    }
    r.runs = (int64_t)all.n;
    r.t = cli_times_stats(&all);
    r.throughput = (double)(r.runs * r.batch) / ((double)(end - start) * 1e-9);
    r.gmac = (double)oct_plan_macs(s->session->plan) * 1e-9;
    r.activation_mb = (double)oct_plan_activation_size(s->session->plan) * 1e-6;
    r.input_mb = (double)oct_plan_input_size(s->session->plan) * 1e-6;
    cli_times_fini(&all);
    return r;
}

/* --- kernels --- */

/* How many steps a kernel has. */
typedef struct kernel_count {
    const char *name;
    int64_t n;
} kernel_count;

static int by_count(const void *a, const void *b)
{
    const kernel_count *x = a, *y = b;

    return x->n < y->n ? 1 : x->n > y->n ? -1 : strcmp(x->name, y->name);
}

static oct_step_info step_of(const oct_plan *p, int i)
{
    oct_step_info info = {.struct_size = sizeof(info)};

    oct_plan_step(p, i, &info);
    return info;
}

/* Most frequent first. There are a few dozen kernels at most. */
static kernel_count *count_kernels(const oct_plan *p, int *n)
{
    const int n_steps = oct_plan_n_steps(p);
    kernel_count *list = cli_alloc((size_t)n_steps + 1, sizeof(*list));

    *n = 0;
    for (int i = 0; i < n_steps; i++) {
        const oct_step_info info = step_of(p, i);
        int k = 0;

        while (k < *n && strcmp(list[k].name, info.kernel) != 0)
            k++;
        if (k == *n) list[(*n)++].name = info.kernel;
        list[k].n++;
    }
    if (*n) qsort(list, (size_t)*n, sizeof(*list), by_count);
    return list;
}

enum { COLUMN = 12 }; /* where the text of a fact begins */

static void print_kernels(const oct_plan *p)
{
    enum { MAX_NAMED = 8 };
    int n;
    kernel_count *list = count_kernels(p, &n);
    char text[1024] = "";
    size_t at = 0;

    for (int i = 0; i < n && i < MAX_NAMED && at < sizeof(text); i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%lld %s", i ? ", " : "",
                               (long long)list[i].n, list[i].name);
    cli_fact(stdout, COLUMN, "kernels", "%s%s", text, n > MAX_NAMED ? ", ..." : "");
    free(list);
}

static cli_json *layers_json(const oct_plan *p)
{
    cli_json *list = cli_json_array();

    for (int i = 0; i < oct_plan_n_steps(p); i++) {
        const oct_step_info info = step_of(p, i);
        cli_json *j = cli_json_object();

        cli_json_str(j, "name", info.name);
        cli_json_str(j, "operator", info.op);
        cli_json_str(j, "kernel", info.kernel);
        cli_json_bool(j, "integer", info.is_integer);
        cli_json_add(list, NULL, j);
    }
    return list;
}

/* --- results --- */

static oct_status print_json(cli *c, const cli_session *s, const result *r)
{
    cli_json *j = cli_json_object();
    oct_status st;

    cli_json_round(j, "median_ms", r->t.median_ms, 4);
    cli_json_round(j, "mean_ms", r->t.mean_ms, 4);
    cli_json_round(j, "min_ms", r->t.min_ms, 4);
    cli_json_round(j, "p90_ms", r->t.p90_ms, 4);
    cli_json_round(j, "p99_ms", r->t.p99_ms, 4);
    cli_json_int(j, "runs", r->runs);
    cli_json_round(j, "throughput", r->throughput, 3);
    cli_json_round(j, "load_ms", s->load_ms, 3);
    cli_json_round(j, "plan_ms", s->plan_ms, 3);
    cli_json_round(j, "peak_rss_mb", cli_peak_rss_mb(), 2);
    cli_json_round(j, "activation_mb", r->activation_mb, 3);
    cli_json_round(j, "input_mb", r->input_mb, 3);
    cli_json_num(j, "gmac", r->gmac);
    cli_json_int(j, "threads", s->n_threads);
    cli_json_add(j, "layers", layers_json(s->plan));
    st = cli_json_print(c, j);
    cli_json_free(j);
    return st;
}

static void print_text(const args *a, const cli_session *s, const result *r)
{
    const double busy = r->t.median_ms > 0 ? r->gmac / (r->t.median_ms * 1e-3) : 0;

    cli_fact(stdout, COLUMN, "latency", "median %.3f ms, mean %.3f, min %.3f, p90 %.3f, p99 %.3f",
             r->t.median_ms, r->t.mean_ms, r->t.min_ms, r->t.p90_ms, r->t.p99_ms);
    cli_fact(stdout, COLUMN, "throughput",
             "%.2f inferences/s (%lld runs, batch %lld, %lld stream%s, %d thread%s "
             "each)",
             r->throughput, (long long)r->runs, (long long)r->batch, (long long)a->streams,
             a->streams == 1 ? "" : "s", (int)s->n_threads, s->n_threads == 1 ? "" : "s");
    cli_fact(stdout, COLUMN, "work", "%.3f GMAC a run, %.1f GMAC/s in each stream", r->gmac, busy);
    cli_fact(stdout, COLUMN, "memory",
             "%.1f MB peak resident, %.1f MB activations and %.1f MB inputs of each "
             "stream",
             cli_peak_rss_mb(), r->activation_mb, r->input_mb);
    cli_fact(stdout, COLUMN, "start", "load %.1f ms, plan %.1f ms", s->load_ms, s->plan_ms);
    print_kernels(s->plan);
}

static oct_status compare(cli *c, const args *a, char **files)
{
    const cli_compare_options o = {
        .session = {.shapes = &a->shapes, .batch = a->batch},
        .warmup = a->warmup,
        .runs = a->runs,
        .seconds = a->seconds,
        .top = a->top,
    };

    if (a->streams > 1)
        return cli_fail(c, OCT_ERR_ARG,
                        "--streams measures one model at a time; leave it out, or "
                        "give one MODEL");
    return cli_compare(c, files, &o);
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    const int32_t cores = oct_ctx_threads(c->ctx);
    const int n = (int)(a->streams > 4096 ? 4096 : a->streams);
    cli_session_options o = {.shapes = &a->shapes, .batch = a->batch};
    cli_session session;
    shared s = {.c = c, .args = a, .session = &session};
    stream *streams;
    oct_status st;

    if (files[1]) return compare(c, a, files);
    /* --threads is for each stream; without it the streams share the cores. */
    if (!c->opt.threads) o.n_threads = cores / n > 1 ? cores / n : 1;
    if ((st = cli_session_open(c, files[0], &o, &session))) return st;
    streams = cli_alloc((size_t)n, sizeof(*streams));
    if (!(st = run_streams(&s, streams, n))) {
        const result r = summarize(&s, streams, n);

        if (c->opt.json)
            st = print_json(c, &session, &r);
        else
            print_text(a, &session, &r);
        cli_note_busy(c);
    }
    for (int i = 0; i < n; i++)
        cli_times_fini(&streams[i].times);
    free(streams);
    cli_session_close(&session);
    return st;
}

const cli_command cmd_bench = {
    .name = "bench",
    .help = "measure latency, throughput and memory of a model",
    .about =
        "Inputs are random numbers that depend on --seed alone. --threads is the number for "
        "each stream; without it the streams share the physical cores. Close other programs: "
        "a busy core slows all threads down.\n\n"
        "Several models take turns. The others are compared with the first: layers are matched "
        "by name, and those that did not gain are listed with the reason. Memory is that of a "
        "process which runs this model alone.\n\n"
        "With --json: median_ms, mean_ms, min_ms, p90_ms, p99_ms (of one run), runs, "
        "throughput (inferences per second, over all streams and the batch), load_ms, "
        "plan_ms, peak_rss_mb, activation_mb (the block that the values of one stream share), "
        "input_mb (what it is fed, beside the block), gmac (of one run), threads (of each "
        "stream), layers (name, operator, kernel, integer). Of several models: runs, "
        "threads, models (model, median_ms, min_ms, p90_ms, speed_up, gmac, peak_rss_mb, "
        "activation_mb, input_mb, load_ms, plan_ms; from the second on moves and moves_ms of "
        "reorders "
        "and conversions, and layers with name, operator, first_ms, ms, speed_up, "
        "first_kernel, kernel, integer, why). MB are 1000000 bytes.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
