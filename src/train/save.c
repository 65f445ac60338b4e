/* SPDX-License-Identifier: Apache-2.0 */
/* Saving a training job, and going on with it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ctx.h"
#include "base/sized.h"
#include "prune/sparsity.h"
#include "train/checkpoint.h"
#include "train/train.h"

#define NOTE_BATCH  "batch"    /* of the epoch at work, from 0: what comes next; all: its end */
#define NOTE_BEST   "best"     /* EPOCH ACCURACY */
#define NOTE_PRUNE  "prune"    /* channels are zero that may be cut out: "all", or "some" of them */
#define NOTE_SPARSE "sparsity" /* weights are zero */

static void describe(const oct_train *t, oct_run_state *r)
{
    *r = (oct_run_state){
        .g = oct_train_net_source(t->net),
        .params = oct_train_net_params(t->net),
        .states = oct_train_net_stats(t->net),
        .weights = oct_train_net_weights(t->net),
        .stats = oct_train_net_running(t->net),
        .ema_weights = t->ema_weights,
        .ema_stats = t->ema_running,
        .optimizer = (oct_optimizer *)&t->optimizer,
        .ema = t->s.ema ? t->s.ema->name : NULL,
        .ema_total = (int64_t)t->s.epochs * t->s.schedule.steps_per_epoch,
        .ema_updates = t->ema_updates,
        .step = t->optimizer.t,
        .epoch = t->epoch,
        .seed = t->seed,
        .recipe = t->recipe ? t->recipe : "",
    };
}

oct_status oct_train_save(const oct_train *t, const char *path)
{
    OCT_ENTER(t->ctx);
    char batch[32], best[64];
    oct_prop notes[4] = {{NOTE_BATCH, batch}, {NOTE_BEST, best}};
    oct_graph *quantized = NULL;
    oct_run_state r;
    oct_status st = OCT_OK;

    describe(t, &r);
    if (t->qat) st = oct_train_graph(t, &quantized);
    if (st) return st;
    r.quantized = quantized;
    (void)snprintf(batch, sizeof(batch), "%" PRId64, t->batch);
    r.notes = notes;
    (void)snprintf(best, sizeof(best), "%d %.17g", (int)t->best_epoch, t->best);
    r.n_notes = 2;
    if (t->pruning)
        notes[r.n_notes++] =
            (oct_prop){NOTE_PRUNE, oct_pruning_is_done(t->pruning, t->epoch) ? "all" : "some"};
    if (t->sparsity) notes[r.n_notes++] = (oct_prop){NOTE_SPARSE, "yes"};
    st = oct_checkpoint_save(t->ctx, path, &r);
    oct_graph_free(quantized);
    return st;
}

static oct_status read_batch(oct_train *t, const oct_checkpoint *c, const char *path, int64_t *out)
{
    const char *text = oct_checkpoint_note(c, NOTE_BATCH);
    char *end = NULL;

    *out = text ? strtoll(text, &end, 10) : -1;
    if (!text || *end || *out < 0 || *out > t->n_batches)
        return oct_fail(t->ctx, OCT_ERR_FORMAT,
                        "%s: the checkpoint does not say which of %" PRId64 " batches comes next; "
                        "is it of other pictures?",
                        path, t->n_batches);
    return OCT_OK;
}

static void read_best(oct_train *t, const oct_checkpoint *c)
{
    const char *text = oct_checkpoint_note(c, NOTE_BEST);
    char *end = NULL;
    long epoch;

    if (!text) return;
    epoch = strtol(text, &end, 10);
    if (epoch < 1 || epoch > t->epoch || *end != ' ') return;
    t->best_epoch = (int32_t)epoch;
    t->best = strtod(end, NULL);
}

void oct_train_set_best(oct_train *t, int32_t epoch, double accuracy)
{
    t->best_epoch = epoch;
    t->best = accuracy;
}

int32_t oct_train_best(const oct_train *t, double *accuracy)
{
    *accuracy = t->best;
    return t->best_epoch;
}

static oct_status restore(oct_train *t, const oct_checkpoint *c, const char *path)
{
    oct_run_state r;
    int64_t batch;

    OCT_TRY(oct_checkpoint_check_recipe(c, t->recipe ? t->recipe : ""));
    OCT_TRY(read_batch(t, c, path, &batch));
    describe(t, &r);
    OCT_TRY(oct_checkpoint_restore(c, &r));
    if (r.seed != t->seed)
        return oct_fail(t->ctx, OCT_ERR_ARG, "%s: seed is %" PRIu64 " there, and %" PRIu64 " here",
                        path, r.seed, t->seed);
    if (r.epoch < 0 || r.epoch > t->s.epochs)
        return oct_fail(t->ctx, OCT_ERR_FORMAT, "%s: epoch %" PRId64 " of %d is not possible", path,
                        r.epoch, (int)t->s.epochs);
    t->epoch = r.epoch;
    t->batch = batch;
    t->ema_updates = r.ema_updates;
    read_best(t, c);
    return OCT_OK;
}

oct_status oct_train_resume(oct_train *t, const char *path)
{
    OCT_ENTER(t->ctx);
    oct_checkpoint *c = NULL;
    oct_status st;

    if (t->optimizer.t > 0)
        return oct_fail(t->ctx, OCT_ERR_STATE, "a job that was begun cannot resume another one");
    OCT_TRY(oct_checkpoint_open(t->ctx, path, &c));
    st = restore(t, c, path);
    oct_checkpoint_close(c);
    return st;
}

oct_status oct_train_begin_with(oct_train *t, const char *path)
{
    OCT_ENTER(t->ctx);
    oct_checkpoint *c = NULL;
    oct_run_state r;
    oct_status st;

    if (t->optimizer.t > 0)
        return oct_fail(t->ctx, OCT_ERR_STATE,
                        "a job that was begun cannot begin with another one");
    OCT_TRY(oct_checkpoint_open(t->ctx, path, &c));
    describe(t, &r);
    r.optimizer = NULL;
    r.ema = NULL;
    st = oct_checkpoint_take(c, &r);
    oct_checkpoint_close(c);
    if (!st && t->s.ema) {
        oct_ema_start(t->s.ema, t->ema_weights, oct_train_net_weights(t->net), r.params->len);
        oct_ema_start(t->s.ema, t->ema_running, oct_train_net_running(t->net), r.states->len);
    }
    return st;
}

/* --- networks --- */

/* Channels that pruning set to zero. */
static oct_status cut(oct_graph **g, oct_prune_result **result)
{
    oct_prune_options o;
    oct_graph *small = NULL;
    oct_status st;

    oct_prune_options_init(&o);
    o.zeros = 1;
    st = oct_prune_run(*g, &o, &small, result);
    oct_graph_free(*g);
    *g = small;
    return st;
}

oct_status oct_checkpoint_load_pruned(oct_ctx *ctx, const char *path, oct_graph **out,
                                      oct_prune_result **result)
{
    OCT_ENTER(ctx);
    oct_checkpoint *c = NULL;
    oct_graph *g = NULL;
    oct_status st;

    if (result) *result = NULL;
    OCT_TRY(oct_checkpoint_open(ctx, path, &c));
    st = oct_checkpoint_quantized(c, &g);
    if (!st && !g) {
        st = oct_checkpoint_graph(c, oct_checkpoint_has_ema(c), &g);
        if (!st && oct_checkpoint_note(c, NOTE_PRUNE)) st = cut(&g, result);
        if (!st && oct_checkpoint_note(c, NOTE_SPARSE)) st = oct_sparse_tell(g, NULL);
    }
    if (st)
        oct_graph_free(g);
    else
        *out = g;
    oct_checkpoint_close(c);
    return st;
}

oct_status oct_checkpoint_load(oct_ctx *ctx, const char *path, oct_graph **out)
{
    OCT_ENTER(ctx);
    return oct_checkpoint_load_pruned(ctx, path, out, NULL);
}

oct_status oct_checkpoint_describe(oct_ctx *ctx, const char *path, oct_checkpoint_info *out)
{
    OCT_ENTER(ctx);
    oct_checkpoint_info all = {.struct_size = sizeof(all)};
    oct_checkpoint *c = NULL;
    const char *prune;

    OCT_TRY(oct_checkpoint_open(ctx, path, &c));
    prune = oct_checkpoint_note(c, NOTE_PRUNE);
    all.epoch = oct_checkpoint_epoch(c);
    all.is_quantized = oct_checkpoint_is_quantized(c);
    all.is_pruned = !prune ? 0 : strcmp(prune, "all") == 0 ? 1 : 2;
    all.is_sparse = oct_checkpoint_note(c, NOTE_SPARSE) != NULL;
    oct_checkpoint_close(c);
    oct_sized_give(out, &all, sizeof(all));
    return OCT_OK;
}
