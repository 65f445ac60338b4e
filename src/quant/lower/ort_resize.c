/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data movement of codes, written so that a runtime that computes in NHWC does it fast. ONNX
 * Runtime has a fast nearest Resize for NCHW only: repeating pixels and rows with Concat copies
 * whole blocks, in 1/8 of the time. A Concat with one scale is a copy, not a computation.
 */
#include <string.h>

#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/lower/lower_parts.h"

#define MOST_COPIES 4

/* The codes that v is dequantized from, if with one scale. */
static oct_value *codes_of(const oct_value *v)
{
    const oct_node *dq = v ? v->producer : NULL;

    if (!dq || !oct_node_is(dq, &oct_op_dequantize_linear) || dq->in[0]->data) return NULL;
    return oct_tensor_len(dq->in[1]->data) == 1 ? dq->in[0] : NULL;
}

/* The same constant, or none. */
static bool is_same(const oct_value *a, const oct_value *b)
{
    return a == b || (a && b && a->data && b->data && oct_tensor_equal(a->data, b->data));
}

/* The node that quantizes v with the constants x was dequantized with, if it is v's only
 * consumer: the codes are the same. */
static oct_node *same_codes_behind(const oct_value *v, const oct_value *x)
{
    oct_node *q = oct_sole_user(v);
    const oct_node *dq = x->producer;

    if (!oct_node_is(q, &oct_op_quantize_linear) || q->in[0] != v) return NULL;
    return is_same(q->in[1], dq->in[1]) && is_same(oct_node_in(q, 2), oct_node_in(dq, 2)) ? q
                                                                                          : NULL;
}

/* Codes that have been replaced; they are removed when all nodes have been seen. */
typedef struct stale {
    oct_value **item;
    int32_t n;
} stale;

/* Consumers of q's result read y. */
static oct_status replace(stale *s, oct_node *q, oct_value *y)
{
    s->item[s->n++] = q->out[0];
    return oct_value_replace_uses(q->out[0], y);
}

/* --- Resize --- */

static bool is_word(const oct_node *n, const char *attr, const char *word)
{
    return strcmp(oct_node_attr(n, attr)->s, word) == 0;
}

/* Is element i of the result always element i / k of what is read? */
static bool repeats(const oct_node *n, int64_t *rows, int64_t *columns)
{
    const oct_type *x = &n->in[0]->type, *y = &n->out[0]->type;
    const bool halves = is_word(n, "coordinate_transformation_mode", "half_pixel") ||
                        is_word(n, "coordinate_transformation_mode", "pytorch_half_pixel");
    const bool floors = is_word(n, "coordinate_transformation_mode", "asymmetric") &&
                        is_word(n, "nearest_mode", "floor");
    const bool rounds = halves && (is_word(n, "nearest_mode", "round_prefer_floor") ||
                                   is_word(n, "nearest_mode", "round_prefer_ceil"));

    if (!is_word(n, "mode", "nearest") || x->rank != 4 || y->rank != 4 || !(floors || rounds))
        return false;
    for (int i = 1; i < 4; i++)
        if (x->dim[i] < 1 || y->dim[i] < 1 || y->dim[i] % x->dim[i] != 0) return false;
    *rows = y->dim[2] / x->dim[2];
    *columns = y->dim[3] / x->dim[3];
    return x->dim[0] == y->dim[0] && x->dim[1] == y->dim[1] && *rows <= MOST_COPIES &&
           *columns <= MOST_COPIES;
}

/* k copies of x side by side, in the shape given. */
static oct_value *copies(oct_builder *b, oct_value *x, int64_t k, int axis, const int64_t shape[4])
{
    oct_value *in[MOST_COPIES];
    oct_node *n;

    if (!x) return NULL;
    for (int64_t i = 0; i < k; i++)
        in[i] = x;
    if (!(n = oct_emit_node(b, &oct_op_concat, in, (int32_t)k, 1))) return NULL;
    b->status = oct_node_set_int(n, "axis", axis);
    if (!b->status) b->status = oct_node_infer(n);
    return b->status ? NULL : oct_emit(b, &oct_op_reshape, n->out[0], oct_ints(b, shape, 4), NULL);
}

static oct_status repeat(stale *s, oct_node *n)
{
    static const int64_t last[] = {0, 2, 3, 1}, first[] = {0, 3, 1, 2};
    oct_builder b = {.g = n->graph, .before = n, .prefix = n->name};
    oct_value *x = codes_of(n->in[0]);
    oct_node *q = x ? same_codes_behind(n->out[0], n->in[0]) : NULL;
    const int64_t *dim = n->in[0]->type.dim;
    int64_t rows, columns;

    if (!q || !repeats(n, &rows, &columns)) return OCT_OK;
    const int64_t wide[] = {-1, dim[2], 1, dim[3] * columns * dim[1]};
    const int64_t high[] = {-1, dim[2] * rows, dim[3] * columns, dim[1]};

    x = copies(&b, oct_lowering_transpose(&b, x, last), columns, 3, wide);
    x = oct_lowering_transpose(&b, copies(&b, x, rows, 2, high), first);
    return x ? replace(s, q, x) : b.status;
}

/* --- Concat --- */

static oct_status join(oct_lowering *l, stale *s, oct_node *n)
{
    oct_builder b = {.g = n->graph, .before = n, .prefix = n->name};
    oct_value **in = oct_arena_array(l->arena, (size_t)n->n_in, sizeof(*in));
    oct_node *q = n->in[0] && codes_of(n->in[0]) ? same_codes_behind(n->out[0], n->in[0]) : NULL;
    oct_node *c;

    if (!in) return OCT_ERR_MEMORY;
    if (!q) return OCT_OK;
    for (int32_t i = 0; i < n->n_in; i++)
        if (!(in[i] = codes_of(n->in[i])) || same_codes_behind(n->out[0], n->in[i]) != q)
            return OCT_OK;
    if (!(c = oct_emit_node(&b, &oct_op_concat, in, n->n_in, 1))) return b.status;
    OCT_TRY(oct_node_set_int(c, "axis", oct_node_attr(n, "axis")->i));
    OCT_TRY(oct_node_infer(c));
    return replace(s, q, c->out[0]);
}

oct_status oct_lowering_codes(oct_lowering *l)
{
    stale s = {oct_arena_array(l->arena, (size_t)l->g->n_nodes + 1, sizeof(*s.item)), 0};

    if (!s.item) return OCT_ERR_MEMORY;
    for (oct_node *n = l->g->first; n; n = n->next) {
        if (oct_node_is(n, &oct_op_resize)) OCT_TRY(repeat(&s, n));
        if (oct_node_is(n, &oct_op_concat)) OCT_TRY(join(l, &s, n));
    }
    for (int32_t i = 0; i < s.n; i++)
        OCT_TRY(oct_prune(s.item[i]));
    return OCT_OK;
}
