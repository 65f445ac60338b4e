/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was moved between layers before quantizing, where it depended on pictures: a file has it in
 * its metadata, so that others can do the same to the float network. A JSON object in the order of
 * the work: the name of a value, and the numbers of its channels (float32, base64).
 */
#ifndef OCT_QUANT_CORRECT_CHANNEL_FACTORS_H
#define OCT_QUANT_CORRECT_CHANNEL_FACTORS_H

#include "graph/graph.h"

#define OCT_MOVED_SMOOTH "octet.smooth_quant"   /* factors */
#define OCT_MOVED_ALIGN  "octet.align_channels" /* factors, then middles */

/* The most that a file is made larger by one of them; BERT's base needs 350 KB. */
enum { OCT_MOVED_MOST_BYTES = 1 << 20 };

typedef struct oct_channel_factors {
    const char *value;
    const double *x[2]; /* one number for each channel; the second may be NULL */
    int64_t channels;
} oct_channel_factors;

/* Without effect if it would be too long, or if a name is no UTF-8. */
oct_status oct_channel_factors_write(oct_graph *g, const char *key, const oct_channel_factors *all,
                                     int32_t n);

/* The numbers of one value, n of them, done to it. *fits is false, and nothing has changed, if they
 * cannot be numbers of this value. */
typedef oct_status (*oct_channel_factors_fn)(oct_value *v, const double *x, int64_t n, oct_arena *a,
                                             bool *fits);

/* All that the text has, which may be anything. *all: every entry was one, and fitted. */
oct_status oct_channel_factors_replay(oct_graph *g, const char *text, oct_channel_factors_fn again,
                                      bool *all);

#endif
