/* SPDX-License-Identifier: Apache-2.0 */
/* octet prune: a network with fewer channels, at once or while it is trained. */
#include <string.h>

#include "cli/command/prune.h"
#include "cli/command/train.h"
#include "cli/guard.h"
#include "cli/model.h"

typedef struct args {
    cli_train_args train; /* first: options of fields lie in it */
    const char *importance, *keep, *schedule;
    double flops, params, channels, time, most;
    int64_t multiple, epochs, start, bn_adapt;
    bool global, mask, zeros;
} args;

static const cli_opt opts[] = {
    {CLI_F64, "flops-target", offsetof(args, flops), "SHARE", .max = 1,
     .help = "remove this share of the multiply-adds: 0.4"},
    {CLI_F64, "params-target", offsetof(args, params), "SHARE", .max = 1,
     .help = "remove this share of the weights"},
    {CLI_F64, "channels", offsetof(args, channels), "SHARE", .max = 1,
     .help = "remove this share of the channels of each layer"},
    {CLI_F64, "time-target", offsetof(args, time), "SHARE", .max = 1,
     .help = "remove this share of the time of a run, measured on this machine"},
    {CLI_FLAG, "zeros", offsetof(args, zeros),
     .help = "remove the channels that are zero already, of a masked network"},
    {CLI_STR, "importance", offsetof(args, importance), "IMPORTANCE", .def = "l2",
     .help = "what tells how much a channel matters"},
    {CLI_FLAG, "global", offsetof(args, global),
     .help = "let all layers compete, instead of taking the same share of each"},
    {CLI_F64, "most", offsetof(args, most), "SHARE", .def = "0.9", .max = 1,
     .help = "take at most this share of a layer's channels"},
    {CLI_INT, "multiple", offsetof(args, multiple), "N", .def = "8", .min = 1,
     .help = "leave a multiple of N channels: kernels like 8 or 16"},
    {CLI_STR, "keep", offsetof(args, keep), "REGEX",
     .help = "layers whose name matches keep their channels"},
    {CLI_FLAG, "mask", offsetof(args, mask),
     .help = "set channels to zero instead of cutting them out"},
    {CLI_STR, "prune-schedule", offsetof(args, schedule), "PRUNE-SCHEDULE", .def = "exponential",
     .help = "with --images: how the share grows to the target"},
    {CLI_INT, "prune-epochs", offsetof(args, epochs), "N", .def = "10", .min = 1,
     .help = "with --images: epochs in which it grows"},
    {CLI_INT, "prune-start", offsetof(args, start), "N", .def = "0",
     .help = "with --images: epochs before the first channel goes"},
    {CLI_INT, "bn-adapt", offsetof(args, bn_adapt), "N", .def = "0",
     .help = "with --images: do not train, but estimate the statistics of BatchNormalization anew "
             "on N pictures"},
#define OCT_FIELD           CLI_FIELD_ROW
#define OCT_FIELD_FILE(...) /* not typed, or an option of every command */
#define OCT_FIELD_QUANTIZE(...)
#define OCT_FIELD_QUANTIZE_ONLY(...)
#define OCT_FIELD_QAT(...)
#include <octet/recipe.def>
#undef OCT_FIELD
    CLI_OPT_RECIPE("read settings of training from a YAML or JSON file; options change what it "
                   "says"),
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
     "--eval-images val --eval-annotations val.json --epochs 30 --prune-epochs 10",
     "The same, little by little in ten of 30 epochs of training"},
    {"prune net.onnx -o small.onnx --flops-target 0.1 --importance bn_scale --images train "
     "--annotations train.json --bn-adapt 200",
     "Little, without training, but with statistics of norms that fit"},
    {"prune net.onnx -o small.onnx --channels 0.5 --importance l1 --multiple 16",
     "Half of the channels of each layer"},
    {"prune net.onnx -o small.onnx --flops-target 0.3 --global --keep head",
     "Where it hurts least, but not in the head"},
    {"prune net.onnx -o small.onnx --time-target 0.25", "A quarter faster on this machine"},
    {0},
};

static oct_status fill_options(cli *c, const args *a, oct_prune_options *o)
{
    oct_prune_options_init(o);
    o->flops_target = a->flops;
    o->params_target = a->params;
    o->channels = a->channels;
    o->time_target = a->time;
    o->zeros = a->zeros;
    o->importance = a->importance;
    o->global = a->global;
    o->most = a->most;
    o->multiple = (int32_t)(a->multiple > 1 << 20 ? 1 << 20 : a->multiple);
    o->keep = a->keep;
    o->mask = a->mask;
    if (a->flops > 0 || a->params > 0 || a->channels > 0 || a->time > 0 || a->zeros) return OCT_OK;
    return cli_missing(c, "how much to prune: --flops-target 0.4, --params-target, --channels, "
                          "--time-target or --zeros");
}

/* --- at once --- */

static oct_status prune(cli *c, const oct_recipe_job *s, const oct_prune_options *o)
{
    oct_graph *g = NULL, *small = NULL;
    oct_prune_result *r = NULL;
    oct_status st = cli_recipe_load_model(c, s, &g);

    if (!st) st = oct_prune_run(g, o, &small, &r);
    cli_progress_end(c);
    cli_hold_interrupts();
    if (!st) st = cli_model_save(c, small, s->output, false);
    cli_release_interrupts();
    if (!st && c->opt.json)
        st = cli_prune_print_json(c, r, s->output, false);
    else if (!st && !c->opt.quiet)
        cli_prune_print(r, s->model, s->output);
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

/* --- while training --- */

static oct_status train(cli *c, const args *a, const oct_prune_options *o, char **files)
{
    oct_train_pruning p = {.struct_size = sizeof(p),
                           .prune = o,
                           .schedule = a->schedule,
                           .steps = (int32_t)(a->epochs > 1 << 20 ? 1 << 20 : a->epochs),
                           .start = (int32_t)(a->start > 1 << 20 ? 1 << 20 : a->start)};
    cli_train_job j = {.c = c, .a = &a->train};

    if (o->mask) return cli_fail(c, OCT_ERR_ARG, "--mask is for pruning without --images");
    j.norm_pictures = (int32_t)(a->bn_adapt > 1 << 20 ? 1 << 20 : a->bn_adapt);
    /* All at once: the network is cut first, and trains faster. */
    if (j.norm_pictures || (strcmp(a->schedule, "baseline") == 0 && !a->start))
        j.cut = o;
    else
        j.prune = &p;
    return cli_train_job_run(&j, files);
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    oct_recipe_job s = {.struct_size = sizeof(s)};
    oct_recipe_train_job pictures = {.struct_size = sizeof(pictures)};
    oct_recipe *r = NULL;
    oct_prune_options o;
    oct_status st;

    st = cli_recipe_read(c, &a->train.recipe, files, &r);
    if (!st) {
        oct_recipe_get_job(r, &s);
        oct_recipe_get_train_job(r, &pictures);
        st = fill_options(c, a, &o);
    }
    if (!st && pictures.n_images) {
        st = train(c, a, &o, files);
    } else if (!st) {
        st = check_files(c, &s);
        if (!st) st = prune(c, &s, &o);
        if (st) cli_recipe_keep_reason(c, st);
        c->model = NULL;
    }
    oct_recipe_free(r);
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
        "labels that is done here: the share grows from epoch to epoch (--prune-schedule), "
        "channels "
        "are zero while others learn to do without them, and are cut out in the end. All options "
        "of "
        "octet train hold; the best epoch is one after the last channel went. Prune before "
        "quantizing.\n\n"
        "With --json: output, macs, params and channels with what is left of each, groups, "
        "groups_protected, layers (name, op, channels, inputs, macs, params with what is left, "
        "why, "
        "at). With --images: before that a line for each epoch, as octet train has it.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
