/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text (RFC 4648, section 4). */
#ifndef OCT_BASE_BASE64_H
#define OCT_BASE_BASE64_H

#include "base/str.h"

/* Appends the text of size bytes. */
void oct_base64_put(oct_str *out, const void *data, size_t size);

/* The bytes of a text of len characters, into 3 bytes for every 4 of them. False: it is no such
 * text; there are no blanks and no ends of lines in one. */
bool oct_base64_get(const char *text, size_t len, void *data, size_t *size);

#endif
