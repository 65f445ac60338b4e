/* SPDX-License-Identifier: Apache-2.0 */
/* Output of box metrics. */
#include "cli/command/score.h"

#include <stdlib.h>

#include "cli/term/table.h"

#define N_RECALLS  101 /* of oct_box_eval_curve() */
#define NOISE_SEED 1   /* the same detections show the same noise */

typedef struct metric {
    const char *key, *name, *iou, *area, *found;
    size_t offset;
} metric;

#define AT(field) offsetof(oct_box_metrics, field)

static const metric metrics[] = {
    {"ap", "AP", "0.50:0.95", "all", "100", AT(ap)},
    {"ap50", "AP50", "0.50", "all", "100", AT(ap50)},
    {"ap75", "AP75", "0.75", "all", "100", AT(ap75)},
    {"ap_small", "AP small", "0.50:0.95", "below 32^2", "100", AT(ap_small)},
    {"ap_medium", "AP medium", "0.50:0.95", "32^2 to 96^2", "100", AT(ap_medium)},
    {"ap_large", "AP large", "0.50:0.95", "above 96^2", "100", AT(ap_large)},
    {"ar1", "AR1", "0.50:0.95", "all", "1", AT(ar1)},
    {"ar10", "AR10", "0.50:0.95", "all", "10", AT(ar10)},
    {"ar100", "AR100", "0.50:0.95", "all", "100", AT(ar100)},
    {"ar_small", "AR small", "0.50:0.95", "below 32^2", "100", AT(ar_small)},
    {"ar_medium", "AR medium", "0.50:0.95", "32^2 to 96^2", "100", AT(ar_medium)},
    {"ar_large", "AR large", "0.50:0.95", "above 96^2", "100", AT(ar_large)},
};

static double value(const oct_box_metrics *m, const metric *row)
{
    return *(const double *)(const void *)((const char *)m + row->offset);
}

/* "-" where there is nothing to measure. */
static void value_cell(cli_table *t, double v)
{
    if (v < 0)
        cli_table_cell(t, "%s", "-");
    else
        cli_table_cell(t, "%.3f", v);
}

void cli_score_print(FILE *out, const oct_box_metrics *m)
{
    static const cli_column columns[] = {{"metric", CLI_LEFT},
                                         {"value", CLI_RIGHT},
                                         {"IoU", CLI_LEFT},
                                         {"area", CLI_LEFT},
                                         {"detections", CLI_RIGHT}};
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));

    for (size_t i = 0; i < CLI_COUNT(metrics); i++) {
        if (i == 6) cli_table_rule(t);
        cli_table_cell(t, "%s", metrics[i].name);
        value_cell(t, value(m, &metrics[i]));
        cli_table_cell(t, "%s", metrics[i].iou);
        cli_table_cell(t, "%s", metrics[i].area);
        cli_table_cell(t, "%s", metrics[i].found);
    }
    cli_table_print(t, out);
    cli_table_free(t);
}

typedef struct class_row {
    int32_t category;
    double ap, ap50;
} class_row;

static int by_ap(const void *a, const void *b)
{
    const class_row *x = a, *y = b;

    if (x->ap != y->ap) return x->ap < y->ap ? -1 : 1;
    return x->category < y->category ? -1 : x->category > y->category;
}

void cli_score_print_classes(FILE *out, const oct_box_eval *e, const oct_dataset *d, int n)
{
    static const cli_column columns[] = {
        {"class", CLI_SHRINK}, {"AP", CLI_RIGHT}, {"AP50", CLI_RIGHT}};
    const int32_t n_categories = oct_dataset_n_categories(d);
    class_row *rows = cli_alloc((size_t)n_categories, sizeof(*rows));
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));
    int n_rows = 0;

    for (int32_t i = 0; i < n_categories; i++) {
        class_row *r = &rows[n_rows];

        r->category = i;
        oct_box_eval_category(e, i, &r->ap, &r->ap50);
        n_rows += r->ap >= 0;
    }
    qsort(rows, (size_t)n_rows, sizeof(*rows), by_ap);
    for (int i = 0; i < n_rows && (n == 0 || i < n); i++) {
        cli_table_cell(t, "%s", oct_dataset_category_name(d, rows[i].category));
        value_cell(t, rows[i].ap);
        value_cell(t, rows[i].ap50);
    }
    if (n_rows && n && n < n_rows)
        (void)fprintf(out, "\nworst %d of %d classes\n", n, n_rows);
    else if (n_rows)
        (void)fprintf(out, "\nclasses, worst first\n");
    if (n_rows) cli_table_print(t, out);
    cli_table_free(t);
    free(rows);
}

static void number(cli_json *j, const char *key, double v)
{
    if (v < 0)
        cli_json_null(j, key);
    else
        cli_json_num(j, key, v);
}

void cli_score_json(cli_json *j, const oct_box_metrics *m, const oct_box_eval *e,
                    const oct_dataset *d, bool curves)
{
    cli_json *classes = cli_json_array();

    for (size_t i = 0; i < CLI_COUNT(metrics); i++)
        number(j, metrics[i].key, value(m, &metrics[i]));
    number(j, "voc_map50", m->voc_map50);
    for (int32_t i = 0; i < oct_dataset_n_categories(d); i++) {
        const double *curve = oct_box_eval_curve(e, i);
        cli_json *c = cli_json_object(), *points;
        double ap, ap50;

        oct_box_eval_category(e, i, &ap, &ap50);
        cli_json_str(c, "name", oct_dataset_category_name(d, i));
        cli_json_int(c, "id", oct_dataset_category_id(d, i));
        number(c, "ap", ap);
        number(c, "ap50", ap50);
        if (curves && curve) {
            points = cli_json_array();
            for (int r = 0; r < N_RECALLS; r++)
                cli_json_num(points, NULL, curve[r]);
            cli_json_add(c, "precision", points);
        }
        cli_json_add(classes, NULL, c);
    }
    cli_json_add(j, "per_class", classes);
}

/* --- noise and curves --- */

oct_status cli_score_noise(const oct_box_eval *e, const oct_box_eval *other, oct_box_noise *out)
{
    out->struct_size = sizeof(*out);
    return oct_box_eval_noise(e, other, 0, 0, NOISE_SEED, out);
}

void cli_score_print_noise(FILE *out, const oct_box_metrics *m, const oct_box_noise *n)
{
    if (m->ap < 0 || n->ap < 0) return;
    (void)fprintf(out, "\nAP %.4f (+- %.4f on %lld pictures, 95 %%)\n", m->ap, n->ap,
                  (long long)n->images);
}

void cli_score_noise_json(cli_json *j, const oct_box_noise *n)
{
    number(j, "ap_noise", n->ap);
    cli_json_int(j, "resamples", n->resamples);
}

static void curve_json(cli_json *j, const char *key, const double *curve)
{
    cli_json *points = cli_json_array();

    for (int r = 0; curve && r < N_RECALLS; r++)
        cli_json_num(points, NULL, curve[r]);
    cli_json_add(j, key, points);
}

void cli_score_curves_json(cli_json *j, const oct_box_eval *e)
{
    curve_json(j, "precision50", oct_box_eval_curve(e, -1));
    curve_json(j, "precision", oct_box_eval_mean_curve(e, -1));
}
