/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes tensors: raw bytes in the model, or a place in the external file. */
#include <stdio.h>
#include <string.h>

#include "onnx/encode.h"

typedef struct source {
    const oct_tensor *t;
    const oct_encoder *e; /* NULL: bytes inline */
    uint64_t offset;
} source;

static bool put_dims(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_type *t = &((const source *)*arg)->t->type;

    for (int i = 0; i < t->rank; i++)
        if (!pb_encode_tag_for_field(s, f) || !pb_encode_varint(s, (uint64_t)t->dim[i]))
            return false;
    return true;
}

static bool put_raw(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_tensor *t = ((const source *)*arg)->t;

    return !t->size || oct_encode_bytes(s, f, t->data, t->size);
}

static bool put_strings(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_tensor *t = ((const source *)*arg)->t;
    const oct_string *v = t->data;

    for (int64_t i = 0, n = oct_tensor_len(t); i < n; i++)
        if (!oct_encode_bytes(s, f, v[i].s, v[i].len)) return false;
    return true;
}

static bool put_external(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const source *from = *arg;
    char offset[24], length[24];

    snprintf(offset, sizeof(offset), "%llu", (unsigned long long)from->offset);
    snprintf(length, sizeof(length), "%zu", from->t->size);
    return oct_encode_prop(s, f, "location", from->e->location) &&
           oct_encode_prop(s, f, "offset", offset) && oct_encode_prop(s, f, "length", length);
}

static bool encode(pb_ostream_t *s, const pb_field_t *f, const source *from, const char *name,
                   const char *doc)
{
    oct_onnx_TensorProto m = oct_onnx_TensorProto_init_zero;

    m.dims = oct_field(put_dims, from);
    m.has_data_type = true;
    m.data_type = (int32_t)from->t->type.dtype;
    m.name = oct_text_field(name);
    m.doc_string = oct_text_field(doc);
    if (from->e) {
        m.external_data = oct_field(put_external, from);
        m.has_data_location = true;
        m.data_location = 1;
    } else if (from->t->type.dtype == OCT_DTYPE_STRING) {
        m.string_data = oct_field(put_strings, from);
    } else {
        m.raw_data = oct_field(put_raw, from);
    }
    return oct_encode_message(s, f, oct_onnx_TensorProto_fields, &m);
}

bool oct_encode_tensor(pb_ostream_t *s, const pb_field_t *f, const oct_tensor *t, const char *name,
                       const char *doc)
{
    return encode(s, f, &(source){.t = t}, name, doc);
}

bool oct_encode_initializer(pb_ostream_t *s, const pb_field_t *f, oct_encoder *e,
                            const oct_value *v)
{
    const source from = {.t = oct_value_known(v),
                         .e = e->offset[v->id] == OCT_ONNX_INLINE ? NULL : e,
                         .offset = e->offset[v->id]};

    return encode(s, f, &from, v->name, v->doc);
}
