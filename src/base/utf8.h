/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 that nobody has checked. */
#ifndef OCT_BASE_UTF8_H
#define OCT_BASE_UTF8_H

#include <stdbool.h>

static inline bool oct_utf8_is_tail(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Length of the character at s (terminated text), or 0 if it is broken or a control character. */
static inline int oct_utf8_len(const char *s)
{
    const unsigned char c = (unsigned char)*s;
    const int len = c < 0x20 || c == 0x7f ? 0
                    : c < 0x80            ? 1
                    : c < 0xc2            ? 0
                    : c < 0xe0            ? 2
                    : c < 0xf0            ? 3
                    : c < 0xf5            ? 4
                                          : 0;

    for (int i = 1; i < len; i++)
        if (!oct_utf8_is_tail(s[i])) return 0;
    /* Overlong forms and surrogates are no characters either. */
    if ((c == 0xe0 && (unsigned char)s[1] < 0xa0) || (c == 0xed && (unsigned char)s[1] > 0x9f) ||
        (c == 0xf0 && (unsigned char)s[1] < 0x90) || (c == 0xf4 && (unsigned char)s[1] > 0x8f))
        return 0;
    return len;
}

#endif
