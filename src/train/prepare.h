/* SPDX-License-Identifier: Apache-2.0 */
/* From a network as it is in a file to the forward part of training. */
#ifndef OCT_TRAIN_PREPARE_H
#define OCT_TRAIN_PREPARE_H

#include "optim/params.h"

typedef struct oct_train_param {
    oct_value *value; /* OCT_VALUE_PARAM */
    oct_param_kind kind;
    const oct_node *node; /* its first consumer: scopes select parameters by it */
} oct_train_param;

/* A running statistic: `next` is its value after the step. */
typedef struct oct_train_stat {
    oct_value *value; /* OCT_VALUE_STATE */
    oct_value *next;
} oct_train_stat;

typedef struct oct_train_prepare_options {
    bool freeze_statistics; /* BatchNormalization keeps its running statistics */
    double norm_momentum;   /* weight of the old running value; 0: as each node says */
    /* By id of a node: not NULL if it is frozen; a norm keeps its statistics then. NULL: none is.
     */
    const char *const *frozen;
    int32_t n_frozen; /* ids */
} oct_train_prepare_options;

/* Arrays are in the graph's arena, in the order of nodes. */
typedef struct oct_train_prepared {
    oct_train_param *params;
    int32_t n_params;
    oct_train_stat *stats;
    int32_t n_stats;
} oct_train_prepared;

/*
 * Changes g (with known shapes): BatchNormalization with constant operands becomes BatchNormTrain,
 * which takes the activation after it along; constants that training changes become parameters,
 * running statistics become states.
 */
oct_status oct_train_prepare(oct_graph *g, const oct_train_prepare_options *o,
                             oct_train_prepared *out);

#endif
