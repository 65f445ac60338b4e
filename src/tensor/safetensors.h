/* SPDX-License-Identifier: Apache-2.0 */
/* Files of named tensors in the format "safetensors", which may be hostile. */
#ifndef OCT_TENSOR_SAFETENSORS_H
#define OCT_TENSOR_SAFETENSORS_H

#include "tensor/tensor.h"

typedef struct oct_safetensors oct_safetensors;

/* Maps and checks a file. Failures name it. */
oct_status oct_safetensors_open(oct_ctx *ctx, const char *path, oct_safetensors **out);

/* The same from memory, which must outlive *out and its tensors. */
oct_status oct_safetensors_parse(oct_ctx *ctx, const void *data, size_t size,
                                 oct_safetensors **out);
void oct_safetensors_close(oct_safetensors *s); /* accepts NULL; tensors live on */

int32_t oct_safetensors_count(const oct_safetensors *s); /* in the order of the data */
const char *oct_safetensors_name(const oct_safetensors *s, int32_t i);
/* dtype NONE: one that octet does not compute with (6 bits). */
const oct_type *oct_safetensors_type(const oct_safetensors *s, int32_t i);
int32_t oct_safetensors_find(const oct_safetensors *s, const char *name); /* -1: none */

/* The mapped file; NULL: it was read from memory. */
oct_file *oct_safetensors_file(const oct_safetensors *s);

/* The bytes in the file. */
const void *oct_safetensors_data(const oct_safetensors *s, int32_t i, size_t *size);

/* A tensor on the bytes in the file where they are aligned, else a copy. */
oct_status oct_safetensors_tensor(const oct_safetensors *s, int32_t i, oct_tensor **out);

/* Of "__metadata__". */
int32_t oct_safetensors_n_notes(const oct_safetensors *s);
const char *oct_safetensors_note_key(const oct_safetensors *s, int32_t i);
const char *oct_safetensors_note(const oct_safetensors *s, const char *key); /* NULL: none */

/* --- writing --- */

typedef struct oct_safetensors_entry {
    const char *name;
    oct_type type;
    const void *data;
} oct_safetensors_entry;

typedef struct oct_safetensors_text {
    const char *key, *text;
} oct_safetensors_text;

/* Writes a file: to a temporary name, synced, renamed. Texts are UTF-8; names differ. */
oct_status oct_safetensors_save(oct_ctx *ctx, const char *path, const oct_safetensors_entry *entry,
                                int32_t n, const oct_safetensors_text *note, int32_t n_notes);

#endif
