/* SPDX-License-Identifier: Apache-2.0 */
/* Red and blue exchanged, as SuperGradients' recipe for YOLO-NAS does. */
#include "augment/sample.h"

static oct_status change(oct_sample *s, oct_rng *r)
{
    const size_t n = (size_t)s->pixels.width * (size_t)s->pixels.height;
    uint8_t *p = s->pixels.at;

    if (!oct_chance(r, s->a->swap_channels)) return OCT_OK;
    for (size_t i = 0; i < n; i++, p += 3) {
        const uint8_t red = p[0];

        p[0] = p[2];
        p[2] = red;
    }
    return OCT_OK;
}

const oct_augment_row oct_augment_swap_channels = {
    .name = "swap_channels",
    .help = "exchanges red and blue",
    .change = change,
};
