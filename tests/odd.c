/* SPDX-License-Identifier: Apache-2.0 */
/* Odd numbers: zero, negative, huge, not a number, in attributes, constants and shapes. */
#include "tests/odd.h"

#include <string.h>

#include "graph/op.h"

int64_t odd_int(oct_rng *r)
{
    static const int64_t v[] = {0,  1, 2,   -1,      3,         4,         -2,
                                -3, 7, 100, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN};

    return v[oct_rng_below(r, oct_rng_below(r, 4) ? 9 : OCT_COUNT(v))];
}

double odd_number(oct_rng *r)
{
    static const double v[] = {0, 1, -1, 0.5, 1e-30, 1e30, -1e30, 1e300 * 1e300, 0.0 / 1e300};

    return v[oct_rng_below(r, OCT_COUNT(v))];
}

void odd_element(oct_rng *r, oct_tensor *t)
{
    const int64_t n = oct_type_len(&t->type);
    const double f = odd_number(r);
    const int64_t v = odd_int(r);
    void *data = n > 0 && oct_dtype_get(t->type.dtype)->kind != OCT_DKIND_OTHER
                     ? oct_tensor_mutable(t)
                     : NULL;

    if (!data) return;
    const int64_t at = (int64_t)oct_rng_below(r, (uint64_t)n);
    if (oct_dtype_is_float(t->type.dtype))
        oct_store_f64(t->type.dtype, data, at, 1, &f);
    else
        oct_store_i64(t->type.dtype, data, at, 1, &v);
}

void odd_attr(oct_graph *g, oct_rng *r)
{
    oct_node *n = g->first;
    oct_attr *a;
    int64_t list[32];

    for (uint64_t k = oct_rng_below(r, (uint64_t)OCT_MAX(g->n_nodes, 1)); k && n; k--)
        n = n->next;
    if (!n || !oct_op_n_attrs(n->op)) return;
    const int i = (int)oct_rng_below(r, (uint64_t)oct_op_n_attrs(n->op));
    a = &n->attr[i];
    if (a->kind == OCT_ATTR_INT) oct_node_set_int(n, n->op->attrs[i].name, odd_int(r));
    if (a->kind == OCT_ATTR_F32) oct_node_set_f32(n, n->op->attrs[i].name, (float)odd_number(r));
    if (a->kind == OCT_ATTR_INTS && a->n > 0 && a->n <= 32) {
        memcpy(list, a->is, (size_t)a->n * sizeof(*list));
        list[oct_rng_below(r, (uint64_t)a->n)] = odd_int(r);
        oct_node_set_ints(n, n->op->attrs[i].name, list,
                          a->n - (oct_rng_below(r, 8) == 0 && a->n > 1));
    }
}

/* A constant that some node reads. */
static oct_value *any_const(oct_graph *g, oct_rng *r)
{
    oct_value *found = NULL;
    uint64_t n = 0;

    for (oct_node *node = g->first; node; node = node->next)
        for (int32_t i = 0; i < node->n_in; i++)
            if (oct_node_const(node, i) && oct_rng_below(r, ++n) == 0) found = node->in[i];
    return found;
}

void odd_change(oct_graph *g, oct_rng *r)
{
    oct_value *v;

    switch (oct_rng_below(r, 5)) {
    case 0:
        v = g->n_inputs ? g->inputs[oct_rng_below(r, (uint64_t)g->n_inputs)] : NULL;
        if (v && v->type.rank > 0)
            v->type.dim[oct_rng_below(r, (uint64_t)v->type.rank)] = OCT_MAX(odd_int(r), -1);
        break;
    case 1:
    case 2:
        if ((v = any_const(g, r))) odd_element(r, v->data);
        break;
    default:
        odd_attr(g, r);
        break;
    }
}
