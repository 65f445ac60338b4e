/* SPDX-License-Identifier: Apache-2.0 */
/* octet convert: the same network in another format, or in half precision. */
#include <string.h>

#include "cli/cli.h"
#include "cli/data.h"
#include "cli/guard.h"
#include "cli/model.h"

typedef struct args {
    const char *output, *outputs, *images, *family, *preprocess;
    bool half, bf16, half_io;
    int64_t limit;
    cli_list shapes;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "output", offsetof(args, output), "FILE", .letter = 'o', .role = CLI_WRITES,
     .help = "the file to write (required): ONNX, or OpenVINO IR if the name ends in .xml, with "
             "the weights in a .bin file beside it"},
    {CLI_FLAG, "half", offsetof(args, half),
     .help = "ONNX: compute in float16 up to the last layers with weights; OpenVINO IR: keep "
             "weights as float16, and OpenVINO computes as before"},
    {CLI_FLAG, "bf16", offsetof(args, bf16),
     .help = "keep weights as bfloat16, with a Cast to float32 behind each: computing stays "
             "float32, and every runtime loads it"},
    {CLI_FLAG, "half-io", offsetof(args, half_io),
     .help = "with --half or --bf16: inputs and outputs too; without it they stay float32"},
    {CLI_STR, "images", offsetof(args, images), "DIR|FILE", .role = CLI_READS,
     .help = "with --half: pictures to measure activations on; what is beyond 65504 stays "
             "float32. Without, only weights are looked at"},
    {CLI_INT, "limit", offsetof(args, limit), "N", .def = "32", .help = "measure on the first N"},
    {CLI_STR, "family", offsetof(args, family), "FAMILY", .def = "auto",
     .help = "how the network is fed"},
    {CLI_STR, "preprocess", offsetof(args, preprocess), "WORDS",
     .help = "changes to the family's preprocessing, as in size=640x640,scale=1"},
    CLI_OPT_OUTPUTS(args),
    CLI_OPT_INPUT_SHAPE(args),
    {0},
};

static const cli_file file_args[] = {
    {"IN", CLI_A_NETWORK ", or OpenVINO IR (.xml)", CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"convert net.pt2 -o net.onnx", "A torch.export archive as ONNX"},
    {"convert net.xml -o net.onnx", "OpenVINO IR as ONNX, and back"},
    {"convert yolov8n.onnx -o yolov8n_fp16.onnx --half", "Half the size, for GPUs"},
    {"convert yolov8n.onnx -o yolov8n_fp16.onnx --half --images calib",
     "And look whether activations overflow"},
    {"convert net.onnx -o net_bf16.onnx --bf16", "Weights as bfloat16"},
    {0},
};

/* --- half precision --- */

typedef struct kept {
    cli *c;
    int n;
} kept;

static void tell_kept(void *user, const char *node, const char *why)
{
    enum { MOST = 10 };
    kept *k = user;

    if (k->n++ < MOST) cli_note(k->c, "%s stays float32: %s", node, why);
}

static oct_status open_images(cli *c, const args *a, oct_dataset **out)
{
    const char *model = c->model;
    oct_dataset_options d;
    oct_status st;

    if (!a->images) return OCT_OK;
    oct_dataset_options_init(&d);
    d.images = a->images;
    d.need_files = 1;
    c->model = NULL; /* errors here are about the data */
    st = cli_dataset_open(c, &d, out);
    if (!st) c->model = model;
    return st;
}

static oct_status halve(cli *c, const args *a, oct_graph **g)
{
    oct_dataset *images = NULL;
    oct_graph *made = NULL;
    kept k = {c, 0};
    oct_half_options o;
    oct_preprocess p;
    oct_status st;

    oct_half_options_init(&o);
    o.bf16 = a->bf16;
    o.half_io = a->half_io;
    o.family = a->family;
    o.limit = (int32_t)a->limit;
    o.kept = tell_kept;
    o.user = &k;
    if ((st = open_images(c, a, &images))) return st;
    if (images && a->preprocess) {
        st = oct_graph_preprocess(*g, a->family, a->preprocess, &p);
        o.preprocess = &p;
    }
    if (!st) st = oct_graph_half(*g, images, &o, &made);
    cli_progress_end(c);
    oct_dataset_close(images);
    if (st) return st;
    if (k.n > 10) cli_note(c, "... and %d more nodes stay float32", k.n - 10);
    oct_graph_free(*g);
    *g = made;
    return OCT_OK;
}

/* --- the command --- */

static oct_status check(cli *c, const args *a)
{
    if (!a->output) return cli_missing(c, "option --output (-o OUT.onnx or OUT.xml)");
    if (a->half && a->bf16) return cli_fail(c, OCT_ERR_ARG, "--half and --bf16 are two formats");
    if (a->half_io && !a->half && !a->bf16)
        return cli_fail(c, OCT_ERR_ARG, "--half-io goes with --half or --bf16");
    if (a->limit > INT32_MAX) return cli_fail(c, OCT_ERR_ARG, "--limit is below 2^31");
    if (a->images && !a->half)
        return cli_fail(c, OCT_ERR_ARG, "--images shows what overflows with --half");
    if (cli_has_suffix(a->output, ".xml") && (a->bf16 || a->half_io || a->images))
        return cli_fail(c, OCT_ERR_ARG,
                        "OpenVINO IR has --half alone: weights as float16, numbers computed as "
                        "before");
    return cli_check_model_name(c, "--output", a->output);
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    oct_graph *g = NULL;
    bool is_ir;
    oct_status st;

    if ((st = check(c, a))) return st;
    is_ir = cli_has_suffix(a->output, ".xml");
    if ((st = cli_model_load(c, files[0], &a->shapes, &g))) return st;
    st = cli_model_keep_outputs(c, a->outputs, g);
    if (!st && !is_ir && (a->half || a->bf16)) st = halve(c, a, &g);
    /* IR has no form for much of the arithmetic on shapes that exporters write, and that folds. */
    if (!st && is_ir) st = oct_graph_simplify(g, NULL);
    if (!st) st = cli_model_write(c, g, a->output, is_ir && a->half);
    oct_graph_free(g);
    return st;
}

const cli_command cmd_convert = {
    .name = "convert",
    .help = "write a network in another format, or in half precision",
    .about =
        "What the file holds decides how it is read (ONNX, torch.export, OpenVINO IR, checkpoints "
        "of octet train), and the name of the output how it is written.\n\n"
        "With --half, layers compute in float16. What follows the last layers with weights "
        "(boxes, scores, suppression) stays float32, since pixels above 512 have a step of half a "
        "pixel in float16; so do layers with weights or measured activations beyond 65504, which "
        "are named, and what is quantized. Inputs and outputs stay float32 unless --half-io is "
        "given. octet itself computes float16 networks in float32: smaller files, "
        "not faster ones.\n\n"
        "With --json: nodes, inputs and outputs, each with name, type and shape.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
