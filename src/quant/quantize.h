/* SPDX-License-Identifier: Apache-2.0 */
/* What others share with the main job. */
#ifndef OCT_QUANT_QUANTIZE_H
#define OCT_QUANT_QUANTIZE_H

#include "quant/quantized.h"

/* A simplified copy: the network that is quantized, whose names the quantized one has. */
oct_status oct_quantize_normalise(const oct_graph *g, oct_graph **out);

#endif
