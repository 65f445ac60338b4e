/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of octet quantize: what is integer, what is float and why, what it cost, what to
 * do next. */
#include "cli/command/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/json.h"
#include "cli/term/table.h"

enum { N_WORST = 5, MAX_GROUPS = 6, N_NAMED = 2, COLUMN = 11 };

static oct_quantize_summary summary_of(const oct_quantized *q)
{
    oct_quantize_summary s = {.struct_size = sizeof(s)};

    oct_quantized_summary(q, &s);
    return s;
}

/* --- layers --- */

/* The layers with the largest error, worst first; returns how many. */
static int find_worst(const oct_quantized *q, oct_quantize_layer worst[N_WORST])
{
    oct_quantize_layer layer = {.struct_size = sizeof(layer)};
    int n = 0;

    for (int32_t i = 0; oct_quantized_layer(q, i, &layer); i++) {
        int at = n;

        if (!(layer.noise > 0) || layer.reason) continue; /* float layers only propagate noise */
        while (at > 0 && worst[at - 1].noise < layer.noise)
            at--;
        if (at == N_WORST) continue;
        if (n < N_WORST) n++;
        memmove(&worst[at + 1], &worst[at], (size_t)(n - 1 - at) * sizeof(*worst));
        worst[at] = layer;
    }
    return n;
}

/* Layers that are float for the same reason: the text up to the first quoted name. */
typedef struct group {
    const char *reason;
    size_t len;
    int n;
    const char *name[N_NAMED]; /* the first layers */
} group;

/* Returns how many groups there are; those beyond MAX_GROUPS are counted in the last. */
static int find_groups(const oct_quantized *q, group groups[MAX_GROUPS])
{
    oct_quantize_layer layer = {.struct_size = sizeof(layer)};
    int n = 0;

    for (int32_t i = 0; oct_quantized_layer(q, i, &layer); i++) {
        size_t len;
        int k = 0;

        if (!layer.reason || layer.why == OCT_FLOAT_TAIL) continue; /* has its own sentence */
        len = strcspn(layer.reason, "'");
        while (len > 0 && layer.reason[len - 1] == ' ')
            len--;
        while (k < n && (groups[k].len != len || strncmp(groups[k].reason, layer.reason, len)))
            k++;
        if (k == n && n == MAX_GROUPS) k = MAX_GROUPS - 1;
        if (k == n) groups[n++] = (group){.reason = layer.reason, .len = len};
        if (groups[k].n < N_NAMED) groups[k].name[groups[k].n] = layer.name;
        groups[k].n++;
    }
    return n;
}

/* --- for people --- */

static void print_float(const cli_quantize_report *r, const oct_quantize_summary *s)
{
    const char *what = "float";
    group groups[MAX_GROUPS];
    const int n = find_groups(r->q, groups);

    if (s->tail) {
        cli_fact(stdout, COLUMN, what, "%s", s->tail);
        what = "";
    }
    for (int i = 0; i < n; i++) {
        const group *g = &groups[i];

        cli_fact(stdout, COLUMN, what, "%d layer%s %.*s: %s%s%s%s", g->n, g->n == 1 ? "" : "s",
                 (int)g->len, g->reason, g->name[0], g->n > 1 ? ", " : "",
                 g->n > 1 ? g->name[1] : "", g->n > N_NAMED ? ", .." : "");
        what = "";
    }
    if (*what) cli_fact(stdout, COLUMN, what, "no layer");
}

/* The effect of an option, or that it had none. */
static void print_correction(const char *name, const char *things, int n)
{
    if (n < 0) return;
    if (n)
        cli_fact(stdout, COLUMN, "corrected", "%s: %d %s", name, n, things);
    else
        cli_fact(stdout, COLUMN, "corrected", "%s: 0 %s matched; nothing changed", name, things);
}

static void print_classes(const cli_quantize_report *r)
{
    char top5[64] = "";

    if (r->before.top5 >= 0)
        (void)snprintf(top5, sizeof(top5), "top-5 %.4f -> %.4f, ", r->before.top5, r->after.top5);
    cli_fact(stdout, COLUMN, "accuracy", "top-1 %.4f -> %.4f (%+.4f), %s%lld pictures",
             r->before.top1, r->after.top1, r->after.top1 - r->before.top1, top5,
             (long long)r->after.images);
}

static void print_accuracy(const cli_quantize_report *r)
{
    const oct_box_metrics *a = &r->before.box, *b = &r->after.box;
    const oct_box_noise *n = &r->noise;

    if (r->is_classifier)
        print_classes(r);
    else
        cli_fact(stdout, COLUMN, "accuracy",
                 "AP %.4f -> %.4f (%+.4f), AP50 %.4f -> %.4f, %lld pictures", a->ap, b->ap,
                 b->ap - a->ap, a->ap50, b->ap50, (long long)r->after.images);
    if (r->has_unaligned)
        cli_fact(stdout, COLUMN, "", "%s %.4f before scales were fitted to the NPU, %.4f after",
                 r->is_classifier ? "top-1" : "AP",
                 r->is_classifier ? r->unaligned.top1 : r->unaligned.box.ap,
                 r->is_classifier ? r->after.top1 : b->ap);
    if (!r->is_classifier && n->difference >= 0 && a->ap >= 0)
        cli_fact(stdout, COLUMN, "", "%s: the change is +- %.4f (95 %%), AP +- %.4f",
                 fabs(b->ap - a->ap) <= n->difference ? "within the noise" : "more than noise",
                 n->difference, n->ap);
}

static void print_worst(const oct_quantize_layer *worst, int n)
{
    static const cli_column columns[] = {{"largest error", CLI_SHRINK, 0},
                                         {"operator", CLI_LEFT, 2},
                                         {"noise / signal", CLI_RIGHT, 0},
                                         {"dB", CLI_RIGHT, 1}};
    cli_table *t;

    if (!n) return;
    t = cli_table_new(columns, (int)CLI_COUNT(columns));
    for (int i = 0; i < n; i++) {
        cli_table_cell(t, "%s", worst[i].name);
        cli_table_cell(t, "%s", worst[i].op);
        cli_table_cell(t, "%.5f", worst[i].noise);
        cli_table_cell(t, "%.1f", 10 * log10(1 / worst[i].noise));
    }
    (void)putchar('\n');
    cli_table_print(t, stdout);
    cli_table_free(t);
}

/* A suggested next command, depending on the result. */
static void print_next(const cli_quantize_report *r)
{
    const double drop =
        r->is_classifier ? r->before.top1 - r->after.top1 : r->before.box.ap - r->after.box.ap;

    (void)putchar('\n');
    if (!r->has_accuracy)
        cli_fact(stdout, COLUMN, "next",
                 "measure it: octet eval %s --images DIR --annotations FILE", r->output);
    else if (drop > 0.005)
        cli_fact(stdout, COLUMN, "next",
                 "see which layers lose most: octet analyze %s %s --images DIR", r->model,
                 r->output);
    else
        cli_fact(stdout, COLUMN, "next", "see how fast it is: octet bench %s %s", r->model,
                 r->output);
}

/* What --adaround and --lsq did, block by block. */
static void print_blocks(const oct_quantized *q, int n_learned)
{
    static const cli_column columns[] = {{"block that learned, from", CLI_SHRINK, 0},
                                         {"layers", CLI_RIGHT, 2},
                                         {"noise / signal", CLI_RIGHT, 0},
                                         {"then", CLI_RIGHT, 0}};
    oct_quantize_block b = {.struct_size = sizeof(b)};
    cli_table *t;

    if (n_learned < 0) return;
    t = cli_table_new(columns, (int)CLI_COUNT(columns));
    for (int32_t i = 0; oct_quantized_block(q, i, &b); i++) {
        if (!b.layers) continue;
        cli_table_cell(t, "%s", b.first);
        cli_table_cell(t, "%d", (int)b.layers);
        cli_table_cell(t, "%.5f", b.before);
        if (b.was_undone)
            cli_table_cell(t, "whole network worse: put back");
        else if (b.was_put_back)
            cli_table_cell(t, "worse: put back");
        else
            cli_table_cell(t, "%.5f", b.after);
    }
    (void)putchar('\n');
    cli_table_print(t, stdout);
    cli_table_free(t);
}

/* Of a network that was quantized already. */
static void print_scales(const oct_quantize_summary *s)
{
    if (s->scales_kept < 0) return;
    cli_fact(stdout, COLUMN, "scales", "%d are the file's%s", (int)s->scales_kept,
             s->scales_fitted || s->scales_missing ? "" : ": all of them");
    if (s->scales_fitted)
        cli_fact(stdout, COLUMN, "", "%d are near the file's, which the target cannot hold",
                 (int)s->scales_fitted);
    if (s->scales_missing)
        cli_fact(stdout, COLUMN, "", "%d that the target needs are not in the file: %s",
                 (int)s->scales_missing,
                 s->images ? "calibrated" : "float; --images would calibrate them");
}

static void print_size_and_time(const cli_quantize_report *r, const oct_quantize_summary *s)
{
    char before[CLI_UNIT_SIZE], after[CLI_UNIT_SIZE];

    cli_fact(stdout, COLUMN, "size", "%s -> %s, %.2f times smaller",
             cli_bytes((double)r->bytes_before, before), cli_bytes((double)r->bytes_after, after),
             (double)r->bytes_before / (double)r->bytes_after);
    if (s->images)
        cli_fact(stdout, COLUMN, "time",
                 "%.2f s, of which %.2f s to run the float network over %lld "
                 "%s%s; %.0f MB peak resident",
                 r->seconds, s->float_pass_seconds, (long long)s->images,
                 r->tensors ? "item" : "picture", s->images == 1 ? "" : "s", r->peak_rss_mb);
    else
        cli_fact(stdout, COLUMN, "time", "%.2f s; %.0f MB peak resident", r->seconds,
                 r->peak_rss_mb);
}

void cli_quantize_print(const cli_quantize_report *r)
{
    const oct_quantize_summary s = summary_of(r->q);
    oct_quantize_layer worst[N_WORST];
    const int n_worst = find_worst(r->q, worst);

    if (r->c->opt.quiet) { /* only the file was asked for, and accuracy if there are labels */
        if (r->has_accuracy) print_accuracy(r);
        return;
    }
    cli_fact(stdout, COLUMN, "written", "%s, for target %s; best for %s", r->output, r->target,
             s.best_for ? s.best_for : "any runtime");
    cli_fact(stdout, COLUMN, "integer",
             "%d of %d layers: %.1f%% of the MACs, %.1f%% of the weights", (int)s.layers_quantized,
             (int)s.layers_total, s.macs_quantized_share * 100, s.weights_quantized_share * 100);
    print_float(r, &s);
    print_scales(&s);
    print_correction("equalization", "pairs of layers", s.equalized);
    print_correction("SmoothQuant", "products", s.smoothed);
    print_correction("channel alignment", "pairs of layers", s.aligned);
    print_correction("hard activations", "activations", s.hardened);
    (void)cli_quantize_print_moves(r, COLUMN);
    cli_quantize_print_mends(r, COLUMN);
    if (s.learned >= 0)
        cli_fact(stdout, COLUMN, "learned", "%d layers, block by block, from %lld %s",
                 (int)s.learned, (long long)s.learned_from, r->tensors ? "items" : "pictures");
    if (s.learned >= 0)
        cli_fact(stdout, COLUMN, "", "noise / signal of what the last layers give: %.5f -> %.5f",
                 s.learned_before, s.learned_after);
    print_size_and_time(r, &s);
    if (r->has_accuracy) print_accuracy(r);
    cli_promise_print(r, COLUMN);
    cli_fact(stdout, COLUMN, "seed", "%llu", (unsigned long long)r->seed);
    if (r->report) cli_fact(stdout, COLUMN, "report", "%s", r->report);
    print_blocks(r->q, s.learned);
    print_worst(worst, n_worst);
    print_next(r);
}

/* --- for machines --- */

static void score_json(cli_json *j, const char *key, const cli_quantize_report *r, bool wanted,
                       double v)
{
    if (r->has_accuracy && wanted && v >= 0)
        cli_json_num(j, key, v);
    else
        cli_json_null(j, key);
}

static void layers_json(cli_json *j, const oct_quantized *q)
{
    cli_json *floats = cli_json_array(), *list = cli_json_array();
    oct_quantize_layer layer = {.struct_size = sizeof(layer)}, worst[N_WORST];
    const int n = find_worst(q, worst);

    for (int32_t i = 0; oct_quantized_layer(q, i, &layer); i++)
        if (layer.reason) {
            cli_json *l = cli_json_object();

            cli_json_str(l, "name", layer.name);
            cli_json_str(l, "reason", layer.reason);
            cli_json_add(floats, NULL, l);
        }
    for (int i = 0; i < n; i++) {
        cli_json *l = cli_json_object();

        cli_json_str(l, "name", worst[i].name);
        cli_json_str(l, "operator", worst[i].op);
        cli_json_num(l, "noise", worst[i].noise);
        cli_json_add(list, NULL, l);
    }
    cli_json_add(j, "float_layers", floats);
    cli_json_add(j, "worst_layers", list);
}

static void blocks_json(cli_json *j, const oct_quantized *q)
{
    cli_json *list = cli_json_array();
    oct_quantize_block b = {.struct_size = sizeof(b)};

    for (int32_t i = 0; oct_quantized_block(q, i, &b); i++) {
        cli_json *k = cli_json_object();

        cli_json_str(k, "first", b.first);
        cli_json_str(k, "last", b.last);
        cli_json_int(k, "layers", b.layers);
        cli_json_num(k, "noise_before", b.before);
        cli_json_num(k, "noise_after", b.after);
        cli_json_bool(k, "put_back", b.was_put_back);
        cli_json_bool(k, "undone", b.was_undone);
        cli_json_add(list, NULL, k);
    }
    cli_json_add(j, "blocks", list);
}

/* null: not asked for. */
static void count_json(cli_json *j, const char *key, int n)
{
    if (n < 0)
        cli_json_null(j, key);
    else
        cli_json_int(j, key, n);
}

oct_status cli_quantize_print_json(const cli_quantize_report *r)
{
    const oct_quantize_summary s = summary_of(r->q);
    cli_json *j = cli_json_object();
    oct_status st;

    cli_json_str(j, "output", r->output);
    cli_json_str(j, "target", r->target);
    cli_json_str(j, "best_for", s.best_for);
    cli_json_int(j, "layers_total", s.layers_total);
    cli_json_int(j, "layers_quantized", s.layers_quantized);
    cli_json_num(j, "macs_quantized_share", s.macs_quantized_share);
    cli_json_num(j, "weights_quantized_share", s.weights_quantized_share);
    layers_json(j, r->q);
    count_json(j, "equalized", s.equalized);
    count_json(j, "smoothed", s.smoothed);
    count_json(j, "scales_kept", s.scales_kept);
    count_json(j, "scales_fitted", s.scales_fitted);
    count_json(j, "scales_missing", s.scales_missing);
    count_json(j, "aligned", s.aligned);
    count_json(j, "hardened", s.hardened);
    cli_quantize_moves_json(j, r);
    cli_quantize_mends_json(j, r);
    count_json(j, "learned", s.learned);
    if (s.learned >= 0) {
        cli_json_num(j, "learned_before", s.learned_before);
        cli_json_num(j, "learned_after", s.learned_after);
    }
    blocks_json(j, r->q);
    cli_json_str(j, "tail", s.tail);
    cli_json_int(j, "bytes_before", r->bytes_before);
    cli_json_int(j, "bytes_after", r->bytes_after);
    cli_json_int(j, "images", s.images);
    cli_json_int(j, "left_out", r->n_left_out);
    cli_json_str(j, "family", *r->family ? r->family : NULL);
    cli_json_str(j, "preprocess", *r->preprocess ? r->preprocess : NULL);
    cli_json_round(j, "seconds", r->seconds, 4);
    cli_json_round(j, "float_pass_seconds", s.float_pass_seconds, 4);
    cli_json_round(j, "peak_rss_mb", r->peak_rss_mb, 2);
    score_json(j, "ap_before", r, !r->is_classifier, r->before.box.ap);
    score_json(j, "ap_after", r, !r->is_classifier, r->after.box.ap);
    score_json(j, "ap_unaligned", r, !r->is_classifier && r->has_unaligned, r->unaligned.box.ap);
    score_json(j, "ap_before_noise", r, !r->is_classifier, r->noise.ap);
    score_json(j, "ap_after_noise", r, !r->is_classifier, r->noise.other_ap);
    score_json(j, "ap_change_noise", r, !r->is_classifier, r->noise.difference);
    score_json(j, "top1_before", r, r->is_classifier, r->before.top1);
    score_json(j, "top1_after", r, r->is_classifier, r->after.top1);
    cli_promise_json(j, r);
    cli_json_int(j, "seed", (int64_t)r->seed);
    cli_json_str(j, "report", r->report);
    st = cli_json_print(r->c, j);
    cli_json_free(j);
    return st;
}
