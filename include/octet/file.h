/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Files that octet writes: whole or not at all, and only where the program allows it.
 */
#ifndef OCTET_FILE_H
#define OCTET_FILE_H

#include <octet/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Asked before a file is written at `path`. Return 0 to allow it; otherwise nothing is written and
 * the call fails with the sentence in `why` (at most `size` bytes with its end). May be called from
 * several threads at a time.
 */
typedef int (*oct_write_fn)(void *user, const char *path, char *why, size_t size);

/**
 * Sets who is asked before a file is written; NULL (the default) means that any may be. `user` must
 * live as long as it is set; contexts that octet makes for its threads ask the same.
 */
OCT_API void oct_ctx_set_write_check(oct_ctx *ctx, oct_write_fn check, void *user);

/**
 * Asked before a file is read that a network names, for its weights: such a name is found only in
 * the network's own file. As for writing, 0 allows it.
 */
typedef int (*oct_read_fn)(void *user, const char *path, char *why, size_t size);

/** Sets who is asked before such a file is read; NULL (the default) means that any may be. */
OCT_API void oct_ctx_set_read_check(oct_ctx *ctx, oct_read_fn check, void *user);

/**
 * Writes a file as all of octet's are: what was there before stays until the new one is whole.
 * Read-only files are not replaced. Nothing of the arguments is kept.
 */
OCT_API oct_status oct_write_file(oct_ctx *ctx, const char *path, const void *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
