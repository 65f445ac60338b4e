/* SPDX-License-Identifier: Apache-2.0 */
/* What passes share: reading constants, replacing nodes, removing what is no longer used. */
#include "pass/rewrite.h"

#include <math.h>
#include <string.h>

#include "op/op.h"

/* --- queries --- */

oct_node *oct_sole_user(const oct_value *v)
{
    if (v->n_users != 1 || v->is_output || v->users[0]->graph != v->graph) return NULL;
    return v->users[0];
}

oct_node *oct_inner_producer(const oct_value *v)
{
    return v && v->producer && oct_sole_user(v) ? v->producer : NULL;
}

bool oct_const_scalar(const oct_value *v, double *out)
{
    if (!v || !v->data || !oct_dtype_is_float(v->data->type.dtype)) return false;
    if (oct_tensor_len(v->data) != 1) return false;
    *out = oct_tensor_get_f64(v->data, 0);
    return true;
}

bool oct_const_is_all(const oct_tensor *t, double x)
{
    const int64_t len = oct_tensor_len(t);
    const oct_dkind kind = oct_dtype_get(t->type.dtype)->kind;

    if (kind == OCT_DKIND_OTHER || len < 1) return false;
    if (kind != OCT_DKIND_FLOAT) x += 0.0; /* integers have one zero */
    for (int64_t i = 0; i < len; i++) {
        const double e = oct_tensor_get_f64(t, i);

        if (e != x || !signbit(e) != !signbit(x)) return false;
    }
    return true;
}

bool oct_const_ints(const oct_tensor *t, int64_t *out, int max, int *n)
{
    const int64_t len = t ? oct_tensor_len(t) : -1;

    if (len < 0 || len > max || t->type.rank > 1 || !oct_dtype_is_int(t->type.dtype)) return false;
    for (int64_t i = 0; i < len; i++)
        out[i] = oct_tensor_get_i64(t, i);
    *n = (int)len;
    return true;
}

bool oct_keeps_shape(const oct_type *x, const oct_type *c)
{
    if (x->rank < 0 || c->rank < 0 || c->rank > x->rank) return false;
    for (int i = 1; i <= c->rank; i++) {
        const int64_t d = c->dim[c->rank - i];

        if (d != 1 && (d < 0 || d != x->dim[x->rank - i])) return false;
    }
    return true;
}

bool oct_same_static(const oct_type *a, const oct_type *b)
{
    return oct_type_is_static(a) && oct_type_equal(a, b);
}

int oct_const_operand(const oct_node *n)
{
    if (n->n_in != 2 || n->n_out != 1 || !n->in[0] || !n->in[1]) return -1;
    if (n->in[1]->data && !n->in[0]->data) return 1;
    if (n->in[0]->data && !n->in[1]->data) return 0;
    return -1;
}

bool oct_node_transposes(const oct_node *n, const int64_t *perm, int rank)
{
    const oct_attr *a = oct_node_is(n, &oct_op_transpose) ? oct_node_attr(n, "perm") : NULL;

    return a && a->n == rank && memcmp(a->is, perm, (size_t)rank * sizeof(*perm)) == 0;
}

/* --- changing --- */

static bool is_unread(const oct_value *v)
{
    return v->n_users == 0 && !v->is_output && !v->is_input;
}

static bool makes_nothing(const oct_node *n)
{
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !is_unread(n->out[i])) return false;
    return true;
}

/* A value without a producer that could be removed with it, usually a constant. */
static void drop_value(oct_value *v)
{
    oct_graph *root = v->graph->root;

    oct_tensor_unref(v->data);
    oct_tensor_unref(v->initial);
    v->data = v->initial = NULL;
    oct_free(root->ctx, v->users);
    v->users = NULL;
    v->n_users = v->cap_users = 0;
    root->values[v->id] = NULL;
}

/* Values to check. A removed node's operands may repeat, and a value met a second time may be
 * removed already: values live in the arena, and root->values says which exist. */
typedef struct pending {
    oct_graph *root;
    oct_value **item;
    size_t n, cap;
} pending;

static oct_status push_operands(pending *p, const oct_node *n)
{
    OCT_TRY(
        oct_grow(p->root->ctx, &p->item, &p->cap, p->n + (size_t)n->n_in + 1, sizeof(oct_value *)));
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) p->item[p->n++] = n->in[i];
    return OCT_OK;
}

static oct_status prune_pending(pending *p)
{
    oct_status st = OCT_OK;

    while (p->n > 0 && !st) {
        oct_value *v = p->item[--p->n];

        if (p->root->values[v->id] != v || !is_unread(v)) continue;
        if (v->producer && makes_nothing(v->producer)) {
            oct_node *n = v->producer;

            if (!(st = push_operands(p, n))) oct_node_remove(n);
        } else if (!v->producer) {
            drop_value(v);
        }
    }
    oct_free(p->root->ctx, p->item);
    return st;
}

oct_status oct_prune(oct_value *v)
{
    pending p = {.root = v->graph->root};

    if (!is_unread(v)) return OCT_OK;
    OCT_TRY(oct_grow(p.root->ctx, &p.item, &p.cap, 1, sizeof(oct_value *)));
    p.item[p.n++] = v;
    return prune_pending(&p);
}

/* Removes a node whose outputs are unused, and what only it used. */
static oct_status remove_node(oct_node *n)
{
    pending p = {.root = n->graph->root};
    const oct_status st = push_operands(&p, n);

    if (st) return st;
    oct_node_remove(n);
    return prune_pending(&p);
}

oct_status oct_value_freeze(oct_value *v, oct_tensor *t)
{
    oct_node *n = v->producer;

    n->out[v->out_index] = NULL;
    v->producer = NULL;
    v->out_index = 0;
    v->data = t;
    v->type = t->type;
    v->dim_name = NULL;
    return makes_nothing(n) ? remove_node(n) : OCT_OK;
}

oct_status oct_bypass(oct_node *n, oct_value *v, bool *done)
{
    oct_value *out = n->out[0];

    *done = false;
    if (!oct_value_can_replace(out, v)) return OCT_OK;
    OCT_TRY(oct_value_replace_uses(out, v));
    if (!v->is_input && !oct_type_is_static(&v->type) && oct_type_is_static(&out->type))
        v->type = out->type;
    *done = true;
    return remove_node(n);
}

oct_status oct_node_become(oct_node *n, const oct_op *op, oct_value *const *in, int32_t n_in,
                           oct_node **out)
{
    oct_node *made = oct_node_new(n->graph, n, n->name, op, in, n_in, &n->out[0], 1);

    if (!made) return OCT_ERR_MEMORY;
    made->doc = n->doc;
    n->out[0] = NULL;
    *out = made;
    return remove_node(n);
}

oct_status oct_node_take_output(oct_node *first, oct_node *last)
{
    oct_value *inner = first->out[0], *outer = last->out[0];

    /* inner loses its producer; it is removed with the nodes between, as their only operand. */
    first->out[0] = outer;
    outer->producer = first;
    outer->out_index = 0;
    inner->producer = NULL;
    last->out[0] = NULL;
    return remove_node(last);
}

oct_value *oct_const_for(oct_node *n, const char *role, oct_tensor *t)
{
    const char *base = oct_arena_printf(n->graph->arena, "%s_%s", n->name, role);
    const char *name = base ? oct_graph_fresh_name(n->graph, base) : NULL;

    if (!name) {
        oct_tensor_unref(t);
        return NULL;
    }
    return oct_value_const(n->graph, name, t);
}

oct_status oct_node_set_const(oct_node *n, int32_t i, const char *role, oct_tensor *t)
{
    oct_value *v = oct_const_for(n, role, t), *old = oct_node_in(n, i);

    if (!v) return OCT_ERR_MEMORY;
    while (n->n_in < i)
        OCT_TRY(oct_node_set_input(n, n->n_in, NULL));
    OCT_TRY(oct_node_set_input(n, i, v));
    return old ? oct_prune(old) : OCT_OK;
}
