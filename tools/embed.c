/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs while building: makes C arrays of template files, each with its SHA-256 in the form that the
 * policy of the page wants.
 * usage: embed OUT.c NAME FILE... [-- NAME FILE...]...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

typedef struct text {
    unsigned char *p;
    size_t size;
} text;

/* 32 bytes in Base64. */
static void put_base64(FILE *out, const unsigned char *p)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (int i = 0; i < 32; i += 3) {
        const unsigned b1 = i + 1 < 32 ? p[i + 1] : 0, b2 = i + 2 < 32 ? p[i + 2] : 0;
        const unsigned v = (unsigned)p[i] << 16 | b1 << 8 | b2;

        (void)fprintf(out, "%c%c%c%c", digits[v >> 18], digits[v >> 12 & 63], digits[v >> 6 & 63],
                      i + 2 < 32 ? digits[v & 63] : '=');
    }
}

/* --- files --- */

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void append(text *t, const char *path)
{
    FILE *f = fopen(path, "rb");
    size_t n;

    if (!f) die(path);
    do {
        t->p = realloc(t->p, t->size + 4096);
        if (!t->p) die(path);
        n = fread(t->p + t->size, 1, 4096, f);
        t->size += n;
    } while (n);
    if (ferror(f) || fclose(f)) die(path);
}

static void put_array(FILE *out, const char *name, text t)
{
    unsigned char digest[32];

    (void)fprintf(out, "const size_t oct_template_%s_size = %zu;\nconst char oct_template_%s[] = {",
                  name, t.size, name);
    for (size_t i = 0; i < t.size; i++)
        (void)fprintf(out, "%s%d,", i % 24 ? "" : "\n", (signed char)t.p[i]);
    (void)fprintf(out, "\n0};\nconst char oct_template_%s_hash[] = \"sha256-", name);
    oct_sha256_bytes(t.p, t.size, digest);
    put_base64(out, digest);
    (void)fprintf(out, "\";\n");
}

int main(int argc, char **argv)
{
    FILE *out = argc > 3 ? fopen(argv[1], "wb") : NULL;

    if (!out) die("usage: embed OUT.c NAME FILE... [-- NAME FILE...]...");
    (void)fprintf(out, "/* Made by tools/embed.c. */\n#include \"report/templates.h\"\n");
    for (int i = 2; i < argc; i++) {
        const char *name = argv[i];
        text t = {0};

        while (++i < argc && strcmp(argv[i], "--"))
            append(&t, argv[i]);
        put_array(out, name, t);
        free(t.p);
    }
    if (ferror(out) | fclose(out)) die(argv[1]);
    return 0;
}
