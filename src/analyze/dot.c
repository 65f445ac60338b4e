/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as DOT text. */
#include "analyze/dot.h"

#include <string.h>

#include "base/utf8.h"
#include "graph/op.h"

#define NAME_LENGTH 34 /* longer names lose their beginning: the end tells layers apart */
#define LABEL_ATTRS 3  /* further attributes that are shown */

/* --- text --- */

/* Text for an HTML-like label or a quoted attribute: safe in both. */
static void put_text(oct_str *out, const char *s)
{
    while (*s) {
        const int len = oct_utf8_len(s);

        switch (*s) {
        case '&':
            oct_str_puts(out, "&amp;");
            break;
        case '<':
            oct_str_puts(out, "&lt;");
            break;
        case '>':
            oct_str_puts(out, "&gt;");
            break;
        case '"':
            oct_str_puts(out, "&quot;");
            break;
        case '\\':
            oct_str_puts(out, "&#92;"); /* a backslash would be an escape of DOT */
            break;
        default:
            if (len)
                oct_str_put(out, s, (size_t)len);
            else
                oct_str_puts(out, "?");
        }
        s += len ? len : 1;
    }
}

/* The last part of a long name. */
static void put_short(oct_str *out, const char *name)
{
    const size_t len = strlen(name);
    const char *from = name;

    if (len > NAME_LENGTH) {
        from = name + len - NAME_LENGTH + 2;
        while (oct_utf8_is_tail(*from))
            from++;
        oct_str_puts(out, "..");
    }
    put_text(out, from);
}

/* "float32 1x3x640x640" */
static void put_type(oct_str *out, const oct_value *v)
{
    put_text(out, oct_dtype_name(v->type.dtype));
    oct_str_puts(out, " ");
    if (v->type.rank < 0) {
        oct_str_puts(out, "?");
        return;
    }
    for (int32_t i = 0; i < v->type.rank; i++) {
        oct_str_puts(out, i ? "x" : "");
        if (v->type.dim[i] >= 0)
            oct_str_printf(out, "%lld", (long long)v->type.dim[i]);
        else
            put_text(out, v->dim_name && v->dim_name[i] ? v->dim_name[i] : "?");
    }
}

/* --- attributes --- */

static bool all_equal(const oct_attr *a, int64_t v)
{
    for (int64_t i = 0; i < a->n; i++)
        if (a->is[i] != v) return false;
    return true;
}

/* "3x3", or "3" if all are the same and `fold`. */
static void put_ints(oct_str *out, const oct_attr *a, const char *sep, bool fold)
{
    const int64_t n = fold && a->n && all_equal(a, a->is[0]) ? 1 : OCT_MIN(a->n, OCT_MAX_RANK);

    for (int64_t i = 0; i < n; i++)
        oct_str_printf(out, "%s%lld", i ? sep : "", (long long)a->is[i]);
    if (n < a->n && !fold) oct_str_puts(out, "..");
}

static const oct_attr *ints_attr(const oct_node *n, const char *name)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_INTS && a->n ? a : NULL;
}

/* Is the attribute shown elsewhere in the label, or of no interest in a drawing? */
static bool is_special(const char *name)
{
    static const char *const names[] = {
        "allowzero",           "auto_pad",  "ceil_mode",     "coordinate_transformation_mode",
        "cubic_coeff_a",       "dilations", "epsilon",       "exclude_outside",
        "extrapolation_value", "group",     "kernel_shape",  "momentum",
        "nearest_mode",        "pads",      "storage_order", "strides",
        "training_mode"};

    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* "3x3 stride 2 groups 64": the main facts of a convolution or pooling. */
static bool put_window(oct_str *out, const oct_node *n)
{
    const oct_attr *kernel = ints_attr(n, "kernel_shape"), *strides = ints_attr(n, "strides");
    const oct_attr *dilations = ints_attr(n, "dilations"), *group = oct_node_attr(n, "group");
    const size_t before = out->len;

    if (kernel) put_ints(out, kernel, "x", false);
    if (strides && !all_equal(strides, 1)) {
        oct_str_puts(out, " stride ");
        put_ints(out, strides, "x", true);
    }
    if (dilations && !all_equal(dilations, 1)) {
        oct_str_puts(out, " dilation ");
        put_ints(out, dilations, "x", true);
    }
    if (group && group->kind == OCT_ATTR_INT && group->i > 1)
        oct_str_printf(out, " groups %lld", (long long)group->i);
    return out->len > before;
}

/* "axis=1"; false if there is nothing to show. */
static bool put_attr(oct_str *out, const char *name, const oct_attr *a, bool first)
{
    if (!a->given || is_special(name)) return false;
    if (a->kind != OCT_ATTR_INT && a->kind != OCT_ATTR_F32 && a->kind != OCT_ATTR_INTS &&
        a->kind != OCT_ATTR_STRING && a->kind != OCT_ATTR_GRAPH)
        return false;
    oct_str_puts(out, first ? "" : ", ");
    put_text(out, name);
    oct_str_puts(out, "=");
    if (a->kind == OCT_ATTR_INT) oct_str_printf(out, "%lld", (long long)a->i);
    if (a->kind == OCT_ATTR_F32) oct_str_printf(out, "%.4g", (double)a->f);
    if (a->kind == OCT_ATTR_INTS) put_ints(out, a, ",", false);
    if (a->kind == OCT_ATTR_STRING) put_short(out, a->s);
    if (a->kind == OCT_ATTR_GRAPH) oct_str_printf(out, "%d nodes", (int)a->g->n_nodes);
    return true;
}

static void put_attrs(oct_str *out, const oct_node *n)
{
    int shown = put_window(out, n);

    for (int i = 0; n->op->attrs && n->op->attrs[i].name && shown < LABEL_ATTRS; i++)
        shown += put_attr(out, n->op->attrs[i].name, &n->attr[i], shown == 0);
    for (int32_t i = 0; i < n->n_extra && shown < LABEL_ATTRS; i++)
        shown += put_attr(out, n->extra[i].name, &n->extra[i].value, shown == 0);
}

/* --- nodes and edges --- */

/* By what the row says of the operator, so that new operators get their colour by themselves. */
static const char *colour(const oct_op *op)
{
    if (oct_op_is_opaque(op)) return "#f4a6a6";
    if (strstr(op->name, "uantizeLinear") || strstr(op->name, "QLinear")) return "#b7e4dc";
    if (op->flags & OCT_OP_HAS_BODY) return "#f7c8e0";
    if (op->macs || op->flow == OCT_FLOW_SOURCE) return "#bcd4f6";
    if (op->act) return "#fbd9a8";
    if (op->flow == OCT_FLOW_CONCAT) return "#d9c8f0";
    if (op->flags & (OCT_OP_VIEW | OCT_OP_IS_COPY)) return "#e4e4e4";
    if (op->flags & OCT_OP_ELEMENTWISE) return "#fdf0b5";
    if (op->flow == OCT_FLOW_PASS) return "#c9ebc0";
    return "#f2f2f2";
}

static void put_node(oct_str *out, const oct_node *n)
{
    oct_str attrs;

    oct_str_printf(out, "n%d [fillcolor=\"%s\", tooltip=\"", (int)n->id, colour(n->op));
    put_text(out, n->name);
    oct_str_puts(out, "\", label=<<B>");
    put_text(out, n->op->name);
    oct_str_puts(out, "</B>");
    if (n->name[0]) {
        oct_str_puts(out, "<BR/><FONT POINT-SIZE=\"9\" COLOR=\"#404040\">");
        put_short(out, n->name);
        oct_str_puts(out, "</FONT>");
    }
    oct_str_init(&attrs, out->ctx);
    put_attrs(&attrs, n);
    if (attrs.len) {
        oct_str_puts(out, "<BR/><FONT POINT-SIZE=\"9\">");
        oct_str_put(out, attrs.s, attrs.len);
        oct_str_puts(out, "</FONT>");
    }
    out->failed |= attrs.failed;
    oct_str_fini(&attrs);
    oct_str_puts(out, ">];\n");
}

static void put_terminal(oct_str *out, const char *kind, int32_t i, const oct_value *v)
{
    oct_str_printf(out, "%s%d [shape=ellipse, style=filled, fillcolor=\"#ffffff\", label=<<B>",
                   kind, (int)i);
    put_text(out, v->name);
    oct_str_puts(out, "</B><BR/><FONT POINT-SIZE=\"9\">");
    put_type(out, v);
    oct_str_puts(out, "</FONT>>];\n");
}

/* The DOT name of v's producer; false for constants. */
static bool put_source(oct_str *out, const oct_graph *g, const oct_domain *parts,
                       const oct_value *v)
{
    if (v->producer) {
        if (parts[v->producer->id] == OCT_DOMAIN_CONSTANT) return false;
        oct_str_printf(out, "n%d", (int)v->producer->id);
        return true;
    }
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] == v) {
            oct_str_printf(out, "in%d", (int)i);
            return true;
        }
    return false;
}

/* An end of an edge: a node, or an output of the graph. */
typedef struct edge_end {
    const char *kind;
    int32_t i;
    bool first; /* edges of first operands are heavier: they keep the main path straight */
} edge_end;

static void put_edge(oct_str *out, const oct_graph *g, const oct_domain *parts, const oct_value *v,
                     edge_end to)
{
    if (!put_source(out, g, parts, v)) return;
    oct_str_printf(out, " -> %s%d [weight=%d, label=\"  ", to.kind, (int)to.i, to.first ? 4 : 1);
    put_type(out, v);
    oct_str_puts(out, "\", tooltip=\"");
    put_text(out, v->name);
    oct_str_puts(out, "\"];\n");
}

static void put_head(oct_str *out, const oct_graph *g)
{
    /* Large graphs get a quicker layout: seconds instead of minutes. */
    const bool large = g->n_nodes > 300;

    oct_str_puts(out, "digraph octet {\n");
    oct_str_printf(out,
                   "graph [rankdir=TB, ranksep=0.25, nodesep=0.25, splines=%s, nslimit=%s, "
                   "mclimit=%s, fontname=\"Helvetica\", bgcolor=\"white\"];\n",
                   g->n_nodes > 1500 ? "line" : "spline", large ? "1" : "4", large ? "0.3" : "1");
    oct_str_puts(out, "node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", "
                      "fontsize=12, color=\"#707070\", margin=\"0.12,0.07\"];\n"
                      "edge [fontname=\"Helvetica\", fontsize=9, color=\"#606060\", "
                      "fontcolor=\"#606060\", arrowsize=0.6];\n");
}

/* Nodes on constants only are hidden like the constants. */
static bool is_hidden(const oct_domain *parts, const oct_node *n)
{
    return parts[n->id] == OCT_DOMAIN_CONSTANT;
}

oct_status oct_graph_dot(const oct_graph *g, oct_str *out)
{
    oct_domain *parts = oct_graph_domains(g);

    if (!parts) return OCT_ERR_MEMORY;
    put_head(out, g);
    for (int32_t i = 0; i < g->n_inputs; i++)
        put_terminal(out, "in", i, g->inputs[i]);
    for (const oct_node *n = g->first; n; n = n->next)
        if (!is_hidden(parts, n)) put_node(out, n);
    for (int32_t i = 0; i < g->n_outputs; i++)
        put_terminal(out, "out", i, g->outputs[i]);
    for (const oct_node *n = g->first; n; n = n->next)
        for (int32_t i = 0; i < n->n_in && !is_hidden(parts, n); i++)
            if (n->in[i]) put_edge(out, g, parts, n->in[i], (edge_end){"n", n->id, i == 0});
    for (int32_t i = 0; i < g->n_outputs; i++)
        put_edge(out, g, parts, g->outputs[i], (edge_end){"out", i, true});
    oct_str_puts(out, "}\n");
    oct_free(g->ctx, parts);
    return out->failed ? OCT_ERR_MEMORY : OCT_OK;
}
