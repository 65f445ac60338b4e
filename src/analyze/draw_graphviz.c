/* SPDX-License-Identifier: Apache-2.0 */
/* Drawings laid out by Graphviz; the only file that includes it. */
#include "analyze/draw.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <graphviz/gvc.h>

#include "base/str.h"

/* The centre of the node that a line like "<title>n7</title>" begins; false if it begins none. */
static bool find_centre(Agraph_t *g, const char *line, double *x)
{
    char name[32];
    Agnode_t *n = NULL;

    if (sscanf(line, "<title>%31[a-z0-9]</title>", name) == 1) n = agnode(g, name, 0);
    if (n) *x = ND_coord(n).x;
    return n != NULL;
}

/*
 * Graphviz positions each line of a node for its own font. A browser may use another one, with
 * other widths: lines are anchored at the centre of their node instead. They are also placed a
 * little high, by the depth of the letters that reach below the line.
 */
static void centre_text(oct_str *out, Agraph_t *g, const char *svg)
{
    static const char start[] = "<text text-anchor=\"start\" x=\"";
    bool in_node = false;
    double x = 0;

    while (*svg) {
        const size_t len = strcspn(svg, "\n");
        const char *rest = svg;

        if (strncmp(svg, "<title>", 7) == 0) in_node = find_centre(g, svg, &x);
        if (in_node && strncmp(svg, start, sizeof(start) - 1) == 0) {
            rest += sizeof(start) - 1;
            rest += strcspn(rest, "\"\n");
            oct_str_printf(out, "<text text-anchor=\"middle\" dy=\"1.5\" x=\"%.2f", x);
        }
        oct_str_put(out, rest, len - (size_t)(rest - svg));
        svg += len;
        if (*svg) oct_str_put(out, svg++, 1);
    }
}

static oct_status write_svg(oct_ctx *ctx, const char *path, Agraph_t *g, const char *data)
{
    oct_str text;
    oct_status st = OCT_ERR_MEMORY;

    oct_str_init(&text, ctx);
    centre_text(&text, g, data);
    if (!text.failed) st = oct_draw_write(ctx, path, "svg", text.s, text.len);
    oct_str_fini(&text);
    return st;
}

/* Bitmaps have limits of size and memory: larger drawings are scaled down. */
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

static oct_status lay_out(oct_ctx *ctx, const char *text, const char *format, const char *path)
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
            st = strcmp(format, "svg") ? oct_draw_write(ctx, path, format, data, size)
                                       : write_svg(ctx, path, g, data);
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

/* What the child says, if it fails, and how it ended. */
static oct_status wait_for(oct_ctx *ctx, pid_t child, int from, const char *path)
{
    char why[512];
    size_t len = 0;
    ssize_t n;
    int status = 0;

    while (len < sizeof(why) - 1 && (n = read(from, why + len, sizeof(why) - 1 - len)) != 0) {
        if (n < 0 && errno != EINTR) break;
        if (n > 0) len += (size_t)n;
    }
    why[len] = '\0';
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return OCT_OK;
    if (WIFEXITED(status)) return oct_fail(ctx, (oct_status)WEXITSTATUS(status), "%s", why);
    return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "%s: Graphviz broke down while drawing", path);
}

/*
 * In a process of its own: Graphviz keeps global state, and its text plugin reads a font's name
 * after the context that owned it is gone (seen with 2.42), so that a second picture is not safe.
 */
oct_status oct_draw_render(oct_ctx *ctx, const char *text, const char *format, const char *path)
{
    int ends[2];
    oct_status st;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC))
        return oct_fail(ctx, OCT_ERR_IO, "%s: no pipe: %s", path, strerror(errno));
    child = fork();
    if (child == 0) {
        st = lay_out(ctx, text, format, path);
        if (st) {
            const char *why = oct_ctx_error(ctx);

            if (write(ends[1], why, strlen(why)) < 0) _exit(OCT_ERR_IO);
        }
        _exit((int)st);
    }
    (void)close(ends[1]);
    st = child < 0 ? oct_fail(ctx, OCT_ERR_IO, "%s: no process: %s", path, strerror(errno))
                   : wait_for(ctx, child, ends[0], path);
    (void)close(ends[0]);
    return st;
}
