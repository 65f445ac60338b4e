/* SPDX-License-Identifier: Apache-2.0 */
/* model.json: walked through once; only one node at a time is a tree in memory. */
#include "torch/program.h"

#include <string.h>

#include "base/json_stream.h"

#define MAX_NODES   ((size_t)1 << 20)
#define MAX_METAS   ((size_t)1 << 22)
#define SCHEMA_FROM 5 /* the first with this form of signature and arguments */
#define SCHEMA_TO   9

typedef struct walker {
    oct_program *p;
    oct_json_stream s;
    json_t *call_graph; /* until the signature is known */
} walker;

typedef oct_status (*key_fn)(walker *w, const char *key);

static oct_status walk_object(walker *w, key_fn each)
{
    char key[OCT_JSON_KEY_SIZE];
    int64_t n = 0;
    bool more;

    OCT_TRY(oct_json_stream_enter(&w->s, '{'));
    for (;;) {
        OCT_TRY(oct_json_stream_more(&w->s, '}', &n, &more));
        if (!more) return OCT_OK;
        OCT_TRY(oct_json_stream_key(&w->s, key));
        OCT_TRY(each(w, key));
    }
}

static oct_status read_nodes(walker *w)
{
    oct_program *p = w->p;
    int64_t n = 0;
    bool more;

    OCT_TRY(oct_json_stream_enter(&w->s, '['));
    for (;;) {
        json_t *j = NULL;
        oct_status st;

        OCT_TRY(oct_json_stream_more(&w->s, ']', &n, &more));
        if (!more) return OCT_OK;
        if (p->n_nodes >= MAX_NODES)
            return oct_fail(p->ctx, OCT_ERR_UNSUPPORTED, "more than %zu nodes", MAX_NODES);
        OCT_TRY(oct_grow(p->ctx, &p->nodes, &p->cap_nodes, p->n_nodes + 1, sizeof(*p->nodes)));
        OCT_TRY(oct_json_stream_value(&w->s, &j, NULL));
        st = oct_program_node(p, j, &p->nodes[p->n_nodes]);
        json_decref(j);
        if (st) return st;
        p->n_nodes++;
    }
}

static oct_status read_metas(walker *w)
{
    oct_program *p = w->p;
    int64_t n = 0;
    bool more;

    OCT_TRY(oct_json_stream_enter(&w->s, '{'));
    for (;;) {
        oct_meta *meta = oct_arena_alloc(p->arena, sizeof(*meta));
        const char *name;
        json_t *j = NULL;
        oct_status st;

        if (!meta) return OCT_ERR_MEMORY;
        OCT_TRY(oct_json_stream_more(&w->s, '}', &n, &more));
        if (!more) return OCT_OK;
        if ((uint64_t)n > MAX_METAS)
            return oct_fail(p->ctx, OCT_ERR_UNSUPPORTED, "more than %zu tensors", MAX_METAS);
        OCT_TRY(oct_json_stream_long_key(&w->s, p->arena, &name));
        OCT_TRY(oct_json_stream_value(&w->s, &j, NULL));
        st = oct_program_meta(p, j, meta, NULL, NULL);
        json_decref(j);
        if (st) {
            oct_fail_at(p->ctx, st, name);
            return st;
        }
        OCT_TRY(oct_map_put(&p->metas, name, meta));
    }
}

static oct_status read_graph(walker *w, const char *key)
{
    if (strcmp(key, "nodes") == 0) return read_nodes(w);
    if (strcmp(key, "tensor_values") == 0) return read_metas(w);
    return oct_json_stream_skip(&w->s); /* inputs and outputs are in the signature again */
}

static oct_status read_module(walker *w, const char *key)
{
    json_t *j = NULL;
    oct_status st = OCT_OK;

    if (strcmp(key, "graph") == 0) return walk_object(w, read_graph);
    if (strcmp(key, "signature") != 0 && strcmp(key, "module_call_graph") != 0)
        return oct_json_stream_skip(&w->s);
    OCT_TRY(oct_json_stream_value(&w->s, &j, NULL));
    if (strcmp(key, "signature") == 0) {
        st = oct_program_signature(w->p, j);
        json_decref(j);
    } else {
        json_decref(w->call_graph);
        w->call_graph = j;
    }
    return st;
}

static oct_status read_version(walker *w)
{
    json_t *j = NULL;
    const json_t *major;

    OCT_TRY(oct_json_stream_value(&w->s, &j, NULL));
    major = json_is_object(j) ? json_object_get(j, "major") : j;
    w->p->schema = json_integer_value(major);
    json_decref(j);
    if (w->p->schema < SCHEMA_FROM || w->p->schema > SCHEMA_TO)
        return oct_fail(w->p->ctx, OCT_ERR_UNSUPPORTED,
                        "schema %lld of torch.export (octet reads %d to %d); save it again with "
                        "a PyTorch of another version, 2.5 to 2.15",
                        (long long)w->p->schema, SCHEMA_FROM, SCHEMA_TO);
    return OCT_OK;
}

static oct_status read_program(walker *w, const char *key)
{
    json_t *j = NULL;
    oct_status st = OCT_OK;

    if (strcmp(key, "graph_module") == 0) return walk_object(w, read_module);
    if (strcmp(key, "schema_version") == 0) return read_version(w);
    if (strcmp(key, "torch_version") != 0) return oct_json_stream_skip(&w->s);
    OCT_TRY(oct_json_stream_value(&w->s, &j, NULL));
    if (json_is_string(j)) st = oct_program_text(w->p, j, key, &w->p->torch_version);
    json_decref(j);
    return st;
}

oct_status oct_program_read(oct_ctx *ctx, oct_span_of bytes, oct_program *out)
{
    walker w = {.p = out};
    oct_status st;

    *out = (oct_program){.ctx = ctx, .torch_version = ""};
    oct_map_init(&out->metas, ctx);
    if (!(out->arena = oct_arena_new(ctx))) return OCT_ERR_MEMORY;
    oct_json_stream_init(&w.s, ctx, bytes.p, bytes.size);
    st = walk_object(&w, read_program);
    if (!st && !out->schema) st = oct_fail(ctx, OCT_ERR_FORMAT, "its schema_version is missing");
    if (!st && !out->out) st = oct_fail(ctx, OCT_ERR_FORMAT, "its signature is missing");
    if (!st && w.call_graph) st = oct_program_call_graph(out, w.call_graph);
    json_decref(w.call_graph);
    return st;
}

void oct_program_fini(oct_program *p)
{
    oct_free(p->ctx, p->nodes);
    oct_map_fini(&p->metas);
    oct_arena_free(p->arena);
}
