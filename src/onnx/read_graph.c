/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of an ONNX file: scopes of names, initialisers, inputs, nodes, outputs. */
#include <string.h>

#include "onnx/read.h"

void oct_scope_init(oct_names *s, oct_reader *r, oct_names *outer, oct_graph *g)
{
    *s = (oct_names){.r = r, .outer = outer, .g = g, .opsets = &r->opsets};
    s->unsorted = &s->is_unsorted;
    if (outer) {
        s->opsets = outer->opsets;
        s->call = outer->call;
        s->prefix = outer->prefix;
    }
    oct_map_init(&s->names, r->ctx);
    oct_map_init(&s->infos, r->ctx);
}

void oct_scope_fini(oct_names *s)
{
    oct_map_fini(&s->names);
    oct_map_fini(&s->infos);
}

oct_value *oct_scope_find(const oct_names *s, const char *name)
{
    for (; s; s = s->outer) {
        oct_value *v = oct_map_get(&s->names, name);

        if (!v) continue;
        if (!v->producer && !v->data && !v->is_input) *s->unsorted = true; /* made further down */
        return v;
    }
    return NULL;
}

oct_status oct_scope_bind(oct_names *s, const char *name, oct_value *v)
{
    if (oct_map_get(&s->names, name))
        return oct_fail(s->r->ctx, OCT_ERR_FORMAT,
                        "value '%s' is defined twice: a name may be given only once", name);
    return oct_map_put(&s->names, name, v);
}

oct_status oct_scope_define(oct_names *s, const char *name, oct_value **out)
{
    oct_reader *r = s->r;
    const char *full = name;
    const oct_pb_value *info = oct_map_get(&s->infos, name);
    oct_value *v;

    if (s->prefix && !(full = oct_arena_printf(r->wire.arena, "%s/%s", s->prefix, name)))
        return OCT_ERR_MEMORY;
    /* Two bodies may use the same names side by side; in the graph every value has its own. */
    if (oct_map_get(&r->value_names, full)) {
        if (oct_map_get(&s->names, name)) return oct_scope_bind(s, name, &r->absent);
        if (!(full = oct_graph_fresh_name(s->g, full))) return OCT_ERR_MEMORY;
    }
    if (!(v = oct_value_new(s->g, full, NULL))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_map_put(&r->value_names, v->name, v));
    OCT_TRY(oct_scope_bind(s, name, v));
    if (info) OCT_TRY(oct_read_value_type(r, info, v));
    *out = v;
    return OCT_OK;
}

oct_status oct_read_infos(oct_names *s, const oct_spans *infos)
{
    oct_reader *r = s->r;

    for (size_t i = 0; i < infos->n; i++) {
        oct_pb_value *info = oct_arena_alloc(r->wire.arena, sizeof(*info));
        const char *name;

        if (!info) return OCT_ERR_MEMORY;
        OCT_TRY(oct_wire_value(&r->wire, infos->v[i], info));
        OCT_TRY(oct_read_text(r, r->wire.arena, info->name, "value name", &name));
        OCT_TRY(oct_map_put(&s->infos, name, info));
    }
    return OCT_OK;
}

static oct_status define_constant(oct_names *s, oct_span span, oct_span doc, oct_tensor *t)
{
    oct_value *v = NULL;
    const char *name;
    oct_status st = oct_read_text(s->r, s->r->wire.arena, span, "initializer name", &name);

    if (!st && !name[0]) st = oct_fail(s->r->ctx, OCT_ERR_FORMAT, "an initializer has no name");
    if (!st) st = oct_scope_define(s, name, &v);
    if (st) {
        oct_tensor_unref(t);
        return st;
    }
    v->data = t;
    v->type = t->type;
    v->dim_name = NULL;
    if (doc.size) OCT_TRY(oct_read_text(s->r, s->g->arena, doc, "doc string", &v->doc));
    return OCT_OK;
}

static oct_status read_initializers(oct_names *s, const oct_pb_graph *pb)
{
    oct_reader *r = s->r;

    for (size_t i = 0; i < pb->initializer.n; i++) {
        oct_tensor *t = NULL;
        oct_pb_tensor pt;
        const char *where;

        OCT_TRY(oct_wire_tensor(&r->wire, pb->initializer.v[i], &pt));
        where = oct_arena_printf(r->wire.arena, "initializer '%.*s'",
                                 (int)OCT_MIN(pt.name.size, 200), (const char *)pt.name.p);
        if (!where) return OCT_ERR_MEMORY;
        OCT_TRY(oct_read_tensor(r, &pt, where, &t));
        OCT_TRY(define_constant(s, pt.name, pt.doc, t));
    }
    for (size_t i = 0; i < pb->sparse_initializer.n; i++) {
        oct_tensor *t = NULL;
        oct_span name;

        OCT_TRY(oct_read_sparse(r, pb->sparse_initializer.v[i], "sparse initializer", &t, &name));
        OCT_TRY(define_constant(s, name, (oct_span){0}, t));
    }
    return OCT_OK;
}

/* Files before IR version 4 list every initialiser as an input too: those are constants. */
static oct_status read_inputs(oct_names *s, const oct_spans *inputs)
{
    oct_reader *r = s->r;

    for (size_t i = 0; i < inputs->n; i++) {
        oct_value *v;
        oct_pb_value info;
        const char *name;

        OCT_TRY(oct_wire_value(&r->wire, inputs->v[i], &info));
        OCT_TRY(oct_read_text(r, r->wire.arena, info.name, "input name", &name));
        if (!name[0]) return oct_fail(r->ctx, OCT_ERR_FORMAT, "a graph input has no name");
        v = oct_map_get(&s->names, name);
        if (v && v->data) {
            if (info.doc.size && !v->doc)
                OCT_TRY(oct_read_text(r, s->g->arena, info.doc, "doc string", &v->doc));
            continue;
        }
        OCT_TRY(oct_scope_define(s, name, &v));
        OCT_TRY(oct_read_value_type(r, &info, v));
        OCT_TRY(oct_graph_add_input(s->g, v));
    }
    return OCT_OK;
}

/* A body may give out a value of a graph around it: a copy of its own keeps bodies simple. */
static oct_status copy_into(oct_names *s, oct_value *from, oct_value **out)
{
    oct_draft d = {.s = s, .domain = "", .op = "Identity", .version = OCT_OPSET_INTERNAL};
    const char *base = oct_arena_printf(s->r->wire.arena, "%s_copy", from->name);
    const char *name = base ? oct_graph_fresh_name(s->g, base) : NULL;

    d.in = oct_arena_array(s->r->wire.arena, 2, sizeof(oct_value *));
    if (!name || !d.in) return OCT_ERR_MEMORY;
    d.out = d.in + 1;
    d.in[0] = from;
    if (!(d.out[0] = oct_value_new(s->g, name, NULL))) return OCT_ERR_MEMORY;
    d.n_in = d.n_out = 1;
    OCT_TRY(oct_read_node_name(s->r, name, &d.name));
    OCT_TRY(oct_draft_finish(&d));
    *out = d.out[0];
    return OCT_OK;
}

static oct_status read_outputs(oct_names *s, const oct_spans *outputs)
{
    oct_reader *r = s->r;

    for (size_t i = 0; i < outputs->n; i++) {
        oct_pb_value info;
        const char *name;
        oct_value *v;

        OCT_TRY(oct_wire_value(&r->wire, outputs->v[i], &info));
        OCT_TRY(oct_read_text(r, r->wire.arena, info.name, "output name", &name));
        v = oct_scope_find(s, name);
        if (!v || v == &r->absent)
            return oct_fail(r->ctx, OCT_ERR_FORMAT,
                            "output '%s' of graph '%s' is not made by any node", name, s->g->name);
        if (v->graph != s->g || (v->is_output && s->g != r->root)) {
            OCT_TRY(copy_into(s, v, &v));
        } else if (v->is_output) {
            return oct_fail(r->ctx, OCT_ERR_FORMAT, "output '%s' is listed twice", name);
        }
        OCT_TRY(oct_graph_add_output(s->g, v));
    }
    return OCT_OK;
}

oct_status oct_read_graph(oct_reader *r, oct_names *outer, oct_span bytes, oct_graph *g)
{
    oct_pb_graph pb;
    oct_names s;
    oct_status st;

    if (r->depth >= OCT_ONNX_MAX_DEPTH)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "graphs are nested more than %d deep",
                        OCT_ONNX_MAX_DEPTH);
    r->depth++;
    oct_scope_init(&s, r, outer, g);
    if ((st = oct_wire_graph(&r->wire, bytes, &pb))) goto done;
    if (pb.name.size && (st = oct_read_text(r, g->arena, pb.name, "graph name", &g->name)))
        goto done;
    if (pb.doc.size && (st = oct_read_text(r, g->arena, pb.doc, "doc string", &g->doc))) goto done;
    if ((st = oct_read_infos(&s, &pb.value_info))) goto done;
    if ((st = oct_read_infos(&s, &pb.output))) goto done;
    if ((st = read_initializers(&s, &pb))) goto done;
    if ((st = read_inputs(&s, &pb.input))) goto done;
    if ((st = oct_read_nodes(&s, &pb.node))) goto done;
    if ((st = read_outputs(&s, &pb.output))) goto done;
    if (s.is_unsorted) st = oct_graph_sort(g);
done:
    oct_scope_fini(&s);
    r->depth--;
    return st;
}
