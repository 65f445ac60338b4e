/* SPDX-License-Identifier: Apache-2.0 */
/* A training job: made from settings, run epoch by epoch. */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/ctx.h"
#include "base/machine.h"
#include "base/sized.h"
#include "detect/detector.h"
#include "optim/gradients.h"
#include "quant/place/place.h"

void oct_train_options_init_sized(oct_train_options *o, size_t struct_size)
{
    const oct_train_options all = {.struct_size = struct_size};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

/* --- the data --- */

/* Of each category of the dataset: which class of the network it is, -1: none. */
static oct_status map_classes(oct_train *t, const oct_dataset *d, int32_t **out)
{
    const int32_t n = oct_dataset_n_categories(d);
    int32_t *to = oct_calloc(t->ctx, (size_t)n + 1, sizeof(*to));
    oct_class_map *found = NULL;
    oct_status st;

    if (!to) return OCT_ERR_MEMORY;
    *out = to;
    st = oct_class_map_new(t->detector, d, &found);
    if (st) return st;
    for (int32_t i = 0; i < n; i++)
        to[i] = -1;
    for (int32_t k = 0; k < oct_class_map_size(found); k++) {
        const int32_t category = oct_class_map_category(found, k);

        if (category >= 0 && category < n && to[category] < 0) to[category] = k;
    }
    oct_class_map_free(found);
    return OCT_OK;
}

static oct_status open_batches(oct_train *t, const oct_dataset *d, const oct_train_options *o)
{
    oct_batches_options b = {
        .batch = t->s.batch,
        .augment = &t->s.augment,
        .seed = o->seed,
        .shuffle = true,
        .classes = !t->s.loss->has_boxes && !t->s.loss->has_no_labels,
        .no_labels = t->s.loss->has_no_labels,
        .n_epochs = t->s.epochs,
        .max_boxes = o->max_boxes,
        .n_classes = oct_detector_n_classes(t->detector),
        .n_threads = o->loader_threads,
    };
    int32_t *to = NULL;
    oct_preprocess p;
    oct_status st = OCT_OK;

    oct_preprocess_init(&p);
    oct_detector_preprocess(t->detector, &p);
    if (o->preprocess) memcpy(&p, o->preprocess, OCT_MIN(o->preprocess->struct_size, sizeof(p)));
    b.preprocess = &p;
    if (t->s.loss->has_boxes) st = map_classes(t, d, &to);
    b.class_map = to;
    if (!st) st = oct_batches_new(t->ctx, d, &b, &t->batches);
    oct_free(t->ctx, to);
    return st;
}

/* --- the network --- */

/* Parameters of frozen layers do not change. */
static void freeze(oct_train *t, const char *const *frozen)
{
    oct_params *p = oct_train_net_params(t->net);

    for (int32_t i = 0; i < p->n; i++) {
        const oct_value *v = p->v[i].value;

        if (v->n_users && frozen[v->users[0]->id]) p->v[i].frozen = true;
    }
}

static oct_train_net_options net_options(const oct_train *t, const oct_train_options *o)
{
    const oct_preprocess *p = oct_batches_preprocess(t->batches);

    return (oct_train_net_options){
        .batch = t->s.batch,
        .width = p->width,
        .height = p->height,
        .max_boxes = oct_batches_max_boxes(t->batches),
        .loss = t->s.loss,
        .loss_settings = o->loss_settings,
        .n_loss_settings = o->n_loss_settings,
        .prepare = {.freeze_statistics = o->freeze_statistics != 0,
                    .norm_momentum = t->s.norm_momentum},
        .n_threads = t->n_threads,
        .memory = {t->s.memory, (size_t)oct_batches_bytes(t->batches),
                   t->s.optimizer->n_states(&t->s.optimizer_options) + (t->s.accumulate > 1) +
                       (t->s.ema != NULL)},
    };
}

static oct_status build_net(oct_train *t, const oct_graph *g, const oct_train_options *o,
                            const char *const *frozen)
{
    oct_train_net_options net = net_options(t, o);

    net.prepare.frozen = frozen;
    net.prepare.n_frozen = g->root->n_node_ids;
    if (t->qat) oct_qat_hook(t->qat, &net);
    OCT_TRY(oct_train_net_new(g, &net, &t->net));
    if (t->qat) oct_qat_set_rates(&t->s, oct_train_net_params(t->net));
    if (o->from_scratch)
        oct_train_from_scratch(t->net, oct_detector_n_classes(t->detector), o->seed);
    freeze(t, frozen);
    return OCT_OK;
}

static oct_status next_batch(void *arg, oct_train_net *net)
{
    const oct_train *t = arg;
    int64_t n = 0;
    float *images = oct_train_net_images(net, &n), *labels = oct_train_net_labels(net, &n);

    return oct_batches_next(t->batches, images, labels, NULL);
}

/* A copy of g with the statistics of the first pictures; NULL: none was asked for. */
static oct_status adapt_norms(oct_train *t, const oct_graph *g, const oct_train_options *o,
                              oct_graph **out)
{
    const int64_t steps = (o->norm_pictures + t->s.batch - 1) / t->s.batch;
    oct_train_net_options net = net_options(t, o);

    if (steps < 1) return OCT_OK;
    if (o->freeze_statistics)
        return oct_fail(t->ctx, OCT_ERR_ARG,
                        "statistics of BatchNormalization cannot be both frozen and adapted");
    net.prepare.freeze_statistics = false;
    OCT_TRY(oct_batches_seek(t->batches, 0, 0));
    return oct_adapt_norms(g, &net, OCT_MIN(steps, t->n_batches), next_batch, t, out);
}

/* The network quantized by calibration, which is where learning begins. */
static oct_status quantize(oct_train *t, const oct_graph *g, const oct_dataset *d,
                           const oct_train_options *o)
{
    if (!o->quantize) return OCT_OK;
    if (o->from_scratch)
        return oct_fail(t->ctx, OCT_ERR_ARG,
                        "quantization-aware training starts from a trained network, not from "
                        "random weights");
    return oct_qat_new(g, o->calibration ? o->calibration : d, o, &t->s, &t->qat);
}

/* Layers that the scope selects are frozen: parameters, and statistics of norms. */
static oct_status build_with_frozen(oct_train *t, const oct_graph *g, const oct_train_options *o)
{
    oct_arena *a = oct_arena_new(t->ctx);
    oct_quantize_options q;
    const char **frozen;
    oct_status st;

    if (!a) return OCT_ERR_MEMORY;
    oct_quantize_options_init(&q);
    q.ignored = o->freeze;
    frozen = oct_arena_array(a, (size_t)g->root->n_node_ids + 1, sizeof(*frozen));
    st = frozen ? oct_scope_reasons(g, &q, a, frozen) : OCT_ERR_MEMORY;
    if (!st) st = build_net(t, g, o, frozen);
    oct_arena_free(a);
    return st;
}

static oct_status start_optimizer(oct_train *t)
{
    oct_params *p = oct_train_net_params(t->net);
    const oct_params *stats = oct_train_net_stats(t->net);

    oct_params_set_decay(p, t->s.decay, t->s.decay_all);
    OCT_TRY(oct_optimizer_init(&t->optimizer, p, t->s.optimizer, &t->s.optimizer_options));
    t->grads = oct_calloc(t->ctx, (size_t)p->n + 1, sizeof(*t->grads));
    if (!t->grads) return OCT_ERR_MEMORY;
    if (t->s.accumulate > 1 && !(t->sum = oct_params_buffer(p))) return OCT_ERR_MEMORY;
    if (!t->s.ema) return OCT_OK;
    t->ema_weights = oct_params_buffer(p);
    t->ema_running = oct_params_buffer(stats);
    if (!t->ema_weights || !t->ema_running) return OCT_ERR_MEMORY;
    oct_ema_start(t->s.ema, t->ema_weights, oct_train_net_weights(t->net), p->len);
    oct_ema_start(t->s.ema, t->ema_running, oct_train_net_running(t->net), stats->len);
    return OCT_OK;
}

/* Updates of the weights in an epoch. */
static int64_t updates_of_epoch(const oct_train *t)
{
    return (t->n_batches + t->s.accumulate - 1) / t->s.accumulate;
}

static oct_status build(oct_train *t, const oct_graph *g, const oct_dataset *d,
                        const oct_train_options *o)
{
    oct_graph *adapted = NULL;
    oct_status st;

    OCT_TRY(oct_detector_new(g, o->family, &t->detector));
    if (o->names) OCT_TRY(oct_detector_set_names(t->detector, o->names));
    OCT_TRY(oct_train_settings_resolve(t->ctx, o, oct_detector_family(t->detector), &t->s));
    OCT_TRY(open_batches(t, d, o));
    t->n_batches = oct_batches_count(t->batches);
    t->s.schedule.steps_per_epoch = updates_of_epoch(t);
    OCT_TRY(oct_schedule_check(t->ctx, &t->s.schedule));
    OCT_TRY(adapt_norms(t, g, o, &adapted));
    if (adapted) g = adapted;
    st = quantize(t, g, d, o);
    if (!st) st = build_with_frozen(t, t->qat ? oct_qat_network(t->qat) : g, o);
    oct_graph_free(adapted);
    OCT_TRY(st);
    if (o->tensorboard) OCT_TRY(oct_events_open(t->ctx, o->tensorboard, &t->events));
    return start_optimizer(t);
}

oct_status oct_train_new(const oct_graph *g, oct_dataset *data, const oct_train_options *options,
                         oct_train **out)
{
    OCT_ENTER(g->ctx);
    oct_train_options o;
    oct_train *t = oct_calloc(g->ctx, 1, sizeof(*t));
    oct_status st = OCT_OK;

    if (!t) return OCT_ERR_MEMORY;
    oct_train_options_init(&o);
    if (options) memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    t->ctx = g->ctx;
    t->seed = o.seed;
    t->n_threads = oct_ctx_threads(g->ctx);
    if (o.settings && !(t->recipe = oct_strdup(g->ctx, o.settings))) st = OCT_ERR_MEMORY;
    if (!st) st = build(t, g, data, &o);
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
    oct_free(t->ctx, t->ema_weights);
    oct_free(t->ctx, t->ema_running);
    oct_events_close(t->events);
    oct_free(t->ctx, t->recipe);
    oct_train_net_free(t->net);
    oct_qat_free(t->qat);
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
    return (int64_t)t->s.epochs * updates_of_epoch(t);
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
    if (t->s.ema) average(t);
    t->batch += n;
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

/* The event file gets the means of the epoch. */
static oct_status log_epoch(oct_train *t, const oct_train_epoch *e)
{
    char tag[64];

    OCT_TRY(oct_train_log(t, "loss/total", e->loss));
    for (int i = 0; t->s.loss->parts[i]; i++) {
        (void)snprintf(tag, sizeof(tag), "loss/%s", t->s.loss->parts[i]);
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
    OCT_TRY(oct_batches_seek(t->batches, t->epoch, t->batch));
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

oct_status oct_train_graph(const oct_train *t, oct_graph **out)
{
    OCT_ENTER(t->ctx);

    return t->qat ? quantized_network(t, true, out) : export_network(t, out);
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
    };

    for (int i = 0; i < OCT_LOSS_MAX_PARTS && t->s.loss->parts[i]; i++)
        all.parts[i] = t->s.loss->parts[i];
    for (int32_t i = 0; i < p->n; i++)
        if (!p->v[i].frozen) {
            all.n_trained++;
            all.n_weights += p->v[i].len;
        }
    oct_sized_give(out, &all, sizeof(all));
}
