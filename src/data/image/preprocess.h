/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of preprocessing share. */
#ifndef OCT_DATA_IMAGE_PREPROCESS_H
#define OCT_DATA_IMAGE_PREPROCESS_H

#include "data/image/image.h"

/* The options that the caller's struct has, the rest at their defaults. */
void oct_preprocess_read(oct_preprocess *to, const oct_preprocess *from);

/* Fails if a field is not valid. */
oct_status oct_preprocess_check(oct_ctx *ctx, const oct_preprocess *p);

/* Bytes of the network's input for one picture. */
size_t oct_preprocess_size(const oct_preprocess *p, oct_dtype dtype);

#endif
