/* SPDX-License-Identifier: Apache-2.0 */
/* Model-local functions: a call becomes the function's nodes, with names below the caller's. */
#include <string.h>

#include "onnx/read.h"

#define MAX_PREFIX 1024

/* Domain, name and overload with a byte between them that no name has. */
static oct_status function_key(oct_reader *r, oct_span domain, oct_span name, oct_span overload,
                               const char **out)
{
    const oct_span standard = {0};
    const oct_span parts[] = {oct_span_is(domain, "ai.onnx") ? standard : domain, name, overload};
    size_t size = sizeof("\x01\x01");
    char *key, *p;

    for (size_t i = 0; i < OCT_COUNT(parts); i++)
        size += parts[i].size;
    if (!(key = p = oct_arena_alloc(r->wire.arena, size))) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < OCT_COUNT(parts); i++) {
        if (i) *p++ = 1;
        if (parts[i].size) memcpy(p, parts[i].p, parts[i].size);
        p += parts[i].size;
    }
    *out = key;
    return OCT_OK;
}

oct_status oct_read_functions(oct_reader *r, const oct_spans *list)
{
    for (size_t i = 0; i < list->n; i++) {
        oct_pb_function *fn = oct_arena_alloc(r->wire.arena, sizeof(*fn));
        const char *key;

        if (!fn) return OCT_ERR_MEMORY;
        OCT_TRY(oct_wire_function(&r->wire, list->v[i], fn));
        OCT_TRY(function_key(r, fn->domain, fn->name, fn->overload, &key));
        if (oct_map_get(&r->functions, key))
            return oct_fail(r->ctx, OCT_ERR_FORMAT, "function '%.*s' is defined twice",
                            (int)OCT_MIN(fn->name.size, 200), (const char *)fn->name.p);
        OCT_TRY(oct_map_put(&r->functions, key, fn));
    }
    return OCT_OK;
}

oct_status oct_function_find(oct_reader *r, const oct_pb_node *n, const oct_pb_function **out)
{
    const char *key;

    *out = NULL;
    if (!r->functions.n) return OCT_OK;
    OCT_TRY(function_key(r, n->domain, n->op_type, n->overload, &key));
    *out = oct_map_get(&r->functions, key);
    return OCT_OK;
}

/* What references stand for: the caller's attributes, and the function's defaults for others. */
static oct_status bind_attrs(oct_draft *d, const oct_pb_function *fn, oct_call *call)
{
    oct_draft defaults = {.s = d->s, .name = d->name, .op = d->op};
    oct_draft_attr *all;

    OCT_TRY(oct_read_attrs(&defaults, &fn->attribute_proto));
    all = oct_arena_array(d->s->r->wire.arena, (size_t)(d->n_attr + defaults.n_attr) + 1,
                          sizeof(*all));
    if (!all) return OCT_ERR_MEMORY;
    /* The last of a name is taken, so the caller's come last. */
    if (defaults.n_attr) memcpy(all, defaults.attr, (size_t)defaults.n_attr * sizeof(*all));
    if (d->n_attr) memcpy(all + defaults.n_attr, d->attr, (size_t)d->n_attr * sizeof(*all));
    call->attr = all;
    call->n_attr = d->n_attr + defaults.n_attr;
    return OCT_OK;
}

static oct_status bind_operands(oct_draft *d, const oct_pb_function *fn, oct_names *body,
                                oct_map *results)
{
    oct_reader *r = d->s->r;
    const char *name;

    if ((size_t)d->n_in > fn->input.n || (size_t)d->n_out > fn->output.n)
        return oct_draft_fail(d, OCT_ERR_FORMAT,
                              "has %d inputs and %d outputs, but the function takes %zu and gives "
                              "%zu",
                              (int)d->n_in, (int)d->n_out, fn->input.n, fn->output.n);
    for (size_t i = 0; i < fn->input.n; i++) {
        oct_value *v = i < (size_t)d->n_in ? d->in[i] : NULL;

        OCT_TRY(oct_read_text(r, r->wire.arena, fn->input.v[i], "function input", &name));
        OCT_TRY(oct_scope_bind(body, name, v ? v : &r->absent));
    }
    for (size_t i = 0; i < (size_t)d->n_out; i++) {
        if (!d->out[i]) continue;
        OCT_TRY(oct_read_text(r, r->wire.arena, fn->output.v[i], "function output", &name));
        if (!oct_map_get(results, name)) OCT_TRY(oct_map_put(results, name, d->out[i]));
    }
    return OCT_OK;
}

/* An output no node of the body makes under its own name: an input or another output, copied. */
static oct_status copy_results(oct_draft *d, const oct_pb_function *fn, oct_names *body)
{
    oct_reader *r = d->s->r;

    for (size_t i = 0; i < (size_t)d->n_out; i++) {
        oct_draft copy = {.s = body, .domain = "", .op = "Identity"};
        oct_value *out = d->out[i], *from;
        const char *name;

        if (!out || out->producer || out->data) continue;
        OCT_TRY(oct_read_text(r, r->wire.arena, fn->output.v[i], "function output", &name));
        from = oct_map_get(&body->names, name);
        if (!from || from == &r->absent || from == out)
            return oct_draft_fail(d, OCT_ERR_FORMAT, "the function does not make its output '%s'",
                                  name);
        copy.in = &from;
        copy.out = &out;
        copy.n_in = copy.n_out = 1;
        OCT_TRY(oct_read_node_name(r, out->name, &copy.name));
        OCT_TRY(oct_draft_finish(&copy));
    }
    return OCT_OK;
}

static oct_status read_body(oct_draft *d, const oct_pb_function *fn, oct_names *body,
                            oct_map *results)
{
    oct_reader *r = d->s->r;
    oct_opsets opsets = {0};

    OCT_TRY(oct_read_opsets(r, &fn->opsets, &opsets));
    if (opsets.n) body->opsets = &opsets;
    OCT_TRY(oct_read_infos(body, &fn->value_info));
    OCT_TRY(bind_operands(d, fn, body, results));
    OCT_TRY(oct_read_nodes(body, &fn->node));
    return copy_results(d, fn, body);
}

oct_status oct_function_inline(oct_draft *d, const oct_pb_function *fn)
{
    oct_reader *r = d->s->r;
    oct_call call = {.outer = d->s->call, .fn = fn};
    oct_names body;
    oct_map results;
    oct_status st;

    for (const oct_call *c = call.outer; c; c = c->outer)
        if (c->fn == fn) return oct_draft_fail(d, OCT_ERR_FORMAT, "the function calls itself");
    if (r->depth >= OCT_ONNX_MAX_DEPTH)
        return oct_draft_fail(d, OCT_ERR_FORMAT, "functions are nested more than %d deep",
                              OCT_ONNX_MAX_DEPTH);
    OCT_TRY(bind_attrs(d, fn, &call));
    r->depth++;
    oct_scope_init(&body, r, NULL, d->s->g); /* a function sees only what it is given */
    oct_map_init(&results, r->ctx);
    body.opsets = d->s->opsets;
    body.call = &call;
    /* Every name inside gets the prefix: a long one would be copied once for each node. */
    body.prefix = strlen(d->name) <= MAX_PREFIX ? d->name : "function";
    body.results = &results;
    body.unsorted = d->s->unsorted;
    st = read_body(d, fn, &body, &results);
    oct_map_fini(&results);
    oct_scope_fini(&body);
    r->depth--;
    return st;
}
