/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where pictures show objects, as the float network finds them. Most places of most pictures are
 * background, and what is fitted to all places alike is fitted to that.
 */
#ifndef OCT_QUANT_LEARN_OBJECTS_H
#define OCT_QUANT_LEARN_OBJECTS_H

#include "graph/graph.h"

typedef struct oct_objects {
    float *cells; /* [picture][row][column]: what places count; NULL: all the same */
} oct_objects;

/*
 * `inputs`: by value id, what the network's inputs are for all pictures, as float16; `family` NULL:
 * recognised. A network that is no detector has no objects: that is no error.
 */
oct_status oct_objects_find(const oct_graph *g, const char *family, uint16_t *const *inputs,
                            int64_t pictures, oct_arena *a, oct_objects *out);

/* What place (y, x) of a feature map of height x width counts. */
float oct_objects_at(const oct_objects *s, int64_t picture, int64_t y, int64_t x, int64_t height,
                     int64_t width);

/* Places of a value [1, channels, height, width]; 0: it is no feature map. */
int64_t oct_objects_places(const oct_type *t);

/* What they count, 1 on average, row by row. */
void oct_objects_spread(const oct_objects *s, int64_t picture, const oct_type *t, float *to);

#endif
