/* SPDX-License-Identifier: Apache-2.0 */
/* Hash map from a string to a pointer. Keys are borrowed: they must outlive the map. */
#ifndef OCT_BASE_MAP_H
#define OCT_BASE_MAP_H

#include "base/status.h"

typedef struct oct_map {
    oct_ctx *ctx;
    struct oct_map_slot *slots;
    size_t n, cap;
    uint64_t seed; /* of the hash */
} oct_map;

void oct_map_init(oct_map *m, oct_ctx *ctx);
void oct_map_fini(oct_map *m);
oct_status oct_map_put(oct_map *m, const char *key,
                       void *value);                  /* replaces; value must not be NULL */
void *oct_map_get(const oct_map *m, const char *key); /* NULL if absent */

/* The key nearest to `key` by edit distance, or NULL if none is near; for "did you mean". */
const char *oct_map_nearest(const oct_map *m, const char *key);

/* Edit distance with a bound: returns bound + 1 if it is larger. */
int oct_edit_distance(const char *a, const char *b, int bound);

/* The nearest of several names, which are tried one by one; the first of equals wins. */
typedef struct oct_nearest {
    const char *want;
    int distance;     /* a name must be nearer than this; later the distance of the best one */
    const char *name; /* the best so far; as the caller set it while none is near enough */
} oct_nearest;

/* True if `name` is now the best one. */
bool oct_nearest_try(oct_nearest *n, const char *name);

uint64_t oct_hash_bytes(const void *p, size_t size, uint64_t seed);

#endif
