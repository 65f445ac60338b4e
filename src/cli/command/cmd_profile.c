/* SPDX-License-Identifier: Apache-2.0 */
/* octet profile: where the time of a run goes. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command/feed_pictures.h"
#include "cli/command/measure.h"
#include "cli/cpu.h"
#include "cli/model.h"
#include "cli/term/json.h"
#include "cli/term/table.h"
#include "cli/term/trace.h"

typedef struct args {
    int64_t runs, warmup, top, batch;
    const char *trace, *images, *family, *preprocess;
    cli_list shapes;
} args;

static const cli_opt opts[] = {
    {CLI_INT, "runs", offsetof(args, runs), "N", .help = "runs to average over", .def = "20",
     .min = 1},
    {CLI_INT, "warmup", offsetof(args, warmup), "N", .help = "runs before measuring starts",
     .def = "5"},
    {CLI_INT, "top", offsetof(args, top), "N", .help = "list the N slowest nodes; 0: all",
     .def = "30"},
    {CLI_STR, "trace", offsetof(args, trace), "FILE", .role = CLI_WRITES,
     .help =
         "write a trace for chrome://tracing, Perfetto (.json) or TensorBoard (.pt.trace.json)"},
    {CLI_INT, "batch", offsetof(args, batch), "N", .help = "set the first dimension of the inputs",
     .min = 1},
    {CLI_STR, "images", offsetof(args, images), "DIR|FILE", .role = CLI_READS,
     .help = "run on these pictures, in turns, instead of random numbers: times of some networks "
             "depend on what they see"},
    {CLI_STR, "family", offsetof(args, family), "FAMILY",
     .help = "with --images: how the network is fed; by default recognised"},
    {CLI_STR, "preprocess", offsetof(args, preprocess), "WORDS",
     .help = "with --images: changes to the family's preprocessing"},
    CLI_OPT_INPUT_SHAPE(args),
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", CLI_A_NETWORK, CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"profile yolov8n.onnx", "Time by operator, and the 30 slowest nodes"},
    {"profile yolov8n.onnx --trace trace.json", "Also a picture of the runs for ui.perfetto.dev"},
    {"profile yolov8n.onnx --images val --trace trace.json",
     "On pictures; the trace has memory and shapes, too"},
    {"profile yolov8n.onnx --threads 1 --top 0 --runs 100", "All nodes, on one thread"},
    {0},
};

/* One step of the plan, or all steps of one operator. */
typedef struct row {
    oct_step_info info;
    int64_t n_steps;
    double ns; /* of one run, on average */
} row;

typedef struct profile {
    cli *c;
    cli_session session;
    cli_feed feed;
    int64_t *step_ns; /* over all runs */
    cli_times times;
    cli_trace trace;
    bool tracing;
    int32_t run; /* the one at work */
    row *nodes, *ops;
    int n_nodes, n_ops;
    double total_ns;
} profile;

static void step_hook(void *user, int32_t step, int64_t start_ns, int64_t end_ns)
{
    profile *p = user;

    p->step_ns[step] += end_ns - start_ns;
    if (p->tracing) cli_trace_add(&p->trace, step, p->run, start_ns, end_ns);
}

static oct_status measure(profile *p, const args *a)
{
    oct_run *r = NULL;
    oct_status st;

    if ((st = oct_run_new(p->c->ctx, p->session.plan, &r))) return st;
    st = cli_feed_fill(&p->feed, r, 0);
    for (int64_t i = 0; !st && i < a->warmup; i++)
        st = oct_run_execute(r);
    oct_run_set_step_hook(r, step_hook, p);
    for (int64_t i = 0; !st && i < a->runs; i++) {
        int64_t start = cli_time_ns();

        if ((st = cli_feed_fill(&p->feed, r, i))) break; /* is no part of a run's time */
        if (p->tracing && p->feed.images)
            cli_trace_add(&p->trace, -2, (int32_t)i, start, cli_time_ns());
        start = cli_time_ns();
        p->run = (int32_t)i;
        st = oct_run_execute(r);
        cli_times_add(&p->times, cli_time_ns() - start);
        if (p->tracing) cli_trace_add(&p->trace, -1, p->run, start, cli_time_ns());
        (void)cli_progress(p->c, "profiling", i + 1, a->runs);
    }
    cli_progress_end(p->c);
    oct_run_free(r);
    return st;
}

/* --- summing up --- */

static int by_time(const void *a, const void *b)
{
    const row *x = a, *y = b;

    return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : strcmp(x->info.name, y->info.name);
}

static row *operator_row(profile *p, const oct_step_info *info)
{
    for (int i = 0; i < p->n_ops; i++)
        if (strcmp(p->ops[i].info.op, info->op) == 0) return &p->ops[i];
    p->ops[p->n_ops] = (row){.info = {.op = info->op, .name = info->op, .kernel = ""}};
    return &p->ops[p->n_ops++];
}

static void summarize(profile *p, int64_t runs)
{
    p->n_nodes = oct_plan_n_steps(p->session.plan);
    p->nodes = cli_alloc((size_t)p->n_nodes, sizeof(row));
    p->ops = cli_alloc((size_t)p->n_nodes, sizeof(row));
    for (int i = 0; i < p->n_nodes; i++) {
        row *n = &p->nodes[i], *op;

        n->info.struct_size = sizeof(n->info);
        oct_plan_step(p->session.plan, i, &n->info);
        n->n_steps = 1;
        n->ns = (double)p->step_ns[i] / (double)runs;
        p->total_ns += n->ns;
        op = operator_row(p, &n->info);
        op->n_steps++;
        op->ns += n->ns;
        op->info.macs += n->info.macs;
        op->info.bytes += n->info.bytes;
    }
    if (p->n_nodes) qsort(p->nodes, (size_t)p->n_nodes, sizeof(row), by_time);
    if (p->n_ops) qsort(p->ops, (size_t)p->n_ops, sizeof(row), by_time);
}

static double share(const profile *p, double ns)
{
    return p->total_ns > 0 ? ns / p->total_ns : 0;
}

/* Time of the steps for which pick() says yes, and how many they are. */
static double time_of(const profile *p, bool (*pick)(const oct_step_info *info), int *n)
{
    double ns = 0;

    *n = 0;
    for (int i = 0; i < p->n_nodes; i++)
        if (pick(&p->nodes[i].info)) {
            ns += p->nodes[i].ns;
            ++*n;
        }
    return ns;
}

static bool is_plain(const oct_step_info *info)
{
    return info->is_plain && !info->is_reorder;
}

static bool is_reorder(const oct_step_info *info)
{
    return info->is_reorder;
}

/* --- for people --- */

/* time, share, GMAC/s, GB/s: the same in both tables. Work in ns is work in G a second. */
static void time_cells(cli_table *t, const profile *p, const row *r)
{
    cli_table_cell(t, "%.3f", r->ns * 1e-6);
    cli_table_cell(t, "%.1f%%", share(p, r->ns) * 100);
    if (r->info.macs && r->ns > 0)
        cli_table_cell(t, "%.1f", (double)r->info.macs / r->ns);
    else
        cli_table_cell(t, "%s", "");
    if (r->info.bytes && r->ns > 0)
        cli_table_cell(t, "%.1f", (double)r->info.bytes / r->ns);
    else
        cli_table_cell(t, "%s", "");
}

static void print_operators(const profile *p)
{
    static const cli_column columns[] = {
        {"operator", CLI_LEFT}, {"nodes", CLI_RIGHT},  {"ms", CLI_RIGHT},
        {"share", CLI_RIGHT},   {"GMAC/s", CLI_RIGHT}, {"GB/s", CLI_RIGHT},
    };
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));

    for (int i = 0; i < p->n_ops; i++) {
        cli_table_cell(t, "%s", p->ops[i].info.op);
        cli_table_cell(t, "%lld", (long long)p->ops[i].n_steps);
        time_cells(t, p, &p->ops[i]);
    }
    cli_table_print(t, stdout);
    cli_table_free(t);
}

static void print_nodes(const profile *p, int64_t top)
{
    static const cli_column columns[] = {
        {"node", CLI_SHRINK, 0}, {"operator", CLI_LEFT, 2}, {"kernel", CLI_LEFT, 3},
        {"ms", CLI_RIGHT, 0},    {"share", CLI_RIGHT, 0},   {"GMAC/s", CLI_RIGHT, 4},
        {"GB/s", CLI_RIGHT, 5},
    };
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));
    const int n = top && top < p->n_nodes ? (int)top : p->n_nodes;
    double rest = 0;

    for (int i = 0; i < n; i++) {
        cli_table_cell(t, "%s", p->nodes[i].info.name);
        cli_table_cell(t, "%s", p->nodes[i].info.op);
        cli_table_cell(t, "%s", p->nodes[i].info.kernel);
        time_cells(t, p, &p->nodes[i]);
    }
    for (int i = n; i < p->n_nodes; i++)
        rest += p->nodes[i].ns;
    cli_table_print(t, stdout);
    if (n < p->n_nodes)
        cli_say(stdout, "... and %d more (%.1f%% of the time); --top 0 lists all", p->n_nodes - n,
                share(p, rest) * 100);
    cli_table_free(t);
}

static void print_plain(const profile *p)
{
    enum { MAX_NAMED = 8 };
    int n, named = 0;
    const double ns = time_of(p, is_plain, &n);

    cli_say(stdout, "plain kernels: %d node%s, %.1f%% of the time", n, n == 1 ? "" : "s",
            share(p, ns) * 100);
    for (int i = 0; i < p->n_nodes && named < MAX_NAMED; i++) {
        if (!is_plain(&p->nodes[i].info)) continue;
        cli_say(stdout, "  %s (%s) %.1f%%", p->nodes[i].info.name, p->nodes[i].info.op,
                share(p, p->nodes[i].ns) * 100);
        named++;
    }
    if (named < n) cli_say(stdout, "  ... and %d more", n - named);
}

static void print_text(profile *p, const args *a)
{
    const cli_time_stats s = cli_times_stats(&p->times);
    int n;
    const double reorder_ns = time_of(p, is_reorder, &n);

    print_operators(p);
    (void)puts("");
    print_nodes(p, a->top);
    (void)putchar('\n');
    cli_say(stdout,
            "one run: median %.3f ms, mean %.3f ms, of which %.3f ms in %d steps (%lld runs, %d "
            "thread%s)",
            s.median_ms, s.mean_ms, p->total_ns * 1e-6, p->n_nodes, (long long)a->runs,
            (int)p->session.n_threads, p->session.n_threads == 1 ? "" : "s");
    cli_say(stdout, "reorders: %d step%s, %.1f%% of the time", n, n == 1 ? "" : "s",
            share(p, reorder_ns) * 100);
    print_plain(p);
    if (a->trace) cli_say(stdout, "trace written to %s", a->trace);
}

/* --- for machines --- */

static void time_json(cli_json *j, const profile *p, const row *r)
{
    cli_json_round(j, "ms", r->ns * 1e-6, 6);
    cli_json_round(j, "share", share(p, r->ns), 6);
    cli_json_num(j, "gmac", (double)r->info.macs * 1e-9);
    cli_json_round(j, "gmac_per_s", r->ns > 0 ? (double)r->info.macs / r->ns : 0, 3);
    cli_json_num(j, "mb", (double)r->info.bytes * 1e-6);
    cli_json_round(j, "gb_per_s", r->ns > 0 ? (double)r->info.bytes / r->ns : 0, 3);
}

static cli_json *nodes_json(const profile *p)
{
    cli_json *list = cli_json_array();

    for (int i = 0; i < p->n_nodes; i++) {
        const row *r = &p->nodes[i];
        cli_json *j = cli_json_object();

        cli_json_str(j, "name", r->info.name);
        cli_json_str(j, "operator", r->info.op);
        cli_json_str(j, "kernel", r->info.kernel);
        time_json(j, p, r);
        cli_json_bool(j, "plain", is_plain(&r->info));
        cli_json_bool(j, "reorder", is_reorder(&r->info));
        cli_json_add(list, NULL, j);
    }
    return list;
}

static cli_json *operators_json(const profile *p)
{
    cli_json *list = cli_json_array();

    for (int i = 0; i < p->n_ops; i++) {
        cli_json *j = cli_json_object();

        cli_json_str(j, "operator", p->ops[i].info.op);
        cli_json_int(j, "nodes", p->ops[i].n_steps);
        time_json(j, p, &p->ops[i]);
        cli_json_add(list, NULL, j);
    }
    return list;
}

static oct_status print_json(profile *p, const args *a)
{
    const cli_time_stats s = cli_times_stats(&p->times);
    cli_json *j = cli_json_object();
    oct_status st;
    int n;

    cli_json_round(j, "median_ms", s.median_ms, 4);
    cli_json_round(j, "steps_ms", p->total_ns * 1e-6, 4);
    cli_json_int(j, "runs", a->runs);
    cli_json_int(j, "threads", p->session.n_threads);
    cli_json_round(j, "reorder_share", share(p, time_of(p, is_reorder, &n)), 6);
    cli_json_int(j, "reorders", n);
    cli_json_round(j, "plain_share", share(p, time_of(p, is_plain, &n)), 6);
    cli_json_int(j, "plain_nodes", n);
    cli_json_add(j, "operators", operators_json(p));
    cli_json_add(j, "nodes", nodes_json(p));
    st = cli_json_print(p->c, j);
    cli_json_free(j);
    return st;
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    const cli_session_options o = {.shapes = &a->shapes,
                                   .batch = a->batch,
                                   .pictures = a->images != NULL,
                                   .family = a->family,
                                   .words = a->preprocess};
    profile p = {.c = c, .tracing = a->trace != NULL};
    oct_status st;

    if ((st = cli_session_open(c, files[0], &o, &p.session))) return st;
    if ((st = cli_feed_open(c, &p.session, a->images, &p.feed))) goto done;
    p.step_ns = cli_alloc((size_t)oct_plan_n_steps(p.session.plan), sizeof(int64_t));
    if ((st = measure(&p, a))) goto done;
    summarize(&p, a->runs);
    if (a->trace && (st = cli_trace_save(c, &p.trace, p.session.plan, files[0], a->trace)))
        goto done;
    if (c->opt.json)
        st = print_json(&p, a);
    else
        print_text(&p, a);
    cli_note_busy(c);
done:
    free(p.step_ns);
    free(p.nodes);
    free(p.ops);
    cli_times_fini(&p.times);
    cli_trace_fini(&p.trace);
    cli_feed_close(&p.feed);
    cli_session_close(&p.session);
    return st;
}

const cli_command cmd_profile = {
    .name = "profile",
    .help = "show where the time of a run goes, by operator and by node",
    .about = "A node is one step of the compiled model: several nodes of the file may have become "
             "one (Conv+SiLU), and reorders move data between layouts. GB/s counts what a step "
             "reads and writes. Plain kernels are those for which no fast one exists.\n\n"
             "With --json: median_ms, steps_ms, runs, threads, reorder_share, reorders, "
             "plain_share, plain_nodes, operators (operator, nodes, ms, share, gmac, gmac_per_s, "
             "mb, gb_per_s) and nodes (name, operator, kernel, ms, share, gmac, gmac_per_s, mb, "
             "gb_per_s, plain, reorder), slowest first.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
