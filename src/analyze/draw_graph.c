/* SPDX-License-Identifier: Apache-2.0 */
/* Drawings of graphs as files: which format, and the note that octet made them. */
#include <octet/graph.h>

#include <string.h>

#include "analyze/dot.h"
#include "analyze/draw.h"
#include "base/file.h"

/* Above this a layout takes minutes and is unreadable. */
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

/* A comment that octet made the drawing, and the offset at which it is inserted. */
typedef struct note {
    const char *text;
    size_t size, at;
} note;

#define NOTE(s) s, sizeof(s) - 1

static note note_for(const char *format, const char *data, size_t size)
{
    enum { PNG_HEAD = 33 }; /* signature and IHDR */
    const char *svg = strcmp(format, "svg") ? NULL : memmem(data, size, "<svg", 4);

    if (strcmp(format, "dot") == 0) return (note){NOTE("// made by octet\n"), 0};
    if (strcmp(format, "pdf") == 0) return (note){NOTE("%made by octet\n"), size};
    if (strcmp(format, "png") == 0 && size > PNG_HEAD)
        return (note){NOTE("\0\0\0\x16tEXtSoftware\0made by octet"
                           "\xdb\xe0\xb4\xbd"),
                      PNG_HEAD};
    if (svg) return (note){NOTE("<!-- made by octet -->\n"), (size_t)(svg - data)};
    return (note){0};
}

oct_status oct_draw_write(oct_ctx *ctx, const char *path, const char *format, const char *data,
                          size_t size)
{
    const note n = note_for(format, data, size);
    oct_writer *w = NULL;
    oct_status st;

    OCT_TRY(oct_writer_open(ctx, path, &w));
    st = oct_writer_put(w, data, n.at);
    if (!st) st = oct_writer_put(w, n.text, n.size);
    if (!st) st = oct_writer_put(w, data + n.at, size - n.at);
    if (st) {
        oct_writer_abort(w);
        return st;
    }
    return oct_writer_commit(w);
}

oct_status oct_graph_draw(const oct_graph *g, const char *path)
{
    OCT_ENTER(g->ctx);
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
        st = strcmp(format, "dot") ? oct_draw_render(g->ctx, text.s, format, path)
                                   : oct_draw_write(g->ctx, path, format, text.s, text.len);
    oct_str_fini(&text);
    return st;
}
