/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corrections: what makes a network easier to quantize, or undoes what quantizing did to it.
 *
 * Their order, each only if it is asked for:
 *
 *   equalize     weights alone: neighbouring convolutions get channels of equal size
 *   smooth       one float pass: large input channels of matrix products move into the weights
 *   align        one float pass: channels between two convolutions get a common centre and width
 *   (place, calibrate, solve: quant/place/place.h, calibrate.h, solve.h)
 *   fast         means of the calibration: what rounded weights do to the mean of an output
 *   full         layer by layer, on the network quantized so far; starts from fast
 *
 * The first three change the weights of the float network, and its outputs by rounding alone; they
 * come first because ranges and scales are those of the changed network. Equalizing sees weights
 * only, so it goes before what was measured; smoothing is about other layers than aligning.
 */
#ifndef OCT_QUANT_CORRECT_CORRECT_H
#define OCT_QUANT_CORRECT_CORRECT_H

#include "feed/feed.h"
#include "quant/activation_after.h"
#include "quant/observe/calibrate.h"
#include "quant/place/place.h"

/* equalize.c: pairs of convolutions with nothing, Relu, LeakyRelu or PRelu between them, each the
 * other's only neighbour. *n_pairs may be NULL. */
oct_status oct_equalize(oct_graph *g, int32_t *n_pairs);

/*
 * smooth_quant.c and align_channels.c: `bound` is g with the shapes of the feed, and has its ids; g
 * is changed, `bound` is not. The metadata of g says what was moved.
 */
oct_status oct_smooth(oct_graph *g, const oct_graph *bound, oct_feed *f, double alpha,
                      int32_t *n_products);
oct_status oct_align(oct_graph *g, const oct_graph *bound, oct_feed *f, int32_t *n_pairs);

/* oct_channel_factors_fn (quant/correct/channel_factors.h): factors, then middles of the channels
 * between two convolutions. */
oct_status oct_align_again(oct_value *v, const double *x, int64_t n, oct_arena *a, bool *fits);

/* hard_activations.c: HardSwish and HardSigmoid in place of SiLU and Sigmoid, before all others. */
oct_status oct_harden(oct_graph *g, const char *tail, int32_t *n_changed);

/* centre_bins.c: sums over the bins of DFL count from the middle bin, for targets that compute them
 * in integers. */
oct_status oct_centre_bins(oct_graph *g);

/* centre_logits.c: layers whose results are read by a Softmax alone give `by` less. */
typedef struct oct_centred_layer {
    const oct_node *node;
    double by;
} oct_centred_layer;

typedef struct oct_centred {
    oct_centred_layer *at;
    int32_t n;
} oct_centred;

/*
 * Where points are symmetric. Biases of m->g and of g, which has its ids, are changed; what the
 * networks compute is not. The feed is at its beginning afterwards. *out is about g, whose metadata
 * tells, too, and lives as long.
 */
oct_status oct_centre_logits(const oct_qmap *m, oct_graph *g, oct_feed *f, oct_centred *out);

/* oct_channel_factors_fn: by how much */
oct_status oct_centre_again(oct_value *v, const double *x, int64_t n, oct_arena *a, bool *fits);

/* How many places each of these found to work on; -1: it was not asked for. */
typedef struct oct_corrections {
    int32_t equalized, smoothed, aligned, hardened;
    int32_t learned; /* the same of layers, for reconstruction (quant/learn/reconstruct.h) */
    int32_t healed;  /* layers whose channels healing made alike (quant/heal/channels.c); 0: none */
} oct_corrections;

static inline bool oct_corrections_any(const oct_corrections *c)
{
    return c->equalized > 0 || c->smoothed > 0 || c->aligned > 0 || c->hardened > 0 ||
           c->learned > 0 || c->healed > 0;
}

/* correct.c: those of the three that the options ask for. */
oct_status oct_correct_graph(oct_graph *g, const oct_dataset *images, const oct_quantize_options *o,
                             oct_corrections *done);

/* bias_fast.c: bias shifts from the float means of inputs undo what weight errors do to the mean.
 */
oct_status oct_correct_bias_fast(oct_qmap *m, const oct_calibration *c);

/* bias_full.c: shifts of all layers with quantized weights except the last ones. `bound` is the
 * graph of the map. */
oct_status oct_correct_bias_full(oct_qmap *m, const oct_graph *bound, oct_feed *f);

/* bias_residue.c: what rounding to 8 bits takes from a bias, a few weights give that are rounded
 * the other way. After bias scales are known; nothing for wider biases. */
oct_status oct_cancel_bias_residues(oct_qmap *m, const oct_calibration *c);

/*
 * bias_shift.c: what to add to a channel that has the values now[] and should have exact[], so that
 * the activation after it is nearest; 0 if the first `half` and the rest do not both improve.
 * scratch: n of them.
 */
float oct_best_shift(const oct_following_act *b, const float *exact, const float *now, int64_t n,
                     int64_t half, float *scratch);

#endif
