/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Factors that were moved between layers before quantization, where they depended on images: a file
 * keeps them in its metadata, so that other tools can apply them to the float network. A JSON
 * object in the order of the work: the name of a value, and the factors of its channels (float32,
 * base64).
 */
#ifndef OCT_QUANT_CORRECT_CHANNEL_FACTORS_H
#define OCT_QUANT_CORRECT_CHANNEL_FACTORS_H

#include "graph/graph.h"

#define OCT_MOVED_SMOOTH "octet.smooth_quant"   /* factors */
#define OCT_MOVED_ALIGN  "octet.align_channels" /* factors, then middles */
#define OCT_MOVED_LOGITS "octet.centre_logits"  /* one number: what the value has less */

/* The most that one of them may enlarge a file; BERT's base needs 350 KB. */
enum { OCT_MOVED_MOST_BYTES = 1 << 20 };

typedef struct oct_channel_factors {
    const char *value;
    const double *x[2]; /* one number for each channel; the second may be NULL */
    int64_t channels;
} oct_channel_factors;

/* Without effect if the text would be too long, or if a name is not UTF-8. */
oct_status oct_channel_factors_write(oct_graph *g, const char *key, const oct_channel_factors *all,
                                     int32_t n);

/* Applies the n factors to one value. *fits is false, and nothing has changed, if they cannot
 * belong to this value. */
typedef oct_status (*oct_channel_factors_fn)(oct_value *v, const double *x, int64_t n, oct_arena *a,
                                             bool *fits);

/* Applies everything in the text, which may be anything. *all: every entry was valid and
 * applied. */
oct_status oct_channel_factors_replay(oct_graph *g, const char *text, oct_channel_factors_fn again,
                                      bool *all);

#endif
