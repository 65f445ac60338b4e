/* SPDX-License-Identifier: Apache-2.0 */
/* Files: read by mapping, written to a temporary name and renamed when whole. */
#ifndef OCT_BASE_FILE_H
#define OCT_BASE_FILE_H

#include "base/status.h"

/* A mapped file with a reference count, so tensors can borrow from it. */
typedef struct oct_file oct_file;

oct_status oct_file_map(oct_ctx *ctx, const char *path, oct_file **out);

/* May a file be read that another file names? See oct_ctx_set_read_check(). */
oct_status oct_file_ask_read(oct_ctx *ctx, const char *path);
const uint8_t *oct_file_data(const oct_file *f);
size_t oct_file_size(const oct_file *f);
const char *oct_file_path(const oct_file *f);
oct_file *oct_file_ref(oct_file *f);
void oct_file_unref(oct_file *f); /* accepts NULL */

/* Writes a temporary file beside `path`; nothing is seen at `path` before commit. */
typedef struct oct_writer oct_writer;

oct_status oct_writer_open(oct_ctx *ctx, const char *path, oct_writer **out);
oct_status oct_writer_put(oct_writer *w, const void *p, size_t size);
oct_status oct_writer_printf(oct_writer *w, const char *fmt, ...) OCT_PRINTF(2, 3);
uint64_t oct_writer_offset(const oct_writer *w);

/* So many bytes are about to be written: fails now if the disk cannot hold them. */
oct_status oct_writer_expect(oct_writer *w, uint64_t size);

oct_status oct_writer_commit(oct_writer *w); /* syncs, renames, closes; frees w in any case */
oct_status oct_writer_commit_unsynced(oct_writer *w); /* the same for what can be made again */
void oct_writer_abort(oct_writer *w);                 /* removes the temporary file; accepts NULL */

#endif
