/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a dataset one after another, whether they are files or parts of a video. */
#include "data/dataset.h"
#include "data/image/video.h"

oct_status oct_picture_read(oct_picture_reader *r, oct_ctx *ctx, const oct_item *item,
                            oct_image **out)
{
    *out = NULL;
    if (item->frame < 0) return oct_image_load(ctx, item->path, NULL, out);
    if (r->video && (r->path != item->path || oct_video_next(r->video) > item->frame))
        oct_picture_reader_close(r);
    if (!r->video) {
        OCT_TRY(oct_video_open(ctx, item->path, &r->video));
        r->path = item->path;
    }
    OCT_TRY(oct_video_read(r->video, item->frame, out));
    if (*out) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_FORMAT, "%s: frame %lld cannot be decoded", item->path,
                    (long long)item->frame);
}

void oct_picture_reader_close(oct_picture_reader *r)
{
    oct_video_close(r->video);
    *r = (oct_picture_reader){0};
}

oct_status oct_dataset_load(oct_dataset *d, int64_t i, oct_image **out)
{
    OCT_ENTER(d->ctx);

    if (d->tensors)
        return oct_fail(d->ctx, OCT_ERR_STATE, "a dataset of tensors (%s) has no pictures",
                        d->kind);
    if (i < 0 || (uint64_t)i >= d->n_items)
        return oct_fail(d->ctx, OCT_ERR_ARG, "there is no picture %lld of %zu", (long long)i,
                        d->n_items);
    return oct_picture_read(&d->reader, d->ctx, &d->items[i], out);
}

int64_t oct_dataset_frame(const oct_dataset *d, int64_t i)
{
    return i >= 0 && (uint64_t)i < d->n_items ? d->items[i].frame : -1;
}
