/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NAME.xml and NAME.bin into an IR in memory. Nothing of the XML is trusted: ids, ports, sizes and
 * offsets are checked; nothing is fetched or expanded, and a file with a DTD is refused. Constants
 * stay in the mapped .bin file where they are aligned.
 */
#include <stdlib.h>

#include <string.h>

#include <libxml/parser.h>
#include <libxml/tree.h>

#include "base/file.h"
#include "base/map.h"
#include "openvino/read.h"

#define MAX_FILE ((size_t)1 << 30)

typedef struct reading {
    oct_ir *ir;
    oct_ctx *ctx;
    oct_file *bin; /* NULL: not opened yet */
    const char *bin_path;
    oct_map by_id;   /* "LAYER": its index + 1 */
    oct_map outputs; /* "LAYER:PORT": index of the output + 1 */
    oct_map inputs;
} reading;

static const char *property(const xmlNode *n, const char *name)
{
    const xmlAttr *a = n ? xmlHasProp((xmlNode *)(uintptr_t)n, (const xmlChar *)name) : NULL;

    return a && a->children && a->children->content ? (const char *)a->children->content
           : a                                      ? ""
                                                    : NULL;
}

static const xmlNode *child(const xmlNode *parent, const char *name)
{
    for (const xmlNode *n = parent ? parent->children : NULL; n; n = n->next)
        if (n->type == XML_ELEMENT_NODE && strcmp((const char *)n->name, name) == 0) return n;
    return NULL;
}

static const xmlNode *after(const xmlNode *n)
{
    for (n = n->next; n && n->type != XML_ELEMENT_NODE;)
        n = n->next;
    return n;
}

static const xmlNode *first(const xmlNode *parent)
{
    const xmlNode *n = parent ? parent->children : NULL;

    while (n && n->type != XML_ELEMENT_NODE)
        n = n->next;
    return n;
}

static int32_t count(const xmlNode *parent, const char *name)
{
    int32_t n = 0;

    for (const xmlNode *c = first(parent); c; c = after(c))
        n += strcmp((const char *)c->name, name) == 0;
    return n;
}

static const char *keep(reading *r, const char *s)
{
    const char *copy = s ? oct_arena_strdup(r->ir->arena, s) : NULL;

    if (s && !copy) r->ir->status = OCT_ERR_MEMORY;
    return copy;
}

/* --- constants --- */

static oct_status parse_dims(reading *r, const char *text, oct_type *t)
{
    t->rank = 0;
    for (const char *s = text; *s;) {
        char *end = NULL;
        const long long d = strtoll(s, &end, 10);

        if (end == s || d < 0 || t->rank == OCT_MAX_RANK)
            return oct_fail(r->ctx, OCT_ERR_FORMAT, "\"%.60s\" is no shape of a constant", text);
        t->dim[t->rank++] = d;
        s = end + strspn(end, ", ");
    }
    return OCT_OK;
}

static oct_status open_bin(reading *r)
{
    if (r->bin) return OCT_OK;
    OCT_TRY(oct_file_ask_read(r->ctx, r->bin_path));
    return oct_file_map(r->ctx, r->bin_path, &r->bin);
}

static oct_status read_const(reading *r, oct_ir_layer *l, const xmlNode *data)
{
    const char *element = property(data, "element_type"), *shape = property(data, "shape"),
               *offset = property(data, "offset"), *size = property(data, "size");
    uint64_t at, n;
    oct_type t = {0};
    size_t bytes = 0;

    if (!element || !shape || !offset || !size)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "a constant without type, shape, offset or size");
    t.dtype = oct_ir_dtype(element);
    if (t.dtype == OCT_DTYPE_NONE)
        return oct_fail(r->ctx, OCT_ERR_UNSUPPORTED, "a constant of type %.40s", element);
    OCT_TRY(parse_dims(r, shape, &t));
    OCT_TRY(open_bin(r));
    at = strtoull(offset, NULL, 10);
    n = strtoull(size, NULL, 10);
    if (!oct_type_bytes(&t, &bytes) || bytes != n)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "%.40s bytes for a constant of shape %.60s", size,
                        shape);
    if (at > oct_file_size(r->bin) || n > oct_file_size(r->bin) - at)
        return oct_fail(r->ctx, OCT_ERR_FORMAT,
                        "a constant beyond the end of %s: is it the file "
                        "that belongs to this network?",
                        r->bin_path);
    if (at % 8 == 0) return oct_tensor_from_file(r->ctx, &t, r->bin, (size_t)at, &l->data);
    OCT_TRY(oct_tensor_make(r->ctx, &t, &l->data));
    if (bytes) memcpy(l->data->data, oct_file_data(r->bin) + at, bytes);
    return OCT_OK;
}

/* --- layers --- */

/* Ports are known by "LAYER:PORT" from here on. */
static oct_status read_ports(reading *r, const char *id, const xmlNode *ports, oct_map *to)
{
    int32_t n = 0;

    for (const xmlNode *p = first(ports); p; p = after(p)) {
        const char *port = property(p, "id"), *key;

        if (strcmp((const char *)p->name, "port") != 0) continue;
        if (!port) return oct_fail(r->ctx, OCT_ERR_FORMAT, "a port without an id");
        if (!(key = oct_arena_printf(r->ir->arena, "%s:%s", id, port))) return OCT_ERR_MEMORY;
        OCT_TRY(oct_map_put(to, key, (void *)(uintptr_t)++n));
    }
    return OCT_OK;
}

/* The shape that the file gives a result, for layers whose operands do not tell; rank -1: none. */
static void read_shape(const xmlNode *port, oct_type *t)
{
    int32_t rank = 0;

    for (const xmlNode *d = first(port); d; d = after(d)) {
        const char *text = d->children ? (const char *)d->children->content : NULL;
        char *end = NULL;
        long long v;

        if (strcmp((const char *)d->name, "dim") != 0) continue;
        v = text ? strtoll(text, &end, 10) : -1;
        if (!text || end == text || v < -1 || v > INT32_MAX || rank == OCT_MAX_RANK) return;
        t->dim[rank++] = v;
    }
    t->rank = rank;
}

static void read_names(reading *r, oct_ir_layer *l, const xmlNode *ports)
{
    int32_t n = 0;

    for (const xmlNode *p = first(ports); p; p = after(p))
        if (strcmp((const char *)p->name, "port") == 0 && n < l->n_out) {
            read_shape(p, &l->out[n].type);
            l->out[n++].names = keep(r, property(p, "names"));
        }
}

static void read_attrs(reading *r, const xmlNode *data)
{
    for (const xmlAttr *a = data ? data->properties : NULL; a; a = a->next)
        if (a->children && a->children->content)
            oct_ir_attr_str(r->ir, keep(r, (const char *)a->name),
                            (const char *)a->children->content);
}

static oct_status read_layer(reading *r, const xmlNode *n)
{
    const char *id = property(n, "id"), *type = property(n, "type"), *name = property(n, "name");
    const xmlNode *in = child(n, "input"), *out = child(n, "output"), *data = child(n, "data");
    const int32_t n_in = count(in, "port"), n_out = count(out, "port");
    oct_type *types = oct_arena_array(r->ir->arena, (size_t)n_out + 1, sizeof(*types));
    oct_ir_at *from = oct_arena_array(r->ir->arena, (size_t)n_in + 1, sizeof(*from)), at;
    const char *key;

    if (!types || !from) return OCT_ERR_MEMORY;
    if (!id || !type) return oct_fail(r->ctx, OCT_ERR_FORMAT, "a layer without id or type");
    for (int32_t i = 0; i < n_in; i++)
        from[i].layer = -1;
    for (int32_t i = 0; i < n_out; i++)
        types[i].rank = -1;
    if (oct_map_get(&r->by_id, id))
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "two layers have the id %.40s", id);
    at = oct_ir_add(r->ir, name && *name ? name : id, keep(r, type),
                    keep(r, property(n, "version")), from, n_in, types, n_out);
    read_attrs(r, data);
    OCT_TRY(r->ir->status);
    if (!(key = oct_arena_strdup(r->ir->arena, id))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_map_put(&r->by_id, key, (void *)(uintptr_t)(at.layer + 1)));
    OCT_TRY(read_ports(r, id, in, &r->inputs));
    OCT_TRY(read_ports(r, id, out, &r->outputs));
    read_names(r, &r->ir->layers[at.layer], out);
    return strcmp(type, "Const") == 0 ? read_const(r, &r->ir->layers[at.layer], data)
                                      : r->ir->status;
}

static oct_status read_layers(reading *r, const xmlNode *layers)
{
    for (const xmlNode *n = first(layers); n; n = after(n)) {
        const char *name = property(n, "name");
        oct_status st;

        if (strcmp((const char *)n->name, "layer") != 0) continue;
        if ((st = read_layer(r, n))) {
            char where[160];

            (void)snprintf(where, sizeof(where), "layer '%.120s'", name ? name : "?");
            oct_fail_at(r->ctx, st, where);
            return st;
        }
    }
    return OCT_OK;
}

/* --- edges --- */

static oct_status find_port(reading *r, const oct_map *ports, const char *layer, const char *port,
                            int32_t *l, int32_t *p)
{
    const uintptr_t at = layer ? (uintptr_t)oct_map_get(&r->by_id, layer) : 0;
    const char *key = layer && port ? oct_arena_printf(r->ir->arena, "%s:%s", layer, port) : NULL;
    const uintptr_t k = key ? (uintptr_t)oct_map_get(ports, key) : 0;

    if (!at || !k)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "an edge at layer %.40s, port %.40s: there is none",
                        layer ? layer : "?", port ? port : "?");
    *l = (int32_t)at - 1;
    *p = (int32_t)k - 1;
    return OCT_OK;
}

static oct_status read_edges(reading *r, const xmlNode *edges)
{
    for (const xmlNode *n = first(edges); n; n = after(n)) {
        int32_t from = 0, from_port = 0, to = 0, to_port = 0;

        OCT_TRY(find_port(r, &r->outputs, property(n, "from-layer"), property(n, "from-port"),
                          &from, &from_port));
        OCT_TRY(find_port(r, &r->inputs, property(n, "to-layer"), property(n, "to-port"), &to,
                          &to_port));
        r->ir->layers[to].in[to_port] = (oct_ir_at){from, from_port};
    }
    for (int32_t i = 0; i < r->ir->n_layers; i++)
        for (int32_t k = 0; k < r->ir->layers[i].n_in; k++)
            if (r->ir->layers[i].in[k].layer < 0)
                return oct_fail(r->ctx, OCT_ERR_FORMAT, "layer '%s': nothing comes to port %d",
                                r->ir->layers[i].name, (int)k);
    return OCT_OK;
}

/* --- the file --- */

static void read_facts(reading *r, const xmlNode *framework)
{
    for (const xmlNode *n = first(framework); n; n = after(n))
        if (property(n, "value")) oct_ir_fact(r->ir, (const char *)n->name, property(n, "value"));
}

static oct_status read_net(reading *r, const xmlNode *net)
{
    const char *version = property(net, "version");

    if (!net || strcmp((const char *)net->name, "net") != 0)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "an XML file, but not OpenVINO IR");
    if (!version || (strcmp(version, "10") != 0 && strcmp(version, "11") != 0))
        return oct_fail(r->ctx, OCT_ERR_UNSUPPORTED,
                        "OpenVINO IR of version %.20s; octet reads 10 and 11",
                        version ? version : "?");
    r->ir->name = keep(r, property(net, "name"));
    read_facts(r, child(child(net, "rt_info"), "framework"));
    OCT_TRY(read_layers(r, child(net, "layers")));
    return read_edges(r, child(net, "edges"));
}

static oct_status parse(reading *r, const oct_file *f)
{
    xmlDocPtr doc;
    oct_status st;

    if (oct_file_size(f) > MAX_FILE)
        return oct_fail(r->ctx, OCT_ERR_UNSUPPORTED, "an XML file of more than 1 GiB");
    doc = xmlReadMemory((const char *)oct_file_data(f), (int)oct_file_size(f), NULL, NULL,
                        XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
                            XML_PARSE_COMPACT);
    if (!doc) return oct_fail(r->ctx, OCT_ERR_FORMAT, "broken XML");
    st = doc->intSubset || doc->extSubset
             ? oct_fail(r->ctx, OCT_ERR_FORMAT, "an XML file with a DTD")
             : read_net(r, xmlDocGetRootElement(doc));
    xmlFreeDoc(doc);
    return st;
}

oct_status oct_ir_load(oct_ir *ir, const char *path)
{
    reading r = {.ir = ir, .ctx = ir->ctx};
    const char *dot = strrchr(path, '.');
    oct_file *f = NULL;
    oct_status st;

    r.bin_path = oct_arena_printf(ir->arena, "%.*s.bin",
                                  (int)(dot ? dot - path : (ptrdiff_t)strlen(path)), path);
    if (!r.bin_path) return OCT_ERR_MEMORY;
    oct_map_init(&r.by_id, ir->ctx);
    oct_map_init(&r.outputs, ir->ctx);
    oct_map_init(&r.inputs, ir->ctx);
    st = oct_file_map(ir->ctx, path, &f);
    if (!st) st = parse(&r, f);
    if (!st) st = ir->status;
    oct_map_fini(&r.by_id);
    oct_map_fini(&r.outputs);
    oct_map_fini(&r.inputs);
    oct_file_unref(r.bin);
    oct_file_unref(f);
    return st;
}
