/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of graphs, laid out by Graphviz; the only file that sees it. */
#include <octet/graph.h>

#include <math.h>
#include <string.h>

#include <graphviz/gvc.h>

#include "analyze/dot.h"
#include "base/file.h"

/* Beyond this a layout takes minutes and nobody could read it. */
#define MAX_NODES 4000

static const char *const formats[] = {"dot", "pdf", "png", "svg"};

/* The format that the file's extension names, or NULL. */
static const char *format_of(const char *path)
{
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot && i < OCT_COUNT(formats); i++)
        if (strcmp(dot + 1, formats[i]) == 0) return formats[i];
    return NULL;
}

static oct_status write_file(oct_ctx *ctx, const char *path, const void *data, size_t size)
{
    oct_writer *w = NULL;
    oct_status st;

    OCT_TRY(oct_writer_open(ctx, path, &w));
    st = oct_writer_put(w, data, size);
    if (st) {
        oct_writer_abort(w);
        return st;
    }
    return oct_writer_commit(w);
}

/* Bitmaps have limits, and nobody's memory should go into one: larger pictures are scaled down. */
static void limit_pixels(Agraph_t *g, const char *format)
{
    const double max_side = 32000, max_area = 60e6, dpi = 96;
    const double w = GD_bb(g).UR.x * dpi / 72, h = GD_bb(g).UR.y * dpi / 72;
    double scale = 1;

    if (strcmp(format, "png")) return;
    if (OCT_MAX(w, h) > max_side) scale = max_side / OCT_MAX(w, h);
    if (w * h * scale * scale > max_area) scale = sqrt(max_area / (w * h));
    if (scale < 1) GD_drawing(g)->dpi = dpi * scale;
}

/* Graphviz keeps global state: one thread at a time may be here. */
static oct_status render(oct_ctx *ctx, const char *text, const char *format, const char *path)
{
    const agerrlevel_t old_level = agseterr(AGMAX); /* it would print to stderr */
    GVC_t *gvc = gvContext();
    Agraph_t *g = gvc ? agmemread(text) : NULL;
    char *data = NULL;
    unsigned int size = 0;
    bool laid_out = false;
    oct_status st = OCT_ERR_UNSUPPORTED;

    if (g && gvLayout(gvc, g, "dot") == 0) {
        laid_out = true;
        limit_pixels(g, format);
        if (gvRenderData(gvc, g, format, &data, &size) == 0 && data && size)
            st = write_file(ctx, path, data, size);
    }
    if (!data) {
        const char *why = aglasterr();

        st = oct_fail(ctx, OCT_ERR_UNSUPPORTED, "%s: Graphviz cannot draw this as %s: %s", path,
                      format, why && *why ? why : "is its plugin installed?");
    }
    gvFreeRenderData(data);
    if (laid_out) (void)gvFreeLayout(gvc, g);
    if (g) (void)agclose(g);
    if (gvc) (void)gvFreeContext(gvc);
    (void)agseterr(old_level);
    return st;
}

oct_status oct_graph_draw(const oct_graph *g, const char *path)
{
    const char *format = format_of(path);
    oct_str text;
    oct_status st;

    if (!format)
        return oct_fail(g->ctx, OCT_ERR_ARG,
                        "%s: cannot tell the format; use a name that ends in .svg, .png, .pdf "
                        "or .dot",
                        path);
    if (strcmp(format, "dot") && g->n_nodes > MAX_NODES)
        return oct_fail(g->ctx, OCT_ERR_UNSUPPORTED,
                        "%s: %d nodes are too many for a picture (at most %d); write a .dot file",
                        path, (int)g->n_nodes, MAX_NODES);
    oct_str_init(&text, g->ctx);
    st = oct_graph_dot(g, &text);
    if (!st)
        st = strcmp(format, "dot") ? render(g->ctx, text.s, format, path)
                                   : write_file(g->ctx, path, text.s, text.len);
    oct_str_fini(&text);
    return st;
}
