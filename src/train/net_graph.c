/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of a network in training: its loss and its gradients. */
#include <stdlib.h>
#include <string.h>

#include "grad/grad.h"
#include "op/op.h"
#include "train/net_parts.h"

static oct_status add_labels(oct_train_net *t, const oct_train_net_options *o)
{
    const int64_t boxes[] = {o->batch, o->max_boxes, OCT_LABEL_SIZE};
    const int64_t classes[] = {o->batch};
    const oct_type type = o->loss->has_boxes ? oct_type_make(OCT_DTYPE_F32, 3, boxes)
                                             : oct_type_make(OCT_DTYPE_I64, 1, classes);
    const char *name = oct_graph_fresh_name(t->g, "labels");

    if (!name || !(t->labels = oct_value_new(t->g, name, &type))) return OCT_ERR_MEMORY;
    return oct_graph_add_input(t->g, t->labels);
}

static oct_status add_epoch(oct_train_net *t)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 0, NULL);
    const char *name = oct_graph_fresh_name(t->g, "epoch");

    if (!name || !(t->epoch = oct_value_new(t->g, name, &type))) return OCT_ERR_MEMORY;
    return oct_graph_add_input(t->g, t->epoch);
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

static oct_status attach_loss(oct_train_net *t, const oct_train_net_options *o)
{
    oct_loss_job job = {.g = t->g};

    if (!o->loss->has_no_labels) OCT_TRY(add_labels(t, o));
    if (o->loss->has_epochs) OCT_TRY(add_epoch(t));
    job.labels = t->labels;
    job.epoch = t->epoch;
    job.scratch_epochs = o->scratch_epochs;
    oct_loss_defaults(o->loss, &job);
    for (int32_t i = 0; i < o->n_loss_settings; i++)
        OCT_TRY(set_loss(t->ctx, o->loss, &job, o->loss_settings[i]));
    return o->loss->attach(&job, &t->found);
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
