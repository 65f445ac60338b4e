/* SPDX-License-Identifier: Apache-2.0 */
/* Saving a training job, and going on with it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ctx.h"
#include "train/checkpoint.h"
#include "train/train.h"

#define NOTE_BATCH "batch" /* of the epoch at work, from 0: what comes next; all: its end */
#define NOTE_BEST  "best"  /* EPOCH ACCURACY */

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
    const oct_prop notes[] = {{NOTE_BATCH, batch}, {NOTE_BEST, best}};
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

oct_status oct_checkpoint_load(oct_ctx *ctx, const char *path, oct_graph **out)
{
    OCT_ENTER(ctx);
    oct_checkpoint *c = NULL;
    oct_graph *g = NULL;
    oct_status st;

    OCT_TRY(oct_checkpoint_open(ctx, path, &c));
    st = oct_checkpoint_quantized(c, &g);
    if (!st && !g) st = oct_checkpoint_graph(c, oct_checkpoint_has_ema(c), &g);
    if (!st) *out = g;
    oct_checkpoint_close(c);
    return st;
}
