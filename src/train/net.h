/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network in training: forward, loss and backward as one plan, and the memory that steps change.
 *
 *   file's graph ──bind batch──▶ ──prepare──▶ ──attach loss──▶ ──oct_grad()──▶ plan
 *
 * Pictures, labels, parameters and running statistics are inputs of the plan, bound to memory of
 * this struct; the loss, its parts, the gradients and the next running statistics are its outputs.
 */
#ifndef OCT_TRAIN_NET_H
#define OCT_TRAIN_NET_H

#include <octet/plan.h>

#include "loss/loss.h"
#include "train/prepare.h"

typedef struct oct_train_net oct_train_net;

/* What a plan for training is made of. */
typedef struct oct_train_net_options {
    int32_t batch, width, height; /* of the pictures */
    int32_t max_boxes;            /* rows of labels for a picture */
    int32_t scratch_epochs;       /* of training from random weights; 0: from those given */
    const oct_loss_row *loss;
    const char *const *loss_settings; /* "name=value" */
    int32_t n_loss_settings;
    const oct_graph *teacher; /* whose predictions are learned, beside the labels; NULL: none */
    double teacher_weight;
    oct_train_prepare_options prepare;
    /* Changes the graph after the loss was attached, before it is prepared; ids of values and nodes
     * are those of the given network. NULL: nothing. */
    oct_status (*rewrite)(void *arg, oct_graph *g);
    void *rewrite_arg;
    int32_t n_threads;
    bool is_bf16; /* convolutions multiply bfloat16 */
    struct {
        size_t max;     /* bytes of all there is; 0: any number */
        size_t others;  /* of them those that are not the network's */
        int32_t copies; /* further buffers of the size of the parameters: the optimizer's */
    } memory;
} oct_train_net_options;

/* The graph is needed during the call only. */
oct_status oct_train_net_new(const oct_graph *g, const oct_train_net_options *o,
                             oct_train_net **out);
void oct_train_net_free(oct_train_net *t); /* accepts NULL */

/* --- what it has --- */

/* Layouts of the flat memory. Values are those of oct_train_net_source(). */
oct_params *oct_train_net_params(oct_train_net *t);
oct_params *oct_train_net_stats(oct_train_net *t);
float *oct_train_net_weights(const oct_train_net *t); /* all parameters */
float *oct_train_net_running(const oct_train_net *t); /* all statistics */

/* The network as it was given, but with PARAM and STATE values. */
oct_graph *oct_train_net_source(const oct_train_net *t);

float *oct_train_net_images(const oct_train_net *t, int64_t *n); /* to be filled for each step */
float *oct_train_net_labels(const oct_train_net *t, int64_t *n);
void *oct_train_net_input(const oct_train_net *t, const char *name); /* memory of any input */
const oct_node *oct_train_net_loss_node(const oct_train_net *t);
const char *oct_train_net_why(const oct_train_net *t);       /* where the predictions were found */
size_t oct_train_net_bytes(const oct_train_net *t);          /* activations, gradients, inputs */
const char *oct_train_net_precision(const oct_train_net *t); /* and how it is computed */
const oct_plan *oct_train_net_plan(const oct_train_net *t);
oct_run *oct_train_net_run(const oct_train_net *t);

/* --- a step --- */

/* From 0; for losses that change with it. */
void oct_train_net_set_epoch(oct_train_net *t, int64_t epoch);

/* Forward and backward on the images and labels that were filled in. Weights do not change. */
oct_status oct_train_net_step(oct_train_net *t);

/* After a step. */
double oct_train_net_loss(const oct_train_net *t);
const float *oct_train_net_parts(const oct_train_net *t, int32_t *n);
const float *oct_train_net_grad(const oct_train_net *t, int32_t param); /* of its type */

/* Takes over the running statistics that the step computed. */
void oct_train_net_keep_stats(oct_train_net *t);

/*
 * The network as it was given, with these parameters and statistics, which are flat, in place of
 * its constants. The caller frees *out.
 */
oct_status oct_train_net_export(const oct_train_net *t, const float *weights, const float *running,
                                oct_graph **out);

#endif
