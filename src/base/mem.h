/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a context (counted, limited, through its allocator), arenas and growing arrays. */
#ifndef OCT_BASE_MEM_H
#define OCT_BASE_MEM_H

#include "base/status.h"

/* A context for another thread: same allocator and limits, no callbacks. NULL: no memory. */
oct_ctx *oct_ctx_new_like(const oct_ctx *ctx);

/*
 * 64-byte aligned. NULL with the context's error set if there is none, or the limit is reached.
 * Freed with oct_free(), from any thread.
 */
void *oct_alloc(oct_ctx *ctx, size_t size);
void *oct_calloc(oct_ctx *ctx, size_t n, size_t size); /* zeroed; n * size is checked */
void oct_free(oct_ctx *ctx, void *p);                  /* accepts NULL */
char *oct_strdup(oct_ctx *ctx, const char *s);

/*
 * Makes room for at least `need` elements in *items (its own oct_alloc block), growing by halves.
 * *cap is the room there is. What was there stays; the new part is not initialised.
 */
oct_status oct_grow(oct_ctx *ctx, void *items_ptr, size_t *cap, size_t need, size_t elem_size);

/* Many small things that die together. */
typedef struct oct_arena oct_arena;

oct_arena *oct_arena_new(oct_ctx *ctx); /* NULL with the error set */
void oct_arena_free(oct_arena *a);      /* accepts NULL */
void oct_arena_reset(oct_arena *a);     /* all of it free again, blocks kept for reuse */

/* 16-byte aligned, zeroed; NULL with the context's error set. */
void *oct_arena_alloc(oct_arena *a, size_t size);
void *oct_arena_array(oct_arena *a, size_t n, size_t size); /* n * size is checked */
char *oct_arena_strdup(oct_arena *a, const char *s);
char *oct_arena_strndup(oct_arena *a, const char *s, size_t len);
char *oct_arena_printf(oct_arena *a, const char *fmt, ...) OCT_PRINTF(2, 3);
oct_ctx *oct_arena_ctx(const oct_arena *a);

#endif
