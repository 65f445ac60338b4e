/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: checked decoding and columns on a terminal. */
#ifndef CLI_UTF8_H
#define CLI_UTF8_H

#include <stdint.h>
#include <stdio.h>

/* Bytes of the character at s and its code point; 0 at the end; -1 if the bytes are not UTF-8. */
int cli_utf8_next(const char *s, uint32_t *code);

/* Columns a character takes: 0 (combining), 1 or 2 (wide). */
int cli_utf8_width(uint32_t code);

/*
 * A copy in `width` columns at most, to be freed: of a longer text, `head` columns and the end,
 * with
 * ".." between them; exactly `width` columns then.
 */
char *cli_utf8_shorten(const char *text, int width, int head);

#endif
