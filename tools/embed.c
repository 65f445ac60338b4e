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

typedef struct text {
    unsigned char *p;
    size_t size;
} text;

/* --- SHA-256 (FIPS 180-4) --- */

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void see_block(uint32_t h[8], const unsigned char *p)
{
    uint32_t w[64], s[8];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, h, sizeof(s));
    for (int i = 0; i < 64; i++) {
        const uint32_t a = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                           ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_constant[i] + w[i];
        const uint32_t b = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                           ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

        memmove(s + 1, s, 7 * sizeof(*s));
        s[4] += a;
        s[0] = a + b;
    }
    for (int i = 0; i < 8; i++)
        h[i] += s[i];
}

static void sha256(text t, unsigned char digest[32])
{
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned char last[128] = {0};
    const size_t whole = t.size / 64 * 64, rest = t.size - whole, end = rest < 56 ? 64 : 128;

    for (size_t i = 0; i < whole; i += 64)
        see_block(h, t.p + i);
    if (rest) memcpy(last, t.p + whole, rest);
    last[rest] = 0x80;
    for (size_t i = 0; i < 8; i++)
        last[end - 1 - i] = (unsigned char)((uint64_t)t.size * 8 >> 8 * i);
    for (size_t i = 0; i < end; i += 64)
        see_block(h, last + i);
    for (int i = 0; i < 32; i++)
        digest[i] = (unsigned char)(h[i / 4] >> (24 - i % 4 * 8));
}

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
    sha256(t, digest);
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
