/* SPDX-License-Identifier: Apache-2.0 */
/* From what calibration saw to scales and zero points; corrections that follow from them. */
#ifndef OCT_QUANT_SOLVE_SOLVE_H
#define OCT_QUANT_SOLVE_SOLVE_H

#include "quant/observe/calibrate.h"
#include "quant/place/place.h"

/* Asks the calibration for what solving and correcting will need (watch.c). */
oct_status oct_solve_watch(const oct_qmap *m, const oct_target *t, const oct_quantize_options *o,
                           oct_calibration *c);

/* Must calibration observe this point's value? The result of a node that moves data has the scale
 * of its source. */
bool oct_qpoint_is_observed(const oct_qpoint *p);

/* A pre-activation (OCT_TARGET_MAY_PREACT) is observed for the error after its activation, because
 * nothing else consumes it. Other points are left alone. */
oct_status oct_preact_observer(const oct_qmap *m, int32_t point, oct_observer_options *o);

/* Biases of so few bits that weights make up for their rounding (correct/bias_residue.c), for which
 * spreads of inputs have to be known. */
static inline bool oct_cancels_residues(const oct_qmap *m)
{
    return m->target->bias == OCT_BIAS_POW2 && m->target->bias_spec.bits <= 8;
}

/* By point: 1 if only Sigmoids read its value, through nodes that move data (score_points.c). */
oct_status oct_score_points(const oct_qmap *m, oct_arena *a, uint8_t **out);

/* By point: how much each channel counts for the dense layers that consume it, 1 on average; NULL:
 * none does (channel_scales.c). */
oct_status oct_channel_importance(const oct_qmap *m, oct_arena *a, double ***out);

/* Scales between the channels' own and the largest of them (`channel_share`), finer for channels of
 * more importance; the low ends of the ranges stay. importance NULL: all the same. */
void oct_solve_channel_scales(const oct_qpoint *p, const double *importance, float *scale,
                              int32_t *zero, int64_t n);

/* Scales of activations (activation_scales.c), then of weights, which may depend on them
 * (weight_scales.c). */
oct_status oct_solve_activations(oct_qmap *m, const oct_calibration *c);

/* Solves one point again by itself: from what was seen of the values that its own is moved from,
 * without others that share a scale with them. */
oct_status oct_solve_consumer_point(oct_qmap *m, int32_t point, const oct_calibration *c);

/* Solves one point again, by another kind of range if `kind` is not NULL and the histograms that
 * were kept allow it: *done. */
oct_status oct_solve_point_again(oct_qmap *m, int32_t point, const oct_calibration *c,
                                 const char *kind, double percentile, bool *done);
oct_status oct_solve_weights(oct_qmap *m, const oct_target *t, const oct_quantize_options *o);

/* One weight again, whose spec is another now. */
oct_status oct_solve_weight_again(oct_qmap *m, int32_t point, const oct_target *t,
                                  const oct_quantize_options *o);

/* A solved weight gets the scales of another point if it is a product of them and codes of its
 * type; *fits tells. */
oct_status oct_weight_take_scales(oct_qmap *m, int32_t point, const oct_qpoint *from, oct_arena *a,
                                  bool *fits);

/* A point whose exponent (of the channel that moved most) was changed for a limit of an NPU. */
typedef struct oct_npu_move {
    int32_t point;
    const char *limit;    /* the last one, of npu/limits.c */
    const oct_node *node; /* where it would have been broken */
    int from, to;         /* e of the scale 2^-e */
} oct_npu_move;

typedef struct oct_npu_moves {
    oct_npu_move *at;
    int32_t n;
} oct_npu_moves;

/* Changes power-of-two scales so that the shifts between them fit an NPU (npu_shifts.c); nothing
 * for other targets. What was moved goes into *moves, in the arena; both may be NULL. */
oct_status oct_npu_fit(oct_qmap *m, oct_arena *a, oct_npu_moves *moves);

static inline oct_status oct_npu_shifts(oct_qmap *m)
{
    return oct_npu_fit(m, NULL, NULL);
}

/* One scale for each output channel, or one for all; n 0: there are none. */
typedef struct oct_scales {
    float *s;
    int64_t n;
} oct_scales;

/* bias_scales.c: the scales of a layer's accumulators, the input's times the weight's, where both
 * are known. */
oct_status oct_accumulator_scales(const oct_qmap *m, const oct_node *n, int64_t n_out, oct_arena *a,
                                  oct_scales *out);

/* Accumulator scales become those of a bias with fewer than 32 bits. */
void oct_bias_scales(const oct_qspec *spec, const float *bias, int64_t len, oct_scales *s);

/* Sets the scales of all biases with fewer than 32 bits, as corrected. */
oct_status oct_solve_biases(oct_qmap *m);

/* Signed or unsigned codes, so that ONNX Runtime does not fuse what it has no kernel for
 * (ort_signs.c). */
oct_status oct_ort_signs(oct_qmap *m);

/*
 * The values a weight has once quantized, in the weight's own order and scale (folding undone).
 * `error`: the difference to the float ones instead.
 */
oct_status oct_weight_values(const oct_qpoint *p, bool error, oct_arena *a, float **out);

/* The operand that has this role in the node's row, or -1 (bias_scales.c). */
int32_t oct_operand_of_role(const oct_node *n, oct_qrole role);

/* The bias of a layer, if it is constant and nothing else reads it; NULL. */
oct_value *oct_own_bias(const oct_node *n);

#endif
