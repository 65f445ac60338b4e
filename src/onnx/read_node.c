/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of an ONNX file: outputs of all are named first, then each is drafted and made. */
#include <stdio.h>
#include <string.h>

#include "onnx/foreign.h"
#include "onnx/read.h"
#include "op/custom.h"

#define MAX_ATTRS 1024 /* of one node */

oct_status oct_draft_fail(const oct_draft *d, oct_status status, const char *fmt, ...)
{
    char text[768];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return oct_fail(d->s->r->ctx, status, "node '%s' (%s): %s", d->name, d->op, text);
}

oct_status oct_read_node_name(oct_reader *r, const char *wanted, const char **out)
{
    int32_t *last = oct_map_get(&r->node_names, wanted);
    int32_t *fresh = oct_arena_alloc(r->wire.arena, sizeof(*fresh));
    const char *name = wanted;

    if (!fresh) return OCT_ERR_MEMORY;
    while (last && oct_map_get(&r->node_names, name))
        if (!(name = oct_arena_printf(r->wire.arena, "%s_%d", wanted, (int)++*last)))
            return OCT_ERR_MEMORY;
    OCT_TRY(oct_map_put(&r->node_names, name, fresh));
    *out = name;
    return OCT_OK;
}

/* One node as the file has it, and the name it gets. */
typedef struct entry {
    oct_pb_node pb;
    const char *name; /* NULL: none in the file */
    bool is_constant;
} entry;

static oct_status define_output(oct_names *s, const char *name, oct_value **out)
{
    oct_value *v = s->results ? oct_map_get(s->results, name) : NULL;

    if (!v) return oct_scope_define(s, name, out);
    *out = v;
    return oct_scope_bind(s, name, v);
}

static oct_status make_up_name(oct_names *s, const entry *e, size_t index, const char **out)
{
    oct_reader *r = s->r;
    const oct_value *first = NULL;
    const char *base;

    for (size_t i = 0; i < e->pb.output.n && !first; i++) {
        if (!e->pb.output.v[i].size) continue;
        OCT_TRY(oct_read_text(r, r->wire.arena, e->pb.output.v[i], "output name", &base));
        first = oct_map_get(&s->names, base);
    }
    base = first
               ? first->name
               : oct_arena_printf(r->wire.arena, "%.*s_%zu", (int)OCT_MIN(e->pb.op_type.size, 200),
                                  (const char *)e->pb.op_type.p, index);
    return base ? oct_read_node_name(r, base, out) : OCT_ERR_MEMORY;
}

static bool is_standard(oct_span domain)
{
    return !domain.size || oct_span_is(domain, "ai.onnx");
}

static oct_status read_constant(oct_names *s, const entry *e, oct_value *v)
{
    oct_draft d = {.s = s, .op = "Constant", .domain = "", .name = e->name ? e->name : v->name};
    oct_tensor *t = NULL;

    OCT_TRY(oct_read_constant(&d, &e->pb.attribute, &t));
    v->data = t;
    v->type = t->type;
    v->dim_name = NULL;
    return OCT_OK;
}

/* Pass 1: decodes a node and names what it makes. Constants are done with here. */
static oct_status enter_node(oct_names *s, oct_span bytes, entry *e)
{
    oct_reader *r = s->r;
    const oct_pb_function *fn;
    oct_value *v = NULL;

    OCT_TRY(oct_wire_node(&r->wire, bytes, &e->pb));
    OCT_TRY(oct_function_find(r, &e->pb, &fn));
    e->is_constant = !fn && oct_span_is(e->pb.op_type, "Constant") && is_standard(e->pb.domain);
    if (e->is_constant && e->pb.output.n > 1)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "a Constant node has %zu outputs, not one",
                        e->pb.output.n);
    if (e->pb.name.size && !e->is_constant) {
        const char *name;

        OCT_TRY(oct_read_text(r, r->wire.arena, e->pb.name, "node name", &name));
        if (s->prefix && !(name = oct_arena_printf(r->wire.arena, "%s/%s", s->prefix, name)))
            return OCT_ERR_MEMORY;
        OCT_TRY(oct_read_node_name(r, name, &e->name));
    }
    for (size_t i = 0; i < e->pb.output.n; i++) {
        const char *name;

        OCT_TRY(oct_read_text(r, r->wire.arena, e->pb.output.v[i], "output name", &name));
        if (name[0]) OCT_TRY(define_output(s, name, &v));
    }
    return e->is_constant && v ? read_constant(s, e, v) : OCT_OK;
}

static oct_status resolve(oct_draft *d, const oct_spans *names, bool is_input, oct_value **out)
{
    oct_reader *r = d->s->r;

    for (size_t i = 0; i < names->n; i++) {
        const char *name;

        if (!names->v[i].size) continue;
        OCT_TRY(oct_read_text(r, r->wire.arena, names->v[i], "value name", &name));
        out[i] = is_input ? oct_scope_find(d->s, name) : oct_map_get(&d->s->names, name);
        if (!out[i])
            return oct_draft_fail(d, OCT_ERR_FORMAT,
                                  "input '%s' is neither an input of the graph, nor an "
                                  "initializer, nor made by any node",
                                  name);
        if (out[i] == &r->absent) out[i] = NULL;
    }
    return OCT_OK;
}

static oct_status find_version(oct_draft *d)
{
    const oct_opsets *o = d->s->opsets;

    d->version = 0;
    for (int32_t i = 0; i < o->n; i++)
        if (strcmp(o->v[i].domain, d->domain) == 0)
            d->version = OCT_MAX(d->version, o->v[i].version);
    if (!d->version && !d->domain[0])
        return oct_draft_fail(d, OCT_ERR_FORMAT,
                              "the file does not say which opset its standard operators are from");
    return OCT_OK;
}

/* Pass 2: drafts a node, brings it to the internal opset, makes it. */
static oct_status read_node(oct_names *s, const entry *e)
{
    oct_reader *r = s->r;
    const oct_pb_node *pb = &e->pb;
    oct_draft d = {.s = s, .name = e->name, .op = "?"};
    const oct_pb_function *fn;

    OCT_TRY(oct_read_text(r, r->wire.arena, pb->op_type, "operator name", &d.op));
    OCT_TRY(oct_read_text(r, r->wire.arena, pb->domain, "operator domain", &d.domain));
    if (pb->doc.size) OCT_TRY(oct_read_text(r, s->g->arena, pb->doc, "doc string", &d.doc));
    if (is_standard(pb->domain)) d.domain = "";
    if (!d.op[0]) return oct_draft_fail(&d, OCT_ERR_FORMAT, "no operator is given");
    if (pb->input.n > INT32_MAX / 2 || pb->output.n > INT32_MAX / 2 || pb->attribute.n > MAX_ATTRS)
        return oct_draft_fail(&d, OCT_ERR_FORMAT, "too many inputs, outputs or attributes");
    if (s->call && ++r->n_inlined > OCT_ONNX_MAX_INLINED)
        return oct_draft_fail(&d, OCT_ERR_FORMAT, "functions make more than %d nodes",
                              OCT_ONNX_MAX_INLINED);

    d.in = oct_arena_array(r->wire.arena, pb->input.n + pb->output.n + 1, sizeof(oct_value *));
    if (!d.in) return OCT_ERR_MEMORY;
    d.out = d.in + pb->input.n;
    d.n_in = (int32_t)pb->input.n;
    d.n_out = (int32_t)pb->output.n;
    OCT_TRY(resolve(&d, &pb->input, true, d.in));
    OCT_TRY(resolve(&d, &pb->output, false, d.out));
    OCT_TRY(oct_read_attrs(&d, &pb->attribute));
    OCT_TRY(oct_function_find(r, pb, &fn));
    if (fn) return oct_function_inline(&d, fn);
    OCT_TRY(find_version(&d));
    OCT_TRY(oct_foreign(&d));
    if (!d.domain[0]) OCT_TRY(oct_upgrade(&d));
    return oct_draft_finish(&d);
}

oct_status oct_read_nodes(oct_names *s, const oct_spans *nodes)
{
    entry *e = oct_arena_array(s->r->wire.arena, OCT_MAX(nodes->n, 1), sizeof(*e));

    if (!e) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < nodes->n; i++)
        OCT_TRY(enter_node(s, nodes->v[i], &e[i]));
    for (size_t i = 0; i < nodes->n; i++)
        if (!e[i].name && !e[i].is_constant) OCT_TRY(make_up_name(s, &e[i], i, &e[i].name));
    for (size_t i = 0; i < nodes->n; i++)
        if (!e[i].is_constant) OCT_TRY(read_node(s, &e[i]));
    return OCT_OK;
}

/* --- making nodes --- */

static oct_status find_row(const oct_draft *d, const oct_op **out)
{
    oct_reader *r = d->s->r;
    const char *key = oct_arena_printf(r->wire.arena, "%s:%s", d->domain, d->op);
    const oct_op *row = key ? oct_map_get(&r->rows, key) : NULL;

    if (!key) return OCT_ERR_MEMORY;
    if (!row) {
        row = oct_op_find(d->domain, d->op);
        if (!row) OCT_TRY(oct_custom_find(r->ctx, d->domain, d->op, &row));
        if (!row) row = oct_op_opaque(d->s->g, d->domain, d->op);
        if (!row) return OCT_ERR_MEMORY;
        OCT_TRY(oct_map_put(&r->rows, key, (void *)(uintptr_t)row));
    }
    *out = row;
    return OCT_OK;
}

/* What shape functions may rely on is checked before one is called. */
static oct_status check_arity(const oct_draft *d, const oct_op *row)
{
    const int max_out = row->max_out ? row->max_out : 1;

    if (d->n_in < row->min_in)
        return oct_draft_fail(d, OCT_ERR_FORMAT, "has %d inputs, needs at least %d", (int)d->n_in,
                              row->min_in);
    if (row->max_in >= 0 && d->n_in > row->max_in)
        return oct_draft_fail(d, OCT_ERR_FORMAT, "has %d inputs, takes at most %d", (int)d->n_in,
                              row->max_in);
    if (max_out >= 0 && d->n_out > max_out)
        return oct_draft_fail(d, OCT_ERR_FORMAT, "has %d outputs, gives at most %d", (int)d->n_out,
                              max_out);
    for (int i = 0; i < row->min_in && row->max_in >= 0; i++) /* Loop may leave its first out */
        if (!d->in[i]) return oct_draft_fail(d, OCT_ERR_FORMAT, "input %d must be given", i);
    return OCT_OK;
}

/* Operands left out at the end are not written down; results always are, up to the row's least. */
static oct_status tidy_operands(oct_draft *d, const oct_op *row)
{
    const int32_t least = OCT_MAX(row->min_out, 1);

    while (d->n_in > 0 && !d->in[d->n_in - 1])
        d->n_in--;
    if (d->n_out < least) {
        oct_value **out = oct_arena_array(d->s->r->wire.arena, (size_t)least, sizeof(*out));

        if (!out) return OCT_ERR_MEMORY;
        if (d->n_out) memcpy(out, d->out, (size_t)d->n_out * sizeof(*out));
        d->out = out;
        d->n_out = least;
    }
    return check_arity(d, row);
}

static bool is_in_row(const oct_op *row, const char *name)
{
    for (int i = 0; row->attrs && row->attrs[i].name; i++)
        if (strcmp(row->attrs[i].name, name) == 0) return true;
    return false;
}

/* Room for all attributes the row does not list, at once. */
static oct_status reserve_extra(const oct_draft *d, oct_node *n)
{
    size_t count = 0;

    for (int32_t i = 0; i < d->n_attr; i++)
        count += !is_in_row(n->op, d->attr[i].name);
    if (count) n->extra = oct_arena_array(n->graph->arena, count, sizeof(*n->extra));
    return count && !n->extra ? OCT_ERR_MEMORY : OCT_OK;
}

static oct_status set_attr(oct_node *n, const oct_draft_attr *a)
{
    oct_extra_attr *extra;

    if (is_in_row(n->op, a->name)) return oct_node_set_attr(n, a->name, &a->value);
    extra = &n->extra[n->n_extra];
    if (!(extra->name = oct_arena_strdup(n->graph->arena, a->name))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_keep_attr(n->graph, &a->value, &extra->value));
    n->n_extra++;
    return OCT_OK;
}

/* Subgraphs are read last, into the finished node, so that they are freed with it. */
static oct_status set_attrs(const oct_draft *d, oct_node *n)
{
    OCT_TRY(reserve_extra(d, n));
    for (int32_t i = 0; i < d->n_attr; i++) {
        oct_draft_attr *a = &d->attr[i];

        if (a->value.kind == OCT_ATTR_GRAPH)
            OCT_TRY(oct_graph_new_sub(n->graph, NULL, &a->value.g));
        OCT_TRY(set_attr(n, a));
    }
    for (int i = 0; n->op->attrs && n->op->attrs[i].name; i++)
        if (n->op->attrs[i].required && n->attr[i].kind == OCT_ATTR_NONE)
            return oct_node_fail(n, OCT_ERR_FORMAT, "attribute '%s' must be given",
                                 n->op->attrs[i].name);
    for (int32_t i = 0; i < d->n_attr; i++) {
        const oct_draft_attr *a = &d->attr[i];

        if (a->value.kind == OCT_ATTR_GRAPH)
            OCT_TRY(oct_read_graph(d->s->r, a->scope, a->graph, a->value.g));
    }
    return OCT_OK;
}

oct_status oct_draft_finish(oct_draft *d)
{
    const oct_op *row = NULL;
    oct_node *n;

    OCT_TRY(find_row(d, &row));
    OCT_TRY(tidy_operands(d, row));
    n = oct_node_new(d->s->g, NULL, d->name, row, d->in, d->n_in, d->out, d->n_out);
    if (!n) return OCT_ERR_MEMORY;
    n->doc = d->doc;
    OCT_TRY(set_attrs(d, n));
    return oct_node_infer(n);
}
