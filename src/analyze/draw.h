/* SPDX-License-Identifier: Apache-2.0 */
/* From DOT to a drawing. */
#ifndef OCT_ANALYZE_DRAW_H
#define OCT_ANALYZE_DRAW_H

#include "base/ctx.h"

/* Lays out `text`, which is DOT, and writes it as "svg", "png" or "pdf". */
oct_status oct_draw_render(oct_ctx *ctx, const char *text, const char *format, const char *path);

/* Writes a drawing, with a note that octet made it. */
oct_status oct_draw_write(oct_ctx *ctx, const char *path, const char *format, const char *data,
                          size_t size);

#endif
