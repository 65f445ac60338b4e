/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a picture: ranges and angles, the same bits everywhere. */
#include <math.h>

#include "synth/synth.h"

float oct_rng_range(oct_rng *r, float lo, float hi)
{
    /* 24 bits: every value is exact in a float. */
    const float t = (float)(uint32_t)(oct_rng_u64(r) >> 40) * 0x1p-24f;

    return lo + (hi - lo) * t;
}

/* Sine of a quarter turn at most either way: its series, exact to a float's last bits. */
static float quarter_sin(float turns)
{
    const float x = turns * 6.2831853f, x2 = x * x;

    return x * (1 + x2 * (-1.0f / 6 + x2 * (1.0f / 120 + x2 * (-1.0f / 5040 + x2 / 362880))));
}

static float turn_sin(float turns)
{
    float t = turns - floorf(turns + 0.5f); /* half a turn at most either way */

    if (t > 0.25f) t = 0.5f - t;
    if (t < -0.25f) t = -0.5f - t;
    return quarter_sin(t);
}

void oct_sin_cos(float turns, float *s, float *c)
{
    *s = turn_sin(turns);
    *c = turn_sin(turns + 0.25f);
}
