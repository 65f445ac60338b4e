/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantization-aware training: what a training job has beside the float one's.
 *
 *   network ──oct_quantize()──▶ float network and qmap ──oct_fake_new()──▶ with scales as
 * parameters
 *   ... training: see train.c ...
 *   its weights and scales ──oct_fake_take()──▶ qmap ──▶ shifts that fit ──▶ the quantized network
 */
#ifndef OCT_TRAIN_QAT_H
#define OCT_TRAIN_QAT_H

#include <octet/train.h>

#include "train/net.h"
#include "train/settings.h"

typedef struct oct_qat oct_qat;

/* Quantizes g on the pictures. Graph, pictures and options are needed during the call only. */
oct_status oct_qat_new(const oct_graph *g, const oct_dataset *images, const oct_train_options *o,
                       const oct_train_settings *s, oct_qat **out);
void oct_qat_free(oct_qat *q); /* accepts NULL */

const oct_quantized *oct_qat_quantized(const oct_qat *q); /* by calibration alone */

/* The network before blocks learned its weights and biases took what correction adds: a teacher. */
const oct_graph *oct_qat_as_it_came(const oct_qat *q);

/* The network that is trained: simplified, float, with constants for scales; and how its graph for
 * training gets the rounding. */
const oct_graph *oct_qat_network(const oct_qat *q);
void oct_qat_hook(oct_qat *q, oct_train_net_options *net);

/* Rates of scales and zero points, and of weights by the steps of their codes. */
oct_status oct_qat_set_rates(const oct_qat *q, const oct_train_settings *s, oct_params *p);

/*
 * Before update `step` (from 0) of `total`: once the share of freeze_scales has passed, scales no
 * longer change; powers of two get values that fit the NPU's shifters.
 */
oct_status oct_qat_freeze(oct_qat *q, oct_train_net *net, int64_t step, int64_t total);

/* After that, averages have the scales themselves. */
void oct_qat_keep_scales(const oct_qat *q, const oct_params *p, const float *live, float *average,
                         int64_t step, int64_t total);

/* `learned` is a copy of the network with other constants. `fit`: powers of two fit the NPU's
 * shifters. The caller frees *out. */
oct_status oct_qat_graph(oct_qat *q, const oct_graph *learned, bool fit, oct_graph **out);

/* A copy of g whose running statistics were estimated anew by `steps` batches; weights are the
 * same. `next` fills the net's pictures and labels. */
typedef oct_status (*oct_next_batch)(void *arg, oct_train_net *net);
oct_status oct_adapt_norms(const oct_graph *g, const oct_train_net_options *net, int64_t steps,
                           oct_next_batch next, void *arg, oct_graph **out);

#endif
