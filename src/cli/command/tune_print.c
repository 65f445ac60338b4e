/* SPDX-License-Identifier: Apache-2.0 */
/* What a search found: a table, JSON, and a page with the Pareto front. */
#include <stdlib.h>
#include <string.h>

#include "cli/command/tune.h"
#include "cli/model.h"
#include "cli/report/report.h"
#include "cli/term/json.h"
#include "cli/term/table.h"

char *cli_tune_settings(const char *settings)
{
    const size_t len = strlen(settings);
    char *text, *to;

    if (!len) return cli_format("the default");
    to = text = cli_alloc(2 * len + 1, 1);
    for (const char *c = settings; *c; c++) {
        if (*c != '\n')
            *to++ = *c;
        else if (c[1])
            *to++ = ',', *to++ = ' ';
    }
    return text;
}

/* Trials of the last round with results; float first, then by falling score. */
typedef struct list {
    oct_tuned_trial *at;
    int n, last_round;
} list;

static int by_score(const void *a, const void *b)
{
    const oct_tuned_trial *x = a, *y = b;

    if (x->is_float != y->is_float) return x->is_float ? -1 : 1;
    if (x->score < y->score || x->score > y->score) return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static list last_of(const oct_tuned *t)
{
    oct_tuned_trial k = {.struct_size = sizeof(k)};
    list l = {0};
    int32_t n = 0;

    for (; oct_tuned_trial_at(t, n, &k); n++)
        if (k.is_done && !k.is_float && k.round > l.last_round) l.last_round = k.round;
    l.at = cli_alloc((size_t)n + 1, sizeof(*l.at));
    for (int32_t i = 0; i < n; i++) {
        (void)oct_tuned_trial_at(t, i, &k);
        if (k.is_done && k.round == l.last_round) l.at[l.n++] = k;
    }
    qsort(l.at, (size_t)l.n, sizeof(*l.at), by_score);
    return l;
}

/* --- the table --- */

static void put_row(cli_table *table, const oct_tuned_trial *t)
{
    char *settings = t->is_float ? cli_format("float network") : cli_tune_settings(t->settings);

    cli_table_cell(table, "%lld", (long long)t->id);
    cli_table_cell(table, "%.4f", t->score);
    cli_table_cell(table, "%.2f", t->ms);
    cli_table_cell(table, "%.2f", (double)t->bytes / 1e6);
    cli_table_cell(table, "%s", t->is_best ? "best" : t->is_front ? "front" : "");
    if (t->is_best) cli_table_hue(table, CLI_GREEN);
    cli_table_cell(table, "%s", settings);
    free(settings);
}

static int count_tried(const oct_tuned *t)
{
    oct_tuned_trial k = {.struct_size = sizeof(k)};
    int n = 0;

    for (int32_t i = 0; oct_tuned_trial_at(t, i, &k); i++)
        n += k.round == 0 && !k.is_float && (k.is_done || *k.error);
    return n;
}

void cli_tune_print(const cli_tune_report *r)
{
    const cli_column columns[] = {{"trial", CLI_RIGHT}, {oct_tuned_score_name(r->t), CLI_RIGHT},
                                  {"ms", CLI_RIGHT},    {"MB", CLI_RIGHT},
                                  {"", CLI_LEFT},       {"settings", CLI_WRAP}};
    cli_table *table = cli_table_new(columns, CLI_COUNT(columns));
    list l = last_of(r->t);

    for (int i = 0; i < l.n; i++) {
        put_row(table, &l.at[i]);
        if (l.at[i].is_float) cli_table_rule(table);
    }
    cli_table_print(table, stdout);
    cli_table_free(table);
    (void)printf("\n");
    cli_fact(stdout, 10, "tried", "%d settings; the last round on %lld pictures; %.0f s",
             count_tried(r->t), l.n ? (long long)l.at[0].images : 0LL, r->seconds);
    cli_fact(stdout, 10, "trials", "%s", r->database);
    if (r->recipe_text) cli_fact(stdout, 10, "recipe", "%s", r->recipe);
    if (r->output) cli_fact(stdout, 10, "network", "%s", r->output);
    if (r->report) cli_fact(stdout, 10, "report", "%s/index.html", r->report);
    free(l.at);
}

/* --- JSON --- */

static void put_trial(cli_json *to, const oct_tuned_trial *t)
{
    cli_json *j = cli_json_object();

    cli_json_int(j, "id", t->id);
    cli_json_int(j, "round", t->round);
    cli_json_int(j, "images", t->images);
    cli_json_bool(j, "float", t->is_float);
    cli_json_str(j, "settings", t->settings);
    if (t->is_done)
        cli_json_num(j, "score", t->score);
    else
        cli_json_null(j, "score");
    cli_json_round(j, "ms", t->ms, 4);
    cli_json_int(j, "bytes", t->bytes);
    cli_json_round(j, "seconds", t->seconds, 3);
    cli_json_bool(j, "done", t->is_done);
    cli_json_bool(j, "front", t->is_front);
    cli_json_bool(j, "best", t->is_best);
    cli_json_str(j, "error", *t->error ? t->error : NULL);
    cli_json_add(to, NULL, j);
}

oct_status cli_tune_print_json(const cli_tune_report *r)
{
    oct_tuned_trial t = {.struct_size = sizeof(t)};
    cli_json *j = cli_json_object(), *trials = cli_json_array();
    oct_status st;

    for (int32_t i = 0; oct_tuned_trial_at(r->t, i, &t); i++)
        put_trial(trials, &t);
    cli_json_str(j, "score", oct_tuned_score_name(r->t));
    cli_json_round(j, "seconds", r->seconds, 3);
    cli_json_str(j, "database", r->database);
    cli_json_str(j, "recipe", r->recipe_text ? r->recipe : NULL);
    cli_json_str(j, "output", r->output);
    if (oct_tuned_trial_at(r->t, oct_tuned_best(r->t), &t))
        cli_json_int(j, "best", t.id);
    else
        cli_json_null(j, "best");
    cli_json_add(j, "trials", trials);
    st = cli_json_print(r->c, j);
    cli_json_free(j);
    return st;
}

/* --- the page --- */

static oct_report_trial row_of(const oct_tuned_trial *t)
{
    return (oct_report_trial){.id = t->id,
                              .settings = t->is_float ? "float network" : t->settings,
                              .score = t->score,
                              .ms = t->ms,
                              .bytes = t->bytes,
                              .images = t->images,
                              .round = t->round,
                              .is_float = t->is_float,
                              .is_front = t->is_front,
                              .is_best = t->is_best};
}

oct_status cli_tune_write_page(const cli_tune_report *r)
{
    oct_tuned_trial t = {.struct_size = sizeof(t)};
    char *title = cli_report_title(r->model), *command = cli_report_command(r->c);
    char *machine = cli_report_machine(r->c), *versions = cli_report_versions();
    oct_report_trial *rows;
    oct_report page;
    int32_t n = 0;
    oct_status st;

    while (oct_tuned_trial_at(r->t, n, &t))
        n++;
    rows = cli_alloc((size_t)n + 1, sizeof(*rows));
    oct_report_init(&page);
    for (int32_t i = 0; i < n; i++) {
        (void)oct_tuned_trial_at(r->t, i, &t);
        if (t.is_done) rows[page.n_trials++] = row_of(&t);
    }
    page.trials = rows;
    page.score_name = oct_tuned_score_name(r->t);
    page.title = title;
    page.float_path = r->model;
    page.int8_path = r->output;
    page.recipe = r->recipe_text;
    page.command = command;
    page.machine = machine;
    page.versions = versions;
    r->c->model = NULL;
    cli_hold_interrupts();
    st = oct_report_write(r->c->ctx, &page, r->report);
    cli_release_interrupts();
    free(rows);
    free(title);
    free(command);
    free(machine);
    free(versions);
    return st;
}
