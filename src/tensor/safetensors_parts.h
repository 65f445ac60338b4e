/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of reading and writing safetensors share. */
#ifndef OCT_TENSOR_SAFETENSORS_PARTS_H
#define OCT_TENSOR_SAFETENSORS_PARTS_H

#include "base/map.h"
#include "tensor/safetensors.h"

#define OCT_SAFETENSORS_MAX_HEADER 100000000u
#define OCT_SAFETENSORS_METADATA   "__metadata__"

/* An element type of the format, in the order in which files have them. */
typedef struct oct_safetensors_dtype {
    const char *name;
    unsigned bits;
    oct_dtype dtype; /* NONE: octet has no such type */
} oct_safetensors_dtype;

/* NULL: none. */
const oct_safetensors_dtype *oct_safetensors_dtype_named(const char *name);
const oct_safetensors_dtype *oct_safetensors_dtype_of(oct_dtype dtype);

/* One tensor of a file. */
typedef struct oct_safetensors_item {
    const char *name;
    const oct_safetensors_dtype *dtype;
    oct_type type;
    uint64_t begin, end; /* bytes of the data */
    int32_t index;       /* in the order of the data */
} oct_safetensors_item;

struct oct_safetensors {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_file *file;      /* NULL: from memory */
    const uint8_t *data; /* behind the header */
    oct_safetensors_item **item;
    int32_t n;
    size_t cap;
    oct_map items; /* by name */
    oct_safetensors_text *note;
    int32_t n_notes;
    size_t cap_notes;
    oct_map notes; /* key -> text */
    bool has_metadata;
};

/* Reads the header's text: fills items (unsorted, offsets not compared) and notes. */
oct_status oct_safetensors_read_header(oct_safetensors *s, const char *text, size_t size);

#endif
