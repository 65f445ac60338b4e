/* SPDX-License-Identifier: Apache-2.0 */
/* Shape and Size: what a tensor's type says, as data. */
#include "op/move.h"

enum { START, END };

/* The axes [*from, *to) that Shape reports. */
static void range(const oct_node *n, int32_t rank, int64_t *from, int64_t *to)
{
    int64_t start = oct_int(n, START), end = oct_has(n, END) ? oct_int(n, END) : rank;

    if (start < 0) start += rank;
    if (end < 0) end += rank;
    *from = OCT_MAX(0, OCT_MIN(start, rank));
    *to = OCT_MAX(*from, OCT_MIN(end, rank));
}

static oct_status shape_shape(const oct_infer *q)
{
    int64_t from, to, n = -1;
    const oct_type *x;

    OCT_TRY(oct_infer_need(q, 0, &x));
    if (x->rank >= 0) {
        range(q->node, x->rank, &from, &to);
        n = to - from;
    }
    q->out[0] = oct_type_make(OCT_DTYPE_I64, 1, &n);
    return OCT_OK;
}

static oct_status shape_ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type;
    int64_t from, to;

    range(a->node, x->rank, &from, &to);
    OCT_TRY(oct_args_expect(a, 0, 1, (const int64_t[]){to - from}));
    oct_store_i64(OCT_DTYPE_I64, a->out[0]->data, 0, to - from, x->dim + from);
    return OCT_OK;
}

static oct_status size_shape(const oct_infer *q)
{
    const oct_type *x;

    OCT_TRY(oct_infer_need(q, 0, &x));
    q->out[0] = oct_type_make(OCT_DTYPE_I64, 0, NULL);
    return OCT_OK;
}

static oct_status size_ref(const oct_args *a)
{
    const int64_t n = oct_type_len(&a->in[0]->type);

    oct_store_i64(OCT_DTYPE_I64, a->out[0]->data, 0, 1, &n);
    return OCT_OK;
}

static const oct_attr_def shape_attrs[] = {
    [START] = {"start", OCT_ATTR_INT, .def = {.i = 0}},
    [END] = {"end", OCT_ATTR_INT, .def = {.i = 0}, .no_default = true},
    {0},
};

const oct_op oct_op_shape = {
    .name = "Shape",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = shape_attrs,
    .shape = shape_shape,
    .ref = shape_ref,
    .flags = OCT_OP_TYPE_ONLY,
};

const oct_op oct_op_size = {
    .name = "Size",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .shape = size_shape,
    .ref = size_ref,
    .flags = OCT_OP_TYPE_ONLY,
};
