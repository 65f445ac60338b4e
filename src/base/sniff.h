/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is, by its first bytes: for messages about files of the wrong kind. */
#ifndef OCT_BASE_SNIFF_H
#define OCT_BASE_SNIFF_H

#include <stddef.h>
#include <stdint.h>

/* Kinds that have a reader of their own. */
typedef enum oct_kind_id {
    OCT_KIND_OTHER,
    OCT_KIND_TORCH_EXPORT,
    OCT_KIND_OPENVINO,
    OCT_KIND_SAFETENSORS,
} oct_kind_id;

typedef struct oct_kind {
    const char *name;   /* "a JPEG picture" */
    const char *advice; /* what to do if a network was wanted; may be NULL */
    oct_kind_id id;
} oct_kind;

/* NULL: not known. Looks at no more than a few kilobytes at both ends, and at the directory of a
 * zip archive. */
const oct_kind *oct_sniff(const uint8_t *data, size_t size);

#endif
