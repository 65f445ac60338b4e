/* SPDX-License-Identifier: Apache-2.0 */
/* What others share with the main job. */
#ifndef OCT_QUANT_QUANTIZE_H
#define OCT_QUANT_QUANTIZE_H

#include <octet/quant.h>

#include "quant/qmap.h"

/* A simplified copy: the network that is quantized, whose names the quantized one has. */
oct_status oct_quantize_normalise(const oct_graph *g, oct_graph **out);

/* The network that is quantized, and its qmap. Learning changes both. */
oct_graph *oct_quantized_float(const oct_quantized *q);
oct_qmap *oct_quantized_map(const oct_quantized *q);

/* The quantized network as both are now, with the same notes on its origin. The caller frees it. */
oct_status oct_quantized_lower(const oct_quantized *q, oct_graph **out);

#endif
