/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes ONNX's messages with nanopb: one table of rules for each, no copies. */
#include "onnx/wire.h"

#include <stddef.h>
#include <string.h>

#include <pb_decode.h>

#include "onnx.pb.h"

/* One message being decoded. */
typedef struct job {
    oct_wire *wire;
    oct_span msg;
    oct_status st;   /* no memory */
    const char *why; /* what a callback did not like; nanopb only says that one failed */
} job;

/* Where one field of a message goes. */
typedef struct sink {
    job *job;
    void *out;
} sink;

typedef bool (*field_fn)(pb_istream_t *s, const pb_field_t *f, void **arg);

typedef struct rule {
    field_fn on;
    size_t in;  /* offset of the callback in nanopb's struct */
    size_t out; /* offset of the result in ours */
} rule;

#define MAX_RULES 16
#define RULE(on, msg, field, type, member)                                                         \
    {                                                                                              \
        on, offsetof(oct_onnx_##msg, field), offsetof(oct_pb_##type, member)                       \
    }

/* A length-delimited field seen in place. A field of another wire type is handed over by nanopb
 * in a buffer of its own, which must not be kept. */
static bool take_span(pb_istream_t *s, const sink *k, oct_span *out)
{
    const uintptr_t p = (uintptr_t)s->state, begin = (uintptr_t)k->job->msg.p;

    if (p < begin || p - begin > k->job->msg.size) {
        k->job->why = "wrong wire type";
        return false;
    }
    *out = (oct_span){s->state, s->bytes_left};
    return pb_read(s, NULL, s->bytes_left);
}

static bool on_span(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    const sink *k = *arg;

    (void)f;
    return take_span(s, k, k->out);
}

/* Room for one more element of a list in the arena. */
static void *add_item(sink *k, void *items_ptr, size_t *n, size_t *cap, size_t elem_size)
{
    char *items;

    memcpy(&items, items_ptr, sizeof(items));
    if (*n == *cap) {
        const size_t more = *cap ? *cap * 2 : 4;
        char *bigger = oct_arena_array(k->job->wire->arena, more, elem_size);

        if (!bigger) {
            k->job->st = OCT_ERR_MEMORY;
            return NULL;
        }
        if (*n) memcpy(bigger, items, *n * elem_size);
        items = bigger;
        memcpy(items_ptr, &items, sizeof(items));
        *cap = more;
    }
    return items + (*n)++ * elem_size;
}

static bool on_spans(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    sink *k = *arg;
    oct_spans *list = k->out;
    oct_span *item = add_item(k, &list->v, &list->n, &list->cap, sizeof(*item));

    (void)f;
    return item && take_span(s, k, item);
}

static bool decode_varint(pb_istream_t *s, job *j, uint64_t *v)
{
    if (pb_decode_varint(s, v)) return true;
    j->why = "broken number";
    return false;
}

static bool on_ints(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    sink *k = *arg;
    oct_wire_ints *list = k->out;

    (void)f;
    while (s->bytes_left) {
        int64_t *item = add_item(k, &list->v, &list->n, &list->cap, sizeof(*item));
        uint64_t v;

        if (!item || !decode_varint(s, k->job, &v)) return false;
        memcpy(item, &v, sizeof(v));
    }
    return true;
}

static bool on_floats(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    sink *k = *arg;
    oct_wire_floats *list = k->out;

    (void)f;
    while (s->bytes_left) {
        float *item = add_item(k, &list->v, &list->n, &list->cap, sizeof(*item));

        if (!item) return false;
        if (!pb_decode_fixed32(s, item)) {
            k->job->why = "packed numbers of odd length";
            return false;
        }
    }
    return true;
}

/* Counting comes before storing, so that a tensor's memory is bounded by the file's bytes. */
static bool count_varints(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    size_t *n = ((const sink *)*arg)->out;
    const uint8_t *p = s->state;

    (void)f;
    for (size_t i = 0; i < s->bytes_left; i++)
        *n += !(p[i] & 0x80);
    return pb_read(s, NULL, s->bytes_left);
}

static bool count_fixed(pb_istream_t *s, const sink *k, size_t elem_size)
{
    if (s->bytes_left % elem_size) {
        k->job->why = "packed numbers of odd length";
        return false;
    }
    *(size_t *)k->out += s->bytes_left / elem_size;
    return pb_read(s, NULL, s->bytes_left);
}

static bool count_floats(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    return count_fixed(s, *arg, 4);
}

static bool count_doubles(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    return count_fixed(s, *arg, 8);
}

/* Numbers of fixed size lie in a file as they do in memory: little-endian. */
static bool store_fixed(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    const sink *k = *arg;
    const size_t size = s->bytes_left;
    pb_byte_t *to;

    (void)f;
    memcpy(&to, k->out, sizeof(to)); /* a pointer to float or double */
    if (!pb_read(s, to, size)) return false;
    to += size;
    memcpy(k->out, &to, sizeof(to));
    return true;
}

static bool store_varints(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    const sink *k = *arg;
    int64_t **to = k->out;
    uint64_t v;

    (void)f;
    while (s->bytes_left) {
        if (!decode_varint(s, k->job, &v)) return false;
        memcpy((*to)++, &v, sizeof(v));
    }
    return true;
}

/* Decodes `bytes` into nanopb's struct `msg`, sending callback fields where the rules say. */
static oct_status decode(oct_wire *w, oct_span bytes, const pb_msgdesc_t *desc, void *msg,
                         const rule *rules, size_t n_rules, void *out, const char *what)
{
    pb_istream_t s = pb_istream_from_buffer(bytes.p, bytes.size);
    sink sinks[MAX_RULES];
    job j = {.wire = w, .msg = bytes};

    for (size_t i = 0; i < n_rules; i++) {
        pb_callback_t cb = {0};

        sinks[i] = (sink){.job = &j, .out = (char *)out + rules[i].out};
        cb.funcs.decode = rules[i].on;
        cb.arg = &sinks[i];
        memcpy((char *)msg + rules[i].in, &cb, sizeof(cb));
    }
    if (!bytes.size || pb_decode(&s, desc, msg)) return OCT_OK;
    if (j.st) return j.st;
    return oct_fail(w->ctx, OCT_ERR_FORMAT,
                    "broken or truncated protobuf: %s at byte %zu, in a %s that begins at byte %zu",
                    j.why ? j.why : PB_GET_ERROR(&s), (size_t)((const uint8_t *)s.state - w->all.p),
                    what, (size_t)(bytes.p - w->all.p));
}

#define DECODE(w, bytes, msg_type, msg, rules, out)                                                \
    decode(w, bytes, oct_onnx_##msg_type##_fields, msg, rules, OCT_COUNT(rules), out, #msg_type)

oct_status oct_wire_model(oct_wire *w, oct_span bytes, oct_pb_model *out)
{
    static const rule rules[] = {
        RULE(on_span, ModelProto, producer_name, model, producer_name),
        RULE(on_span, ModelProto, producer_version, model, producer_version),
        RULE(on_span, ModelProto, domain, model, domain),
        RULE(on_span, ModelProto, doc_string, model, doc),
        RULE(on_spans, ModelProto, graph, model, graph),
        RULE(on_spans, ModelProto, opset_import, model, opsets),
        RULE(on_spans, ModelProto, metadata_props, model, props),
        RULE(on_spans, ModelProto, functions, model, functions),
    };
    oct_onnx_ModelProto m = oct_onnx_ModelProto_init_zero;

    *out = (oct_pb_model){0};
    OCT_TRY(DECODE(w, bytes, ModelProto, &m, rules, out));
    out->ir_version = m.ir_version;
    out->model_version = m.model_version;
    return OCT_OK;
}

oct_status oct_wire_graph(oct_wire *w, oct_span bytes, oct_pb_graph *out)
{
    static const rule rules[] = {
        RULE(on_spans, GraphProto, node, graph, node),
        RULE(on_span, GraphProto, name, graph, name),
        RULE(on_spans, GraphProto, initializer, graph, initializer),
        RULE(on_spans, GraphProto, sparse_initializer, graph, sparse_initializer),
        RULE(on_span, GraphProto, doc_string, graph, doc),
        RULE(on_spans, GraphProto, input, graph, input),
        RULE(on_spans, GraphProto, output, graph, output),
        RULE(on_spans, GraphProto, value_info, graph, value_info),
    };
    oct_onnx_GraphProto m = oct_onnx_GraphProto_init_zero;

    *out = (oct_pb_graph){0};
    return DECODE(w, bytes, GraphProto, &m, rules, out);
}

oct_status oct_wire_node(oct_wire *w, oct_span bytes, oct_pb_node *out)
{
    static const rule rules[] = {
        RULE(on_spans, NodeProto, input, node, input),
        RULE(on_spans, NodeProto, output, node, output),
        RULE(on_spans, NodeProto, attribute, node, attribute),
        RULE(on_span, NodeProto, name, node, name),
        RULE(on_span, NodeProto, op_type, node, op_type),
        RULE(on_span, NodeProto, domain, node, domain),
        RULE(on_span, NodeProto, overload, node, overload),
        RULE(on_span, NodeProto, doc_string, node, doc),
    };
    oct_onnx_NodeProto m = oct_onnx_NodeProto_init_zero;

    *out = (oct_pb_node){0};
    return DECODE(w, bytes, NodeProto, &m, rules, out);
}

oct_status oct_wire_attr(oct_wire *w, oct_span bytes, oct_pb_attr *out)
{
    static const rule rules[] = {
        RULE(on_span, AttributeProto, name, attr, name),
        RULE(on_span, AttributeProto, ref_attr_name, attr, ref_name),
        RULE(on_span, AttributeProto, s, attr, s),
        RULE(on_span, AttributeProto, t, attr, t),
        RULE(on_span, AttributeProto, g, attr, g),
        RULE(on_span, AttributeProto, tp, attr, tp),
        RULE(on_span, AttributeProto, sparse_tensor, attr, sparse),
        RULE(on_floats, AttributeProto, floats, attr, floats),
        RULE(on_ints, AttributeProto, ints, attr, ints),
        RULE(on_spans, AttributeProto, strings, attr, strings),
        RULE(on_spans, AttributeProto, tensors, attr, tensors),
        RULE(on_spans, AttributeProto, graphs, attr, graphs),
        RULE(on_spans, AttributeProto, type_protos, attr, types),
        RULE(on_spans, AttributeProto, sparse_tensors, attr, sparses),
    };
    oct_onnx_AttributeProto m = oct_onnx_AttributeProto_init_zero;

    *out = (oct_pb_attr){.self = bytes};
    OCT_TRY(DECODE(w, bytes, AttributeProto, &m, rules, out));
    out->type = m.type;
    out->has_f = m.has_f;
    out->has_i = m.has_i;
    out->f = m.f;
    out->i = m.i;
    return OCT_OK;
}

oct_status oct_wire_tensor(oct_wire *w, oct_span bytes, oct_pb_tensor *out)
{
    static const rule rules[] = {
        RULE(on_ints, TensorProto, dims, tensor, dims),
        RULE(on_span, TensorProto, name, tensor, name),
        RULE(on_span, TensorProto, doc_string, tensor, doc),
        RULE(on_span, TensorProto, raw_data, tensor, raw),
        RULE(on_spans, TensorProto, string_data, tensor, strings),
        RULE(on_spans, TensorProto, external_data, tensor, external),
        RULE(count_floats, TensorProto, float_data, tensor, n_float),
        RULE(count_varints, TensorProto, int32_data, tensor, n_i32),
        RULE(count_varints, TensorProto, int64_data, tensor, n_i64),
        RULE(count_doubles, TensorProto, double_data, tensor, n_double),
        RULE(count_varints, TensorProto, uint64_data, tensor, n_u64),
    };
    oct_onnx_TensorProto m = oct_onnx_TensorProto_init_zero;

    *out = (oct_pb_tensor){.self = bytes};
    OCT_TRY(DECODE(w, bytes, TensorProto, &m, rules, out));
    out->data_type = m.data_type;
    out->location = m.data_location;
    return OCT_OK;
}

#define NUMBERS_RULE(on, field, member)                                                            \
    {                                                                                              \
        on, offsetof(oct_onnx_TensorProto, field), offsetof(oct_wire_numbers, member)              \
    }

oct_status oct_wire_tensor_numbers(oct_wire *w, oct_span bytes, const oct_wire_numbers *to)
{
    static const rule all[] = {
        NUMBERS_RULE(store_fixed, float_data, f),      NUMBERS_RULE(store_fixed, double_data, d),
        NUMBERS_RULE(store_varints, int32_data, i32),  NUMBERS_RULE(store_varints, int64_data, i64),
        NUMBERS_RULE(store_varints, uint64_data, u64),
    };
    const bool wanted[] = {to->f, to->d, to->i32, to->i64, to->u64};
    oct_onnx_TensorProto m = oct_onnx_TensorProto_init_zero;
    oct_wire_numbers cursor = *to;
    rule rules[OCT_COUNT(all)];
    size_t n = 0;

    for (size_t i = 0; i < OCT_COUNT(all); i++)
        if (wanted[i]) rules[n++] = all[i];
    return decode(w, bytes, oct_onnx_TensorProto_fields, &m, rules, n, &cursor, "TensorProto");
}

oct_status oct_wire_sparse(oct_wire *w, oct_span bytes, oct_pb_sparse *out)
{
    static const rule rules[] = {
        RULE(on_span, SparseTensorProto, values, sparse, values),
        RULE(on_span, SparseTensorProto, indices, sparse, indices),
        RULE(on_ints, SparseTensorProto, dims, sparse, dims),
    };
    oct_onnx_SparseTensorProto m = oct_onnx_SparseTensorProto_init_zero;

    *out = (oct_pb_sparse){0};
    return DECODE(w, bytes, SparseTensorProto, &m, rules, out);
}

oct_status oct_wire_value(oct_wire *w, oct_span bytes, oct_pb_value *out)
{
    static const rule rules[] = {
        RULE(on_span, ValueInfoProto, name, value, name),
        RULE(on_span, ValueInfoProto, type, value, type),
        RULE(on_span, ValueInfoProto, doc_string, value, doc),
    };
    oct_onnx_ValueInfoProto m = oct_onnx_ValueInfoProto_init_zero;

    *out = (oct_pb_value){0};
    return DECODE(w, bytes, ValueInfoProto, &m, rules, out);
}

oct_status oct_wire_type(oct_wire *w, oct_span bytes, oct_pb_type *out)
{
    static const rule rules[] = {RULE(on_span, TypeProto, tensor_type, type, tensor)};
    oct_onnx_TypeProto m = oct_onnx_TypeProto_init_zero;

    *out = (oct_pb_type){0};
    return DECODE(w, bytes, TypeProto, &m, rules, out);
}

oct_status oct_wire_tensor_type(oct_wire *w, oct_span bytes, oct_pb_tensor_type *out)
{
    static const rule rules[] = {RULE(on_span, TypeProto_Tensor, shape, tensor_type, shape)};
    oct_onnx_TypeProto_Tensor m = oct_onnx_TypeProto_Tensor_init_zero;

    *out = (oct_pb_tensor_type){0};
    OCT_TRY(DECODE(w, bytes, TypeProto_Tensor, &m, rules, out));
    out->elem_type = m.elem_type;
    return OCT_OK;
}

oct_status oct_wire_shape(oct_wire *w, oct_span bytes, oct_spans *dims)
{
    static const rule rules[] = {{on_spans, offsetof(oct_onnx_TensorShapeProto, dim), 0}};
    oct_onnx_TensorShapeProto m = oct_onnx_TensorShapeProto_init_zero;

    *dims = (oct_spans){0};
    return DECODE(w, bytes, TensorShapeProto, &m, rules, dims);
}

oct_status oct_wire_dim(oct_wire *w, oct_span bytes, oct_pb_dim *out)
{
    static const rule rules[] = {RULE(on_span, TensorShapeProto_Dimension, dim_param, dim, param)};
    oct_onnx_TensorShapeProto_Dimension m = oct_onnx_TensorShapeProto_Dimension_init_zero;

    *out = (oct_pb_dim){0};
    OCT_TRY(DECODE(w, bytes, TensorShapeProto_Dimension, &m, rules, out));
    out->has_value = m.has_dim_value;
    out->value = m.dim_value;
    return OCT_OK;
}

oct_status oct_wire_opset(oct_wire *w, oct_span bytes, oct_pb_pair *out)
{
    static const rule rules[] = {RULE(on_span, OperatorSetIdProto, domain, pair, key)};
    oct_onnx_OperatorSetIdProto m = oct_onnx_OperatorSetIdProto_init_zero;

    *out = (oct_pb_pair){0};
    OCT_TRY(DECODE(w, bytes, OperatorSetIdProto, &m, rules, out));
    out->version = m.version;
    return OCT_OK;
}

oct_status oct_wire_prop(oct_wire *w, oct_span bytes, oct_pb_pair *out)
{
    static const rule rules[] = {
        RULE(on_span, StringStringEntryProto, key, pair, key),
        RULE(on_span, StringStringEntryProto, value, pair, value),
    };
    oct_onnx_StringStringEntryProto m = oct_onnx_StringStringEntryProto_init_zero;

    *out = (oct_pb_pair){0};
    return DECODE(w, bytes, StringStringEntryProto, &m, rules, out);
}

oct_status oct_wire_function(oct_wire *w, oct_span bytes, oct_pb_function *out)
{
    static const rule rules[] = {
        RULE(on_span, FunctionProto, name, function, name),
        RULE(on_span, FunctionProto, domain, function, domain),
        RULE(on_span, FunctionProto, overload, function, overload),
        RULE(on_spans, FunctionProto, input, function, input),
        RULE(on_spans, FunctionProto, output, function, output),
        RULE(on_spans, FunctionProto, attribute, function, attribute),
        RULE(on_spans, FunctionProto, attribute_proto, function, attribute_proto),
        RULE(on_spans, FunctionProto, node, function, node),
        RULE(on_spans, FunctionProto, opset_import, function, opsets),
        RULE(on_spans, FunctionProto, value_info, function, value_info),
    };
    oct_onnx_FunctionProto m = oct_onnx_FunctionProto_init_zero;

    *out = (oct_pb_function){0};
    return DECODE(w, bytes, FunctionProto, &m, rules, out);
}
