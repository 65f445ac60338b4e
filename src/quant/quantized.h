/* SPDX-License-Identifier: Apache-2.0 */
/* The result of quantizing, for the files that fill it (quantize.c) and read it (quantized.c). */
#ifndef OCT_QUANT_QUANTIZED_H
#define OCT_QUANT_QUANTIZED_H

#include <octet/quant.h>

#include "quant/correct/correct.h"
#include "quant/heal/heal.h"
#include "quant/learn/reconstruct.h"
#include "quant/retarget.h"
#include "quant/solve/solve.h"

struct oct_quantized {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_quantize_options o;
    const oct_target *target;
    oct_graph *g;              /* normalised float network */
    oct_corrections corrected; /* how its weights differ from those of the file */
    oct_centred centred;       /* and biases before a Softmax */
    oct_qmap *file;            /* what it was quantized with before; NULL: it was float */
    oct_retargeted from_file;
    oct_graph *bound;     /* the same with the shapes of the data */
    oct_graph *exact;     /* that before blocks learned other weights; NULL: none did */
    oct_graph *unlearned; /* and the network, with its own shapes */
    oct_reconstruction learned;
    oct_qmap *m;
    oct_healing healed; /* what was mended in it */
    oct_mend *cured;    /* and in weights before */
    oct_graph *qdq;
    oct_npu_moves moves;  /* what was fitted to an NPU */
    oct_qmap *before;     /* without that, of `bound`; NULL: nothing was moved */
    oct_graph *unaligned; /* and its graph */
    oct_quantize_summary summary;
    oct_quantize_layer *layers;
    int32_t n_layers;
};

/* Layers and their sums in the summary, from the qmap as it is. */
oct_status oct_quantized_list_layers(oct_quantized *q);

/* Error at the output of each layer, with everything quantized. */
oct_status oct_quantized_measure(oct_quantized *q, oct_feed *f);

/* The network that is quantized, and its qmap. Learning changes both. */
oct_graph *oct_quantized_float(const oct_quantized *q);
oct_qmap *oct_quantized_map(const oct_quantized *q);

/* The former as it was before blocks learned other weights. */
const oct_graph *oct_quantized_unlearned(const oct_quantized *q);

/* The quantized network as both are now, with the same notes on its origin. The caller frees it. */
oct_status oct_quantized_lower(const oct_quantized *q, oct_graph **out);

#endif
