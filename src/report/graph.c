/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph as JSON: nodes with what a reader asks of them. Conversions between numbers and codes
 * are no nodes but facts of an edge; weights are facts of their node. The page lays it out.
 */
#include <string.h>

#include "graph/op.h"
#include "report/data.h"
#include "report/json.h"

enum {
    MAX_NODES = 20000, /* more would make a page that no browser opens gladly */
    MAX_LIST = 16,     /* numbers that are shown of an attribute */
    MAX_SCALES = 1 << 16,
    MAX_OPERANDS = 64, /* of a node: a Concat may have thousands */
    MAX_STEPS = 4,     /* from a weight back to its codes */
};

/* --- values --- */

static void put_shape(oct_str *out, const oct_value *v)
{
    oct_str text;

    oct_str_init(&text, out->ctx);
    for (int32_t i = 0; i < v->type.rank; i++) {
        const char *name = v->dim_name ? v->dim_name[i] : NULL;

        oct_str_puts(&text, i ? "×" : "");
        if (v->type.dim[i] >= 0)
            oct_str_printf(&text, "%lld", (long long)v->type.dim[i]);
        else
            oct_str_puts(&text, name ? name : "?");
    }
    oct_json_text(out, "shape", v->type.rank < 0 ? "?" : text.len ? text.s : "scalar");
    out->failed |= text.failed;
    oct_str_fini(&text);
}

static void put_value(oct_str *out, const oct_value *v)
{
    oct_json_text(out, "value", v->name);
    oct_json_text(out, "type", oct_dtype_name(v->type.dtype));
    put_shape(out, v);
}

/* The least and the largest number of a constant. */
static bool range_of(const oct_value *v, double range[2], int64_t *n)
{
    double part[256];

    if (!v || !v->data || oct_dtype_size(v->data->type.dtype) == 0) return false;
    *n = OCT_MIN(oct_type_len(&v->data->type), (int64_t)MAX_SCALES);
    for (int64_t i = 0; i < *n; i += (int64_t)OCT_COUNT(part)) {
        const int64_t m = OCT_MIN(*n - i, (int64_t)OCT_COUNT(part));

        oct_load_f64(v->data->type.dtype, v->data->data, i, m, part);
        for (int64_t k = 0; k < m; k++) {
            range[0] = i + k ? OCT_MIN(range[0], part[k]) : part[k];
            range[1] = i + k ? OCT_MAX(range[1], part[k]) : part[k];
        }
    }
    return *n > 0;
}

/* "codes": type, number of scales, least and largest scale, least and largest zero point. */
static void put_codes(oct_str *out, const oct_node *conversion)
{
    const bool is_quantize = strcmp(conversion->op->name, "QuantizeLinear") == 0;
    const oct_value *codes = is_quantize ? conversion->out[0] : conversion->in[0];
    double scale[2], zero[2] = {0, 0};
    int64_t n, n_zero;

    if (conversion->n_in < 2 || !codes || !range_of(conversion->in[1], scale, &n)) return;
    if (conversion->n_in > 2) (void)range_of(conversion->in[2], zero, &n_zero);
    oct_json_open(out, "codes", '[');
    oct_json_text(out, NULL, oct_dtype_name(codes->type.dtype));
    oct_json_int(out, NULL, n);
    oct_json_num(out, NULL, scale[0]);
    oct_json_num(out, NULL, scale[1]);
    oct_json_num(out, NULL, zero[0]);
    oct_json_num(out, NULL, zero[1]);
    oct_json_close(out, ']');
}

/* --- attributes --- */

static void add_numbers(oct_str *text, const oct_attr *a)
{
    const int64_t n = OCT_MIN(a->n, (int64_t)MAX_LIST);

    for (int64_t i = 0; i < n; i++) {
        oct_str_puts(text, i ? ", " : "");
        if (a->kind == OCT_ATTR_INTS)
            oct_str_printf(text, "%lld", (long long)a->is[i]);
        else
            oct_str_printf(text, "%.6g", (double)a->fs[i]);
    }
    if (n < a->n) oct_str_puts(text, ", ..");
}

static void put_attr(oct_str *out, const char *name, const oct_attr *a)
{
    oct_str text;

    if (!a->given || a->kind == OCT_ATTR_NONE) return;
    oct_str_init(&text, out->ctx);
    if (a->kind == OCT_ATTR_INT) oct_str_printf(&text, "%lld", (long long)a->i);
    if (a->kind == OCT_ATTR_F32) oct_str_printf(&text, "%.6g", (double)a->f);
    if (a->kind == OCT_ATTR_INTS || a->kind == OCT_ATTR_F32S) add_numbers(&text, a);
    if (a->kind == OCT_ATTR_STRING) oct_str_printf(&text, "%.200s", a->s);
    if (a->kind == OCT_ATTR_GRAPH) oct_str_printf(&text, "a graph of %d nodes", (int)a->g->n_nodes);
    if (a->kind == OCT_ATTR_TENSOR) oct_str_puts(&text, "a tensor");
    if (a->kind == OCT_ATTR_STRINGS) oct_str_printf(&text, "a list of %lld texts", (long long)a->n);
    if (text.len) {
        oct_json_open(out, NULL, '[');
        oct_json_text(out, NULL, name);
        oct_json_text(out, NULL, text.s);
        oct_json_close(out, ']');
    }
    out->failed |= text.failed;
    oct_str_fini(&text);
}

static void put_attrs(oct_str *out, const oct_node *n)
{
    oct_json_open(out, "attrs", '[');
    for (int i = 0; n->op->attrs && n->op->attrs[i].name; i++)
        put_attr(out, n->op->attrs[i].name, &n->attr[i]);
    for (int32_t i = 0; i < n->n_extra; i++)
        put_attr(out, n->extra[i].name, &n->extra[i].value);
    oct_json_close(out, ']');
}

/* --- edges --- */

/* "from": a node's id, or -1 - i for input i of the graph; false: a constant. */
static bool put_source(oct_str *out, const oct_graph *g, const oct_domain *parts,
                       const oct_value *v)
{
    if (v->producer) {
        if (parts[v->producer->id] == OCT_DOMAIN_CONSTANT || v->producer->graph != g) return false;
        oct_json_int(out, "from", v->producer->id);
        return true;
    }
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] == v) {
            oct_json_int(out, "from", -1 - i);
            return true;
        }
    return false;
}

/* What travels on an edge: codes between integer nodes, a conversion at their borders. */
static void put_edge(oct_str *out, const oct_report *r, const oct_domain *parts, const oct_value *v,
                     bool to_integer)
{
    const oct_node *conversion = v->producer;
    bool through = false, from_integer;
    const oct_value *from = oct_value_before_conversions(v, parts, &through);

    from_integer = from->producer && parts[from->producer->id] == OCT_DOMAIN_INTEGER;
    oct_json_open(out, NULL, '{');
    (void)put_source(out, r->graph, parts, from);
    put_value(out, from);
    oct_json_text(out, "kind",
                  from_integer && to_integer ? "codes"
                  : through                  ? "convert"
                                             : "float");
    if (through) put_codes(out, conversion);
    oct_json_close(out, '}');
}

/* A constant operand; a quantized one is upstream of its DequantizeLinear, which others may
 * follow. */
static void put_weight(oct_str *out, const oct_value *v)
{
    const oct_node *from = v->producer;

    for (int i = 0; i < MAX_STEPS && from && strcmp(from->op->name, "DequantizeLinear"); i++)
        from = from->n_in && from->in[0] ? from->in[0]->producer : NULL;
    oct_json_open(out, NULL, '{');
    put_value(out, v);
    if (from && strcmp(from->op->name, "DequantizeLinear") == 0) put_codes(out, from);
    oct_json_close(out, '}');
}

static bool is_edge(const oct_graph *g, const oct_domain *parts, const oct_value *v)
{
    bool through;

    if (!v || v->data) return false;
    v = oct_value_before_conversions(v, parts, &through);
    if (v->producer)
        return parts[v->producer->id] != OCT_DOMAIN_CONSTANT && v->producer->graph == g;
    return v->is_input;
}

static void put_operands(oct_str *out, const oct_report *r, const oct_domain *parts,
                         const oct_node *n)
{
    const bool is_integer = parts[n->id] == OCT_DOMAIN_INTEGER;
    const int32_t n_in = OCT_MIN(n->n_in, MAX_OPERANDS);

    oct_json_open(out, "in", '[');
    for (int32_t i = 0; i < n_in; i++)
        if (is_edge(r->graph, parts, n->in[i])) put_edge(out, r, parts, n->in[i], is_integer);
    oct_json_close(out, ']');
    oct_json_open(out, "weights", '[');
    for (int32_t i = 0; i < n_in; i++)
        if (n->in[i] && !is_edge(r->graph, parts, n->in[i])) put_weight(out, n->in[i]);
    oct_json_close(out, ']');
}

/* Results, with the codes they are turned into. */
static void put_results(oct_str *out, const oct_domain *parts, const oct_node *n)
{
    oct_json_open(out, "out", '[');
    for (int32_t i = 0; i < OCT_MIN(n->n_out, MAX_OPERANDS); i++) {
        const oct_value *v = n->out[i];
        const oct_node *to_codes = NULL;

        if (!v) continue;
        for (int32_t k = 0; k < v->n_users && !to_codes; k++)
            if (parts[v->users[k]->id] == OCT_DOMAIN_CONVERSION) to_codes = v->users[k];
        oct_json_open(out, NULL, '{');
        put_value(out, v);
        if (to_codes) put_codes(out, to_codes);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
}

static void put_node(oct_str *out, const oct_report *r, const oct_domain *parts, const oct_node *n)
{
    oct_json_open(out, NULL, '{');
    oct_json_int(out, "id", n->id);
    oct_json_text(out, "name", n->name);
    oct_json_text(out, "op", n->op->name);
    oct_json_int(out, "integer", parts[n->id] == OCT_DOMAIN_INTEGER);
    put_attrs(out, n);
    put_operands(out, r, parts, n);
    put_results(out, parts, n);
    oct_json_close(out, '}');
}

void oct_report_put_graph(oct_str *out, const oct_report *r, const oct_links *links)
{
    const oct_graph *g = r->graph;

    if (!g) return;
    if (g->n_nodes > MAX_NODES) {
        oct_json_text(out, "noGraph", "it has too many nodes");
        return;
    }
    oct_json_open(out, "graph", '{');
    oct_json_open(out, "nodes", '[');
    for (const oct_node *n = g->first; n; n = n->next)
        if (links->parts[n->id] != OCT_DOMAIN_CONSTANT &&
            links->parts[n->id] != OCT_DOMAIN_CONVERSION)
            put_node(out, r, links->parts, n);
    oct_json_close(out, ']');
    oct_json_open(out, "inputs", '[');
    for (int32_t i = 0; i < g->n_inputs; i++) {
        oct_json_open(out, NULL, '{');
        put_value(out, g->inputs[i]);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
    oct_json_open(out, "outputs", '[');
    for (int32_t i = 0; i < g->n_outputs; i++)
        put_edge(out, r, links->parts, g->outputs[i], false);
    oct_json_close(out, ']');
    oct_json_close(out, '}');
}
