/* SPDX-License-Identifier: Apache-2.0 */
/* Counted and limited memory, growing arrays, arenas. */
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#include "base/ctx.h"

/* In front of every block, so that oct_free knows what to give back to the count. */
typedef struct block_header {
    size_t size; /* with the header */
    char pad[64 - sizeof(size_t)];
} block_header;

_Static_assert(sizeof(block_header) == 64, "keeps the user's part 64-byte aligned");

void *oct_alloc(oct_ctx *ctx, size_t size)
{
    block_header *h;
    size_t total, before;

    if (!oct_add_size(size, sizeof(*h), &total)) {
        oct_fail(ctx, OCT_ERR_MEMORY, "out of memory: %zu bytes asked for", size);
        return NULL;
    }
    before = atomic_fetch_add(&ctx->mem_used, total);
    if (total > ctx->mem_limit || before > ctx->mem_limit - total) {
        atomic_fetch_sub(&ctx->mem_used, total);
        oct_fail(ctx, OCT_ERR_MEMORY,
                 "memory limit reached: %zu bytes more than the %zu in use would pass the limit "
                 "of %zu",
                 size, before, ctx->mem_limit);
        return NULL;
    }
    h = ctx->allocator.alloc(ctx->allocator.user, total);
    if (!h) {
        atomic_fetch_sub(&ctx->mem_used, total);
        oct_fail(ctx, OCT_ERR_MEMORY, "out of memory: %zu bytes asked for", size);
        return NULL;
    }
    h->size = total;
    return h + 1;
}

void *oct_calloc(oct_ctx *ctx, size_t n, size_t size)
{
    size_t total;
    void *p;

    if (!oct_mul_size(n, size, &total)) {
        oct_fail(ctx, OCT_ERR_MEMORY, "out of memory: %zu times %zu bytes asked for", n, size);
        return NULL;
    }
    p = oct_alloc(ctx, total);
    if (p) memset(p, 0, total);
    return p;
}

void oct_free(oct_ctx *ctx, void *p)
{
    block_header *h;

    if (!p) return;
    h = (block_header *)p - 1;
    atomic_fetch_sub(&ctx->mem_used, h->size);
    ctx->allocator.free(ctx->allocator.user, h);
}

char *oct_strdup(oct_ctx *ctx, const char *s)
{
    const size_t size = strlen(s) + 1;
    char *copy = oct_alloc(ctx, size);

    if (copy) memcpy(copy, s, size);
    return copy;
}

oct_status oct_grow(oct_ctx *ctx, void *items_ptr, size_t *cap, size_t need, size_t elem_size)
{
    size_t new_cap = *cap > SIZE_MAX / 2 ? *cap : *cap + *cap / 2;
    size_t size;
    void *old, *p;

    if (need <= *cap) return OCT_OK;
    new_cap = OCT_MAX(new_cap, OCT_MAX(need, 8));
    if (!oct_mul_size(new_cap, elem_size, &size)) {
        return oct_fail(ctx, OCT_ERR_MEMORY, "out of memory: %zu times %zu bytes asked for",
                        new_cap, elem_size);
    }
    p = oct_alloc(ctx, size);
    if (!p) return OCT_ERR_MEMORY;
    memcpy(&old, items_ptr, sizeof(old)); /* the caller's pointer may be of any type */
    if (old) memcpy(p, old, *cap * elem_size);
    memcpy(items_ptr, &p, sizeof(p));
    oct_free(ctx, old);
    *cap = new_cap;
    return OCT_OK;
}

#define ARENA_ALIGN     16
#define ARENA_MIN_BLOCK ((size_t)4 << 10)
#define ARENA_MAX_BLOCK ((size_t)1 << 20)

/* Followed by `size` bytes. */
typedef struct arena_block {
    struct arena_block *next;
    size_t size;
} arena_block;

_Static_assert(sizeof(arena_block) % ARENA_ALIGN == 0, "the bytes after it are aligned");

struct oct_arena {
    oct_ctx *ctx;
    arena_block *blocks; /* the first is the one in use */
    size_t used;         /* of the first block */
    size_t next_size;
};

static arena_block *new_block(oct_ctx *ctx, size_t size)
{
    arena_block *b;
    size_t total;

    if (!oct_add_size(size, sizeof(*b), &total)) {
        oct_fail(ctx, OCT_ERR_MEMORY, "out of memory: %zu bytes asked for", size);
        return NULL;
    }
    b = oct_alloc(ctx, total);
    if (b) *b = (arena_block){NULL, size};
    return b;
}

oct_arena *oct_arena_new(oct_ctx *ctx)
{
    oct_arena *a = oct_calloc(ctx, 1, sizeof(*a));

    if (!a) return NULL;
    a->ctx = ctx;
    a->next_size = ARENA_MIN_BLOCK;
    return a;
}

static void free_blocks(oct_arena *a)
{
    arena_block *next;

    for (arena_block *b = a->blocks; b; b = next) {
        next = b->next;
        oct_free(a->ctx, b);
    }
    a->blocks = NULL;
    a->used = 0;
}

void oct_arena_free(oct_arena *a)
{
    if (!a) return;
    free_blocks(a);
    oct_free(a->ctx, a);
}

void oct_arena_reset(oct_arena *a)
{
    size_t total = 0;

    a->used = 0;
    if (!a->blocks || !a->blocks->next) return;
    /* One block that holds as much: a loop that resets the arena soon allocates nothing. */
    for (const arena_block *b = a->blocks; b; b = b->next)
        total += b->size;
    free_blocks(a);
    a->blocks = new_block(a->ctx, total); /* none is fine too: the next alloc asks again */
}

void *oct_arena_alloc(oct_arena *a, size_t size)
{
    const size_t left = a->blocks ? a->blocks->size - a->used : 0;
    arena_block *b;
    size_t room;
    char *p;

    if (!oct_add_size(size, ARENA_ALIGN - 1, &room)) {
        oct_fail(a->ctx, OCT_ERR_MEMORY, "out of memory: %zu bytes asked for", size);
        return NULL;
    }
    room = OCT_MAX(room / ARENA_ALIGN * ARENA_ALIGN, ARENA_ALIGN);

    if (room <= left) {
        p = (char *)(a->blocks + 1) + a->used;
        a->used += room;
    } else if (room > a->next_size / 2 && a->blocks) {
        /* Its own block, behind the first, whose rest stays in use. */
        if (!(b = new_block(a->ctx, room))) return NULL;
        b->next = a->blocks->next;
        a->blocks->next = b;
        p = (char *)(b + 1);
    } else {
        if (!(b = new_block(a->ctx, OCT_MAX(room, a->next_size)))) return NULL;
        b->next = a->blocks;
        a->blocks = b;
        a->used = room;
        a->next_size = OCT_MIN(a->next_size * 2, ARENA_MAX_BLOCK);
        p = (char *)(b + 1);
    }
    return memset(p, 0, room);
}

void *oct_arena_array(oct_arena *a, size_t n, size_t size)
{
    size_t total;

    if (!oct_mul_size(n, size, &total)) {
        oct_fail(a->ctx, OCT_ERR_MEMORY, "out of memory: %zu times %zu bytes asked for", n, size);
        return NULL;
    }
    return oct_arena_alloc(a, total);
}

char *oct_arena_strdup(oct_arena *a, const char *s)
{
    return oct_arena_strndup(a, s, strlen(s));
}

char *oct_arena_strndup(oct_arena *a, const char *s, size_t len)
{
    char *copy = len < SIZE_MAX ? oct_arena_alloc(a, len + 1) : NULL;

    if (copy && len) memcpy(copy, s, len);
    return copy;
}

char *oct_arena_printf(oct_arena *a, const char *fmt, ...)
{
    va_list args;
    char *s;
    int len;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0) {
        oct_fail(a->ctx, OCT_ERR_ARG, "text cannot be formatted: %s", fmt);
        return NULL;
    }
    s = oct_arena_alloc(a, (size_t)len + 1);
    if (!s) return NULL;
    va_start(args, fmt);
    vsnprintf(s, (size_t)len + 1, fmt, args);
    va_end(args);
    return s;
}

oct_ctx *oct_arena_ctx(const oct_arena *a)
{
    return a->ctx;
}
