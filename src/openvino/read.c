/* SPDX-License-Identifier: Apache-2.0 */
/* IR as a graph: layers in an order in which each comes after what it reads, by their rows. */
#include "openvino/read.h"
#include "pass/pass.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <octet/openvino.h>

#include "base/ctx.h"
#include "op/op.h"

#define READ_OPSET 17 /* of what octet makes of IR, for files */

/* --- operands and results --- */

oct_value *oct_from_ir_in(const oct_from_ir *r, const oct_ir_layer *l, int32_t i)
{
    return i < l->n_in ? r->values[l->in[i].layer][l->in[i].port] : NULL;
}

const oct_tensor *oct_from_ir_const(const oct_from_ir *r, const oct_ir_layer *l, int32_t i)
{
    const oct_value *v = oct_from_ir_in(r, l, i);

    return v ? v->data : NULL;
}

/* The first of the names of a port. */
static const char *first_name(oct_from_ir *r, const char *names)
{
    char *s = oct_arena_strdup(r->g->arena, names), *to = s;

    for (const char *from = names; s && *from && *from != ','; from++) {
        if (*from == '\\' && from[1] == ',') from++;
        *to++ = *from;
    }
    if (s) *to = '\0';
    return s;
}

static const char *unique(oct_from_ir *r, oct_map *used, const char *name)
{
    if (name && oct_map_get(used, name)) name = oct_graph_fresh_name(r->g, name);
    return name && !oct_map_put(used, name, r) ? name : NULL;
}

const char *oct_from_ir_name(oct_from_ir *r, const char *name)
{
    return unique(r, &r->value_names, oct_arena_strdup(r->g->arena, name));
}

/* Results have the names of their ports, which are those of ONNX if IR was made from it. */
static oct_status name_result(oct_from_ir *r, const oct_ir_layer *l, int32_t i, oct_value *v)
{
    const char *name;

    if (!v->producer || v->n_users || v->is_output) return OCT_OK; /* it is an operand, too */
    if (i == 0) {
        name = unique(r, &r->node_names, oct_arena_strdup(r->g->arena, l->name));
        if (!name) return OCT_ERR_MEMORY;
        v->producer->name = name;
    }
    if (!l->out[i].names || !*l->out[i].names) return OCT_OK;
    v->name = unique(r, &r->value_names, first_name(r, l->out[i].names));
    return v->name ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_from_ir_done(oct_from_ir *r, const oct_ir_layer *l, int32_t i, oct_value *v)
{
    if (r->b.status) return r->b.status;
    if (!v) return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "an operand is missing");
    if (i >= l->n_out) return OCT_OK;
    r->values[l - r->ir.layers][i] = v;
    return name_result(r, l, i, v);
}

oct_status oct_from_ir_fail(const oct_from_ir *r, const oct_ir_layer *l, oct_status st,
                            const char *fmt, ...)
{
    char text[400];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return oct_fail(r->ctx, st, "layer '%s' (%s): %s", l->name, l->type, text);
}

/* --- attributes --- */

const char *oct_from_ir_str(const oct_ir_layer *l, const char *name, const char *otherwise)
{
    for (size_t i = 0; i < l->n_attrs; i++)
        if (strcmp(l->attrs[i].name, name) == 0) return l->attrs[i].value;
    return otherwise;
}

int64_t oct_from_ir_int(const oct_ir_layer *l, const char *name, int64_t otherwise)
{
    const char *s = oct_from_ir_str(l, name, NULL);

    return s ? strtoll(s, NULL, 10) : otherwise;
}

double oct_from_ir_f64(const oct_ir_layer *l, const char *name, double otherwise)
{
    const char *s = oct_from_ir_str(l, name, NULL);

    return s ? strtod(s, NULL) : otherwise;
}

bool oct_from_ir_bool(const oct_ir_layer *l, const char *name, bool otherwise)
{
    const char *s = oct_from_ir_str(l, name, NULL);

    return s ? strcmp(s, "true") == 0 || strcmp(s, "1") == 0 : otherwise;
}

oct_status oct_from_ir_ints(const oct_from_ir *r, const oct_ir_layer *l, const char *name,
                            int64_t *out, int max, int *n)
{
    const char *s = oct_from_ir_str(l, name, "");

    *n = 0;
    for (s += strspn(s, ", "); *s; s += strspn(s, ", ")) {
        char *end = NULL;
        const long long v = strtoll(s, &end, 10);

        if (end == s || *n == max)
            return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "%s is \"%.60s\"", name, s);
        out[(*n)++] = v;
        s = end;
    }
    return OCT_OK;
}

/* --- operands that must be there, constant, or of a type --- */

oct_status oct_from_ir_need(const oct_from_ir *r, const oct_ir_layer *l, int32_t n)
{
    return l->n_in >= n ? OCT_OK
                        : oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "%d operands are missing",
                                           (int)(n - l->n_in));
}

oct_status oct_from_ir_list(const oct_from_ir *r, const oct_ir_layer *l, int32_t i, int64_t *out,
                            int *n)
{
    const oct_tensor *t = oct_from_ir_const(r, l, i);
    const int64_t len = t ? oct_tensor_len(t) : -1;

    if (len < 0 || len > OCT_MAX_RANK)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "operand %d is not a constant list",
                                (int)i);
    for (int64_t k = 0; k < len; k++)
        out[k] = oct_tensor_get_i64(t, k);
    *n = (int)len;
    return OCT_OK;
}

oct_status oct_from_ir_one(const oct_from_ir *r, const oct_ir_layer *l, int32_t i, int64_t *out)
{
    int64_t v[OCT_MAX_RANK];
    int n = 0;

    OCT_TRY(oct_from_ir_list(r, l, i, v, &n));
    if (n != 1)
        return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "operand %d is not one number", (int)i);
    *out = v[0];
    return OCT_OK;
}

oct_value *oct_from_ir_cast(oct_from_ir *r, oct_value *v, oct_dtype to)
{
    oct_node *n;

    if (!v || v->type.dtype == to) return v;
    n = oct_emit_node(&r->b, &oct_op_cast, &v, 1, 1);
    oct_emit_int(&r->b, n, "to", to);
    return oct_emitted(&r->b, n);
}

oct_value *oct_from_ir_as_list(oct_from_ir *r, oct_value *v)
{
    static const int64_t any = -1;

    v = oct_from_ir_cast(r, v, OCT_DTYPE_I64);
    if (!v || v->type.rank != 0) return v;
    return oct_emit(&r->b, &oct_op_reshape, v, oct_ints(&r->b, &any, 1), NULL);
}

/* --- layers --- */

static oct_status read_parameter(oct_from_ir *r, const oct_ir_layer *l)
{
    const char *shape = oct_from_ir_str(l, "shape", ""), *names = l->n_out ? l->out[0].names : NULL;
    oct_type t = {.dtype = oct_ir_dtype(oct_from_ir_str(l, "element_type", "?"))};
    oct_value *v;

    if (l->n_out != 1 || t.dtype == OCT_DTYPE_NONE)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "an input of type %.40s",
                                oct_from_ir_str(l, "element_type", "?"));
    for (const char *s = shape + strspn(shape, "[ "); *s && *s != ']'; s += strspn(s, ", ")) {
        const size_t len = strcspn(s, ",]");
        char *end = NULL;
        const long long d = strtoll(s, &end, 10);

        if (t.rank == OCT_MAX_RANK || strncmp(s, "...", 3) == 0) {
            t.rank = -1;
            break;
        }
        /* "?", "-1" and "1..8" are sizes that are not known */
        t.dim[t.rank++] = end != s && end == s + len && d >= 0 ? d : -1;
        s += len;
    }
    names = unique(r, &r->value_names,
                   names && *names ? first_name(r, names) : oct_arena_strdup(r->g->arena, l->name));
    if (!names || !(v = oct_value_new(r->g, names, &t))) return OCT_ERR_MEMORY;
    r->values[l - r->ir.layers][0] = v;
    return oct_graph_add_input(r->g, v);
}

/* An input, a constant, or what is an output already gets a copy; a constant yields its name. */
static oct_status read_result(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *v = oct_from_ir_in(r, l, 0), *y;
    const char *names = v ? r->ir.layers[l->in[0].layer].out[l->in[0].port].names : NULL;

    if (!v) return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "nothing comes to it");
    if (!v->is_output && v->producer) return oct_graph_add_output(r->g, v);
    if (!(y = oct_emit(&r->b, &oct_op_identity, v, NULL, NULL))) return r->b.status;
    if (v->data && names && *names) {
        const char *own = first_name(r, names);

        if (!own) return OCT_ERR_MEMORY;
        if (strcmp(own, v->name) == 0 && !(v->name = oct_graph_fresh_name(r->g, own)))
            return OCT_ERR_MEMORY;
        y->name = own;
    }
    return oct_graph_add_output(r->g, y);
}

static oct_status read_const(oct_from_ir *r, const oct_ir_layer *l)
{
    const char *name = oct_from_ir_name(r, l->name);
    oct_value *v = name ? oct_value_const(r->g, name, oct_tensor_ref(l->data)) : NULL;

    if (!v) return OCT_ERR_MEMORY;
    r->values[l - r->ir.layers][0] = v;
    return OCT_OK;
}

/* Rows set the results that octet has: indices of MaxPool are none of them. */
static oct_status check_operands(const oct_from_ir *r, const oct_ir_layer *l)
{
    for (int32_t i = 0; i < l->n_in; i++)
        if (!oct_from_ir_in(r, l, i))
            return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED,
                                    "it reads result %d of layer '%.100s', which octet cannot read",
                                    (int)l->in[i].port, r->ir.layers[l->in[i].layer].name);
    return OCT_OK;
}

static oct_status read_layer(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_from_ir_fn fn = oct_from_ir_find(l->type);

    r->layer = l;
    r->b = (oct_builder){.g = r->g, .prefix = l->name};
    if (l->data) return read_const(r, l);
    if (strcmp(l->type, "Parameter") == 0) return read_parameter(r, l);
    OCT_TRY(check_operands(r, l));
    if (strcmp(l->type, "Result") == 0) return read_result(r, l);
    OCT_TRY(fn(r, l));
    for (int32_t i = 0; i < l->n_out; i++)
        if (!r->values[l - r->ir.layers][i] && i == 0)
            return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet cannot read it");
    return r->b.status;
}

/* --- names --- */

/* Numbers of names like those octet makes up, "value~2", stay below those it makes up now. */
static void pass_names(oct_graph *g, const char *text)
{
    for (const char *at = text ? strchr(text, '~') : NULL; at; at = strchr(at + 1, '~')) {
        const long long k = strtoll(at + 1, NULL, 10);

        if (k >= g->name_serial && k < INT64_MAX / 2) g->name_serial = k + 1;
    }
}

static void pass_all_names(oct_from_ir *r)
{
    for (int32_t i = 0; i < r->ir.n_layers; i++) {
        const oct_ir_layer *l = &r->ir.layers[i];

        pass_names(r->g, l->name);
        for (int32_t k = 0; k < l->n_out; k++)
            pass_names(r->g, l->out[k].names);
    }
}

/* --- order --- */

static bool is_known(const char *type)
{
    return oct_from_ir_find(type) || strcmp(type, "Const") == 0 || strcmp(type, "Parameter") == 0 ||
           strcmp(type, "Result") == 0;
}

/* All types without a row, in one message. */
static oct_status check_types(const oct_from_ir *r)
{
    const oct_ir *ir = &r->ir;
    const char *list = "";

    for (int32_t i = 0; i < ir->n_layers && list; i++) {
        bool is_new = !is_known(ir->layers[i].type);

        for (int32_t k = 0; k < i && is_new; k++)
            is_new = strcmp(ir->layers[k].type, ir->layers[i].type) != 0;
        if (is_new)
            list = oct_arena_printf(ir->arena, "%s%s%s (layer '%s')", list, *list ? ", " : "",
                                    ir->layers[i].type, ir->layers[i].name);
    }
    if (!list) return OCT_ERR_MEMORY;
    return *list ? oct_fail(r->ctx, OCT_ERR_UNSUPPORTED, "octet cannot read these layers: %s", list)
                 : OCT_OK;
}

/* Kahn: a layer is ready when all it reads is there. Order in the file decides between equals. */
static oct_status sort_layers(const oct_from_ir *r, int32_t *order)
{
    const oct_ir *ir = &r->ir;
    const size_t n = (size_t)ir->n_layers + 1;
    int32_t *missing = oct_arena_array(ir->arena, n, sizeof(*missing));
    int32_t *head = oct_arena_array(ir->arena, n, sizeof(*head)), *next, *to, n_edges = 0, done = 0;

    for (int32_t i = 0; i < ir->n_layers; i++)
        n_edges += ir->layers[i].n_in;
    next = oct_arena_array(ir->arena, (size_t)n_edges + 1, sizeof(*next));
    to = oct_arena_array(ir->arena, (size_t)n_edges + 1, sizeof(*to));
    if (!missing || !head || !next || !to) return OCT_ERR_MEMORY;
    for (int32_t i = ir->n_layers - 1, e = 0; i >= 0; i--)
        for (int32_t k = 0; k < ir->layers[i].n_in; k++) {
            const int32_t from = ir->layers[i].in[k].layer;

            to[++e] = i;
            next[e] = head[from];
            head[from] = e;
            missing[i]++;
        }
    for (int32_t i = 0; i < ir->n_layers; i++)
        if (!missing[i]) order[done++] = i;
    for (int32_t k = 0; k < done; k++)
        for (int32_t e = head[order[k]]; e; e = next[e])
            if (--missing[to[e]] == 0) order[done++] = to[e];
    for (int32_t i = 0; i < ir->n_layers && done < ir->n_layers; i++)
        if (missing[i])
            return oct_fail(r->ctx, OCT_ERR_FORMAT, "layer '%s' is part of a circle",
                            ir->layers[i].name);
    return OCT_OK;
}

/* What rows looked through, as the Convert of weights, may have no consumer any more. */
static void drop_unread(oct_graph *g)
{
    for (oct_node *n = g->last, *before; n; n = before) {
        bool used = false;

        before = n->prev;
        for (int32_t i = 0; i < n->n_out; i++)
            used |= n->out[i] && (n->out[i]->n_users || n->out[i]->is_output);
        if (!used) oct_node_remove(n);
    }
}

/* Inputs and outputs in the order of the file, whatever order the layers are read in. */
static oct_status read_in_order(oct_from_ir *r, const int32_t *order)
{
    const oct_ir *ir = &r->ir;

    for (int32_t i = 0; i < ir->n_layers; i++)
        if (strcmp(ir->layers[i].type, "Parameter") == 0) OCT_TRY(read_layer(r, &ir->layers[i]));
    for (int32_t i = 0; i < ir->n_layers; i++) {
        const oct_ir_layer *l = &ir->layers[order[i]];

        if (strcmp(l->type, "Parameter") != 0 && strcmp(l->type, "Result") != 0)
            OCT_TRY(read_layer(r, l));
    }
    for (int32_t i = 0; i < ir->n_layers; i++)
        if (strcmp(ir->layers[i].type, "Result") == 0) OCT_TRY(read_layer(r, &ir->layers[i]));
    return OCT_OK;
}

/* Converters leave shapes to be computed that are constant; without folding, sizes of outputs would
 * not be known. */
static oct_status fold_sizes(oct_graph *g)
{
    bool is_open = false;

    for (int32_t i = 0; i < g->n_outputs; i++)
        is_open = is_open || !oct_type_is_static(&g->outputs[i]->type);
    if (!is_open) return OCT_OK;
    return oct_pipeline_run(g, "simplify", "fold-shapes,fold-constants,drop-dead", NULL);
}

static oct_status read_graph(oct_from_ir *r)
{
    const size_t n = (size_t)r->ir.n_layers + 1;
    int32_t *order = oct_arena_array(r->ir.arena, n, sizeof(*order));

    r->values = oct_arena_array(r->ir.arena, n, sizeof(*r->values));
    if (!order || !r->values) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < r->ir.n_layers; i++) {
        r->values[i] =
            oct_arena_array(r->ir.arena, (size_t)r->ir.layers[i].n_out + 1, sizeof(**r->values));
        if (!r->values[i]) return OCT_ERR_MEMORY;
    }
    OCT_TRY(check_types(r));
    OCT_TRY(sort_layers(r, order));
    OCT_TRY(read_in_order(r, order));
    drop_unread(r->g);
    r->g->info.ir_version = 8;
    r->g->info.producer_name = "OpenVINO IR";
    for (size_t i = 0; i < r->ir.n_facts; i++)
        OCT_TRY(oct_graph_set_metadata(r->g, r->ir.facts[i].name, r->ir.facts[i].value));
    r->g->info.opsets = oct_arena_array(r->g->arena, 1, sizeof(*r->g->info.opsets));
    if (!r->g->info.opsets) return OCT_ERR_MEMORY;
    r->g->info.opsets[0] = (oct_opset){"", READ_OPSET};
    r->g->info.n_opsets = 1;
    OCT_TRY(oct_graph_verify(r->g));
    return fold_sizes(r->g);
}

oct_status oct_openvino_load(oct_ctx *ctx, const char *path, oct_graph **out)
{
    OCT_ENTER(ctx);
    oct_from_ir r = {.ctx = ctx};
    oct_status st = oct_ir_init(&r.ir, ctx, NULL);

    oct_map_init(&r.value_names, ctx);
    oct_map_init(&r.node_names, ctx);
    if (!st) st = oct_ir_load(&r.ir, path);
    if (!st) st = oct_graph_new(ctx, r.ir.name ? r.ir.name : "network", &r.g);
    if (!st) pass_all_names(&r);
    if (!st) st = read_graph(&r);
    oct_map_fini(&r.value_names);
    oct_map_fini(&r.node_names);
    if (r.ir.arena) oct_ir_fini(&r.ir);
    if (st) {
        oct_graph_free(r.g);
        oct_fail_at(ctx, st, path);
        return st;
    }
    *out = r.g;
    return OCT_OK;
}
