/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What passes between blocks, for all pictures: each value as the float network has it, and as the
 * quantized one has it so far. Kept from the block that computes it to the last one that reads it,
 * as float16: its error is far below that of 8 bits.
 */
#ifndef OCT_QUANT_LEARN_BLOCK_VALUES_H
#define OCT_QUANT_LEARN_BLOCK_VALUES_H

#include "base/rng.h"
#include "feed/feed.h"
#include "quant/learn/block_net.h"
#include "quant/learn/objects.h"

typedef enum oct_block_side { OCT_SIDE_EXACT, OCT_SIDE_NOW, OCT_SIDES } oct_block_side;

typedef struct oct_block_values {
    oct_ctx *ctx;
    const oct_blocks *blocks;
    const oct_graph *g;
    int64_t pictures;
    uint16_t **data[OCT_SIDES]; /* by value id: [picture, element]; NULL: not computed, or done */
    int32_t *last;              /* by value id: the last block that reads it; -1: none does */
    float *low, *high;          /* by value id: see oct_block_values_bound(); 0 and 0: no bounds */
    oct_objects objects;        /* what places count in errors */
} oct_block_values;

/*
 * As many pictures of the feed as `bytes` have room for at the widest place, but at least 4; inputs
 * of the network are read. `g` is the graph of the blocks.
 */
oct_status oct_block_values_new(const oct_graph *g, const oct_blocks *b, oct_feed *f, size_t bytes,
                                oct_arena *a, oct_block_values *out);
void oct_block_values_fini(oct_block_values *s);

/*
 * Logits of scores (oct_score_points()) are compared as far as their codes reach: beyond, all
 * scores are 0 or 1, and the range was chosen so. The float side is kept within it from now on.
 */
oct_status oct_block_values_bound(oct_block_values *s, const oct_qmap *m, oct_arena *a);

/* y within the bounds of v: y itself if there are none, or `scratch`, filled. */
const float *oct_block_values_within(const oct_block_values *s, const oct_value *v, const float *y,
                                     float *scratch);

/* What the elements of a plane of v count, into `scratch`, and how many they are; a value that is
 * no feature map is one plane of one element that counts 1. */
int64_t oct_block_values_counts(const oct_block_values *s, const oct_value *v, int64_t picture,
                                float *scratch);

/* One value of one picture. */
void oct_block_values_read(const oct_block_values *s, oct_block_side side, const oct_value *v,
                           int64_t picture, float *to);

/*
 * The same of the side NOW, but for a share `drop` of the elements, drawn anew each time, which are
 * as the float network has them (QDrop): what is learned from that suits more errors than those
 * which the blocks before happen to make. `scratch` has room for the value.
 */
void oct_block_values_mix(const oct_block_values *s, const oct_value *v, int64_t picture,
                          double drop, oct_rng *rng, float *to, float *scratch);

/* Squared error of each output of a block, and the power of the exact one, over some pictures,
 * places by what they count. */
typedef struct oct_block_error {
    double error, power;
} oct_block_error;

/*
 * Computes block `b` of the graph (the float one, or one lowered from it) on one side of all
 * pictures and keeps what it gives. NOW: compares it with the exact values; errors of pictures that
 * learn, then of those held out, n_out each. `errors` may be NULL for EXACT.
 */
oct_status oct_block_values_compute(oct_block_values *s, int32_t b, const oct_graph *g,
                                    oct_block_side side, oct_block_error *errors);

/* Blocks up to b are done: frees what no later one reads. */
void oct_block_values_done(oct_block_values *s, int32_t b);

/* Every eighth picture is not learned from: what is better there is better. */
static inline bool oct_block_holds_out(int64_t picture)
{
    return picture % 8 == 3;
}

/* The i-th picture that is held out. */
static inline int64_t oct_block_held_out(int64_t i)
{
    return i * 8 + 3;
}

#endif
