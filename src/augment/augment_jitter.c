/* SPDX-License-Identifier: Apache-2.0 */
/* Brightness, contrast, saturation and hue, each or not, as NanoDet and PaddleDetection do. */
#include <math.h>

#include "augment/hsv.h"

static oct_status change(oct_sample *s, oct_rng *r)
{
    const oct_augment *a = s->a;
    const double add = oct_between(r, -a->brightness_add, a->brightness_add) * 255;
    const double contrast = oct_between(r, a->contrast_min, a->contrast_max);
    const bool has_brightness = oct_chance(r, a->jitter), has_contrast = oct_chance(r, a->jitter);
    const double factor = has_contrast ? contrast : 1, offset = has_brightness ? add * factor : 0;
    const double saturation = oct_between(r, a->saturation_min, a->saturation_max);
    const double turn = oct_between(r, -a->hue_degrees, a->hue_degrees) / 360;
    const oct_hsv_change c = {.s = oct_chance(r, a->jitter) ? saturation : 1,
                              .turn = oct_chance(r, a->jitter) ? turn : 0,
                              .v = 1};
    uint8_t table[256];

    if (factor != 1 || offset != 0) {
        for (int i = 0; i < 256; i++)
            table[i] = (uint8_t)lrint(OCT_MIN(OCT_MAX(i * factor + offset, 0.0), 255.0));
        oct_table_apply(&s->pixels, table);
    }
    if (c.s != 1 || c.turn != 0) oct_hsv_apply(&s->pixels, &c);
    return OCT_OK;
}

const oct_augment_row oct_augment_jitter = {
    .name = "jitter",
    .help = "changes brightness, contrast, saturation and hue",
    .change = change,
};
