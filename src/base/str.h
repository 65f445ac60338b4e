/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string. */
#ifndef OCT_BASE_STR_H
#define OCT_BASE_STR_H

#include "base/status.h"

/* Sticky: after the first failure appending does nothing and `failed` is set. */
typedef struct oct_str {
    oct_ctx *ctx;
    char *s; /* always terminated once something was appended; NULL before */
    size_t len, cap;
    bool failed;
} oct_str;

void oct_str_init(oct_str *b, oct_ctx *ctx);
void oct_str_fini(oct_str *b);
void oct_str_put(oct_str *b, const char *s, size_t len);
void oct_str_puts(oct_str *b, const char *s);
void oct_str_printf(oct_str *b, const char *fmt, ...) OCT_PRINTF(2, 3);

#endif
