/* SPDX-License-Identifier: Apache-2.0 */
/* octet qat: training through the rounding of weights and activations, an INT8 network out. */
#include "cli/command/compress.h"

static const cli_opt opts[] = {
#define OCT_FIELD           CLI_FIELD_ROW
#define OCT_FIELD_FILE(...) /* not typed, or an option of every command */
#define OCT_FIELD_QUANTIZE_ONLY(...)
#define OCT_FIELD_PRUNE(...)
#include <octet/recipe.def>
#undef OCT_FIELD
    {CLI_LIST, "calibration",
     offsetof(cli_recipe_args, words) + CLI_FIELD_IMAGES * sizeof(cli_list), "DIR|FILE",
     .help =
         "pictures to calibrate on, which need no labels; by default those to learn from. May be "
         "given several times"},
    CLI_OPT_RECIPE(
        "read settings from a YAML or JSON file, of octet quantize, train or qat; options "
        "change what it says"),
    CLI_OPTS_TRAIN,
    {CLI_FLAG, "table", offsetof(cli_train_args, table),
     .help = "in the end measure the float network, the same with norms and branches folded "
             "(OUT_folded.onnx), the calibrated one (OUT_ptq.onnx) and "
             "the trained one side by side, also in the report: AP, AP50, size, time; for NPUs "
             "also the trained one "
             "before its shifts were made to fit (OUT_unaligned.onnx)"},
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", "a trained float ONNX file; may be left out if a recipe names it",
     CLI_FILE_IN | CLI_FILE_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"qat net.onnx -o int8.onnx --images train --annotations train.json --eval-images val "
     "--eval-annotations val.json",
     "Calibrate, then train for 10 epochs; keep the best one"},
    {"qat net.onnx -o npu.onnx --target npu-pow2 --images train --annotations train.json --table",
     "For an NPU with power-of-two scales; show what each step cost"},
    {"qat net.onnx -o int8.onnx --images pictures --loss distill",
     "Without labels: the float network is the teacher"},
    {"qat net.onnx -o w4.onnx --weight-bits 4 --images train --annotations train.json --epochs 30",
     "Four-bit weights need more training"},
    {"qat --recipe qat.yaml --resume int8.train/last.safetensors", "Go on after an interruption"},
    {0},
};

static oct_status run(cli *c, const void *argp, char **files)
{
    return cli_compress_run(c, argp, CLI_COMPRESS_QAT, files);
}

const cli_command cmd_qat = {
    .name = "qat",
    .help = "train a network for integers, and write it as INT8",
    .about =
        "Quantizes as octet quantize does, then trains weights and scales through the rounding, "
        "with "
        "the loss of the network's family (or its own float version as the teacher: --loss "
        "distill). "
        "What is measured after each epoch is the integer network that the file will have, to the "
        "code. Scales are learned as logarithms and fixed after a part of the steps; powers of two "
        "are then made to fit the target's shifters, and training goes on with them.\n\n"
        "Settings that are not given come from the preset qat; super_gradients and quark are what "
        "these projects do. Checkpoints, --resume, Ctrl-C and the rest are as in octet train: "
        "octet "
        "eval and octet export take a checkpoint as the integer network it stands for.\n\n"
        "With --json: as octet train; with --table one more line: table (name, file, ap, ap50, "
        "bytes, "
        "milliseconds).",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(cli_train_args),
    .examples = examples,
    .run = run,
};
