/* SPDX-License-Identifier: Apache-2.0 */
/* octet export: the network of a checkpoint as an ONNX file. */
#include "cli/cli.h"
#include "cli/guard.h"
#include "cli/model.h"

typedef struct args {
    const char *output;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "output", offsetof(args, output), "FILE", .letter = 'o', .role = CLI_WRITES,
     .help = "the ONNX file to write (required)"},
    {0},
};

static const cli_file file_args[] = {
    {"CHECKPOINT", "what octet train saved: last.safetensors or best.safetensors", CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"export net.train/best.safetensors -o net.onnx", "The network of the best epoch so far"},
    {0},
};

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    oct_graph *g = NULL;
    oct_status st;

    if (!a->output) return cli_missing(c, "option --output (-o OUT.onnx)");
    if ((st = cli_check_onnx_name(c, "--output", a->output))) return st;
    if ((st = cli_model_load(c, files[0], NULL, &g))) return st;
    st = oct_onnx_save(g, a->output, NULL);
    oct_graph_free(g);
    return st;
}

const cli_command cmd_export = {
    .name = "export",
    .help = "write the network of a checkpoint as an ONNX file",
    .about =
        "A checkpoint holds the network and its weights; with averaged weights (--ema of octet "
        "train) those are written. All other commands take checkpoints as they take ONNX files.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
