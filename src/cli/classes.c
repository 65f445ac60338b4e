/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of a network: their names, and which category of a dataset each of them is. */
#include "cli/classes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/near.h"
#include "cli/term/table.h"

oct_status cli_labels_load(cli *c, const char *path, oct_class_names **out)
{
    const char *model = c->model;
    cli_near near;
    oct_status st;

    if (!path) return OCT_OK;
    if (access(path, F_OK) && errno == ENOENT)
        return cli_fail(c, OCT_ERR_ARG, "option --labels: %s: no such file%s", path,
                        cli_near_file(&near, path));
    c->model = NULL; /* errors here are about the names */
    if ((st = oct_class_names_load(c->ctx, path, out))) return st;
    c->model = model;
    return OCT_OK;
}

oct_status cli_labels_set(cli *c, oct_detector *d, const oct_class_names *names, const char *path)
{
    const oct_status st = names ? oct_detector_set_names(d, names) : OCT_OK;

    if (st != OCT_ERR_ARG) return st;
    return cli_fail(c, st, "option --labels: %s: %s", path, oct_ctx_error(c->ctx));
}

/* --- which is which --- */

static const char *text_or(const char *text, const char *other)
{
    return text ? text : other;
}

/* Is a class and its category worth a row? Not if both have the same name, or there is none. */
static bool is_worth_a_row(const oct_detector *net, const oct_dataset *d, const oct_class_map *m,
                           int32_t k)
{
    const char *name = oct_detector_class_name(net, k);
    const int32_t category = oct_class_map_category(m, k);

    return category >= 0 && (!name || strcmp(name, oct_dataset_category_name(d, category)) != 0);
}

static bool has_class(const oct_class_map *m, int32_t category)
{
    for (int32_t k = 0; k < oct_class_map_size(m); k++)
        if (oct_class_map_category(m, k) == category) return true;
    return false;
}

enum { MOST_ROWS = 12 };

/* Pairs whose names do not agree, then categories that no class is. */
static void print_table(const oct_detector *net, const oct_dataset *d, const oct_class_map *m)
{
    static const cli_column columns[] = {
        {"class", CLI_RIGHT}, {"network", CLI_SHRINK}, {"labels", CLI_SHRINK}};
    const bool has_names = oct_detector_names_from(net) != NULL;
    cli_table *t = cli_table_new(columns, CLI_COUNT(columns));
    int n = 0;

    for (int32_t k = 0; k < oct_class_map_size(m); k++) {
        if (!is_worth_a_row(net, d, m, k) || n++ >= MOST_ROWS) continue;
        cli_table_cell(t, "%d", (int)k);
        cli_table_cell(t, "%s", has_names ? text_or(oct_detector_class_name(net, k), "?") : "?");
        cli_table_cell(t, "%s", oct_dataset_category_name(d, oct_class_map_category(m, k)));
    }
    for (int32_t i = 0; i < oct_dataset_n_categories(d); i++) {
        if (has_class(m, i) || n++ >= MOST_ROWS) continue;
        cli_table_cell(t, "%s", "-");
        cli_table_cell(t, "%s", "none");
        cli_table_cell(t, "%s", oct_dataset_category_name(d, i));
    }
    if (n) cli_table_print(t, stderr);
    if (n > MOST_ROWS)
        (void)fprintf(stderr, "and %d more; --json shows all of them\n", n - MOST_ROWS);
    cli_table_free(t);
}

oct_status cli_classes_note(cli *c, const oct_detector *net, const oct_dataset *d)
{
    oct_class_map *m = NULL;
    oct_status st;

    if (oct_detector_is_classifier(net)) return OCT_OK;
    if ((st = oct_class_map_new(net, d, &m))) return st;
    if (!oct_class_map_is_clear(m) && !c->opt.quiet) {
        cli_note(c, "classes %d of the network, %d of the labels, matched %s; check the table:",
                 (int)oct_class_map_size(m), (int)oct_dataset_n_categories(d),
                 oct_class_map_how(m));
        print_table(net, d, m);
    }
    oct_class_map_free(m);
    return OCT_OK;
}

void cli_classes_json(cli_json *j, const oct_detector *net, const oct_dataset *d)
{
    cli_json *list;
    oct_class_map *m = NULL;

    if (oct_detector_is_classifier(net) || oct_class_map_new(net, d, &m)) return;
    list = cli_json_array();
    for (int32_t k = 0; k < oct_class_map_size(m); k++) {
        const int32_t category = oct_class_map_category(m, k);
        cli_json *e = cli_json_object();

        cli_json_int(e, "class", k);
        cli_json_str(e, "name", oct_detector_class_name(net, k));
        cli_json_str(e, "category", category >= 0 ? oct_dataset_category_name(d, category) : NULL);
        if (category >= 0)
            cli_json_int(e, "category_id", oct_dataset_category_id(d, category));
        else
            cli_json_null(e, "category_id");
        cli_json_add(list, NULL, e);
    }
    cli_json_str(j, "matched", oct_class_map_how(m));
    cli_json_add(j, "classes", list);
    oct_class_map_free(m);
}

/* --- a broken network --- */

/* Only a hint: what cannot be diagnosed is no error. */
void cli_diagnose(cli *c, const oct_graph *g)
{
    oct_fault_list *f = NULL;

    if (oct_graph_diagnose(g, &f)) return;
    for (int32_t i = 0; oct_fault_list_at(f, i); i++)
        cli_note(c, "note: %s", oct_fault_list_at(f, i));
    oct_fault_list_free(f);
}
