/* SPDX-License-Identifier: Apache-2.0 */
/* EyeLike: a matrix with ones on one diagonal, shaped like the operand. */
#include <string.h>

#include "op/op.h"

enum { DTYPE, K };

static oct_status shape(const oct_infer *q)
{
    const oct_type *x;
    oct_dtype t;

    OCT_TRY(oct_infer_need(q, 0, &x));
    if (x->rank >= 0 && x->rank != 2)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "rank is %d, expected 2", x->rank);
    t = x->dtype;
    if (oct_has(q->node, DTYPE))
        OCT_TRY(oct_dtype_attr(q->node, oct_int(q->node, DTYPE), &t));
    else if (t != OCT_DTYPE_NONE)
        OCT_TRY(oct_dtype_attr(q->node, t, &t));
    q->out[0] = *x;
    q->out[0].dtype = t;
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    oct_tensor *y = a->out[0];
    const int64_t rows = y->type.dim[0], cols = y->type.dim[1], k = oct_int(a->node, K), one = 1;

    if (y->size > 0) memset(y->data, 0, y->size);
    if (k >= cols || k <= -rows) return OCT_OK;
    for (int64_t i = 0; i < rows; i++)
        if (i + k >= 0 && i + k < cols)
            oct_store_i64(y->type.dtype, y->data, i * cols + i + k, 1, &one);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [DTYPE] = {"dtype", OCT_ATTR_INT, .no_default = true},
    [K] = {"k", OCT_ATTR_INT, .def.i = 0},
    {0},
};

const oct_op oct_op_eye_like = {
    .name = "EyeLike",
    .since = 9,
    .min_in = 1,
    .max_in = 1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flags = OCT_OP_TYPE_ONLY,
};
