/* SPDX-License-Identifier: Apache-2.0 */
/* A network in training: see net.h. */
#include "train/net_parts.h"

#include <string.h>

#include "base/ctx.h"
#include "detect/detector.h"
#include "exec/run.h"

/* Outputs of the plan come in this order: loss, parts, gradients, next statistics. */
enum { OUT_LOSS, OUT_PARTS, OUT_GRADS };

/* --- memory --- */

/* The value of the given network that became v: copies keep the ids of values. */
static oct_status find_source(oct_train_net *t, const oct_value *v, bool is_state, oct_value **out)
{
    oct_value *w = v->id < t->source->root->n_value_ids ? t->source->root->values[v->id] : NULL;

    if (!w || !w->data || strcmp(w->name, v->name) != 0)
        return oct_fail(t->ctx, OCT_ERR_STATE, "the network has no constant '%s'", v->name);
    oct_value_to_param(w, is_state);
    *out = w;
    return OCT_OK;
}

/* Takes over the constants that training changes; in the training graph they become inputs. */
static oct_status take_value(oct_train_net *t, oct_params *p, oct_value *v, oct_param_kind kind)
{
    oct_value *w = NULL;

    OCT_TRY(find_source(t, v, v->is_state, &w));
    OCT_TRY(oct_params_add_value(p, w, kind));
    oct_tensor_unref(v->initial);
    v->initial = NULL;
    v->is_state = false;
    return oct_graph_add_input(t->g, v);
}

static oct_status take_values(oct_train_net *t, const oct_train_prepared *p)
{
    for (int32_t i = 0; i < p->n_params; i++)
        OCT_TRY(take_value(t, &t->params, p->params[i].value, p->params[i].kind));
    for (int32_t i = 0; i < p->n_stats; i++)
        OCT_TRY(take_value(t, &t->stats, p->stats[i].value, OCT_PARAM_OTHER));
    OCT_TRY(oct_params_finish(&t->params));
    return oct_params_finish(&t->stats);
}

static oct_status take_memory(oct_train_net *t, const oct_train_net_options *o)
{
    t->images_len = oct_type_len(&t->image->type);
    t->labels_len = t->labels ? oct_type_len(&t->labels->type)
                              : (int64_t)o->batch * o->max_boxes * OCT_LABEL_SIZE;
    t->weights = oct_params_buffer(&t->params);
    t->running = oct_params_buffer(&t->stats);
    t->images_data = oct_calloc(t->ctx, (size_t)t->images_len, sizeof(float));
    t->labels_data = oct_calloc(t->ctx, (size_t)t->labels_len, sizeof(int64_t)); /* or floats */
    if (!t->weights || !t->running || !t->images_data || !t->labels_data) return OCT_ERR_MEMORY;
    oct_params_load(&t->params, t->weights);
    oct_params_load(&t->stats, t->running);
    return OCT_OK;
}

/* --- the plan --- */

static oct_status bind_flat(oct_train_net *t, const oct_params *p, const float *data)
{
    for (int32_t i = 0; i < p->n; i++)
        OCT_TRY(oct_run_bind_input(t->run, p->v[i].name, data + p->v[i].offset,
                                   (size_t)p->v[i].len * sizeof(float)));
    return OCT_OK;
}

/* The inputs that a teacher fills. */
static oct_status bind_teacher(oct_train_net *t, int32_t n_threads)
{
    const oct_loss_pair *pairs = t->found.pairs;

    OCT_TRY(oct_teacher_new(t->as_it_came, pairs, t->found.n_pairs, t->image->name, t->images_data,
                            n_threads, &t->teacher));
    for (int32_t i = 0; i < t->found.n_pairs; i++) {
        size_t size = 0;
        const void *data = oct_teacher_value(t->teacher, i, &size);

        OCT_TRY(oct_run_bind_input(t->run, pairs[i].teacher->name, data, size));
    }
    return OCT_OK;
}

static oct_status compile(oct_train_net *t, const oct_train_net_options *net)
{
    const int32_t n_threads = net->n_threads;
    oct_plan_options o;
    size_t size = 0;

    oct_plan_options_init(&o);
    o.n_threads = n_threads;
    OCT_TRY(oct_train_net_plan_within(t, &o, net));
    OCT_TRY(oct_run_new(t->ctx, t->plan, &t->run));
    OCT_TRY(bind_flat(t, &t->params, t->weights));
    OCT_TRY(bind_flat(t, &t->stats, t->running));
    OCT_TRY(oct_run_bind_input(t->run, t->image->name, t->images_data,
                               (size_t)t->images_len * sizeof(float)));
    if (t->epoch)
        OCT_TRY(oct_run_bind_input(t->run, t->epoch->name, &t->epoch_data, sizeof(float)));
    if (t->as_it_came) OCT_TRY(bind_teacher(t, n_threads));
    if (!t->labels) return OCT_OK;
    (void)oct_type_bytes(&t->labels->type, &size);
    return oct_run_bind_input(t->run, t->labels->name, t->labels_data, size);
}

/* Without another teacher, a loss that has no labels compares with the network as it came. */
static oct_status find_teacher(oct_train_net *t, const oct_train_net_options *o)
{
    if (o->teacher)
        return oct_detector_bind(o->teacher, o->batch, o->width, o->height, &t->as_it_came);
    return o->loss->has_no_labels ? oct_graph_clone(t->g, &t->as_it_came) : OCT_OK;
}

static oct_status build(oct_train_net *t, const oct_graph *g, const oct_train_net_options *o)
{
    const oct_value *image = NULL;
    oct_train_prepared p = {0};

    OCT_TRY(oct_graph_clone(g, &t->source));
    OCT_TRY(oct_detector_bind(g, o->batch, o->width, o->height, &t->g));
    OCT_TRY(oct_detector_input(t->g, &image));
    t->image = t->g->root->values[image->id];
    if (t->image->type.dtype != OCT_DTYPE_F32)
        return oct_fail(t->ctx, OCT_ERR_TYPE, "input '%s' is not float32: it cannot be trained",
                        image->name);
    OCT_TRY(find_teacher(t, o));
    OCT_TRY(oct_train_net_graph(t, o, &p));
    OCT_TRY(take_values(t, &p));
    OCT_TRY(take_memory(t, o));
    return compile(t, o);
}

oct_status oct_train_net_new(const oct_graph *g, const oct_train_net_options *o,
                             oct_train_net **out)
{
    oct_train_net *t = oct_calloc(g->ctx, 1, sizeof(*t));
    oct_status st;

    if (!t) return OCT_ERR_MEMORY;
    t->ctx = g->ctx;
    oct_params_init(&t->params, g->ctx);
    oct_params_init(&t->stats, g->ctx);
    st = build(t, g, o);
    if (st) {
        oct_train_net_free(t);
        return st;
    }
    *out = t;
    return OCT_OK;
}

void oct_train_net_free(oct_train_net *t)
{
    if (!t) return;
    oct_teacher_free(t->teacher);
    oct_run_free(t->run);
    oct_plan_free(t->plan);
    oct_free(t->ctx, t->weights);
    oct_free(t->ctx, t->running);
    oct_params_fini(&t->params);
    oct_params_fini(&t->stats);
    oct_free(t->ctx, t->images_data);
    oct_free(t->ctx, t->labels_data);
    oct_graph_free(t->as_it_came);
    oct_graph_free(t->g);
    oct_graph_free(t->source);
    oct_free(t->ctx, t);
}

/* --- what it has --- */

oct_params *oct_train_net_params(oct_train_net *t)
{
    return &t->params;
}

oct_params *oct_train_net_stats(oct_train_net *t)
{
    return &t->stats;
}

float *oct_train_net_weights(const oct_train_net *t)
{
    return t->weights;
}

float *oct_train_net_running(const oct_train_net *t)
{
    return t->running;
}

oct_graph *oct_train_net_source(const oct_train_net *t)
{
    return t->source;
}

float *oct_train_net_images(const oct_train_net *t, int64_t *n)
{
    *n = t->images_len;
    return t->images_data;
}

float *oct_train_net_labels(const oct_train_net *t, int64_t *n)
{
    *n = t->labels_len;
    return t->labels_data;
}

void *oct_train_net_input(const oct_train_net *t, const char *name)
{
    size_t size = 0;
    const int32_t param = oct_params_find(&t->params, name),
                  stat = oct_params_find(&t->stats, name);

    if (param >= 0) return t->weights + t->params.v[param].offset;
    if (stat >= 0) return t->running + t->stats.v[stat].offset;
    if (strcmp(name, t->image->name) == 0) return t->images_data;
    if (t->epoch && strcmp(name, t->epoch->name) == 0) return (void *)(uintptr_t)&t->epoch_data;
    for (int32_t i = 0; t->teacher && i < t->found.n_pairs; i++)
        if (strcmp(name, t->found.pairs[i].teacher->name) == 0)
            return (void *)(uintptr_t)oct_teacher_value(t->teacher, i, &size);
    return t->labels && strcmp(name, t->labels->name) == 0 ? t->labels_data : NULL;
}

const oct_node *oct_train_net_loss_node(const oct_train_net *t)
{
    return t->found.loss->producer;
}

const char *oct_train_net_why(const oct_train_net *t)
{
    return t->found.why;
}

size_t oct_train_net_bytes(const oct_train_net *t)
{
    return oct_plan_activation_size(t->plan) + oct_plan_input_size(t->plan) +
           t->plan->scratch_size +
           (size_t)(t->params.len + t->stats.len + t->images_len) * sizeof(float);
}

const oct_plan *oct_train_net_plan(const oct_train_net *t)
{
    return t->plan;
}

oct_run *oct_train_net_run(const oct_train_net *t)
{
    return t->run;
}

/* --- a step --- */

void oct_train_net_set_epoch(oct_train_net *t, int64_t epoch)
{
    t->epoch_data = (float)epoch;
}

static const float *output(const oct_train_net *t, int32_t i)
{
    return t->run->outputs[i]->data;
}

oct_status oct_train_net_step(oct_train_net *t)
{
    if (t->teacher) OCT_TRY(oct_teacher_run(t->teacher));
    return oct_run_execute(t->run);
}

double oct_train_net_loss(const oct_train_net *t)
{
    return (double)output(t, OUT_LOSS)[0];
}

const float *oct_train_net_parts(const oct_train_net *t, int32_t *n)
{
    *n = (int32_t)oct_tensor_len(t->run->outputs[OUT_PARTS]);
    return output(t, OUT_PARTS);
}

const float *oct_train_net_grad(const oct_train_net *t, int32_t param)
{
    return output(t, OUT_GRADS + param);
}

void oct_train_net_keep_stats(oct_train_net *t)
{
    for (int32_t i = 0; i < t->stats.n; i++)
        memcpy(t->running + t->stats.v[i].offset, output(t, OUT_GRADS + t->params.n + i),
               (size_t)t->stats.v[i].len * sizeof(float));
}

/* --- export --- */

/* Values of a copy of the given network get the floats of `flat`. */
static oct_status put_back(oct_graph *g, const oct_params *p, const float *flat)
{
    for (int32_t i = 0; i < p->n; i++) {
        oct_value *v = g->root->values[p->v[i].value->id];
        oct_tensor *c = NULL;

        OCT_TRY(oct_tensor_make(g->ctx, &v->initial->type, &c));
        memcpy(c->data, flat + p->v[i].offset, (size_t)p->v[i].len * sizeof(float));
        oct_tensor_unref(v->initial);
        v->initial = c;
    }
    return OCT_OK;
}

oct_status oct_train_net_export(const oct_train_net *t, const float *weights, const float *running,
                                oct_graph **out)
{
    oct_graph *g = NULL;
    oct_status st;

    OCT_TRY(oct_graph_clone(t->source, &g));
    st = put_back(g, &t->params, weights);
    if (!st) st = put_back(g, &t->stats, running);
    if (st) {
        oct_graph_free(g);
        return st;
    }
    oct_graph_params_to_consts(g);
    *out = g;
    return OCT_OK;
}
