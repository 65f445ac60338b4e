/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of two graphs. */
#include <stdio.h>
#include <string.h>

#include "graph/op.h"

typedef struct diff {
    char *why;
    size_t size;
} diff;

static bool differ(const diff *d, const char *what, const char *where)
{
    if (d->why) snprintf(d->why, d->size, "%s of '%s' differ", what, where);
    return false;
}

static bool same_str(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_value(const diff *d, const oct_value *a, const oct_value *b)
{
    if (!a || !b) return a == b || differ(d, "operands", a ? a->name : b->name);
    if (!same_str(a->name, b->name)) return differ(d, "names", a->name);
    if (!oct_type_equal(&a->type, &b->type)) return differ(d, "types", a->name);
    if (!a->data != !b->data || !a->initial != !b->initial) return differ(d, "kinds", a->name);
    if (oct_value_known(a) && !oct_tensor_equal(oct_value_known(a), oct_value_known(b)))
        return differ(d, "data", a->name);
    return true;
}

static bool same_graph(const diff *d, const oct_graph *a, const oct_graph *b);

static bool same_attr(const diff *d, const oct_attr *a, const oct_attr *b)
{
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case OCT_ATTR_F32:
        return memcmp(&a->f, &b->f, sizeof(a->f)) == 0;
    case OCT_ATTR_INT:
        return a->i == b->i;
    case OCT_ATTR_STRING:
    case OCT_ATTR_RAW:
        return a->n == b->n && memcmp(a->s, b->s, (size_t)a->n) == 0;
    case OCT_ATTR_TENSOR:
        return oct_tensor_equal(a->t, b->t);
    case OCT_ATTR_GRAPH:
        return same_graph(d, a->g, b->g);
    case OCT_ATTR_F32S:
        return a->n == b->n && (!a->n || !memcmp(a->fs, b->fs, (size_t)a->n * sizeof(float)));
    case OCT_ATTR_INTS:
        return a->n == b->n && (!a->n || !memcmp(a->is, b->is, (size_t)a->n * sizeof(int64_t)));
    case OCT_ATTR_STRINGS:
        for (int64_t i = 0; i < a->n && a->n == b->n; i++)
            if (strcmp(a->ss[i], b->ss[i]) != 0) return false;
        return a->n == b->n;
    default:
        return true;
    }
}

static bool same_node(const diff *d, const oct_node *a, const oct_node *b)
{
    if (!same_str(a->name, b->name)) return differ(d, "names", a->name);
    if (strcmp(a->op->name, b->op->name) != 0 ||
        strcmp(oct_op_domain(a->op), oct_op_domain(b->op)) != 0)
        return differ(d, "operators", a->name);
    if (a->n_in != b->n_in || a->n_out != b->n_out) return differ(d, "operand counts", a->name);
    for (int32_t i = 0; i < a->n_in; i++)
        if (!same_value(d, a->in[i], b->in[i])) return false;
    for (int32_t i = 0; i < a->n_out; i++)
        if (!same_value(d, a->out[i], b->out[i])) return false;
    for (int i = 0, k = oct_op_n_attrs(a->op); i < k; i++)
        if (!same_attr(d, &a->attr[i], &b->attr[i])) return differ(d, "attributes", a->name);
    if (a->n_extra != b->n_extra) return differ(d, "attributes", a->name);
    for (int i = 0; i < a->n_extra; i++)
        if (strcmp(a->extra[i].name, b->extra[i].name) != 0 ||
            !same_attr(d, &a->extra[i].value, &b->extra[i].value))
            return differ(d, "attributes", a->name);
    return true;
}

static bool same_graph(const diff *d, const oct_graph *a, const oct_graph *b)
{
    const oct_node *n = a->first, *m = b->first;

    if (a->n_nodes != b->n_nodes || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs)
        return differ(d, "node, input or output counts", a->name);
    for (int32_t i = 0; i < a->n_inputs; i++)
        if (!same_value(d, a->inputs[i], b->inputs[i])) return false;
    for (int32_t i = 0; i < a->n_outputs; i++)
        if (!same_value(d, a->outputs[i], b->outputs[i])) return false;
    for (; n; n = n->next, m = m->next)
        if (!same_node(d, n, m)) return false;
    return true;
}

bool oct_graph_equal(const oct_graph *a, const oct_graph *b, char *why, size_t why_size)
{
    return same_graph(&(diff){why, why_size}, a, b);
}
