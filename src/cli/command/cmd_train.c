/* SPDX-License-Identifier: Apache-2.0 */
/* octet train: a network and labelled pictures in, the network with better weights out. */
#include "cli/command/compress.h"
#include "cli/model.h"

static const cli_opt opts[] = {
#define OCT_FIELD           CLI_FIELD_ROW
#define OCT_FIELD_FILE(...) /* not typed, or an option of every command */
#define OCT_FIELD_QUANTIZE(...)
#define OCT_FIELD_QUANTIZE_ONLY(...)
#define OCT_FIELD_QAT(...)
#define OCT_FIELD_PRUNE(...)
#include <octet/recipe.def>
#undef OCT_FIELD
    CLI_OPT_RECIPE("read settings from a YAML or JSON file; options change what it says"),
    CLI_OPTS_TRAIN,
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", CLI_A_NETWORK "; may be left out if a recipe names it", CLI_FILE_IN | CLI_FILE_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"train net.onnx -o better.onnx --images train --annotations train.json --eval-images val "
     "--eval-annotations val.json",
     "Fine-tune as the network's family is usually trained; keep the best epoch"},
    {"train net.onnx -o new.onnx --images data.yaml --epochs 100 --batch 16 --rate 0.001 "
     "--freeze-name backbone",
     "Only the layers after the backbone"},
    {"train net.onnx -o better.onnx --images data.yaml --eval-images val --report report",
     "See how it goes: open report/index.html"},
    {"train net.onnx --images train --annotations train.json --show-batch batch.jpg",
     "Look at what the network will see"},
    {"train --recipe train.yaml --resume new.train/last.safetensors",
     "Go on after an interruption"},
    {0},
};

static oct_status run(cli *c, const void *argp, char **files)
{
    return cli_compress_run(c, argp, CLI_COMPRESS_TRAIN, files);
}

const cli_command cmd_train = {
    .name = "train",
    .help = "train a network on labelled pictures",
    .about =
        "Trains the ONNX file itself: gradients are found for its operators, the loss of its "
        "family is attached to its raw predictions, and what is written is the same network with "
        "other weights. Settings that are not given are those with which the family's own project "
        "trains (--preset).\n\n"
        "After each epoch the folder for checkpoints gets last.safetensors and, if accuracy is "
        "measured (--eval-images), best.safetensors; octet eval and octet export take them like "
        "networks. Ctrl-C saves and ends; --resume goes on bit for bit. The same seed and threads "
        "give the same bytes.\n\n"
        "With --json: one object a line for each epoch (epoch, step, loss, parts, rate, grad_norm, "
        "seconds, data_seconds, ap, ap50, top1, best), then one with output, best_epoch, best, "
        "checkpoints.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(cli_train_args),
    .examples = examples,
    .run = run,
};
