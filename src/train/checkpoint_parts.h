/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of checkpoints share. */
#ifndef OCT_TRAIN_CHECKPOINT_PARTS_H
#define OCT_TRAIN_CHECKPOINT_PARTS_H

#include "base/str.h"
#include "train/checkpoint.h"

#define OCT_CHECKPOINT_KEY       "octet.checkpoint"
#define OCT_CHECKPOINT_VERSION   "1"
#define OCT_CHECKPOINT_NETWORK   "octet.network"
#define OCT_CHECKPOINT_QUANTIZED "octet.quantized"

/* A copy of the network in which parameters and statistics are inputs, after its own. */
oct_status oct_checkpoint_open_network(const oct_run_state *run, oct_graph **out);

/* That network as an ONNX model. */
oct_status oct_checkpoint_encode(const oct_graph *open, oct_str *out);

/* "PREFIX/NAME" or "PREFIX/STATE/NAME" (state may be NULL), in an arena. */
const char *oct_checkpoint_name(oct_arena *a, const char *prefix, const char *state,
                                const char *name);

/*
 * Compares two texts of "key: value" lines, in which indented lines belong to the key above them.
 * Returns the first key that differs, as "outer.inner", and its values ("" where it is missing), in
 * the arena; *key NULL: they are the same.
 */
typedef struct oct_recipe_difference {
    const char *key, *old_value, *new_value;
} oct_recipe_difference;

oct_status oct_recipe_compare(oct_arena *a, const char *old_text, const char *new_text,
                              oct_recipe_difference *out);

#endif
