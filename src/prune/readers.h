/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers (Conv without groups, Gemm) that read channels which may go, and what they read of
 * pictures: second moments of their inputs. With these, what a layer loses with a channel, and the
 * weights of the others that make up for it as well as they can, follow by least squares, without
 * labels and gradients.
 */
#ifndef OCT_PRUNE_READERS_H
#define OCT_PRUNE_READERS_H

#include "op/conv_geometry.h"
#include "prune/groups.h"

typedef struct oct_reader {
    oct_node *node;
    const oct_cut *cut;   /* of its weights: the units that it reads */
    oct_conv_geometry at; /* Gemm: of one pixel */
    int64_t w_out, w_in;  /* from one output's weights to the next, and from one input's */
    int64_t k;            /* inputs with those of the kernel, and a constant 1 at the end */
    int64_t width;        /* inputs of one channel: the kernel's size */
    int64_t places;       /* of a picture that are sampled */
    double *a;            /* [k][k]: means of products of inputs, with a ridge */
    float *xs;            /* samples, while they are taken: [picture][place][k] */
} oct_reader;

typedef struct oct_readers {
    oct_prune_groups *g;
    oct_reader *v;
    int32_t n;
} oct_readers;

/* Layers get biases of their own, where a constant can be added: before channels are found. */
oct_status oct_readers_prepare(oct_graph *g);

/* Runs the network on the pictures of the options. */
oct_status oct_readers_measure(oct_prune_groups *g, const oct_prune_options *o, oct_readers *out);
void oct_readers_free(oct_readers *r);

/*
 * Scores of all units: what layers that read a unit lose with it, as a share of the variance of
 * what they give, after units of less importance went and the others made up for that. For a target
 * of multiply-adds or weights it is divided by those that go with the unit. Groups that other
 * layers read are protected.
 */
oct_status oct_readers_score(const oct_readers *r, const oct_prune_options *o);

/* Weights and biases, for the units that are kept. */
oct_status oct_readers_refit(const oct_readers *r);

#endif
