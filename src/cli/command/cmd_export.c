/* SPDX-License-Identifier: Apache-2.0 */
/* octet export: a network, or that of a checkpoint, as an ONNX file or as OpenVINO IR. */
#include "cli/cli.h"
#include "cli/guard.h"
#include "cli/model.h"

typedef struct args {
    const char *output, *outputs;
    bool half;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "output", offsetof(args, output), "FILE", .letter = 'o', .role = CLI_WRITES,
     .help =
         "the file to write (required): ONNX, or OpenVINO IR if the name ends in .xml, with the "
         "weights in a .bin file beside it"},
    {CLI_FLAG, "half", offsetof(args, half),
     .help = "OpenVINO IR: keep float32 weights as float16; OpenVINO computes as before"},
    CLI_OPT_OUTPUTS(args),
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", "an ONNX file, or what octet train saved: last.safetensors or best.safetensors",
     CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"export net.train/best.safetensors -o net.onnx", "The network of the best epoch so far"},
    {"export net.int8.onnx -o net.int8.xml", "A quantized network for OpenVINO"},
    {"export net.train/best.safetensors -o net.onnx --outputs boxes,scores",
     "Without the outputs that only training needs"},
    {0},
};

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    oct_graph *g = NULL;
    oct_status st;

    if (!a->output) return cli_missing(c, "option --output (-o OUT.onnx or OUT.xml)");
    if ((st = cli_check_model_name(c, "--output", a->output))) return st;
    if ((st = cli_model_load(c, files[0], NULL, &g))) return st;
    if (!(st = cli_model_keep_outputs(c, a->outputs, g))) {
        c->model = a->output;
        st = cli_model_save(c, g, a->output, a->half);
    }
    oct_graph_free(g);
    return st;
}

const cli_command cmd_export = {
    .name = "export",
    .help = "write a network or a checkpoint as ONNX or OpenVINO IR",
    .about =
        "A checkpoint holds the network and its weights; with averaged weights (--ema of octet "
        "train) those are written. All other commands take checkpoints as they take ONNX files.\n\n"
        "OpenVINO IR is version 11: activations that are quantized become FakeQuantize, weights in "
        "integers stay integers, so that OpenVINO runs the layers in INT8.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
