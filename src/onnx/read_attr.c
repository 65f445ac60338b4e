/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of nodes, and the values of Constant nodes. */
#include <string.h>

#include "onnx/read.h"

static oct_status where_attr(const oct_draft *d, const char *name, const char **out)
{
    *out = oct_arena_printf(d->s->r->wire.arena, "node '%s' (%s): attribute '%s'", d->name, d->op,
                            name);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

/* Files of the first IR version do not tell the type: it is that of the field that is there. */
static int32_t guess_type(const oct_pb_attr *a)
{
    if (a->type != OCT_PB_UNDEFINED) return a->type;
    if (a->has_f) return OCT_PB_FLOAT;
    if (a->has_i) return OCT_PB_INT;
    if (a->s.p) return OCT_PB_STRING;
    if (a->t.p) return OCT_PB_TENSOR;
    if (a->g.p) return OCT_PB_GRAPH;
    if (a->floats.n) return OCT_PB_FLOATS;
    if (a->ints.n) return OCT_PB_INTS;
    if (a->strings.n) return OCT_PB_STRINGS;
    return OCT_PB_UNDEFINED;
}

static oct_status read_strings(oct_reader *r, const oct_pb_attr *a, oct_attr *out)
{
    const char **ss = oct_arena_array(r->wire.arena, OCT_MAX(a->strings.n, 1), sizeof(char *));

    if (!ss) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < a->strings.n; i++) {
        const oct_span s = a->strings.v[i];

        if (s.size && memchr(s.p, 0, s.size)) { /* not text: kept as bytes */
            *out = (oct_attr){.kind = OCT_ATTR_RAW, .s = (const char *)a->self.p};
            out->n = (int64_t)a->self.size;
            return OCT_OK;
        }
        if (!(ss[i] = oct_arena_strndup(r->wire.arena, (const char *)s.p, s.size)))
            return OCT_ERR_MEMORY;
    }
    *out = (oct_attr){.kind = OCT_ATTR_STRINGS, .n = (int64_t)a->strings.n, .ss = ss};
    return OCT_OK;
}

static oct_status read_tensor(const oct_draft *d, const oct_pb_attr *a, const char *name,
                              oct_attr *out)
{
    oct_reader *r = d->s->r;
    oct_tensor *t = NULL;
    oct_pb_tensor pb;
    const char *where;

    if (!a->t.p) return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute '%s' has no tensor", name);
    OCT_TRY(where_attr(d, name, &where));
    OCT_TRY(oct_wire_tensor(&r->wire, a->t, &pb));
    OCT_TRY(oct_read_tensor(r, &pb, where, &t));
    OCT_TRY(oct_hold_tensor(r, t));
    *out = (oct_attr){.kind = OCT_ATTR_TENSOR, .t = t};
    return OCT_OK;
}

static oct_status read_value(const oct_draft *d, const oct_pb_attr *a, oct_draft_attr *out)
{
    oct_reader *r = d->s->r;
    const int32_t type = guess_type(a);

    switch (type) {
    case OCT_PB_FLOAT:
        out->value = (oct_attr){.kind = OCT_ATTR_F32, .f = a->f};
        return OCT_OK;
    case OCT_PB_INT:
        out->value = (oct_attr){.kind = OCT_ATTR_INT, .i = a->i};
        return OCT_OK;
    case OCT_PB_STRING:
        out->value = (oct_attr){.kind = OCT_ATTR_STRING, .n = (int64_t)a->s.size};
        out->value.s = oct_arena_strndup(r->wire.arena, (const char *)a->s.p, a->s.size);
        return out->value.s ? OCT_OK : OCT_ERR_MEMORY;
    case OCT_PB_TENSOR:
        return read_tensor(d, a, out->name, &out->value);
    case OCT_PB_GRAPH:
        if (!a->g.p)
            return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute '%s' has no graph", out->name);
        out->value.kind = OCT_ATTR_GRAPH;
        out->graph = a->g;
        out->scope = d->s;
        return OCT_OK;
    case OCT_PB_FLOATS:
        out->value = (oct_attr){.kind = OCT_ATTR_F32S, .n = (int64_t)a->floats.n};
        out->value.fs = a->floats.v;
        return OCT_OK;
    case OCT_PB_INTS:
        out->value = (oct_attr){.kind = OCT_ATTR_INTS, .n = (int64_t)a->ints.n};
        out->value.is = a->ints.v;
        return OCT_OK;
    case OCT_PB_STRINGS:
        return read_strings(r, a, &out->value);
    case OCT_PB_TENSORS:
    case OCT_PB_GRAPHS:
    case OCT_PB_SPARSE_TENSOR:
    case OCT_PB_SPARSE_TENSORS:
    case OCT_PB_TYPE_PROTO:
    case OCT_PB_TYPE_PROTOS:
        out->value = (oct_attr){.kind = OCT_ATTR_RAW, .n = (int64_t)a->self.size};
        out->value.s = (const char *)a->self.p;
        return OCT_OK;
    case OCT_PB_UNDEFINED:
        return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute '%s' has no value", out->name);
    default:
        return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute '%s' is of unknown type %d", out->name,
                              (int)type);
    }
}

/* A kept message has its name inside: another one is put behind it, where it counts. */
static oct_status rename_raw(oct_reader *r, oct_draft_attr *a)
{
    const size_t len = strlen(a->name), size = (size_t)a->value.n;
    size_t rest = len;
    char *p = oct_arena_alloc(r->wire.arena, size + len + 12);

    if (!p) return OCT_ERR_MEMORY;
    memcpy(p, a->value.s, size);
    a->value.s = p;
    p += size;
    *p++ = 1 << 3 | 2; /* AttributeProto.name, length-delimited */
    for (; rest > 0x7f; rest >>= 7)
        *p++ = (char)(rest | 0x80);
    *p++ = (char)rest;
    memcpy(p, a->name, len);
    a->value.n = p + len - a->value.s;
    return OCT_OK;
}

/* A reference to an attribute of the function this node is in; *found false: left out there. */
static oct_status read_reference(const oct_draft *d, const oct_pb_attr *a, oct_draft_attr *out,
                                 bool *found)
{
    const oct_call *call = d->s->call;

    *found = false;
    if (!call)
        return oct_draft_fail(d, OCT_ERR_FORMAT,
                              "attribute '%s' refers to a function's attribute outside a function",
                              out->name);
    for (int32_t i = 0; i < call->n_attr; i++) {
        if (!oct_span_is(a->ref_name, call->attr[i].name)) continue;
        out->value = call->attr[i].value;
        out->graph = call->attr[i].graph;
        out->scope = call->attr[i].scope;
        *found = true;
    }
    return *found && out->value.kind == OCT_ATTR_RAW ? rename_raw(d->s->r, out) : OCT_OK;
}

oct_status oct_read_attrs(oct_draft *d, const oct_spans *list)
{
    oct_reader *r = d->s->r;

    d->attr = oct_arena_array(r->wire.arena, OCT_MAX(list->n, 1), sizeof(*d->attr));
    if (!d->attr) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < list->n; i++) {
        oct_draft_attr *out = &d->attr[d->n_attr];
        bool found = true;
        oct_pb_attr a;

        OCT_TRY(oct_wire_attr(&r->wire, list->v[i], &a));
        OCT_TRY(oct_read_text(r, r->wire.arena, a.name, "attribute name", &out->name));
        if (!out->name[0]) return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute without a name");
        for (int32_t k = 0; k < d->n_attr; k++)
            if (strcmp(d->attr[k].name, out->name) == 0)
                return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute '%s' is given twice",
                                      out->name);
        if (a.ref_name.size)
            OCT_TRY(read_reference(d, &a, out, &found));
        else
            OCT_TRY(read_value(d, &a, out));
        d->n_attr += found;
    }
    return OCT_OK;
}

static oct_status keep_strings(oct_arena *a, const oct_attr *src, oct_attr *out)
{
    const char **ss = oct_arena_array(a, (size_t)OCT_MAX(src->n, 1), sizeof(char *));

    if (!ss) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < src->n; i++)
        if (!(ss[i] = oct_arena_strdup(a, src->ss[i]))) return OCT_ERR_MEMORY;
    out->ss = ss;
    return OCT_OK;
}

oct_status oct_keep_attr(oct_graph *g, const oct_attr *src, oct_attr *out)
{
    const size_t elem = src->kind == OCT_ATTR_INTS   ? sizeof(int64_t)
                        : src->kind == OCT_ATTR_F32S ? sizeof(float)
                                                     : 1;
    oct_attr a = *src;

    a.given = true;
    if (a.kind == OCT_ATTR_STRINGS) {
        OCT_TRY(keep_strings(g->arena, src, &a));
    } else if (a.kind == OCT_ATTR_TENSOR) {
        oct_tensor_ref(a.t);
    } else if (elem > 1 || a.kind == OCT_ATTR_STRING || a.kind == OCT_ATTR_RAW) {
        /* One byte more: strings are terminated as well. */
        char *p = oct_arena_alloc(g->arena, (size_t)a.n * elem + 1);

        if (!p) return OCT_ERR_MEMORY;
        if (a.n) memcpy(p, src->s, (size_t)a.n * elem);
        a.s = p;
    }
    *out = a;
    return OCT_OK;
}

/* --- Constant --- */

static oct_status make_numbers(oct_reader *r, oct_dtype dtype, int32_t rank, int64_t n,
                               const void *src, oct_tensor **out)
{
    OCT_TRY(oct_tensor_new(r->ctx, dtype, rank, &n, out));
    if ((*out)->size) memcpy((*out)->data, src, (*out)->size);
    return OCT_OK;
}

static oct_status make_strings(oct_reader *r, int32_t rank, int64_t n, const oct_attr *a,
                               oct_tensor **out)
{
    oct_tensor *seen = NULL;
    oct_string *s;
    oct_status st;

    OCT_TRY(oct_tensor_new(r->ctx, OCT_DTYPE_STRING, rank, &n, &seen));
    s = seen->data;
    if (rank == 0) s[0] = (oct_string){a->s, (size_t)a->n};
    for (int64_t i = 0; i < n && rank; i++)
        s[i] = (oct_string){a->ss[i], strlen(a->ss[i])};
    st = oct_tensor_copy(r->ctx, seen, out);
    oct_tensor_unref(seen);
    return st;
}

static oct_status read_sparse_value(oct_draft *d, const oct_draft_attr *a, oct_tensor **out)
{
    oct_reader *r = d->s->r;
    const char *where;
    oct_pb_attr pb;
    oct_span name;

    OCT_TRY(where_attr(d, a->name, &where));
    OCT_TRY(
        oct_wire_attr(&r->wire, (oct_span){(const uint8_t *)a->value.s, (size_t)a->value.n}, &pb));
    if (!pb.sparse.p)
        return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute '%s' has no sparse tensor", a->name);
    return oct_read_sparse(r, pb.sparse, where, out, &name);
}

oct_status oct_read_constant(oct_draft *d, const oct_spans *attrs, oct_tensor **out)
{
    oct_reader *r = d->s->r;
    const oct_draft_attr *a;
    const oct_attr *v;

    OCT_TRY(oct_read_attrs(d, attrs));
    if (d->n_attr != 1)
        return oct_draft_fail(d, OCT_ERR_FORMAT, "must have one attribute, its value");
    a = &d->attr[0];
    v = &a->value;
    if (strcmp(a->name, "value") == 0 && v->kind == OCT_ATTR_TENSOR) {
        *out = oct_tensor_ref(v->t);
        return OCT_OK;
    }
    if (strcmp(a->name, "value_float") == 0 && v->kind == OCT_ATTR_F32)
        return make_numbers(r, OCT_DTYPE_F32, 0, 1, &v->f, out);
    if (strcmp(a->name, "value_int") == 0 && v->kind == OCT_ATTR_INT)
        return make_numbers(r, OCT_DTYPE_I64, 0, 1, &v->i, out);
    if (strcmp(a->name, "value_floats") == 0 && v->kind == OCT_ATTR_F32S)
        return make_numbers(r, OCT_DTYPE_F32, 1, v->n, v->fs, out);
    if (strcmp(a->name, "value_ints") == 0 && v->kind == OCT_ATTR_INTS)
        return make_numbers(r, OCT_DTYPE_I64, 1, v->n, v->is, out);
    if (strcmp(a->name, "value_string") == 0 && v->kind == OCT_ATTR_STRING)
        return make_strings(r, 0, 1, v, out);
    if (strcmp(a->name, "value_strings") == 0 && v->kind == OCT_ATTR_STRINGS)
        return make_strings(r, 1, v->n, v, out);
    if (strcmp(a->name, "sparse_value") == 0 && v->kind == OCT_ATTR_RAW)
        return read_sparse_value(d, a, out);
    return oct_draft_fail(d, OCT_ERR_FORMAT, "attribute '%s' is unknown or of the wrong kind",
                          a->name);
}
