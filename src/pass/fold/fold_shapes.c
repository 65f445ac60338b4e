/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold-shapes: computes shapes element by element as far as they are known, so that a network with
 * an open batch size still gets constant shapes wherever that dimension does not matter.
 */
#include <string.h>

#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

#define MAX_LEN 32 /* longer vectors are not shapes */

/* A vector (or scalar) of integers of which some are not known. */
typedef struct ints {
    int n;
    bool is_known[MAX_LEN];
    int64_t x[MAX_LEN];
} ints;

typedef struct state {
    oct_arena *arena;
    ints **by_id; /* NULL: nothing known */
    int32_t n;
} state;

static const ints *known(const state *s, const oct_value *v)
{
    return v && v->id < s->n ? s->by_id[v->id] : NULL;
}

static bool is_index(const oct_type *t)
{
    return (t->dtype == OCT_DTYPE_I64 || t->dtype == OCT_DTYPE_I32) && t->rank >= 0 && t->rank <= 1;
}

static void set(ints *r, int64_t x)
{
    r->is_known[r->n] = true;
    r->x[r->n++] = x;
}

/* --- one function for each operator that moves or computes shapes --- */

static bool do_shape(const state *s, const oct_node *n, ints *r)
{
    const oct_type *t = &n->in[0]->type;
    const oct_attr *start = oct_node_attr(n, "start"), *end = oct_node_attr(n, "end");
    int64_t from = start ? start->i : 0, to = end ? end->i : t->rank;

    (void)s;
    if (t->rank < 0) return false;
    if (from < 0) from += t->rank;
    if (to < 0) to += t->rank;
    from = OCT_MAX(from, 0);
    to = OCT_MIN(to, t->rank);
    for (int64_t i = from; i < to; i++) {
        r->is_known[r->n] = t->dim[i] >= 0;
        r->x[r->n++] = t->dim[i];
    }
    return true;
}

static bool do_size(const state *s, const oct_node *n, ints *r)
{
    const int64_t len = oct_type_len(&n->in[0]->type);

    (void)s;
    if (len >= 0) set(r, len);
    return len >= 0;
}

static bool do_same(const state *s, const oct_node *n, ints *r)
{
    const ints *a = known(s, n->in[0]);

    if (a) *r = *a;
    return a != NULL;
}

static bool do_gather(const state *s, const oct_node *n, ints *r)
{
    const ints *a = known(s, n->in[0]), *at = known(s, n->in[1]);

    if (!a || !at || n->in[0]->type.rank != 1) return false;
    for (int i = 0; i < at->n; i++) {
        int64_t k = at->x[i] < 0 ? at->x[i] + a->n : at->x[i];

        if (!at->is_known[i] || k < 0 || k >= a->n) return false;
        r->is_known[r->n] = a->is_known[k];
        r->x[r->n++] = a->x[k];
    }
    return true;
}

static bool do_slice(const state *s, const oct_node *n, ints *r)
{
    const ints *a = known(s, n->in[0]), *from = known(s, n->in[1]), *to = known(s, n->in[2]);
    const ints *step = known(s, oct_node_in(n, 4));
    int64_t i, end;

    if (!a || n->in[0]->type.rank != 1) return false;
    if (!from || !to || from->n != 1 || to->n != 1 || !from->is_known[0] || !to->is_known[0])
        return false;
    if (oct_node_in(n, 4) && (!step || step->n != 1 || !step->is_known[0] || step->x[0] != 1))
        return false;
    i = from->x[0] < 0 ? from->x[0] + a->n : from->x[0];
    end = to->x[0] < 0 ? to->x[0] + a->n : to->x[0];
    for (i = OCT_MAX(i, 0); i < OCT_MIN(end, a->n); i++) {
        r->is_known[r->n] = a->is_known[i];
        r->x[r->n++] = a->x[i];
    }
    return true;
}

static bool do_concat(const state *s, const oct_node *n, ints *r)
{
    for (int32_t i = 0; i < n->n_in; i++) {
        const ints *a = known(s, n->in[i]);

        if (!a || n->in[i]->type.rank != 1 || r->n + a->n > MAX_LEN) return false;
        memcpy(r->x + r->n, a->x, (size_t)a->n * sizeof(int64_t));
        memcpy(r->is_known + r->n, a->is_known, (size_t)a->n * sizeof(bool));
        r->n += a->n;
    }
    return true;
}

static bool calculate(const oct_op *op, int64_t a, int64_t b, int64_t *r)
{
    if (op == &oct_op_add) return oct_add_i64(a, b, r);
    if (op == &oct_op_sub) return b != INT64_MIN && oct_add_i64(a, -b, r);
    if (op == &oct_op_mul) return oct_mul_i64(a, b, r);
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *r = a / b;
    return true;
}

static bool do_arithmetic(const state *s, const oct_node *n, ints *r)
{
    const ints *a = known(s, n->in[0]), *b = known(s, n->in[1]);

    if (!a || !b || a->n < 1 || b->n < 1) return false;
    if (a->n != b->n && a->n != 1 && b->n != 1) return false;
    r->n = OCT_MAX(a->n, b->n);
    for (int i = 0; i < r->n; i++) {
        const int ia = a->n == 1 ? 0 : i, ib = b->n == 1 ? 0 : i;

        r->is_known[i] =
            a->is_known[ia] && b->is_known[ib] && calculate(n->op, a->x[ia], b->x[ib], &r->x[i]);
    }
    return true;
}

typedef struct rule {
    const oct_op *op;
    bool (*run)(const state *s, const oct_node *n, ints *r);
    int n_in; /* operands that must be there */
} rule;

static const rule rules[] = {
    {&oct_op_shape, do_shape, 1},    {&oct_op_size, do_size, 1},
    {&oct_op_gather, do_gather, 2},  {&oct_op_slice, do_slice, 3},
    {&oct_op_concat, do_concat, 1},  {&oct_op_squeeze, do_same, 1},
    {&oct_op_unsqueeze, do_same, 1}, {&oct_op_reshape, do_same, 1},
    {&oct_op_identity, do_same, 1},  {&oct_op_cast, do_same, 1},
    {&oct_op_add, do_arithmetic, 2}, {&oct_op_sub, do_arithmetic, 2},
    {&oct_op_mul, do_arithmetic, 2}, {&oct_op_div, do_arithmetic, 2},
};

static bool compute(const state *s, const oct_node *n, ints *r)
{
    for (size_t i = 0; i < OCT_COUNT(rules); i++) {
        if (n->op != rules[i].op) continue;
        if (n->n_in < rules[i].n_in || n->n_out != 1 || !n->out[0]) return false;
        for (int32_t k = 0; k < n->n_in; k++)
            if (!n->in[k] && k < rules[i].n_in) return false;
        return is_index(&n->out[0]->type) && rules[i].run(s, n, r);
    }
    return false;
}

/* --- using it --- */

static oct_status remember(state *s, const oct_value *v, const ints *r)
{
    ints *copy;

    if (v->id >= s->n || s->by_id[v->id]) return OCT_OK;
    if (!(copy = oct_arena_alloc(s->arena, sizeof(*copy)))) return OCT_ERR_MEMORY;
    *copy = *r;
    s->by_id[v->id] = copy;
    return OCT_OK;
}

static oct_status remember_constants(state *s, const oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_value *v = n->in[i];
        ints r = {0};

        if (!v || !v->data || known(s, v)) continue;
        if (!oct_const_ints(v->data, r.x, MAX_LEN, &r.n)) continue;
        memset(r.is_known, true, sizeof(r.is_known));
        OCT_TRY(remember(s, v, &r));
    }
    return OCT_OK;
}

static oct_status make_tensor(oct_ctx *ctx, const oct_type *type, const ints *r, oct_tensor **out)
{
    const int64_t dim[1] = {r->n};
    const oct_type t = oct_type_make(type->dtype, type->rank, dim);

    if (type->rank == 0 && r->n != 1) return OCT_OK;
    OCT_TRY(oct_tensor_make(ctx, &t, out));
    oct_store_i64(t.dtype, (*out)->data, 0, r->n, r->x);
    return OCT_OK;
}

static bool fits(const oct_type *t, const ints *r)
{
    for (int i = 0; i < r->n; i++) {
        if (!r->is_known[i]) return false;
        if (t->dtype == OCT_DTYPE_I32 && (r->x[i] > INT32_MAX || r->x[i] < INT32_MIN)) return false;
    }
    return true;
}

/* A Reshape to a shape with one unknown element: -1 says the same. */
static oct_status close_reshape(const state *s, oct_node *n, int *n_changed)
{
    const ints *shape = known(s, oct_node_in(n, 1));
    oct_tensor *t = NULL;
    ints r;
    int n_open = 0;

    if (!shape || n->in[1]->data || n->in[1]->type.rank != 1) return OCT_OK;
    r = *shape;
    for (int i = 0; i < r.n; i++) {
        if (r.is_known[i] && r.x[i] < 1) return OCT_OK;
        if (r.is_known[i]) continue;
        r.x[i] = -1;
        n_open++;
    }
    if (n_open != 1) return OCT_OK;
    OCT_TRY(oct_tensor_vec_i64(n->graph->ctx, r.x, r.n, &t));
    ++*n_changed;
    return oct_node_set_const(n, 1, "shape", t);
}

static oct_status visit(state *s, oct_node *n, int *n_changed)
{
    oct_tensor *t = NULL;
    ints r = {0};

    OCT_TRY(remember_constants(s, n));
    if (oct_node_is(n, &oct_op_reshape) && n->n_in >= 2 && !is_index(&n->out[0]->type))
        return close_reshape(s, n, n_changed);
    if (!compute(s, n, &r)) return OCT_OK;
    OCT_TRY(remember(s, n->out[0], &r));
    if (!fits(&n->out[0]->type, &r)) return OCT_OK;
    OCT_TRY(make_tensor(n->graph->ctx, &n->out[0]->type, &r, &t));
    if (!t) return OCT_OK;
    ++*n_changed;
    return oct_value_freeze(n->out[0], t);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    state s = {.arena = oct_arena_new(g->ctx), .n = g->root->n_value_ids};
    oct_status st = s.arena ? OCT_OK : OCT_ERR_MEMORY;

    if (!st && !g->parent) st = oct_graph_infer(g); /* bodies are inferred with it */
    if (!st && !(s.by_id = oct_arena_array(s.arena, (size_t)OCT_MAX(s.n, 1), sizeof(ints *))))
        st = OCT_ERR_MEMORY;
    for (oct_node *n = g->first, *next; n && !st; n = next) {
        next = n->next;
        if (n->n_in > 0 && n->n_out > 0 && n->in[0] && n->out[0]) st = visit(&s, n, n_changed);
    }
    oct_arena_free(s.arena);
    return st;
}

const oct_pass oct_pass_fold_shapes = {
    .name = "fold-shapes",
    .help = "compute shapes that are known, also where the batch size is open",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_ALL,
};
