/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a network in training share. */
#ifndef OCT_TRAIN_NET_PARTS_H
#define OCT_TRAIN_NET_PARTS_H

#include "train/net.h"
#include "train/teacher.h"

struct oct_train_net {
    oct_ctx *ctx;
    oct_graph *source;                 /* as given, with PARAM and STATE values */
    oct_graph *g;                      /* the training graph */
    oct_value *image, *labels, *epoch; /* the last is NULL if the loss does not ask for it */
    oct_loss_found found;
    oct_params params, stats;
    float *weights, *running;
    float *images_data, *labels_data;
    int64_t images_len, labels_len;
    float epoch_data;
    oct_plan *plan;
    oct_run *run;
    oct_graph *as_it_came; /* for a teacher, while it is built; NULL: none */
    oct_teacher *teacher;  /* NULL: only labels teach */
};

/*
 * net_graph.c: from the network that was given (t->source, and bound to the batch t->g) to the
 * training graph: prepared, with the loss and the gradients, whose outputs are loss, parts,
 * gradients and next statistics. `out` lists what is trained.
 */
oct_status oct_train_net_graph(oct_train_net *t, const oct_train_net_options *o,
                               oct_train_prepared *out);

/* net_plan.c: compiles t->g; steps run again where memory would not suffice. */
oct_status oct_train_net_plan_within(oct_train_net *t, const oct_plan_options *plan,
                                     const oct_train_net_options *o);

#endif
