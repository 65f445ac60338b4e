/* SPDX-License-Identifier: Apache-2.0 */
/* Prints how well a network repeats another one. */
#include "cli/command/against.h"

#include "cli/term/table.h"

static void print_boxes(FILE *out, const oct_compare_result *r, double sure)
{
    if (r->sure <= 0) {
        cli_say(out,
                "the float network finds nothing with a score above %g in %lld pictures: there is "
                "nothing to repeat",
                sure, (long long)r->images);
        return;
    }
    cli_say(out,
            "repeat %.4f   of %lld detections that the float network is sure of (score above "
            "%g)",
            r->repeat, (long long)r->sure, sure);
    if (r->added >= 0) cli_say(out, "added  %.4f   of this network's own are new", r->added);
    cli_say(out, "AP     %.4f   against them, AP at IoU .5 %.4f; 1 is no difference", r->ap,
            r->ap50);
}

static void print_outputs(FILE *out, const oct_comparison *of)
{
    static const cli_column columns[] = {
        {"output", CLI_SHRINK}, {"noise", CLI_RIGHT}, {"cosine", CLI_RIGHT}, {"mse", CLI_RIGHT}};
    cli_table *t = cli_table_new(columns, CLI_COUNT(columns));
    const char *name = NULL;
    oct_error e;

    for (int32_t i = 0; oct_comparison_output(of, i, &name, &e); i++) {
        cli_table_cell(t, "%s", name);
        if (e.noise < 0) { /* its length differs: what was found is another number of boxes */
            cli_table_cell(t, "-");
            cli_table_cell(t, "-");
            cli_table_cell(t, "-");
            continue;
        }
        cli_table_cell(t, "%.3g", e.noise);
        cli_table_cell(t, "%.6f", e.cosine);
        cli_table_cell(t, "%.3g", e.mse);
    }
    (void)fputc('\n', out);
    cli_table_print(t, out);
    cli_table_free(t);
}

void cli_against_print(FILE *out, const oct_compare_result *r, const oct_comparison *of,
                       double sure)
{
    if (r->kind == OCT_COMPARED_BOXES) print_boxes(out, r, sure);
    if (r->kind == OCT_COMPARED_CLASSES) {
        cli_say(out, "top-1 %.4f   of %lld pictures have the same best class", r->top1,
                (long long)r->images);
        if (r->top5 >= 0)
            cli_say(out, "top-5 %.4f   of the five best classes are among both", r->top5);
    }
    if (r->kind == OCT_COMPARED_OUTPUTS)
        cli_say(out, "no family reads these outputs: only their noise is compared");
    print_outputs(out, of);
}

/* What was not measured is null. */
static void put(cli_json *j, const char *key, double v)
{
    if (v < 0)
        cli_json_null(j, key);
    else
        cli_json_num(j, key, v);
}

void cli_against_json(cli_json *j, const oct_compare_result *r, const oct_comparison *of)
{
    static const char *const kinds[] = {"outputs", "boxes", "classes"};
    cli_json *outputs = cli_json_array();
    const char *name = NULL;
    oct_error e;

    cli_json_str(j, "kind", kinds[r->kind]);
    cli_json_int(j, "images", r->images);
    if (r->kind == OCT_COMPARED_BOXES) {
        cli_json_int(j, "detections", r->sure);
        put(j, "repeat", r->repeat);
        put(j, "added", r->added);
        put(j, "ap", r->ap);
        put(j, "ap50", r->ap50);
    }
    if (r->kind == OCT_COMPARED_CLASSES) {
        put(j, "repeat", r->repeat);
        put(j, "top1", r->top1);
        put(j, "top5", r->top5);
    }
    put(j, "noise", r->noise);
    cli_json_num(j, "cosine", r->cosine);
    for (int32_t i = 0; oct_comparison_output(of, i, &name, &e); i++) {
        cli_json *o = cli_json_object();

        cli_json_str(o, "name", name);
        put(o, "noise", e.noise);
        cli_json_num(o, "cosine", e.cosine);
        cli_json_num(o, "mse", e.mse);
        cli_json_add(outputs, NULL, o);
    }
    cli_json_add(j, "outputs", outputs);
}
