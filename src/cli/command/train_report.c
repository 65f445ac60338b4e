/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a training: its epochs as curves, written anew after each of them. */
#include <stdlib.h>
#include <string.h>

#include "cli/command/train.h"
#include "cli/model.h"
#include "cli/report/report.h"

static oct_report_epoch row_of(const cli_training *t)
{
    oct_report_epoch e = {.epoch = t->epoch.epoch,
                          .loss = t->epoch.loss,
                          .rate = t->epoch.rate,
                          .accuracy = -1,
                          .other_accuracy = -1,
                          .seconds = t->epoch.seconds};

    memcpy(e.parts, t->epoch.parts, sizeof(e.parts));
    if (t->is_measured && t->is_classifier) e.accuracy = t->result.top1;
    if (t->is_measured && !t->is_classifier) {
        e.accuracy = t->result.box.ap;
        e.other_accuracy = t->result.box.ap50;
    }
    return e;
}

static void keep_epoch(cli_training *t)
{
    oct_report_epoch *longer = cli_alloc((size_t)t->n_epochs + 1, sizeof(*longer));

    if (t->n_epochs) memcpy(longer, t->epochs, (size_t)t->n_epochs * sizeof(*longer));
    longer[t->n_epochs++] = row_of(t);
    free(t->epochs);
    t->epochs = longer;
}

static oct_status write_report(const cli_train_job *j, const oct_report_network *networks, int n)
{
    const cli_training *t = &j->t;
    oct_train_info info = {.struct_size = sizeof(info)};
    char *title, *command, *machine, *versions, *path;
    oct_report r;
    oct_status st;

    if (t->train) oct_train_describe(t->train, &info);
    title = cli_report_title(j->settings.output);
    command = cli_report_command(j->c);
    machine = cli_report_machine(j->c);
    versions = cli_report_versions();
    path = cli_format("%s \xe2\x86\x92 %s", j->settings.model, j->settings.output);
    oct_report_init(&r);
    r.title = title;
    r.float_path = path;
    r.command = command;
    r.machine = machine;
    r.versions = versions;
    r.recipe = j->options.settings;
    r.is_classifier = t->is_classifier;
    r.epochs = t->epochs;
    r.n_epochs = t->n_epochs;
    r.epochs_planned = info.epochs;
    r.best_epoch = t->best_epoch;
    r.loss_parts = info.parts;
    r.networks = networks;
    r.n_networks = n;
    r.pruned = j->pruned;
    st = oct_report_write(j->c->ctx, &r, j->a->report);
    free(title);
    free(command);
    free(machine);
    free(versions);
    free(path);
    return st;
}

oct_status cli_train_report(cli_train_job *j)
{
    if (!j->a->report || j->output) return OCT_OK; /* of two trainings, the last one */
    keep_epoch(&j->t);
    return write_report(j, NULL, 0);
}

oct_status cli_train_report_networks(cli_train_job *j, const oct_report_network *networks, int n)
{
    return j->a->report ? write_report(j, networks, n) : OCT_OK;
}

oct_status cli_train_report_pruned(const cli_train_job *j)
{
    return j->a->report && !j->output && j->pruned ? write_report(j, NULL, 0) : OCT_OK;
}
