/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX messages written byte by byte, for tests: also those no writer would make.
 *
 * A message is a `pb`, built from its fields and then put into the next one.
 */
#ifndef OCT_TESTS_ONNX_MAKE_H
#define OCT_TESTS_ONNX_MAKE_H

#include <stdio.h>

#include "tests/test.h"

typedef struct pb {
    size_t n;
    uint8_t b[8192];
} pb;

static inline void pb_raw(pb *m, const void *p, size_t n)
{
    if (n > sizeof(m->b) || m->n > sizeof(m->b) - n) {
        fail_msg("test message too long");
        return;
    }
    if (n) memcpy(m->b + m->n, p, n);
    m->n += n;
}

static inline void pb_varint(pb *m, uint64_t v)
{
    do {
        const uint8_t byte = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));

        pb_raw(m, &byte, 1);
        v >>= 7;
    } while (v);
}

static inline void pb_int(pb *m, int field, int64_t v)
{
    pb_varint(m, (uint64_t)field << 3);
    pb_varint(m, (uint64_t)v);
}

static inline void pb_bytes(pb *m, int field, const void *p, size_t n)
{
    pb_varint(m, (uint64_t)field << 3 | 2);
    pb_varint(m, n);
    pb_raw(m, p, n);
}

static inline void pb_str(pb *m, int field, const char *s)
{
    pb_bytes(m, field, s, strlen(s));
}

static inline void pb_float(pb *m, int field, float v)
{
    pb_varint(m, (uint64_t)field << 3 | 5);
    pb_raw(m, &v, sizeof(v));
}

static inline void pb_msg(pb *m, int field, const pb *inner)
{
    pb_bytes(m, field, inner->b, inner->n);
}

/* Names separated by blanks; "-" is an operand left out. */
static inline void pb_names(pb *m, int field, const char *names)
{
    char copy[512];

    snprintf(copy, sizeof(copy), "%s", names);
    for (char *p = strtok(copy, " "); p; p = strtok(NULL, " "))
        pb_str(m, field, strcmp(p, "-") == 0 ? "" : p);
}

/* --- attributes (AttributeProto) --- */

static inline pb attr_int(const char *name, int64_t v)
{
    pb a = {0};

    pb_str(&a, 1, name);
    pb_int(&a, 3, v);
    pb_int(&a, 20, 2);
    return a;
}

static inline pb attr_float(const char *name, float v)
{
    pb a = {0};

    pb_str(&a, 1, name);
    pb_float(&a, 2, v);
    pb_int(&a, 20, 1);
    return a;
}

static inline pb attr_str(const char *name, const char *v)
{
    pb a = {0};

    pb_str(&a, 1, name);
    pb_str(&a, 4, v);
    pb_int(&a, 20, 3);
    return a;
}

static inline pb attr_ints(const char *name, int n, const int64_t *v)
{
    pb a = {0};

    pb_str(&a, 1, name);
    for (int i = 0; i < n; i++)
        pb_int(&a, 8, v[i]);
    pb_int(&a, 20, 7);
    return a;
}

static inline pb attr_floats(const char *name, int n, const float *v)
{
    pb a = {0};

    pb_str(&a, 1, name);
    for (int i = 0; i < n; i++)
        pb_float(&a, 7, v[i]);
    pb_int(&a, 20, 6);
    return a;
}

/* type: of AttributeProto; field: where the message goes */
static inline pb attr_msg(const char *name, int field, int type, const pb *inner)
{
    pb a = {0};

    pb_str(&a, 1, name);
    pb_msg(&a, field, inner);
    pb_int(&a, 20, type);
    return a;
}

static inline pb attr_graph(const char *name, const pb *g)
{
    return attr_msg(name, 6, 5, g);
}

static inline pb attr_ref(const char *name, const char *of_function, int type)
{
    pb a = {0};

    pb_str(&a, 1, name);
    pb_str(&a, 21, of_function);
    pb_int(&a, 20, type);
    return a;
}

/* --- nodes, values, tensors --- */

static inline pb node(const char *op, const char *in, const char *out)
{
    pb n = {0};

    pb_names(&n, 1, in);
    pb_names(&n, 2, out);
    pb_str(&n, 4, op);
    return n;
}

static inline pb with_attr(pb n, pb a)
{
    pb_msg(&n, 5, &a);
    return n;
}

static inline pb named(pb n, const char *name)
{
    pb_str(&n, 3, name);
    return n;
}

/* A value of known type; a dim of -2 is left open, other negative ones are written. */
static inline pb value(const char *name, int dtype, int rank, const int64_t *dims)
{
    pb shape = {0}, tensor = {0}, type = {0}, v = {0};

    for (int i = 0; i < rank; i++) {
        pb d = {0};

        if (dims[i] != -2) pb_int(&d, 1, dims[i]);
        pb_msg(&shape, 1, &d);
    }
    pb_int(&tensor, 1, dtype);
    if (rank >= 0) pb_msg(&tensor, 2, &shape);
    pb_msg(&type, 1, &tensor);
    pb_str(&v, 1, name);
    pb_msg(&v, 2, &type);
    return v;
}

static inline pb f32(const char *name, int rank, const int64_t *dims)
{
    return value(name, OCT_DTYPE_F32, rank, dims);
}

static inline pb tensor_head(const char *name, int dtype, int rank, const int64_t *dims)
{
    pb t = {0};

    for (int i = 0; i < rank; i++)
        pb_int(&t, 1, dims[i]);
    pb_int(&t, 2, dtype);
    pb_str(&t, 8, name);
    return t;
}

static inline pb tensor_raw(const char *name, int dtype, int rank, const int64_t *dims,
                            const void *data, size_t size)
{
    pb t = tensor_head(name, dtype, rank, dims);

    pb_bytes(&t, 9, data, size);
    return t;
}

/* --- graphs and models --- */

static inline void add_node(pb *g, pb n)
{
    pb_msg(g, 1, &n);
}

static inline void add_input(pb *g, pb v)
{
    pb_msg(g, 11, &v);
}

static inline void add_output(pb *g, pb v)
{
    pb_msg(g, 12, &v);
}

static inline void add_init(pb *g, pb t)
{
    pb_msg(g, 5, &t);
}

static inline void add_opset(pb *m, const char *domain, int64_t version)
{
    pb o = {0};

    pb_str(&o, 1, domain);
    pb_int(&o, 2, version);
    pb_msg(m, 8, &o);
}

static inline pb model_of(const pb *g, int64_t opset)
{
    pb m = {0};

    pb_int(&m, 1, 8);
    add_opset(&m, "", opset);
    pb_msg(&m, 7, g);
    return m;
}

/* Reads a model; it is kept alive by the caller. */
static inline oct_graph *load(fixture *f, const pb *m)
{
    oct_graph *g = NULL;

    assert_ok(f->ctx, oct_onnx_load_memory(f->ctx, m->b, m->n, &g));
    return g;
}

static inline void refuse(fixture *f, const pb *m, oct_status st, const char *text)
{
    oct_graph *g = NULL;

    assert_fails(f->ctx, oct_onnx_load_memory(f->ctx, m->b, m->n, &g), st, text);
    assert_null(g);
}

static inline oct_node *nth_node(oct_graph *g, int i)
{
    oct_node *n = g->first;

    for (; n && i > 0; i--)
        n = n->next;
    assert_non_null(n);
    return n;
}

static inline bool is_op(const oct_node *n, const char *op)
{
    return strcmp(oct_node_op(n), op) == 0;
}

#endif
