/* SPDX-License-Identifier: Apache-2.0 */
/* Builds without Graphviz (-Ddrawing=false) write DOT only. */
#include "analyze/draw.h"

oct_status oct_draw_render(oct_ctx *ctx, const char *text, const char *format, const char *path)
{
    (void)text;
    return oct_fail(ctx, OCT_ERR_UNSUPPORTED,
                    "%s: this build of octet draws no .%s files; write a .dot file, and let "
                    "Graphviz draw it: dot -T%s",
                    path, format, format);
}
