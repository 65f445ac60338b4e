/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 over bytes in memory. */
#include "base/sha256.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 64 };

/* The first 32 bits behind the point of the cube roots of the first 64 primes, and of the square
 * roots of the first 8. */
static const uint32_t keys[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
static const uint32_t start[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void schedule(const uint8_t *p, uint32_t w[ROUNDS])
{
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < ROUNDS; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];

        w[i] = w[i - 16] + w[i - 7] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) +
               (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
}

static void add_block(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[ROUNDS], v[8];

    schedule(p, w);
    memcpy(v, h, sizeof(v));
    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t a = v[0], e = v[4];
        const uint32_t t = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                           ((e & v[5]) ^ (~e & v[6])) + keys[i] + w[i];
        const uint32_t u =
            (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

        memmove(&v[1], &v[0], 7 * sizeof(v[0]));
        v[4] += t;
        v[0] = t + u;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

void oct_sha256_bytes(const void *data, size_t size, uint8_t digest[OCT_SHA256_BYTES])
{
    const size_t whole = size / BLOCK * BLOCK, rest = size - whole;
    const size_t tail = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    uint8_t last[2 * BLOCK] = {0};
    uint32_t h[8];

    memcpy(h, start, sizeof(h));
    for (size_t at = 0; at < whole; at += BLOCK)
        add_block(h, (const uint8_t *)data + at);
    if (rest) memcpy(last, (const uint8_t *)data + whole, rest);
    last[rest] = 0x80; /* one bit, zeros, and the number of bits */
    for (int i = 0; i < 8; i++)
        last[tail - 1 - (size_t)i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
    for (size_t at = 0; at < tail; at += BLOCK)
        add_block(h, last + at);
    for (int i = 0; i < OCT_SHA256_BYTES; i++)
        digest[i] = (uint8_t)(h[i / 4] >> (24 - i % 4 * 8));
}

const char *oct_sha256(const void *data, size_t size, char text[OCT_SHA256_TEXT])
{
    uint8_t digest[OCT_SHA256_BYTES];

    oct_sha256_bytes(data, size, digest);
    for (size_t i = 0; i < OCT_SHA256_BYTES; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}
