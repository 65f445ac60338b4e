/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as IR: inputs, nodes one after the other by the rows of their operators, outputs. */
#include "openvino/write.h"

#include <stdio.h>
#include <string.h>

#include <octet/openvino.h>

#include "base/ctx.h"
#include "op/op.h"

void oct_openvino_options_init_sized(oct_openvino_options *o, size_t struct_size)
{
    const oct_openvino_options all = {.struct_size = struct_size};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

static const oct_ir_at none = {-1, 0};

/* --- values --- */

/* Small constants are scales, axes and the like: nothing is saved by rounding them. */
#define HALF_LEAST 16

oct_ir_at oct_to_ir_const(oct_to_ir *w, const char *name, oct_tensor *t)
{
    const oct_type full = t->type;
    oct_tensor *half = NULL;
    oct_ir_at at;

    if (!w->half || full.dtype != OCT_DTYPE_F32 || oct_type_len(&full) < HALF_LEAST)
        return oct_ir_const(&w->ir, name, t);
    if (!w->ir.status) w->ir.status = oct_tensor_cast(w->ir.ctx, t, OCT_DTYPE_F16, &half);
    oct_tensor_unref(t);
    if (w->ir.status) return none;
    at = oct_ir_const(&w->ir, oct_ir_name(&w->ir, name, "compressed"), half);
    at = oct_ir_add(&w->ir, name, "Convert", "opset1", &at, 1, &full, 1);
    oct_ir_attr_str(&w->ir, "destination_type", "f32");
    if (!w->ir.status) w->ir.layers[at.layer].decompresses = true;
    return at;
}

oct_ir_at oct_to_ir_value(oct_to_ir *w, const oct_value *v)
{
    if (w->ir.status) return none;
    if (w->at[v->id].layer < 0 && v->data)
        w->at[v->id] = oct_to_ir_const(w, v->name, oct_tensor_ref(v->data));
    return w->at[v->id];
}

oct_ir_at oct_to_ir_in(oct_to_ir *w, const oct_node *n, int32_t i)
{
    const oct_value *v = oct_node_in(n, i);

    return v ? oct_to_ir_value(w, v) : none;
}

/* "a,b" lists two names: a comma of a name is escaped. */
static const char *escaped(oct_to_ir *w, const char *name)
{
    char *s = oct_arena_alloc(w->ir.arena, 2 * strlen(name) + 1), *to = s;

    if (!s) return NULL;
    for (; *name; name++) {
        if (*name == ',') *to++ = '\\';
        *to++ = *name;
    }
    *to = '\0';
    return s;
}

static void add_name(oct_to_ir *w, oct_ir_at at, const oct_value *v)
{
    oct_ir_out *out = &w->ir.layers[at.layer].out[at.port];
    const char *name = escaped(w, v->name);

    out->names =
        out->names && name ? oct_arena_printf(w->ir.arena, "%s,%s", out->names, name) : name;
    if (!out->names) w->ir.status = OCT_ERR_MEMORY;
}

oct_status oct_to_ir_done(oct_to_ir *w, const oct_node *n, int32_t i, oct_ir_at at)
{
    const oct_value *v = oct_node_out(n, i);

    if (w->ir.status || !v) return w->ir.status;
    w->at[v->id] = at;
    add_name(w, at, v);
    return w->ir.status;
}

/* --- layers --- */

oct_ir_at oct_to_ir_emit(oct_to_ir *w, const oct_node *n, const char *suffix, const char *type,
                         const char *version, const oct_ir_at *in, int32_t n_in,
                         const oct_type *out)
{
    const char *name = suffix ? oct_ir_name(&w->ir, n->name, suffix) : n->name;

    return oct_ir_add(&w->ir, name, type, version, in, n_in, out, 1);
}

oct_ir_at oct_to_ir_binary(oct_to_ir *w, const oct_node *n, const char *suffix, const char *type,
                           oct_ir_at a, oct_ir_at b, const oct_type *out)
{
    const oct_ir_at at = oct_to_ir_emit(w, n, suffix, type, "opset1", (oct_ir_at[]){a, b}, 2, out);

    oct_ir_attr_str(&w->ir, "auto_broadcast", "numpy");
    return at;
}

oct_status oct_to_ir_same(oct_to_ir *w, const oct_node *n, const char *type, const char *version,
                          int32_t n_in)
{
    oct_ir_at *in = oct_arena_array(w->ir.arena, (size_t)n_in + 1, sizeof(*in));
    oct_type *out = oct_arena_array(w->ir.arena, (size_t)n->n_out + 1, sizeof(*out));
    oct_ir_at at;

    if (!in || !out) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n_in; i++)
        in[i] = oct_to_ir_in(w, n, i);
    for (int32_t i = 0; i < n->n_out; i++)
        out[i] = n->out[i] ? n->out[i]->type : oct_type_unknown(OCT_DTYPE_F32);
    at = oct_ir_add(&w->ir, n->name, type, version, in, n_in, out, n->n_out);
    for (int32_t i = 0; i < n->n_out; i++)
        OCT_TRY(oct_to_ir_done(w, n, i, (oct_ir_at){at.layer, i}));
    return w->ir.status;
}

oct_ir_at oct_to_ir_ints(oct_to_ir *w, const oct_node *n, const char *suffix, const int64_t *v,
                         int64_t len)
{
    return oct_ir_ints(&w->ir, oct_ir_name(&w->ir, n->name, suffix), v, len, false);
}

/* --- attributes --- */

int64_t oct_to_ir_int(const oct_node *n, const char *name, int64_t otherwise)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_INT ? a->i : otherwise;
}

double oct_to_ir_f64(const oct_node *n, const char *name, double otherwise)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_F32 ? (double)a->f : otherwise;
}

const char *oct_to_ir_str(oct_to_ir *w, const oct_node *n, const char *name, const char *otherwise)
{
    const oct_attr *a = oct_node_attr(n, name);
    const char *s = a && a->kind == OCT_ATTR_STRING
                        ? oct_arena_printf(w->ir.arena, "%.*s", (int)a->n, a->s)
                        : otherwise;

    if (!s) w->ir.status = OCT_ERR_MEMORY;
    return s ? s : "";
}

/* --- the whole graph --- */

static oct_status write_inputs(oct_to_ir *w)
{
    for (int32_t i = 0; i < w->g->n_inputs; i++) {
        const oct_value *v = w->g->inputs[i];
        char shape[OCT_MAX_RANK * 24] = "";
        size_t at = 0;

        if (v->data) continue; /* a constant that may be given: it keeps its value */
        for (int32_t d = 0; d < v->type.rank; d++)
            at += (size_t)snprintf(shape + at, sizeof(shape) - at,
                                   v->type.dim[d] < 0 ? "%s?" : "%s%lld", d ? "," : "",
                                   (long long)v->type.dim[d]);
        w->at[v->id] = oct_ir_add(&w->ir, v->name, "Parameter", "opset1", NULL, 0, &v->type, 1);
        oct_ir_attr_str(&w->ir, "shape", v->type.rank < 0 ? "..." : shape);
        oct_ir_attr_str(&w->ir, "element_type", oct_ir_element(v->type.dtype));
        OCT_TRY(w->ir.status);
        add_name(w, w->at[v->id], v);
    }
    return w->ir.status;
}

static oct_status write_outputs(oct_to_ir *w)
{
    for (int32_t i = 0; i < w->g->n_outputs; i++) {
        const oct_value *v = w->g->outputs[i];
        const oct_ir_at at = oct_to_ir_value(w, v);

        if (!w->ir.status && v->data) add_name(w, at, v);
        (void)oct_ir_add(&w->ir, oct_ir_name(&w->ir, v->name, "result"), "Result", "opset1", &at, 1,
                         NULL, 0);
    }
    return w->ir.status;
}

/* All operators without a row, in one message. */
static oct_status check_operators(oct_to_ir *w)
{
    const char *list = "";
    int n_names = 0;

    for (const oct_node *n = w->g->first; n && list; n = n->next) {
        bool is_new = !oct_to_ir_find(n->op);

        for (const oct_node *k = w->g->first; k != n && is_new; k = k->next)
            is_new = k->op != n->op;
        if (!is_new) continue;
        list = oct_arena_printf(w->ir.arena, "%s%s%s (node '%s')", list, *list ? ", " : "",
                                n->op->name, n->name);
        n_names++;
    }
    if (!list) return OCT_ERR_MEMORY;
    if (!n_names) return OCT_OK;
    return oct_fail(w->ir.ctx, OCT_ERR_UNSUPPORTED,
                    "%s: octet cannot write %s as OpenVINO IR; write an ONNX file, which OpenVINO "
                    "reads too",
                    list, n_names > 1 ? "these operators" : "this operator");
}

static oct_status check_types(const oct_to_ir *w)
{
    for (int32_t i = 0; i < w->g->n_value_ids; i++) {
        const oct_value *v = w->g->values[i];

        if (v && (v->is_input || (v->data && v->n_users)) && !oct_ir_element(v->type.dtype))
            return oct_fail(w->ir.ctx, OCT_ERR_UNSUPPORTED, "value '%s': OpenVINO IR has no %s",
                            v->name, oct_dtype_name(v->type.dtype));
    }
    return OCT_OK;
}

static oct_status write_graph(oct_to_ir *w)
{
    const size_t n = (size_t)w->g->n_value_ids + 1;
    const char *key;

    w->at = oct_arena_array(w->ir.arena, n, sizeof(*w->at));
    if (!w->at) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        w->at[i] = none;
    OCT_TRY(check_operators(w));
    OCT_TRY(check_types(w));
    OCT_TRY(write_inputs(w));
    for (const oct_node *k = w->g->first; k; k = k->next) {
        OCT_TRY(oct_to_ir_find(k->op)(w, k));
        OCT_TRY(w->ir.status);
    }
    for (int32_t i = 0; (key = oct_graph_metadata_key(w->g, i)) != NULL; i++)
        oct_ir_fact(&w->ir, key, oct_graph_metadata(w->g, key));
    return write_outputs(w);
}

/* Types are known as far as they can be. */
static oct_status write_copy(oct_graph *g, const char *path, const oct_openvino_options *o)
{
    oct_to_ir w = {.g = g, .half = o->half != 0};
    oct_status st;

    OCT_TRY(oct_to_ir_prepare(g));
    OCT_TRY(oct_graph_infer(g));
    OCT_TRY(oct_ir_init(&w.ir, g->ctx, g->name));
    st = write_graph(&w);
    if (!st) st = oct_ir_save(&w.ir, path);
    oct_ir_fini(&w.ir);
    return st;
}

oct_status oct_openvino_save(const oct_graph *g, const char *path,
                             const oct_openvino_options *options)
{
    OCT_ENTER(g->ctx);
    oct_openvino_options o;
    const size_t len = strlen(path);
    oct_graph *copy = NULL;
    oct_status st;

    oct_openvino_options_init(&o);
    if (options) memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    if (len < 5 || strcmp(path + len - 4, ".xml") != 0)
        return oct_fail(g->ctx, OCT_ERR_ARG, "%s: the name of an IR file ends with .xml", path);
    OCT_TRY(oct_graph_clone(g, &copy));
    oct_graph_params_to_consts(copy);
    st = write_copy(copy, path, &o);
    oct_graph_free(copy);
    return st;
}
