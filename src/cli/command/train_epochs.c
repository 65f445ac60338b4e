/* SPDX-License-Identifier: Apache-2.0 */
/* The epochs of a training: each is measured, saved and shown; in the end the network is written.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command/prune.h"
#include "cli/command/train.h"
#include "cli/cpu.h"
#include "cli/model.h"

/* --- epochs --- */

oct_status cli_train_measure(cli_train_job *j, const oct_graph *g, double *accuracy)
{
    oct_eval_options o;
    oct_status st;

    oct_eval_options_init(&o);
    o.family = j->options.family;
    o.preprocess = j->options.preprocess;
    o.names = j->names;
    o.loader_threads = oct_ctx_threads(j->c->ctx);
    j->t.result.struct_size = sizeof(j->t.result);
    st = oct_eval_run(g, j->truth, &o, &j->t.result, NULL);
    cli_progress_end(j->c);
    if (!st) *accuracy = j->t.is_classifier ? j->t.result.top1 : j->t.result.box.ap;
    return st;
}

static oct_status measure(cli_train_job *j, double *accuracy)
{
    oct_graph *g = NULL;
    oct_status st = oct_train_graph(j->t.train, &g);

    if (!st) st = cli_train_measure(j, g, accuracy);
    oct_graph_free(g);
    if (st) return st;
    j->t.is_measured = true;
    st = oct_train_log(j->t.train, j->t.is_classifier ? "accuracy/top1" : "accuracy/AP", *accuracy);
    if (!st && !j->t.is_classifier)
        st = oct_train_log(j->t.train, "accuracy/AP50", j->t.result.box.ap50);
    return st;
}

/* Is accuracy measured after this epoch? */
static bool is_due(const cli_train_job *j)
{
    const int32_t every = j->files.eval_every > 0 ? j->files.eval_every : 1;

    return j->truth && (j->t.epoch.epoch % every == 0 || oct_train_is_done(j->t.train));
}

/* A network that still has more channels is no candidate for the best one. */
static bool is_pruned(const cli_train_job *j)
{
    return !j->prune || j->t.epoch.epoch >= j->prune->start + j->prune->steps;
}

static oct_status finish_epoch(cli_train_job *j)
{
    cli_training *t = &j->t;
    double accuracy = -1;
    oct_status st = OCT_OK;

    t->is_measured = t->is_best = false;
    if (is_due(j) && (st = measure(j, &accuracy))) return st;
    if (t->is_measured && accuracy > t->best && is_pruned(j)) {
        t->is_best = true;
        t->best = accuracy;
        t->best_epoch = t->epoch.epoch;
        oct_train_set_best(t->train, t->best_epoch, t->best);
        st = oct_train_save(t->train, j->best);
    }
    if (!st && (t->is_best || !j->truth)) st = cli_table_keep(j);
    if (!st) st = oct_train_save(t->train, j->last);
    if (!st) st = cli_train_report(j);
    return st ? st : cli_train_print_epoch(j->c, t);
}

/* Between two steps everything is whole: what was learned is kept. */
static oct_status stop(cli_train_job *j)
{
    const oct_status st = oct_train_save(j->t.train, j->last);

    cli_progress_end(j->c);
    if (!st) cli_note(j->c, "stopped; --resume %s goes on from here", j->last);
    return st ? st : OCT_ERR_CANCELLED;
}

static bool is_patient(const cli_train_job *j)
{
    const int32_t since = j->t.epoch.epoch - j->t.best_epoch;

    if (j->least >= 0 && j->t.best_epoch && j->t.best >= j->least) return false; /* good enough */

    return j->files.patience < 1 || !j->t.best_epoch || since < j->files.patience;
}

oct_status cli_train_epochs(cli_train_job *j)
{
    cli_training *t = &j->t;
    oct_status st = OCT_OK;

    t->best_epoch = oct_train_best(t->train, &t->best);
    if (!t->best_epoch) t->best = -1;
    t->epoch.struct_size = sizeof(t->epoch);
    cli_train_print_start(j->c, t);
    cli_hold_interrupts(); /* a step may be long: what was learned is saved before the end */
    while (!st && !oct_train_is_done(t->train) && is_patient(j)) {
        st = oct_train_run(t->train, &t->epoch);
        cli_progress_end(j->c);
        if (!st) st = finish_epoch(j);
    }
    if (st == OCT_ERR_CANCELLED) st = stop(j);
    cli_release_interrupts();
    return st;
}

/* Channels that pruning set to zero are cut out. */
static oct_status cut_zeros(cli_train_job *j, oct_graph **g)
{
    oct_prune_options o;
    oct_graph *cut = NULL;
    oct_status st;

    oct_prune_options_init(&o);
    o.zeros = 1;
    st = oct_prune_run(*g, &o, &cut, &j->pruned);
    oct_graph_free(*g);
    *g = cut;
    return st;
}

/* The best epoch if accuracy was measured, else the last one. */
oct_status cli_train_write(cli_train_job *j)
{
    oct_graph *g = NULL;
    oct_status st;

    if (j->t.best_epoch && access(j->best, R_OK)) { /* resumed with another folder */
        cli_note(j->c, "%s is not there: the network of the last epoch is written", j->best);
        j->t.best_epoch = 0;
    }
    if (j->t.best_epoch) {
        st = oct_checkpoint_load_pruned(j->c->ctx, j->best, &g, j->prune ? &j->pruned : NULL);
    } else {
        st = oct_train_graph(j->t.train, &g);
        if (!st && j->prune) st = cut_zeros(j, &g);
    }
    if (!st) st = cli_model_keep_outputs(j->c, j->settings.outputs, g);
    if (!st) st = cli_model_save(j->c, g, j->settings.output, false);
    oct_graph_free(g);
    return st;
}

/* --- the command --- */

static oct_status print_pruned(cli_train_job *j)
{
    if (j->c->opt.json) return cli_prune_print_json(j->c, j->pruned, j->settings.output, true);
    if (!j->c->opt.quiet) cli_prune_print(j->pruned, j->settings.model, j->settings.output);
    return OCT_OK;
}

static oct_status work(cli_train_job *j)
{
    oct_status st;

    cli_train_read(j);
    if ((st = cli_train_check(j))) return st;
    if ((st = cli_train_open(j))) return st;
    if (j->a->show_batch) return oct_train_draw_batch(j->t.train, j->a->show_batch);
    if (!j->norm_pictures && (st = cli_train_epochs(j))) return st;
    if ((st = cli_train_write(j))) return st;
    if (j->norm_pictures)
        (void)rmdir(j->folder); /* it has no checkpoints */
    else
        st = cli_train_print_end(j->c, &j->t, j->settings.output, j->folder);
    if (!st) st = cli_train_report_pruned(j);
    if (!st && j->pruned) st = print_pruned(j);
    if (!st && j->a->table && j->is_qat) st = cli_table_print_all(j);
    return st ? st : cli_train_check_goal(j);
}

oct_status cli_train_job_run(cli_train_job *j)
{
    const oct_status st = work(j);

    if (st) cli_recipe_keep_reason(j->c, st);
    j->c->model = NULL;
    oct_train_free(j->t.train);
    oct_prune_result_free(j->pruned);
    oct_class_names_free(j->names);
    oct_dataset_close(j->calibration);
    oct_dataset_close(j->truth);
    oct_dataset_close(j->images);
    oct_graph_free(j->teacher);
    oct_graph_free(j->uncut);
    oct_graph_free(j->g);
    free(j->folder);
    free(j->last);
    free(j->best);
    free(j->folded);
    free(j->ptq);
    free(j->unaligned);
    free(j->t.epochs);
    return st;
}
