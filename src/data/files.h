/* SPDX-License-Identifier: Apache-2.0 */
/* Folders: what is in them, in the order of bytes, whatever the file system's own order is. */
#ifndef OCT_DATA_FILES_H
#define OCT_DATA_FILES_H

#include "base/mem.h"

/* Names of one kind; the strings are of the listing's arena. */
typedef struct oct_names {
    const char **items;
    size_t n, cap;
} oct_names;

typedef struct oct_listing {
    oct_arena *arena;
    oct_names files, folders; /* sorted; hidden ones left out; links followed */
} oct_listing;

oct_status oct_listing_open(oct_ctx *ctx, const char *folder, oct_listing *out);
void oct_listing_close(oct_listing *l);

/* Files whose names end so (".jpg", any case). */
size_t oct_listing_count(const oct_listing *l, const char *extension);

bool oct_has_extension(const char *name, const char *extension);
/* The first bytes of a file, at most n; 0: none, or it cannot be read. */
size_t oct_file_start(const char *path, void *to, size_t n);

bool oct_is_folder(const char *path);
bool oct_is_file(const char *path);

#endif
