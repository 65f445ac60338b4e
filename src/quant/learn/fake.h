/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake quantization: a float graph whose points are rounded to the values that have codes, so that
 * weights, scales and zero points can be learned.
 *
 *   g, qmap ── oct_fake_new() ──▶ g with a constant for each scale and zero point that can be
 * learned ── oct_fake_insert() ──▶ a copy of g (any batch) with FakeQuant nodes
 *   ... learning changes constants of g: weights, biases, scales, zero points ...
 *           ── oct_fake_take() ──▶ qmap with the learned scales; constants of g on their grids
 *           ── oct_lower() ──▶ the file, which has the very codes that learning saw
 */
#ifndef OCT_QUANT_LEARN_FAKE_H
#define OCT_QUANT_LEARN_FAKE_H

#include "quant/qmap.h"

typedef struct oct_fake_options {
    bool fix_scales;   /* scales are not learned; powers of two neither */
    bool learn_zeros;  /* zero points of asymmetric activations are learned (LSQ+) */
    bool clips_only;   /* scales of activations learn from what is clipped alone (PACT) */
    bool plain_scales; /* a scale itself is learned (LSQ), not its logarithm */
} oct_fake_options;

typedef struct oct_fake oct_fake;

/*
 * Adds constants to g, the graph of the qmap: "NAME_step" and "NAME_zero" for each point that has
 * parameters of its own. A step is the scale's logarithm to base 2 (plain_scales: the scale; powers
 * of two are always logarithms, rounded when used). What bias correction adds moves into the
 * biases. Graph and qmap must outlive it.
 */
oct_status oct_fake_new(oct_graph *g, oct_qmap *m, const oct_fake_options *o, oct_fake **out);
void oct_fake_free(oct_fake *f); /* accepts NULL */

/*
 * Puts FakeQuant nodes into a copy of g that has the same ids of values and nodes; nodes that were
 * added to the copy (a loss) read rounded values, too. The first argument is an oct_fake, so that
 * this can be a callback.
 */
oct_status oct_fake_insert(void *fake, oct_graph *copy);

/*
 * Takes weights, biases, steps and zero points of a copy of g, in which learning changed them: into
 * the qmap's points, and into the constants of g, where weights and biases with few bits become
 * values that have codes.
 */
oct_status oct_fake_take(oct_fake *f, const oct_graph *learned);

/* What the constant `name` (a step of n elements) is to be for the scales that the qmap has now;
 * `out` is left alone if no point has such a constant. */
void oct_fake_step(const oct_fake *f, const char *name, float *out, int64_t n);

typedef struct oct_fake_grid {
    double step;           /* between codes; the mean, where there are several. 0: none */
    double step_of_8_bits; /* what it would be with as many codes */
} oct_fake_grid;

/* How constant v is rounded. */
oct_fake_grid oct_fake_grid_of(const oct_fake *f, const oct_value *v);

#endif
