/* SPDX-License-Identifier: Apache-2.0 */
/* A training job from its settings: data, network, optimizer. */
#include <string.h>

#include "detect/detector.h"
#include "quant/place/place.h"
#include "quant/quantize.h"
#include "train/train.h"

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
        .scratch_epochs = o->from_scratch ? t->s.epochs : 0,
        .loss = t->s.loss,
        .loss_settings = o->loss_settings,
        .n_loss_settings = o->n_loss_settings,
        .teacher = t->has_teacher ? o->teacher : NULL,
        .teacher_weight = o->teacher_weight > 0 ? o->teacher_weight : 1,
        .prepare = {.freeze_statistics = o->freeze_statistics != 0,
                    .norm_momentum = t->s.norm_momentum},
        .n_threads = t->n_threads,
        .is_bf16 = t->s.is_bf16,
        .memory = {t->s.memory, (size_t)oct_batches_bytes(t->batches),
                   t->s.optimizer->n_states(&t->s.optimizer_options) + (t->s.accumulate > 1) +
                       (t->s.ema != NULL)},
    };
}

static oct_status build_net(oct_train *t, const oct_graph *g, const oct_graph *teacher,
                            const oct_train_options *o, const char *const *frozen)
{
    oct_train_net_options net = net_options(t, o);

    if (teacher) net.teacher = teacher;
    net.prepare.frozen = frozen;
    net.prepare.n_frozen = g->root->n_node_ids;
    if (t->qat) oct_qat_hook(t->qat, &net);
    OCT_TRY(oct_train_net_new(g, &net, &t->net));
    if (t->qat) OCT_TRY(oct_qat_set_rates(t->qat, &t->s, oct_train_net_params(t->net)));
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
    if (o->pact && t->s.fix_scales)
        return oct_fail(t->ctx, OCT_ERR_ARG,
                        "scales that are fixed learn nothing from what is clipped (fix_scales, or "
                        "a preset with fixed scales, and pact)");
    return oct_qat_new(g, o->calibration ? o->calibration : d, o, &t->s, &t->qat);
}

static oct_status start_pruning(oct_train *t, const oct_graph *g, const oct_train_options *o)
{
    if (!o->prune) return OCT_OK;
    if (t->qat)
        return oct_fail(t->ctx, OCT_ERR_UNSUPPORTED,
                        "a network is pruned first and quantized then, not both at once");
    return oct_pruning_new(g, o->prune, &t->pruning);
}

static oct_status start_sparsity(oct_train *t, const oct_graph *g, const oct_train_options *o)
{
    return o->sparsity ? oct_sparse_training_new(g, o->sparsity, &t->sparsity) : OCT_OK;
}

/* Layers that the scope selects are frozen: parameters, and statistics of norms. */
static oct_status build_with_frozen(oct_train *t, const oct_graph *g, const oct_graph *teacher,
                                    const oct_train_options *o)
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
    if (!st) st = build_net(t, g, teacher, o, frozen);
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

/*
 * The network that is quantized is not the one that came: blocks may have learned other weights,
 * and with hard activations it computes something else. A loss without labels compares with what
 * came. NULL: it is the network that is trained, or another was given.
 */
static oct_status find_teacher(const oct_train *t, const oct_graph *g, const oct_train_options *o,
                               oct_graph **out)
{
    if (!t->qat || !t->s.loss->has_no_labels || t->has_teacher) return OCT_OK;
    if (o->quantize->hard_activations) return oct_quantize_normalise(g, out);
    return oct_graph_clone(oct_qat_as_it_came(t->qat), out);
}

oct_status oct_train_build(oct_train *t, const oct_graph *g, const oct_dataset *d,
                           const oct_train_options *o)
{
    oct_graph *adapted = NULL, *teacher = NULL;
    oct_status st;

    t->has_teacher = o->teacher && o->teacher_weight >= 0;
    OCT_TRY(oct_detector_new(g, o->family, &t->detector));
    if (o->names) OCT_TRY(oct_detector_set_names(t->detector, o->names));
    OCT_TRY(oct_train_settings_resolve(t->ctx, o, oct_detector_family(t->detector), &t->s));
    OCT_TRY(open_batches(t, d, o));
    t->n_batches = oct_batches_count(t->batches);
    t->s.schedule.steps_per_epoch = oct_train_updates_of_epoch(t);
    OCT_TRY(oct_schedule_check(t->ctx, &t->s.schedule));
    OCT_TRY(adapt_norms(t, g, o, &adapted));
    if (adapted) g = adapted;
    st = quantize(t, g, d, o);
    if (!st) st = find_teacher(t, g, o, &teacher);
    if (!st) st = build_with_frozen(t, t->qat ? oct_qat_network(t->qat) : g, teacher, o);
    if (!st) st = start_pruning(t, g, o);
    oct_graph_free(teacher);
    if (!st) st = start_sparsity(t, t->qat ? oct_qat_network(t->qat) : g, o);
    oct_graph_free(adapted);
    OCT_TRY(st);
    if (o->tensorboard) OCT_TRY(oct_events_open(t->ctx, o->tensorboard, &t->events));
    return start_optimizer(t);
}
