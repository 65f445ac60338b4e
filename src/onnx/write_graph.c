/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes graphs, nodes, and the types of values. */
#include <string.h>

#include "onnx/encode.h"

/* An entry of an encoder's work: what a callback needs to know. */
typedef struct item {
    oct_encoder *e;
    const oct_graph *g;
    const oct_node *n;
} item;

bool oct_encode_bytes(pb_ostream_t *s, const pb_field_t *f, const void *p, size_t size)
{
    return pb_encode_tag_for_field(s, f) && pb_encode_string(s, p, size);
}

bool oct_encode_message(pb_ostream_t *s, const pb_field_t *f, const pb_msgdesc_t *desc,
                        const void *msg)
{
    return pb_encode_tag_for_field(s, f) && pb_encode_submessage(s, desc, msg);
}

static bool put_text(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const char *text = *arg;

    return !text || !text[0] || oct_encode_bytes(s, f, text, strlen(text));
}

pb_callback_t oct_text_field(const char *text)
{
    return oct_field(put_text, text);
}

bool oct_encode_prop(pb_ostream_t *s, const pb_field_t *f, const char *key, const char *value)
{
    oct_onnx_StringStringEntryProto m = oct_onnx_StringStringEntryProto_init_zero;

    m.key = oct_text_field(key);
    m.value = oct_text_field(value);
    return oct_encode_message(s, f, oct_onnx_StringStringEntryProto_fields, &m);
}

/* --- types --- */

static bool put_dims(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_value *v = *arg;

    for (int i = 0; i < v->type.rank; i++) {
        oct_onnx_TensorShapeProto_Dimension m = oct_onnx_TensorShapeProto_Dimension_init_zero;

        m.has_dim_value = v->type.dim[i] >= 0;
        m.dim_value = v->type.dim[i];
        if (!m.has_dim_value && v->dim_name) m.dim_param = oct_text_field(v->dim_name[i]);
        if (!oct_encode_message(s, f, oct_onnx_TensorShapeProto_Dimension_fields, &m)) return false;
    }
    return true;
}

static bool put_shape(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    oct_onnx_TensorShapeProto m = oct_onnx_TensorShapeProto_init_zero;
    const oct_value *v = *arg;

    if (v->type.rank < 0) return true;
    m.dim = oct_field(put_dims, v);
    return oct_encode_message(s, f, oct_onnx_TensorShapeProto_fields, &m);
}

static bool put_tensor_type(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    oct_onnx_TypeProto_Tensor m = oct_onnx_TypeProto_Tensor_init_zero;
    const oct_value *v = *arg;

    m.has_elem_type = v->type.dtype != OCT_DTYPE_NONE;
    m.elem_type = (int32_t)v->type.dtype;
    m.shape = oct_field(put_shape, v);
    return oct_encode_message(s, f, oct_onnx_TypeProto_Tensor_fields, &m);
}

static bool put_type(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    oct_onnx_TypeProto m = oct_onnx_TypeProto_init_zero;
    const oct_value *v = *arg;

    if (v->raw_type) return oct_encode_bytes(s, f, v->raw_type, v->raw_type_size);
    if (v->type.dtype == OCT_DTYPE_NONE && v->type.rank < 0) return true;
    m.tensor_type = oct_field(put_tensor_type, v);
    return oct_encode_message(s, f, oct_onnx_TypeProto_fields, &m);
}

static bool encode_value(pb_ostream_t *s, const pb_field_t *f, const oct_value *v)
{
    oct_onnx_ValueInfoProto m = oct_onnx_ValueInfoProto_init_zero;

    m.name = oct_text_field(v->name);
    m.type = oct_field(put_type, v);
    m.doc_string = oct_text_field(v->doc);
    return oct_encode_message(s, f, oct_onnx_ValueInfoProto_fields, &m);
}

/* --- nodes --- */

static bool put_names(pb_ostream_t *s, const pb_field_t *f, oct_value *const *v, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const char *name = v[i] ? v[i]->name : "";

        if (!oct_encode_bytes(s, f, name, strlen(name))) return false;
    }
    return true;
}

static bool put_node_inputs(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_node *n = ((const item *)*arg)->n;

    return put_names(s, f, n->in, n->n_in);
}

static bool put_node_outputs(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_node *n = ((const item *)*arg)->n;

    return put_names(s, f, n->out, n->n_out);
}

static bool put_attrs(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const item *it = *arg;
    const oct_node *n = it->n;

    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++)
        if (n->attr[i].given && n->attr[i].kind != OCT_ATTR_NONE &&
            !oct_encode_attr(s, f, it->e, n->op->attrs[i].name, &n->attr[i]))
            return false;
    for (int i = 0; i < n->n_extra; i++)
        if (!oct_encode_attr(s, f, it->e, n->extra[i].name, &n->extra[i].value)) return false;
    return true;
}

static bool put_nodes(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    item it = *(const item *)*arg;

    for (it.n = it.g->first; it.n; it.n = it.n->next) {
        oct_onnx_NodeProto m = oct_onnx_NodeProto_init_zero;

        m.input = oct_field(put_node_inputs, &it);
        m.output = oct_field(put_node_outputs, &it);
        m.name = oct_text_field(it.n->name);
        m.op_type = oct_text_field(it.n->op->name);
        m.domain = oct_text_field(oct_op_domain(it.n->op));
        m.attribute = oct_field(put_attrs, &it);
        m.doc_string = oct_text_field(it.n->doc);
        if (!oct_encode_message(s, f, oct_onnx_NodeProto_fields, &m)) return false;
    }
    return true;
}

/* --- graphs --- */

static bool put_inputs(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_graph *g = ((const item *)*arg)->g;

    for (int32_t i = 0; i < g->n_inputs; i++)
        if (!encode_value(s, f, g->inputs[i])) return false;
    return true;
}

static bool put_outputs(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const oct_graph *g = ((const item *)*arg)->g;

    for (int32_t i = 0; i < g->n_outputs; i++)
        if (!encode_value(s, f, g->outputs[i])) return false;
    return true;
}

static bool put_initializers(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const item *it = *arg;
    size_t i, end;

    for (oct_encoder_values(it->e, it->g, &i, &end); i < end; i++)
        if (oct_encoder_writes(it->e->values[i]) &&
            !oct_encode_initializer(s, f, it->e, it->e->values[i]))
            return false;
    return true;
}

/* In quantized files, where a value has many names, types that readers find themselves would be a
 * twentieth of all bytes. */
static bool is_quantized(const oct_graph *g)
{
    for (const oct_node *n = g->first; n; n = n->next)
        if (strcmp(n->op->name, "DequantizeLinear") == 0) return true;
    return false;
}

/* Other readers may not know an operator of another domain, even if octet does. */
static bool must_say(const oct_value *v)
{
    return v->raw_type || v->is_declared ||
           (v->type.dtype != OCT_DTYPE_NONE && oct_op_domain(v->producer->op)[0]);
}

/* Types of the values inside, as far as they are known and have to be said. */
static bool put_value_infos(pb_ostream_t *s, const pb_field_t *f, void *const *arg)
{
    const item *it = *arg;
    const bool few = is_quantized(it->g);
    size_t i, end;

    for (oct_encoder_values(it->e, it->g, &i, &end); i < end; i++) {
        const oct_value *v = it->e->values[i];

        if (!v->producer || v->is_output) continue;
        if (must_say(v) || (!few && v->type.dtype != OCT_DTYPE_NONE))
            if (!encode_value(s, f, v)) return false;
    }
    return true;
}

bool oct_encode_graph(pb_ostream_t *s, const pb_field_t *f, oct_encoder *e, const oct_graph *g)
{
    const item it = {.e = e, .g = g};
    oct_onnx_GraphProto m = oct_onnx_GraphProto_init_zero;

    m.node = oct_field(put_nodes, &it);
    m.name = oct_text_field(g->name && g->name[0] ? g->name : "graph"); /* one must be there */
    m.initializer = oct_field(put_initializers, &it);
    m.doc_string = oct_text_field(g->doc);
    m.input = oct_field(put_inputs, &it);
    m.output = oct_field(put_outputs, &it);
    m.value_info = oct_field(put_value_infos, &it);
    return oct_encode_message(s, f, oct_onnx_GraphProto_fields, &m);
}
