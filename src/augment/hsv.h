/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of hue, saturation and value, for the rows that make them. */
#ifndef OCT_AUGMENT_HSV_H
#define OCT_AUGMENT_HSV_H

#include "augment/sample.h"

/* hue + turn, saturation * s + add_s, value * v + add_v; then clipped to 0..1. */
typedef struct oct_hsv_change {
    double turn; /* of the circle, -1 to 1 */
    double s, add_s, v, add_v;
} oct_hsv_change;

void oct_hsv_apply(const oct_rgb *im, const oct_hsv_change *c);

/* Every byte through a table. */
void oct_table_apply(const oct_rgb *im, const uint8_t table[256]);

#endif
