/* SPDX-License-Identifier: Apache-2.0 */
/* Unique: the different elements, or slices along an axis, where they are and how often. */
#include "op/move.h"

enum { AXIS, SORTED };

/* n items of `len` elements each, as numbers that compare right. */
typedef struct items {
    int64_t n, len;
    const double *f;   /* one of the two */
    const uint64_t *u; /* signed integers are shifted, so that they compare as unsigned */
} items;

/* NaN is equal to NaN and greater than every number. */
static int compare(const items *s, int64_t a, int64_t b)
{
    for (int64_t i = 0; i < s->len; i++) {
        if (s->u) {
            const uint64_t x = s->u[a * s->len + i], y = s->u[b * s->len + i];
            if (x != y) return x < y ? -1 : 1;
        } else {
            const double x = s->f[a * s->len + i], y = s->f[b * s->len + i];
            if (x < y || (x == x && y != y)) return -1;
            if (x > y || (x != x && y == y)) return 1;
        }
    }
    return 0;
}

/* Sorts order[0, n) by item; equal items keep their order. */
static void merge_sort(const items *s, int64_t *order, int64_t *other)
{
    int64_t *src = order, *dst = other;

    for (int64_t width = 1; width < s->n; width *= 2) {
        for (int64_t lo = 0; lo < s->n; lo += 2 * width) {
            const int64_t mid = OCT_MIN(lo + width, s->n), hi = OCT_MIN(lo + 2 * width, s->n);

            for (int64_t i = lo, j = mid, k = lo; k < hi; k++)
                dst[k] =
                    j >= hi || (i < mid && compare(s, src[i], src[j]) <= 0) ? src[i++] : src[j++];
        }
        int64_t *t = src;
        src = dst;
        dst = t;
    }
    for (int64_t i = 0; i < s->n && src != order; i++)
        order[i] = src[i];
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x;
    int32_t axis;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_movable(q, 0));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC | OCT_SET_BOOL));
    for (int32_t i = 1; i < q->node->n_out; i++)
        q->out[i] = oct_type_make(OCT_DTYPE_I64, 1, (const int64_t[]){-1});
    q->out[0] = oct_type_make(x->dtype, 1, (const int64_t[]){-1});
    if (!oct_has(q->node, AXIS)) return OCT_OK;
    q->out[0] = *x;
    if (x->rank < 0) return OCT_OK;
    OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), x->rank, &axis));
    q->out[0].dim[axis] = -1;
    return OCT_OK;
}

/* The operand as [outer][n][inner]; flat when no axis is given. */
typedef struct layout {
    int32_t axis;
    int64_t outer, n, inner;
} layout;

static oct_status load(const oct_args *a, const layout *l, items *s)
{
    const oct_tensor *x = a->in[0];
    const bool is_float = oct_dtype_is_float(x->type.dtype);
    const size_t count = (size_t)OCT_MAX(oct_tensor_len(x), 1);
    const uint64_t shift =
        oct_dtype_get(x->type.dtype)->kind == OCT_DKIND_INT ? (uint64_t)1 << 63 : 0;
    double *f = NULL;
    int64_t *v = NULL;
    oct_move m;

    s->n = l->n;
    s->len = l->outer * l->inner;
    void *flat = oct_args_scratch(a, count, sizeof(double));
    void *turned = oct_args_scratch(a, count, sizeof(double));
    if (!flat || !turned) return OCT_ERR_MEMORY;
    if (is_float)
        oct_load_f64(x->type.dtype, x->data, 0, oct_tensor_len(x), f = flat);
    else
        oct_load_i64(x->type.dtype, x->data, 0, oct_tensor_len(x), v = flat);
    for (size_t i = 0; v && i < count; i++)
        v[i] = (int64_t)((uint64_t)v[i] ^ shift);
    oct_move_init(&m);
    oct_move_add(&m, l->n, l->inner, s->len);
    oct_move_add(&m, l->outer, l->n * l->inner, l->inner);
    oct_move_add(&m, l->inner, 1, 1);
    oct_move_run(&m, OCT_DTYPE_F64, flat, 0, turned, 0, a->n_threads);
    s->f = f ? turned : NULL;
    s->u = f ? NULL : turned;
    return OCT_OK;
}

/* What is found: for each group its first item and size, for each item its group. */
typedef struct groups {
    int64_t n, *first, *count, *of_item;
} groups;

static oct_status find_groups(const oct_args *a, const items *s, groups *g)
{
    const size_t n = (size_t)OCT_MAX(s->n, 1);
    int64_t *order = oct_args_scratch(a, n, sizeof(*order));
    int64_t *other = oct_args_scratch(a, n, sizeof(*order));

    g->first = oct_args_scratch(a, n, sizeof(*order));
    g->count = oct_args_scratch(a, n, sizeof(*order));
    g->of_item = oct_args_scratch(a, n, sizeof(*order));
    if (!order || !other || !g->first || !g->count || !g->of_item) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < s->n; i++)
        order[i] = i;
    merge_sort(s, order, other);
    g->n = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (i == 0 || compare(s, order[i - 1], order[i]) != 0) g->first[g->n++] = order[i];
        g->of_item[order[i]] = g->n - 1;
        g->count[g->n - 1]++;
    }
    if (oct_int(a->node, SORTED)) return OCT_OK;

    /* In order of first appearance: other[old group] = new group. */
    int64_t *first = oct_args_scratch(a, n, sizeof(*first));
    int64_t *count = oct_args_scratch(a, n, sizeof(*count));
    int64_t next = 0;
    if (!first || !count) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t old = g->of_item[i];

        if (g->first[old] == i) {
            other[old] = next;
            first[next] = i;
            count[next++] = g->count[old];
        }
        g->of_item[i] = other[old];
    }
    g->first = first;
    g->count = count;
    return OCT_OK;
}

static oct_status put_list(const oct_args *a, int i, const int64_t *v, int64_t n)
{
    const oct_type t = oct_type_make(OCT_DTYPE_I64, 1, &n);

    if (i >= a->node->n_out || !a->node->out[i]) return OCT_OK;
    OCT_TRY(oct_args_alloc(a, i, &t));
    oct_store_i64(OCT_DTYPE_I64, a->out[i]->data, 0, n, v);
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_tensor *x = a->in[0];
    layout l = {0, 1, oct_tensor_len(x), 1};
    oct_type y = oct_type_make(x->type.dtype, 1, &l.n);
    items s;
    groups g;

    if (oct_has(a->node, AXIS)) {
        OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), x->type.rank, &l.axis));
        y = x->type;
        l.n = y.dim[l.axis];
        l.outer = oct_type_span(&y, 0, l.axis);
        l.inner = oct_type_span(&y, l.axis + 1, y.rank);
    }
    OCT_TRY(load(a, &l, &s));
    OCT_TRY(find_groups(a, &s, &g));
    y.dim[l.axis] = g.n;
    if (a->node->out[0]) {
        OCT_TRY(oct_args_alloc(a, 0, &y));
        for (int64_t o = 0; o < l.outer; o++)
            for (int64_t k = 0; k < g.n; k++)
                oct_move_copy(y.dtype, x->data, (o * l.n + g.first[k]) * l.inner, a->out[0]->data,
                              (o * g.n + k) * l.inner, l.inner);
    }
    OCT_TRY(put_list(a, 1, g.first, g.n));
    OCT_TRY(put_list(a, 2, g.of_item, l.n));
    return put_list(a, 3, g.count, g.n);
}

static const oct_attr_def attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = 0}, .no_default = true},
    [SORTED] = {"sorted", OCT_ATTR_INT, .def = {.i = 1}},
    {0},
};

const oct_op oct_op_unique = {
    .name = "Unique",
    .since = 11,
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 4,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flags = OCT_OP_DATA_SHAPE,
};
