/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators that are spelt out in others, and what its functions share. */
#include "onnx/foreign.h"

#include <string.h>

#define MS "com.microsoft"

typedef struct row {
    const char *domain, *op;
    oct_status (*apply)(oct_draft *d);
} row;

/* TensorRT finds plugins by their names, whatever the domain: octet has a row for "TRT". */
static oct_status to_trt(oct_draft *d)
{
    d->domain = "TRT";
    return OCT_OK;
}

static const row table[] = {
    {MS, "Attention", oct_foreign_attention},
    {MS, "BiasGelu", oct_foreign_bias_gelu},
    {MS, "DynamicQuantizeLSTM", oct_foreign_dynamic_lstm},
    {MS, "EmbedLayerNormalization", oct_foreign_embed},
    {MS, "FastGelu", oct_foreign_fast_gelu},
    {MS, "MatMulNBits", oct_foreign_nbits},
    {MS, "MultiHeadAttention", oct_foreign_heads},
    {MS, "NhwcFusedConv", oct_foreign_nhwc_conv},
    {MS, "QAttention", oct_foreign_q_attention},
    {MS, "SimplifiedLayerNormalization", oct_foreign_rms_norm},
    {MS, "SkipSimplifiedLayerNormalization", oct_foreign_skip_rms_norm},
    {"", "SimplifiedLayerNormalization", oct_foreign_rms_norm},
    {"", "FakeQuantize", oct_foreign_fake_quantize},
    {"org.openvinotoolkit", "FakeQuantize", oct_foreign_fake_quantize},
    {NULL, "EfficientNMS_TRT", to_trt}, /* NULL: any but the standard one */
};

oct_status oct_foreign(oct_draft *d)
{
    for (size_t i = 0; i < OCT_COUNT(table); i++) {
        const row *r = &table[i];

        if (strcmp(r->op, d->op) != 0) continue;
        if (r->domain ? strcmp(r->domain, d->domain) == 0 : d->domain[0] != '\0')
            return r->apply(d);
    }
    return OCT_OK;
}

oct_builder oct_foreign_builder(const oct_draft *d)
{
    return (oct_builder){.g = d->s->g, .prefix = d->name};
}

bool oct_foreign_wants(const oct_draft *d, int i)
{
    return i < d->n_out && d->out[i];
}

oct_status oct_foreign_become(oct_draft *d, const char *op, oct_value *const *in, int32_t n_in)
{
    oct_value **copy = oct_arena_array(d->s->r->wire.arena, (size_t)n_in + 1, sizeof(*copy));

    if (!copy) return OCT_ERR_MEMORY;
    memcpy(copy, in, (size_t)n_in * sizeof(*copy));
    d->domain = "";
    d->op = op;
    d->version = OCT_OPSET_INTERNAL;
    d->in = copy;
    d->n_in = n_in;
    d->n_out = OCT_MIN(d->n_out, 1);
    d->n_attr = 0;
    return OCT_OK;
}

oct_status oct_foreign_set_f32(oct_draft *d, const char *name, float v)
{
    return oct_draft_set(d, name, &(oct_attr){.kind = OCT_ATTR_F32, .f = v});
}

oct_status oct_foreign_give(oct_draft *d, int i, oct_value *x)
{
    oct_graph *g = d->s->g;
    const char *name;
    oct_node *n;

    if (!oct_foreign_wants(d, i)) return OCT_OK;
    if (!x || !(name = oct_graph_fresh_name(g, d->name))) return OCT_ERR_MEMORY;
    n = oct_node_new(g, NULL, name, &oct_op_identity, &x, 1, &d->out[i], 1);
    d->out[i] = NULL;
    return n ? oct_node_infer(n) : OCT_ERR_MEMORY;
}

oct_value *oct_foreign_unsqueeze(oct_builder *b, oct_value *x, const int64_t *axes, int64_t n)
{
    return oct_emit(b, &oct_op_unsqueeze, x, oct_ints(b, axes, n), NULL);
}

oct_value *oct_foreign_cast(oct_builder *b, oct_value *x, oct_dtype to)
{
    oct_node *n = oct_emit_node(b, &oct_op_cast, &x, 1, 1);

    if (n) oct_emit_int(b, n, "to", to);
    return oct_emitted(b, n);
}
