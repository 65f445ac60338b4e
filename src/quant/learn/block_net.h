/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One block as a network of its own.
 *
 *   whole network ── oct_block_extract() ──▶ graph: the block's inputs to its outputs
 *   lowered one   ── oct_block_net_new() ──▶ the same with weights and biases of its layers as
 *                    inputs, Q and DQ pairs as FakeQuant, and the loss and its gradients as outputs
 */
#ifndef OCT_QUANT_LEARN_BLOCK_NET_H
#define OCT_QUANT_LEARN_BLOCK_NET_H

#include <octet/plan.h>

#include "op/grad/fake_quant.h"
#include "optim/params.h"
#include "quant/learn/blocks.h"

/*
 * `whole` has the ids of the graph that the block was found in (a lowered graph has). Inputs and
 * outputs of *out are in the block's order. A value that everything reads rounded is given rounded:
 * its scale belongs to the block that computes it.
 */
oct_status oct_block_extract(const oct_graph *whole, const oct_block *b, oct_graph **out);

/* A block that can be computed, a picture at a time. */
typedef struct oct_block_run {
    oct_plan *plan;
    oct_run *run;
    float **in;        /* memory of its inputs, to be filled */
    const float **out; /* its outputs, after oct_run_execute() */
} oct_block_run;

/* `simulate`: see oct_plan_options. Arrays live in the arena. */
oct_status oct_block_run_new(const oct_graph *whole, const oct_block *b, bool simulate,
                             oct_arena *a, oct_block_run *out);
oct_status oct_block_run_execute(oct_block_run *r, const oct_block *b);
void oct_block_run_fini(oct_block_run *r);

/* Can weights v of point p be others: is it a constant of one reader, without zero points? */
bool oct_block_learns_weight(const oct_qpoint *p, const oct_value *v);

/* What of a layer is learned. */
typedef struct oct_block_layer {
    const oct_node *node;    /* of the block */
    int32_t weight, bias;    /* parameters of the net; -1: not learned */
    const oct_qpoint *point; /* of the weight */
} oct_block_layer;

/* The scale of an activation that is learned, as a logarithm to base 2. */
typedef struct oct_block_scale {
    int32_t param;
    int32_t point; /* of the qmap: the root of all that have this scale */
    oct_step_kind kind;
} oct_block_scale;

typedef struct oct_block_net {
    oct_ctx *ctx;
    const oct_block *block;
    oct_plan *plan;
    oct_run *run;
    oct_params params; /* scales; weights and biases as the layers read them */
    float *values;     /* flat: change it between steps */
    oct_block_layer *layers;
    int32_t n_layers;
    oct_block_scale *scales;
    int32_t n_scales;
    float **in, **target; /* to be filled before each step */
    float **counts;       /* of each target: what its places count, 1 at first; NULL: no places */
    float **memory;       /* inputs, targets, counts: owned */
} oct_block_net;

/*
 * The loss is the sum over the block's outputs of weight[i] * mean squared error, places by what
 * they count. Weights that
 * several nodes read, and those with zero points, are not learned. The values begin with the float
 * weights, and with biases as bias correction left them.
 *
 * `scales`: those of activations are learned, too, where the block computes all values that have
 * them. One for each channel, those that a single consumer has for itself, and those of logits of
 * scores are not.
 */
oct_status oct_block_net_new(const oct_qmap *m, const oct_block *b, const double *weight,
                             bool scales, oct_block_net **out);
void oct_block_net_free(oct_block_net *n); /* accepts NULL */

oct_status oct_block_net_step(oct_block_net *n); /* forward and backward */
double oct_block_net_loss(const oct_block_net *n);
const float *oct_block_net_grad(const oct_block_net *n, int32_t param);

#endif
