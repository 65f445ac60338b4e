/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a batch: rows to boxes. */
#include "loss/labels.h"

#include <math.h>

#include "op/work.h"

static oct_status check_row(const oct_args *a, const double *row, int64_t picture,
                            int64_t n_classes)
{
    const double c = row[OCT_LABEL_CLASS];

    if (!(c < (double)n_classes) || c != floor(c))
        return oct_node_fail(a->node, OCT_ERR_ARG,
                             "picture %lld of the batch has a box of class %g, but the network has "
                             "the classes 0 to %lld",
                             (long long)picture, c, (long long)n_classes - 1);
    for (int k = OCT_LABEL_X1; k < OCT_LABEL_SIZE; k++)
        if (!isfinite(row[k]))
            return oct_node_fail(a->node, OCT_ERR_ARG,
                                 "picture %lld of the batch has a box with a coordinate of %g",
                                 (long long)picture, row[k]);
    return OCT_OK;
}

oct_status oct_label_boxes_read(const oct_args *a, int i, int64_t n_classes, oct_label_boxes *out)
{
    const oct_type *t = &a->in[i]->type;
    const int64_t n_pictures = t->dim[0];
    const double *row;

    OCT_TRY(oct_work_in_f64(a, i, &row));
    out->max = t->dim[1];
    out->n = oct_args_scratch(a, (size_t)n_pictures + 1, sizeof(*out->n));
    out->box = oct_args_scratch(a, (size_t)(n_pictures * out->max) + 1, 4 * sizeof(*out->box));
    out->label = oct_args_scratch(a, (size_t)(n_pictures * out->max) + 1, sizeof(*out->label));
    if (!out->n || !out->box || !out->label) return OCT_ERR_MEMORY;
    for (int64_t p = 0; p < n_pictures; p++) {
        for (int64_t k = 0; k < out->max; k++) {
            const double *r = row + (p * out->max + k) * OCT_LABEL_SIZE;
            const int64_t to = p * out->max + out->n[p];

            if (r[OCT_LABEL_CLASS] < 0) break;
            OCT_TRY(check_row(a, r, p, n_classes));
            if (!(r[OCT_LABEL_X2] > r[OCT_LABEL_X1] && r[OCT_LABEL_Y2] > r[OCT_LABEL_Y1])) continue;
            for (int e = 0; e < 4; e++)
                out->box[4 * to + e] = r[OCT_LABEL_X1 + e];
            out->label[to] = (int32_t)r[OCT_LABEL_CLASS];
            out->n[p]++;
        }
    }
    return OCT_OK;
}
