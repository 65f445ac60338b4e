/* SPDX-License-Identifier: Apache-2.0 */
/* Hash map with string keys (open addressing), edit distance, and the hash itself. */
#include "base/map.h"

#include <string.h>

#include "base/machine.h"
#include "base/mem.h"

struct oct_map_slot {
    const char *key; /* NULL: free */
    void *value;
    uint64_t hash;
};

/* Names come from files, so the hash is keyed: nobody can write a file full of collisions. */
static uint64_t hash_key(const oct_map *m, const char *key)
{
    return oct_hash_bytes(key, strlen(key), m->seed);
}

void oct_map_init(oct_map *m, oct_ctx *ctx)
{
    *m = (oct_map){.ctx = ctx, .seed = (uint64_t)oct_time_ns() ^ (uint64_t)(uintptr_t)m};
}

void oct_map_fini(oct_map *m)
{
    oct_free(m->ctx, m->slots);
    *m = (oct_map){.ctx = m->ctx, .seed = m->seed};
}

/* The slot that holds `key`, or the free one where it would go. There is always a free one. */
static struct oct_map_slot *find(const oct_map *m, const char *key, uint64_t hash)
{
    size_t i = (size_t)hash & (m->cap - 1);

    while (m->slots[i].key && (m->slots[i].hash != hash || strcmp(m->slots[i].key, key) != 0))
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

static oct_status rehash(oct_map *m, size_t cap)
{
    const oct_map old = *m;

    m->slots = oct_calloc(m->ctx, cap, sizeof(*m->slots));
    if (!m->slots) {
        m->slots = old.slots;
        return OCT_ERR_MEMORY;
    }
    m->cap = cap;
    for (size_t i = 0; i < old.cap; i++) {
        const struct oct_map_slot *s = &old.slots[i];

        if (s->key) *find(m, s->key, s->hash) = *s;
    }
    oct_free(m->ctx, old.slots);
    return OCT_OK;
}

oct_status oct_map_put(oct_map *m, const char *key, void *value)
{
    const uint64_t hash = hash_key(m, key);
    struct oct_map_slot *s;

    if (m->n >= m->cap / 4 * 3) OCT_TRY(rehash(m, m->cap ? m->cap * 2 : 16));
    s = find(m, key, hash);
    m->n += !s->key;
    *s = (struct oct_map_slot){key, value, hash};
    return OCT_OK;
}

void *oct_map_get(const oct_map *m, const char *key)
{
    const struct oct_map_slot *s = m->n ? find(m, key, hash_key(m, key)) : NULL;

    return s && s->key ? s->value : NULL;
}

const char *oct_map_nearest(const oct_map *m, const char *key)
{
    const size_t len = strlen(key);
    int best = 1 + (int)OCT_MIN(len / 4, 7); /* further away is no likely slip */
    const char *nearest = NULL;

    if (len > 256) return NULL; /* nobody types that, and it would take long */
    for (size_t i = 0; i < m->cap; i++) {
        const char *k = m->slots[i].key;
        int d;

        if (!k || (d = oct_edit_distance(key, k, best)) > best) continue;
        /* The order of slots is not fixed: equals are decided by name. */
        if (d < best || !nearest || strcmp(k, nearest) < 0) nearest = k;
        best = d;
    }
    return nearest;
}

#define MAX_BOUND 63 /* so that the band fits on the stack */

int oct_edit_distance(const char *a, const char *b, int bound)
{
    const int far_away = bound + 1;
    const int w = OCT_MIN(bound, MAX_BOUND);
    const size_t len_a = strlen(a), len_b = strlen(b);
    int band[2 * MAX_BOUND + 3]; /* band[d + w + 1]: the cell d columns right of the diagonal */

    if (bound < 0 || (len_a > len_b ? len_a - len_b : len_b - len_a) > (size_t)w) return far_away;
    for (int d = -w - 1; d <= w + 1; d++)
        band[d + w + 1] = d >= 0 && d <= w ? d : far_away;

    for (size_t i = 1; i <= len_a; i++) {
        int least = far_away;

        for (int d = -w; d <= w; d++) {
            const int64_t j = (int64_t)i + d;
            int *cell = &band[d + w + 1], best;

            if (j < 0 || j > (int64_t)len_b) {
                *cell = far_away;
                continue;
            }
            best = cell[1] + 1; /* drop a[i-1]; cell[1] is still of the row before */
            if (j > 0) {
                best = OCT_MIN(best, cell[-1] + 1);
                best = OCT_MIN(best, *cell + (a[i - 1] != b[j - 1]));
            }
            *cell = OCT_MIN(best, far_away);
            least = OCT_MIN(least, *cell);
        }
        if (least > w) return far_away;
    }
    return OCT_MIN(band[(int64_t)len_b - (int64_t)len_a + w + 1], far_away);
}

bool oct_nearest_try(oct_nearest *n, const char *name)
{
    const size_t len = strlen(n->want);
    int d = oct_edit_distance(n->want, name, n->distance - 1);

    /* The beginning of a longer name is a common way of typing it. */
    if (d > 1 && len > 2 && strncmp(n->want, name, len) == 0) d = 1;
    if (d >= n->distance) return false;
    n->distance = d;
    n->name = name;
    return true;
}

static uint64_t rotl(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32) + v[3];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] = rotl(v[2], 32);
}

/* SipHash-1-3 with the seed as its key. */
uint64_t oct_hash_bytes(const void *p, size_t size, uint64_t seed)
{
    const unsigned char *s = p;
    uint64_t v[4] = {seed ^ 0x736f6d6570736575u, ~seed ^ 0x646f72616e646f6du,
                     seed ^ 0x6c7967656e657261u, ~seed ^ 0x7465646279746573u};
    uint64_t word;
    size_t i = 0;

    for (; i + 8 <= size; i += 8) {
        memcpy(&word, s + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = (uint64_t)size << 56;
    for (size_t k = 0; i + k < size; k++)
        word |= (uint64_t)s[i + k] << (8 * k);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int k = 0; k < 3; k++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
