/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npz: a zip file of .npy files. */
#ifndef OCT_DATA_NPZ_H
#define OCT_DATA_NPZ_H

#include "tensor/tensor.h"

typedef struct oct_npz oct_npz;

oct_status oct_npz_open(oct_ctx *ctx, const char *path, oct_npz **out);
void oct_npz_close(oct_npz *z); /* accepts NULL */

size_t oct_npz_count(const oct_npz *z);
const char *oct_npz_name(const oct_npz *z, size_t i); /* without ".npy" */

/* Element type and shape of array i, without reading its data. */
oct_status oct_npz_type(oct_npz *z, size_t i, oct_type *out);
oct_status oct_npz_read(oct_npz *z, size_t i, oct_tensor **out);

#endif
