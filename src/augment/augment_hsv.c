/* SPDX-License-Identifier: Apache-2.0 */
/* Hue turned, saturation and value multiplied, as Ultralytics does. */
#include "augment/hsv.h"

static oct_status change(oct_sample *s, oct_rng *r)
{
    const oct_augment *a = s->a;
    const oct_hsv_change c = {.turn = oct_between(r, -a->hsv_h, a->hsv_h),
                              .s = 1 + oct_between(r, -a->hsv_s, a->hsv_s),
                              .v = 1 + oct_between(r, -a->hsv_v, a->hsv_v)};

    if (oct_chance(r, a->hsv) && (a->hsv_h > 0 || a->hsv_s > 0 || a->hsv_v > 0))
        oct_hsv_apply(&s->pixels, &c);
    return OCT_OK;
}

const oct_augment_row oct_augment_hsv = {
    .name = "hsv",
    .help = "turns the hue, multiplies saturation and value",
    .change = change,
};
