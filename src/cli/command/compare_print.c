/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of models, for people and for programs. */
#include <string.h>

#include "cli/command/compare.h"
#include "cli/term/json.h"
#include "cli/term/table.h"

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static const char *short_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static double activation_mb(const cli_measured *m)
{
    return (double)oct_plan_activation_size(m->session.plan) * 1e-6;
}

/* --- for people --- */

/* How many times faster; 0: cannot be told. */
static void gain_cell(cli_table *t, double gain)
{
    if (gain > 0)
        cli_table_cell(t, "%.2fx", gain);
    else
        cli_table_cell(t, "%s", "");
    if (gain >= CLI_LAYER_GAIN) cli_table_hue(t, CLI_GREEN);
    if (gain > 0 && gain < 1 / CLI_LAYER_GAIN) cli_table_hue(t, CLI_RED);
}

static void print_models(const cli_measured *models, int n)
{
    static const cli_column columns[] = {
        {"model", CLI_SHRINK, 0},  {"median ms", CLI_RIGHT, 0},      {"min", CLI_RIGHT, 2},
        {"p90", CLI_RIGHT, 2},     {"speed-up", CLI_RIGHT, 0},       {"GMAC/s", CLI_RIGHT, 3},
        {"peak MB", CLI_RIGHT, 4}, {"activations MB", CLI_RIGHT, 5}, {"plan ms", CLI_RIGHT, 6},
    };
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));

    for (int i = 0; i < n; i++) {
        const cli_measured *m = &models[i];

        cli_table_cell(t, "%s", short_name(m->path));
        cli_table_cell(t, "%.3f", m->stats.median_ms);
        cli_table_cell(t, "%.3f", m->stats.min_ms);
        cli_table_cell(t, "%.3f", m->stats.p90_ms);
        gain_cell(t, ratio(models[0].stats.median_ms, m->stats.median_ms));
        cli_table_cell(t, "%.1f",
                       ratio((double)oct_plan_macs(m->session.plan) * 1e-6, m->stats.median_ms));
        cli_table_cell(t, "%.1f", m->peak_mb);
        cli_table_cell(t, "%.2f", activation_mb(m));
        cli_table_cell(t, "%.1f", m->session.plan_ms);
    }
    cli_table_print(t, stdout);
    cli_table_free(t);
}

static void time_cell(cli_table *t, const cli_step *s, double ms)
{
    if (s)
        cli_table_cell(t, "%.3f", ms);
    else
        cli_table_cell(t, "%s", "");
}

static void print_layers(const cli_layers *l, int64_t top)
{
    static const cli_column columns[] = {
        {"layer", CLI_SHRINK, 0},  {"operator", CLI_LEFT, 2},  {"first ms", CLI_RIGHT, 0},
        {"this ms", CLI_RIGHT, 0}, {"speed-up", CLI_RIGHT, 0}, {"kernel of the first", CLI_LEFT, 4},
        {"kernel", CLI_LEFT, 3},
    };
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));
    const int n = top && top < l->n ? (int)top : l->n;

    for (int i = 0; i < n; i++) {
        const cli_layer *x = &l->list[i];
        const cli_step *s = x->other ? x->other : x->first;

        cli_table_cell(t, "%s", s->info.name);
        cli_table_cell(t, "%s", s->info.op);
        time_cell(t, x->first, x->first_ms);
        time_cell(t, x->other, x->other_ms);
        gain_cell(t, cli_layer_gain(x));
        cli_table_cell(t, "%s", x->first ? x->first->info.kernel : "");
        cli_table_cell(t, "%s", x->other ? x->other->info.kernel : "");
    }
    cli_table_print(t, stdout);
    if (n < l->n) cli_say(stdout, "... and %d more; --top 0 lists all", l->n - n);
    cli_table_free(t);
}

static void print_no_gain(const cli_layers *l, double total_ms, int64_t top)
{
    int n = 0;
    double ms = 0, gone_ms = 0, new_ms = 0;

    for (int i = 0; i < l->n; i++) {
        const cli_layer *x = &l->list[i];

        if (!x->other) gone_ms += x->first_ms;
        if (!x->first) new_ms += x->other_ms;
        if (!x->why) continue;
        n++;
        ms += x->other_ms;
    }
    (void)putchar('\n');
    cli_say(stdout, "%d layer%s did not gain, %.3f ms of this model (%.1f%%)%s", n,
            n == 1 ? "" : "s", ms, ratio(ms, total_ms) * 100, n ? ":" : "");
    for (int i = 0, named = 0; i < l->n && (!top || named < top); i++) {
        const cli_layer *x = &l->list[i];

        if (!x->why) continue;
        cli_say(stdout, "  %s (%s) %.3f ms, was %.3f: %s", x->other->info.name, x->other->info.op,
                x->other_ms, x->first_ms, x->why);
        named++;
    }
    if (top && n > top) cli_say(stdout, "  ... and %d more, all of them shorter", n - (int)top);
    cli_say(stdout, "reorders and conversions: %.3f ms in %d step%s, were %.3f ms in %d",
            l->other_moves_ms, l->other_moves, l->other_moves == 1 ? "" : "s", l->first_moves_ms,
            l->first_moves);
    cli_say(stdout, "only in the first model: %.3f ms; only in this one: %.3f ms", gone_ms, new_ms);
}

void cli_compare_text(const cli_measured *models, int n, int64_t top)
{
    print_models(models, n);
    (void)printf("\n%lld runs each, in turns, %d thread%s\n", (long long)models[0].times.n,
                 (int)models[0].session.n_threads, models[0].session.n_threads == 1 ? "" : "s");
    for (int i = 1; i < n; i++) {
        cli_layers l;

        cli_layers_init(&l, &models[0], &models[i]);
        (void)printf("\n%s against %s\n\n", short_name(models[i].path), short_name(models[0].path));
        print_layers(&l, top);
        print_no_gain(&l, models[i].stats.median_ms, top);
        cli_layers_fini(&l);
    }
}

/* --- for programs --- */

static cli_json *layer_json(const cli_layer *x)
{
    const cli_step *s = x->other ? x->other : x->first;
    cli_json *j = cli_json_object();

    cli_json_str(j, "name", s->info.name);
    cli_json_str(j, "operator", s->info.op);
    if (x->first) cli_json_round(j, "first_ms", x->first_ms, 5);
    if (x->other) cli_json_round(j, "ms", x->other_ms, 5);
    if (cli_layer_gain(x) > 0) cli_json_round(j, "speed_up", cli_layer_gain(x), 3);
    if (x->first) cli_json_str(j, "first_kernel", x->first->info.kernel);
    if (x->other) cli_json_str(j, "kernel", x->other->info.kernel);
    if (x->other) cli_json_bool(j, "integer", x->other->info.is_integer);
    if (x->why) cli_json_str(j, "why", x->why);
    return j;
}

static cli_json *layers_json(const cli_measured *first, const cli_measured *m, cli_json *to)
{
    cli_json *list = cli_json_array();
    cli_layers l;

    cli_layers_init(&l, first, m);
    for (int i = 0; i < l.n; i++)
        cli_json_add(list, NULL, layer_json(&l.list[i]));
    cli_json_round(to, "moves_ms", l.other_moves_ms, 5);
    cli_json_int(to, "moves", l.other_moves);
    cli_layers_fini(&l);
    return list;
}

oct_status cli_compare_json(cli *c, const cli_measured *models, int n)
{
    cli_json *j = cli_json_object(), *list = cli_json_array();
    oct_status st;

    cli_json_int(j, "runs", (int64_t)models[0].times.n);
    cli_json_int(j, "threads", models[0].session.n_threads);
    for (int i = 0; i < n; i++) {
        const cli_measured *m = &models[i];
        cli_json *x = cli_json_object();

        cli_json_str(x, "model", m->path);
        cli_json_round(x, "median_ms", m->stats.median_ms, 4);
        cli_json_round(x, "min_ms", m->stats.min_ms, 4);
        cli_json_round(x, "p90_ms", m->stats.p90_ms, 4);
        cli_json_round(x, "speed_up", ratio(models[0].stats.median_ms, m->stats.median_ms), 3);
        cli_json_num(x, "gmac", (double)oct_plan_macs(m->session.plan) * 1e-9);
        cli_json_round(x, "peak_rss_mb", m->peak_mb, 2);
        cli_json_round(x, "activation_mb", activation_mb(m), 3);
        cli_json_round(x, "input_mb", (double)oct_plan_input_size(m->session.plan) * 1e-6, 3);
        cli_json_round(x, "load_ms", m->session.load_ms, 3);
        cli_json_round(x, "plan_ms", m->session.plan_ms, 3);
        if (i) cli_json_add(x, "layers", layers_json(&models[0], m, x));
        cli_json_add(list, NULL, x);
    }
    cli_json_add(j, "models", list);
    st = cli_json_print(c, j);
    cli_json_free(j);
    return st;
}
