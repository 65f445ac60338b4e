/* SPDX-License-Identifier: Apache-2.0 */
/* Zip archives in mapped files: members that are not compressed stay where they are. */
#ifndef OCT_TORCH_ARCHIVE_H
#define OCT_TORCH_ARCHIVE_H

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"

typedef struct oct_span_of {
    const uint8_t *p;
    size_t size;
} oct_span_of;

typedef struct oct_member {
    const char *name;
    size_t offset; /* of its bytes as stored, in the archive */
    size_t stored, size;
    bool is_compressed;
    const uint8_t *inflated; /* NULL: not needed yet, or not compressed */
} oct_member;

typedef struct oct_archive oct_archive;

/* `file` (NULL: memory that outlives all) holds `bytes`. */
oct_status oct_archive_open(oct_ctx *ctx, oct_file *file, oct_span_of bytes, oct_archive **out);
void oct_archive_close(oct_archive *a); /* accepts NULL */

size_t oct_archive_count(const oct_archive *a);
oct_member *oct_archive_at(oct_archive *a, size_t i);
oct_member *oct_archive_find(oct_archive *a, const char *name); /* NULL: none */

/* The file whose bytes `p` are; NULL: p is in memory. */
oct_file *oct_archive_file(const oct_archive *a, const oct_member *m);

/* The bytes of a member, valid until the archive is closed; compressed ones are inflated once. */
oct_status oct_archive_bytes(oct_archive *a, oct_member *m, oct_span_of *out);

#endif
