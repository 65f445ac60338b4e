/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Labelled pictures out of nothing: shapes on textured ground, the same bytes for the same seed.
 */
#ifndef OCTET_SYNTH_H
#define OCTET_SYNTH_H

#include <octet/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OCT_SYNTH_CLASSES 8

/** "disc", "ring", ...; NULL beyond the end. Borrowed for ever; any thread. */
OCT_API const char *oct_synth_class_name(int32_t i);

typedef struct oct_synth_options {
    size_t struct_size; /**< set by oct_synth_options_init() */
    int32_t count;      /**< pictures (default 200) */
    int32_t size;       /**< their width and height in pixels, 64 to 2048 (default 256) */
    uint64_t seed;      /**< (default 0) */
    const char *split;  /**< name of the series, of letters, digits, '-' and '_' (default "val");
                             another name with the same seed gives other pictures */
} oct_synth_options;

OCT_API void oct_synth_options_init_sized(oct_synth_options *o, size_t struct_size);

static inline void oct_synth_options_init(oct_synth_options *o)
{
    oct_synth_options_init_sized(o, sizeof(*o));
}

/** What was written. */
typedef struct oct_synth_result {
    size_t struct_size; /**< set by the caller: sizeof(oct_synth_result) */
    int64_t images, objects;
} oct_synth_result;

/**
 * Writes pictures FOLDER/SPLIT/000000.jpg ..., COCO labels FOLDER/SPLIT.json and the names of the
 * classes FOLDER/names.txt. Missing folders are made (not the parents of FOLDER). Picture i depends
 * on seed, split, size and i alone, not on count. `options` and `result` may be NULL. On the thread
 * of the context.
 */
OCT_API oct_status oct_synth_write(oct_ctx *ctx, const char *folder,
                                   const oct_synth_options *options, oct_synth_result *result);

#ifdef __cplusplus
}
#endif

#endif
