/* SPDX-License-Identifier: Apache-2.0 */
/* octet extract: a part of a network, from some values to others. */
#include "cli/cli.h"
#include "cli/guard.h"
#include "cli/model.h"

typedef struct args {
    const char *output, *inputs, *outputs;
    cli_list shapes;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "output", offsetof(args, output), "FILE", .letter = 'o', .role = CLI_WRITES,
     .help = "the file to write (required): ONNX, or OpenVINO IR if the name ends in .xml"},
    {CLI_STR, "inputs", offsetof(args, inputs), "NAME,..",
     .help = "values that become the inputs, with the types that are inferred for them; by default "
             "those inputs of the network that are needed"},
    {CLI_STR, "outputs", offsetof(args, outputs), "NAME,..",
     .help = "values that become the outputs, in this order; by default those of the network"},
    CLI_OPT_INPUT_SHAPE(args),
    {0},
};

static const cli_file file_args[] = {
    {"IN", CLI_A_NETWORK, CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"extract yolov8n.onnx -o backbone.onnx --outputs /model.9/cv2/act/Mul_output_0",
     "What is computed up to this value"},
    {"extract yolov8n.onnx -o head.onnx --inputs /model.22/Concat_3_output_0", "What follows it"},
    {"extract net.onnx -o part.onnx --inputs a,b --outputs c,d", "What lies between"},
    {"inspect net.onnx", "Show the names of values"},
    {0},
};

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    oct_graph *g = NULL;
    oct_status st;

    if (!a->output) return cli_missing(c, "option --output (-o OUT.onnx)");
    if (!a->inputs && !a->outputs) return cli_missing(c, "where to cut: --inputs or --outputs");
    if ((st = cli_check_model_name(c, "--output", a->output))) return st;
    if ((st = cli_model_load(c, files[0], &a->shapes, &g))) return st;
    st = oct_graph_extract(g, a->inputs, a->outputs);
    if (!st) st = cli_model_write(c, g, a->output, false);
    oct_graph_free(g);
    return st;
}

const cli_command cmd_extract = {
    .name = "extract",
    .help = "write a part of a network, from some values to others",
    .about =
        "Cuts the network at any value: nodes and weights that the outputs do not need, or that "
        "only compute what is an input now, are left out. Values keep their names.\n\n"
        "With --json: nodes, inputs and outputs, each with name, type and shape.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
