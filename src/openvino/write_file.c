/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An IR as NAME.xml and NAME.bin. Equal constants are written once. Both files go to temporary
 * names first; the XML file, without which the other means nothing, takes its place last.
 */
#include <stdio.h>
#include <string.h>

#include <libxml/xmlwriter.h>

#include "base/file.h"
#include "base/map.h"
#include "openvino/ir.h"

typedef struct writing {
    const oct_ir *ir;
    oct_ctx *ctx;
    xmlTextWriterPtr xml;
    oct_writer *bin;
    uint64_t *offsets; /* by layer: of its constant */
    bool failed;       /* libxml2 had no memory */
} writing;

#define TEXT(s) ((const xmlChar *)(s))

/* --- constants --- */

static uint64_t hash_of(const oct_tensor *t)
{
    const uint8_t *p = t->data;
    uint64_t h = 1469598103934665603u;

    for (size_t i = 0; i < t->size; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* An earlier constant with the same bytes, or -1. Types may differ. */
static int32_t same_bytes(const oct_ir *ir, const uint64_t *hashes, int32_t at)
{
    for (int32_t i = 0; i < at; i++)
        if (ir->layers[i].data && hashes[i] == hashes[at] &&
            ir->layers[i].data->size == ir->layers[at].data->size &&
            memcmp(ir->layers[i].data->data, ir->layers[at].data->data,
                   ir->layers[at].data->size) == 0)
            return i;
    return -1;
}

static oct_status put_constants(writing *w)
{
    const oct_ir *ir = w->ir;
    uint64_t *hashes = oct_arena_array(ir->arena, (size_t)ir->n_layers + 1, sizeof(*hashes));

    w->offsets = oct_arena_array(ir->arena, (size_t)ir->n_layers + 1, sizeof(*w->offsets));
    if (!hashes || !w->offsets) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < ir->n_layers; i++) {
        const oct_tensor *t = ir->layers[i].data;
        int32_t k;

        if (!t) continue;
        hashes[i] = hash_of(t);
        k = same_bytes(ir, hashes, i);
        w->offsets[i] = k >= 0 ? w->offsets[k] : oct_writer_offset(w->bin);
        if (k < 0) OCT_TRY(oct_writer_put(w->bin, t->data, t->size));
    }
    return OCT_OK;
}

/* --- XML --- */

static void start(writing *w, const char *element)
{
    if (xmlTextWriterStartElement(w->xml, TEXT(element)) < 0) w->failed = true;
}

static void end(writing *w)
{
    if (xmlTextWriterEndElement(w->xml) < 0) w->failed = true;
}

static void attribute(writing *w, const char *name, const char *value)
{
    if (xmlTextWriterWriteAttribute(w->xml, TEXT(name), TEXT(value)) < 0) w->failed = true;
}

static void number(writing *w, const char *name, int64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    attribute(w, name, text);
}

static void put_dims(writing *w, const oct_type *t)
{
    for (int32_t i = 0; i < t->rank; i++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "%lld", (long long)t->dim[i]);
        if (xmlTextWriterWriteElement(w->xml, TEXT("dim"), TEXT(text)) < 0) w->failed = true;
    }
}

static void put_port(writing *w, int64_t id, const oct_type *t, const char *names)
{
    const char *precision = oct_ir_precision(t->dtype);

    start(w, "port");
    number(w, "id", id);
    attribute(w, "precision", precision ? precision : "UNSPECIFIED");
    if (names) attribute(w, "names", names);
    put_dims(w, t);
    end(w);
}

static void put_data(writing *w, int32_t i)
{
    const oct_ir_layer *l = &w->ir->layers[i];

    if (!l->n_attrs && !l->data) return;
    start(w, "data");
    for (size_t k = 0; k < l->n_attrs; k++)
        attribute(w, l->attrs[k].name, l->attrs[k].value);
    if (l->data) {
        char shape[OCT_MAX_RANK * 24] = "";
        size_t at = 0;

        for (int32_t d = 0; d < l->data->type.rank; d++)
            at += (size_t)snprintf(shape + at, sizeof(shape) - at, "%s%lld", d ? ", " : "",
                                   (long long)l->data->type.dim[d]);
        attribute(w, "element_type", oct_ir_element(l->data->type.dtype));
        attribute(w, "shape", shape);
        number(w, "offset", (int64_t)w->offsets[i]);
        number(w, "size", (int64_t)l->data->size);
    }
    end(w);
}

/* OpenVINO computes with the float16 constant as if it were float32. */
static void put_decompression(writing *w)
{
    start(w, "rt_info");
    start(w, "attribute");
    attribute(w, "name", "decompression");
    attribute(w, "version", "0");
    end(w);
    end(w);
}

static void put_layer(writing *w, int32_t i)
{
    const oct_ir_layer *l = &w->ir->layers[i];

    start(w, "layer");
    number(w, "id", i);
    attribute(w, "name", l->name);
    attribute(w, "type", l->type);
    attribute(w, "version", l->version);
    put_data(w, i);
    if (l->decompresses) put_decompression(w);
    if (l->n_in) start(w, "input");
    for (int32_t k = 0; k < l->n_in; k++)
        put_port(w, k, oct_ir_type(w->ir, l->in[k]), NULL);
    if (l->n_in) end(w);
    if (l->n_out) start(w, "output");
    for (int32_t k = 0; k < l->n_out; k++)
        put_port(w, l->n_in + k, &l->out[k].type, l->out[k].names);
    if (l->n_out) end(w);
    end(w);
}

static void put_edges(writing *w)
{
    start(w, "edges");
    for (int32_t i = 0; i < w->ir->n_layers; i++)
        for (int32_t k = 0; k < w->ir->layers[i].n_in; k++) {
            const oct_ir_at from = w->ir->layers[i].in[k];

            start(w, "edge");
            number(w, "from-layer", from.layer);
            number(w, "from-port", w->ir->layers[from.layer].n_in + from.port);
            number(w, "to-layer", i);
            number(w, "to-port", k);
            end(w);
        }
    end(w);
}

/* Where OpenVINO itself keeps what an ONNX file says of itself. A key that XML cannot have as a
 * name is left out. */
static void put_facts(writing *w)
{
    if (!w->ir->n_facts) return;
    start(w, "rt_info");
    start(w, "framework");
    for (size_t i = 0; i < w->ir->n_facts; i++) {
        if (xmlValidateName(TEXT(w->ir->facts[i].name), 0) != 0) continue;
        start(w, w->ir->facts[i].name);
        attribute(w, "value", w->ir->facts[i].value);
        end(w);
    }
    end(w);
    end(w);
}

static void put_net(writing *w)
{
    if (xmlTextWriterSetIndent(w->xml, 1) < 0 ||
        xmlTextWriterStartDocument(w->xml, "1.0", NULL, NULL) < 0)
        w->failed = true;
    start(w, "net");
    attribute(w, "name", w->ir->name && *w->ir->name ? w->ir->name : "network");
    attribute(w, "version", "11");
    start(w, "layers");
    for (int32_t i = 0; i < w->ir->n_layers; i++)
        put_layer(w, i);
    end(w);
    put_edges(w);
    put_facts(w);
    end(w);
    if (xmlTextWriterEndDocument(w->xml) < 0) w->failed = true;
}

/* --- files --- */

static oct_status put_xml(writing *w, const char *path)
{
    xmlBufferPtr text = xmlBufferCreate();
    oct_writer *file = NULL;
    oct_status st = OCT_ERR_MEMORY;

    w->xml = text ? xmlNewTextWriterMemory(text, 0) : NULL;
    if (w->xml) {
        put_net(w);
        xmlFreeTextWriter(w->xml); /* flushes */
        st = w->failed ? OCT_ERR_MEMORY : oct_writer_open(w->ctx, path, &file);
        if (!st) st = oct_writer_put(file, xmlBufferContent(text), (size_t)xmlBufferLength(text));
        /* Constants first: an XML file without them is never seen. */
        if (!st) {
            st = oct_writer_commit(w->bin);
            w->bin = NULL;
        }
    }
    if (text) xmlBufferFree(text);
    if (st) {
        oct_writer_abort(file);
        return st == OCT_ERR_MEMORY ? oct_fail(w->ctx, st, "%s: out of memory", path) : st;
    }
    return oct_writer_commit(file);
}

oct_status oct_ir_save(const oct_ir *ir, const char *path)
{
    writing w = {.ir = ir, .ctx = ir->ctx};
    const size_t len = strlen(path);
    const char *bin = len > 4 ? oct_arena_printf(ir->arena, "%.*s.bin", (int)len - 4, path) : NULL;
    oct_status st;

    if (!bin) return OCT_ERR_MEMORY;
    OCT_TRY(oct_writer_open(ir->ctx, bin, &w.bin));
    st = put_constants(&w);
    if (!st) st = put_xml(&w, path);
    oct_writer_abort(w.bin);
    return st;
}
