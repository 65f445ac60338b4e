/* SPDX-License-Identifier: Apache-2.0 */
/* A training job, run epoch by epoch. */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/ctx.h"
#include "base/machine.h"
#include "base/sized.h"
#include "detect/detector.h"
#include "optim/gradients.h"
#include "prune/sparsity.h"

void oct_train_options_init_sized(oct_train_options *o, size_t struct_size)
{
    const oct_train_options all = {.struct_size = struct_size};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

/* Updates of the weights in an epoch. */
int64_t oct_train_updates_of_epoch(const oct_train *t)
{
    return (t->n_batches + t->s.accumulate - 1) / t->s.accumulate;
}

oct_status oct_train_new(const oct_graph *g, oct_dataset *data, const oct_train_options *options,
                         oct_train **out)
{
    OCT_ENTER(g->ctx);
    oct_quantize_options quantize;
    oct_train_options o;
    oct_train *t = oct_calloc(g->ctx, 1, sizeof(*t));
    oct_status st = OCT_OK;

    if (!t) return OCT_ERR_MEMORY;
    oct_train_options_init(&o);
    if (options) memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    if (o.quantize) {
        oct_quantize_options_init(&quantize);
        memcpy(&quantize, o.quantize, OCT_MIN(o.quantize->struct_size, sizeof(quantize)));
        quantize.struct_size = sizeof(quantize);
        o.quantize = &quantize;
    }
    t->ctx = g->ctx;
    t->seed = o.seed;
    t->n_threads = oct_ctx_threads(g->ctx);
    if (o.settings && !(t->recipe = oct_strdup(g->ctx, o.settings))) st = OCT_ERR_MEMORY;
    if (!st) st = oct_train_build(t, g, data, &o);
    if (st) {
        oct_train_free(t);
        return st;
    }
    *out = t;
    return OCT_OK;
}

void oct_train_free(oct_train *t)
{
    if (!t) return;
    oct_batches_free(t->batches);
    oct_optimizer_fini(&t->optimizer);
    oct_free(t->ctx, t->grads);
    oct_free(t->ctx, t->sum);
    oct_free(t->ctx, t->ranking);
    oct_free(t->ctx, t->ema_weights);
    oct_free(t->ctx, t->ema_running);
    oct_events_close(t->events);
    oct_free(t->ctx, t->recipe);
    oct_train_net_free(t->net);
    oct_qat_free(t->qat);
    oct_pruning_free(t->pruning);
    oct_sparse_training_free(t->sparsity);
    oct_detector_free(t->detector);
    oct_free(t->ctx, t);
}

/* --- steps --- */

/* Sums over the steps of an epoch, for the report. */
typedef struct means {
    double loss, parts[OCT_LOSS_MAX_PARTS], norm, rate;
    int64_t n, n_updates;
    int64_t data_ns;
} means;

static oct_status forward_backward(oct_train *t, means *m)
{
    int64_t n = 0;
    int32_t n_parts = 0;
    float *images = oct_train_net_images(t->net, &n), *labels = oct_train_net_labels(t->net, &n);
    const int64_t start = oct_time_ns();
    const float *parts;

    OCT_TRY(oct_batches_next(t->batches, images, labels, NULL));
    m->data_ns += oct_time_ns() - start;
    OCT_TRY(oct_train_net_step(t->net));
    if (!isfinite(oct_train_net_loss(t->net))) return oct_train_blame(t, "the loss");
    m->loss += oct_train_net_loss(t->net);
    parts = oct_train_net_parts(t->net, &n_parts);
    for (int32_t i = 0; i < n_parts && i < OCT_LOSS_MAX_PARTS; i++)
        m->parts[i] += (double)parts[i];
    m->n++;
    return OCT_OK;
}

/* Updates of the whole training. */
static int64_t updates_of_all(const oct_train *t)
{
    return (int64_t)t->s.epochs * oct_train_updates_of_epoch(t);
}

/* The weights follow the gradients of `n` micro-batches. */
static oct_status update(oct_train *t, int64_t n, means *m)
{
    oct_params *p = oct_train_net_params(t->net);
    oct_grad_norm norm;
    oct_rates rates;
    double scale;

    if (t->sum) oct_params_pointers(p, t->sum, t->grads);
    oct_grads_norm(p, t->grads, t->n_threads, &norm);
    if (norm.bad >= 0) return oct_train_blame(t, p->v[norm.bad].name);
    scale = 1.0 / (double)n;
    m->norm += norm.norm * scale;
    scale *= oct_grads_clip(norm.norm * scale, t->s.clip);
    oct_schedule_at(&t->s.schedule, t->optimizer.t, &rates);
    oct_optimizer_step(&t->optimizer, oct_train_net_weights(t->net), t->grads, scale, &rates,
                       t->n_threads);
    m->rate = rates.lr;
    m->n_updates++;
    return OCT_OK;
}

static void average(oct_train *t)
{
    const int64_t total = updates_of_all(t), n = ++t->ema_updates;
    const oct_params *p = oct_train_net_params(t->net), *stats = oct_train_net_stats(t->net);

    oct_ema_update(t->s.ema, 0, n, total, t->ema_weights, oct_train_net_weights(t->net), p->len,
                   t->n_threads);
    oct_ema_update(t->s.ema, 0, n, total, t->ema_running, oct_train_net_running(t->net), stats->len,
                   t->n_threads);
}

/* One update of the weights: `accumulate` batches, or those that are left of the epoch. */
static oct_status train_update(oct_train *t, means *m)
{
    const int64_t n = OCT_MIN((int64_t)t->s.accumulate, t->n_batches - t->batch);
    oct_params *p = oct_train_net_params(t->net);

    if (t->qat) OCT_TRY(oct_qat_freeze(t->qat, t->net, t->optimizer.t, updates_of_all(t)));
    for (int64_t i = 0; i < n; i++) {
        OCT_TRY(forward_backward(t, m));
        for (int32_t k = 0; k < p->n; k++)
            t->grads[k] = oct_train_net_grad(t->net, k);
        if (t->sum) oct_grads_sum(p, t->sum, t->grads, 1, i == 0, t->n_threads);
        oct_train_net_keep_stats(t->net);
    }
    OCT_TRY(update(t, n, m));
    if (t->pruning) oct_pruning_apply(t->pruning, p, oct_train_net_weights(t->net));
    if (t->sparsity) oct_sparse_training_apply(t->sparsity, p, oct_train_net_weights(t->net));
    if (t->s.ema) average(t);
    t->batch += n;
    return OCT_OK;
}

/* Channels of this epoch that are to be zero, in the averages as well. */
static oct_status prune(oct_train *t)
{
    const oct_params *p = oct_train_net_params(t->net);
    const oct_prune_gradients gradients = {oct_train_gradient, t};
    float *weights = oct_train_net_weights(t->net);

    if (oct_pruning_wants_gradients(t->pruning, t->epoch, t->batch > 0))
        OCT_TRY(oct_train_rank_gradients(t, 0));
    OCT_TRY(oct_pruning_epoch(t->pruning, p, weights, &gradients, t->epoch, t->batch > 0));
    oct_pruning_apply(t->pruning, p, weights);
    if (t->s.ema) oct_pruning_apply(t->pruning, p, t->ema_weights);
    return OCT_OK;
}

/* The same of single weights. */
static oct_status make_sparse(oct_train *t)
{
    const oct_params *p = oct_train_net_params(t->net);
    float *weights = oct_train_net_weights(t->net);

    OCT_TRY(oct_sparse_training_epoch(t->sparsity, p, weights, t->epoch, t->batch > 0));
    oct_sparse_training_apply(t->sparsity, p, weights);
    if (t->s.ema) oct_sparse_training_apply(t->sparsity, p, t->ema_weights);
    return OCT_OK;
}

static void report(const oct_train *t, const means *m, int64_t start, oct_train_epoch *out)
{
    const double n = m->n > 0 ? (double)m->n : 1;
    *out = (oct_train_epoch){
        .struct_size = sizeof(*out),
        .epoch = (int32_t)t->epoch,
        .step = t->optimizer.t,
        .loss = m->loss / n,
        .rate = m->rate,
        .grad_norm = m->n_updates > 0 ? m->norm / (double)m->n_updates : 0,
        .seconds = (double)(oct_time_ns() - start) * 1e-9,
        .data_seconds = (double)m->data_ns * 1e-9,
    };

    for (int i = 0; i < OCT_LOSS_MAX_PARTS; i++)
        out->parts[i] = m->parts[i] / n;
}

/* Part i of the loss; NULL beyond the last. */
static const char *part_name(const oct_train *t, int i)
{
    const oct_loss_row *row = t->s.loss;

    if (row->parts[i]) return row->parts[i];
    return t->has_teacher && !row->has_no_labels && (i == 0 || row->parts[i - 1]) ? "teacher"
                                                                                  : NULL;
}

/* The event file gets the means of the epoch. */
static oct_status log_epoch(oct_train *t, const oct_train_epoch *e)
{
    char tag[64];

    OCT_TRY(oct_train_log(t, "loss/total", e->loss));
    for (int i = 0; i < OCT_LOSS_MAX_PARTS && part_name(t, i); i++) {
        (void)snprintf(tag, sizeof(tag), "loss/%s", part_name(t, i));
        OCT_TRY(oct_train_log(t, tag, e->parts[i]));
    }
    OCT_TRY(oct_train_log(t, "rate", e->rate));
    return oct_train_log(t, "grad_norm", e->grad_norm);
}

oct_status oct_train_run(oct_train *t, oct_train_epoch *out)
{
    OCT_ENTER(t->ctx);
    const int64_t start = oct_time_ns();
    oct_train_epoch all;
    char what[64];
    means m = {0};

    if (oct_train_is_done(t))
        return oct_fail(t->ctx, OCT_ERR_STATE, "all %d epochs are trained", (int)t->s.epochs);
    (void)snprintf(what, sizeof(what), "epoch %d of %d", (int)t->epoch + 1, (int)t->s.epochs);
    if (t->pruning) OCT_TRY(prune(t));
    if (t->batch < t->n_batches) OCT_TRY(oct_batches_seek(t->batches, t->epoch, t->batch));
    oct_train_net_set_epoch(t->net, t->epoch);
    if (t->sparsity) OCT_TRY(make_sparse(t));
    while (t->batch < t->n_batches) {
        OCT_TRY(oct_progress(t->ctx, what, t->batch, t->n_batches));
        OCT_TRY(train_update(t, &m));
    }
    OCT_TRY(oct_progress(t->ctx, what, t->batch, t->n_batches));
    t->batch = 0;
    t->epoch++;
    report(t, &m, start, &all);
    oct_sized_give(out, &all, sizeof(all));
    return log_epoch(t, &all);
}

int32_t oct_train_is_done(const oct_train *t)
{
    return t->epoch >= t->s.epochs;
}

/* --- results --- */

oct_status oct_train_log(oct_train *t, const char *tag, double value)
{
    OCT_ENTER(t->ctx);

    return t->events ? oct_events_scalar(t->events, tag, t->optimizer.t, value) : OCT_OK;
}

oct_status oct_train_draw_batch(oct_train *t, const char *path)
{
    OCT_ENTER(t->ctx);
    const int32_t n_classes = oct_detector_n_classes(t->detector);
    int64_t n = 0;
    float *images = oct_train_net_images(t->net, &n), *labels = oct_train_net_labels(t->net, &n);
    const char **names = oct_calloc(t->ctx, (size_t)n_classes + 1, sizeof(*names));
    bool has_names = names && n_classes > 0;
    oct_status st;

    if (!names) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n_classes; i++)
        if (!(names[i] = oct_detector_class_name(t->detector, i))) has_names = false;
    st = oct_batches_seek(t->batches, t->epoch, t->batch);
    if (!st) st = oct_batches_next(t->batches, images, labels, NULL);
    if (!st)
        st =
            oct_batches_draw(t->batches, images, labels, has_names ? names : NULL, n_classes, path);
    oct_free(t->ctx, names);
    return st;
}

/* Weights and statistics as they are to be used: averaged, if there are averages. */
static oct_status export_network(const oct_train *t, oct_graph **out)
{
    const oct_params *p = oct_train_net_params(t->net), *stats = oct_train_net_stats(t->net);
    const int64_t total = updates_of_all(t);
    const float *weights = oct_train_net_weights(t->net), *running = oct_train_net_running(t->net);
    float *w, *r;
    oct_status st;

    if (!t->s.ema) return oct_train_net_export(t->net, weights, running, out);
    w = oct_params_buffer(p);
    r = oct_params_buffer(stats);
    st = w && r ? OCT_OK : OCT_ERR_MEMORY;
    if (!st) {
        oct_ema_read(t->s.ema, 0, t->ema_updates, total, t->ema_weights, weights, w, p->len,
                     t->n_threads);
        oct_ema_read(t->s.ema, 0, t->ema_updates, total, t->ema_running, running, r, stats->len,
                     t->n_threads);
        if (t->qat) oct_qat_keep_scales(t->qat, p, weights, w, t->optimizer.t, total);
        st = oct_train_net_export(t->net, w, r, out);
    }
    oct_free(t->ctx, w);
    oct_free(t->ctx, r);
    return st;
}

static oct_status quantized_network(const oct_train *t, bool fit, oct_graph **out)
{
    oct_graph *learned = NULL;
    oct_status st = export_network(t, &learned);

    if (!st) st = oct_qat_graph(t->qat, learned, fit, out);
    oct_graph_free(learned);
    return st;
}

/* Files say how many weights are zero: as they are before they become integers. */
static oct_status tell_sparsity(const oct_train *t, oct_graph *g)
{
    oct_graph *learned = NULL;
    oct_status st;

    if (!t->qat) return oct_sparse_tell(g, NULL);
    st = export_network(t, &learned);
    if (!st) st = oct_sparse_tell(learned, NULL);
    if (!st)
        st = oct_graph_set_metadata(g, OCT_SPARSITY_KEY,
                                    oct_graph_metadata(learned, OCT_SPARSITY_KEY));
    oct_graph_free(learned);
    return st;
}

oct_status oct_train_graph(const oct_train *t, oct_graph **out)
{
    OCT_ENTER(t->ctx);

    OCT_TRY(t->qat ? quantized_network(t, true, out) : export_network(t, out));
    return t->sparsity ? tell_sparsity(t, *out) : OCT_OK;
}

oct_status oct_train_unaligned(const oct_train *t, oct_graph **out)
{
    OCT_ENTER(t->ctx);

    if (!t->qat) return oct_fail(t->ctx, OCT_ERR_STATE, "a job of float training has no shifts");
    return quantized_network(t, false, out);
}

const oct_quantized *oct_train_quantized(const oct_train *t)
{
    return t->qat ? oct_qat_quantized(t->qat) : NULL;
}

void oct_train_describe(const oct_train *t, oct_train_info *out)
{
    const oct_params *p = oct_train_net_params(t->net);
    oct_train_info all = {
        .struct_size = sizeof(all),
        .loss = t->s.loss->name,
        .why = oct_train_net_why(t->net),
        .preset = t->s.preset->name,
        .optimizer = t->s.optimizer->name,
        .schedule = oct_decay_words[t->s.schedule.decay].name,
        .ema = t->s.ema ? t->s.ema->name : "none",
        .augment = t->s.augment_name,
        .rate = t->s.schedule.lr,
        .weight_decay = t->s.decay,
        .epochs = t->s.epochs,
        .batch = t->s.batch,
        .accumulate = t->s.accumulate,
        .batches = t->n_batches,
        .n_params = p->n,
        .bytes = oct_train_net_bytes(t->net) + (uint64_t)oct_batches_bytes(t->batches) +
                 (uint64_t)(t->optimizer.n_states + (t->sum ? 1 : 0) + (t->s.ema ? 1 : 0)) *
                     (uint64_t)p->len * sizeof(float),
        .max_boxes = oct_batches_max_boxes(t->batches),
        .precision = oct_train_net_precision(t->net),
    };

    for (int i = 0; i < OCT_LOSS_MAX_PARTS && part_name(t, i); i++)
        all.parts[i] = part_name(t, i);
    for (int32_t i = 0; i < p->n; i++)
        if (!p->v[i].frozen) {
            all.n_trained++;
            all.n_weights += p->v[i].len;
        }
    oct_sized_give(out, &all, sizeof(all));
}
