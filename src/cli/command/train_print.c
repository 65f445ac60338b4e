/* SPDX-License-Identifier: Apache-2.0 */
/* What octet train shows: a row for each epoch as it comes, or a line of JSON. */
#include "cli/command/train.h"
#include "cli/term/json.h"
#include "cli/term/table.h"

/* What a quantization-aware training begins with. */
static void print_quantized(const oct_train *t)
{
    const oct_quantized *q = oct_train_quantized(t);
    oct_quantize_summary s = {.struct_size = sizeof(s)};

    if (!q) return;
    oct_quantized_summary(q, &s);
    cli_fact(stdout, 12, "integer", "%d of %d layers, calibrated on %lld pictures for %s",
             (int)s.layers_quantized, (int)s.layers_total, (long long)s.images, s.best_for);
    if (s.tail) cli_fact(stdout, 12, "float", "%s", s.tail);
}

void cli_train_print_start(cli *c, const cli_training *t)
{
    oct_train_info i = {.struct_size = sizeof(i)};
    char bytes[CLI_UNIT_SIZE], weights[CLI_UNIT_SIZE];

    oct_train_describe(t->train, &i);
    if (c->opt.json || c->opt.quiet) return;
    cli_fact(stdout, 12, "loss", "%s: %s", i.loss, i.why);
    cli_fact(stdout, 12, "settings", "%s, rate %g %s, weight decay %g, average %s, pictures %s",
             i.optimizer, i.rate, i.schedule, i.weight_decay, i.ema, i.augment);
    print_quantized(t->train);
    cli_fact(stdout, 12, "network", "%lld of %lld parameters are trained (%s weights)",
             (long long)i.n_trained, (long long)i.n_params,
             cli_count((double)i.n_weights, weights));
    cli_fact(stdout, 12, "work", "%d epochs of %lld batches of %d pictures; %s of memory",
             (int)i.epochs, (long long)i.batches, (int)i.batch, cli_bytes((double)i.bytes, bytes));
    cli_fact(stdout, 12, "precision", "%s", i.precision);
    (void)printf("\n%6s %10s", "epoch", "loss");
    for (int k = 0; i.parts[k]; k++)
        (void)printf(" %9.9s", i.parts[k]);
    (void)printf(" %9s %8s %8s %8s\n", "rate", t->is_classifier ? "top 1" : "AP",
                 t->is_classifier ? "" : "AP50", "time");
}

static oct_status print_json(cli *c, const cli_training *t, const oct_train_info *i)
{
    cli_json *j = cli_json_object(), *parts = cli_json_object();
    oct_status st;

    for (int k = 0; i->parts[k]; k++)
        cli_json_num(parts, i->parts[k], t->epoch.parts[k]);
    cli_json_int(j, "epoch", t->epoch.epoch);
    cli_json_int(j, "step", t->epoch.step);
    cli_json_num(j, "loss", t->epoch.loss);
    cli_json_add(j, "parts", parts);
    cli_json_num(j, "rate", t->epoch.rate);
    cli_json_num(j, "grad_norm", t->epoch.grad_norm);
    cli_json_round(j, "seconds", t->epoch.seconds, 3);
    cli_json_round(j, "data_seconds", t->epoch.data_seconds, 3);
    if (t->is_measured && !t->is_classifier) {
        cli_json_num(j, "ap", t->result.box.ap);
        cli_json_num(j, "ap50", t->result.box.ap50);
    }
    if (t->is_measured && t->is_classifier) cli_json_num(j, "top1", t->result.top1);
    cli_json_bool(j, "best", t->is_best);
    st = cli_json_line(c, j);
    cli_json_free(j);
    return st;
}

oct_status cli_train_print_epoch(cli *c, const cli_training *t)
{
    oct_train_info i = {.struct_size = sizeof(i)};
    char time[CLI_UNIT_SIZE];

    oct_train_describe(t->train, &i);
    if (c->opt.json) return print_json(c, t, &i);
    (void)printf("%6d %10.4f", (int)t->epoch.epoch, t->epoch.loss);
    for (int k = 0; i.parts[k]; k++)
        (void)printf(" %9.4f", t->epoch.parts[k]);
    (void)printf(" %9.2e", t->epoch.rate);
    if (t->is_measured && !t->is_classifier)
        (void)printf(" %8.4f %8.4f", t->result.box.ap, t->result.box.ap50);
    else if (t->is_measured)
        (void)printf(" %8.4f %8s", t->result.top1, "");
    else
        (void)printf(" %8s %8s", "", "");
    (void)printf(" %8s%s\n", cli_time(t->epoch.seconds * 1e9, time), t->is_best ? "  best" : "");
    (void)fflush(stdout);
    return OCT_OK;
}

oct_status cli_train_print_end(cli *c, const cli_training *t, const char *output,
                               const char *folder)
{
    cli_json *j;
    oct_status st;

    if (!c->opt.json) {
        if (t->best_epoch)
            cli_say(stdout, "%s: the network of epoch %d (%s %.4f); checkpoints in %s", output,
                    (int)t->best_epoch, t->is_classifier ? "top 1" : "AP", t->best, folder);
        else
            cli_say(stdout, "%s: the network of the last epoch; checkpoints in %s", output, folder);
        return OCT_OK;
    }
    j = cli_json_object();
    cli_json_str(j, "output", output);
    if (t->best_epoch) {
        cli_json_int(j, "best_epoch", t->best_epoch);
        cli_json_num(j, "best", t->best);
    }
    cli_json_str(j, "checkpoints", folder);
    st = cli_json_line(c, j);
    cli_json_free(j);
    return st;
}
