/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the picture somewhere on a larger empty one: objects become smaller. */
#include <math.h>

#include "augment/sample.h"

static oct_status arrange(oct_sample *s, oct_rng *r)
{
    const double ratio = oct_between(r, 1, s->a->expand_max);
    const double u = oct_rng_f64(r), v = oct_rng_f64(r);
    const double w = floor(s->im->width * ratio), h = floor(s->im->height * ratio);
    double x, y;

    if (!oct_chance(r, s->a->expand)) return OCT_OK;
    x = -floor(u * (w - s->im->width));
    y = -floor(v * (h - s->im->height));
    s->scene.part = (oct_area){x, y, x + w, y + h};
    return OCT_OK;
}

const oct_augment_row oct_augment_expand = {
    .name = "expand",
    .help = "puts pictures on larger empty ones",
    .arrange = arrange,
};
