/* SPDX-License-Identifier: Apache-2.0 */
/* A float16 network as a float32 one. */
#ifndef OCT_QUANT_WIDEN_FLOAT16_H
#define OCT_QUANT_WIDEN_FLOAT16_H

#include "graph/graph.h"

/* float16 inside becomes float32; inputs and outputs keep their type. */
oct_status oct_quantize_widen(oct_graph *g, bool *changed);

#endif
