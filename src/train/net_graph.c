/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of a network in training: its loss and its gradients. */
#include <stdlib.h>
#include <string.h>

#include "grad/grad.h"
#include "loss/distill.h"
#include "op/op.h"
#include "train/net_parts.h"

static oct_status add_input(oct_graph *g, const char *base, const oct_type *type, oct_value **out)
{
    const char *name = oct_graph_fresh_name(g, base);

    if (!name || !(*out = oct_value_new(g, name, type))) return OCT_ERR_MEMORY;
    return oct_graph_add_input(g, *out);
}

static oct_status add_labels(oct_graph *g, const oct_train_net_options *o, oct_value **out)
{
    const int64_t boxes[] = {o->batch, o->max_boxes, OCT_LABEL_SIZE};
    const int64_t classes[] = {o->batch};
    const oct_type type = o->loss->has_boxes ? oct_type_make(OCT_DTYPE_F32, 3, boxes)
                                             : oct_type_make(OCT_DTYPE_I64, 1, classes);

    return add_input(g, "labels", &type, out);
}

/* "name=value" into a loss's settings. */
static oct_status set_loss(oct_ctx *ctx, const oct_loss_row *row, oct_loss_job *job,
                           const char *text)
{
    const char *eq = strchr(text, '=');
    const size_t len = eq ? (size_t)(eq - text) : 0;
    char *end = NULL;

    for (int i = 0; eq && row->settings && row->settings[i].name; i++) {
        const oct_loss_setting *s = &row->settings[i];

        if (strlen(s->name) != len || memcmp(s->name, text, len) != 0) continue;
        if (s->is_text) {
            job->word[i] = eq + 1;
            return OCT_OK;
        }
        for (int k = 0; s->words && s->words[k]; k++)
            if (strcmp(s->words[k], eq + 1) == 0) {
                job->word[i] = s->words[k];
                return OCT_OK;
            }
        if (s->words)
            return oct_fail(ctx, OCT_ERR_ARG, "loss %s: '%s' is not possible for %s", row->name,
                            eq + 1, s->name);
        job->number[i] = strtod(eq + 1, &end);
        if (end == eq + 1 || *end)
            return oct_fail(ctx, OCT_ERR_ARG, "loss %s: %s needs a number, not '%s'", row->name,
                            s->name, eq + 1);
        return OCT_OK;
    }
    return oct_fail(ctx, OCT_ERR_ARG, "loss %s has no setting '%s'", row->name, text);
}

/* The loss of the labels. */
static oct_status attach_labels(const oct_train_net_options *o, oct_loss_job *job,
                                oct_loss_found *found)
{
    const oct_type one = oct_type_make(OCT_DTYPE_F32, 0, NULL);

    if (!o->loss->has_no_labels) OCT_TRY(add_labels(job->g, o, &job->labels));
    if (o->loss->has_epochs) OCT_TRY(add_input(job->g, "epoch", &one, &job->epoch));
    job->scratch_epochs = o->scratch_epochs;
    oct_loss_defaults(o->loss, job);
    for (int32_t i = 0; i < o->n_loss_settings; i++)
        OCT_TRY(set_loss(job->g->ctx, o->loss, job, o->loss_settings[i]));
    return o->loss->attach(job, found);
}

/* The teacher's predictions are where the loss would find them in the teacher. */
static oct_status find_in_teacher(oct_train_net *t, const oct_train_net_options *o)
{
    oct_loss_job job = {.g = t->as_it_came};
    oct_loss_found found = {0};
    oct_loss_pair *pairs;

    if (!t->found.scores) return OCT_OK;
    OCT_TRY(attach_labels(o, &job, &found));
    pairs = oct_arena_array(t->g->arena, 2, sizeof(*pairs));
    if (!pairs) return OCT_ERR_MEMORY;
    pairs[0] = (oct_loss_pair){found.scores, t->found.pairs[0].teacher};
    pairs[1] = (oct_loss_pair){found.boxes, t->found.pairs[1].teacher};
    if (!oct_type_equal(&found.scores->type, &t->found.scores->type) ||
        !oct_type_equal(&found.boxes->type, &t->found.boxes->type))
        return oct_fail(t->ctx, OCT_ERR_SHAPE,
                        "the teacher has other classes, anchors or distances than the network");
    t->found.pairs = pairs;
    return OCT_OK;
}

static oct_status attach_loss(oct_train_net *t, const oct_train_net_options *o)
{
    oct_loss_job job = {.g = t->g};

    OCT_TRY(attach_labels(o, &job, &t->found));
    t->labels = job.labels;
    t->epoch = job.epoch;
    if (!o->teacher || o->loss->has_no_labels) return OCT_OK;
    OCT_TRY(oct_distill_beside(&job, o->teacher_weight, &t->found));
    return find_in_teacher(t, o);
}

/* Outputs of the network are not outputs of training. */
static void drop_outputs(oct_graph *g)
{
    for (int32_t i = 0; i < g->n_outputs; i++)
        g->outputs[i]->is_output = false;
    g->n_outputs = 0;
}

/* A value that may be an output already, or a constant, gets a copy that is one. */
static oct_status add_output(oct_graph *g, oct_value *v)
{
    oct_builder b = {.g = g};

    if (v->is_output || !v->producer) v = oct_emit(&b, &oct_op_identity, v, NULL, NULL);
    OCT_TRY(b.status);
    return oct_graph_add_output(g, v);
}

/* Only what the loss depends on is trained: a decoding tail has constants, too. */
static oct_status keep_upstream(oct_train_net *t, oct_train_prepared *p)
{
    bool *is_up = oct_arena_array(t->g->arena, (size_t)t->g->root->n_value_ids, sizeof(*is_up));
    int32_t n = 0;

    if (!is_up) return OCT_ERR_MEMORY;
    is_up[t->found.loss->id] = true;
    for (const oct_node *k = t->g->last; k; k = k->prev) {
        bool any = false;

        for (int32_t i = 0; i < k->n_out; i++)
            any |= k->out[i] && is_up[k->out[i]->id];
        for (int32_t i = 0; i < k->n_in && any; i++)
            if (k->in[i]) is_up[k->in[i]->id] = true;
    }
    for (int32_t i = 0; i < p->n_params; i++) {
        if (is_up[p->params[i].value->id])
            p->params[n++] = p->params[i];
        else
            oct_value_to_const(p->params[i].value);
    }
    p->n_params = n;
    return OCT_OK;
}

static oct_status differentiate(oct_train_net *t, const oct_train_prepared *p)
{
    const size_t n = (size_t)p->n_params;
    oct_value **wrt = oct_arena_array(t->g->arena, n + 1, sizeof(*wrt));
    oct_value **grad = oct_arena_array(t->g->arena, n + 1, sizeof(*grad));

    if (!wrt || !grad) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_params; i++)
        wrt[i] = p->params[i].value;
    OCT_TRY(oct_grad(t->g, t->found.loss, wrt, p->n_params, grad));
    drop_outputs(t->g);
    OCT_TRY(add_output(t->g, t->found.loss));
    OCT_TRY(add_output(t->g, t->found.parts));
    for (int32_t i = 0; i < p->n_params; i++)
        OCT_TRY(add_output(t->g, grad[i]));
    for (int32_t i = 0; i < p->n_stats; i++)
        OCT_TRY(add_output(t->g, p->stats[i].next));
    return OCT_OK;
}

/*
 * Fake quantization is inserted by the ids that values have in the given network, so before
 * anything is rewritten; and after the loss, which looks for the shape of a head.
 */
static oct_status attach_then_rewrite(oct_train_net *t, const oct_train_net_options *o,
                                      oct_train_prepared *out)
{
    OCT_TRY(attach_loss(t, o));
    OCT_TRY(add_output(t->g, t->found.loss)); /* no pass may drop them */
    OCT_TRY(add_output(t->g, t->found.parts));
    OCT_TRY(o->rewrite(o->rewrite_arg, t->g));
    return oct_train_prepare(t->g, &o->prepare, out);
}

static oct_status prepare_then_attach(oct_train_net *t, const oct_train_net_options *o,
                                      oct_train_prepared *out)
{
    OCT_TRY(oct_train_prepare(t->g, &o->prepare, out));
    return attach_loss(t, o);
}

oct_status oct_train_net_graph(oct_train_net *t, const oct_train_net_options *o,
                               oct_train_prepared *out)
{
    OCT_TRY(o->rewrite ? attach_then_rewrite(t, o, out) : prepare_then_attach(t, o, out));
    OCT_TRY(keep_upstream(t, out));
    if (!out->n_params)
        return oct_fail(t->ctx, OCT_ERR_UNSUPPORTED, "the network has no float weights to train");
    return differentiate(t, out);
}
