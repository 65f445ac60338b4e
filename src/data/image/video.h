/* SPDX-License-Identifier: Apache-2.0 */
/* Videos, picture by picture. */
#ifndef OCT_DATA_IMAGE_VIDEO_H
#define OCT_DATA_IMAGE_VIDEO_H

#include "data/image/image.h"

/* Is it a video that can be read, by its first bytes? */
bool oct_is_video(oct_bytes start);
bool oct_is_video_file(const char *path);
const char *oct_video_format(oct_bytes start); /* ffmpeg's name of it; NULL: none */

typedef struct oct_video oct_video;

/* Belongs to one thread. Errors name the file. */
oct_status oct_video_open(oct_ctx *ctx, const char *path, oct_video **out);
void oct_video_close(oct_video *v); /* accepts NULL */

/*
 * How many pictures the file says it has; nothing is decoded. A damaged file may give fewer. Only
 * before the first read.
 */
oct_status oct_video_count(oct_video *v, int64_t *n);

/* Number of the picture that comes next, from 0. */
int64_t oct_video_next(const oct_video *v);

/* Decodes up to picture `frame` (not before the next one); *out NULL: the video ends before it. */
oct_status oct_video_read(oct_video *v, int64_t frame, oct_image **out);

#endif
