/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of an analysis: each fills in its part of the result. */
#ifndef OCT_ANALYZE_ANALYZE_PARTS_H
#define OCT_ANALYZE_ANALYZE_PARTS_H

#include "analyze/analysis.h"
#include "analyze/side_by_side.h"

struct oct_noise;

/* split_outputs.c: the error measure of an output slice: few of its elements matter, and those
 * are not spread evenly. */
void oct_output_slice_noise(const oct_output_slice *o, struct oct_noise *out);

/* analyzed_layers.c: rows for layers, with what needs no images; outputs without errors. */
oct_status oct_analyze_layers(oct_analysis *a, const oct_pair *p);

/* statistics.c: rows for points. */
oct_status oct_analyze_statistics(oct_analysis *a, const oct_pair *p);

/* layerwise.c: errors at the outputs, one layer quantized at a time. */
oct_status oct_analyze_layerwise(oct_analysis *a, const oct_pair *p);

/* layerwise_reference.c: the same without sharing any work. */
oct_status oct_analyze_plain_loop(oct_analysis *a, const oct_pair *p);

/* graphwise.c: errors of layers and outputs, with everything quantized. */
oct_status oct_analyze_graphwise(oct_analysis *a, const oct_pair *p);

/* advice.c: what follows from all that. */
oct_status oct_analyze_advice(oct_analysis *a, const oct_pair *p);

#endif
