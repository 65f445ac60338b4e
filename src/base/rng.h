/* SPDX-License-Identifier: Apache-2.0 */
/* A small seeded generator: the same numbers on every machine. */
#ifndef OCT_BASE_RNG_H
#define OCT_BASE_RNG_H

#include <stdint.h>

typedef struct oct_rng {
    uint64_t state;
} oct_rng;

static inline void oct_rng_init(oct_rng *r, uint64_t seed)
{
    r->state = seed;
}

/* splitmix64 */
static inline uint64_t oct_rng_u64(oct_rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [0, 1). */
static inline double oct_rng_f64(oct_rng *r)
{
    return (double)(oct_rng_u64(r) >> 11) * 0x1p-53;
}

/* Uniform in [0, n); n > 0. */
static inline uint64_t oct_rng_below(oct_rng *r, uint64_t n)
{
    return oct_rng_u64(r) % n;
}

/* Normal, mean 0, deviation 1. */
double oct_rng_normal(oct_rng *r);

#endif
