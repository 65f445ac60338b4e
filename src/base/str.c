/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string. */
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void oct_str_init(oct_str *b, oct_ctx *ctx)
{
    *b = (oct_str){.ctx = ctx};
}

void oct_str_fini(oct_str *b)
{
    oct_free(b->ctx, b->s);
    *b = (oct_str){.ctx = b->ctx};
}

/* Room for `len` more bytes and the terminator; false sets `failed`. */
static bool make_room(oct_str *b, size_t len)
{
    size_t need;

    if (b->failed) return false;
    if (!oct_add_size(b->len + 1, len, &need)) {
        oct_fail(b->ctx, OCT_ERR_MEMORY, "out of memory: a text of %zu bytes", len);
        b->failed = true;
    } else if (oct_grow(b->ctx, &b->s, &b->cap, need, 1)) {
        b->failed = true;
    }
    return !b->failed;
}

void oct_str_put(oct_str *b, const char *s, size_t len)
{
    if (!make_room(b, len)) return;
    if (len) memcpy(b->s + b->len, s, len);
    b->len += len;
    b->s[b->len] = '\0';
}

void oct_str_puts(oct_str *b, const char *s)
{
    oct_str_put(b, s, strlen(s));
}

void oct_str_printf(oct_str *b, const char *fmt, ...)
{
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0) {
        if (!b->failed) oct_fail(b->ctx, OCT_ERR_ARG, "text cannot be formatted: %s", fmt);
        b->failed = true;
        return;
    }
    if (!make_room(b, (size_t)len)) return;
    va_start(args, fmt);
    vsnprintf(b->s + b->len, (size_t)len + 1, fmt, args);
    va_end(args);
    b->len += (size_t)len;
}
