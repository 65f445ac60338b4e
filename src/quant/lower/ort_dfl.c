/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DFL for ONNX Runtime: keeps NHWC from the convolution on, so that Softmax runs over the last axis
 * without a transpose (ONNX Runtime computes it there only and transposes back and forth for any
 * other axis), and reduces each level before the Concat, which then copies 1/16 of the bytes (16
 * bins).
 */
#include <string.h>

#include "op/op.h"
#include "pass/find/dfl.h"
#include "pass/rewrite.h"
#include "quant/lower/lower_parts.h"

typedef struct work {
    oct_lowering *l;
    oct_builder b;
    oct_dfl m;
    oct_value *weight; /* [bins,1] */
} work;

/* The weights of the convolution as a matrix of one column. */
static oct_status make_weight(work *w)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 2, (const int64_t[]){w->m.bins, 1});
    const oct_value *v = w->m.sum->in[1];
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_make(w->l->ctx, &type, &t));
    memcpy(t->data, v->data->data, t->size);
    return oct_lowering_const(w->l, w->b.g, v->name, "column", t, &w->weight);
}

static oct_value *reshape(work *w, oct_value *x, const int64_t *dims, int64_t n)
{
    return x ? oct_emit(&w->b, &oct_op_reshape, x, oct_ints(&w->b, dims, n), NULL) : NULL;
}

/* [N,C,H,W] or [N,C,P] transposed to NHWC. */
static oct_value *pixels_first(work *w, oct_value *x)
{
    static const int64_t last[][4] = {{0, 2, 1}, {0, 2, 3, 1}}, first[] = {0, 3, 1, 2};
    const oct_node *n = oct_inner_producer(x);

    if (oct_node_is(n, &oct_op_reshape) && n->in[0]->type.rank == 4 &&
        n->in[0]->type.dim[0] == x->type.dim[0] && n->in[0]->type.dim[1] == x->type.dim[1]) {
        x = n->in[0];
        n = oct_inner_producer(x);
    }
    if (oct_node_transposes(n, first, 4)) return n->in[0];
    return oct_lowering_transpose(&w->b, x, last[x->type.rank - 3]);
}

/* The expected values [N,P,sides] of one level [N,sides*bins,..]. */
static oct_value *level(work *w, oct_value *x)
{
    const int64_t pixels = oct_type_span(&x->type, 2, x->type.rank);
    oct_value *y =
        reshape(w, pixels_first(w, x), (const int64_t[]){-1, pixels * w->m.sides, w->m.bins}, 3);
    oct_node *n = y ? oct_emit_node(&w->b, &oct_op_softmax, &y, 1, 1) : NULL;

    if (n) w->b.status = oct_node_set_int(n, "axis", 2);
    if (n && !w->b.status) w->b.status = oct_node_infer(n);
    if (!n || w->b.status) return NULL;
    y = oct_emit(&w->b, &oct_op_mat_mul, n->out[0], w->weight, NULL);
    return reshape(w, y, (const int64_t[]){-1, pixels, w->m.sides}, 3);
}

/* Is it a Concat of levels [N,C,P] along P with a single consumer? */
static bool joins_levels(const oct_node *n)
{
    const oct_attr *axis = oct_node_is(n, &oct_op_concat) ? oct_node_attr(n, "axis") : NULL;

    if (!axis || n->out[0]->type.rank != 3 || (axis->i != 2 && axis->i != -1)) return false;
    for (int32_t i = 0; i < n->n_in; i++)
        if (oct_type_len(&n->in[i]->type) < 1) return false;
    return true;
}

/* The expected values of all levels, [N,P,sides]. */
static oct_value *all_levels(work *w)
{
    const oct_node *cat = oct_inner_producer(w->m.split->in[0]);
    oct_value **in;
    oct_node *n;

    if (!joins_levels(cat)) return level(w, w->m.split->in[0]);
    if (!(in = oct_arena_array(w->l->arena, (size_t)cat->n_in, sizeof(*in)))) {
        w->b.status = OCT_ERR_MEMORY;
        return NULL;
    }
    for (int32_t i = 0; i < cat->n_in; i++)
        if (!(in[i] = level(w, cat->in[i]))) return NULL;
    if (!(n = oct_emit_node(&w->b, &oct_op_concat, in, cat->n_in, 1))) return NULL;
    w->b.status = oct_node_set_int(n, "axis", 1);
    if (!w->b.status) w->b.status = oct_node_infer(n);
    return w->b.status ? NULL : n->out[0];
}

static oct_status average(work *w)
{
    static const int64_t sides_first[] = {0, 2, 1};
    oct_value *old = w->m.sum->out[0], *y;

    OCT_TRY(make_weight(w));
    y = all_levels(w);
    if (y && !w->m.by_pixel) y = oct_lowering_transpose(&w->b, y, sides_first);
    y = reshape(w, y, (const int64_t[]){-1, 1, old->type.dim[2], old->type.dim[3]}, 4);
    if (!y) return w->b.status;
    OCT_TRY(oct_value_replace_uses(old, y));
    return oct_prune(old);
}

oct_status oct_lowering_dfl(oct_lowering *l)
{
    for (oct_node *n = l->g->first, *next; n; n = next) {
        work w = {.l = l};

        next = n->next;
        if (!oct_dfl_find(n, &w.m) || w.m.sum->out[0]->is_output) continue;
        if (n->in[0]->type.rank > 4) continue; /* 5-D: left to ort_softmax.c */
        next = w.m.sum->next;
        w.b = (oct_builder){
            .g = l->g, .before = w.m.sum->out[0]->producer, .prefix = w.m.softmax->name};
        OCT_TRY(average(&w));
    }
    return OCT_OK;
}
