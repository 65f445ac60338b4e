/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers added to hue, saturation and value, each or not, as YOLOX and SuperGradients do. */
#include <math.h>

#include "augment/hsv.h"

static double draw(oct_rng *r, double most, double probability)
{
    const double v = trunc(oct_between(r, -most, most));

    return oct_chance(r, probability) ? v : 0;
}

static oct_status change(oct_sample *s, oct_rng *r)
{
    const oct_augment *a = s->a;
    const oct_hsv_change c = {.turn = draw(r, a->hsv_add_h, a->hsv_add_each) / 180,
                              .s = 1,
                              .add_s = draw(r, a->hsv_add_s, a->hsv_add_each) / 255,
                              .v = 1,
                              .add_v = draw(r, a->hsv_add_v, a->hsv_add_each) / 255};

    if (oct_chance(r, a->hsv_add) && (c.turn != 0 || c.add_s != 0 || c.add_v != 0))
        oct_hsv_apply(&s->pixels, &c);
    return OCT_OK;
}

const oct_augment_row oct_augment_hsv_add = {
    .name = "hsv_add",
    .help = "adds to hue, saturation and value",
    .change = change,
};
