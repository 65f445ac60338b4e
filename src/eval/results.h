/* SPDX-License-Identifier: Apache-2.0 */
/* Detections as a COCO results file. */
#ifndef OCT_EVAL_RESULTS_H
#define OCT_EVAL_RESULTS_H

#include <octet/eval.h>

#include "base/file.h"

typedef struct oct_results {
    oct_writer *w;
    int64_t n; /* entries written */
} oct_results;

/* Nothing appears at `path` before oct_results_commit(). */
oct_status oct_results_open(oct_ctx *ctx, const char *path, oct_results *r);

/* Categories as the dataset counts; the file gets its ids. */
oct_status oct_results_put(oct_results *r, const oct_dataset *d, int64_t image,
                           const oct_detection *found, int32_t n);
oct_status oct_results_commit(oct_results *r);
void oct_results_abort(oct_results *r); /* also after commit, or if never opened */

#endif
