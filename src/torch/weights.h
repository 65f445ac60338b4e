/* SPDX-License-Identifier: Apache-2.0 */
/* Weights and constants of an exported program: strided tensors over storages in an archive. */
#ifndef OCT_TORCH_WEIGHTS_H
#define OCT_TORCH_WEIGHTS_H

#include "torch/program.h"

/* One tensor by its name in the state dict. */
typedef struct oct_weight {
    oct_meta meta;
    int64_t strides[OCT_MAX_RANK], offset; /* in elements */
    oct_archive *archive;
    oct_member *storage; /* all of its bytes */
    const char *refused; /* why it cannot be read; NULL: it can */
} oct_weight;

typedef struct oct_weights {
    oct_ctx *ctx;
    oct_program *p;
    oct_map parameters, constants; /* name -> oct_weight */
    oct_archive *nested[2];        /* archives inside the archive: torch.save's */
} oct_weights;

/* Reads what the archive says of its weights, in any of its three forms. `root` is the folder that
 * all members are in, with a slash, or "". */
oct_status oct_weights_open(oct_program *p, oct_archive *a, const char *root, const char *model,
                            oct_weights *out);
void oct_weights_fini(oct_weights *w);

/* The tensor called `name`: in the mapped file where that is possible, else copied. */
oct_status oct_weights_tensor(oct_weights *w, const char *name, bool is_constant, oct_tensor **out);

/* --- pickle.c --- */

/* A dict of tensors that torch.save() wrote: each goes into `map`. */
oct_status oct_pickle_read(oct_program *p, oct_archive *a, oct_map *map);

#endif
