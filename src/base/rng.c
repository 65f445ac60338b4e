/* SPDX-License-Identifier: Apache-2.0 */
/* Normal numbers, the same bits everywhere. */
#include "base/rng.h"

#include <math.h>

/*
 * ln x for x in (0, 1]. Not libm's: its last bit differs from machine to machine, these few
 * additions and products do not.
 */
static double portable_log(double x)
{
    const double ln2 = 0.693147180559945309417;
    double t, t2, sum = 0;
    int e;

    x = frexp(x, &e); /* [0.5, 1) */
    if (x < 0.70710678118654752) {
        x *= 2;
        e--;
    }
    t = (x - 1) / (x + 1); /* |t| < 0.172: t^23 is below the last bit */
    t2 = t * t;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * t2 + 1.0 / k;
    return 2 * t * sum + e * ln2;
}

double oct_rng_normal(oct_rng *r)
{
    double u, v, s;

    /* A point in the unit disc; its direction is uniform, its radius gives the normal one. */
    do {
        u = 2 * oct_rng_f64(r) - 1;
        v = 2 * oct_rng_f64(r) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s <= 0);
    return u * sqrt(-2 * portable_log(s) / s);
}
