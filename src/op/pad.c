/* SPDX-License-Identifier: Apache-2.0 */
/* Pad and CenterCropPad: elements added or taken away at both ends of axes. */
#include "op/channels.h"
#include "op/grad/gather_grad.h"
#include "op/move.h"

#include <string.h>

enum { MODE };
enum { AXES };

#define MAX_PAD ((int64_t)1 << 40) /* beyond any memory; sums stay exact */

typedef enum pad_mode { CONSTANT, REFLECT, EDGE, WRAP } pad_mode;

static oct_status read_mode(const oct_node *n, pad_mode *out)
{
    static const char *const words[] = {"constant", "reflect", "edge", "wrap"};

    for (size_t i = 0; i < OCT_COUNT(words); i++)
        if (strcmp(words[i], n->attr[MODE].s) == 0) {
            *out = (pad_mode)i;
            return OCT_OK;
        }
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "mode '%.20s' is not known", n->attr[MODE].s);
}

/* Elements before and after each axis; negative ones are cut off. */
typedef struct padding {
    int64_t before[OCT_MAX_RANK], after[OCT_MAX_RANK];
} padding;

static oct_status resolve(const oct_node *n, int32_t rank, const oct_tensor *pads,
                          const oct_tensor *axes, padding *p)
{
    int64_t list[2 * OCT_MAX_RANK], ax[OCT_MAX_RANK];
    int n_list, n_ax = rank;

    *p = (padding){{0}, {0}};
    for (int32_t d = 0; d < rank; d++)
        ax[d] = d;
    OCT_TRY(oct_read_ints(n, pads, list, 2 * OCT_MAX_RANK, &n_list));
    if (axes) OCT_TRY(oct_read_ints(n, axes, ax, OCT_MAX_RANK, &n_ax));
    if (n_list != 2 * n_ax)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%d pads for %d axes", n_list, n_ax);
    for (int i = 0; i < n_ax; i++) {
        int32_t d;

        OCT_TRY(oct_axis(n, ax[i], rank, &d));
        if (list[i] < -MAX_PAD || list[i] > MAX_PAD || list[n_ax + i] < -MAX_PAD ||
            list[n_ax + i] > MAX_PAD)
            return oct_node_fail(n, OCT_ERR_SHAPE, "axis %d is padded by %lld and %lld", (int)d,
                                 (long long)list[i], (long long)list[n_ax + i]);
        p->before[d] = list[i];
        p->after[d] = list[n_ax + i];
    }
    return OCT_OK;
}

static oct_status padded(const oct_node *n, const oct_type *x, const padding *p, pad_mode mode,
                         int64_t out[OCT_MAX_RANK])
{
    for (int32_t d = 0; d < x->rank; d++) {
        int64_t len;

        out[d] = -1;
        if (x->dim[d] < 0) continue;
        if (!oct_add_i64(x->dim[d], p->before[d] + p->after[d], &len) || len < 0)
            return oct_node_fail(n, OCT_ERR_SHAPE, "dim %d is %lld, padded by %lld and %lld",
                                 (int)d, (long long)x->dim[d], (long long)p->before[d],
                                 (long long)p->after[d]);
        const int64_t kept = x->dim[d] + OCT_MIN(p->before[d], 0) + OCT_MIN(p->after[d], 0);
        if (mode != CONSTANT && kept <= 0 && len > 0)
            return oct_node_fail(n, OCT_ERR_SHAPE, "dim %d has nothing to pad with", (int)d);
        out[d] = len;
    }
    return OCT_OK;
}

static oct_status pad_shape(const oct_infer *q)
{
    const oct_tensor *pads = oct_infer_data(q, 1), *axes = oct_infer_data(q, 3);
    const oct_type *x, *t;
    pad_mode mode = CONSTANT;
    padding p;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &t));
    OCT_TRY(oct_infer_movable(q, 0));
    OCT_TRY(read_mode(q->node, &mode));
    q->out[0] = *x;
    if (x->rank < 0) return OCT_OK;
    if (!pads || (oct_infer_in(q, 3) && !axes)) {
        for (int32_t d = 0; d < x->rank; d++)
            q->out[0].dim[d] = -1;
        return OCT_OK;
    }
    OCT_TRY(resolve(q->node, x->rank, pads, axes, &p));
    return padded(q->node, x, &p, mode, q->out[0].dim);
}

/* Fills y, then copies the part of x that is seen in it. */
static void place(const oct_args *a, const oct_type *x, const padding *p, const void *value)
{
    const oct_type *y = &a->out[0]->type;
    int64_t xs[OCT_MAX_RANK], ys[OCT_MAX_RANK], from = 0, to = 0;
    oct_move m;

    if (value) oct_move_fill(y->dtype, value, 0, a->out[0]->data, oct_type_len(y), a->n_threads);
    oct_strides(x, xs);
    oct_strides(y, ys);
    oct_move_init(&m);
    for (int32_t d = 0; d < x->rank; d++) {
        const int64_t skip = OCT_MAX(0, -p->before[d]), start = OCT_MAX(0, p->before[d]);

        from += skip * xs[d];
        to += start * ys[d];
        oct_move_add(&m, OCT_MIN(x->dim[d] - skip, y->dim[d] - start), xs[d], ys[d]);
    }
    oct_move_run(&m, y->dtype, a->in[0]->data, from, a->out[0]->data, to, a->n_threads);
}

/* Position i of an axis of n elements, from which it may be far away on either side. */
static int64_t fold(pad_mode mode, int64_t i, int64_t n)
{
    const int64_t period = mode == WRAP ? n : OCT_MAX(1, 2 * (n - 1));
    int64_t k;

    if (mode == EDGE) return OCT_MAX(0, OCT_MIN(i, n - 1));
    k = i % period;
    if (k < 0) k += period;
    return k < n ? k : period - k;
}

/* Which element of axis d of x each of the n elements of the result's is. */
static void map_axis(const oct_type *x, const padding *p, pad_mode mode, int32_t d, int64_t n,
                     int64_t *map)
{
    /* What is cut off is gone before the rest is mirrored. */
    const int64_t skip = OCT_MAX(0, -p->before[d]), start = OCT_MAX(0, p->before[d]);
    const int64_t kept = x->dim[d] - skip - OCT_MAX(0, -p->after[d]);

    for (int64_t i = 0; i < n; i++)
        map[i] = skip + fold(mode, i - start, kept);
}

static oct_status pad_mapped(const oct_args *a, const padding *p, pad_mode mode)
{
    const oct_type *x = &a->in[0]->type, *y = &a->out[0]->type;
    const int64_t *maps[OCT_MAX_RANK] = {NULL};

    for (int32_t d = 0; d < x->rank; d++) {
        int64_t *map;

        if (p->before[d] == 0 && p->after[d] == 0) continue;
        if (!(map = oct_args_scratch(a, (size_t)OCT_MAX(y->dim[d], 1), sizeof(*map))))
            return OCT_ERR_MEMORY;
        map_axis(x, p, mode, d, y->dim[d], map);
        maps[d] = map;
    }
    oct_move_mapped(x, a->in[0]->data, y, a->out[0]->data, maps, a->n_threads);
    return OCT_OK;
}

static oct_status pad_ref(const oct_args *a)
{
    static const uint64_t zero[2] = {0, 0};
    const oct_type *x = &a->in[0]->type;
    const oct_tensor *value = oct_args_in(a, 2);
    int64_t want[OCT_MAX_RANK];
    pad_mode mode = CONSTANT;
    padding p;

    OCT_TRY(read_mode(a->node, &mode));
    OCT_TRY(resolve(a->node, x->rank, a->in[1], oct_args_in(a, 3), &p));
    OCT_TRY(padded(a->node, x, &p, mode, want));
    OCT_TRY(oct_args_expect(a, 0, x->rank, want));
    if (mode != CONSTANT) return pad_mapped(a, &p, mode);
    if (value && oct_tensor_len(value) == 0) value = NULL;
    if (value && value->type.dtype != x->dtype)
        return oct_node_fail(a->node, OCT_ERR_TYPE, "data is %s, the constant is %s",
                             oct_dtype_name(x->dtype), oct_dtype_name(value->type.dtype));
    place(a, x, &p, value ? value->data : zero);
    return OCT_OK;
}

/* The requested lengths of the axes: floor(half) of the difference is added or removed at the
 * beginning. */
static oct_status center(const oct_node *n, const oct_type *x, const oct_tensor *shape,
                         int64_t out[OCT_MAX_RANK], padding *p)
{
    int64_t list[OCT_MAX_RANK];
    int count;
    const int64_t n_axes = oct_has(n, AXES) ? n->attr[AXES].n : x->rank;

    OCT_TRY(oct_read_ints(n, shape, list, OCT_MAX_RANK, &count));
    if (count != n_axes)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%d lengths for %lld axes", count,
                             (long long)n_axes);
    *p = (padding){{0}, {0}};
    for (int32_t d = 0; d < x->rank; d++)
        out[d] = x->dim[d];
    for (int i = 0; i < count; i++) {
        int32_t d = i;

        if (oct_has(n, AXES)) OCT_TRY(oct_axis(n, n->attr[AXES].is[i], x->rank, &d));
        if (list[i] < 0) return oct_node_fail(n, OCT_ERR_SHAPE, "length %lld", (long long)list[i]);
        out[d] = list[i];
        if (x->dim[d] < 0) continue;
        const int64_t more = list[i] - x->dim[d];
        p->before[d] = more >= 0 ? more / 2 : -(-more / 2);
        p->after[d] = more - p->before[d];
    }
    return OCT_OK;
}

static oct_status center_shape(const oct_infer *q)
{
    const oct_tensor *want = oct_infer_data(q, 1);
    const oct_type *x, *t;
    padding p;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &t));
    OCT_TRY(oct_infer_movable(q, 0));
    q->out[0] = *x;
    if (x->rank < 0) return OCT_OK;
    if (want) return center(q->node, x, want, q->out[0].dim, &p);
    for (int32_t d = 0; d < x->rank; d++)
        q->out[0].dim[d] = -1;
    return OCT_OK;
}

static oct_status center_ref(const oct_args *a)
{
    static const uint64_t zero[2] = {0, 0};
    const oct_type *x = &a->in[0]->type;
    int64_t want[OCT_MAX_RANK];
    padding p;

    OCT_TRY(center(a->node, x, a->in[1], want, &p));
    OCT_TRY(oct_args_expect(a, 0, x->rank, want));
    place(a, x, &p, zero);
    return OCT_OK;
}

/* --- gradients --- */

/* dy without what was added; what had been cut off gets zeros. */
static oct_value *unpad(const oct_grad_args *a, int32_t rank, const padding *p)
{
    int64_t pads[2 * OCT_MAX_RANK];

    for (int32_t d = 0; d < rank; d++) {
        pads[d] = -p->before[d];
        pads[rank + d] = -p->after[d];
    }
    return OCT_EMIT2(pad, a->dy[0], oct_ints(a->b, pads, 2 * rank));
}

/* All that is not the data's belongs to the constant. */
static void grad_constant(const oct_grad_args *a, oct_value *inside)
{
    const oct_value *x = a->node->in[0];
    const oct_type one = oct_type_make(x->type.dtype, 0, NULL);
    int64_t axes[OCT_MAX_RANK];

    for (int32_t d = 0; d < x->type.rank; d++)
        axes[d] = d;
    oct_value *all = oct_grad_reduce(a->b, &oct_op_reduce_sum, a->dy[0], axes, x->type.rank, false);
    inside = oct_grad_reduce(a->b, &oct_op_reduce_sum, inside, axes, x->type.rank, false);
    oct_value *rest = OCT_EMIT2(sub, all, inside);
    if (a->b->status) return;
    rest = oct_grad_reshape(a->b, rest, &one);
    a->dx[2] = a->b->status ? NULL : oct_grad_reshape(a->b, rest, &a->node->in[2]->type);
}

/* Axis by axis, what was taken from an element goes back to it. */
static oct_value *unfold(const oct_grad_args *a, const oct_type *x, const padding *p, pad_mode mode)
{
    oct_value *dx = a->dy[0];

    for (int32_t d = 0; d < x->rank && !a->b->status; d++) {
        const int64_t n = dx->type.dim[d];
        oct_type part = dx->type;
        int64_t *map;

        if (p->before[d] == 0 && p->after[d] == 0) continue;
        if (!(map = oct_arena_array(a->b->g->arena, (size_t)n + 1, sizeof(*map)))) {
            a->b->status = OCT_ERR_MEMORY;
            break;
        }
        map_axis(x, p, mode, d, n, map);
        part.dim[d] = x->dim[d];
        dx = oct_grad_of_gather(a->b, dx, oct_ints(a->b, map, n), d, &part);
    }
    return dx;
}

static oct_status pad_grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const oct_type *x = &n->in[0]->type;
    const oct_tensor *pads = oct_node_const(n, 1), *axes = oct_node_const(n, 3);
    pad_mode mode = CONSTANT;
    oct_value *dx;
    padding p;

    if (!pads || (oct_node_in(n, 3) && !axes))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "it has a gradient only if its pads are "
                             "constant");
    OCT_TRY(read_mode(n, &mode));
    OCT_TRY(resolve(n, x->rank, pads, axes, &p));
    dx = mode == CONSTANT ? unpad(a, x->rank, &p) : unfold(a, x, &p, mode);
    if (mode == CONSTANT && n->n_in > 2 && a->wanted[2]) grad_constant(a, dx);
    if (a->wanted[0]) a->dx[0] = dx;
    return OCT_OK;
}

static oct_status center_grad(const oct_grad_args *a)
{
    const oct_type *x = &a->node->in[0]->type;
    const oct_tensor *shape = oct_node_const(a->node, 1);
    int64_t want[OCT_MAX_RANK];
    padding p;

    if (!shape)
        return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED,
                             "it has a gradient only if its shape is constant");
    OCT_TRY(center(a->node, x, shape, want, &p));
    a->dx[0] = unpad(a, x->rank, &p);
    return OCT_OK;
}

static const oct_attr_def pad_attrs[] = {
    [MODE] = {"mode", OCT_ATTR_STRING, .def = {.s = "constant"}, .n_def = 8},
    {0},
};
static const oct_attr_def center_attrs[] = {
    [AXES] = {"axes", OCT_ATTR_INTS, .def = {.is = NULL}, .no_default = true},
    {0},
};

const oct_op oct_op_pad = {
    .name = "Pad",
    .since = 11,
    .min_in = 2,
    .max_in = 4,
    .attrs = pad_attrs,
    .shape = pad_shape,
    .ref = pad_ref,
    .grad = pad_grad,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .moves = &oct_moves_pad,
};

const oct_op oct_op_center_crop_pad = {
    .name = "CenterCropPad",
    .since = 18,
    .min_in = 2,
    .max_in = 2,
    .attrs = center_attrs,
    .shape = center_shape,
    .ref = center_ref,
    .grad = center_grad,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
};
