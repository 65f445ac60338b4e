/* SPDX-License-Identifier: Apache-2.0 */
/* octet prune: a network with fewer channels, at once or while it is trained. */
#include <string.h>

#include "cli/command/prune.h"
#include "cli/command/train.h"
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
    {"prune net.onnx -o small.onnx --channels 0.5 --importance l1 --multiple 16",
     "Half of the channels of each layer"},
    {"prune net.onnx -o small.onnx --flops-target 0.3 --global --keep head",
     "Where it hurts least, but not in the head"},
    {"prune net.onnx -o small.onnx --time-target 0.25", "A quarter faster on this machine"},
    {0},
};

/* Labels give gradients; a network that is compared with itself has none. */
static bool has_gradients(const oct_recipe *r)
{
    oct_recipe_train_job pictures = {.struct_size = sizeof(pictures)};
    oct_train_options o;

    oct_train_options_init(&o);
    oct_recipe_get_train_job(r, &pictures);
    oct_recipe_get_train(r, &o);
    return pictures.n_images > 0 && !(o.loss && strcmp(o.loss, "distill") == 0);
}

/*
 * What to prune, by the recipe and what was typed. Gradients tell far more than weights do, and
 * between layers, too; no layer is to lose much more than the whole network.
 */
static oct_status fill_options(cli *c, const oct_recipe *r, oct_prune_options *o)
{
    double most, target;

    oct_prune_options_init(o);
    most = o->most;
    o->importance = NULL;
    o->most = 0;
    oct_recipe_get_prune(r, o);
    target = o->flops_target + o->params_target + o->channels; /* one of them */
    if (!o->importance && has_gradients(r)) {
        o->importance = "taylor";
        o->global = 1;
        most = target + .2 < most ? target + .2 : most;
    }
    if (!o->importance) o->importance = "l2";
    if (o->most == 0) o->most = most; /* it was not given */
    if (o->flops_target > 0 || o->params_target > 0 || o->channels > 0 || o->time_target > 0 ||
        o->zeros)
        return OCT_OK;
    return cli_missing(c, "how much to prune: --flops-target 0.4, --params-target, --channels, "
                          "--time-target or --zeros");
}

/* --- at once --- */

/* The page shows layers before and after. */
static oct_status report(cli *c, const cli_train_args *a, const oct_recipe_job *s,
                         oct_prune_result *r)
{
    const cli_train_job j = {.c = c, .a = a, .settings = *s, .pruned = r};

    return cli_train_report_pruned(&j);
}

static oct_status prune(cli *c, const cli_train_args *a, const oct_recipe_job *s,
                        const oct_prune_options *o)
{
    oct_graph *g = NULL, *small = NULL;
    oct_prune_result *r = NULL;
    oct_status st = cli_recipe_load_model(c, s, &g);

    if (!st) st = oct_prune_run(g, o, &small, &r);
    cli_progress_end(c);
    cli_hold_interrupts();
    if (!st) st = cli_model_save(c, small, s->output, false);
    cli_release_interrupts();
    if (!st) st = report(c, a, s, r);
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

static oct_status train(cli *c, const cli_train_args *a, const oct_recipe *r,
                        const oct_prune_options *o, char **files)
{
    oct_train_pruning p = {.struct_size = sizeof(p), .steps = 0};
    oct_recipe_train_job pictures = {.struct_size = sizeof(pictures)};
    cli_train_job j = {.c = c, .a = a};

    if (o->mask) return cli_fail(c, OCT_ERR_ARG, "--mask is for pruning without --images");
    oct_recipe_get_pruning(r, &p);
    if (!p.schedule) p.schedule = p.steps || p.start ? "exponential" : "baseline";
    if (!p.steps) p.steps = 10;
    oct_recipe_get_train_job(r, &pictures);
    p.prune = o;
    j.norm_pictures = pictures.prune_bn_adapt;
    /* All at once: the network is cut first, and trains faster. */
    if (j.norm_pictures || (strcmp(p.schedule, "baseline") == 0 && !p.start))
        j.cut = o;
    else
        j.prune = &p;
    return cli_train_job_run(&j, files);
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const cli_train_args *a = argp;
    oct_recipe_job s = {.struct_size = sizeof(s)};
    oct_recipe_train_job pictures = {.struct_size = sizeof(pictures)};
    oct_recipe *r = NULL;
    oct_prune_options o;
    oct_status st;

    st = cli_recipe_read(c, &a->recipe, files, &r);
    if (!st) {
        oct_recipe_get_job(r, &s);
        oct_recipe_get_train_job(r, &pictures);
        st = fill_options(c, r, &o);
    }
    if (!st && a->recipe.print_recipe) {
        st = cli_recipe_print(r);
    } else if (!st && pictures.n_images) {
        st = train(c, a, r, &o, files);
    } else if (!st) {
        st = check_files(c, &s);
        if (!st && a->report) st = cli_report_check(c, a->report, false);
        if (!st) st = prune(c, a, &s, &o);
    }
    if (st) cli_recipe_keep_reason(c, st);
    c->model = NULL;
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
