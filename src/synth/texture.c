/* SPDX-License-Identifier: Apache-2.0 */
/* Textures: how two colours alternate over a plane. */
#include "synth/synth.h"

#include <math.h>

/* A grey value for a whole point. */
static float lattice(uint32_t seed, int32_t x, int32_t y)
{
    uint32_t h = seed ^ ((uint32_t)x * 0x8da6b343u) ^ ((uint32_t)y * 0xd8163841u);

    h = (h ^ (h >> 16)) * 0x7feb352du;
    h = (h ^ (h >> 15)) * 0x846ca68bu;
    h ^= h >> 16;
    return (float)(h >> 8) * 0x1p-24f;
}

static float smooth(float t)
{
    return t * t * (3 - 2 * t);
}

float oct_value_noise(uint32_t seed, float x, float y)
{
    const float fx = floorf(x), fy = floorf(y);
    const int32_t ix = (int32_t)fx, iy = (int32_t)fy;
    const float tx = smooth(x - fx), ty = smooth(y - fy);
    const float a = lattice(seed, ix, iy), b = lattice(seed, ix + 1, iy);
    const float c = lattice(seed, ix, iy + 1), d = lattice(seed, ix + 1, iy + 1);
    const float top = a + (b - a) * tx, low = c + (d - c) * tx;

    return top + (low - top) * ty;
}

void oct_texture_init(oct_texture *t, oct_texture_kind kind, float extent, oct_rng *r)
{
    const float fine = kind == OCT_TEXTURE_GRADIENT ? 1 : oct_rng_range(r, 0.08f, 0.6f);

    t->kind = kind;
    oct_sin_cos(oct_rng_range(r, 0, 1), &t->sin, &t->cos);
    t->period = fine * extent;
    if (t->period < 3) t->period = 3; /* finer than the pixels would only be grey */
    t->phase = oct_rng_range(r, 0, 1);
    t->hardness = oct_rng_range(r, 1, 8);
    t->seed = (uint32_t)oct_rng_u64(r);
}

/* 0 to 1 and back within one turn, with flattened ends: soft or hard stripes. */
static float wave(float turns, float hardness)
{
    const float t = turns - floorf(turns);
    const float up = t < 0.5f ? 2 * t : 2 - 2 * t;

    return oct_clamp01((up - 0.5f) * hardness + 0.5f);
}

float oct_texture_mix(const oct_texture *t, float x, float y)
{
    const float scale = 1 / t->period;
    const float u = (x * t->cos + y * t->sin) * scale + t->phase;
    const float v = (y * t->cos - x * t->sin) * scale + t->phase;
    float a, b;

    switch (t->kind) {
    case OCT_TEXTURE_GRADIENT:
        return oct_clamp01(u * 0.5f);
    case OCT_TEXTURE_STRIPES:
        return wave(u, t->hardness);
    case OCT_TEXTURE_CHECKS:
        a = wave(u, t->hardness);
        b = wave(v, t->hardness);
        return a + b - 2 * a * b; /* where one of the two is on */
    case OCT_TEXTURE_NOISE:
        a = oct_value_noise(t->seed, 2 * u, 2 * v);
        b = oct_value_noise(t->seed + 1, 5 * u, 5 * v);
        return oct_clamp01(((a * 0.7f + b * 0.3f) - 0.5f) * 1.6f + 0.5f);
    default:
        return 0;
    }
}
