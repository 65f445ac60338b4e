/* SPDX-License-Identifier: Apache-2.0 */
/* malloc wrappers for the program: exit on out of memory (the library never does). */
#include <stdarg.h>
#include <stdlib.h>

#include "cli/cli.h"

static void *checked(void *p)
{
    if (p) return p;
    (void)fputs("octet: out of memory\n", stderr);
    exit(1);
}

void *cli_alloc(size_t n, size_t size)
{
    return checked(calloc(n ? n : 1, size ? size : 1));
}

void *cli_realloc(void *p, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size) return checked(NULL);
    return checked(realloc(p, n && size ? n * size : 1));
}

char *cli_format(const char *fmt, ...)
{
    va_list args;
    char *text = NULL;
    int len;

    va_start(args, fmt);
    len = vasprintf(&text, fmt, args);
    va_end(args);
    return checked(len < 0 ? NULL : text);
}
