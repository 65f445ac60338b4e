/* SPDX-License-Identifier: Apache-2.0 */
/* Slice: every step-th element between start and end, on any axes, in either direction. */
#include "op/channels.h"
#include "op/grad/rules.h"
#include "op/move.h"

#include <string.h>

/* What is taken of each axis: n elements from `start` on. n = -1: not known. */
typedef struct window {
    int64_t start[OCT_MAX_RANK], step[OCT_MAX_RANK], n[OCT_MAX_RANK];
} window;

typedef struct params {
    int64_t start[OCT_MAX_RANK], end[OCT_MAX_RANK], axis[OCT_MAX_RANK], step[OCT_MAX_RANK];
    int n_start, n_end, n_axis, n_step; /* -1: not given; -2: not known yet */
} params;

/* Bounds are clamped into the axis as NumPy does it; dim < 0 leaves n unknown. */
static void clamp(int64_t dim, int64_t start, int64_t end, int64_t step, window *w, int d)
{
    const int64_t low = step > 0 ? 0 : -1;
    const int64_t high = step > 0 ? dim : dim - 1;
    int64_t len;

    w->n[d] = -1;
    if (dim < 0) return;
    if (start < 0) start += dim;
    if (end < 0) end += dim;
    start = OCT_MAX(0, OCT_MIN(start, high));
    end = OCT_MAX(low, OCT_MIN(end, high));
    if (step == INT64_MIN) step++; /* so that it has a negative; longer than any axis either way */
    len = step > 0 ? end - start : start - end;
    w->n[d] = len > 0 ? 1 + (len - 1) / (step > 0 ? step : -step) : 0;
    w->start[d] = w->n[d] ? start : 0;
    w->step[d] = w->n[d] > 1 ? step : 1; /* the only element needs no step */
}

static oct_status resolve(const oct_node *n, const oct_type *x, const params *p, window *w)
{
    bool seen[OCT_MAX_RANK] = {false};

    for (int32_t d = 0; d < x->rank; d++) {
        w->start[d] = 0;
        w->step[d] = 1;
        w->n[d] = x->dim[d];
    }
    if (p->n_axis == -2) { /* any axis may be cut */
        for (int32_t d = 0; d < x->rank; d++)
            w->n[d] = -1;
        return OCT_OK;
    }
    const int count = p->n_axis >= 0 ? p->n_axis : OCT_MAX(p->n_start, p->n_end);
    if (count < 0) { /* neither is known: all axes */
        for (int32_t d = 0; d < x->rank; d++)
            w->n[d] = -1;
        return OCT_OK;
    }
    if ((p->n_start >= 0 && p->n_start != count) || (p->n_end >= 0 && p->n_end != count) ||
        (p->n_step >= 0 && p->n_step != count) || count > x->rank)
        return oct_node_fail(n, OCT_ERR_SHAPE, "starts, ends, axes and steps differ in length");
    for (int i = 0; i < count; i++) {
        int32_t d = i;

        if (p->n_axis >= 0) OCT_TRY(oct_axis(n, p->axis[i], x->rank, &d));
        if (seen[d]) return oct_node_fail(n, OCT_ERR_SHAPE, "axis %d is cut twice", (int)d);
        seen[d] = true;
        if (p->n_step >= 0 && p->step[i] == 0)
            return oct_node_fail(n, OCT_ERR_SHAPE, "step of axis %d is 0", (int)d);
        if (p->n_start < 0 || p->n_end < 0 || p->n_step == -2)
            w->n[d] = -1;
        else
            clamp(x->dim[d], p->start[i], p->end[i], p->n_step >= 0 ? p->step[i] : 1, w, d);
    }
    return OCT_OK;
}

static oct_status read_list(const oct_infer *q, int i, int64_t *out, int *n)
{
    *n = -1;
    if (!oct_infer_in(q, i)) return OCT_OK;
    *n = -2;
    if (!oct_infer_data(q, i)) return OCT_OK;
    return oct_read_ints(q->node, oct_infer_data(q, i), out, OCT_MAX_RANK, n);
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x;
    params p;
    window w;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_movable(q, 0));
    q->out[0] = oct_type_unknown(x->dtype);
    if (x->rank < 0) return OCT_OK;
    OCT_TRY(read_list(q, 1, p.start, &p.n_start));
    OCT_TRY(read_list(q, 2, p.end, &p.n_end));
    OCT_TRY(read_list(q, 3, p.axis, &p.n_axis));
    OCT_TRY(read_list(q, 4, p.step, &p.n_step));
    OCT_TRY(resolve(q->node, x, &p, &w));
    q->out[0] = oct_type_make(x->dtype, x->rank, w.n);
    return OCT_OK;
}

/* The window of a tensor of type x that operands 1 to 4 say. */
static oct_status read_window(const oct_args *a, const oct_type *x, window *w)
{
    params p = {.n_axis = -1, .n_step = -1};

    OCT_TRY(oct_read_ints(a->node, a->in[1], p.start, OCT_MAX_RANK, &p.n_start));
    OCT_TRY(oct_read_ints(a->node, a->in[2], p.end, OCT_MAX_RANK, &p.n_end));
    if (oct_args_in(a, 3))
        OCT_TRY(oct_read_ints(a->node, a->in[3], p.axis, OCT_MAX_RANK, &p.n_axis));
    if (oct_args_in(a, 4))
        OCT_TRY(oct_read_ints(a->node, a->in[4], p.step, OCT_MAX_RANK, &p.n_step));
    return resolve(a->node, x, &p, w);
}

static oct_status ref(const oct_args *a)
{
    const oct_tensor *x = a->in[0];
    int64_t xs[OCT_MAX_RANK], ys[OCT_MAX_RANK], at = 0;
    window w;
    oct_move m;

    OCT_TRY(read_window(a, &x->type, &w));
    OCT_TRY(oct_args_expect(a, 0, x->type.rank, w.n));

    oct_strides(&x->type, xs);
    oct_strides(&a->out[0]->type, ys);
    oct_move_init(&m);
    for (int32_t d = 0; d < x->type.rank; d++) {
        at += w.start[d] * xs[d];
        oct_move_add(&m, w.n[d], w.step[d] * xs[d], ys[d]);
    }
    oct_move_run(&m, x->type.dtype, x->data, at, a->out[0]->data, 0, a->n_threads);
    return OCT_OK;
}

/* --- the gradient: dy at its places in zeros of x's shape --- */

enum { GRAD_SHAPE };

static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const oct_type *x = &n->in[0]->type;
    oct_node *g;

    if (!a->wanted[0]) return OCT_OK;
    g = oct_emit_node(
        a->b, &oct_op_slice_grad,
        (oct_value *[]){a->dy[0], n->in[1], n->in[2], oct_node_in(n, 3), oct_node_in(n, 4)},
        n->n_in, 1);
    oct_emit_ints(a->b, g, "shape", x->dim, x->rank);
    a->dx[0] = oct_emitted(a->b, g);
    return OCT_OK;
}

static oct_status grad_shape(const oct_infer *q)
{
    const oct_attr *s = &q->node->attr[GRAD_SHAPE];
    const oct_type *dy;

    OCT_TRY(oct_infer_need(q, 0, &dy));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    return oct_type_of_dims(q->node, dy->dtype, s->is, s->n, &q->out[0]);
}

static oct_status grad_ref(const oct_args *a)
{
    const oct_type *dy = &a->in[0]->type, *dx = &a->out[0]->type;
    int64_t xs[OCT_MAX_RANK], ys[OCT_MAX_RANK], at = 0;
    window w;
    oct_move m;

    OCT_TRY(read_window(a, dx, &w));
    if (dy->rank != dx->rank || memcmp(w.n, dy->dim, (size_t)dy->rank * sizeof(*w.n)) != 0)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "dy is not what the slice gives");
    if (a->out[0]->size) memset(a->out[0]->data, 0, a->out[0]->size);
    oct_strides(dx, xs);
    oct_strides(dy, ys);
    oct_move_init(&m);
    for (int32_t d = 0; d < dx->rank; d++) {
        at += w.start[d] * xs[d];
        oct_move_add(&m, w.n[d], ys[d], w.step[d] * xs[d]);
    }
    oct_move_run(&m, dx->dtype, a->in[0]->data, 0, a->out[0]->data, at, a->n_threads);
    return OCT_OK;
}

static const oct_attr_def grad_attrs[] = {
    [GRAD_SHAPE] = {"shape", OCT_ATTR_INTS, .required = true},
    {0},
};

const oct_op oct_op_slice_grad = {
    .name = "SliceGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 3,
    .max_in = 5,
    .attrs = grad_attrs,
    .shape = grad_shape,
    .ref = grad_ref,
};

const oct_op oct_op_slice = {
    .name = "Slice",
    .since = 10,
    .min_in = 3,
    .max_in = 5,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flags = OCT_OP_PICKS,
    .moves = &oct_moves_slice,
};
