/* SPDX-License-Identifier: Apache-2.0 */
/* Writes detections as a COCO results file, one entry a line. */
#include "eval/results.h"

oct_status oct_results_open(oct_ctx *ctx, const char *path, oct_results *r)
{
    oct_status st;

    *r = (oct_results){0};
    OCT_TRY(oct_writer_open(ctx, path, &r->w));
    if ((st = oct_writer_printf(r->w, "["))) oct_results_abort(r);
    return st;
}

oct_status oct_results_put(oct_results *r, const oct_dataset *d, int64_t image,
                           const oct_detection *found, int32_t n)
{
    const long long id = oct_dataset_image_id(d, image);

    for (int32_t i = 0; i < n; i++) {
        const oct_detection *f = &found[i];

        /* Nine digits give back the same float. */
        OCT_TRY(oct_writer_printf(
            r->w,
            "%s\n{\"image_id\":%lld,\"category_id\":%lld,\"bbox\":[%.3f,%.3f,%.3f,%.3f],"
            "\"score\":%.9g}",
            r->n++ ? "," : "", id, (long long)oct_dataset_category_id(d, f->category), (double)f->x,
            (double)f->y, (double)f->width, (double)f->height, (double)f->score));
    }
    return OCT_OK;
}

oct_status oct_results_commit(oct_results *r)
{
    oct_writer *w = r->w;
    oct_status st = oct_writer_printf(w, "\n]\n");

    if (st) return st;
    r->w = NULL; /* freed in any case */
    return oct_writer_commit(w);
}

void oct_results_abort(oct_results *r)
{
    oct_writer_abort(r->w);
    r->w = NULL;
}
