/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes attributes of nodes. */
#include <string.h>

#include "onnx/encode.h"

typedef struct source {
    oct_encoder *e;
    const oct_attr *a;
} source;

static bool put_string(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_attr *a = ((const source *)*arg)->a;

    return oct_encode_bytes(s, f, a->s, (size_t)a->n);
}

static bool put_tensor(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    return oct_encode_tensor(s, f, ((const source *)*arg)->a->t, NULL, NULL);
}

static bool put_graph(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const source *from = *arg;

    return oct_encode_graph(s, f, from->e, from->a->g);
}

static bool put_floats(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_attr *a = ((const source *)*arg)->a;

    for (int64_t i = 0; i < a->n; i++)
        if (!pb_encode_tag_for_field(s, f) || !pb_encode_fixed32(s, &a->fs[i])) return false;
    return true;
}

static bool put_ints(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_attr *a = ((const source *)*arg)->a;

    for (int64_t i = 0; i < a->n; i++)
        if (!pb_encode_tag_for_field(s, f) || !pb_encode_varint(s, (uint64_t)a->is[i]))
            return false;
    return true;
}

static bool put_strings(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_attr *a = ((const source *)*arg)->a;

    for (int64_t i = 0; i < a->n; i++)
        if (!oct_encode_bytes(s, f, a->ss[i], strlen(a->ss[i]))) return false;
    return true;
}

bool oct_encode_attr(pb_ostream_t *s, const pb_field_t *f, oct_encoder *e, const char *name,
                     const oct_attr *a)
{
    const source from = {.e = e, .a = a};
    oct_onnx_AttributeProto m = oct_onnx_AttributeProto_init_zero;

    m.name = oct_text_field(name);
    m.has_type = true;
    switch (a->kind) {
    case OCT_ATTR_F32:
        m.type = OCT_PB_FLOAT;
        m.has_f = true;
        m.f = a->f;
        break;
    case OCT_ATTR_INT:
        m.type = OCT_PB_INT;
        m.has_i = true;
        m.i = a->i;
        break;
    case OCT_ATTR_STRING:
        m.type = OCT_PB_STRING;
        m.s = oct_field(put_string, &from);
        break;
    case OCT_ATTR_TENSOR:
        m.type = OCT_PB_TENSOR;
        m.t = oct_field(put_tensor, &from);
        break;
    case OCT_ATTR_GRAPH:
        m.type = OCT_PB_GRAPH;
        m.g = oct_field(put_graph, &from);
        break;
    case OCT_ATTR_F32S:
        m.type = OCT_PB_FLOATS;
        m.floats = oct_field(put_floats, &from);
        break;
    case OCT_ATTR_INTS:
        m.type = OCT_PB_INTS;
        m.ints = oct_field(put_ints, &from);
        break;
    case OCT_ATTR_STRINGS:
        m.type = OCT_PB_STRINGS;
        m.strings = oct_field(put_strings, &from);
        break;
    case OCT_ATTR_RAW:
        return oct_encode_bytes(s, f, a->s, (size_t)a->n);
    case OCT_ATTR_NONE:
        return true;
    }
    return oct_encode_message(s, f, oct_onnx_AttributeProto_fields, &m);
}
