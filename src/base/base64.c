/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void oct_base64_put(oct_str *out, const void *data, size_t size)
{
    const unsigned char *p = data;
    char part[4];

    for (size_t i = 0; i < size; i += 3) {
        const unsigned b1 = i + 1 < size ? p[i + 1] : 0, b2 = i + 2 < size ? p[i + 2] : 0;
        const unsigned v = (unsigned)p[i] << 16 | b1 << 8 | b2;

        part[0] = digits[v >> 18];
        part[1] = digits[v >> 12 & 63];
        part[2] = i + 1 < size ? digits[v >> 6 & 63] : '=';
        part[3] = i + 2 < size ? digits[v & 63] : '=';
        oct_str_put(out, part, sizeof(part));
    }
}

bool oct_base64_get(const char *text, size_t len, void *data, size_t *size)
{
    unsigned char *p = data;
    size_t n = 0;

    if (len % 4) return false;
    for (size_t i = 0; i < len; i += 4) {
        const bool last = i + 4 == len;
        const int n_fill = !last || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
        unsigned v = 0;

        for (size_t k = 0; k < 4; k++) {
            const bool fill = k >= (size_t)(4 - n_fill);
            const char *digit = fill ? digits : memchr(digits, text[i + k], 64);

            if (!digit) return false;
            v = v << 6 | (unsigned)(digit - digits);
        }
        for (int k = 0; k < 3 - n_fill; k++)
            p[n++] = (unsigned char)(v >> (16 - 8 * k));
        if (n_fill && v & (n_fill == 2 ? 0xffffU : 0xffU)) return false; /* bits of no byte */
    }
    *size = n;
    return true;
}
