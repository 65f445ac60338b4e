/* SPDX-License-Identifier: Apache-2.0 */
/* Builds without ffmpeg's libraries (-Dvideo=false) know videos, and say that they cannot read
 * them. */
#include "data/image/video.h"

oct_status oct_video_open(oct_ctx *ctx, const char *path, oct_video **out)
{
    (void)out;
    return oct_fail(ctx, OCT_ERR_UNSUPPORTED,
                    "%s: this build of octet reads no videos; take pictures out of it: ffmpeg -i "
                    "VIDEO FOLDER/%%06d.png",
                    path);
}

/* None was ever opened: the others are not reached. */
void oct_video_close(oct_video *v)
{
    (void)v;
}

oct_status oct_video_count(oct_video *v, int64_t *n)
{
    (void)v;
    *n = 0;
    return OCT_ERR_STATE;
}

int64_t oct_video_next(const oct_video *v)
{
    (void)v;
    return 0;
}

oct_status oct_video_read(oct_video *v, int64_t frame, oct_image **out)
{
    (void)v, (void)frame, (void)out;
    return OCT_ERR_STATE;
}
