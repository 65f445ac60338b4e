/* SPDX-License-Identifier: Apache-2.0 */
/* Event files that TensorBoard shows: scalars and pictures by step. */
#ifndef OCT_TRAIN_EVENTS_H
#define OCT_TRAIN_EVENTS_H

#include "base/status.h"

typedef struct oct_events oct_events;

/*
 * A new file events.out.tfevents.TIME.HOST.PID.N in `dir`, which is made if it is not there. It is
 * only ever appended to, record by record: whoever reads it meanwhile sees whole records.
 */
oct_status oct_events_open(oct_ctx *ctx, const char *dir, oct_events **out);
void oct_events_close(oct_events *e); /* accepts NULL */
const char *oct_events_path(const oct_events *e);

oct_status oct_events_scalar(oct_events *e, const char *tag, int64_t step, double value);

/* An encoded picture: the bytes of a PNG or JPEG file. n_channels: 1, 3 or 4. */
oct_status oct_events_picture(oct_events *e, const char *tag, int64_t step, int32_t width,
                              int32_t height, int32_t n_channels, const void *data, size_t size);

uint32_t oct_crc32c(const void *p, size_t size);
uint32_t oct_crc32c_masked(const void *p, size_t size); /* as event files have it */

#endif
