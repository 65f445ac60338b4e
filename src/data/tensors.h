/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of tensors: from .npy and .npz files, for networks whose inputs are not pictures. */
#ifndef OCT_DATA_TENSORS_H
#define OCT_DATA_TENSORS_H

#include "data/dataset.h"

oct_status oct_read_npz(oct_dataset *d, const char *path);
oct_status oct_read_npz_folder(oct_dataset *d, const char *folder);  /* each file is one item */
oct_status oct_read_npy_folder(oct_dataset *d, const char *folder);  /* the same, one input */
oct_status oct_read_npy_folders(oct_dataset *d, const char *folder); /* a sub-folder per input */

void oct_tensors_free(oct_tensors *t); /* accepts NULL */

/* The tensor of item i (of the source, not of a subset) for the network's input `name`. */
oct_status oct_tensors_get(oct_tensors *t, int64_t i, const char *name, oct_tensor **out);

#endif
