/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe: a few calibration pictures, and what the float network makes of them. It measures the
 * error of a qmap at the values the network is read by: what its last layers give, before the tail.
 */
#ifndef OCT_QUANT_HEAL_PROBE_H
#define OCT_QUANT_HEAL_PROBE_H

#include "feed/feed.h"
#include "quant/qmap.h"

/* A value of the float network, at some places. */
typedef struct oct_probe_value {
    const oct_value *value;
    int64_t most;  /* places, in one picture */
    float **exact; /* by picture: what the float network has there; most of them */
    int64_t *n;    /* by picture: how many that are */
    double power;  /* theirs; of outputs: of the differences from the mean */
    double error;  /* while measuring */
} oct_probe_value;

typedef struct oct_probe {
    oct_ctx *ctx;
    oct_arena *arena;
    const oct_graph *bound;
    int64_t pictures;
    float ***in;             /* by picture and input: its bytes */
    size_t *in_size;         /* by input */
    oct_probe_value *values; /* the outputs, then all layers with weights */
    int32_t n_outputs, n;
    int64_t runs; /* of the network, so far */
} oct_probe;

/* Runs the float network over the first `pictures` of the feed. The qmap says what the tail is. */
oct_status oct_probe_new(const oct_graph *bound, const oct_qmap *m, oct_feed *f, int64_t pictures,
                         oct_probe **out);
void oct_probe_free(oct_probe *p); /* accepts NULL */

/*
 * The error of the qmap: of the outputs error power / variance, the mean; and at each layer with
 * weights, in graph order, where `layers` is not NULL, error power / signal power.
 */
oct_status oct_probe_measure(oct_probe *p, const oct_qmap *m, double *noise, double *layers);

/* Layers with weights, in graph order, whose results are looked at. */
static inline int32_t oct_probe_n_layers(const oct_probe *p)
{
    return p->n - p->n_outputs;
}

static inline const oct_node *oct_probe_layer(const oct_probe *p, int32_t i)
{
    return p->values[p->n_outputs + i].value->producer;
}

#endif
