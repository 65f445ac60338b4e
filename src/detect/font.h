/* SPDX-License-Identifier: Apache-2.0 */
/* A small font for labels on pictures. */
#ifndef OCT_DETECT_FONT_H
#define OCT_DETECT_FONT_H

#include <stddef.h>
#include <stdint.h>

enum {
    OCT_FONT_WIDTH = 5,
    OCT_FONT_HEIGHT = 9,  /* seven above the line, two below */
    OCT_FONT_ADVANCE = 6, /* from letter to letter */
};

/* OCT_FONT_HEIGHT rows, the leftmost pixel in bit 4. Anything but ASCII is shown as '?'. */
const uint8_t *oct_font_glyph(char c);

#endif
