/* SPDX-License-Identifier: Apache-2.0 */
/* Adding layers, attributes and constants to an IR in memory. */
#include "openvino/ir.h"

#include <stdio.h>
#include <string.h>

oct_status oct_ir_init(oct_ir *ir, oct_ctx *ctx, const char *name)
{
    *ir = (oct_ir){.ctx = ctx, .name = name};
    return (ir->arena = oct_arena_new(ctx)) ? OCT_OK : OCT_ERR_MEMORY;
}

void oct_ir_fini(oct_ir *ir)
{
    for (int32_t i = 0; i < ir->n_layers; i++) {
        oct_tensor_unref(ir->layers[i].data);
        oct_free(ir->ctx, ir->layers[i].attrs);
    }
    oct_free(ir->ctx, ir->layers);
    oct_free(ir->ctx, ir->facts);
    oct_arena_free(ir->arena);
}

static const oct_ir_at none = {-1, 0};

static oct_ir_layer *last(oct_ir *ir)
{
    return &ir->layers[ir->n_layers - 1];
}

oct_ir_at oct_ir_add(oct_ir *ir, const char *name, const char *type, const char *version,
                     const oct_ir_at *in, int32_t n_in, const oct_type *out, int32_t n_out)
{
    oct_ir_layer *l;

    if (ir->status) return none;
    ir->status = oct_grow(ir->ctx, &ir->layers, &ir->cap_layers, (size_t)ir->n_layers + 1,
                          sizeof(*ir->layers));
    if (ir->status) return none;
    l = &ir->layers[ir->n_layers];
    *l = (oct_ir_layer){.type = type, .version = version, .n_in = n_in, .n_out = n_out};
    l->name = oct_arena_strdup(ir->arena, name);
    l->in = oct_arena_array(ir->arena, (size_t)n_in + 1, sizeof(*l->in));
    l->out = oct_arena_array(ir->arena, (size_t)n_out + 1, sizeof(*l->out));
    if (!l->name || !l->in || !l->out) {
        ir->status = OCT_ERR_MEMORY;
        return none;
    }
    if (n_in) memcpy(l->in, in, (size_t)n_in * sizeof(*in));
    for (int32_t i = 0; i < n_out; i++)
        l->out[i].type = out[i];
    return (oct_ir_at){ir->n_layers++, 0};
}

void oct_ir_fact(oct_ir *ir, const char *name, const char *value)
{
    oct_ir_attr a;

    if (ir->status) return;
    a = (oct_ir_attr){oct_arena_strdup(ir->arena, name), oct_arena_strdup(ir->arena, value)};
    ir->status = a.name && a.value ? oct_grow(ir->ctx, &ir->facts, &ir->cap_facts, ir->n_facts + 1,
                                              sizeof(*ir->facts))
                                   : OCT_ERR_MEMORY;
    if (!ir->status) ir->facts[ir->n_facts++] = a;
}

/* --- attributes --- */

void oct_ir_attr_str(oct_ir *ir, const char *name, const char *value)
{
    oct_ir_layer *l;
    oct_ir_attr a = {name, NULL};

    if (ir->status) return;
    l = last(ir);
    ir->status = oct_grow(ir->ctx, &l->attrs, &l->cap_attrs, l->n_attrs + 1, sizeof(a));
    if (!ir->status && !(a.value = oct_arena_strdup(ir->arena, value))) ir->status = OCT_ERR_MEMORY;
    if (!ir->status) l->attrs[l->n_attrs++] = a;
}

void oct_ir_attr_bool(oct_ir *ir, const char *name, bool value)
{
    oct_ir_attr_str(ir, name, value ? "true" : "false");
}

void oct_ir_attr_int(oct_ir *ir, const char *name, int64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    oct_ir_attr_str(ir, name, text);
}

void oct_ir_attr_f64(oct_ir *ir, const char *name, double value)
{
    char text[40];

    (void)snprintf(text, sizeof(text), "%.9g", value);
    oct_ir_attr_str(ir, name, text);
}

void oct_ir_attr_ints(oct_ir *ir, const char *name, const int64_t *v, int64_t n)
{
    char text[OCT_MAX_RANK * 24] = "";
    size_t at = 0;

    for (int64_t i = 0; i < n && at < sizeof(text); i++)
        at +=
            (size_t)snprintf(text + at, sizeof(text) - at, "%s%lld", i ? "," : "", (long long)v[i]);
    oct_ir_attr_str(ir, name, text);
}

/* --- constants --- */

oct_ir_at oct_ir_const(oct_ir *ir, const char *name, oct_tensor *t)
{
    const oct_ir_at at =
        ir->status ? none : oct_ir_add(ir, name, "Const", "opset1", NULL, 0, &t->type, 1);

    if (ir->status)
        oct_tensor_unref(t);
    else
        last(ir)->data = t;
    return at;
}

oct_ir_at oct_ir_scalar(oct_ir *ir, const char *name, double v)
{
    oct_tensor *t = NULL;

    if (!ir->status) ir->status = oct_tensor_scalar_f32(ir->ctx, (float)v, &t);
    return ir->status ? none : oct_ir_const(ir, name, t);
}

oct_ir_at oct_ir_ints(oct_ir *ir, const char *name, const int64_t *v, int64_t n, bool is_scalar)
{
    oct_tensor *t = NULL;

    if (!ir->status) ir->status = oct_tensor_vec_i64(ir->ctx, v, n, &t);
    if (ir->status) return none;
    if (is_scalar) t->type.rank = 0;
    return oct_ir_const(ir, name, t);
}

const char *oct_ir_name(oct_ir *ir, const char *name, const char *suffix)
{
    const char *s = oct_arena_printf(ir->arena, "%s/%s", name, suffix);

    if (!s && !ir->status) ir->status = OCT_ERR_MEMORY;
    return s ? s : "";
}

const oct_type *oct_ir_type(const oct_ir *ir, oct_ir_at at)
{
    static const oct_type unknown = {.rank = -1};

    return at.layer < 0 ? &unknown : &ir->layers[at.layer].out[at.port].type;
}

/* --- element types --- */

static const struct {
    oct_dtype dtype;
    const char *element, *precision;
} types[] = {
    {OCT_DTYPE_F32, "f32", "FP32"},      {OCT_DTYPE_F16, "f16", "FP16"},
    {OCT_DTYPE_BF16, "bf16", "BF16"},    {OCT_DTYPE_F64, "f64", "FP64"},
    {OCT_DTYPE_I8, "i8", "I8"},          {OCT_DTYPE_U8, "u8", "U8"},
    {OCT_DTYPE_I16, "i16", "I16"},       {OCT_DTYPE_U16, "u16", "U16"},
    {OCT_DTYPE_I32, "i32", "I32"},       {OCT_DTYPE_U32, "u32", "U32"},
    {OCT_DTYPE_I64, "i64", "I64"},       {OCT_DTYPE_U64, "u64", "U64"},
    {OCT_DTYPE_I4, "i4", "I4"},          {OCT_DTYPE_U4, "u4", "U4"},
    {OCT_DTYPE_BOOL, "boolean", "BOOL"},
};

const char *oct_ir_element(oct_dtype t)
{
    for (size_t i = 0; i < OCT_COUNT(types); i++)
        if (types[i].dtype == t) return types[i].element;
    return NULL;
}

const char *oct_ir_precision(oct_dtype t)
{
    for (size_t i = 0; i < OCT_COUNT(types); i++)
        if (types[i].dtype == t) return types[i].precision;
    return NULL;
}

oct_dtype oct_ir_dtype(const char *element)
{
    for (size_t i = 0; i < OCT_COUNT(types); i++)
        if (strcmp(types[i].element, element) == 0) return types[i].dtype;
    return OCT_DTYPE_NONE;
}
