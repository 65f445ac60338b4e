/* SPDX-License-Identifier: Apache-2.0 */
/* octet synth: draws labelled pictures from a seed. */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/term/json.h"

typedef struct args {
    const char *out, *split;
    int64_t count, size;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "out", offsetof(args, out), "DIR", .help = "folder to write into; made if missing"},
    {CLI_INT, "count", offsetof(args, count), "N", .help = "pictures", .def = "200", .min = 1},
    {CLI_INT, "size", offsetof(args, size), "N", .help = "width and height in pixels, 64 to 2048",
     .def = "256", .min = 64},
    {CLI_STR, "split", offsetof(args, split), "NAME",
     .help = "name of the series; another name with the same seed gives other pictures",
     .def = "val"},
    {0},
};

static const cli_file file_args[] = {
    {0},
};

static const cli_example examples[] = {
    {"synth --out shapes", "200 pictures in shapes/val, their labels in shapes/val.json"},
    {"synth --out shapes --split train --count 20000 --seed 7", "Others to train on"},
    {"eval net.onnx --images shapes/val --annotations shapes/val.json",
     "How well does a network find them?"},
    {0},
};

static oct_status print_json(cli *c, const args *a, const oct_synth_result *r, double seconds)
{
    cli_json *j = cli_json_object();
    char *images = cli_format("%s/%s", a->out, a->split);
    char *labels = cli_format("%s/%s.json", a->out, a->split);
    char *names = cli_format("%s/names.txt", a->out);
    oct_status st;

    cli_json_str(j, "folder", images);
    cli_json_str(j, "annotations", labels);
    cli_json_str(j, "names", names);
    cli_json_int(j, "images", r->images);
    cli_json_int(j, "objects", r->objects);
    cli_json_int(j, "seed", c->opt.seed);
    cli_json_round(j, "seconds", seconds, 4);
    st = cli_json_print(c, j);
    cli_json_free(j);
    free(images);
    free(labels);
    free(names);
    return st;
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const int64_t start = cli_time_ns();
    const args *a = argp;
    oct_synth_result r = {.struct_size = sizeof(r)};
    oct_synth_options o;
    double seconds;
    oct_status st;

    (void)files;
    if (!a->out) {
        c->hint_help = true;
        return cli_fail(c, OCT_ERR_ARG, "option --out is missing: --out DIR");
    }
    oct_synth_options_init(&o);
    o.count = (int32_t)(a->count > INT32_MAX ? INT32_MAX : a->count);
    o.size = (int32_t)(a->size > INT32_MAX ? INT32_MAX : a->size);
    o.seed = (uint64_t)c->opt.seed;
    o.split = a->split;
    st = oct_synth_write(c->ctx, a->out, &o, &r);
    cli_progress_end(c);
    if (st) return st;
    seconds = (double)(cli_time_ns() - start) * 1e-9;
    if (c->opt.json) return print_json(c, a, &r, seconds);
    cli_note(c, "%lld pictures with %lld objects in %s/%s, labels in %s/%s.json; %.1f s",
             (long long)r.images, (long long)r.objects, a->out, a->split, a->out, a->split,
             seconds);
    return OCT_OK;
}

const cli_command cmd_synth = {
    .name = "synth",
    .help = "draw labelled pictures to try a detector on",
    .about =
        "Shapes of eight classes (disc, ring, square, triangle, star, cross, arrow, crescent) on "
        "textured ground, turned, sheared, tilted, lit, half covered, blurred and grainy; 1 to 8 "
        "in a picture. The labels are COCO's, each box around what is seen of a shape. The same "
        "seed, split and size give the same bytes on every machine, whatever the count.\n\n"
        "Writes DIR/SPLIT/000000.jpg and so on, DIR/SPLIT.json, and DIR/names.txt with the classes "
        "for 'octet detect --labels'.\n\n"
        "With --json: folder, annotations, names, images, objects, seed, seconds.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
