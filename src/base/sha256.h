/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4): what a file is known by, the same as sha256sum prints. */
#ifndef OCT_BASE_SHA256_H
#define OCT_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { OCT_SHA256_BYTES = 32, OCT_SHA256_TEXT = 65 }; /* text: 64 digits and the end */

void oct_sha256_bytes(const void *data, size_t size, uint8_t digest[OCT_SHA256_BYTES]);

/* Hexadecimal digits of the digest of size bytes. Returns text. */
const char *oct_sha256(const void *data, size_t size, char text[OCT_SHA256_TEXT]);

#endif
