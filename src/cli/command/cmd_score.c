/* SPDX-License-Identifier: Apache-2.0 */
/* octet score: the COCO metrics of a results file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command/measure.h"
#include "cli/command/score.h"
#include "cli/near.h"
#include "cli/term/json.h"

#define N_WORST 5

typedef struct args {
    const char *annotations, *results;
    cli_list images;
    bool per_class;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "annotations", offsetof(args, annotations), "FILE",
     .help = "COCO labels (.json); the pictures need not be there"},
    {CLI_STR, "results", offsetof(args, results), "FILE",
     .help = "COCO results: a list of {image_id, category_id, bbox, score}"},
    {CLI_LIST, "images", offsetof(args, images), "ID,..",
     .help = "score only these pictures, by their ids. May be given several times"},
    {CLI_FLAG, "per-class", offsetof(args, per_class),
     .help = "show all classes; with --json also their precision at 101 points of recall"},
    {0},
};

static const cli_file file_args[] = {
    {0},
};

static const cli_example examples[] = {
    {"score --annotations instances_val2017.json --results results.json",
     "The twelve numbers of COCO and the worst classes"},
    {"score --annotations a.json --results r.json --per-class --json",
     "The same with every class and its precision/recall curve, for other programs"},
    {"score --annotations a.json --results r.json --images 139,285", "Two pictures only"},
    {0},
};

/* An option that names a file which must be there. */
static oct_status check_path(cli *c, const char *option, const char *path)
{
    cli_near near;

    if (!path) {
        c->hint_help = true;
        return cli_fail(c, OCT_ERR_ARG, "option --%s is missing: --%s FILE", option, option);
    }
    if (access(path, F_OK))
        return cli_fail(c, OCT_ERR_ARG, "%s: no such file%s", path, cli_near_file(&near, path));
    return OCT_OK;
}

/* The ids of all --images; *out is to be freed. */
static oct_status parse_ids(cli *c, const cli_list *lists, int64_t **out, int64_t *n)
{
    for (int i = 0; i < lists->n; i++) {
        const char *p = lists->items[i];

        for (;;) {
            char *end = NULL;
            long long id;

            errno = 0;
            id = strtoll(p, &end, 10);
            if (errno || end == p || (*end && *end != ','))
                return cli_fail(c, OCT_ERR_ARG,
                                "option --images wants ids of pictures, as in 139,285; not '%s'",
                                lists->items[i]);
            *out = cli_realloc(*out, (size_t)*n + 1, sizeof(**out));
            (*out)[(*n)++] = id;
            if (!*end) break;
            p = end + 1;
        }
    }
    return OCT_OK;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* Leaves each id once; returns how many are left. */
static int64_t make_unique(int64_t *ids, int64_t n)
{
    int64_t n_unique = 0;

    if (n) qsort(ids, (size_t)n, sizeof(*ids), by_value);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || ids[i] != ids[i - 1]) ids[n_unique++] = ids[i];
    return n_unique;
}

/* Printed at the end. */
typedef struct result {
    const oct_dataset *d;
    const oct_box_eval *e;
    oct_box_metrics m;
    int64_t n_images;
    double seconds;
} result;

static oct_status print_json(cli *c, const result *r, bool curves)
{
    cli_json *j = cli_json_object();
    oct_status st;

    cli_score_json(j, &r->m, r->e, r->d, curves);
    cli_json_int(j, "images", r->n_images);
    cli_json_round(j, "seconds", r->seconds, 4);
    cli_json_round(j, "peak_rss_mb", cli_peak_rss_mb(), 2);
    st = cli_json_print(c, j);
    cli_json_free(j);
    return st;
}

static void print_text(const result *r, bool per_class)
{
    cli_score_print(stdout, &r->m);
    cli_score_print_classes(stdout, r->e, r->d, per_class ? 0 : N_WORST);
    (void)printf("\n%lld pictures in %.2f s, %.0f MB\n", (long long)r->n_images, r->seconds,
                 cli_peak_rss_mb());
}

static oct_status score(cli *c, const args *a, const int64_t *ids, int64_t n_ids)
{
    const int64_t start = cli_time_ns();
    oct_dataset_options o;
    oct_dataset *d = NULL;
    oct_box_eval *e = NULL;
    result r = {0};
    oct_status st;

    oct_dataset_options_init(&o);
    o.annotations = a->annotations;
    if ((st = oct_dataset_open(c->ctx, &o, &d))) goto done;
    if ((st = oct_box_eval_new(c->ctx, d, &e))) goto done;
    if (n_ids && (st = oct_box_eval_select(e, ids, n_ids))) goto done;
    if ((st = oct_box_eval_see_file(e, a->results))) goto done;
    if ((st = oct_box_eval_finish(e, 1, &r.m))) goto done;
    r.d = d;
    r.e = e;
    r.n_images = n_ids ? n_ids : oct_dataset_size(d);
    r.seconds = (double)(cli_time_ns() - start) * 1e-9;
    if (c->opt.json)
        st = print_json(c, &r, a->per_class);
    else
        print_text(&r, a->per_class);
done:
    oct_box_eval_free(e);
    oct_dataset_close(d);
    return st;
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    int64_t *ids = NULL, n_ids = 0;
    oct_status st;

    (void)files;
    if ((st = check_path(c, "annotations", a->annotations))) return st;
    if ((st = check_path(c, "results", a->results))) return st;
    if (!(st = parse_ids(c, &a->images, &ids, &n_ids)))
        st = score(c, a, ids, make_unique(ids, n_ids));
    free(ids);
    return st;
}

const cli_command cmd_score = {
    .name = "score",
    .help = "score a file of detections against labels, as COCO does",
    .about =
        "All twelve numbers equal those of pycocotools. Pictures without results count as pictures "
        "where nothing was found. A result of a picture or category that the labels do not have is "
        "an error.\n\n"
        "With --json: ap, ap50, ap75, ap_small, ap_medium, ap_large, ar1, ar10, ar100, ar_small, "
        "ar_medium, ar_large, voc_map50 (null: nothing to measure), per_class (name, id, ap, ap50, "
        "and with --per-class precision), images, seconds, peak_rss_mb. MB are 1000000 bytes.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
