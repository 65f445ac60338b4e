/* SPDX-License-Identifier: Apache-2.0 */
/* octet prune: a network with fewer channels, at once or while it is trained. */
#include <string.h>

#include "cli/command/compress.h"
#include "cli/command/prune.h"
#include "cli/guard.h"
#include "cli/model.h"
#include "cli/report/report.h"

static const cli_opt opts[] = {
#define OCT_FIELD           CLI_FIELD_ROW
#define OCT_FIELD_FILE(...) /* not typed, or an option of every command */
#define OCT_FIELD_QUANTIZE(...)
#define OCT_FIELD_QUANTIZE_ONLY(...)
#define OCT_FIELD_QAT(...)
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
    {"prune net.onnx -o small.onnx --flops-target 0.4",
     "40 % fewer multiply-adds; train small.onnx afterwards (octet train)"},
    {"prune net.onnx -o small.onnx --flops-target 0.4 --images train --annotations train.json "
     "--eval-images val --eval-annotations val.json --epochs 30",
     "The same, chosen by gradients, and trained to do what the network did before"},
    {"prune net.onnx -o small.onnx --flops-target 0.2 --images train --annotations train.json "
     "--bn-adapt 200",
     "Without training, but with statistics of norms that fit"},
    {"prune net.onnx -o small.onnx --flops-target 0.4 --images train --annotations train.json "
     "--epochs 30 --prune-schedule exponential --prune-epochs 10",
     "Little by little in ten of 30 epochs"},
    {"prune net.onnx -o small.onnx --flops-target 0.3 --refit pictures",
     "Without labels: what is left of layers is fitted to give what they gave"},
    {"prune net.onnx -o small.onnx --channels 0.5 --importance l1 --multiple 16",
     "Half of the channels of each layer"},
    {"prune net.onnx -o small.onnx --flops-target 0.3 --global --keep head",
     "Where it hurts least, but not in the head"},
    {"prune net.onnx -o sparse.onnx --sparsity 2:4",
     "Of each four weights two are zero; train it with --images"},
    {"prune --recipe nncf_config.py -o out.onnx --images train --annotations train.json",
     "A job of MMDetection or NNCF, as it is"},
    {"prune net.onnx -o small.onnx --time-target 0.25", "A quarter faster on this machine"},
    {0},
};

/* --- at once --- */

/* The page shows layers before and after. */
static oct_status report(cli_compress *k, const oct_recipe_job *s, oct_prune_result *r)
{
    const cli_train_job j = {.c = k->c, .a = k->a, .settings = *s, .pruned = r};

    return r ? cli_train_report_pruned(&j) : OCT_OK;
}

/* Prunes, sets weights to zero, or both. */
static oct_status compress(cli_compress *k, const oct_graph *g, oct_graph **out,
                           oct_prune_result **r, oct_sparsity_result *zeros)
{
    oct_graph *small = NULL;
    oct_status st = OCT_OK;

    if (k->prunes) st = cli_compress_open_pictures(k, g);
    if (k->prunes && !st) st = oct_prune_run(g, &k->prune, &small, r);
    if (!st && k->sparsifies) {
        st = oct_sparsify(small ? small : g, &k->sparsity, out, zeros);
        oct_graph_free(small);
        return st;
    }
    *out = small;
    return st;
}

static oct_status print(cli_compress *k, const oct_prune_result *r,
                        const oct_sparsity_result *zeros)
{
    const oct_recipe_job *s = &k->settings;

    if (r && k->c->opt.json) return cli_prune_print_json(k->c, r, s->output, false);
    if (r && !k->c->opt.quiet) cli_prune_print(r, k->model, s->output);
    return k->sparsifies ? cli_sparsity_print(k->c, zeros, s->output) : OCT_OK;
}

static oct_status prune(cli_compress *k)
{
    oct_recipe_job s = k->settings;
    oct_graph *g = NULL, *small = NULL;
    oct_prune_result *r = NULL;
    oct_sparsity_result zeros = {.struct_size = sizeof(zeros)};
    oct_status st;

    if (k->model) s.model = k->model;
    k->model = s.model;
    st = cli_recipe_load_model(k->c, &s, &g);
    if (!st) st = compress(k, g, &small, &r, &zeros);
    cli_progress_end(k->c);
    cli_hold_interrupts();
    if (!st) st = cli_model_save(k->c, small, s.output, false);
    cli_release_interrupts();
    if (!st) st = report(k, &s, r);
    if (!st) st = print(k, r, &zeros);
    oct_prune_result_free(r);
    oct_graph_free(small);
    oct_graph_free(g);
    return st;
}

static oct_status check_files(cli *c, const oct_recipe_job *s)
{
    oct_status st;

    if (!s->model) return cli_missing(c, "MODEL");
    if (!s->output) return cli_missing(c, "option --output (-o OUT.onnx)");
    cli_reads(c, s->model);
    if ((st = cli_check_model_name(c, "--output", s->output))) return st;
    return cli_writes(c, "--output", s->output);
}

/* --- the command --- */

static oct_status run(cli *c, const void *argp, char **files)
{
    cli_compress k = {.c = c, .a = argp, .kind = CLI_COMPRESS_PRUNE};
    oct_status st = cli_compress_start(&k, files);

    if (!st && k.a->recipe.print_recipe) {
        st = cli_recipe_print(k.recipe);
    } else if (!st && k.files.n_images) {
        st = cli_compress_train(&k);
    } else if (!st && k.quantizes) {
        st = cli_missing(c, "pictures that the recipe's quantization learns from: --images DIR "
                            "--annotations FILE");
    } else if (!st) {
        st = check_files(c, &k.settings);
        if (!st && k.a->report) st = cli_report_check(c, k.a->report, false);
        if (!st) st = prune(&k);
    }
    cli_compress_end(&k, st);
    return st;
}

const cli_command cmd_prune = {
    .name = "prune",
    .help = "remove channels that matter least",
    .about =
        "Cuts whole channels out of the network: filters, biases, norms, and the weights that read "
        "them. Channels that can only go together go together: through additions, concatenations, "
        "splits, reshapes, channel shuffles, grouped and depthwise convolutions, gates and heads "
        "of "
        "attention. What is an output, or cannot be followed, stays, and the table says why.\n\n"
        "A pruned network has to be trained again before it is as good as it was. With --images "
        "and "
        "labels that is done here: gradients tell which channels matter, and what is left learns "
        "from the labels and from what the network predicted before (--teacher-weight). With "
        "--prune-schedule exponential the share grows from epoch to epoch: channels are zero while "
        "others learn to do without them, and are cut out in the end; the best epoch is one after "
        "the last channel went. All options of octet train hold. Prune before quantizing.\n\n"
        "With --json: output, macs, params and channels with what is left of each, groups, "
        "groups_protected, layers (name, op, channels, inputs, macs, params with what is left, "
        "why, "
        "at). With --images: before that a line for each epoch, as octet train has it.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(cli_train_args),
    .examples = examples,
    .run = run,
};
