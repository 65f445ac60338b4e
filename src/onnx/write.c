/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs to ONNX files: the model message, one file or two. */
#include "onnx/write.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "onnx/encode.h"

#define EXTERNAL_ALIGN  4096                /* so that a mapping of the data can be used as it is */
#define EXTERNAL_LEAST  1024                /* smaller tensors stay in the model */
#define MAX_SINGLE_FILE ((size_t)INT32_MAX) /* what other protobuf readers take */

void oct_onnx_options_init_sized(oct_onnx_options *o, size_t struct_size)
{
    memset(o, 0, struct_size);
    o->struct_size = struct_size;
}

/* The caller's options, or defaults for what its older struct does not have. */
static void take_options(const oct_onnx_options *given, oct_onnx_options *out)
{
    oct_onnx_options_init(out);
    if (given) memcpy(out, given, OCT_MIN(given->struct_size, sizeof(*out)));
    out->struct_size = sizeof(*out);
}

/* --- the message --- */

static bool put_bytes(pb_ostream_t *s, const pb_byte_t *p, size_t size)
{
    oct_encoder *e = s->state;

    if (!e->st) e->st = e->put(e->user, p, size);
    return e->st == OCT_OK;
}

static bool put_graph(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    oct_encoder *e = *arg;

    return oct_encode_graph(s, f, e, e->root);
}

static bool put_opsets(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_encoder *e = *arg;

    for (int32_t i = 0; i < e->opsets.n; i++) {
        oct_onnx_OperatorSetIdProto m = oct_onnx_OperatorSetIdProto_init_zero;

        m.domain = oct_text_field(e->opsets.v[i].domain);
        m.has_version = true;
        m.version = e->opsets.v[i].version;
        if (!oct_encode_message(s, f, oct_onnx_OperatorSetIdProto_fields, &m)) return false;
    }
    return true;
}

/* Every file names octet, if not as its producer: octet replaces only files that it made. */
static bool put_props(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_model_info *info = *arg;
    bool is_named = !info->producer_name || !info->producer_name[0];

    for (int32_t i = 0; i < info->n_props; i++) {
        if (!oct_encode_prop(s, f, info->props[i].key, info->props[i].value)) return false;
        is_named = is_named || strncmp(info->props[i].key, "octet", 5) == 0;
    }
    return is_named || oct_encode_prop(s, f, "octet.writer", oct_version());
}

static oct_onnx_ModelProto make_model(oct_encoder *e)
{
    const oct_model_info *info = &e->root->info;
    const bool has_producer = info->producer_name && info->producer_name[0];
    oct_onnx_ModelProto m = oct_onnx_ModelProto_init_zero;

    m.has_ir_version = true;
    m.ir_version = e->ir_version;
    m.producer_name = oct_text_field(has_producer ? info->producer_name : "octet");
    m.producer_version = oct_text_field(has_producer ? info->producer_version : oct_version());
    m.domain = oct_text_field(info->domain);
    m.has_model_version = info->model_version != 0;
    m.model_version = info->model_version;
    m.doc_string = oct_text_field(info->doc);
    m.graph = oct_field(put_graph, e);
    m.opset_import = oct_field(put_opsets, e);
    m.metadata_props = oct_field(put_props, info);
    return m;
}

static oct_status encode_model(oct_encoder *e)
{
    const oct_onnx_ModelProto m = make_model(e);
    pb_ostream_t s = {.callback = put_bytes, .state = e, .max_size = SIZE_MAX};

    if (pb_encode(&s, oct_onnx_ModelProto_fields, &m)) return OCT_OK;
    return e->st ? e->st : oct_fail(e->ctx, OCT_ERR_STATE, "encoding: %s", PB_GET_ERROR(&s));
}

static oct_status model_size(oct_encoder *e, size_t *out)
{
    const oct_onnx_ModelProto m = make_model(e);

    if (pb_get_encoded_size(out, oct_onnx_ModelProto_fields, &m)) return OCT_OK;
    return oct_fail(e->ctx, OCT_ERR_STATE, "the model cannot be encoded");
}

/* --- preparation --- */

static int by_graph(const void *a, const void *b)
{
    const oct_value *x = *(oct_value *const *)a, *y = *(oct_value *const *)b;

    if (x->graph != y->graph) return (uintptr_t)x->graph < (uintptr_t)y->graph ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

void oct_encoder_values(const oct_encoder *e, const oct_graph *g, size_t *begin, size_t *end)
{
    size_t lo = 0, hi = e->n_values;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if ((uintptr_t)e->values[mid]->graph < (uintptr_t)g)
            lo = mid + 1;
        else
            hi = mid;
    }
    *begin = lo;
    while (lo < e->n_values && e->values[lo]->graph == g)
        lo++;
    *end = lo;
}

static oct_status init_encoder(oct_encoder *e, const oct_graph *g, const oct_onnx_options *o)
{
    const size_t n_ids = (size_t)OCT_MAX(g->n_value_ids, 1);

    *e = (oct_encoder){.ctx = g->ctx, .root = g};
    if (g->parent) return oct_fail(g->ctx, OCT_ERR_ARG, "a subgraph cannot be saved by itself");
    if (!(e->values = oct_calloc(g->ctx, n_ids, sizeof(*e->values)))) return OCT_ERR_MEMORY;
    if (!(e->offset = oct_calloc(g->ctx, n_ids, sizeof(*e->offset)))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_value_ids; i++) {
        e->offset[i] = OCT_ONNX_INLINE;
        if (g->values[i]) e->values[e->n_values++] = g->values[i];
    }
    if (e->n_values) qsort(e->values, e->n_values, sizeof(*e->values), by_graph);
    return oct_encoder_choose_opsets(e, o->opset);
}

static void fini_encoder(oct_encoder *e)
{
    oct_free(e->ctx, e->values);
    oct_free(e->ctx, e->offset);
    oct_free(e->ctx, e->opsets.v);
}

oct_status oct_onnx_encode(const oct_graph *g, const oct_onnx_options *options, oct_onnx_put put,
                           void *user)
{
    oct_onnx_options o;
    oct_encoder e;
    oct_status st;

    take_options(options, &o);
    st = init_encoder(&e, g, &o);
    e.put = put;
    e.user = user;
    if (!st) st = encode_model(&e);
    fini_encoder(&e);
    return st;
}

/* --- files --- */

static void place_external(oct_encoder *e)
{
    uint64_t at = 0;

    for (int32_t i = 0; i < e->root->n_value_ids; i++) {
        const oct_value *v = e->root->values[i];

        if (!v || !oct_encoder_writes(v) || oct_value_known(v)->size < EXTERNAL_LEAST ||
            oct_value_known(v)->type.dtype == OCT_DTYPE_STRING)
            continue;
        at = (at + EXTERNAL_ALIGN - 1) / EXTERNAL_ALIGN * EXTERNAL_ALIGN;
        e->offset[i] = at;
        at += oct_value_known(v)->size;
    }
    e->external_size = at;
}

static oct_status write_external(oct_encoder *e, oct_writer *w)
{
    static const char zeros[EXTERNAL_ALIGN];
    const oct_tensor *t;

    for (int32_t i = 0; i < e->root->n_value_ids; i++) {
        if (e->offset[i] == OCT_ONNX_INLINE) continue;
        OCT_TRY(oct_writer_put(w, zeros, (size_t)(e->offset[i] - oct_writer_offset(w))));
        t = oct_value_known(e->root->values[i]);
        OCT_TRY(oct_writer_put(w, t->data, t->size));
    }
    return OCT_OK;
}

static oct_status put_writer(void *user, const void *p, size_t size)
{
    return oct_writer_put(user, p, size);
}

/* Each file whole or not at all; the data first, since the model means nothing without them. */
static oct_status write_files(oct_encoder *e, const char *path, const char *data_path,
                              size_t model_bytes)
{
    oct_writer *model = NULL, *data = NULL;
    oct_status st;

    if (e->location && (st = oct_writer_open(e->ctx, data_path, &data))) goto done;
    if (e->location && (st = oct_writer_expect(data, e->external_size))) goto done;
    if (e->location && (st = write_external(e, data))) goto done;
    if ((st = oct_writer_open(e->ctx, path, &model))) goto done;
    if (!e->location && (st = oct_writer_expect(model, model_bytes))) goto done;
    e->put = put_writer;
    e->user = model;
    if ((st = encode_model(e))) goto done;
    if (data) {
        st = oct_writer_commit(data);
        data = NULL;
        if (st) goto done;
    }
    st = oct_writer_commit(model);
    model = NULL;
done:
    oct_writer_abort(model);
    oct_writer_abort(data);
    return st;
}

oct_status oct_onnx_save(const oct_graph *g, const char *path, const oct_onnx_options *options)
{
    OCT_ENTER(g->ctx);
    const char *slash = strrchr(path, '/');
    oct_onnx_options o;
    oct_encoder e;
    oct_str data_path;
    oct_status st;
    size_t size = 0;

    take_options(options, &o);
    oct_str_init(&data_path, g->ctx);
    oct_str_printf(&data_path, "%s.data", path);
    if ((st = init_encoder(&e, g, &o))) goto done;
    if (data_path.failed) {
        st = OCT_ERR_MEMORY;
        goto done;
    }
    if (!o.external_data && (st = model_size(&e, &size))) goto done;
    if (o.external_data || size > MAX_SINGLE_FILE) {
        e.location = data_path.s + (slash ? slash + 1 - path : 0);
        place_external(&e);
    }
    st = write_files(&e, path, data_path.s, size);
done:
    fini_encoder(&e);
    oct_str_fini(&data_path);
    return st;
}
