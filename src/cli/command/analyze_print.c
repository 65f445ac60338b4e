/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of octet analyze: outputs, the worst layers, points with problems, advice. */
#include "cli/command/analyze.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/table.h"

/* --- order --- */

static double by_alone(const oct_analyzed_layer *l)
{
    return l->alone.noise;
}

static double by_all(const oct_analyzed_layer *l)
{
    return l->all.noise;
}

static double by_weights(const oct_analyzed_layer *l)
{
    return l->weight_noise;
}

static const struct order {
    const char *name;
    double (*key)(const oct_analyzed_layer *l); /* NULL: as they are computed */
} orders[] = {
    {"alone", by_alone},
    {"all", by_all},
    {"weights", by_weights},
    {"depth", NULL},
};

static const struct order *find_order(const char *name)
{
    for (size_t i = 0; i < CLI_COUNT(orders); i++)
        if (strcmp(orders[i].name, name) == 0) return &orders[i];
    return NULL;
}

oct_status cli_analyze_check_sort(cli *c, const char *sort)
{
    if (find_order(sort)) return OCT_OK;
    return cli_fail(c, OCT_ERR_ARG,
                    "option --sort: there is no '%s'; there are: alone, all, weights, depth", sort);
}

static int by_key(const void *a, const void *b)
{
    const cli_analyze_row *x = a, *y = b;

    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static int32_t count_layers(const oct_analysis *a)
{
    oct_analyzed_layer l = {.struct_size = sizeof(l)};
    int32_t n = 0;

    while (oct_analysis_layer(a, n, &l))
        n++;
    return n;
}

cli_analyze_row *cli_analyze_sort(const cli_analyze_view *v, int32_t *n)
{
    const struct order *o = find_order(v->sort);
    cli_analyze_row *rows = cli_alloc((size_t)(*n = count_layers(v->result)) + 1, sizeof(*rows));

    for (int32_t i = 0; i < *n; i++) {
        rows[i].layer.struct_size = sizeof(rows[i].layer);
        (void)oct_analysis_layer(v->result, i, &rows[i].layer);
        rows[i].index = i;
        rows[i].key = o && o->key ? o->key(&rows[i].layer) : 0;
    }
    qsort(rows, (size_t)*n, sizeof(*rows), by_key);
    return rows;
}

/* --- for people --- */

/* "12.4 %", "0.031 %": three significant digits. */
static const char *share_text(double x, char text[CLI_UNIT_SIZE])
{
    if (x < 0)
        (void)snprintf(text, CLI_UNIT_SIZE, "-");
    else if (x == 0)
        (void)snprintf(text, CLI_UNIT_SIZE, "0 %%");
    else if (x < 1e-6)
        (void)snprintf(text, CLI_UNIT_SIZE, "< 0.0001 %%");
    else if (x < 0.1)
        (void)snprintf(text, CLI_UNIT_SIZE, "%.*f %%", x < 1e-4 ? 4 : x < 1e-2 ? 3 : 2, x * 100);
    else
        (void)snprintf(text, CLI_UNIT_SIZE, "%.1f %%", x * 100);
    return text;
}

/* A bar on a logarithmic scale: ten times less is two characters shorter. */
static const char *bar_text(double x, double most, char text[CLI_UNIT_SIZE])
{
    enum { WIDTH = 10 };
    const double decades = x > 0 && most > 0 ? log10(x / most) : -WIDTH;
    const int n = (int)(WIDTH + 2 * decades + 0.5);

    memset(text, '#', WIDTH);
    text[n < 0 ? 0 : n > WIDTH ? WIDTH : n] = '\0';
    return text;
}

static void print_outputs(const cli_analyze_view *v)
{
    static const cli_column columns[] = {{"output, all quantized", CLI_SHRINK},
                                         {"noise", CLI_RIGHT},
                                         {"dB", CLI_RIGHT},
                                         {"cosine", CLI_RIGHT},
                                         {"KL", CLI_RIGHT}};
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));
    const char *name = NULL;
    char text[CLI_UNIT_SIZE];
    oct_error e;
    int n = 0;

    for (; oct_analysis_output(v->result, n, &name, &e); n++) {
        if (e.noise < 0) break;
        cli_table_cell(t, "%s", name);
        cli_table_cell(t, "%s", share_text(e.noise, text));
        cli_table_cell(t, e.noise > 0 ? "%.1f" : "exact", -10 * log10(e.noise));
        cli_table_cell(t, "%.6f", e.cosine);
        cli_table_cell(t, "%.4f", e.kl);
    }
    if (n) {
        cli_table_print(t, stdout);
        (void)putchar('\n');
    }
    cli_table_free(t);
}

/* "W8A8": bits of weights and of activations that are read; without weights "A8". */
static void bits_cell(cli_table *t, const oct_analyzed_layer *l)
{
    if (l->reason)
        cli_table_cell(t, "float");
    else if (l->weight_bits && l->input_bits)
        cli_table_cell(t, "W%dA%d", (int)l->weight_bits, (int)l->input_bits);
    else
        cli_table_cell(t, "%c%d", l->weight_bits ? 'W' : 'A',
                       (int)(l->weight_bits ? l->weight_bits : l->input_bits));
}

/* most: the largest error alone, which bars are drawn to; -1: not measured. */
static void layer_cells(cli_table *t, const oct_analyzed_layer *l, double most)
{
    char text[CLI_UNIT_SIZE];

    cli_table_cell(t, "%s", l->name);
    cli_table_cell(t, "%s", l->op);
    bits_cell(t, l);
    if (most >= 0) {
        cli_table_cell(t, "%s", share_text(l->reason ? -1 : l->alone.noise, text));
        cli_table_cell(t, "%s", bar_text(l->alone.noise, most, text));
    }
    cli_table_cell(t, "%s", share_text(l->all.noise, text));
    cli_table_cell(t, "%s", share_text(l->weight_noise, text));
}

/* Explains the columns to new users. */
static void print_columns(bool has_alone)
{
    if (has_alone)
        cli_say(stdout, "  alone: error at the network's outputs, only this layer quantized");
    cli_say(stdout, "  all: error at the layer's own output, everything quantized");
    cli_say(stdout, "  weights: error of its weights; errors are noise / signal, 1 %% is 20 dB");
}

static void print_layers(const cli_analyze_view *v)
{
    static const cli_column columns[] = {{"layer", CLI_SHRINK, 0},   {"operator", CLI_LEFT, 3},
                                         {"bits", CLI_LEFT, 1},      {"alone", CLI_RIGHT, 0},
                                         {"log scale", CLI_LEFT, 4}, {"all", CLI_RIGHT, 0},
                                         {"weights", CLI_RIGHT, 0}};
    static const cli_column fewer[] = {{"layer", CLI_SHRINK, 0},
                                       {"operator", CLI_LEFT, 3},
                                       {"bits", CLI_LEFT, 1},
                                       {"all", CLI_RIGHT, 0},
                                       {"weights", CLI_RIGHT, 0}};
    const bool has_alone = oct_analysis_layerwise_seconds(v->result) > 0;
    int32_t n, shown = 0, n_integer = 0;
    cli_analyze_row *rows = cli_analyze_sort(v, &n);
    cli_table *t = has_alone ? cli_table_new(columns, (int)CLI_COUNT(columns))
                             : cli_table_new(fewer, (int)CLI_COUNT(fewer));
    double most = has_alone ? 0 : -1;

    for (int32_t i = 0; i < n; i++) {
        if (has_alone) most = fmax(most, rows[i].layer.alone.noise);
        n_integer += !rows[i].layer.reason;
    }
    for (int32_t i = 0; i < n && shown < v->top; i++) {
        if (rows[i].layer.reason && strcmp(v->sort, "depth") != 0) continue;
        layer_cells(t, &rows[i].layer, most);
        shown++;
    }
    cli_say(stdout, "%d layers, %d with integers; %d shown, sorted by '%s'", (int)n, (int)n_integer,
            (int)shown, v->sort);
    if (shown) cli_table_print(t, stdout);
    if (shown && !v->brief) print_columns(has_alone);
    (void)putchar('\n');
    cli_table_free(t);
    free(rows);
}

/* --- points --- */

/* Points to show: noise, whatever its cause; many values outside the range, or few codes used,
 * unless the effect is small. */
static bool is_troubled(const oct_analyzed_point *p)
{
    const bool clips = p->clipped > 1e-3, wastes = p->levels > 16 && p->used * 2 < p->levels;

    return p->noise > 5e-3 || ((clips || wastes) && p->noise > 1e-3);
}

static int by_noise(const void *a, const void *b)
{
    const oct_analyzed_point *x = a, *y = b;

    return x->noise > y->noise ? -1 : x->noise < y->noise;
}

static oct_analyzed_point *troubled_points(const oct_analysis *a, int32_t *n, int32_t *n_all)
{
    oct_analyzed_point p = {.struct_size = sizeof(p)}, *list = NULL;

    *n = *n_all = 0;
    for (; oct_analysis_point(a, *n_all, &p); ++*n_all) {
        if (!is_troubled(&p)) continue;
        list = cli_realloc(list, (size_t)*n + 1, sizeof(*list));
        list[(*n)++] = p;
    }
    if (list) qsort(list, (size_t)*n, sizeof(*list), by_noise);
    return list;
}

static void print_points(const cli_analyze_view *v)
{
    static const cli_column columns[] = {
        {"point", CLI_SHRINK, 0},   {"type", CLI_LEFT, 2},     {"seen", CLI_RIGHT, 1},
        {"held", CLI_RIGHT, 1},     {"clipped", CLI_RIGHT, 0}, {"codes used", CLI_RIGHT, 1},
        {"kurtosis", CLI_RIGHT, 4}, {"spread", CLI_RIGHT, 3},  {"noise", CLI_RIGHT, 0}};
    int32_t n, n_all;
    oct_analyzed_point *list = troubled_points(v->result, &n, &n_all);
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));
    char text[CLI_UNIT_SIZE];

    for (int32_t i = 0; i < n && i < v->top; i++) {
        const oct_analyzed_point *p = &list[i];

        cli_table_cell(t, "%s", p->value);
        cli_table_cell(t, "%s%s", p->type, p->n_scales > 1 ? " per channel" : "");
        cli_table_cell(t, "%.4g .. %.4g", p->min, p->max);
        cli_table_cell(t, "%.4g .. %.4g", p->low, p->high);
        cli_table_cell(t, "%s", share_text(p->clipped, text));
        cli_table_cell(t, "%d of %d", (int)p->used, (int)p->levels);
        cli_table_cell(t, "%.1f", p->kurtosis);
        cli_table_cell(t, p->spread > 0 ? "%.1f" : "-", p->spread);
        cli_table_cell(t, "%s", share_text(p->noise, text));
    }
    if (n_all && !n) {
        cli_say(stdout, "%d points with integers, none of which is noisy, clips or wastes codes",
                (int)n_all);
        (void)putchar('\n');
    }
    if (n) {
        cli_say(stdout, "%d of %d points are noisy, clip or waste codes; %d shown", (int)n,
                (int)n_all, (int)(n < v->top ? n : v->top));
        cli_table_print(t, stdout);
        (void)putchar('\n');
    }
    cli_table_free(t);
    free(list);
}

/* --- advice --- */

static void print_advice(const cli_analyze_view *v)
{
    enum { INDENT = 2, HANGING = 5 };
    oct_advice a = {.struct_size = sizeof(a)};
    int n = 0;

    for (; oct_analysis_advice(v->result, n, &a); n++) {
        char *text = cli_format("%d. %s", n + 1, a.text), *option = cli_format("%s", a.option);

        cli_text_clean(text);
        cli_text_clean(option);
        if (n == 0) (void)puts("What would help, best first:");
        (void)printf("%*s", INDENT, "");
        cli_wrap_hanging(stdout, text, INDENT, HANGING, cli_text_columns(stdout));
        if (*option) cli_say(stdout, "     octet quantize .. %s", option);
        free(text);
        free(option);
    }
    if (n == 0) (void)puts("Nothing to advise.");
}

void cli_analyze_print(const cli *c, const cli_analyze_view *v)
{
    print_outputs(v);
    print_layers(v);
    print_points(v);
    print_advice(v);
    if (c->opt.quiet) return;
    (void)printf("\n%lld %s%s", (long long)oct_analysis_images(v->result),
                 v->tensors ? "item" : "picture", oct_analysis_images(v->result) == 1 ? "" : "s");
    if (oct_analysis_layerwise_seconds(v->result) > 0)
        (void)printf("; one layer at a time took %.1f s",
                     oct_analysis_layerwise_seconds(v->result));
    (void)putchar('\n');
}
